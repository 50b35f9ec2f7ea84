#!/usr/bin/env python3
"""Tests that the real TensorBoard reads every kind of summary that examples/summaries writes, through its data server
and its own HTTP API, and that its page, opened in headless Chromium, shows the run. `./dev test tensorboard` runs it.

Every server listens on a free port of the loopback interface that it chooses itself, every wait has a deadline, and
what is started here is ended here."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/bin/summaries"
PYTHON = ROOT / ".venv/bin/python"
DEADLINE = 120  # seconds: only a hang takes this long
RUN = "first_try"
STEPS = [1, 11, 21, 31]
NOTE = "Stripes: <strong>rows</strong> are 0, <em>columns</em> are 1."
PNG = b"\x89PNG\r\n\x1a\n"


def environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith("MUSTER_") and name != "TF_CONFIG" and not name.lower().endswith("_proxy")}


def train(model_dir):
    done = subprocess.run([str(PROGRAM), f"--model_dir={model_dir}"], env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE)
    if done.returncode:
        raise AssertionError(f"{PROGRAM.name} ended with {done.returncode}\n{done.stdout}")


class Service:
    """A program that prints the address on which it listens. Its output goes to a file, so that no full pipe stops
    it."""

    def __init__(self, command, address_pattern, log):
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen([str(word) for word in command], env=environment(), stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=subprocess.STDOUT)
        self.pattern = re.compile(address_pattern)

    def __enter__(self):
        try:
            found = self.wait_for("that it listens", lambda: self.pattern.search(self.log.read_text(errors="replace")))
        except BaseException:
            self.end()
            raise
        self.url = f"http://127.0.0.1:{found.group(1)}"
        return self

    def __exit__(self, *unused):
        self.end()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, what, found):
        """Returns the first true answer of `found()`; asks ten times a second while the service runs."""
        deadline = time.monotonic() + DEADLINE
        while True:
            if answer := found():
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {DEADLINE} s for {what}\n{self.log.read_text(errors='replace')}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.1)
                raise AssertionError(f"{self.process.args[0]} ended\n{self.log.read_text(errors='replace')}")

    def get(self, path, **query):
        url = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return answer.read()

    def get_json(self, path, **query):
        return json.loads(self.get(path, **query))

    def post_json(self, path, body):
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code}: {error.read().decode(errors='replace')[:2000]}") from error


def tensorboard(logdir, log):
    # load_fast: the data server, a separate program, or an error; never silently TensorBoard's old reader.
    return Service([PYTHON, "-m", "tensorboard.main", "--logdir", logdir, "--host", "127.0.0.1", "--port", "0",
                    "--load_fast", "true"], r"http://127\.0\.0\.1:(\d+)/", log)


class Browser:
    """One window of Chromium, driven through chromedriver's W3C WebDriver interface."""

    FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
             "--window-size=1400,1400")
    # Includes shadow trees, where half of TensorBoard's pages keep their text. Looks again until everything is there.
    LOOK = """
        const [wanted, seconds, done] = arguments;
        const textOf = node => node.nodeType === Node.TEXT_NODE ? node.data
            : ['SCRIPT', 'NOSCRIPT', 'STYLE', 'TEMPLATE'].includes(node.nodeName) ? ''
            : [...(node.shadowRoot ? node.shadowRoot.childNodes : []), ...node.childNodes].map(textOf).join(' ');
        const end = Date.now() + seconds * 1000;
        const look = () => {
          const text = textOf(document.body).replace(/\\s+/g, ' ');
          const missing = wanted.filter(word => !text.includes(word));
          if (missing.length === 0 || Date.now() > end) done({missing, text}); else setTimeout(look, 100);
        };
        look();"""

    def __init__(self, driver, profile):
        self.driver = driver
        arguments = [*self.FLAGS, f"--user-data-dir={profile}"]
        limits = {"script": DEADLINE * 1000, "pageLoad": DEADLINE * 1000}
        capabilities = {"browserName": "chrome", "timeouts": limits, "goog:chromeOptions": {"args": arguments}}
        answer = driver.post_json("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{answer['value']['sessionId']}"

    def open(self, url):
        self.driver.post_json(f"{self.session}/url", {"url": url})

    def missing(self, words):
        """Returns the words that the page doesn't show, and what it shows instead."""
        found = self.driver.post_json(f"{self.session}/execute/async",
                                      {"script": self.LOOK, "args": [words, DEADLINE - 20]})["value"]
        return found["missing"], found["text"]

    def close(self):
        request = urllib.request.Request(f"{self.driver.url}{self.session}", method="DELETE")
        urllib.request.urlopen(request, timeout=DEADLINE).close()


def setUpModule():
    if not (PYTHON.exists() and subprocess.run([str(PYTHON), "-c", "import tensorboard"], capture_output=True).returncode == 0):
        raise unittest.SkipTest(f"{PYTHON} doesn't have tensorboard: './dev setup --tests' installs it")


class TensorBoardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="muster_tensorboard_")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        logs = cls.folder / "logs"
        train(logs / RUN)
        cls.board = cls.enterClassContext(tensorboard(logs, cls.folder / "tensorboard.log"))
        # Loaded in one piece, so that everything is there once the last tag is.
        cls.board.wait_for("the run", lambda: "accuracy" in cls.get("scalars/tags").get(RUN, {}))

    @classmethod
    def get(cls, path, **query):
        return cls.board.get_json(f"/data/plugin/{path}", **query)

    def points(self, plugin, tag):
        return self.get(f"{plugin}/{plugin}", run=RUN, tag=tag)

    def test_the_run(self):
        self.assertEqual(self.board.get_json("/data/runs"), [RUN])

    def test_scalars(self):
        self.assertLessEqual({"loss", "accuracy"}, set(self.get("scalars/tags")[RUN]))
        loss, accuracy = self.points("scalars", "loss"), self.points("scalars", "accuracy")
        self.assertEqual([step for _, step, _ in loss], STEPS)
        self.assertEqual([step for _, step, _ in accuracy], STEPS)
        self.assertLess(loss[-1][2], loss[0][2])
        self.assertTrue(all(0 <= value <= 1 and (value * 32).is_integer() for _, _, value in accuracy), accuracy)

    def test_histograms(self):
        scores = self.points("histograms", "scores")
        self.assertEqual([step for _, step, _ in scores], STEPS)
        for _, step, buckets in scores:
            self.assertEqual(round(sum(count for _, _, count in buckets)), 64, f"32 pairs of scores at step {step}")

    def test_images(self):
        tags = self.get("images/tags")[RUN]
        self.assertEqual(set(tags), {"pictures/image/0", "pictures/image/1"})
        images = self.get("images/images", run=RUN, tag="pictures/image/1", sample=0)
        self.assertEqual([image["step"] for image in images], STEPS)
        for image in images:
            png = self.board.get(f"/data/plugin/images/individualImage?{image['query']}")
            self.assertEqual((png[:8], int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), (PNG, 8, 8))
        self.check_pixels(png)

    def check_pixels(self, png):
        """Checks the pixels as read by another library: noise up to one half, and one white row or column."""
        file = self.folder / "picture.png"
        file.write_bytes(png)
        script = ("import json, sys; from PIL import Image; image = Image.open(sys.argv[1]); "
                  "print(json.dumps([image.mode, list(image.getdata())]))")
        mode, pixels = json.loads(subprocess.run([str(PYTHON), "-W", "ignore", "-c", script, str(file)], check=True,
                                                 capture_output=True, timeout=DEADLINE).stdout)
        self.assertEqual(mode, "L")
        rows = [pixels[8 * y:8 * y + 8] for y in range(8)]
        white = [line for line in rows + [list(column) for column in zip(*rows)] if line == [255] * 8]
        self.assertEqual((len(white), pixels.count(255)), (1, 8), rows)
        self.assertTrue(all(pixel <= 128 for pixel in pixels if pixel < 255), rows)

    def test_text(self):
        self.assertEqual(self.get("text/tags"), {RUN: ["notes"]})
        notes = self.points("text", "notes")
        self.assertEqual([note["step"] for note in notes], STEPS)
        self.assertIn(NOTE, notes[0]["text"])

    def test_hparams(self):
        experiment = self.board.post_json("/data/plugin/hparams/experiment", {})
        kinds = {info["name"]: info["type"] for info in experiment["hparamInfos"]}
        self.assertEqual(kinds, {"learning_rate": "DATA_TYPE_FLOAT64", "hidden": "DATA_TYPE_FLOAT64",
                                 "optimizer": "DATA_TYPE_STRING", "nesterov": "DATA_TYPE_BOOL"})
        self.assertLessEqual({"loss", "accuracy"}, {info["name"]["tag"] for info in experiment["metricInfos"]})
        groups = self.board.post_json("/data/plugin/hparams/session_groups", {
            "colParams": [{"hparam": name} for name in kinds] + [{"metric": {"tag": "accuracy"}}],
            "allowedStatuses": ["STATUS_SUCCESS"], "startIndex": 0, "sliceSize": 10})
        group, = groups["sessionGroups"]
        self.assertEqual(group["hparams"], {"learning_rate": 0.05, "hidden": 8, "optimizer": "adam", "nesterov": False})
        accuracy, = [value for value in group["metricValues"] if value["name"]["tag"] == "accuracy"]
        self.assertEqual(int(accuracy["trainingStep"]), STEPS[-1])
        session, = group["sessions"]
        self.assertEqual(session["status"], "STATUS_SUCCESS")

    def test_graph(self):
        self.assertTrue(self.get("graphs/info")[RUN]["run_graph"])
        graph = self.board.get("/data/plugin/graphs/graph", run=RUN).decode()
        names = re.findall(r'name: "([^"]+)"\s+op: "([^"]+)"', graph)
        self.assertEqual(names, [("Net", "Net"), ("Net/layers", "Sequential"), ("Net/layers/0", "Linear"),
                                 ("Net/layers/0/weight", "Parameter"), ("Net/layers/0/bias", "Parameter"),
                                 ("Net/layers/1", "ReLU"), ("Net/layers/2", "Linear"),
                                 ("Net/layers/2/weight", "Parameter"), ("Net/layers/2/bias", "Parameter")])
        shapes = re.findall(r'key: "shape"\s+value \{\s+shape \{((?:\s+dim \{\s+size: \d+\s+\})*)', graph)
        self.assertEqual([[int(size) for size in re.findall(r"size: (\d+)", shape)] for shape in shapes],
                         [[8, 64], [8], [2, 8], [2]])

    def test_the_page_in_a_browser(self):
        programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        if None in programs.values():
            self.skipTest("Chromium isn't here: './dev setup' installs chromium and chromium-driver")
        driver = self.enterContext(Service([programs["chromedriver"], "--port=0"], r"successfully on port (\d+)",
                                           self.folder / "chromedriver.log"))
        browser = Browser(driver, self.folder / "profile")
        self.addCleanup(browser.close)
        for tab, words in {"timeseries": [RUN, "loss", "accuracy", "scores", "pictures 2 cards"],
                           "scalars": [RUN, "loss", "accuracy"],
                           "text": [RUN, "notes", "are 0"],
                           "hparams": [RUN, "learning_rate", "adam"],
                           "graphs": [RUN, "Net"]}.items():
            with self.subTest(tab=tab):
                browser.open(f"{self.board.url}/?tab={tab}#{tab}")
                missing, text = browser.missing(words)
                self.assertEqual(missing, [], f"the page of {tab} shows: {text[:2000]}")


class RestartTest(unittest.TestCase):
    def test_tensorboard_drops_what_a_restart_took_back(self):
        scratch = tempfile.TemporaryDirectory(prefix="muster_restart_")
        self.addCleanup(scratch.cleanup)
        logs = pathlib.Path(scratch.name) / "logs"
        train(logs / RUN)
        # Imitates a first life killed before its last checkpoint: the second begins at step 0 again.
        for file in [*(logs / RUN).glob("model.ckpt-31.*"), logs / RUN / "checkpoint"]:
            file.unlink()
        second_life = time.time()
        train(logs / RUN)
        with tensorboard(logs, logs.parent / "tensorboard.log") as board:
            read = lambda: board.get_json("/data/plugin/scalars/scalars", run=RUN, tag="loss")
            board.wait_for("the run", lambda: "loss" in board.get_json("/data/plugin/scalars/tags").get(RUN, {}))
            points = board.wait_for("the second life", lambda: (now := read())[0][0] >= second_life and now)
        self.assertEqual([step for _, step, _ in points], STEPS)
        # TensorBoard's other reader, which itself obeys the START event: it also drops points without a successor.
        script = ("import json, sys; from tensorboard.backend.event_processing.event_accumulator import EventAccumulator; "
                  "a = EventAccumulator(sys.argv[1]); a.Reload(); print(json.dumps([[s.wall_time, s.step] for s in a.Scalars('loss')]))")
        seen = json.loads(subprocess.run([str(PYTHON), "-c", script, str(logs / RUN)], check=True, timeout=DEADLINE,
                                         capture_output=True).stdout)
        self.assertEqual([step for _, step in seen], STEPS)
        self.assertTrue(all(wall_time >= second_life for wall_time, _ in seen), seen)


if __name__ == "__main__":
    sys.exit(unittest.main())
