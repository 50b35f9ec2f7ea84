#!/usr/bin/env python3
"""The stand-in for a Kubernetes cluster, as the real kubectl sees it: two nodes on one loopback network, each fault that a
script can cause once, and an API server that is killed. Needs root."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/process/testing/kube"
STANDIN = FOLDER / "standin.py"
HANG_S = 30
sys.dont_write_bytecode = True


def why_not():
    if os.geteuid() != 0:
        return "pods need root"
    missing = [name for name in ("kubectl", "openssl", "unshare", "nsenter", "ip") if shutil.which(name) is None]
    return f"not installed: {missing}; tools/setup.sh --for test does" if missing else ""


def pod(name, line, **more):
    """A pod of one container that runs a line of shell. `more`: keys of the spec, or of the container (`c_…`), or labels."""
    container = {"name": "main", "image": "muster:1", "command": ["sh", "-c", line]}
    container.update({key[2:]: value for key, value in more.items() if key.startswith("c_")})
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    spec.update({key: value for key, value in more.items() if not key.startswith("c_") and key != "labels"})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": more.get("labels", {})}, "spec": spec}


FOR_EVER = "exec tail -f /dev/null"


class Cluster:
    """One for all tests of a class."""

    apply_words = ("apply", "-f", "-")
    knows_indexed_jobs = True

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="muster_kube_")
        self._holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up; echo up; exec sleep infinity"],
                                        stdout=subprocess.PIPE)
        self._holder.stdout.readline()
        self.run("python3", STANDIN, "init", self.folder, "--address", "127.0.0.1", "--node-grace", "1.5", "--node-eviction", "0")
        self.start_api()
        self._nodes = {}
        for number, more in ((1, ["--cpus", "3", "--labels", "kind=good"]), (2, ["--cpus", "2", "--gpus", "1"])):
            self.start_node(f"n{number}", f"127.0.0.1{number}", more + self.words_of_node(number))
        for name in self._nodes:
            await_line(self._nodes[name], b"kubelet: ready\n")

    def words_of_node(self, _number):
        """More words of a kubelet."""
        return []

    def inside(self, words):
        """Returns words that run `words` in the network of the cluster."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--", *map(str, words)]

    def start_api(self):
        self._api = subprocess.Popen(self.inside(["python3", STANDIN, "api", self.folder]), stdout=subprocess.PIPE)
        await_line(self._api, b"api: ready\n")

    def kill_api(self):
        self._api.kill()
        self._api.wait()
        self._api.stdout.close()

    def start_node(self, name, address, more):
        root = os.path.join(self.folder, name)
        os.makedirs(root, exist_ok=True)
        self._nodes[name] = subprocess.Popen(self.inside(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-c",
             f'mount -t tmpfs tmpfs "{root}"; exec "$@"', "sh", "python3", STANDIN, "kubelet", self.folder, "--name", name,
             "--address", address, "--root", root, *more]), stdout=subprocess.PIPE)

    def kill_node(self, name):
        node = self._nodes.pop(name)
        node.kill()
        node.wait()
        node.stdout.close()

    def run(self, *words, text=None, fails=False):
        """Returns what was printed, both streams together."""
        environment = dict(os.environ, KUBECONFIG=os.path.join(self.folder, "kubeconfig"), HOME=self.folder)
        ended = subprocess.run(self.inside(words), input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment, timeout=HANG_S * 2, check=False)
        assert (ended.returncode != 0) == fails, f"{words} ended with {ended.returncode}: {ended.stdout}"
        return ended.stdout

    def start(self, *words):
        return subprocess.Popen(self.inside(["env", "KUBECONFIG=" + os.path.join(self.folder, "kubeconfig"), *words]),
                                stdout=subprocess.PIPE)

    def kubectl(self, *words, **more):
        return self.run("kubectl", *words, **more)

    def apply(self, *values, fails=False):
        return self.kubectl(*self.apply_words, text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(values)}),
                            fails=fails)

    def get(self, *what):
        return json.loads(self.kubectl("get", *what, "-o", "json"))

    def script(self, path, **value):
        """As `standin.py script` does, but faster."""
        return json.loads(self.kubectl("create", "--raw", "/standin/" + path, "-f", "-", text=json.dumps(value)))

    def end(self):
        for name in list(self._nodes):
            self.kill_node(name)
        self.kill_api()
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()
        shutil.rmtree(self.folder)


def await_line(process, line):
    while (said := process.stdout.readline()) != line:
        assert said, f"{process.args} ended before it said {line}"


class PodTests:
    """What kubelets and controllers do with any API server; kubernetes_api_test.py has a real one. A class of tests states its
    `new_cluster`."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        assert not why_not(), why_not()
        cls.cluster = cls.new_cluster()
        cls.addClassCleanup(cls.cluster.end)
        cls.kubectl, cls.get, cls.apply, cls.script = (cls.cluster.kubectl, cls.cluster.get, cls.cluster.apply, cls.cluster.script)

    def tearDown(self):
        self.kubectl("delete", "jobs,pods,services,secrets,resourcequotas,persistentvolumeclaims", "--all", "--grace-period=0",
                     "--force", "--wait=false")
        self.script("faults", images=["*"], forbid=[], unschedulable={}, dns_delay_s=0, apis=[])

    def await_pod(self, name, is_so):
        """Waits until the pod is as wanted, and returns it."""
        seen = {}
        give_up = time.monotonic() + HANG_S
        while time.monotonic() < give_up:
            seen = self.get("pod", name)
            with contextlib.suppress(KeyError, IndexError):
                if is_so(seen):
                    return seen
        self.fail(f"{name} is never as expected: {json.dumps(seen.get('status'), indent=1)}")

    def await_gone(self, name, kind="pod"):
        give_up = time.monotonic() + HANG_S
        while self.kubectl("get", kind, name, "--ignore-not-found", "-o", "name"):
            self.assertLess(time.monotonic(), give_up, f"{name} stays")

    def await_phase(self, name, phase):
        return self.await_pod(name, lambda one: one["status"]["phase"] == phase)

    def test_exec_carries_input_outputs_and_the_exit_code(self):
        self.apply(pod("one", FOR_EVER))
        self.await_phase("one", "Running")
        size = 3_000_000
        self.assertEqual(self.kubectl("exec", "-i", "one", "--", "sh", "-c", "wc -c", text="x" * size), f"{size}\n")
        said = self.kubectl("exec", "one", "--", "sh", "-c", "echo out; echo wrong >&2; exit 7", fails=True)
        self.assertIn("out\n", said)
        self.assertIn("wrong\n", said)
        self.assertIn("command terminated with exit code 7", said)

    def test_what_exec_has_started_outlives_the_client_but_not_the_pod(self):
        self.apply(pod("one", "trap 'exit 0' TERM; while :; do sleep 0.05; done"))
        self.await_phase("one", "Running")
        client = self.cluster.start("kubectl", "exec", "one", "--", "sh", "-c", "echo begun; exec tail -f /dev/null")
        await_line(client, b"begun\n")
        client.kill()
        client.communicate()
        self.assertIn("tail -f /dev/null", self.kubectl("exec", "one", "--", "ps", "-A", "-o", "args"))
        self.kubectl("delete", "pod", "one", "--timeout=20s")

    def test_logs_follow_until_the_end_and_are_cut(self):
        self.apply(pod("one", "echo first; until [ -e /tmp/go ]; do sleep 0.05; done; echo second; exit 3"))
        self.await_phase("one", "Running")
        said = []
        follower = threading.Thread(target=lambda: said.append(self.kubectl("logs", "-f", "one")))
        follower.start()
        self.kubectl("exec", "one", "--", "touch", "/tmp/go")
        follower.join(HANG_S)
        self.assertEqual(said, ["first\nsecond\n"])
        self.assertEqual(self.kubectl("logs", "one", "--tail=1", "--since=1h"), "second\n")
        seen = self.await_phase("one", "Failed")
        self.assertEqual(seen["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3)

    def test_a_deleted_pod_gets_sigterm_then_sigkill(self):
        self.apply(pod("gentle", "trap 'exit 0' TERM; while :; do sleep 0.05; done", terminationGracePeriodSeconds=60),
                   pod("stubborn", FOR_EVER))  # a first process without a handler doesn't hear SIGTERM
        for name in ("gentle", "stubborn"):
            self.await_phase(name, "Running")
        self.kubectl("delete", "pod", "gentle", "stubborn", "--timeout=20s")
        self.kubectl("get", "pod", "stubborn", fails=True)

    def test_an_evicted_pod_ends_gently(self):
        self.apply(pod("one", "trap 'echo told; exit 0' TERM; echo begun; while :; do sleep 0.05; done", terminationGracePeriodSeconds=60))
        self.await_phase("one", "Running")
        follower = self.cluster.start("kubectl", "logs", "-f", "one")
        await_line(follower, b"begun\n")
        self.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/one/eviction", "-f", "-", text=json.dumps(
            {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "one", "namespace": "default"}}))
        self.assertEqual(follower.communicate(timeout=HANG_S)[0], b"told\n")
        self.await_gone("one")

    def test_what_had_an_owner_goes_with_it(self):
        self.apply(pod("owner", FOR_EVER))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": self.get("pod", "owner")["metadata"]["uid"]}
        owned = pod("owned", FOR_EVER)
        owned["metadata"]["ownerReferences"] = [owner]
        self.apply(owned, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owned", "ownerReferences": [owner]}})
        self.await_phase("owned", "Running")
        self.get("secret", "owned")
        self.kubectl("delete", "pod", "owner")
        self.await_gone("owned")
        self.await_gone("owned", "secret")

    def test_a_container_is_started_again_where_the_policy_says_so(self):
        self.apply(pod("again", "echo run; exit 1", restartPolicy="OnFailure"))
        seen = self.await_pod("again", lambda one: one["status"]["containerStatuses"][0]["restartCount"] >= 2)
        self.assertEqual(seen["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"], 1)

    def test_the_scheduler_says_why_a_pod_waits(self):
        wanted = {"requests": {"cpu": 1, "nvidia.com/gpu": 2}, "limits": {"nvidia.com/gpu": 2}}
        self.apply(pod("big", "true", c_resources=wanted), pod("picky", "true", nodeSelector={"kind": "bad"}))
        self.script("faults", unschedulable={"named*": "0/2 nodes are available: 2 scripted."})
        self.apply(pod("named", "true"))
        for name, message in (("big", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."), ("named", "2 scripted."),
                              ("picky", "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity.")):
            seen = self.await_pod(name, lambda one: one["status"]["conditions"][0]["reason"] == "Unschedulable")
            self.assertIn(message, seen["status"]["conditions"][0]["message"])

    def test_an_image_that_is_missing_is_said_and_may_come(self):
        self.script("faults", images=["muster:*"])
        self.apply(pod("one", "true", c_image="other:1"))
        for reason in ("ErrImagePull", "ImagePullBackOff"):
            self.await_pod("one", lambda one, r=reason: one["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == r)
        self.assertIn("waiting to start", self.kubectl("logs", "one", fails=True))
        self.script("faults", images=["other:*"])
        self.await_phase("one", "Succeeded")

    def test_a_job_runs_its_indexes_and_counts_failures(self):
        def job(name, line, **spec):
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", line]}]}}
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": dict(spec, template=template)}

        self.apply(job("good", "echo $JOB_COMPLETION_INDEX", completions=2, parallelism=2, completionMode="Indexed"),
                   job("bad", "exit 42", backoffLimit=5, podFailurePolicy={"rules": [
                       {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}),
                   job("held", "true", suspend=True))
        self.kubectl("wait", "--for=condition=complete", "job/good", "--timeout=30s")
        self.kubectl("wait", "--for=condition=failed", "job/bad", "--timeout=30s")
        self.assertEqual(sorted(self.kubectl("logs", "--selector=job-name=good").split()), ["0", "1"])
        if self.cluster.knows_indexed_jobs:
            self.assertEqual(self.get("job", "good")["status"]["completedIndexes"], "0-1")
        self.assertEqual(self.get("job", "bad")["status"]["conditions"][0]["reason"], "PodFailurePolicy")
        self.assertEqual(self.get("job", "held")["status"].get("active", 0), 0)


@unittest.skipIf(why_not() and not os.environ.get("CI"), why_not())
class KubeStandInTest(PodTests, unittest.TestCase):
    new_cluster = Cluster

    # ---- what pods have ----

    def test_a_pod_runs_with_its_volumes_variables_and_names(self):
        line = ("cat /etc/made/key /data/sub/file; echo $NAME $IP $KEY $BOTH; getent hosts me.all >/dev/null && echo named; "
                "hostname; ls /tmp; head -c 9 /run/secrets/kubernetes.io/serviceaccount/token; df /dev/shm | tail -1 | tr -s ' ' | "
                "cut -d' ' -f2")
        self.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}, "stringData": {"key": "secret\n"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "some"}, "data": {"file": "configured\n"}},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "all"},
             "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "one"}, "ports": [{"port": 1}]}},
            pod("me", "until getent hosts me.all >/dev/null; do :; done; " + line, labels={"app": "one"}, hostname="me", subdomain="all",
                volumes=[{"name": "s", "secret": {"secretName": "made"}}, {"name": "m", "emptyDir": {"medium": "Memory",
                                                                                                    "sizeLimit": "1Mi"}},
                         {"name": "c", "configMap": {"name": "some"}}],
                c_volumeMounts=[{"name": "s", "mountPath": "/etc/made"}, {"name": "m", "mountPath": "/dev/shm"},
                                {"name": "c", "mountPath": "/data/sub"}],
                c_env=[{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                       {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                       {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "made", "key": "key"}}},
                       {"name": "BOTH", "value": "$(NAME)-$$"}]))
        seen = self.await_phase("me", "Succeeded")
        self.assertEqual(self.kubectl("logs", "me"),
                         f"secret\nconfigured\nme {seen['status']['podIP']} secret me-$\nnamed\nme\naccount.d1024\n")
        for left in ("/etc/made", "/data/sub"):
            self.assertFalse(os.path.exists(left), left)

    def test_a_list_comes_in_pages(self):
        self.apply(*({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{i}", "labels": {"is": "paged"}}} for i in range(5)))
        path, pages, after = "/api/v1/namespaces/default/configmaps?labelSelector=is%3dpaged&limit=2", [], ""
        while not pages or after:
            page = json.loads(self.kubectl("get", "--raw", path + "&continue=" + after))
            pages.append([one["metadata"]["name"] for one in page["items"]])
            after = page["metadata"].get("continue", "")
        self.assertEqual(pages, [["m0", "m1"], ["m2", "m3"], ["m4"]])
        self.assertEqual(len(self.get("configmaps", "-l", "is=paged", "--chunk-size=2")["items"]), 5)
        self.kubectl("delete", "configmaps", "-l", "is=paged")

    # ---- faults ----

    def test_a_quota_refuses(self):
        self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
        self.apply(pod("one", FOR_EVER))
        said = self.apply(pod("two", "true"), fails=True)
        self.assertIn('pods "two" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1', said)
        self.assertIn("exceeded quota", self.kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(pod("two", "true")),
                                                     fails=True))

    def test_what_is_forbidden_is_said(self):
        self.script("faults", forbid=[{"verb": "create", "resource": "pods*"}])
        self.assertIn("no", self.kubectl("auth", "can-i", "create", "pods", fails=True))
        self.assertIn('cannot create resource "pods" in API group "" in the namespace "default"',
                      self.apply(pod("one", "true"), fails=True))
        self.assertEqual(self.kubectl("auth", "can-i", "delete", "pods"), "yes\n")

    def test_a_service_account_may_what_its_role_says(self):
        group = "rbac.authorization.k8s.io"
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
                   {"apiVersion": group + "/v1", "kind": "Role", "metadata": {"name": "read"},
                    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
                   {"apiVersion": group + "/v1", "kind": "RoleBinding", "metadata": {"name": "read"},
                    "roleRef": {"apiGroup": group, "kind": "Role", "name": "read"},
                    "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]})
        config = self.cluster.run("python3", STANDIN, "account", self.cluster.folder, "default", "reader").strip()
        self.assertEqual(self.kubectl("auth", "can-i", "list", "pods", "--kubeconfig", config), "yes\n")
        self.assertIn("system:serviceaccount:default:reader", self.kubectl("get", "secrets", "--kubeconfig", config, fails=True))
        self.assertIn("Unauthorized", self.kubectl("get", "pods", "--token=none", fails=True))

    def test_pods_are_struck(self):
        self.apply(*(pod(name, FOR_EVER) for name in ("evicted", "starved", "killed", "displaced")))
        for name in ("evicted", "starved", "killed", "displaced"):
            self.await_phase(name, "Running")
        said = self.cluster.run("python3", STANDIN, "script", self.cluster.folder, "pods/evict", '{"pod": "evict*"}')
        self.assertEqual(json.loads(said), {"pods": ["evicted"]})
        self.script("pods/oom", pod="starved")
        self.script("pods/kill", pod="killed")
        self.script("pods/preempt", pod="displaced")
        self.assertEqual(self.await_phase("evicted", "Failed")["status"]["reason"], "Evicted")
        for name, reason in (("starved", "OOMKilled"), ("killed", "Error")):
            ended = self.await_phase(name, "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
            self.assertEqual((ended["exitCode"], ended["reason"]), (137, reason))
        self.await_gone("displaced")

    def test_names_come_late(self):
        self.script("faults", dns_delay_s=1)
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "all"},
                    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "late"}, "ports": [{"port": 1}]}},
                   pod("late", "getent hosts late.all.default.svc || echo not yet; until getent hosts late.all.default.svc; do :; done",
                       labels={"app": "late"}, hostname="late", subdomain="all", terminationGracePeriodSeconds=0))
        self.await_phase("late", "Succeeded")
        self.assertIn("not yet\n127.0.0.1", self.kubectl("logs", "late"))

    def test_state_and_pods_outlive_the_api_server(self):
        self.apply(pod("one", "echo before; " + FOR_EVER), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kept"}})
        before = self.await_phase("one", "Running")
        self.cluster.kill_api()
        self.kubectl("get", "pods", fails=True)
        self.cluster.start_api()
        after = self.get("pod", "one")
        self.assertEqual(after["metadata"]["uid"], before["metadata"]["uid"])
        self.assertEqual(after["status"]["containerStatuses"], before["status"]["containerStatuses"])
        self.assertEqual(self.kubectl("logs", "one"), "before\n")
        self.assertEqual(self.kubectl("get", "secret", "kept", "-o", "jsonpath={.metadata.name}"), "kept")
        self.kubectl("delete", "pod", "one")

    # ---- pods that start together ----

    def apply_gang(self, api, names, **more):
        """Pods of 1500m each of a group of three; the nodes have 3 and 2 CPUs, and have room for all of them."""
        wanted = {"c_resources": {"requests": {"cpu": "1500m"}}}
        pods = [pod(name, "true", **wanted, **more) for name in names]
        for one in pods:
            if api == "coscheduling":
                one["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "g"
            elif api == "volcano":
                one["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
            else:
                one["metadata"]["labels"].update({"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "g"})
                one["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "3"}
        self.apply(*pods)

    def await_reason(self, name, reason, message):
        seen = self.await_pod(name, lambda one: message in one["status"]["conditions"][0].get("message", ""))
        self.assertEqual(seen["status"]["conditions"][0]["reason"], reason)
        self.assertNotIn("nodeName", seen["spec"])

    def test_a_group_is_bound_once_all_of_it_has_room(self):
        for api, version, scheduler, too_few, held in (
                ("coscheduling", "scheduling.x-k8s.io/v1alpha1", "scheduler-plugins-scheduler", "cannot find enough sibling pods, "
                 "current pods number: 2, minMember of group: 3", "optimistic rejection in PostFilter"),
                ("volcano", "scheduling.volcano.sh/v1beta1", "volcano", "Not enough valid tasks for gang-scheduling, valid: 2, min: 3",
                 "1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable")):
            with self.subTest(api):
                self.script("faults", apis=[api])
                self.apply(pod("blocker", FOR_EVER, c_resources={"requests": {"cpu": "1"}}, nodeSelector={"kind": "good"}))
                self.await_phase("blocker", "Running")
                self.apply_gang(api, ["a", "b"], schedulerName=scheduler)
                if api == "coscheduling":
                    self.await_reason("a", "Unschedulable", "PodGroup not found")
                self.apply({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}})
                self.await_reason("a", "Unschedulable", too_few)
                self.apply_gang(api, ["c"], schedulerName=scheduler)
                self.await_reason("a", "Unschedulable", held)
                self.await_reason("b", "Unschedulable", held)
                self.await_reason("c", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")
                self.kubectl("delete", "pod", "blocker", "--grace-period=0", "--force")
                for name in "abc":
                    self.await_phase(name, "Succeeded")
                self.assertEqual(self.get(f"podgroup.{version.split('/')[0]}", "g")["status"]["phase"], "Running")
                self.kubectl("delete", "pods", "a", "b", "c")
                self.kubectl("delete", f"podgroup.{version.split('/')[0]}", "g")

    def test_kueue_opens_the_gates_of_a_whole_group(self):
        def queue(cpus):
            return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "all"}, "spec": {
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                    {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpus}]}]}]}}

        self.script("faults", apis=["kueue"])
        self.apply(queue("4"), {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "q"},
                                "spec": {"clusterQueue": "all"}})
        self.apply_gang("kueue", ["a", "b"])
        gated = "Scheduling is blocked due to non-empty scheduling gates"
        self.await_reason("a", "SchedulingGated", gated)
        self.assertEqual(self.get("workloads")["items"], [], "the group isn't whole")
        self.apply_gang("kueue", ["c"])
        give_up = time.monotonic() + HANG_S
        while "500m more needed" not in self.kubectl("get", "workloads", "-o", "json"):
            self.assertLess(time.monotonic(), give_up, self.kubectl("get", "workloads", "-o", "json"))
        for name in "abc":
            self.await_reason(name, "SchedulingGated", gated)
        self.apply(queue("5"))
        for name in "abc":
            self.await_phase(name, "Succeeded")
        self.kubectl("delete", "pods", "a", "b", "c")
        self.await_gone("g", "workload")
        alone = pod("alone", "true")
        alone["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "g"}
        self.assertIn("pod-group-total-count", self.apply(alone, fails=True))

    # ---- other kinds ----

    def test_objects_are_changed_in_every_way(self):
        def some(**data):
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "some"}, "data": data}

        self.apply(some(old="1", kept="2"))
        self.apply(some(kept="3"))
        self.kubectl("label", "configmap", "some", "color=red")
        self.kubectl("patch", "configmap", "some", "--type=json", "-p", '[{"op": "add", "path": "/data/new", "value": "4"}]')
        self.kubectl("patch", "configmap", "some", "--type=merge", "-p", '{"data": {"kept": null}}')
        self.assertEqual(self.get("configmap", "some")["data"], {"new": "4"})
        self.assertEqual(len(self.get("configmaps", "-l", "color in (red)")["items"]), 1)
        self.apply(pod("one", "true"))
        self.assertIn("pod updates may not change fields", self.apply(pod("one", "false"), fails=True))
        self.assertIn("configmap/some", self.kubectl("delete", "configmap", "some", "-o", "name"))

    def test_claims_are_shared_and_custom_objects_are_kept(self):
        self.script("faults", apis=["jobset"])
        self.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}},
                   {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "one"}, "spec": {"any": 1}})
        self.assertEqual(self.get("jobset", "one")["spec"], {"any": 1})
        mounted = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
                   "c_volumeMounts": [{"name": "v", "mountPath": "/data"}]}
        self.apply(pod("writer", "echo text >/data/file", **mounted))
        self.await_phase("writer", "Succeeded")
        self.apply(pod("reader", "cat /data/file", **mounted))
        self.await_phase("reader", "Succeeded")
        self.assertEqual(self.kubectl("logs", "reader"), "text\n")

    def test_z_a_lost_node_takes_its_pods_along(self):
        self.apply(pod("lost", FOR_EVER, nodeName="n2"))
        self.await_phase("lost", "Running")
        self.cluster.kill_node("n2")
        self.await_pod("lost", lambda one: one["status"]["reason"] == "NodeLost")
        self.assertIn("connection refused", self.kubectl("logs", "lost", fails=True).lower())
        self.await_pod("lost", lambda one: one["metadata"]["deletionTimestamp"])
        self.kubectl("delete", "node", "n2")
        self.await_gone("lost")


if __name__ == "__main__":
    unittest.main()
