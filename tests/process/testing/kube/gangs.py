"""Pods that start together or not at all, as systems that a cluster may have do it: kueue, whose gates are taken from a group of pods
once its queue has room for all of them, and the groups of coscheduling and volcano, which the scheduler places (scheduler.py)."""

import collections
import decimal

import admission
import cluster as clusters
import quantities

WORKLOADS = "workloads.kueue.x-k8s.io"


def _labels(pod):
    return pod["metadata"].get("labels") or {}


def _annotations(pod):
    return pod["metadata"].get("annotations") or {}


# ---- groups that the scheduler places ----

class Scheduled:
    """How a scheduler with groups names a pod's group, and what it says while the group waits."""

    def __init__(self, api, scheduler, group_of, missing, too_few, held, phases):
        self.api, self.scheduler, self.group_of = api, scheduler, group_of
        self.resource = f"podgroups.scheduling.{'x-k8s.io' if api == 'coscheduling' else 'volcano.sh'}"
        self.missing, self.too_few, self.held, self.phases = missing, too_few, held, phases


KINDS = (
    Scheduled("coscheduling", "scheduler-plugins-scheduler", lambda pod: _labels(pod).get("scheduling.x-k8s.io/pod-group"),
              "PodGroup not found",
              "pre-filter pod {name} cannot find enough sibling pods, current pods number: {count}, minMember of group: {least}",
              "optimistic rejection in PostFilter", ("Pending", "Running")),
    Scheduled("volcano", "volcano", lambda pod: _annotations(pod).get("scheduling.k8s.io/group-name"),
              "",  # it leaves such a pod alone
              "Not enough valid tasks for gang-scheduling, valid: {count}, min: {least}",
              "{short}/{count} tasks in gang unschedulable: pod group is not ready, {count} Pending, {least} minAvailable",
              ("Inqueue", "Running")),
)


def kind_of(pod, apis):
    """Returns the kind that places a pod, or None for the usual scheduler."""
    return next((kind for kind in KINDS if kind.api in apis and kind.scheduler == pod["spec"].get("schedulerName")), None)


# ---- kueue ----

def _quota(cluster, namespace, queue):
    """Returns the ClusterQueue's name and what may be used there; None where there is no such queue."""
    local = cluster.store.get("localqueues.kueue.x-k8s.io", namespace, queue)
    found = local and cluster.store.get("clusterqueues.kueue.x-k8s.io", "", local["spec"]["clusterQueue"])
    if not found:
        return None
    total = {}
    for group in found["spec"].get("resourceGroups") or []:
        for flavor in group["flavors"]:
            quantities.added(total, {one["name"]: quantities.parse(one["nominalQuota"]) for one in flavor["resources"]})
    return found["metadata"]["name"], total


def _is_admitted(workload):
    return any(one["type"] == "Admitted" and one["status"] == "True" for one in workload.get("status", {}).get("conditions") or [])


class Kueue:
    def __init__(self, cluster):
        self._cluster = cluster

    def turn(self):
        if "kueue" not in self._cluster.faults()["apis"]:
            return
        groups = collections.defaultdict(list)
        for pod in self._cluster.store.list("pods"):
            if _labels(pod).get(admission.MANAGED) and not quantities.is_over(pod):
                groups[pod["metadata"]["namespace"], _labels(pod).get(admission.GROUP, pod["metadata"]["name"])].append(pod)
        used = collections.defaultdict(dict)  # by ClusterQueue
        waiting = []
        for (namespace, name), pods in groups.items():
            workload = self._cluster.store.get(WORKLOADS, namespace, name)
            quota = _quota(self._cluster, namespace, _labels(pods[0])[admission.QUEUE])
            if workload is None or not _is_admitted(workload):
                waiting.append((namespace, name, pods, quota))
                continue
            self._open(pods)
            for pod in pods if quota else []:
                quantities.added(used[quota[0]], quantities.of_pod(pod))
        for namespace, name, pods, quota in sorted(waiting, key=lambda one: one[2][0]["metadata"]["creationTimestamp"]):
            self._admit(namespace, name, pods, quota, used)

    def _admit(self, namespace, name, pods, quota, used):
        if len(pods) < int(_annotations(pods[0]).get(admission.COUNT, 1)):
            return
        workload = self._cluster.store.get(WORKLOADS, namespace, name) or self._make(namespace, name, pods)
        why = self._why_not(pods, quota, used)

        def change(status):
            clusters.set_condition(status, "QuotaReserved", "False" if why else "True", "Pending" if why else "QuotaReserved", why)
            if not why:
                clusters.set_condition(status, "Admitted", "True", "Admitted")
        self._cluster.change_status(WORKLOADS, workload, change)
        if not why:
            self._open(pods)

    @staticmethod
    def _why_not(pods, quota, used):
        """Counts the pods as used where there is room for all of them."""
        if quota is None:
            return f"LocalQueue {_labels(pods[0])[admission.QUEUE]} doesn't exist"
        queue, total = quota
        wanted = {}
        for pod in pods:
            quantities.added(wanted, quantities.of_pod(pod))
        for what, most in sorted(total.items()):
            more = used[queue].get(what, decimal.Decimal(0)) + wanted.get(what, 0) - most
            if more > 0:
                return (f"couldn't assign flavors to pod set main: insufficient unused quota for {what} in flavor default, "
                        f"{quantities.text_of(more)} more needed")
        quantities.added(used[queue], wanted)
        return ""

    def _make(self, namespace, name, pods):
        """It goes with the last of its pods."""
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods]
        return self._cluster.create(self._cluster.resource(WORKLOADS), {
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"queueName": _labels(pods[0])[admission.QUEUE], "podSets": [{"name": "main", "count": len(pods)}]}}, namespace)

    def _open(self, pods):
        def change(pod):
            gates = [gate for gate in pod["spec"].get("schedulingGates") or [] if gate["name"] != admission.GATE]
            pod["spec"]["schedulingGates"] = gates
            if not gates:
                pod["status"]["conditions"] = [one for one in pod["status"].get("conditions") or []
                                               if one.get("reason") != "SchedulingGated"]
        for pod in pods:
            if any(gate["name"] == admission.GATE for gate in pod["spec"].get("schedulingGates") or []):
                self._cluster.store.change("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], change)
