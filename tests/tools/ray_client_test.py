#!/usr/bin/env python3
"""The program by which muster asks Ray's Jobs API, with a dashboard that the test plays."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "muster/launch/engines/ray"
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))

import ray_client  # noqa: E402

UNSET = {name: "" for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_JOB_HEADERS")}


class PlayedDashboard(http.server.BaseHTTPRequestHandler):
    """Answers as `server.answers` says, by method and path: (status, text). Others are 404."""

    def do_GET(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None, self.headers.get("Authorization")))
        status, text = self.server.answers.get((self.command, self.path), (404, "Job x does not exist"))
        self.send_response(status)
        if status in (301, 302, 303, 307, 308):
            self.send_header("Location", text)
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_GET

    def log_message(self, *_):
        pass


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), PlayedDashboard)
        self.server.asked = []
        self.server.answers = {("GET", "/api/version"): (200, json.dumps({"ray_version": "2.60.0"}))}
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.set_environment({"no_proxy": "*", "HOME": self.folder.name, **UNSET})

    def set_environment(self, values):
        changed = mock.patch.dict(os.environ, values)
        changed.start()
        self.addCleanup(changed.stop)

    def answers(self, method, path, status, text):
        self.server.answers[method, path] = (status, text if isinstance(text, str) else json.dumps(text))

    def job(self, name, status="RUNNING", message="", folder=""):
        return {"submission_id": name, "status": status, "message": message, "metadata": {"muster_folder": folder}}

    def script(self):
        path = pathlib.Path(self.folder.name, "job.sh")
        asked = {"experiment": "1.2", "project": "toy", "folder": self.folder.name}
        path.write_text(f"#!/bin/sh\n#RAY {json.dumps(asked)}\necho \"$1 $2\"\n")
        return str(path)

    def failure(self, *words):
        with self.assertRaises(ray_client.Failure) as raised:
            ray_client.answer(list(words))
        return raised.exception.kind, raised.exception.text

    def test_the_version_is_the_clusters(self):
        self.assertEqual(ray_client.answer(["version", self.address + "/"]), {"version": "2.60.0"})
        self.answers("GET", "/api/version", 200, {"ray_version": "2.8.1"})
        for command in (["version", self.address], ["submit", self.address, self.script()]):
            kind, text = self.failure(*command)
            self.assertEqual((kind, text), ("refused", f"{self.address} is Ray 2.8.1; accepted: Ray 2.9 or newer"))
        self.assertNotIn("/api/jobs/", [asked[1] for asked in self.server.asked])

    def test_a_job_is_submitted_under_an_id_of_its_own(self):
        self.answers("POST", "/api/jobs/", 200, {"job_id": "x", "submission_id": "x"})
        job = ray_client.answer(["submit", self.address, self.script(), "a:b"])["id"]
        self.assertRegex(job, "^muster-1.2-[0-9a-f]{8}$")
        asked = self.server.asked[-1][2]
        self.assertEqual(asked["submission_id"], job)
        self.assertEqual(asked["metadata"]["muster_folder"], self.folder.name)
        ran = subprocess.run(["sh", "-c", asked["entrypoint"]], capture_output=True, text=True)
        self.assertEqual(ran.stdout, f"{job} a:b\n")

    def test_what_ray_refuses_is_its_own_last_line(self):
        self.answers("POST", "/api/jobs/", 500, "Traceback:\n  a line\nValueError: no agent\n")
        self.assertEqual(self.failure("submit", self.address, self.script()), ("failed", "status code 500: ValueError: no agent"))

    def test_few_jobs_are_asked_for_one_by_one_and_many_at_once(self):
        ended = "failed:\nlast\nRunning entrypoint for job x: sh\n"
        self.answers("GET", "/api/jobs/a", 200, self.job("a", "FAILED", ended))
        self.assertEqual(ray_client.answer(["look", self.address, "a", "gone"]),
                         {"jobs": {"a": {"status": "FAILED", "message": "failed:\nlast", "exit_code": None}}})
        self.answers("GET", "/api/jobs/a", 200, {**self.job("a", "FAILED"), "driver_exit_code": -9})
        self.assertEqual(ray_client.answer(["look", self.address, "a"])["jobs"]["a"]["exit_code"], -9)
        self.answers("GET", "/api/jobs/", 200, [self.job("a"), self.job("other"), {"submission_id": None, "status": "RUNNING"}])
        self.assertEqual(list(ray_client.answer(["look", self.address, *"abcde"])["jobs"]), ["a"])

    def test_the_end_of_a_job_that_ray_does_not_know_is_none(self):
        self.answers("POST", "/api/jobs/a/stop", 200, {"stopped": True})
        for job in ("a", "gone"):
            self.assertEqual(ray_client.answer(["stop", self.address, job]), {"stopped": True})

    def test_a_job_is_freed_by_a_file_in_its_folder(self):
        self.answers("GET", "/api/jobs/a", 200, self.job("a", folder=self.folder.name))
        self.assertEqual(ray_client.answer(["free", self.address, "a"]), {"freed": True})
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "job_free.a")))
        self.assertEqual(self.failure("free", self.address, "gone")[0], "failed")

    def test_who_may_not_ask_is_told_so(self):
        for status, said in ((401, "Unauthorized: Missing authentication token"), (403, "Forbidden: Invalid token")):
            for command, path in ((["version"], ("GET", "/api/version")), (["look", "a"], ("GET", "/api/jobs/a")),
                                  (["stop", "a"], ("POST", "/api/jobs/a/stop"))):
                self.answers(*path, status, said)
                words = [command[0], self.address, *command[1:]]
                self.assertEqual(self.failure(*words), ("refused", f"status code {status}: {said}"))

    def test_rays_token_is_sent_where_its_settings_say_so(self):
        def sent(**values):
            self.set_environment({**UNSET, **values})
            ray_client.answer(["version", self.address])
            return self.server.asked[-1][3]

        pathlib.Path(self.folder.name, ".ray").mkdir()
        pathlib.Path(self.folder.name, ".ray/auth_token").write_text("of the file\n")
        self.assertIsNone(sent(RAY_AUTH_TOKEN="abc"))
        self.assertEqual(sent(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="abc"), "Bearer abc")
        self.assertEqual(sent(RAY_AUTH_MODE="token"), "Bearer of the file")
        self.assertEqual(sent(RAY_JOB_HEADERS='{"Authorization": "Basic x"}'), "Basic x")
        self.set_environment({**UNSET, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/nonexistent"})
        kind, text = self.failure("version", self.address)
        self.assertEqual(kind, "refused")
        self.assertIn("/nonexistent", text)

    def test_what_is_no_dashboard_is_said(self):
        self.answers("GET", "/api/version", 200, "<html>Welcome</html>")
        self.assertEqual(self.failure("version", self.address)[0], "unreachable")
        self.answers("GET", "/api/version", 404, "")
        kind, text = self.failure("version", self.address)
        self.assertEqual(kind, "unreachable")
        self.assertIn("isn't a dashboard of Ray", text)
        self.assertEqual(self.failure("version", "http://127.0.0.1:1"), ("unreachable", "[Errno 111] Connection refused"))
        self.assertEqual(self.failure("version", "http://no host")[0], "unreachable")
        self.assertEqual(self.failure("submit", "http://127.0.0.1:1", self.script())[0], "unreachable")

    def test_a_redirect_is_said_and_not_followed(self):
        # As that of a proxy from http to https: a job would seem to be submitted, and the token would go elsewhere.
        self.answers("GET", "/elsewhere", 200, [])
        for status in (301, 302, 303, 307, 308):
            with self.subTest(status=status):
                self.answers("POST", "/api/jobs/", status, f"{self.address}/elsewhere")
                kind, text = self.failure("submit", self.address, self.script())
                self.assertNotIn(("GET", "/elsewhere", None, None), self.server.asked)
                said = f"it redirects to {self.address}/elsewhere: give the address that answers itself"
                self.assertEqual((kind, text), ("unreachable", said), "nothing was submitted")
        self.answers("GET", "/api/version", 301, f"{self.address}/elsewhere")
        self.assertEqual(self.failure("version", self.address)[0], "unreachable")

    def test_an_answer_without_end_is_not_taken(self):
        with mock.patch.object(ray_client, "MOST_ANSWER", 1000):
            self.answers("GET", "/api/jobs/a", 200, self.job("a", message="x" * 1000))
            self.assertIn("answers more than", self.failure("look", self.address, "a")[1])

    def test_a_long_line_of_a_job_is_cut(self):
        self.answers("GET", "/api/jobs/a", 200, self.job("a", message="x" * 20000 + "last"))
        message = ray_client.answer(["look", self.address, "a"])["jobs"]["a"]["message"]
        self.assertEqual((len(message), message[-4:]), (ray_client.MOST_MESSAGE, "last"))

    def test_a_dashboard_that_is_lost_while_it_is_told_of_a_job_may_have_taken_it(self):
        with mock.patch.object(ray_client.Dashboard, "submit", side_effect=ray_client.Failure("unreachable", "reset")):
            kind, text = self.failure("submit", self.address, self.script())
        self.assertEqual(kind, "failed")
        self.assertRegex(text, "^it may have taken job muster-1.2-[0-9a-f]{8}, and hasn't answered: reset$")

    def test_versions(self):
        self.assertEqual(ray_client.version_of("2.60.0rc1"), (2, 60))
        with self.assertRaises(ray_client.Failure):
            ray_client.check_version("2.8.1", "the cluster")

    def test_a_node_that_does_not_see_the_folder_says_so(self):
        with tempfile.TemporaryDirectory(prefix="it's ") as folder:
            command = ray_client.entrypoint({"folder": folder}, "job-1", "")
            blind = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
            self.assertEqual(blind.returncode, 2)
            self.assertIn(f"doesn't see {folder}, the experiment's folder", blind.stderr)
            (pathlib.Path(folder) / "job.sh").write_text("echo \"$1 $2\"\n")
            self.assertEqual(subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout, "job-1 \n")

    def test_only_other_addresses_need_ray(self):
        said = subprocess.run([sys.executable, "-I", "-S", str(FOLDER / "ray_client.py"), "version", "auto"],
                              capture_output=True, text=True)
        self.assertEqual(said.returncode, 1)
        self.assertEqual(json.loads(said.stdout)["error"], "no_ray")
        self.assertFalse(ray_client.Dashboard.takes("https://h1:8265"))
        self.set_environment({"RAY_AUTH_MODE": "k8s"})
        self.assertFalse(ray_client.Dashboard.takes("http://h1:8265"))

    def test_an_address_of_a_scheme_that_ray_does_not_know_is_wrong(self):
        said = "Module: htp does not exist.\nThis module was parsed from address: htp://x"
        jobs = types.SimpleNamespace(JobSubmissionClient=mock.Mock(side_effect=RuntimeError(said)))
        ray = types.SimpleNamespace(__version__="2.60.0", job_submission=jobs)
        with mock.patch.dict(sys.modules, {"ray": ray, "ray.job_submission": jobs}):
            self.assertEqual(self.failure("version", "htp://x"), ("unreachable", said.replace("\n", " ")))


if __name__ == "__main__":
    unittest.main()
