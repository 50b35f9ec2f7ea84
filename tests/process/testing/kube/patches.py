"""The ways in which a client says how an object changes: RFC 7386 (merge), RFC 6902 (operations), and Kubernetes' own
"strategic" merge, which knows by which key the entries of a list are told apart."""

from store import copied

# Lists whose entries are merged by a key; `ports` has one of two.
MERGE_KEYS = {
    "containers": ("name",), "initContainers": ("name",), "ephemeralContainers": ("name",), "env": ("name",),
    "volumes": ("name",), "volumeMounts": ("mountPath",), "volumeDevices": ("devicePath",), "ports": ("containerPort", "port"),
    "conditions": ("type",), "hostAliases": ("ip",), "imagePullSecrets": ("name",), "ownerReferences": ("uid",),
    "secrets": ("name",), "taints": ("key",), "topologySpreadConstraints": ("topologyKey",), "schedulingGates": ("name",),
    "addresses": ("type",),
}
# Lists of plain values that are merged as sets.
MERGED_SETS = {"finalizers"}


class BadPatch(Exception):
    """A patch that can't be applied."""


def merge(target, patch):
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target, patch):
    if not isinstance(patch, dict):
        return copied(patch)
    if patch.get("$patch") == "replace":
        return {key: copied(value) for key, value in patch.items() if not key.startswith("$")}
    result = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.split("/", 1)[1]
            result[name] = [entry for entry in result.get(name, []) if entry not in value]
        elif key.startswith("$"):
            continue  # an order of the list, which is kept as it comes
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merged_list(key, result.get(key) or [], value)
        elif isinstance(value, dict) and value.get("$patch") == "delete":
            result.pop(key, None)
        else:
            result[key] = strategic(result.get(key), value)
    return result


def _merged_list(name, target, patch):
    if name in MERGED_SETS:
        return target + [entry for entry in patch if entry not in target]
    keys = MERGE_KEYS.get(name, ())
    key = next((key for key in keys if all(isinstance(entry, dict) and (key in entry or "$patch" in entry)
                                           for entry in patch + target)), None)
    if key is None:
        return copied(patch)
    if any(entry.get("$patch") == "replace" for entry in patch):
        return [copied(entry) for entry in patch if "$patch" not in entry]
    result = list(target)
    for entry in patch:
        at = next((i for i, old in enumerate(result) if old.get(key) == entry.get(key)), None)
        if entry.get("$patch") == "delete":
            if at is not None:
                del result[at]
        elif at is None:
            result.append(strategic({}, entry))
        else:
            result[at] = strategic(result[at], entry)
    return result


def operations(target, patch):
    """Applies a list of add, remove, replace, test, copy and move."""
    root = {"": copied(target)}
    for step in patch:
        kind, value = step.get("op"), copied(step.get("value"))
        if kind in ("copy", "move"):
            value = copied(_at(root, step["from"]))
            if kind == "move":
                _remove(root, step["from"])
        if kind == "test":
            if _at(root, step["path"]) != value:
                raise BadPatch(f"testing value {step['path']} failed")
        elif kind == "remove":
            _remove(root, step["path"])
        elif kind in ("add", "copy", "move", "replace"):
            _set(root, step["path"], value, replace=kind == "replace")
        else:
            raise BadPatch(f"unexpected kind: {kind}")
    return root[""]


def _parent(root, path):
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]
    here = root
    for part in parts[:-1]:
        here = _child(here, part, path)
    return here, parts[-1]


def _child(here, part, path):
    try:
        return here[int(part)] if isinstance(here, list) else here[part]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise BadPatch(f"the path {path} doesn't exist") from error


def _at(root, path):
    here, part = _parent(root, path)
    return _child(here, part, path)


def _remove(root, path):
    here, part = _parent(root, path)
    _child(here, part, path)
    del here[int(part) if isinstance(here, list) else part]


def _set(root, path, value, replace):
    here, part = _parent(root, path)
    if isinstance(here, list):
        if part == "-":
            here.append(value)
        elif replace:
            _child(here, part, path)
            here[int(part)] = value
        else:
            here.insert(int(part), value)
    else:
        if replace:
            _child(here, part, path)
        here[part] = value


def apply(content_type, target, patch):
    if content_type == "application/json-patch+json":
        return operations(target, patch)
    if content_type == "application/merge-patch+json":
        return merge(target, patch)
    return strategic(target, patch)  # also for application/apply-patch+yaml
