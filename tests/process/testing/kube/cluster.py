"""The API without its transport: what each verb does to objects. Controllers call it as well as clients."""

import copy
import dataclasses
import datetime
import ipaddress
import threading
import uuid

import access
import admission
import errors
import patches
import resources
import store as stores
import times

FAULTS = {"images": ["*"], "forbid": [], "apis": [], "unschedulable": {}, "hold_scheduling": False, "dns_delay_s": 0,
          "storage_classes": ["standard"]}
SAME_EVENT_S = 3


@dataclasses.dataclass
class Settings:
    folder: str = ""  # of the state
    address: str = "127.0.0.1"
    port: int = 6443
    claims: str = ""  # the folder of claims' contents, which all nodes see
    node_grace_s: float = 4  # a node that is silent for longer isn't ready
    node_eviction_s: float = 300  # its pods are deleted after as long, if they don't say otherwise
    pod_addresses: str = ""  # FIRST-LAST, where pods have addresses of their own


class AnyCluster:
    """What scheduler and controllers ask, wherever the objects are: in this process (Cluster) or behind a real API server
    (remote_cluster.RemoteCluster)."""

    is_real = False

    def __init__(self, store):
        self.store = store
        self.ended = threading.Event()

    def change_status(self, resource_key, value, function):
        """Calls function(status) on a copy of what there is now; nothing if it is gone."""
        try:
            return self.store.change(resource_key, value["metadata"].get("namespace", ""), value["metadata"]["name"],
                                     lambda changed: function(changed.setdefault("status", {})))
        except stores.Absent:
            return None


class Cluster(AnyCluster):
    def __init__(self, settings, tokens):
        super().__init__(stores.Store(settings.folder + "/journal"))
        self.settings, self.tokens = settings, tokens
        self.heartbeats = {}
        self._ensure_faults()
        for name in ("default", "kube-system"):
            if self.store.get("namespaces", "", name) is None:
                self.create(self.resource("namespaces"), {"metadata": {"name": name}})

    # ---- scripts ----

    def _ensure_faults(self):
        if self.store.get("standin", "", "faults") is None:
            self.store.create("standin", {"metadata": {"name": "faults"}, "faults": FAULTS})

    def faults(self):
        return self.store.get("standin", "", "faults")["faults"]

    def script(self, patch):
        """Merges into what is scripted, and returns all of it."""
        unknown = sorted(set(patch) - set(FAULTS))
        if unknown:
            raise errors.bad_request(f"unknown faults {unknown}; known: {sorted(FAULTS)}")

        def change(value):
            for key, new in patch.items():
                value["faults"][key] = new
        return self.store.change("standin", "", "faults", change)["faults"]

    def new_address(self):
        """Returns one that no pod has had, as long as there is one."""
        first, last = (int(ipaddress.ip_address(one)) for one in self.settings.pod_addresses.split("-"))
        with self.store.locked():
            if self.store.get("standin", "", "addresses") is None:
                self.store.create("standin", {"metadata": {"name": "addresses"}, "given": 0})

            def change(value):
                value["given"] += 1
            given = self.store.change("standin", "", "addresses", change)["given"]
        return str(ipaddress.ip_address(first + (given - 1) % (last - first + 1)))

    # ---- resources ----

    def resources(self):
        return resources.all_resources(self.faults()["apis"])

    def resource(self, key):
        return next(resource for resource in self.resources() if resource.key == key)

    def may(self, user, verb, group, what, namespace, name):
        return access.may(self.store, self.faults()["forbid"], user, verb, group, what, namespace, name)

    # ---- verbs ----

    def get(self, resource, namespace, name):
        if resource.key == "customresourcedefinitions.apiextensions.k8s.io":
            for definition in self.definitions():
                if definition["metadata"]["name"] == name:
                    return definition
        value = self.store.get(resource.key, namespace, name)
        if value is None:
            raise errors.not_found(resource, name)
        return value

    def definitions(self):
        """The custom resources as objects."""
        return [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                 "metadata": {"name": one.key, "resourceVersion": "1", "creationTimestamp": times.text()},
                 "spec": {"group": one.group, "scope": "Namespaced" if one.namespaced else "Cluster",
                          "names": {"kind": one.kind, "plural": one.plural, "singular": one.kind.lower()},
                          "versions": [{"name": one.version, "served": True, "storage": True}]}}
                for one in self.resources()[len(resources.BUILT_IN):]]

    def create(self, resource, value, namespace="", dry_run=False):
        value = copy.deepcopy(value)
        meta = value.setdefault("metadata", {})
        meta["namespace"] = namespace or meta.get("namespace", "")
        if not resource.namespaced:
            meta.pop("namespace")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + admission.random_end()
        if not meta.get("name"):
            raise errors.invalid(resource, "", ("metadata.name", "Required value: name or generateName is required"))
        for key in ("resourceVersion", "deletionTimestamp", "managedFields"):
            meta.pop(key, None)
        meta["uid"], meta["creationTimestamp"] = str(uuid.uuid4()), times.text()
        value["apiVersion"], value["kind"] = resource.api_version, resource.kind
        with self.store.locked():
            if resource.namespaced:
                self._check_namespace(resource, meta["namespace"], meta["name"])
            if self.store.get(resource.key, meta.get("namespace", ""), meta["name"]) is not None:
                raise errors.exists(resource, meta["name"])
            admission.admit(self, resource, value)
            if dry_run:
                return value
            created = self.store.create(resource.key, value)
            if resource.key == "namespaces":
                self._furnish(meta["name"])
            return created

    def _check_namespace(self, resource, namespace, name):
        found = self.store.get("namespaces", "", namespace)
        if found is None:
            raise errors.not_found(self.resource("namespaces"), namespace)
        if found["metadata"].get("deletionTimestamp"):
            raise errors.forbidden(resource, name, f"unable to create new content in namespace {namespace} because it is being "
                                   "terminated")

    def _furnish(self, namespace):
        self.create(self.resource("serviceaccounts"), {"metadata": {"name": "default"}}, namespace)

    def update(self, resource, namespace, name, value, subresource="", dry_run=False):
        version = value.get("metadata", {}).get("resourceVersion")
        return self._change(resource, namespace, name, lambda _old: value, version, subresource, dry_run)

    def patch(self, resource, namespace, name, content_type, patch, subresource="", dry_run=False):
        if content_type == "application/apply-patch+yaml" and self.store.get(resource.key, namespace, name) is None:
            return self.create(resource, dict(patch, metadata=dict(patch.get("metadata", {}), name=name)), namespace, dry_run)
        version = patch.get("metadata", {}).get("resourceVersion") if isinstance(patch, dict) else None

        def patched(old):
            try:
                return patches.apply(content_type, old, patch)
            except patches.BadPatch as error:
                raise errors.ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {error}") \
                    from error
        return self._change(resource, namespace, name, patched, version, subresource, dry_run)

    def _change(self, resource, namespace, name, made, version, subresource, dry_run):
        def change(value):
            new = made(patches.copied(value))
            self._check_change(resource, value, new, subresource)
            if subresource == "status":
                status = new.get("status")
                if status is not None:
                    value["status"] = status
                return
            kept = {key: value["metadata"].get(key)
                    for key in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                                "deletionGracePeriodSeconds", "resourceVersion")}
            before = value.get("status")
            value.clear()
            value.update(patches.copied(new))
            value.setdefault("metadata", {}).update({key: old for key, old in kept.items() if old is not None})
            value["metadata"].pop("managedFields", None)
            value["apiVersion"], value["kind"] = resource.api_version, resource.kind
            if "status" in resource.subresources and before is not None:
                value["status"] = before
            if resource.key == "secrets":
                admission.fill_secret(value)
            admission.check_names(resource, value)

        with self.store.locked():
            current = self.get(resource, namespace, name)
            if dry_run:
                value = patches.copied(current)
                change(value)
                return value
            try:
                changed = self.store.change(resource.key, namespace, name, change, version)
            except stores.Conflict as error:
                raise errors.conflict(resource, name) from error
            grace = changed["metadata"].get("deletionGracePeriodSeconds") or 0
            if changed["metadata"].get("deletionTimestamp") and not self._is_held(resource, changed, grace):
                self.store.delete(resource.key, namespace, name)
            return changed

    @staticmethod
    def _check_change(resource, old, new, subresource):
        if not isinstance(new, dict) or new.get("metadata", {}).get("name", old["metadata"]["name"]) != old["metadata"]["name"]:
            raise errors.bad_request("the name of the object does not match the name on the URL")
        if resource.key == "pods" and not subresource:
            fixed = {key: value for key, value in new.get("spec", {}).items()
                     if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")}
            before = {key: value for key, value in old["spec"].items()
                      if key not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")}
            if [dict(one, image="") for one in fixed.pop("containers", [])] != [
                    dict(one, image="") for one in before.pop("containers")] or fixed != before:
                raise errors.invalid(resource, old["metadata"]["name"], (
                    "spec", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
                    "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to "
                    "existing tolerations)"))
        if resource.key == "jobs.batch" and not subresource:
            for key in ("template", "selector", "completionMode"):
                if new.get("spec", {}).get(key) != old["spec"].get(key) and not (key == "template" and old["spec"]["suspend"]):
                    raise errors.invalid(resource, old["metadata"]["name"], (f"spec.{key}", "Invalid value: field is immutable"))
        if resource.key in ("secrets", "configmaps") and old.get("immutable") and (
                new.get("data"), new.get("stringData")) != (old.get("data"), None):
            raise errors.invalid(resource, old["metadata"]["name"], ("data", "Forbidden: field is immutable when `immutable` "
                                                                     "is set"))

    # ---- the end of objects ----

    def delete(self, resource, namespace, name, options=None, dry_run=False):
        """Returns the object, as it ends or as it was, and whether it is gone."""
        options = options or {}
        with self.store.locked():
            value = self.get(resource, namespace, name)
            wanted = (options.get("preconditions") or {}).get("uid")
            if wanted and wanted != value["metadata"]["uid"]:
                raise errors.ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource.key} "{name}": Precondition '
                                      f"failed: UID in precondition: {wanted}, UID in object meta: {value['metadata']['uid']}")
            grace = self._grace(resource, value, options.get("gracePeriodSeconds"))
            if dry_run:
                return value, False
            if options.get("propagationPolicy") == "Orphan" or options.get("orphanDependents"):
                self._orphan(value["metadata"]["uid"])
            if grace == 0 and not self._is_held(resource, value, grace):
                return self.store.delete(resource.key, namespace, name), True

            def change(changed):
                meta = changed["metadata"]
                if not meta.get("deletionTimestamp") or grace < meta.get("deletionGracePeriodSeconds", 0):
                    meta["deletionTimestamp"] = times.text(times.now() + datetime.timedelta(seconds=grace))
                    meta["deletionGracePeriodSeconds"] = grace
                if resource.key == "namespaces":
                    changed["status"]["phase"] = "Terminating"
            return self.store.change(resource.key, namespace, name, change), False

    @staticmethod
    def _grace(resource, value, asked):
        if resource.key != "pods" or not value["spec"].get("nodeName"):
            return 0
        if value.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return 0
        return value["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else max(0, asked)

    @staticmethod
    def _is_held(resource, value, grace):
        """Whether something has to happen before the object goes."""
        if value["metadata"].get("finalizers"):
            return True
        if resource.key == "namespaces":
            return bool(value.get("spec", {}).get("finalizers"))
        return resource.key == "pods" and grace > 0

    def _orphan(self, uid):
        for key in self.store.resources():
            for value in self.store.list(key):
                owners = value["metadata"].get("ownerReferences") or []
                if any(owner["uid"] == uid for owner in owners):
                    self.store.change(key, value["metadata"].get("namespace", ""), value["metadata"]["name"],
                                      lambda one: one["metadata"].update(ownerReferences=[
                                          owner for owner in one["metadata"]["ownerReferences"] if owner["uid"] != uid]))

    # ---- what several callers need ----

    def event(self, about, reason, message, kind="Normal", source="standin"):
        """Tells what happens to an object; the same again counts, but only every few seconds."""
        meta = about["metadata"]
        namespace = meta.get("namespace") or "default"
        involved = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": meta["name"], "uid": meta.get("uid", ""),
                    "namespace": meta.get("namespace", "")}
        with self.store.locked():
            for known in self.store.list("events", namespace):
                if known["involvedObject"].get("uid") == meta.get("uid") and (known["reason"], known["message"]) == (reason, message):
                    if times.since(known["lastTimestamp"]) < SAME_EVENT_S:
                        return

                    def again(event):
                        event.update(count=event["count"] + 1, lastTimestamp=times.text())
                    self.store.change("events", namespace, known["metadata"]["name"], again)
                    return
            try:
                self.create(self.resource("events"), {
                    "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}"}, "involvedObject": involved, "reason": reason,
                    "message": message, "type": kind, "count": 1, "firstTimestamp": times.text(), "lastTimestamp": times.text(),
                    "source": {"component": source}}, namespace)
            except errors.ApiError:
                return  # its namespace ends


def set_condition(status, kind, state, reason="", message=""):
    """Sets a condition; the time changes with its state only."""
    conditions = status.setdefault("conditions", [])
    found = next((one for one in conditions if one["type"] == kind), None)
    if found is None:
        found = {"type": kind, "status": None}
        conditions.append(found)
    if found["status"] != state:
        found["lastTransitionTime"] = times.text()
    for key, value in (("reason", reason), ("message", message)):
        if value:
            found[key] = value
        else:
            found.pop(key, None)
    found["status"] = state
