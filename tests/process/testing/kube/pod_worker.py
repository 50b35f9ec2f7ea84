"""One pod on its node: from its volumes to the end of its containers, and what of it is told to the API. A thread of its
own takes steps, whenever the pod or a container changes, and four times a second."""

import os
import shutil
import signal
import subprocess
import threading
import time
import traceback

import client as clients
import cluster as clusters
import container as containers
import times
import volumes as volume_sets

STEP_S = 0.25
STARTING_STEP_S = 0.05
PULL_AGAIN_S = 1.0
RESTART_S = 0.5  # doubles with every restart, up to
MOST_RESTART_S = 10


class Waiting(Exception):
    """A container can't start now."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason, self.message = reason, message


class Slot:
    """A container of the pod, with its runs."""

    def __init__(self, container, is_init):
        self.container, self.is_init = container, is_init
        self.run, self.last, self.restarts, self.next_start = None, None, 0, 0.0
        self.waiting = ("PodInitializing" if not is_init else "ContainerCreating", "")
        self.old_state = None  # terminated, from before this kubelet
        self.tried_pull, self.is_ready, self.probed = 0.0, None, 0.0

    @property
    def name(self):
        return self.container["name"]

    @property
    def is_over(self):
        return self.old_state is not None or self.run is not None and not self.run.is_running

    @property
    def is_running(self):
        return self.run is not None and self.run.is_running and self.run.first_process is not None

    @property
    def exit_code(self):
        return self.old_state["exitCode"] if self.run is None else self.run.exit_code


class PodWorker:
    def __init__(self, kubelet, pod):
        self._kubelet, self.pod = kubelet, pod
        self.uid = pod["metadata"]["uid"]
        self._folder = os.path.join(kubelet.settings.root, "pods", self.uid)
        self._volumes = volume_sets.Volumes(kubelet.source, pod, os.path.join(self._folder, "volumes"))
        self._slots = [Slot(one, True) for one in pod["spec"].get("initContainers") or []]
        self._slots += [Slot(one, False) for one in pod["spec"]["containers"]]
        self._wake, self._lock = threading.Event(), threading.Lock()
        self._network = None
        self.address = ""
        self.forced = None  # what the node itself does to the pod: {reason, message, condition}
        self._stopping_since, self.is_gone, self._started = None, False, times.text()
        self._finished = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        if self.pod.get("status", {}).get("containerStatuses"):
            self._adopt()
        self._thread.start()

    def _adopt(self):
        """A pod that has run here before the node came back: its containers are gone."""
        status = self.pod["status"]
        self._started = status.get("startTime", self._started)
        known = {one["name"]: one for kind in ("initContainerStatuses", "containerStatuses") for one in status.get(kind) or []}
        for slot in self._slots:
            state = known.get(slot.name, {}).get("state", {})
            slot.restarts = known.get(slot.name, {}).get("restartCount", 0)
            if "running" in state:
                slot.old_state = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": state["running"].get("startedAt"),
                                  "finishedAt": times.text(),
                                  "message": "The container could not be located when the pod was terminated"}
            elif "terminated" in state:
                slot.old_state = state["terminated"]

    # ---- what others tell it ----

    def update(self, pod):
        """An answer and the watch may bring the same pod in any order."""
        with self._lock:
            if int(pod["metadata"]["resourceVersion"]) > int(self.pod["metadata"]["resourceVersion"]):
                self.pod = pod
                self._wake.set()

    def gone(self):
        self.is_gone = True
        self._wake.set()

    def slot(self, name):
        return next((slot for slot in self._slots if slot.name == name), None)

    def log_path(self, name, number):
        return os.path.join(self._folder, "logs", name, f"{number}.log")

    def wake(self):
        self._wake.set()

    # ---- steps ----

    def _run(self):
        while not self._finished:
            try:
                self._step()
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
            starts = any(slot.run is not None and slot.run.is_running and not slot.is_running for slot in self._slots)
            self._wake.wait(STARTING_STEP_S if starts else STEP_S)
            self._wake.clear()
        for slot in self._slots:
            if slot.run is not None:
                slot.run.signal(signal.SIGKILL)
        self._clean_up()
        self._kubelet.forget(self)

    def _step(self):
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        if deadline and self.forced is None and times.since(self._started) > deadline and not self._all_over():
            self.forced = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}
        if self.is_gone:
            self._stop(0)
            self._finished = self._nothing_runs()
            return
        if self.pod["metadata"].get("deletionTimestamp"):
            self._stop(self.pod["metadata"].get("deletionGracePeriodSeconds", 30))
            self._tell()
            if self._nothing_runs():
                self._delete()
            return
        if self.forced is not None:
            self._stop(self.forced.get("grace", 0))
        elif self.pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            self._advance()
        elif self._nothing_runs() and self._network is not None:
            self._kubelet.network.disconnect(self._network)
            self._network = None
        self._tell()

    def _nothing_runs(self):
        return all(slot.run is None or not slot.run.is_running for slot in self._slots)

    def _stop(self, grace):
        now = time.monotonic()
        if self._stopping_since is None:
            self._stopping_since = now
            for slot in self._slots:
                if slot.run is not None:
                    self._before_stop(slot)
                    slot.run.signal(signal.SIGTERM)
        if now - self._stopping_since >= grace:
            for slot in self._slots:
                if slot.run is not None:
                    slot.run.signal(signal.SIGKILL)

    def _before_stop(self, slot):
        words = (((slot.container.get("lifecycle") or {}).get("preStop") or {}).get("exec") or {}).get("command")
        if words and slot.is_running:
            subprocess.run(slot.run.words_to_run(words), stdin=subprocess.DEVNULL, check=False,
                           timeout=self.pod["spec"].get("terminationGracePeriodSeconds", 30) + 1)

    def _advance(self):
        policy = self.pod["spec"]["restartPolicy"]
        self._connect()
        try:
            self._volumes.set_up()
        except volume_sets.Missing as error:
            self._kubelet.event(self.pod, "FailedMount", str(error), "Warning")
            for slot in self._slots:
                slot.waiting = ("ContainerCreating", "")
            return
        for slot in self._slots:
            if slot.is_init:
                if slot.is_over and slot.exit_code == 0:
                    continue
                if not slot.is_over or policy != "Never":
                    self._keep_up(slot, restarts=policy != "Never")
                return
        for slot in self._slots:
            if not slot.is_init:
                ended_well = slot.is_over and slot.exit_code == 0
                self._keep_up(slot, restarts=policy == "Always" or policy == "OnFailure" and not ended_well)
                self._probe(slot)

    def _keep_up(self, slot, restarts):
        """Starts a container that should run."""
        if slot.run is not None and slot.run.is_running or slot.is_over and not restarts:
            return
        if slot.is_over:
            self._put_aside(slot)
        if time.monotonic() < slot.next_start:
            return
        try:
            self._check_image(slot)
            status = {"podIP": self.address, "hostIP": self._kubelet.settings.address}
            variables = volume_sets.variables_of(self._kubelet.source, dict(self.pod, status=status), slot.container)
        except Waiting as waiting:
            slot.waiting = (waiting.reason, waiting.message)
            return
        except volume_sets.Missing as missing:
            slot.waiting = ("CreateContainerConfigError", str(missing))
            self._kubelet.event(self.pod, "Failed", f"Error: {missing}", "Warning")
            return
        self._begin(slot, variables)

    def _put_aside(self, slot):
        slot.last = self._terminated(slot)
        slot.run, slot.old_state = None, None
        slot.next_start = time.monotonic() + min(MOST_RESTART_S, RESTART_S * 2**slot.restarts)
        slot.waiting = ("CrashLoopBackOff", f"back-off restarting failed container={slot.name} pod={self.pod['metadata']['name']}")
        slot.restarts += 1

    def _check_image(self, slot):
        image = slot.container["image"]
        if self._kubelet.has_image(image):
            return
        now = time.monotonic()
        if slot.waiting[0] == "ErrImagePull" and now - slot.tried_pull < PULL_AGAIN_S:
            raise Waiting(*slot.waiting)
        if slot.waiting[0] == "ErrImagePull" or slot.waiting[0] == "ImagePullBackOff" and now - slot.tried_pull < 2 * PULL_AGAIN_S:
            raise Waiting("ImagePullBackOff", f'Back-off pulling image "{image}"')
        slot.tried_pull = now
        message = f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": not found'
        self._kubelet.event(self.pod, "Failed", f'Failed to pull image "{image}": {message}', "Warning")
        raise Waiting("ErrImagePull", message)

    def _begin(self, slot, variables):
        one = slot.container
        words = [volume_sets.expanded(word, variables) for word in (one.get("command") or []) + (one.get("args") or [])]
        if not words:
            slot.waiting = ("CreateContainerError", f'no command specified, and the image "{one["image"]}" of the stand-in has none')
            return
        where = {"folder": self._folder, "paths": self._volumes.paths, "visible": self._kubelet.settings.visible,
                 "network": self._kubelet.network.words(self._network), "number": slot.restarts}
        slot.run = containers.Run(self.pod, one, words, variables, where, self.wake)
        self._kubelet.event(self.pod, "Started", f"Started container {slot.name}")

    def _connect(self):
        if self.address:
            return
        os.makedirs(self._folder + "/shm", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", self._folder + "/shm"], check=True)
        self._network, self.address = self._kubelet.network.connect(self.pod)
        self._kubelet.write_hosts(self)

    def hosts_file(self):
        return os.path.join(self._folder, "hosts")

    # ---- readiness ----

    def _probe(self, slot):
        probe = slot.container.get("readinessProbe")
        if not probe:
            slot.is_ready = slot.is_running
            return
        now = time.monotonic()
        if not slot.is_running:
            slot.is_ready, slot.probed = False, now
        elif now - slot.probed >= probe.get("periodSeconds", 10) or slot.is_ready is None or not slot.is_ready:
            slot.is_ready, slot.probed = self._is_well(slot, probe), now

    def _is_well(self, slot, probe):
        limit = probe.get("timeoutSeconds", 1)
        if "exec" in probe:
            try:
                return subprocess.run(slot.run.words_to_run(probe["exec"]["command"]), stdin=subprocess.DEVNULL, check=False,
                                      capture_output=True, timeout=limit).returncode == 0
            except subprocess.TimeoutExpired:
                return False
        port = (probe.get("tcpSocket") or probe.get("httpGet") or {}).get("port")
        return self._kubelet.network.answers(self.address, port, (probe.get("httpGet") or {}).get("path"), limit)

    # ---- telling ----

    def _all_over(self):
        return all(slot.is_over for slot in self._slots if not slot.is_init)

    def _phase(self):
        if self.forced is not None:
            return "Failed"
        policy = self.pod["spec"]["restartPolicy"]
        init_failed = policy == "Never" and any(slot.is_init and slot.is_over and slot.exit_code != 0 for slot in self._slots)
        own = [slot for slot in self._slots if not slot.is_init]
        if init_failed:
            return "Failed"
        is_ending = self.pod["metadata"].get("deletionTimestamp") and self._nothing_runs()
        if all(slot.is_over for slot in own) and (policy != "Always" or is_ending):
            if all(slot.exit_code == 0 for slot in own):
                return "Succeeded"
            return "Failed" if policy == "Never" or is_ending else "Running"
        return "Running" if any(slot.is_running or slot.is_over or slot.restarts for slot in own) else "Pending"

    def _terminated(self, slot):
        if slot.run is None:
            return slot.old_state
        reason = slot.run.killed_because or ("Completed" if slot.run.exit_code == 0 else "Error")
        state = {"exitCode": slot.run.exit_code, "reason": reason, "startedAt": slot.run.started, "finishedAt": slot.run.ended,
                 "containerID": f"standin://{self.uid}.{slot.name}.{slot.run.number}"}
        if slot.run.exit_code and slot.container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            state["message"] = slot.run.log.tail(80, 2048)
        return state

    def _state(self, slot):
        if slot.is_over:
            return {"terminated": self._terminated(slot)}
        if slot.is_running:
            return {"running": {"startedAt": slot.run.started}}
        reason, message = slot.waiting if slot.run is None else ("ContainerCreating", "")
        return {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def _container_status(self, slot):
        one = {"name": slot.name, "image": slot.container["image"], "imageID": "", "restartCount": slot.restarts,
               "ready": bool(slot.is_running and slot.is_ready), "started": slot.is_running, "state": self._state(slot),
               "lastState": {"terminated": slot.last} if slot.last else {}}
        if slot.is_init:
            one["ready"] = slot.is_over and slot.exit_code == 0
        if slot.run is not None:
            one["containerID"] = f"standin://{self.uid}.{slot.name}.{slot.run.number}"
        return one

    def _status(self):
        phase, own = self._phase(), [slot for slot in self._slots if not slot.is_init]
        initialized = all(slot.is_over and slot.exit_code == 0 for slot in self._slots if slot.is_init)
        ready = phase == "Running" and all(slot.is_running and slot.is_ready for slot in own)
        before = self.pod.get("status", {})
        status = {"conditions": clusters.patches.copied(before.get("conditions") or [])}
        for kind, is_so in (("Initialized", initialized), ("Ready", ready), ("ContainersReady", ready), ("PodScheduled", True)):
            over = phase in ("Succeeded", "Failed") and kind != "PodScheduled"
            why = "PodCompleted" if over else "" if is_so else "ContainersNotReady"
            clusters.set_condition(status, kind, "True" if is_so else "False", why)
        if self.forced is not None and self.forced.get("condition"):
            clusters.set_condition(status, "DisruptionTarget", "True", self.forced["condition"], self.forced["message"])
        status.update(phase=phase, hostIP=self._kubelet.settings.address, startTime=self._started,
                      reason=self.forced["reason"] if self.forced else None, message=self.forced["message"] if self.forced else None,
                      containerStatuses=[self._container_status(slot) for slot in own])
        if self.address:
            status.update(podIP=self.address, podIPs=[{"ip": self.address}])
        if len(own) < len(self._slots):
            status["initContainerStatuses"] = [self._container_status(slot) for slot in self._slots if slot.is_init]
        return status

    def _tell(self):
        """Tells the API what has changed, as soon as there is one."""
        if not self.address:
            return
        status, there = self._status(), self.pod.get("status", {})
        if all(there.get(key) == value for key, value in status.items()):
            return
        meta = self.pod["metadata"]
        try:
            changed = self._kubelet.client.call("PATCH", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status",
                                                {"status": status}, "application/merge-patch+json")
        except OSError:
            return  # the next step tries again
        except clients.Refused as refused:
            if refused.code != 404:
                raise
            return
        if changed["metadata"]["uid"] == self.uid:
            self.update(changed)

    def _delete(self):
        meta = self.pod["metadata"]
        try:
            self._kubelet.client.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                                      {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})
        except OSError:
            return
        except clients.Refused as refused:
            if refused.code not in (404, 409):
                raise
        self._finished = not self.pod["metadata"].get("finalizers")

    def _clean_up(self):
        self._volumes.clean_up()
        self._kubelet.network.disconnect(self._network)
        subprocess.run(["umount", "--lazy", self._folder + "/shm"], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self._folder, ignore_errors=True)
