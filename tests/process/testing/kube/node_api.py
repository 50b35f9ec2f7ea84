"""What a node says to its cluster and asks of it beside the usual API: that it lives, which images there are, addresses of pods,
and events. real_api.NodeApi is the same for a real API server. Used by many threads."""


class OfStandIn:
    def __init__(self, client):
        self._client = client

    def beat(self, name):
        """Says that the node lives, and returns the scripted faults."""
        return self._client.call("POST", f"/standin/heartbeat/{name}", {})

    def images(self):
        """Returns patterns of those that exist."""
        return self._client.call("GET", "/standin/faults")["images"]

    def new_address(self):
        """Returns one that no pod has had, as long as there is one."""
        return self._client.call("POST", "/standin/address", {})["address"]

    def event(self, pod, reason, message, kind):
        self._client.call("POST", "/standin/events", {"about": pod, "reason": reason, "message": message, "type": kind,
                                                      "source": "kubelet"})
