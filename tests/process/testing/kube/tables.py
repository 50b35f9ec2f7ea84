"""What `kubectl get` shows without -o: rows and columns that the server makes."""

import times


def age(value):
    created = value["metadata"].get("creationTimestamp")
    if not created:
        return "<unknown>"
    seconds = int(times.since(created))
    return f"{seconds}s" if seconds < 120 else f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"


def pod_state(pod):
    """The word for a pod's state that people know, such as ErrImagePull."""
    status, meta = pod.get("status", {}), pod["metadata"]
    word = status.get("reason") or status.get("phase", "Unknown")
    for one in [] if status.get("reason") else status.get("containerStatuses") or []:
        state = one.get("state", {})
        if state.get("waiting", {}).get("reason"):
            word = state["waiting"]["reason"]
        elif "terminated" in state:
            word = state["terminated"].get("reason") or f"ExitCode:{state['terminated']['exitCode']}"
    if meta.get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return word


def _pod(pod):
    statuses = pod.get("status", {}).get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in statuses)
    return [f"{ready}/{len(pod['spec'].get('containers', []))}", pod_state(pod),
            str(sum(one.get("restartCount", 0) for one in statuses))]


def _node(node):
    ready = next((one for one in node.get("status", {}).get("conditions") or [] if one["type"] == "Ready"), {})
    return ["Ready" if ready.get("status") == "True" else "NotReady"]


def _job(job):
    return [f"{job.get('status', {}).get('succeeded', 0)}/{job['spec'].get('completions', 1)}"]


def _event(event):
    return [event.get("type", ""), event["reason"], f"{event['involvedObject']['kind'].lower()}/{event['involvedObject']['name']}",
            event["message"]]


COLUMNS = {
    "pods": (["Ready", "Status", "Restarts"], _pod),
    "nodes": (["Status"], _node),
    "jobs.batch": (["Completions"], _job),
    "events": (["Type", "Reason", "Object", "Message"], _event),
    "persistentvolumeclaims": (["Status"], lambda claim: [claim.get("status", {}).get("phase", "")]),
    "namespaces": (["Status"], lambda one: [one.get("status", {}).get("phase", "")]),
    "services": (["Type", "Cluster-IP"], lambda one: [one["spec"].get("type", ""), one["spec"].get("clusterIP", "")]),
}


def table(resource, values, version):
    """`values`: objects of the resource."""
    names, cells = COLUMNS.get(resource.key, ([], lambda _value: []))
    columns = [{"name": name, "type": "string", "format": "name" if name == "Name" else "", "description": "", "priority": 0}
               for name in ["Name", *names, "Age"]]
    rows = [{"cells": [value["metadata"]["name"], *cells(value), age(value)],
             "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"]}}
            for value in values]
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
            "columnDefinitions": columns, "rows": rows}
