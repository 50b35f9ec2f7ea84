"""What keeps a cluster in order: nodes that are silent, addresses of services, namespaces that end, claims, quotas, and
objects whose owner is gone. One thread takes turns, after each change and ten times a second. The nodes, claims, namespaces and
quotas of a real API server are left alone."""

import os
import threading
import traceback

import admission
import cluster as clusters
import gangs
import job_controller
import quantities
import scheduler
import store as stores
import times

UNREACHABLE = "node.kubernetes.io/unreachable"


class Controllers:
    def __init__(self, cluster):
        self._cluster, self._store = cluster, cluster.store
        self._scheduler = scheduler.Scheduler(cluster)
        self._jobs = job_controller.JobController(cluster)
        self._begun = times.now()
        self._names_since = {}
        self._unreachable_since = {}

    def start(self):
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        version = 0
        turns = [self._scheduler.turn, self._jobs.turn, self._endpoints, self._orphans]
        if not self._cluster.is_real:
            turns = [self._nodes, gangs.Kueue(self._cluster).turn, *turns, self._claims, self._namespaces, self._quotas]
        while not self._cluster.ended.is_set():
            for turn in turns:
                try:
                    turn()
                except (stores.Absent, stores.Conflict):
                    continue  # somebody else was there first; the next turn sees it
                except Exception:  # pylint: disable=broad-except
                    traceback.print_exc()
            version = self._store.version
            try:
                self._store.changes_after(version, timeout=0.1)
            except stores.TooOld:
                continue

    # ---- nodes ----

    def _nodes(self):
        for node in self._store.list("nodes"):
            name = node["metadata"]["name"]
            heard = self._cluster.heartbeats.get(name, self._begun)
            silent = (times.now() - heard).total_seconds() > self._cluster.settings.node_grace_s
            self._mark(node, silent)
            if silent:
                self._unreachable_since.setdefault(name, times.now())
                self._lose_pods(name)
            else:
                self._unreachable_since.pop(name, None)
        names = {node["metadata"]["name"] for node in self._store.list("nodes")}
        for pod in self._store.list("pods"):
            node = pod["spec"].get("nodeName")
            if node and node not in names:  # it has been removed for good
                self._cluster.delete(self._cluster.resource("pods"), pod["metadata"]["namespace"], pod["metadata"]["name"],
                                     {"gracePeriodSeconds": 0})

    def _mark(self, node, silent):
        def change(value):
            taints = [one for one in value.setdefault("spec", {}).get("taints") or [] if one["key"] != UNREACHABLE]
            if silent:
                taints += [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
                clusters.set_condition(value["status"], "Ready", "Unknown", "NodeStatusUnknown",
                                       "Kubelet stopped posting node status.")
            else:
                clusters.set_condition(value["status"], "Ready", "True", "KubeletReady", "kubelet is posting ready status")
            value["spec"]["taints"] = taints
        changed = self._store.change("nodes", "", node["metadata"]["name"], change)
        if silent and changed["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"]:
            self._cluster.event(node, "NodeNotReady", f"Node {node['metadata']['name']} status is now: NodeNotReady")

    def _lose_pods(self, node):
        for pod in self._store.list("pods"):
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") != node or quantities.is_over(pod):
                continue

            def lost(status, name=meta["name"]):
                status["reason"], status["message"] = "NodeLost", f"Node {node} which was running pod {name} is unresponsive"
                clusters.set_condition(status, "Ready", "False", "NodeLost")
            self._cluster.change_status("pods", pod, lost)
            limit = self._patience(pod)
            silent = (times.now() - self._unreachable_since[node]).total_seconds()
            if limit is not None and silent > limit and not meta.get("deletionTimestamp"):
                self._cluster.event(pod, "TaintManagerEviction", f"Marking for deletion Pod {meta['namespace']}/{meta['name']}")
                self._cluster.delete(self._cluster.resource("pods"), meta["namespace"], meta["name"])

    @staticmethod
    def _patience(pod):
        """How long a pod stays on a node that is silent; None for ever."""
        for one in pod["spec"].get("tolerations") or []:
            if one.get("key") in (None, "", UNREACHABLE) and one.get("effect") in (None, "", "NoExecute"):
                return one.get("tolerationSeconds")
        return 0

    # ---- services ----

    def _endpoints(self):
        for service in self._store.list("services"):
            selector, meta = service["spec"].get("selector"), service["metadata"]
            if not selector:
                continue
            subset = self._subset(service, selector)
            owner = [{"apiVersion": "v1", "kind": "Service", "name": meta["name"], "uid": meta["uid"]}]
            known = self._store.get("endpoints", meta["namespace"], meta["name"])
            if known is None:
                self._cluster.create(self._cluster.resource("endpoints"), {
                    "metadata": {"name": meta["name"], "ownerReferences": owner}, "subsets": subset}, meta["namespace"])
            elif known.get("subsets") != subset:
                self._store.change("endpoints", meta["namespace"], meta["name"], lambda value, new=subset: value.update(subsets=new))

    def _subset(self, service, selector):
        ready, others = [], []
        delay = self._cluster.faults()["dns_delay_s"]
        for pod in self._store.list("pods", service["metadata"]["namespace"]):
            labels, status, meta = pod["metadata"].get("labels") or {}, pod.get("status", {}), pod["metadata"]
            if any(labels.get(key) != value for key, value in selector.items()) or not status.get("podIP"):
                continue
            if quantities.is_over(pod) or status.get("reason") == "NodeLost" and not service["spec"].get(
                    "publishNotReadyAddresses"):
                continue
            since = self._names_since.setdefault((meta["uid"], status["podIP"]), times.now())
            if (times.now() - since).total_seconds() < delay:
                continue
            address = {"ip": status["podIP"], "nodeName": pod["spec"]["nodeName"],
                       "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}}
            if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
                address["hostname"] = pod["spec"]["hostname"]
            is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or [])
            named = is_ready and not meta.get("deletionTimestamp") or service["spec"].get("publishNotReadyAddresses")
            (ready if named else others).append(address)
        if not ready and not others:
            return []
        ports = [{"name": port.get("name", ""), "port": port["targetPort"] if isinstance(port.get("targetPort"), int) else port["port"],
                  "protocol": port["protocol"]} for port in service["spec"].get("ports") or []]
        subset = {"ports": ports}
        if ready:
            subset["addresses"] = ready
        if others:
            subset["notReadyAddresses"] = others
        return [subset]

    # ---- claims ----

    def _claims(self):
        classes = self._cluster.faults()["storage_classes"]
        for claim in self._store.list("persistentvolumeclaims"):
            meta, spec = claim["metadata"], claim["spec"]
            if claim.get("status", {}).get("phase") == "Bound":
                continue
            if spec["storageClassName"] not in classes:
                self._cluster.event(claim, "ProvisioningFailed",
                                    f'storageclass.storage.k8s.io "{spec["storageClassName"]}" not found', "Warning")
                continue
            volume = "pvc-" + meta["uid"]
            folder = os.path.join(self._cluster.settings.claims, volume)
            os.makedirs(folder, exist_ok=True)

            def bound(value, name=volume):
                value["spec"]["volumeName"] = name
                value["status"] = {"phase": "Bound", "accessModes": value["spec"]["accessModes"],
                                   "capacity": dict(value["spec"]["resources"]["requests"])}
            self._cluster.create(self._cluster.resource("persistentvolumes"), {
                "metadata": {"name": volume}, "status": {"phase": "Bound"},
                "spec": {"capacity": spec["resources"]["requests"], "accessModes": spec["accessModes"], "hostPath": {"path": folder},
                         "storageClassName": spec["storageClassName"],
                         "claimRef": {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}}})
            self._store.change("persistentvolumeclaims", meta["namespace"], meta["name"], bound)

    # ---- ends ----

    def _namespaces(self):
        for namespace in self._store.list("namespaces"):
            name = namespace["metadata"]["name"]
            if not namespace["metadata"].get("deletionTimestamp"):
                continue
            left = 0
            for resource in self._cluster.resources():
                for value in self._store.list(resource.key, name) if resource.namespaced else []:
                    left += 1
                    if not value["metadata"].get("deletionTimestamp"):
                        self._cluster.delete(resource, name, value["metadata"]["name"])
            if not left:
                self._store.delete("namespaces", "", name)

    def _orphans(self):
        """Deletes objects that had owners, none of which is left."""
        owned = [(resource, value["metadata"]) for resource in self._cluster.resources() for value in self._store.list(resource.key)
                 if value["metadata"].get("ownerReferences") and not value["metadata"].get("deletionTimestamp")]
        if not owned:
            return
        # Read behind them, so that an owner is there if its object was.
        known = {one["metadata"].get("uid") for key in self._store.resources() for one in self._store.list(key)}
        for resource, meta in owned:
            if not any(owner["uid"] in known for owner in meta["ownerReferences"]):
                self._cluster.delete(resource, meta.get("namespace", ""), meta["name"])

    def _quotas(self):
        for quota in self._store.list("resourcequotas"):
            hard = quota.get("spec", {}).get("hard") or {}
            used = admission.used_in(self._cluster, quota["metadata"]["namespace"], hard)
            status = {"hard": hard, "used": {key: quantities.text_of(used[key], hard[key]) for key in hard}}
            self._cluster.change_status("resourcequotas", quota, lambda value, new=status: value.update(new))
