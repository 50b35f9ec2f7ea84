"""Jobs of batch/v1: makes their pods, with indices or without, counts how they end, and ends the job. What has been
counted is kept beside the job, since its pods may vanish."""


import admission
import cluster as clusters
import errors
import quantities
import times

INDEX = "batch.kubernetes.io/job-completion-index"


def _exit_rule_holds(rule, pod):
    """Whether a rule of a podFailurePolicy is about how a pod ended."""
    status = pod.get("status", {})
    for pattern in rule.get("onPodConditions") or []:
        if any(one["type"] == pattern["type"] and one["status"] == pattern.get("status", "True")
               for one in status.get("conditions") or []):
            return True
    codes = rule.get("onExitCodes")
    for one in (status.get("containerStatuses") or []) + (status.get("initContainerStatuses") or []) if codes else []:
        code = one.get("state", {}).get("terminated", {}).get("exitCode", 0)
        if code == 0 or codes.get("containerName") not in (None, one["name"]):
            continue
        if (code in codes["values"]) == (codes["operator"] == "In"):
            return True
    return False


def _verdict(job, pod):
    """What becomes of a failed pod: Count, Ignore, FailIndex or FailJob, and which rule says so."""
    for i, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or []):
        if _exit_rule_holds(rule, pod):
            return rule["action"], i
    return "Count", None


def indexes_text(indexes):
    """[0, 1, 2, 5] is "0-2,5"."""
    parts = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def indexes_of(text):
    found = set()
    for part in text.split(",") if text else []:
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


class JobController:
    def __init__(self, cluster):
        self._cluster, self._store = cluster, cluster.store

    def turn(self):
        for job in self._store.list("jobs.batch"):
            self._one(job)

    def _one(self, job):
        meta, status = job["metadata"], job.get("status", {})
        done = next((one for one in status.get("conditions") or []
                     if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)
        if done is not None:
            ttl = job["spec"].get("ttlSecondsAfterFinished")
            if ttl is not None and times.since(done["lastTransitionTime"]) >= ttl:
                self._cluster.delete(self._cluster.resource("jobs.batch"), meta["namespace"], meta["name"])
            return
        if meta.get("deletionTimestamp"):
            return
        pods = [pod for pod in self._store.list("pods", meta["namespace"])
                if any(owner["uid"] == meta["uid"] for owner in pod["metadata"].get("ownerReferences") or [])]
        book = self._count(job, pods)
        running = [pod for pod in pods if not quantities.is_over(pod) and not pod["metadata"].get("deletionTimestamp")]
        why = self._why_failed(job, book)
        if why is not None:
            self._end(job, book, running, "Failed", *why)
        elif self._is_complete(job, book, running):
            self._end(job, book, running, "Complete", "", "")
        else:
            self._go_on(job, book, running)

    # ---- counting ----

    def _count(self, job, pods):
        name = "job-" + job["metadata"]["uid"]
        if self._store.get("standin", "", name) is None:
            self._store.create("standin", {"metadata": {"name": name}, "failed": {}, "succeeded": {}, "seen": {}, "ended": ""})

        def change(book):
            here = {pod["metadata"]["uid"] for pod in pods}
            for pod in pods:
                uid, index = pod["metadata"]["uid"], pod["metadata"].get("annotations", {}).get(INDEX, "")
                book["seen"][uid] = index
                phase = pod.get("status", {}).get("phase")
                if phase == "Succeeded":
                    book["succeeded"][uid] = index
                elif phase == "Failed" and uid not in book["failed"]:
                    self._judge(job, book, pod, uid, index)
            for uid in [uid for uid in book["seen"] if uid not in here]:
                index = book["seen"].pop(uid)
                if uid not in book["succeeded"] and uid not in book["failed"] and not job["spec"]["suspend"]:
                    book["failed"][uid] = {"index": index, "counts": not job["spec"].get("podFailurePolicy")}
        return self._store.change("standin", "", name, change)

    @staticmethod
    def _judge(job, book, pod, uid, index):
        action, rule = _verdict(job, pod)
        book["failed"][uid] = {"index": index, "counts": action != "Ignore", "index_fails": action == "FailIndex"}
        if action == "FailJob":
            code = next((one["state"]["terminated"]["exitCode"] for one in pod["status"].get("containerStatuses") or []
                         if "terminated" in one.get("state", {})), "?")
            container = (pod["status"].get("containerStatuses") or [{"name": "?"}])[0]["name"]
            book["ended"] = (f"Container {container} for pod {pod['metadata']['namespace']}/{pod['metadata']['name']} failed with exit "
                             f"code {code} matching FailJob rule at index {rule}")

    @staticmethod
    def _failures(book, index=None):
        return sum(one["counts"] for one in book["failed"].values() if index is None or one["index"] == str(index))

    def _why_failed(self, job, book):
        spec = job["spec"]
        if book["ended"]:
            return "PodFailurePolicy", book["ended"]
        if self._failures(book) > spec["backoffLimit"]:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        begun = job.get("status", {}).get("startTime")
        if spec.get("activeDeadlineSeconds") and begun and times.since(begun) > spec["activeDeadlineSeconds"]:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        failed, completed = self._failed_indexes(job, book), self._completed_indexes(book)
        if failed and spec.get("maxFailedIndexes") is not None and len(failed) > spec["maxFailedIndexes"]:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if failed and len(failed | completed) >= spec["completions"]:
            return "FailedIndexes", "Job has failed indexes"
        return None

    def _failed_indexes(self, job, book):
        limit = job["spec"].get("backoffLimitPerIndex")
        if limit is None:
            return set()
        return {int(one["index"]) for one in book["failed"].values()
                if one["index"] and (one.get("index_fails") or self._failures(book, one["index"]) > limit)}

    @staticmethod
    def _completed_indexes(book):
        return {int(index) for index in book["succeeded"].values() if index}

    def _is_complete(self, job, book, running):
        spec = job["spec"]
        for rule in (spec.get("successPolicy") or {}).get("rules") or []:
            wanted, got = indexes_of(rule.get("succeededIndexes", "")), self._completed_indexes(book)
            if len(got & wanted if wanted else got) >= rule.get("succeededCount", len(wanted)):
                return True
        if spec["completionMode"] == "Indexed":
            return len(self._completed_indexes(book)) >= spec["completions"]
        if spec.get("completions") is None:
            return bool(book["succeeded"]) and not running
        return len(book["succeeded"]) >= spec["completions"]

    # ---- acting ----

    def _write(self, job, book, active, change=lambda status: None):
        def write(status):
            status.update(active=active, succeeded=len(book["succeeded"]), failed=len(book["failed"]))
            if job["spec"]["completionMode"] == "Indexed":
                status["completedIndexes"] = indexes_text(self._completed_indexes(book))
                if job["spec"].get("backoffLimitPerIndex") is not None:
                    status["failedIndexes"] = indexes_text(self._failed_indexes(job, book))
            change(status)
        self._cluster.change_status("jobs.batch", job, write)

    def _end(self, job, book, running, kind, reason, message):
        for pod in running:
            self._delete(pod)

        def change(status):
            clusters.set_condition(status, kind, "True", reason, message)
            if kind == "Complete":
                status["completionTime"] = times.text()
        self._write(job, book, 0, change)
        self._store.delete("standin", "", "job-" + job["metadata"]["uid"])

    def _delete(self, pod):
        self._cluster.delete(self._cluster.resource("pods"), pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _go_on(self, job, book, running):
        spec = job["spec"]
        if spec["suspend"]:
            for pod in running:
                self._delete(pod)
            self._write(job, book, 0, lambda status: clusters.set_condition(status, "Suspended", "True", "JobSuspended",
                                                                            "Job suspended"))
            return
        made = len(running)
        for index in self._missing(job, book, running):
            if made >= spec["parallelism"]:
                break
            if not self._make(job, index):
                break
            made += 1

        def change(status):
            status.setdefault("startTime", times.text())
            if any(one["type"] == "Suspended" for one in status.get("conditions") or []):
                clusters.set_condition(status, "Suspended", "False", "JobResumed", "Job resumed")
        self._write(job, book, made, change)

    def _missing(self, job, book, running):
        spec = job["spec"]
        if spec["completionMode"] == "Indexed":
            there = {int(pod["metadata"]["annotations"][INDEX]) for pod in running}
            over = there | self._completed_indexes(book) | self._failed_indexes(job, book)
            return [index for index in range(spec["completions"]) if index not in over]
        if spec.get("completions") is None:
            return [] if book["succeeded"] else [None] * (spec["parallelism"] - len(running))
        return [None] * max(0, spec["completions"] - len(book["succeeded"]) - len(running))

    def _make(self, job, index):
        meta, template = job["metadata"], clusters.patches.copied(job["spec"]["template"])
        pod = {"metadata": dict(template.get("metadata") or {}), "spec": template["spec"]}
        pod["metadata"].pop("name", None)
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"],
                                               "controller": True, "blockOwnerDeletion": True}]
        name = meta["name"]
        if index is not None:
            name = f"{name}-{index}"
            pod["metadata"]["annotations"] = dict(pod["metadata"].get("annotations") or {}, **{INDEX: str(index)})
            pod["metadata"]["labels"] = dict(pod["metadata"].get("labels") or {}, **{INDEX: str(index)})
            pod["spec"].setdefault("hostname", name)
            for container in pod["spec"]["containers"] + (pod["spec"].get("initContainers") or []):
                container["env"] = (container.get("env") or []) + [{"name": "JOB_COMPLETION_INDEX", "value": str(index)}]
        pod["metadata"]["name"] = f"{name}-{admission.random_end()}"
        try:
            created = self._cluster.create(self._cluster.resource("pods"), pod, meta["namespace"])
        except errors.ApiError as error:
            self._cluster.event(job, "FailedCreate", f"Error creating: {error.message}", "Warning", "job-controller")
            return False
        self._cluster.event(job, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}", source="job-controller")
        return True
