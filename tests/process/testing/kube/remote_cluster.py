"""The objects of a real API server, as the stand-in's scheduler and controllers want them: what Cluster and Store are for those of
this process. Only what they call is here. Used by one thread."""

import json
import threading

import client as clients
import cluster as clusters
import errors
import patches
import real_api
import resources
import store as stores

OWN = "standin"  # what controllers themselves remember; it isn't in the API
KINDS = ("pods", "services", "endpoints", "secrets", "configmaps", "jobs.batch")  # of which objects without an owner are deleted
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _remembered(job):
    """Adds the fields that an API server older than them has dropped: `kubectl apply` keeps all that it has applied as a text."""
    applied = json.loads((job["metadata"].get("annotations") or {}).get(APPLIED, "{}"))
    spec = patches.merge(applied.get("spec") or {}, job["spec"])
    return dict(job, spec={"completionMode": "NonIndexed", "suspend": False, **spec})


class RemoteStore:
    version = 0  # nothing is watched

    def __init__(self, client, path):
        self._client, self._own, self._ended = client, stores.Store(path), threading.Event()
        self._resources = {one.key: one for one in resources.BUILT_IN}

    def path(self, key, namespace, name=""):
        """`namespace`: none for objects of all namespaces."""
        path = self._resources[key].path()
        path = path.replace("{namespace}", namespace) if namespace else path.replace("namespaces/{namespace}/", "")
        return path + ("/" + name if name else "")

    def _whole(self, key, value):
        """Objects of a list don't say what they are."""
        value = dict(value, kind=self._resources[key].kind, apiVersion=self._resources[key].api_version)
        return _remembered(value) if key == "jobs.batch" else value

    def resources(self):
        return KINDS

    def list(self, key, namespace=None):
        return [self._whole(key, value) for value in self._client.call("GET", self.path(key, namespace))["items"] or []]

    def get(self, key, namespace, name):
        if key == OWN:
            return self._own.get(key, namespace, name)
        try:
            return self._whole(key, self._client.call("GET", self.path(key, namespace, name)))
        except clients.Refused as refused:
            if refused.code != 404:
                raise
            return None

    def create(self, key, value):
        return self._own.create(key, value)

    def delete(self, key, namespace, name):
        return self._own.delete(key, namespace, name)

    def change(self, key, namespace, name, function):
        """As Store.change: nothing happens if the object is as before."""
        if key == OWN:
            return self._own.change(key, namespace, name, function)
        before = self.get(key, namespace, name)
        if before is None:
            raise stores.Absent(name)
        value = stores.copied(before)
        function(value)
        if value == before:
            return before
        try:
            return self._whole(key, self._put(key, before, value))
        except clients.Refused as refused:
            if refused.code == 404:
                raise stores.Absent(name) from refused
            if refused.code == 409:
                raise stores.Conflict(name) from refused
            raise

    def _put(self, key, before, value):
        meta = value["metadata"]
        path = self.path(key, meta.get("namespace"), meta["name"])
        node = value.get("spec", {}).get("nodeName")
        if key == "pods" and node != before["spec"].get("nodeName"):
            self._client.call("POST", path + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]},
                                                          "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
            return value
        part = "/status" if value.get("status") != before.get("status") else ""
        return self._client.call("PUT", path + part, value)

    def changes_after(self, version, timeout):
        """Waits until it is time for the next look."""
        self._ended.wait(timeout)
        return version, []


class RemoteCluster(clusters.AnyCluster):
    is_real = True

    def __init__(self, client, folder):
        super().__init__(RemoteStore(client, folder + "/journal"))
        self._client, self._events = client, real_api.Events(client)

    def resource(self, key):
        return next(one for one in resources.BUILT_IN if one.key == key)

    def resources(self):
        return [self.resource(key) for key in KINDS]

    def faults(self):
        return real_api.faults(self._client)

    def create(self, resource, value, namespace):
        value = dict(value, apiVersion=resource.api_version, kind=resource.kind)
        try:
            return self._client.call("POST", self.store.path(resource.key, namespace), value)
        except clients.Refused as refused:
            raise errors.ApiError(refused.code, "Refused", str(refused)) from refused

    def delete(self, resource, namespace, name):
        try:
            self._client.call("DELETE", self.store.path(resource.key, namespace, name), {"propagationPolicy": "Background"})
        except clients.Refused as refused:
            if refused.code != 404:
                raise

    def event(self, about, reason, message, kind="Normal", source="standin"):
        self._events.tell(about, reason, message, kind, source)
