#!/usr/bin/env python3
"""The manifests of tests/data/manifests, which launch_test compares with what `muster manifest` prints and what `muster
train --on kubernetes` makes (train_pods.yaml), against the models of Kubernetes in the package `kubernetes`: no field
that it doesn't know, none missing that it needs, no value of another type. JobSet and TFJob have no models there: their
own fields are in SCHEMAS here, the Jobs and pods in them are checked as those of Kubernetes. Also, that each
container's shell tells its program when the pod must end."""

import copy
import json
import pathlib
import re
import signal
import site
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# tools/setup.sh --for test has installed them there; the runner's own python doesn't know them.
for packages in ROOT.glob(".venv/lib/python3*/site-packages"):
    site.addsitedir(str(packages))

import kubernetes.client  # noqa: E402
import yaml  # noqa: E402

MANIFESTS = ROOT / "tests/data/manifests"
MODELS = {("v1", "Secret"): "V1Secret", ("v1", "Service"): "V1Service", ("v1", "Pod"): "V1Pod",
          ("batch/v1", "Job"): "V1Job"}

# A type here is the name of a model, a list with the type of its items, a map from the one key "*" to the type of all
# values, or a map of fields, where a key with "!" must be there; a set of texts is what a text may be.
SCHEMAS = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): {
        "apiVersion!": "str", "kind!": "str", "metadata!": "V1ObjectMeta",
        "spec!": {
            "network": {"enableDNSHostnames": "bool", "subdomain": "str", "publishNotReadyAddresses": "bool"},
            "successPolicy": {"operator!": {"All", "Any"}, "targetReplicatedJobs": ["str"]},
            "failurePolicy": {"maxRestarts": "int"},
            "replicatedJobs!": [{"name!": "str", "replicas": "int", "template!": "V1JobTemplateSpec"}],
        }},
    ("kubeflow.org/v1", "TFJob"): {
        "apiVersion!": "str", "kind!": "str", "metadata!": "V1ObjectMeta",
        "spec!": {
            "runPolicy": {"cleanPodPolicy": {"None", "Running", "All"}, "backoffLimit": "int"},
            "successPolicy": {"", "AllWorkers"},
            "tfReplicaSpecs!": {"*": {"replicas": "int", "restartPolicy": {"Always", "OnFailure", "Never", "ExitCode"},
                                      "template!": "V1PodTemplateSpec"}},
        }},
}
SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": str, "object": object}


def fields_of(model):
    """Returns the fields as a schema has them."""
    return {model.attribute_map[attribute] + ("!" if model.model_fields[attribute].is_required() else ""): kind
            for attribute, kind in model.openapi_types.items()}


def mistakes(value, kind, path):
    """Yields a line for each."""
    if isinstance(kind, str):
        if listed := re.fullmatch(r"[Ll]ist\[(.*)\]", kind):
            kind = [listed[1]]
        elif mapped := re.fullmatch(r"[Dd]ict[\[(]str, (.*)[\])]", kind):
            kind = {"*": mapped[1]}
        elif kind not in SCALARS:
            kind = fields_of(getattr(kubernetes.client, kind))
    if isinstance(kind, set):
        if value not in kind:
            yield f"{path}: {value!r} is none of {sorted(kind)}"
    elif isinstance(kind, str):
        is_other = isinstance(value, bool) and kind not in ("bool", "object")
        if is_other or not isinstance(value, SCALARS[kind]):
            yield f"{path}: {value!r} is no {kind}"
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{path}: {value!r} is no list"
            return
        for i, item in enumerate(value):
            yield from mistakes(item, kind[0], f"{path}[{i}]")
    elif not isinstance(value, dict):
        yield f"{path}: {value!r} is no map"
    elif "*" in kind:
        for key, item in value.items():
            yield from mistakes(item, kind["*"], f"{path}.{key}")
    else:
        yield from field_mistakes(value, kind, path)


def field_mistakes(value, fields, path):
    kinds = {name.rstrip("!"): kind for name, kind in fields.items()}
    for name in fields:
        if name.endswith("!") and name[:-1] not in value:
            yield f"{path}.{name[:-1]}: missing"
    for name, item in value.items():
        if name not in kinds:
            yield f"{path}.{name}: unknown"
        else:
            yield from mistakes(item, kinds[name], f"{path}.{name}")


def mistakes_of(thing):
    key = (thing.get("apiVersion"), thing.get("kind"))
    kind = SCHEMAS.get(key) or MODELS.get(key)
    return list(mistakes(thing, kind, key[1])) if kind else [f"{key}: no model"]


def objects_of(path):
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def templates_in(thing, role=""):
    """Yields the role and the template of each kind of pod."""
    spec = thing.get("spec", {})
    for job in spec.get("replicatedJobs", []):
        yield job["name"], job["template"]["spec"]["template"], job["template"]["spec"]["completions"]
    for name, replicas in spec.get("tfReplicaSpecs", {}).items():
        yield name.lower(), replicas["template"], replicas["replicas"]
    if thing["kind"] == "Job":
        labels = spec["template"]["metadata"]["labels"]
        yield labels["app.kubernetes.io/component"], spec["template"], spec["completions"]


def environment_in_pod(container, index):
    """Returns the variables as the kubelet makes them, but for those of Secrets."""
    made = {}
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            assert source["fieldRef"]["fieldPath"] == (
                "metadata.annotations['batch.kubernetes.io/job-completion-index']")
            made[variable["name"]] = str(index)
        elif not source:
            made[variable["name"]] = re.sub(
                r"\$\$|\$\((\w+)\)",
                lambda found: "$" if found[0] == "$$" else made.get(found[1], found[0]), variable["value"])
    return made


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.manifests = {path.stem: objects_of(path) for path in sorted(MANIFESTS.glob("*.yaml"))}
        self.assertGreaterEqual(len(self.manifests), 8)

    def test_every_object_is_as_kubernetes_has_it(self):
        for name, objects in self.manifests.items():
            for thing in objects:
                with self.subTest(name, kind=thing["kind"]):
                    self.assertEqual(mistakes_of(thing), [])

    def test_what_train_makes_is_a_supervisors_pod_with_all_that_it_owns(self):
        supervisor, *owned = self.manifests["train_pods"]
        self.assertEqual([thing["kind"] for thing in (supervisor, *owned)], ["Pod", "Secret", "Service", "Pod"])
        for thing in owned:
            self.assertEqual([owner["name"] for owner in thing["metadata"]["ownerReferences"]],
                             [supervisor["metadata"]["name"]])

    def test_the_check_finds_what_is_wrong(self):
        job = next(thing for thing in self.manifests["job_digits"] if thing["kind"] == "Job")

        def broken(change):
            thing = copy.deepcopy(job)
            change(thing["spec"])
            return mistakes_of(thing)

        container = "Job.spec.template.spec.containers[0]"
        self.assertEqual(broken(lambda spec: spec.update(backofLimit=1)), ["Job.spec.backofLimit: unknown"])
        self.assertEqual(broken(lambda spec: spec.update(completions="2")), ["Job.spec.completions: '2' is no int"])
        self.assertEqual(broken(lambda spec: spec.update(completions=True)), ["Job.spec.completions: True is no int"])
        self.assertEqual(broken(lambda spec: spec.pop("template")), ["Job.spec.template: missing"])
        self.assertEqual(broken(lambda spec: spec["template"]["spec"]["containers"][0].pop("name")),
                         [f"{container}.name: missing"])
        self.assertEqual(broken(lambda spec: spec["template"]["spec"]["containers"][0]["resources"].update(limits=2)),
                         [f"{container}.resources.limits: 2 is no map"])
        pod = copy.deepcopy(self.manifests["train_pods"][0])
        pod["spec"]["restartPolcy"] = pod["spec"].pop("restartPolicy")
        self.assertEqual(mistakes_of(pod), ["Pod.spec.restartPolcy: unknown"])
        jobset = copy.deepcopy(next(t for t in self.manifests["jobset_digits"] if t["kind"] == "JobSet"))
        jobset["spec"]["successPolicy"] = {"operator": "Some", "targets": []}
        jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["parallel"] = 1
        self.assertEqual(sorted(mistakes_of(jobset)), [
            "JobSet.spec.replicatedJobs[0].template.spec.parallel: unknown",
            "JobSet.spec.successPolicy.operator: 'Some' is none of ['All', 'Any']",
            "JobSet.spec.successPolicy.targets: unknown"])
        self.assertEqual(mistakes_of({"apiVersion": "v1", "kind": "Thing"}), ["('v1', 'Thing'): no model"])

    def test_the_first_line_says_what_is_needed(self):
        for path in set(MANIFESTS.glob("*.yaml")) - {MANIFESTS / "train_pods.yaml"}:
            first = path.read_text(encoding="utf-8").splitlines()[0]
            self.assertRegex(first, r"^# Needs (Kubernetes 1\.\d+ \(|Kubeflow's Training Operator)", path.name)

    def test_every_task_finds_itself_in_the_cluster(self):
        for name in ("jobset_digits", "job_digits", "jobset_all"):
            tasks = 0
            for thing in self.manifests[name]:
                for role, template, count in templates_in(thing):
                    for index in range(count):
                        variables = environment_in_pod(template["spec"]["containers"][0], index)
                        config = json.loads(variables["TF_CONFIG"])
                        self.assertEqual(config["task"], {"type": role, "index": index})
                        tasks += 1
                        if role != "evaluator":
                            host, port = config["cluster"][role][index].split(":")
                            self.assertEqual(port, "2222")
                            self.assertEqual(host, self.pod_name(thing, role, index))
            self.assertGreater(tasks, 4, name)

    def pod_name(self, thing, role, index):
        """Returns the name that resolves for a pod: an indexed Job's pods are named after it and their index."""
        if thing["kind"] == "JobSet":
            subdomain = thing["spec"]["network"]["subdomain"]
            return f"{thing['metadata']['name']}-{role}-0-{index}.{subdomain}"
        services = {t["metadata"]["name"]: t for t in self.manifests["job_digits"] if t["kind"] == "Service"}
        pod = thing["spec"]["template"]
        service = services[pod["spec"]["subdomain"]]
        self.assertIs(service["spec"]["publishNotReadyAddresses"], True)
        self.assertLessEqual(service["spec"]["selector"].items(), pod["metadata"]["labels"].items())
        return f"{thing['metadata']['name']}-{index}.{pod['spec']['subdomain']}"

    def test_a_rank_is_a_pods_index(self):
        jobset = self.manifests["jobset_torchrun"][-1]
        (_, template, count), = templates_in(jobset)
        ranks = [environment_in_pod(template["spec"]["containers"][0], index)["RANK"] for index in range(count)]
        self.assertEqual(ranks, ["0", "1"])

    def test_no_value_is_expanded_by_kubernetes(self):
        for name in ("job_digits", "jobset_digits", "tfjob_digits"):
            for thing in self.manifests[name]:
                for _, template, _ in templates_in(thing):
                    variables = environment_in_pod(template["spec"]["containers"][0], 0)
                    self.assertEqual(variables["GREETING"], "$(RATE) and $HOME")

    def test_the_ps_end_with_chief_and_workers(self):
        spec = self.manifests["jobset_digits"][-1]["spec"]
        self.assertEqual(spec["successPolicy"], {"operator": "All", "targetReplicatedJobs": ["chief", "worker"]})
        self.assertEqual(self.manifests["tfjob_all"][-1]["spec"]["successPolicy"], "AllWorkers")
        for name in ("tfjob_digits", "tfjob_all"):
            self.assertEqual(self.manifests[name][-1]["spec"]["runPolicy"]["cleanPodPolicy"], "Running")
            for _, template, _ in templates_in(self.manifests[name][-1]):
                self.assertEqual(template["spec"]["containers"][0]["name"], "tensorflow")

    def test_failed_pods_stay(self):
        for path in MANIFESTS.glob("*.yaml"):
            self.assertNotIn("ttlSecondsAfterFinished", path.read_text(encoding="utf-8"), path.name)


class ShellTest(unittest.TestCase):
    """The command of a container whose experiment has several commands."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        job = next(thing for thing in objects_of(MANIFESTS / "job_digits.yaml")
                   if thing["metadata"]["name"] == "digits-2-worker")
        self.command = job["spec"]["template"]["spec"]["containers"][0]["command"]

    def start(self, program):
        digits = pathlib.Path(self.folder.name) / "digits"
        digits.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        digits.chmod(0o700)
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                text=True, start_new_session=True,
                                env={"PATH": f"{self.folder.name}:/usr/bin:/bin", "OUTPUT_DIR": self.folder.name + "/o"})

    def test_its_exit_code_is_the_programs(self):
        for code in (0, 2, 138):
            shell = self.start(f'echo "$@"; [ -d "$OUTPUT_DIR" ] || exit 1; exit {code}')
            self.assertEqual(shell.communicate(timeout=60)[0], "it's 0.1\n--rate 0.1\n")
            self.assertEqual(shell.returncode, code)

    def test_a_signal_reaches_the_program(self):
        shell = self.start("trap 'echo saved; exit 138' TERM\necho trains\nwhile :; do sleep 0.01; done")
        self.assertEqual(shell.stdout.readline(), "it's 0.1\n")
        self.assertEqual(shell.stdout.readline(), "trains\n")
        shell.send_signal(signal.SIGTERM)
        self.assertEqual(shell.communicate(timeout=60)[0], "saved\n")
        self.assertEqual(shell.returncode, 138)


if __name__ == "__main__":
    unittest.main()
