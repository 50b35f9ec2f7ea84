"""A pod's volumes as folders of its node, and the variables of its containers: what both take from secrets, config maps,
claims and the pod itself."""

import base64
import os
import re
import subprocess

import client as clients
import quantities

ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Missing(Exception):
    """Something that the pod needs isn't there yet; it is looked for again."""


class Source:
    """Reads what pods name, from the API."""

    def __init__(self, client, settings):
        self.client, self.settings = client, settings

    def read(self, plural, namespace, name, kind):
        try:
            return self.client.call("GET", f"/api/v1/namespaces/{namespace}/{plural}/{name}")
        except clients.Refused as error:
            raise Missing(f'{kind} "{name}" not found') from error
        except OSError as error:
            raise Missing(f'{kind} "{name}" can\'t be read: {error}') from error

    def token(self, namespace, account):
        try:
            answer = self.client.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {})
        except (clients.Refused, OSError) as error:
            raise Missing(f"no token for the service account {account}: {error}") from error
        return answer["status"]["token"]

    def files_of(self, plural, kind, namespace, named):
        """The files of a secret or config map: name → bytes. `named`: {name, optional, items}."""
        name = named.get("secretName") or named.get("name")
        try:
            value = self.read(plural, namespace, name, kind)
        except Missing:
            if named.get("optional"):
                return {}
            raise
        data = _bytes_of(value, kind)
        if not named.get("items"):
            return data
        files = {}
        for item in named["items"]:
            if item["key"] not in data:
                raise Missing(f"references non-existent {kind} key: {item['key']}")
            files[item["path"]] = data[item["key"]]
        return files


def _bytes_of(value, kind):
    data = value.get("data") or {}
    if kind == "secret":
        return {key: base64.b64decode(text or "") for key, text in data.items()}
    return dict({key: text.encode() for key, text in data.items()},
                **{key: base64.b64decode(text) for key, text in (value.get("binaryData") or {}).items()})


def field(pod, path):
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    if match:
        return (pod["metadata"].get(match[1]) or {}).get(match[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        return "".join(f'{key}="{text}"\n' for key, text in sorted((pod["metadata"].get(path[9:]) or {}).items()))
    value = pod
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def resource_field(container, reference):
    kind, _, what = reference["resource"].partition(".")
    amount = quantities.parse((container["resources"].get(kind) or {}).get(what, 0))
    return str(int((amount / quantities.parse(reference.get("divisor") or 1)).to_integral_value("ROUND_CEILING")))


def write_files(folder, files, mode, group):
    os.makedirs(folder, exist_ok=True)
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode | (0o040 if group else 0))
        if group:
            os.chown(path, 0, group)


class Volumes:
    """Those of one pod, below a folder."""

    def __init__(self, source, pod, folder):
        self._source, self._pod, self._folder = source, pod, folder
        self._namespace = pod["metadata"]["namespace"]
        self._group = (pod["spec"].get("securityContext") or {}).get("fsGroup") or 0
        self.paths = {}

    def set_up(self):
        """Makes what isn't there yet. Raises Missing with the name of the volume."""
        for volume in self._pod["spec"].get("volumes") or []:
            if volume["name"] not in self.paths:
                try:
                    self.paths[volume["name"]] = self._one(volume)
                except Missing as error:
                    raise Missing(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from error
        if self._has_account() and "" not in self.paths:
            self.paths[""] = self._written("kube-api-access", self._account_files(), 0o644)

    def _has_account(self):
        spec = self._pod["spec"]
        if spec.get("automountServiceAccountToken") is not None:
            return spec["automountServiceAccountToken"]
        return self._source.settings.gives_tokens

    def _account_files(self):
        with open(self._source.settings.authority, "rb") as file:
            authority = file.read()
        token = self._source.token(self._namespace, self._pod["spec"]["serviceAccountName"])
        return {"token": token.encode(), "ca.crt": authority, "namespace": self._namespace.encode()}

    def _written(self, name, files, mode):
        folder = os.path.join(self._folder, name)
        write_files(folder, files, mode, self._group)
        return folder

    def _one(self, volume):
        name = volume["name"]
        if "emptyDir" in volume:
            return self._empty(name, volume["emptyDir"] or {})
        if "secret" in volume:
            named = volume["secret"]
            return self._written(name, self._source.files_of("secrets", "secret", self._namespace, named),
                                 named.get("defaultMode") or 0o644)
        if "configMap" in volume:
            named = volume["configMap"]
            return self._written(name, self._source.files_of("configmaps", "configmap", self._namespace, named),
                                 named.get("defaultMode") or 0o644)
        if "projected" in volume:
            return self._written(name, self._projected(volume["projected"]), volume["projected"].get("defaultMode") or 0o644)
        if "downwardAPI" in volume:
            return self._written(name, self._downward(volume["downwardAPI"]), 0o644)
        if "hostPath" in volume:
            return self._host_path(volume["hostPath"])
        if "persistentVolumeClaim" in volume:
            return self._claim(volume["persistentVolumeClaim"]["claimName"])
        raise Missing(f"the stand-in has no volumes of the kind {sorted(set(volume) - {'name'})}")

    def _empty(self, name, wanted):
        folder = os.path.join(self._folder, name)
        os.makedirs(folder, exist_ok=True)
        if wanted.get("medium") == "Memory":
            size = f",size={int(quantities.parse(wanted['sizeLimit']))}" if wanted.get("sizeLimit") else ""
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777" + size, "tmpfs", folder], check=True)
        os.chmod(folder, 0o777 if not self._group else 0o2777)
        if self._group:
            os.chown(folder, 0, self._group)
        return folder

    def _projected(self, projected):
        files = {}
        for source in projected.get("sources") or []:
            if "serviceAccountToken" in source:
                token = self._source.token(self._namespace, self._pod["spec"]["serviceAccountName"])
                files[source["serviceAccountToken"]["path"]] = token.encode()
            elif "secret" in source:
                files.update(self._source.files_of("secrets", "secret", self._namespace, source["secret"]))
            elif "configMap" in source and source["configMap"].get("name") == "kube-root-ca.crt":
                files["ca.crt"] = self._account_files()["ca.crt"]
            elif "configMap" in source:
                files.update(self._source.files_of("configmaps", "configmap", self._namespace, source["configMap"]))
            elif "downwardAPI" in source:
                files.update(self._downward(source["downwardAPI"]))
        return files

    def _downward(self, wanted):
        return {item["path"]: field(self._pod, item["fieldRef"]["fieldPath"]).encode() for item in wanted.get("items") or []
                if "fieldRef" in item}

    @staticmethod
    def _host_path(wanted):
        kind = wanted.get("type") or ""
        if not os.path.exists(wanted["path"]):
            if kind != "DirectoryOrCreate":
                raise Missing(f"hostPath type check failed: {wanted['path']} is not a directory")
            os.makedirs(wanted["path"])
        return wanted["path"]

    def _claim(self, name):
        claim = self._source.read("persistentvolumeclaims", self._namespace, name, "persistentvolumeclaim")
        if claim.get("status", {}).get("phase") != "Bound":
            raise Missing(f'persistentvolumeclaim "{name}" isn\'t bound')
        return os.path.join(self._source.settings.claims, claim["spec"]["volumeName"])

    def clean_up(self):
        for volume in self._pod["spec"].get("volumes") or []:
            if (volume.get("emptyDir") or {}).get("medium") == "Memory" and volume["name"] in self.paths:
                subprocess.run(["umount", "--lazy", self.paths[volume["name"]]], check=False, stderr=subprocess.DEVNULL)


# ---- variables ----

def _from(source, pod, container, entry):
    reference, namespace = entry["valueFrom"], pod["metadata"]["namespace"]
    if "fieldRef" in reference:
        return field(pod, reference["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in reference:
        return resource_field(container, reference["resourceFieldRef"])
    kind, plural, named = (("secret", "secrets", reference["secretKeyRef"]) if "secretKeyRef" in reference else
                           ("configmap", "configmaps", reference["configMapKeyRef"]))
    try:
        data = source.files_of(plural, kind, namespace, {"name": named["name"]})
        if named["key"] not in data:
            raise Missing(f"couldn't find key {named['key']} in {kind.capitalize()} {namespace}/{named['name']}")
    except Missing:
        if named.get("optional"):
            return None
        raise
    return data[named["key"]].decode(errors="replace")


def expanded(text, variables):
    """Puts values in the place of $(NAME); $$ is a dollar."""
    return re.sub(r"\$(\$|\(([^)]*)\))", lambda match: "$" if match[1] == "$" else variables.get(match[2], match[0]), text)


def variables_of(source, pod, container):
    """Raises Missing if a secret or config map isn't there."""
    variables = {"PATH": USUAL_PATH, "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"], "HOME": "/root",
                 "KUBERNETES_SERVICE_HOST": source.settings.api_host, "KUBERNETES_SERVICE_PORT": source.settings.api_port,
                 "KUBERNETES_SERVICE_PORT_HTTPS": source.settings.api_port}
    for entry in container.get("envFrom") or []:
        kind, plural = ("secret", "secrets") if "secretRef" in entry else ("configmap", "configmaps")
        named = entry.get("secretRef") or entry.get("configMapRef")
        for key, data in source.files_of(plural, kind, pod["metadata"]["namespace"], named).items():
            variables[entry.get("prefix", "") + key] = data.decode(errors="replace")
    for entry in container.get("env") or []:
        value = _from(source, pod, container, entry) if entry.get("valueFrom") else expanded(entry.get("value", ""), variables)
        if value is not None:
            variables[entry["name"]] = value
    return variables
