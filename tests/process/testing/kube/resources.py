"""The kinds of objects that the stand-in knows, and how a client finds them: discovery, and an OpenAPI document that
names no more than kubectl looks for, the paths that can be tried without effect (dryRun)."""

import dataclasses

from protobuf import field

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@dataclasses.dataclass(frozen=True)
class Resource:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple = ()
    subresources: tuple = ()
    older: tuple = ()  # versions that are served besides
    verbs: tuple = tuple(VERBS)

    @property
    def key(self):
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, version=None):
        version = version or self.version
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return root + ("/namespaces/{namespace}/" if self.namespaced else "/") + self.plural


RBAC = "rbac.authorization.k8s.io"
BUILT_IN = (
    Resource("", "v1", "namespaces", "Namespace", False, ("ns",), ("status", "finalize")),
    Resource("", "v1", "nodes", "Node", False, ("no",), ("status",)),
    Resource("", "v1", "pods", "Pod", True, ("po",), ("status", "log", "exec", "eviction", "binding")),
    Resource("", "v1", "services", "Service", True, ("svc",), ("status",)),
    Resource("", "v1", "endpoints", "Endpoints", True, ("ep",)),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",), ("token",)),
    Resource("", "v1", "events", "Event", True, ("ev",)),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",), ("status",)),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",), ("status",)),
    Resource("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",), ("status",)),
    Resource("", "v1", "limitranges", "LimitRange", True, ("limits",)),
    Resource("batch", "v1", "jobs", "Job", True, (), ("status",)),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",)),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",)),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",), ("status",), ("v1beta1",)),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, ("netpol",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource(RBAC, "v1", "roles", "Role"),
    Resource(RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource(RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds"),
             (), ("v1beta1",)),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False,
             verbs=("create",)),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, verbs=("create",)),
)

# What a script switches on by one word: objects that are kept. gangs.py acts on those of kueue, volcano and coscheduling.
CUSTOM = {
    "jobset": (Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", True, (), ("status",)),),
    "volcano": (Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", True, ("vg",), ("status",)),
                Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", False, ("q",), ("status",)),),
    "coscheduling": (Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", True, ("pg",), ("status",)),),
    "kueue": (Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload", True, ("wl",), ("status",)),
              Resource("kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue", True, ("lq",), ("status",)),
              Resource("kueue.x-k8s.io", "v1beta1", "clusterqueues", "ClusterQueue", False, ("cq",), ("status",)),),
    "kubeflow": (Resource("kubeflow.org", "v1", "tfjobs", "TFJob", True, (), ("status",)),),
}


def all_resources(apis):
    """The built-in ones and those of the APIs that a script has switched on. CUSTOM names an API; another one is written
    GROUP/VERSION/PLURAL/KIND."""
    found = list(BUILT_IN)
    for api in apis:
        if api in CUSTOM:
            found += CUSTOM[api]
        else:
            group, version, plural, kind = api.split("/")
            found.append(Resource(group, version, plural, kind, True, (), ("status",)))
    return found


def by_path(resources):
    """Resources by (group, version, plural)."""
    return {(resource.group, version, resource.plural): resource
            for resource in resources for version in (resource.version, *resource.older)}


def versions_of(resources):
    """The versions of each named group, the preferred one first."""
    groups = {}
    for resource in resources:
        if resource.group:
            versions = groups.setdefault(resource.group, [])
            versions += [version for version in (resource.version, *resource.older) if version not in versions]
    return groups


def core_versions():
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(resources):
    def one(group, versions):
        named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
        return {"name": group, "versions": named, "preferredVersion": named[0]}

    return {"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [one(group, versions) for group, versions in versions_of(resources).items()]}


def resource_list(resources, group, version):
    entries = []
    for resource in resources:
        if resource.group != group or version not in (resource.version, *resource.older):
            continue
        entries.append({"name": resource.plural, "singularName": resource.kind.lower(), "namespaced": resource.namespaced,
                        "kind": resource.kind, "verbs": list(resource.verbs), "shortNames": list(resource.short)})
        for name in resource.subresources:
            entries.append({"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced,
                            "kind": resource.kind, "verbs": ["get", "patch", "update"] if name == "status" else ["create", "get"]})
    if not entries:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries}


def _query_parameter(name):
    schema = field(2, "query") + field(4, name) + field(6, "string")
    return field(8, field(1, field(2, field(3, schema))))


def openapi_v2(resources):
    """The document as protobuf, of gnostic's openapi_v2.proto. kubectl finds no models in it, so it leaves it to the server to refuse unknown fields,
    which this server doesn't."""
    paths = b""
    for resource in resources:
        for version in (resource.version, *resource.older):
            kind = f'{{"group": "{resource.group}", "version": "{version}", "kind": "{resource.kind}"}}'
            patch = (_query_parameter("dryRun") + _query_parameter("fieldValidation") +
                     field(13, field(1, "x-kubernetes-group-version-kind") + field(2, field(2, kind))))
            paths += field(2, field(1, resource.path(version) + "/{name}") + field(2, field(8, patch)))
    return field(1, "2.0") + field(2, field(1, "Kubernetes") + field(2, "v1.20.2")) + field(8, paths)
