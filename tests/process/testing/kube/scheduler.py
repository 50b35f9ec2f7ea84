"""Gives pods to nodes, the one with most free processors first, or says why none will do, in the words of the real
scheduler. Those of a group are bound all at once (gangs.py)."""

import collections
import decimal
import fnmatch

import cluster as clusters
import gangs
import quantities
import selectors_of as selectors

HOSTNAME = "kubernetes.io/hostname"


def _tolerates(pod, taint):
    for one in pod["spec"].get("tolerations") or []:
        if one.get("effect") not in (None, "", taint["effect"]):
            continue
        if one.get("key") in (None, ""):
            if one.get("operator") == "Exists":
                return True
        elif one["key"] == taint["key"] and (one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", "")):
            return True
    return False


def _node_term_holds(node, term):
    labels = node["metadata"].get("labels") or {}
    return all(selectors.holds(labels, one["key"], one["operator"], set(one.get("values") or []))
               for one in term.get("matchExpressions") or []) and all(
                   selectors.holds({"metadata.name": node["metadata"]["name"]}, one["key"], one["operator"], set(one["values"]))
                   for one in term.get("matchFields") or [])


def _is_wanted(pod, node):
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return not affinity or any(_node_term_holds(node, term) for term in affinity.get("nodeSelectorTerms") or [])


def _waits(pod):
    return not (pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates") or pod["metadata"].get("deletionTimestamp"))


def _domain_of(node, key):
    return (node["metadata"].get("labels") or {}).get(key)


class Scheduler:
    def __init__(self, cluster):
        self._cluster = cluster

    def turn(self):
        """Looks at every pod that waits."""
        pods = self._cluster.store.list("pods")
        faults = self._cluster.faults()  # read behind the pods, as these are made once it is scripted what befalls them
        if faults["hold_scheduling"]:
            return
        groups = {}
        for pod in sorted(filter(_waits, pods), key=lambda one: -one["spec"].get("priority", 0)):
            kind = gangs.kind_of(pod, faults.get("apis", ()))
            name = kind and kind.group_of(pod)
            if name:
                groups.setdefault((kind, pod["metadata"]["namespace"], name), []).append(pod)
            elif kind or pod["spec"].get("schedulerName") == "default-scheduler":
                self._place(pod, faults)
        for (kind, namespace, name), waiting in groups.items():
            self._place_gang(kind, namespace, name, waiting, faults)

    def _place(self, pod, faults):
        node, why_not = self._find(pod, faults, self._placed())
        if node is None:
            return self._refuse(pod, why_not)
        return self._bind(pod, node)

    def _place_gang(self, kind, namespace, name, waiting, faults):
        """Binds the pods of a group once as many as its minMember have a node, together with those that have been bound before."""
        group = self._cluster.store.get(kind.resource, namespace, name)
        if group is None:
            for pod in waiting if kind.missing else []:
                self._refuse(pod, kind.missing)
            return
        placed, least = self._placed(), group["spec"].get("minMember", 1)
        bound = sum(kind.group_of(one) == name and one["metadata"]["namespace"] == namespace for one in placed)
        if len(waiting) + bound < least:
            for pod in waiting:
                self._refuse(pod, kind.too_few.format(name=pod["metadata"]["name"], count=len(waiting) + bound, least=least))
            return
        found, short = [], []
        for pod in waiting:
            node, why_not = self._find(pod, faults, placed)
            if node is None:
                short.append((pod, why_not))
            else:
                found.append((pod, node))
                placed.append(dict(pod, spec=dict(pod["spec"], nodeName=node)))
        is_enough = len(found) + bound >= least
        for pod, node in found:
            if is_enough:
                self._bind(pod, node)
            else:
                self._refuse(pod, kind.held.format(short=len(short), count=len(waiting), least=least))
        for pod, why_not in short:
            self._refuse(pod, why_not)
        self._cluster.change_status(kind.resource, group, lambda status: status.update(phase=kind.phases[is_enough]))

    def _placed(self):
        return [one for one in self._cluster.store.list("pods") if one["spec"].get("nodeName") and not quantities.is_over(one)]

    def _find(self, pod, faults, pods):
        """Returns a node beside these pods, or None and why there is none."""
        for pattern, message in faults["unschedulable"].items():
            if fnmatch.fnmatchcase(pod["metadata"]["name"], pattern):
                return None, message
        nodes = self._cluster.store.list("nodes")
        why_not = self._claims(pod)
        if why_not:
            return None, f"0/{len(nodes)} nodes are available: {len(nodes)} {why_not}."
        reasons, best = collections.Counter(), None
        for node in nodes:
            free, why = self._look(pod, node, nodes, pods)
            reasons.update(why)
            if not why and (best is None or free > best[0]):
                best = (free, node["metadata"]["name"])
        if best is None:
            listed = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
            return None, f"0/{len(nodes)} nodes are available: {listed}." if nodes else "no nodes available to schedule pods"
        return best[1], ""

    def _look(self, pod, node, nodes, pods):
        """Returns the node's free processors, and why it won't do."""
        name = node["metadata"]["name"]
        if node.get("spec", {}).get("unschedulable"):
            return 0, ["node(s) were unschedulable"]
        for taint in node.get("spec", {}).get("taints") or []:
            if taint["effect"] in ("NoSchedule", "NoExecute") and not _tolerates(pod, taint):
                return 0, [f"node(s) had taint {{{taint['key']}: {taint.get('value', '')}}}, that the pod didn't tolerate"]
        if not _is_wanted(pod, node):
            return 0, ["node(s) didn't match Pod's node affinity"]
        if not self._keeps_apart(pod, node, nodes, pods):
            return 0, ["node(s) didn't match pod affinity/anti-affinity"]
        there = [one for one in pods if one["spec"]["nodeName"] == name]
        used = collections.defaultdict(decimal.Decimal)
        for one in there:
            quantities.added(used, quantities.of_pod(one))
        total = {key: quantities.parse(text) for key, text in node["status"].get("allocatable", {}).items()}
        short = [f"Insufficient {key}" for key, amount in sorted(quantities.of_pod(pod).items())
                 if amount > 0 and used[key] + amount > total.get(key, 0)]
        if len(there) + 1 > total.get("pods", 110):
            short.append("Too many pods")
        return total.get("cpu", 0) - used["cpu"], short

    @staticmethod
    def _keeps_apart(pod, node, nodes, pods):
        affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or []:
            domain = _domain_of(node, term.get("topologyKey", HOSTNAME))
            same = {one["metadata"]["name"] for one in nodes if _domain_of(one, term.get("topologyKey", HOSTNAME)) == domain}
            if any(one["spec"]["nodeName"] in same and one["metadata"]["namespace"] == pod["metadata"]["namespace"]
                   and selectors.chosen_by(term.get("labelSelector"), one["metadata"].get("labels") or {}) for one in pods):
                return False
        return True

    def _claims(self, pod):
        for volume in pod["spec"].get("volumes") or []:
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if not name:
                continue
            claim = self._cluster.store.get("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.get("status", {}).get("phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return ""

    def _refuse(self, pod, message):
        def change(status):
            clusters.set_condition(status, "PodScheduled", "False", "Unschedulable", message)
        before = pod.get("status")
        after = self._cluster.change_status("pods", pod, change)
        if after is not None and after["status"] != before:
            self._cluster.event(pod, "FailedScheduling", message, "Warning", "default-scheduler")

    def _bind(self, pod, node):
        def change(value):
            value["spec"]["nodeName"] = node
            clusters.set_condition(value["status"], "PodScheduled", "True")
        meta = pod["metadata"]
        self._cluster.store.change("pods", meta["namespace"], meta["name"], change)
        self._cluster.event(pod, "Scheduled", f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}",
                            source="default-scheduler")
