"""What becomes of an object before it is kept: its defaults, what is refused in it, and the quotas of its namespace."""

import base64
import decimal
import re
import secrets

import errors
import quantities

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
DOTTED_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
WRONG_NAME = ("a lowercase RFC 1123 {} must consist of lower case alphanumeric characters, '-'{}, and must start and end "
              "with an alphanumeric character")
OF_ONE_LABEL = ("namespaces", "services")
KUEUE = "kueue.x-k8s.io/"
GATE, MANAGED = KUEUE + "admission", KUEUE + "managed"
QUEUE, GROUP, COUNT = KUEUE + "queue-name", KUEUE + "pod-group-name", KUEUE + "pod-group-total-count"
AWAY = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def random_end():
    return "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))


def check_names(resource, value):
    name = value["metadata"].get("name", "")
    shape, most, words = (NAME, 63, ("label", "")) if resource.plural in OF_ONE_LABEL else (
        DOTTED_NAME, 253, ("subdomain", " or '.'"))
    if resource.group != "rbac.authorization.k8s.io":
        if not shape.fullmatch(name):
            raise errors.invalid(resource, name, ("metadata.name", f'Invalid value: "{name}": ' + WRONG_NAME.format(*words)))
        if len(name) > most:
            raise errors.invalid(resource, name, ("metadata.name", f'Invalid value: "{name}": must be no more than {most} '
                                                  "characters"))
    for key, text in (value["metadata"].get("labels") or {}).items():
        if not isinstance(text, str):
            raise errors.bad_request(f'{resource.kind} in version "{resource.version}" cannot be handled as a '
                                     f"{resource.kind}: json: cannot unmarshal {text!r} into Go struct field "
                                     "ObjectMeta.metadata.labels of type string")
        if len(text) > 63 or not LABEL_VALUE.fullmatch(text):
            raise errors.invalid(resource, name, ("metadata.labels", f'Invalid value: "{text}": a valid label must be an empty '
                                                  f"string or consist of alphanumeric characters, '-', '_' or '.' ({key})"))


def pod_defaults(spec):
    """Also for a job's template."""
    for key, value in (("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("dnsPolicy", "ClusterFirst"),
                       ("schedulerName", "default-scheduler"), ("securityContext", {})):
        if spec.get(key) is None:
            spec[key] = value
    for container in spec.get("containers", []) + (spec.get("initContainers") or []):
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("imagePullPolicy", "IfNotPresent" if re.search(r":(?!latest$)[^/]+$", container.get("image", ""))
                             else "Always")
        for port in container.get("ports") or []:
            port.setdefault("protocol", "TCP")
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = dict(resources["limits"], **(resources.get("requests") or {}))


def _check_container(resource, name, where, container, volumes):
    if not container.get("name"):
        raise errors.invalid(resource, name, (f"{where}.name", "Required value"))
    if not NAME.fullmatch(container["name"]):
        raise errors.invalid(resource, name, (f"{where}.name", f'Invalid value: "{container["name"]}": ' +
                                              WRONG_NAME.format("label", "")))
    if not container.get("image"):
        raise errors.invalid(resource, name, (f"{where}.image", "Required value"))
    for mount in container.get("volumeMounts") or []:
        if mount.get("name") not in volumes:
            raise errors.invalid(resource, name, (f"{where}.volumeMounts[0].name", f'Not found: "{mount.get("name")}"'))
    for entry in container.get("env") or []:
        if not isinstance(entry.get("value", ""), str):
            raise errors.bad_request(f'{resource.kind} in version "v1" cannot be handled as a {resource.kind}: json: cannot '
                                     "unmarshal into Go struct field EnvVar.value of type string")
    wanted = container["resources"]
    for kind in ("requests", "limits"):
        for what, text in (wanted.get(kind) or {}).items():
            try:
                quantities.parse(text)
            except quantities.BadQuantity as error:
                raise errors.bad_request(f'{resource.kind} in version "v1" cannot be handled as a {resource.kind}: {error} '
                                         f"({where}.resources.{kind}.{what}: {text!r})") from error
    for what, text in (wanted.get("limits") or {}).items():
        if quantities.parse(wanted.get("requests", {}).get(what, 0)) > quantities.parse(text):
            raise errors.invalid(resource, name, (f"{where}.resources.requests", f'Invalid value: "{wanted["requests"][what]}": '
                                                  f"must be less than or equal to {what} limit"))


def check_pod_spec(resource, name, spec, where="spec"):
    if not spec.get("containers"):
        raise errors.invalid(resource, name, (f"{where}.containers", "Required value"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    if spec.get("serviceAccountName") and not spec.get("automountServiceAccountToken") is False:
        volumes.add("kube-api-access")
    seen = set()
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(kind) or []):
            _check_container(resource, name, f"{where}.{kind}[{i}]", container, volumes)
            if container["name"] in seen:
                raise errors.invalid(resource, name, (f"{where}.{kind}[{i}].name", f'Duplicate value: "{container["name"]}"'))
            seen.add(container["name"])
    if spec["restartPolicy"] not in ("Always", "OnFailure", "Never"):
        raise errors.invalid(resource, name, (f"{where}.restartPolicy", f'Unsupported value: "{spec["restartPolicy"]}": '
                                              'supported values: "Always", "OnFailure", "Never"'))
    for key in ("hostname", "subdomain"):
        if spec.get(key) and (not NAME.fullmatch(spec[key]) or len(spec[key]) > 63):
            raise errors.invalid(resource, name, (f"{where}.{key}", f'Invalid value: "{spec[key]}": ' +
                                                  WRONG_NAME.format("label", "")))


def _admit_to_kueue(cluster, resource, pod):
    """Gates a new pod of a queue, as kueue's webhook does; that one also keeps it by a finalizer. gangs.py takes the gate away."""
    labels, counted = pod["metadata"].get("labels") or {}, COUNT in (pod["metadata"].get("annotations") or {})
    if "kueue" not in cluster.faults()["apis"] or QUEUE not in labels:
        return
    if (GROUP in labels) != counted:
        raise errors.forbidden(resource, pod["metadata"]["name"], f"both the '{COUNT}' annotation and the '{GROUP}' label should be set")
    labels[MANAGED] = "true"
    pod["spec"]["schedulingGates"] = [*(pod["spec"].get("schedulingGates") or []), {"name": GATE}]


def admit_pod(cluster, resource, pod):
    namespace, name, spec = pod["metadata"]["namespace"], pod["metadata"]["name"], pod.setdefault("spec", {})
    pod_defaults(spec)
    account = spec.setdefault("serviceAccountName", spec.get("serviceAccount") or "default")
    spec["serviceAccount"] = account
    check_pod_spec(resource, name, spec)
    if cluster.store.get("serviceaccounts", namespace, account) is None:
        raise errors.forbidden(resource, name, f"error looking up service account {namespace}/{account}: serviceaccount "
                               f'"{account}" not found')
    priority = spec.get("priorityClassName")
    if priority:
        found = cluster.store.get("priorityclasses.scheduling.k8s.io", "", priority)
        if found is None:
            raise errors.forbidden(resource, name, f"no PriorityClass with name {priority} was found")
        spec["priority"] = found.get("value", 0)
    else:
        spec.setdefault("priority", 0)
    tolerations = spec.setdefault("tolerations", [])
    for key in AWAY:
        if not any(one.get("key") in (None, "", key) and one.get("effect") in (None, "", "NoExecute") for one in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute",
                                "tolerationSeconds": int(cluster.settings.node_eviction_s)})
    pod["status"] = {"phase": "Pending", "qosClass": _quality(spec)}
    _admit_to_kueue(cluster, resource, pod)
    if spec.get("schedulingGates"):
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                                        "message": "Scheduling is blocked due to non-empty scheduling gates"}]


def _quality(spec):
    all_resources = [container["resources"] for container in spec["containers"]]
    if not any(one.get("requests") or one.get("limits") for one in all_resources):
        return "BestEffort"
    guaranteed = all(one.get("limits", {}).get(what) and one["limits"][what] == one["requests"].get(what)
                     for one in all_resources for what in ("cpu", "memory"))
    return "Guaranteed" if guaranteed else "Burstable"


# ---- quotas ----

COUNTED = {"pods": "pods", "services": "services", "secrets": "secrets", "configmaps": "configmaps",
           "persistentvolumeclaims": "persistentvolumeclaims", "jobs.batch": "count/jobs.batch"}


def use_of(resource, value):
    """What an object takes of a quota, by the quota's names."""
    use = {}
    if resource.key in COUNTED:
        use[COUNTED[resource.key]] = use["count/" + resource.key] = decimal.Decimal(1)
    if resource.key == "pods":
        if quantities.is_over(value):
            return {}
        for name, amount in quantities.of_pod(value, "requests").items():
            use["requests." + name] = amount
            if name in ("cpu", "memory"):
                use[name] = amount
        for name, amount in quantities.of_pod(value, "limits").items():
            use["limits." + name] = amount
    return use


def used_in(cluster, namespace, names):
    total = {name: decimal.Decimal(0) for name in names}
    for key in COUNTED:
        resource = cluster.resource(key)
        for value in cluster.store.list(key, namespace):
            for name, amount in use_of(resource, value).items():
                if name in total:
                    total[name] += amount
    return total


def check_quotas(cluster, resource, value):
    """Refuses what exceeds a quota of its namespace."""
    namespace, name = value["metadata"].get("namespace", ""), value["metadata"]["name"]
    wanted = use_of(resource, value)
    for quota in cluster.store.list("resourcequotas", namespace) if namespace and wanted else []:
        hard = {key: quantities.parse(text) for key, text in (quota.get("spec", {}).get("hard") or {}).items()}
        if resource.key == "pods":
            unsaid = [key for key in hard if key not in wanted and re.fullmatch(r"(requests\.|limits\.)?(cpu|memory)", key)]
            if unsaid:
                raise errors.forbidden(resource, name, f"failed quota: {quota['metadata']['name']}: must specify "
                                       + ",".join(sorted(unsaid)))
        used = used_in(cluster, namespace, hard)
        over = sorted(key for key in hard if key in wanted and used[key] + wanted[key] > hard[key])
        if over:
            def listed(amounts, keys=tuple(over), texts=quota["spec"]["hard"]):
                return ",".join(f"{key}={quantities.text_of(amounts[key], texts[key])}" for key in keys)

            raise errors.forbidden(resource, name, f"exceeded quota: {quota['metadata']['name']}, requested: {listed(wanted)}, "
                                   f"used: {listed(used)}, limited: {listed(hard)}")


# ---- the other kinds ----

def admit(cluster, resource, value):
    """Fills in and checks a new object."""
    check_names(resource, value)
    special = {"pods": admit_pod, "services": _admit_service, "secrets": _admit_secret, "jobs.batch": _admit_job,
               "namespaces": _admit_namespace, "persistentvolumeclaims": _admit_claim}.get(resource.key)
    if special is not None:
        special(cluster, resource, value)
    check_quotas(cluster, resource, value)


def _admit_namespace(_cluster, _resource, value):
    value.setdefault("spec", {})["finalizers"] = ["kubernetes"]
    value["status"] = {"phase": "Active"}


def _admit_service(cluster, resource, value):
    spec = value.setdefault("spec", {})
    if not spec.get("ports") and spec.get("clusterIP") != "None":
        raise errors.invalid(resource, value["metadata"]["name"], ("spec.ports", "Required value"))
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if not spec.get("clusterIP"):
        taken = {one["spec"].get("clusterIP") for one in cluster.store.list("services")}
        spec["clusterIP"] = next(f"10.96.{i // 250}.{i % 250 + 1}" for i in range(20, 50000)
                                 if f"10.96.{i // 250}.{i % 250 + 1}" not in taken)
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    value["status"] = {"loadBalancer": {}}


def _admit_secret(_cluster, resource, value):
    fill_secret(value)
    value.setdefault("type", "Opaque")
    for key, text in (value.get("data") or {}).items():
        try:
            base64.b64decode(text or "", validate=True)
        except (ValueError, TypeError) as error:
            raise errors.bad_request(f'Secret in version "v1" cannot be handled as a Secret: illegal base64 data ({key})') from error
    if sum(len(text or "") for text in (value.get("data") or {}).values()) > 1398104:
        raise errors.invalid(resource, value["metadata"]["name"], ("data", "Too long: must have at most 1048576 bytes"))


def fill_secret(value):
    texts = value.pop("stringData", None) or {}
    if texts:
        value["data"] = dict(value.get("data") or {},
                             **{key: base64.b64encode(text.encode()).decode() for key, text in texts.items()})


def _admit_claim(cluster, resource, value):
    spec = value.setdefault("spec", {})
    if not spec.get("accessModes"):
        raise errors.invalid(resource, value["metadata"]["name"], ("spec.accessModes", "Required value: at least 1 access mode "
                                                                   "is required"))
    if not (spec.get("resources", {}).get("requests") or {}).get("storage"):
        raise errors.invalid(resource, value["metadata"]["name"], ("spec.resources[storage]", "Required value"))
    if spec.get("storageClassName") is None:
        spec["storageClassName"] = (cluster.faults().get("storage_classes") or ["standard"])[0]
    spec.setdefault("volumeMode", "Filesystem")
    value["status"] = {"phase": "Pending"}


def _admit_job(_cluster, resource, value):
    name, spec = value["metadata"]["name"], value.setdefault("spec", {})
    template = spec.get("template") or {}
    if not template.get("spec"):
        raise errors.invalid(resource, name, ("spec.template.spec", "Required value"))
    if template["spec"].get("restartPolicy") not in ("Never", "OnFailure"):
        raise errors.invalid(resource, name, ("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", '
                                              '"Never"'))
    pod_defaults(template["spec"])
    check_pod_spec(resource, name, template["spec"], "spec.template.spec")
    indexed = spec.setdefault("completionMode", "NonIndexed") == "Indexed"
    if indexed and spec.get("completions") is None:
        raise errors.invalid(resource, name, ("spec.completions", "Required value: when completion mode is Indexed"))
    if spec.get("podFailurePolicy") and template["spec"]["restartPolicy"] != "Never":
        raise errors.invalid(resource, name, ("spec.template.spec.restartPolicy", 'Invalid value: "OnFailure": only "Never" is '
                                              "supported when podFailurePolicy is specified"))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6)
    spec.setdefault("suspend", False)
    uid = value["metadata"]["uid"]
    spec.setdefault("selector", {"matchLabels": {"controller-uid": uid}})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update({"controller-uid": uid, "job-name": name, "batch.kubernetes.io/controller-uid": uid,
                   "batch.kubernetes.io/job-name": name})
    spec["template"] = template
    value["status"] = {}
