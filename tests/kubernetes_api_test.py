#!/usr/bin/env python3
"""muster on a real API server of Kubernetes, the one that tools/build_kube_api.sh has built (Debian's 1.20): what it says
to the pods, Secrets and Services of `muster train --on kubernetes`, and to the files of `muster manifest`. RealApiTest has
no scheduler, no kubelet and no controller, so pods stay Pending; for RealPodsTest the stand-in's are there
(docs/development.md), and pods run. The server has no idea of fields that came later.
Needs the muster and the digits of the release build, kubectl and etcd; RealPodsTest also root. It builds for ten minutes the
first time, so only a long test run includes it."""

import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/tools"))
import kube_standin_test as standin  # noqa: E402  pylint: disable=wrong-import-position

MUSTER = ROOT / "build/release/bin/muster"
DIGITS = [ROOT / "build/release/bin/digits", f"--csv={ROOT}/examples/data/digits.csv", "--steps=60"]
PATIENCE_S = 120  # turns a hang into a failed test
FILE = """project: on-a-real-api
on: kubernetes
kubernetes: {{image: "muster:1", nodes: 2{more}}}
train:
  framework: muster
  muster: {{distributed: {{ps: 1, worker: {{count: 2, resources: {{cpus: 1, mem: 1GB}}}}}}}}
  run: /bin/true
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def await_true(what, function):
    give_up = time.monotonic() + PATIENCE_S
    while not (answer := function()):
        if time.monotonic() > give_up:
            raise AssertionError(f"{what}: not after {PATIENCE_S} s")
    return answer


def rule(resource, *verbs):
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs}


# The rights that docs/kubernetes.md names for every job.
RIGHTS = [("pods", "create"), ("pods", "delete"), ("pods", "get"), ("pods", "list"), ("pods/exec", "create"),
          ("services", "create"), ("services", "delete"), ("secrets", "create"), ("secrets", "delete")]


def roles_of(rights):
    return {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "trains"},
         "rules": [rule(*right) for right in rights]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "trains"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "trains"},
         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "trainer"}]}]}


def built_server():
    """Returns the path of the server, which is built if it isn't there."""
    built = subprocess.run([ROOT / "tools/build_kube_api.sh"], stdout=subprocess.PIPE, text=True, check=True)
    return built.stdout.strip()


class ApiServer:
    """etcd and kube-apiserver on loopback, in a folder that has tokens.csv, the server's users."""

    def __init__(self, program, folder, ports, more, inside=list):
        """`ports`: of the API, of etcd, and of etcd for its like. `more`: flags. `inside`: makes words into those that run them
        in the network of the server."""
        self.folder, self.inside = folder, inside
        self.port, etcd, peers = ports
        store = f"http://127.0.0.1:{etcd}"
        subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], check=True, capture_output=True)
        self.processes = []
        self.start("etcd", ["--data-dir", str(folder / "etcd"), "--listen-client-urls", store, "--advertise-client-urls", store,
                            "--listen-peer-urls", f"http://127.0.0.1:{peers}", "--unsafe-no-fsync"])
        # Nobody is here who would make accounts, or take the taint of a new node away.
        self.start(program, [
            f"--etcd-servers={store}", "--bind-address=127.0.0.1", f"--secure-port={self.port}", "--insecure-port=0",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=RBAC", "--service-account-issuer=https://local",
            f"--service-account-signing-key-file={folder}/sa.key", f"--service-account-key-file={folder}/sa.key",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--service-cluster-ip-range=10.96.0.0/16", *more])
        await_true("the API server is ready", self.is_ready)

    def start(self, program, arguments):
        with open(self.folder / f"{pathlib.Path(program).name}.log", "wb") as log:
            self.processes.append(subprocess.Popen(self.inside([program, *arguments]), stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def is_ready(self):
        for process in self.processes:
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError(f"{process.args} has ended with {process.returncode}; its log is in {self.folder}")
        # The server's certificate may be its own, made just now.
        token = (self.folder / "tokens.csv").read_text().split(",")[0]
        asked = subprocess.run(self.inside(["kubectl", f"--server=https://127.0.0.1:{self.port}", "--insecure-skip-tls-verify",
                                            f"--token={token}", "get", "--raw=/readyz"]), env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        return asked.stdout == "ok"

    def kubeconfig(self, user):
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": user, "user": {"token": f"{user}-token"}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}]}))
        return path

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class RealApiTest(unittest.TestCase):
    """Users: admin, who may all, guest, who may nothing, and trainer."""

    @classmethod
    def setUpClass(cls):
        program = built_server()
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="muster_kube_api_"))
        cls.addClassCleanup(shutil.rmtree, cls.base)
        (cls.base / "tokens.csv").write_text("admin-token,admin,1,system:masters\nguest-token,guest,2\ntrainer-token,trainer,3\n")
        cls.server = ApiServer(program, cls.base, free_ports(3), [f"--cert-dir={cls.base}/certs"])
        cls.addClassCleanup(cls.server.end)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=self.base, ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.use("admin")

    def tearDown(self):
        # The collector of a run is a process of its own, which still asks kubectl when `kill` has returned.
        far = self.folder / "home/far"
        await_true("nothing is far any more", lambda: not far.is_dir() or not any(far.iterdir()))

    def use(self, user):
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "MUSTER_HOME": str(self.folder / "home"),
                            "KUBECONFIG": str(self.server.kubeconfig(user))}

    def run_words(self, words, text=None):
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=self.environment, input=text, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)

    def muster(self, *words):
        return self.run_words([MUSTER, *words])

    def kubectl(self, *words, text=None):
        done = self.run_words(["kubectl", *words], text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def write(self, more=""):
        (self.folder / "muster.yml").write_text(FILE.format(more=more))

    def names(self, kinds="pods"):
        return self.kubectl("get", kinds, "--selector=muster/job", "--output=name").split()

    def test_it_takes_what_would_be_made(self):
        self.write()
        done = self.muster("train", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("kind: Pod", done.stdout)
        self.assertEqual(self.names("pods,services,secrets"), [])

    def test_pods_that_nobody_schedules_are_waited_for_and_kill_takes_them_away(self):
        self.write()
        train = self.muster("train", "--detach")
        self.assertEqual(train.returncode, 0, train.stderr)
        self.assertEqual(len(await_true("three pods", lambda: len(self.names()) == 3 and self.names())), 3)
        await_true("status says what is waited for", lambda: "0 of 3 pods run" in self.muster("status", "1").stdout)
        secrets = json.loads(self.kubectl("get", "secrets", "--selector=muster/job", "--output=json"))["items"]
        self.assertEqual(len(secrets), 1)
        pods = self.kubectl("get", "pods", "--output=json")
        for value in secrets[0]["data"].values():
            self.assertNotIn(value, pods)
            self.assertNotIn(base64.b64decode(value).decode(errors="replace"), pods)
        killed = self.muster("kill", "1")
        self.assertEqual(killed.returncode, 0, killed.stderr)
        await_true("no pod is left", lambda: self.names() == [])
        self.assertIn("KILLED", self.muster("status", "1").stdout)

    def test_its_refusal_is_said_and_nothing_is_made(self):
        self.write(', pod_template: {spec: {containers: [{name: muster, imagePullPolicy: Sometimes}]}}')
        done = self.muster("train")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("imagePullPolicy", done.stderr)
        self.assertEqual(self.names("pods,services,secrets"), [])

    def test_a_user_without_rights_is_told_which_are_missing(self):
        self.write()
        self.use("guest")
        done = self.muster("train")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("you may not create pods", done.stderr)

    def allow(self, rights):
        """Gives the trainer these rights, and no others."""
        self.use("admin")
        self.kubectl("apply", "--filename=-", text=json.dumps(roles_of(rights)))

    def test_each_documented_right_is_missed_before_anything_is_made(self):
        self.write()
        for missing in RIGHTS:
            with self.subTest(missing=missing):
                self.allow([right for right in RIGHTS if right != missing])
                self.use("trainer")
                self.await_right(missing, "no")
                done = self.muster("train", "--detach")
                self.use("admin")
                self.assertEqual(self.names("pods,services,secrets"), [])
                self.assertEqual(done.returncode, 2, done.stderr)
                resource, verb = missing
                # Those that only the dry run asks for are said by the API.
                self.assertRegex(done.stderr, f"you may not {verb} {resource} in namespace|cannot {verb} resource \"{resource}\"")

    def await_right(self, right, answer):
        """The server takes a moment to see a role that has changed."""
        resource, verb = right
        words = ["kubectl", "auth", "can-i", verb, resource.split("/", maxsplit=1)[0],
                 *(f"--subresource={part}" for part in resource.split("/")[1:])]
        await_true(f"{right}: {answer}", lambda: self.run_words(words).stdout.strip() == answer)

    def test_the_documented_rights_are_enough_to_make_a_job_and_to_take_it_away(self):
        self.allow(RIGHTS)
        self.write()
        self.use("trainer")
        for right in RIGHTS:
            self.await_right(right, "yes")
        train = self.muster("train", "--detach")
        self.assertEqual(train.returncode, 0, train.stderr)
        killed = self.muster("kill", "1")
        self.assertEqual(killed.returncode, 0, killed.stderr)
        self.use("admin")
        await_true("nothing is left", lambda: self.names("pods,services,secrets") == [])

    def test_a_namespace_that_is_not_there_is_named(self):
        self.write(", namespace: nowhere")
        done = self.muster("train")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there is no namespace 'nowhere'", done.stderr)

    def test_it_takes_the_plain_form_of_a_manifest(self):
        # Fields of later versions, which the first line names, are dropped; what is left must be right.
        made = self.muster("manifest", "--form", "job", "--image", "muster:1", "--ps", "1", "--workers", "2",
                           "--resources", "cpus=1,mem=1GB", "--", "/bin/true")
        self.assertEqual(made.returncode, 0, made.stderr)
        said = self.kubectl("create", "--dry-run=server", "--validate=false", "--output=name", "--filename=-", text=made.stdout)
        self.assertEqual(len(said.split()), 4, said)


class RealCluster(standin.Cluster):
    """A real API server, for which the stand-in's scheduler, controllers and kubelets do the rest."""

    apply_words = ("apply", "--validate=false", "-f", "-")  # it has not heard of all fields
    knows_indexed_jobs = False

    def __init__(self):
        self._faults, self._program = {}, built_server()
        super().__init__()

    def start_api(self):
        folder = pathlib.Path(self.folder)
        self.seen = folder / "seen"  # what pods see of it
        self.seen.mkdir()
        certificate = [f"--{flag}={folder}/server.{end}" for flag, end in (
            ("tls-cert-file", "crt"), ("tls-private-key-file", "key"), ("kubelet-client-certificate", "crt"), ("kubelet-client-key", "key"))]
        self._server = ApiServer(self._program, folder, (6443, 2379, 2380),
                                 [*certificate, "--kubelet-preferred-address-types=InternalIP"], self.inside)
        self._control = subprocess.Popen(self.inside(["python3", standin.STANDIN, "control", self.folder]), stdout=subprocess.PIPE)
        standin.await_line(self._control, b"control: ready\n")

    def kill_api(self):
        self._control.kill()
        self._control.wait()
        self._control.stdout.close()
        self._server.end()

    def words_of_node(self, number):
        # Endpoints may not be on loopback.
        return ["--real", "--pod-interface", "lo", "--pod-addresses", f"10.78.{number}.1-10.78.{number}.250", "--visible", ROOT,
                "--visible", self.seen]

    def script(self, path, **value):
        assert path == "faults", path
        self._faults.update(value)
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "standin", "namespace": "kube-system"},
                    "data": {"faults": json.dumps(self._faults)}})


def running(words):
    """Returns how many processes of this machine have these words, in whatever namespace."""
    return len(subprocess.run(["pgrep", "-fx", words], stdout=subprocess.PIPE, check=False).stdout.split())


@unittest.skipIf(standin.why_not() and not os.environ.get("CI"), standin.why_not())
class RealPodsTest(standin.PodTests, unittest.TestCase):
    new_cluster = RealCluster

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.cluster.folder))

    def muster(self, *words):
        """Returns what is printed, without what is said beside it."""
        ended = subprocess.run(self.cluster.inside([MUSTER, *words]), cwd=self.folder, text=True, capture_output=True,
                               timeout=PATIENCE_S, check=False, env={
                                   "PATH": os.environ["PATH"], "HOME": str(self.folder), "MUSTER_HOME": str(self.folder / "home"),
                                   "KUBECONFIG": os.path.join(self.cluster.folder, "kubeconfig")})
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def write(self, run):
        (self.folder / "muster.yml").write_text(
            "project: on-a-real-api\non: kubernetes\n"
            f"kubernetes: {{image: \"muster:1\", muster: {MUSTER}, nodes: 2}}\n"
            "train:\n  framework: muster\n"
            "  muster: {distributed: {ps: 1, worker: {count: 2, resources: {cpus: 1, mem: 512MB}}}}\n"
            f"  run: '{run}'\n")

    def await_nothing_left(self):
        await_true("nothing is left", lambda: not self.kubectl("get", "pods,services,secrets", "--selector=muster/job", "-o", "name"))
        far = self.folder / "home/far"  # the collector of a run still asks kubectl when `kill` has returned
        await_true("nothing is far any more", lambda: not far.is_dir() or not any(far.iterdir()))

    def test_the_plain_form_of_a_manifest_trains_to_the_end(self):
        made = self.muster("manifest", "--form", "job", "--image", "muster:1", "--name", "digits", "--workers", "2", "--env",
                           "MUSTER_LINGER=3", "--", *DIGITS, f"--report={self.cluster.seen}/report.json")
        self.kubectl(*self.cluster.apply_words, text=made)
        for role in ("worker", "ps"):
            await_true(role + " is complete", lambda name=f"digits-{role}": any(
                one["type"] == "Complete" for one in self.get("job", name)["status"].get("conditions", [])))
        workers = self.get("pods", "--selector=app.kubernetes.io/component=worker")["items"]
        self.assertEqual([one["status"]["phase"] for one in workers], ["Succeeded"] * 2)
        self.assertEqual(len({one["status"]["podIP"] for one in workers}), 2)
        self.assertGreater(json.loads((self.cluster.seen / "report.json").read_text())["accuracy"], 0.7)

    def test_an_experiment_trains_in_pods_and_leaves_nothing(self):
        self.write(" ".join(map(str, DIGITS)) + " --model_dir=$OUTPUT_DIR")
        self.muster("train")
        self.assertIn("FINISHED", self.muster("status", "1"))
        self.assertIn("Test accuracy", self.muster("logs", "1"))
        self.await_nothing_left()

    def test_kill_ends_what_runs_in_pods_and_leaves_nothing(self):
        task = f"tail -f -s {86400 + os.getpid()} /dev/null"
        self.write(f"echo begun; exec {task}")
        self.muster("train", "--detach")
        await_true("both workers print", lambda: self.muster("logs", "1").count("begun") == 2)
        self.assertEqual(running(task), 2)
        self.muster("kill", "1")
        self.assertIn("KILLED", self.muster("status", "1"))
        self.await_nothing_left()
        await_true("no task is left", lambda: running(task) == 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
