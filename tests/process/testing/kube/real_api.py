"""What a real API server has no path of its own for, in the usual API: scripted faults, events, and what a node says and asks.
The stand-in's own API server has /standin/ for these."""

import ipaddress
import json
import threading
import time
import uuid

import client as clients
import cluster as clusters
import times

FAULTS_PATH = "/api/v1/namespaces/kube-system/configmaps/standin"  # a config map with the key "faults", as JSON


def faults(client):
    """Returns what is scripted, completed by what holds without a script."""
    try:
        text = client.call("GET", FAULTS_PATH)["data"]["faults"]
    except clients.Refused as refused:
        if refused.code != 404:
            raise
        text = "{}"
    return dict(clusters.FAULTS, **json.loads(text))


class Events:
    """Tells what happens to objects. The same again is told only every few seconds. Used by many threads."""

    def __init__(self, client):
        self._client, self._told, self._lock = client, {}, threading.Lock()

    def tell(self, about, reason, message, kind, source):
        meta, now = about["metadata"], time.monotonic()
        with self._lock:
            before = self._told.get((meta["uid"], reason, message))
            if before is not None and now - before < clusters.SAME_EVENT_S:
                return
            self._told[meta["uid"], reason, message] = now
        involved = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": meta["name"], "uid": meta["uid"],
                    "namespace": meta["namespace"]}
        try:
            self._client.call("POST", f"/api/v1/namespaces/{meta['namespace']}/events", {
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}"},
                "involvedObject": involved, "reason": reason, "message": message, "type": kind, "count": 1,
                "firstTimestamp": times.text(), "lastTimestamp": times.text(), "source": {"component": source}})
        except clients.Refused:
            return  # its namespace ends


class NodeApi:
    """As node_api.OfStandIn. The node has pods' addresses of its own, FIRST-LAST."""

    def __init__(self, client, addresses):
        self._client, self._events = client, Events(client)
        self._first, self._last = (int(ipaddress.ip_address(one)) for one in addresses.split("-"))
        self._given, self._lock = 0, threading.Lock()

    def beat(self, name):
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                 "lastHeartbeatTime": times.text(), "lastTransitionTime": times.text()}
        self._client.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, "application/merge-patch+json")
        return faults(self._client)

    def images(self):
        return faults(self._client)["images"]

    def new_address(self):
        with self._lock:
            self._given += 1
            return str(ipaddress.ip_address(self._first + (self._given - 1) % (self._last - self._first + 1)))

    def event(self, pod, reason, message, kind):
        # Objects of a list don't say what they are.
        self._events.tell(dict(pod, kind="Pod", apiVersion="v1"), reason, message, kind, "kubelet")
