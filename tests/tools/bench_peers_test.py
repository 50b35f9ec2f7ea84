#!/usr/bin/env python3
"""Tests the driver of `bench peers` with shell scripts as peers: what it measures, and its messages about peers that
fail, hang or aren't installed. Installs nothing; `./dev test tools` runs it."""

import contextlib
import io
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench/peers"), str(ROOT / "tools")]
import contestants  # noqa: E402
import environment  # noqa: E402
import losses  # noqa: E402
import processes  # noqa: E402
import report  # noqa: E402
import run as peers_run  # noqa: E402
import run_benchmarks  # noqa: E402

ALONE, ASYNCHRONOUS, SYNCHRONOUS = contestants.ALONE, contestants.ASYNCHRONOUS, contestants.SYNCHRONOUS
HANGS = "read -r line < <(tail -f /dev/null)"


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="bench_peers_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def scripted(self, name, script, kind=ASYNCHRONOUS, **more):
        """Returns a peer with one process per worker; in the script $folder is the run's, $task the worker's number,
        $scratch the test's."""
        def tasks(run):
            return [contestants.Task(f"worker {task}", ["bash", "-c", script],
                                     {"folder": str(run.folder), "task": str(task), "scratch": str(self.folder)})
                    for task in range(run.workers)]
        return contestants.Contestant(name, kind, tasks, **more)

    def leaves(self, steps, seconds=1):
        return f"""echo '{{"steps": {steps}, "seconds": {seconds}}}' >$folder/result.$task.json"""

    def bench(self, everyone, *arguments, references=(), missing=(), switch=""):
        self.said = io.StringIO()
        self.installs = []

        def install(package):
            self.installs.append(package)
            return "no network" if package in missing else ""

        options = peers_run.options_of(["--rounds", "3", "--limit", "20", "--workers", "1", "--out", str(self.folder / "out"),
                                        *arguments])
        with contextlib.redirect_stderr(self.said):
            return peers_run.Bench(options, everyone, {one.name: one for one in references}, install, self.folder, switch)

    def quietly(self, function, *arguments):
        with contextlib.redirect_stderr(self.said), contextlib.redirect_stdout(io.StringIO()) as out:
            result = function(*arguments)
        self.printed = out.getvalue()
        return result


class MeasuringTest(Scratch):
    def test_rates_are_sums_over_workers_and_rows_are_medians(self):
        # 10, 90, 20 steps in the three rounds, by each of two workers, in 2 s.
        counted = "n=$(cat $scratch/n.$task 2>/dev/null || echo 0); echo $((n + 1)) >$scratch/n.$task; set -- 10 90 20; shift $n; " \
                  + """echo "{\\"steps\\": $1, \\"seconds\\": 2}" >$folder/result.$task.json"""
        bench = self.bench([self.scripted("a", counted)])
        line, = self.quietly(bench.measure, "mlp100", 2)
        self.assertEqual(line.rates, [10, 90, 20])
        self.assertEqual(line.median, 20)
        self.assertEqual(bench.problems, [])

    def test_every_other_round_goes_backwards(self):
        everyone = [self.scripted(name, f"echo {name} >>$scratch/order; {self.leaves(1)}") for name in "abc"]
        self.quietly(self.bench(everyone).measure, "mlp100", 1)
        self.assertEqual((self.folder / "order").read_text().split(), list("abc" "cba" "abc"))

    def test_one_that_fails_is_named_with_its_last_words_and_not_tried_again(self):
        bench = self.bench([self.scripted("bad", "echo x >>$scratch/tries; echo no such thing; exit 3"),
                            self.scripted("good", self.leaves(5))])
        bad, good = self.quietly(bench.measure, "mlp100", 1)
        self.assertEqual(good.median, 5)
        self.assertIsNone(bad.median)
        self.assertEqual(len((self.folder / "tries").read_text().split()), 1)
        self.assertEqual(bench.problems, ["bad, mlp100, 1 workers: worker 0 failed with status 3; it said: no such thing"])
        self.assertIn("FAILED: worker 0 failed", "\n".join(report.table([bad, good], "p", False)))

    def test_one_that_hangs_is_ended_with_all_it_has_started_and_named(self):
        bench = self.bench([self.scripted("slow", f"(echo $BASHPID >$scratch/child; {HANGS}) & wait")], "--limit", "3")
        line, = self.quietly(bench.measure, "mlp100", 1)
        self.assertIn("worker 0 took longer than 3 s and was ended", line.problem)
        try:
            child = os.pidfd_open(int((self.folder / "child").read_text()))
        except ProcessLookupError:
            return
        self.addCleanup(os.close, child)
        self.assertTrue(select.select([child], [], [], 30)[0], "what it had started goes on")

    def test_what_serves_for_ever_is_ended_when_the_others_are_done(self):
        def tasks(run):
            return [contestants.Task("ps", ["bash", "-c", HANGS], awaited=False),
                    contestants.Task("worker 0", ["bash", "-c", self.leaves(7)], {"folder": str(run.folder), "task": "0"})]
        bench = self.bench([contestants.Contestant("served", ASYNCHRONOUS, tasks)])
        line, = self.quietly(bench.measure, "mlp100", 1)
        self.assertEqual(line.rates, [7, 7, 7])

    def test_without_a_result_it_has_failed(self):
        bench = self.bench([self.scripted("silent", "true"), self.scripted("broken", "echo { >$folder/result.$task.json")])
        for line in self.quietly(bench.measure, "mlp100", 1):
            self.assertIn("without a result", line.problem)

    def test_a_program_that_isnt_there(self):
        missing = contestants.Contestant("gone", ALONE, lambda run: [contestants.Task("process 0", ["/no/such/program"])])
        line, = self.quietly(self.bench([missing]).measure, "mlp100", 1)
        self.assertIn("can't be started", line.problem)

    def test_the_switch_is_a_second_line_of_peers_that_use_mkl(self):
        shows = """[ -z "$LD_PRELOAD" ] && n=1 || n=2; echo "{\\"steps\\": $n, \\"seconds\\": 1}" >$folder/result.$task.json"""
        everyone = [self.scripted("mine", shows, ours=True, uses_mkl=True), self.scripted("torch", shows, uses_mkl=True),
                    self.scripted("other", shows)]
        lines = self.quietly(self.bench(everyone, switch="libc.so.6").measure, "mlp100", 1)
        self.assertEqual([(line.name, line.median) for line in lines],
                         [("mine", 1), ("torch", 1), ("torch+switch", 2), ("other", 1)])

    def test_push_pull_is_for_one_worker_of_those_who_move_buffers(self):
        mover = self.scripted("mover", "", moves_buffer=True)
        self.assertTrue(mover.does("push_pull", 1))
        self.assertFalse(mover.does("push_pull", 2))
        self.assertFalse(self.scripted("other", "").does("push_pull", 1))


class SkippingTest(Scratch):
    def test_what_cant_be_installed_is_a_named_skip(self):
        everyone = [self.scripted("a", self.leaves(1), packages=("torch",)), self.scripted("b", "", packages=("jax", "torch")),
                    self.scripted("c", "", packages=("jax",))]
        bench = self.bench(everyone, "--no_check", "--models", "mlp100", missing=("jax",))
        rows = self.quietly(peers_run.whole, bench, "a processor")
        self.assertEqual([row.get("skipped") or row["contestant"] for row in rows if "goal" not in row], ["b", "c", "a"])
        self.assertEqual(sum("goal" in row for row in rows), len(report.GOALS))
        self.assertEqual(rows[0]["reason"], "no network")
        self.assertIn("SKIPPED: b: no network", self.said.getvalue())
        self.assertEqual(sorted(self.installs), ["jax", "torch"])
        self.assertEqual(bench.problems, [])
        written = (self.folder / "out/peers.jsonl").read_text()
        self.assertEqual(written, self.printed)
        self.assertEqual([json.loads(line) for line in written.splitlines()], rows)

    def test_what_no_package_brings_is_a_named_skip(self):
        bench = self.bench([self.scripted("old", "", unavailable="from source only")])
        self.assertEqual((bench.everyone, bench.skipped), ([], {"old": "from source only"}))

    def test_why_pip_couldnt(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
        python.chmod(0o755)
        kept, environment.PYTHON = environment.PYTHON, python
        self.addCleanup(setattr, environment, "PYTHON", kept)
        self.assertFalse(environment.works("torch"))
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertIn("No matching distribution", environment.install("torch"))

    def test_torch_is_the_version_that_the_project_is_built_on(self):
        self.assertRegex(environment.torch_requirement(), r"^torch==\d+\.\d+")

    def test_a_name_that_nobody_has(self):
        everyone = contestants.peers("python") + [self.scripted("direct", "", ours=True)]
        for arguments, words in ((["--peers", "tensorflow_ps,horovod"], ("'horovod'", "torch_ddp")),
                                 (["--ours", "drect"], ("'drect'", "direct")), (["--models", "resnet"], ("'resnet'", "mlp2048")),
                                 (["--workers", "3"], ("3",))):
            with self.assertRaises(SystemExit) as raised:
                peers_run.chosen(peers_run.options_of(arguments), everyone)
            for word in words:
                self.assertIn(word, str(raised.exception))
        found = peers_run.chosen(peers_run.options_of(["--peers", "torch_ddp", "--ours", ""]), everyone)
        self.assertEqual([one.name for one in found], ["torch_ddp"])


class LossesTest(Scratch):
    def has(self, *values):
        return f"""echo '{json.dumps({"losses": list(values)})}' >$folder/result.$task.json"""

    def check(self, contestant, expected, workers=1):
        reference = self.scripted(losses.reference_of(contestant, workers), self.has(*expected))
        reference = contestants.dataclasses.replace(reference, results=lambda run: 1)
        bench = self.bench([contestant], references=[reference])
        row, = self.quietly(bench.check, "mlp100", workers)
        self.assertEqual(bool(bench.problems), not row["same"])
        return row["same"]

    def test_one_worker_has_the_same_curve(self):
        self.assertTrue(self.check(self.scripted("a", self.has(2, 1.00005)), [2, 1]))
        self.assertFalse(self.check(self.scripted("a", self.has(2, 1.001)), [2, 1]))
        self.assertFalse(self.check(self.scripted("a", self.has(2.1, 1)), [2, 1]))
        self.assertFalse(self.check(self.scripted("a", self.has(2)), [2, 1]))

    def test_so_have_synchronous_workers_each_its_own(self):
        mine = """[ $task = 0 ] && l='[4, 2]' || l='[3, 1]'; echo "{\\"losses\\": $l}" >$folder/result.$task.json"""
        self.assertTrue(self.check(self.scripted("a", mine, SYNCHRONOUS), [4, 3, 2, 1], workers=2))
        self.assertFalse(self.check(self.scripted("a", mine, SYNCHRONOUS), [4, 2, 3, 1], workers=2))

    def test_asynchronous_workers_end_near(self):
        self.assertTrue(self.check(self.scripted("a", self.has(5, *[1.05] * 16)), [*[9, 9], *[1] * 32], workers=2))
        self.assertFalse(self.check(self.scripted("a", self.has(5, *[1.2] * 16)), [*[9, 9], *[1] * 32], workers=2))

    def test_one_result_may_have_all_workers(self):
        self.assertEqual(losses.curves([{"losses": [1, 2, 3, 4]}], 2), [[1, 3], [2, 4]])
        self.assertEqual(losses.curves([{"losses": [1]}, {"losses": [2]}], 2), [[1], [2]])


class ReportTest(Scratch):
    def line(self, name, model, workers, rate, ours=False, kind=ASYNCHRONOUS, switch=False):
        return report.Line(self.scripted(name, "", kind, ours=ours), model, workers, switch, [rate])

    def test_goals_are_met_or_not(self):
        lines = [self.line("direct", "mlp100", 2, 1000, ours=True), self.line("tensorflow_ps", "mlp100", 2, 100),
                 self.line("torch_hogwild", "mlp100", 2, 500), self.line("torch_hogwild", "mlp100", 2, 900, switch=True)]
        rows, text = report.goals(lines, True, {})
        self.assertEqual([(row["at_least"], row["met"]) for row in rows if row["met"] is not None],
                         [(11, False), (1.8, True), (1.2, False)])
        self.assertTrue(any(line.startswith("  NOT MET  10.00 x of 11 x") for line in text), text)
        self.assertTrue(any(line.startswith("  met       2.00 x of 1.8 x") for line in text), text)

    def test_where_the_switch_changes_nothing_the_plain_peer_counts(self):
        lines = [self.line("direct", "mlp100", 2, 1000, ours=True), self.line("torch_hogwild", "mlp100", 2, 500)]
        rows, _ = report.goals(lines, False, {})
        self.assertEqual([row["met"] for row in rows if row["met"] is not None], [True, True])

    def test_a_goal_that_wasnt_measured_is_named_and_says_why(self):
        failed = self.line("torch_hogwild", "mlp100", 2, 500)
        failed.rates, failed.problem = [], "it hung"
        lines = [self.line("direct", "mlp100", 2, 1000, ours=True), failed, self.line("tcp", "push_pull", 1, 5, ours=True)]
        rows, text = report.goals(lines, True, {"ps_lite": "no package"})
        self.assertEqual(len(rows), len(report.GOALS))
        self.assertEqual({row["met"] for row in rows}, {None})
        why = {row["goal"]: row["why"] for row in rows}
        self.assertEqual(why["direct over torch_hogwild, mlp100, 2 workers"], "torch_hogwild failed: it hung")
        self.assertEqual(why["tcp over ps_lite, push_pull, 1 workers"], "ps_lite was skipped: no package")
        self.assertEqual(why["tcp over tensorflow_ps, push_pull, 1 workers"], "tensorflow_ps isn't among what was asked for")
        self.assertEqual(why["shm over tensorflow_ps, push_pull, 1 workers"], "shm isn't among what was asked for")
        self.assertEqual(sum(line.startswith("  NOT MEASURED: ") for line in text), len(report.GOALS))

    def test_the_table_compares_what_waits_with_what_waits(self):
        lines = [self.line("local", "mlp100", 2, 1100, ours=True, kind=ALONE), self.line("direct", "mlp100", 2, 1000, ours=True),
                 self.line("synchronous", "mlp100", 2, 800, ours=True, kind=SYNCHRONOUS),
                 self.line("torch_hogwild", "mlp100", 2, 500), self.line("torch_ddp", "mlp100", 2, 100, kind=SYNCHRONOUS)]
        text = list(report.table(lines, "a processor", False))
        self.assertIn("a processor", text[0])
        found = {line.split()[0]: line for line in text if line.startswith("  ")}
        self.assertTrue(found["direct"].endswith("0.91 x local"), found["direct"])
        self.assertTrue(found["torch_hogwild"].endswith("  direct 2.00 x"), found["torch_hogwild"])
        self.assertTrue(found["torch_ddp"].endswith("  synchronous 8.00 x"), found["torch_ddp"])
        self.assertAlmostEqual(report.row(lines[1], lines, "p")["of_local"], 1000 / 1100)

    def test_gigabytes_of_push_pull(self):
        line = self.line("tcp", "push_pull", 1, 15, ours=True)
        self.assertAlmostEqual(report.row(line, [line], "p")["gb_per_s"], 1.5)


class ContestantsTest(Scratch):
    def test_our_ways_become_processes(self):
        ways = [{"name": "local", "kind": ALONE}, {"name": "tcp", "kind": ASYNCHRONOUS}, {"name": "sync", "kind": SYNCHRONOUS}]
        local, tcp, sync = contestants.ours("program", "command", ways)
        run = contestants.Run("mlp100", 2, self.folder, self.folder)
        self.assertEqual([task.name for task in local.tasks_of(run)], ["process 0", "process 1"])
        ps, *workers = tcp.tasks_of(run)
        self.assertEqual(ps.command, ["command", "ps"])
        config = json.loads(workers[1].environment["TF_CONFIG"])
        self.assertEqual(config["task"], {"type": "worker", "index": 1})
        self.assertEqual(len(set(config["cluster"]["ps"] + config["cluster"]["worker"])), 3)
        self.assertEqual(sync.workers, (2,))
        self.assertFalse(sync.moves_buffer)

    def test_every_peer_has_a_program(self):
        for peer in contestants.peers("python"):
            self.assertNotEqual(bool(peer.workers), bool(peer.unavailable), peer.name)
            for task in peer.tasks_of(contestants.Run("mlp100", max(peer.workers, default=1), self.folder, self.folder)):
                self.assertTrue(pathlib.Path(task.command[1]).is_file(), task.command)
                self.assertEqual(task.environment["OMP_NUM_THREADS"], "1")

    def test_who_trains_tables(self):
        takes_part = {peer.name for peer in contestants.peers("python") if peer.does("embedding", 2)}
        self.assertIn("torch_ddp", takes_part)
        self.assertNotIn("tensorflow_ps_sync", takes_part)
        ways = contestants.ours("program", "command", [{"name": "a", "kind": ASYNCHRONOUS}, {"name": "s", "kind": SYNCHRONOUS}])
        self.assertEqual([way.does("embedding", 2) for way in ways], [True, False])

    def test_ports_differ(self):
        self.assertEqual(len(set(processes.free_ports(20))), 20)


class RunBenchmarksTest(Scratch):
    def setUp(self):
        super().setUp()
        for path, text in (("build/release/bin/bench_one", "#!/bin/sh\necho one ${1+$*} >>$SEEN\n"),
                           ("bench/two/run.py", "import os, sys\nopen(os.environ['SEEN'], 'a').write(' '.join(['two', *sys.argv[1:]]) + '\\n')\n")):
            (self.folder / path).parent.mkdir(parents=True)
            (self.folder / path).write_text(textwrap.dedent(text))
            (self.folder / path).chmod(0o755)

    def seen(self, *arguments):
        script = f"import sys, pathlib; sys.path.insert(0, {str(ROOT / 'tools')!r}); import run_benchmarks; " \
                 f"sys.exit(run_benchmarks.main(sys.argv[1:], pathlib.Path({str(self.folder)!r})))"
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, SEEN=str(self.folder / "seen")))
        self.status, self.errors = done.returncode, done.stderr
        return (self.folder / "seen").read_text().splitlines() if (self.folder / "seen").exists() else []

    def test_a_script_is_run_when_it_is_named(self):
        self.assertEqual(self.seen(), ["one"])
        self.assertEqual(self.seen("two", "--rounds", "3"), ["one", "two --rounds 3"])
        self.assertEqual(self.status, 0)

    def test_options_of_several(self):
        self.assertEqual(self.seen("one", "two", "--rounds", "3"), [])
        self.assertEqual(self.status, 2)
        self.assertEqual(self.seen("three"), [])
        self.assertIn("accepted: one, two", self.errors)

    def test_peers_is_known(self):
        self.assertIn("peers", run_benchmarks.programs(ROOT)[1])


if __name__ == "__main__":
    unittest.main()
