"""Who calls, and what they may do: a token of the administrator, one of the nodes, and one of each service account, whose
rights are the roles that are bound to it. A script can forbid more, to everyone but the nodes."""

import dataclasses
import fnmatch
import hashlib
import hmac

NODE_USER = "system:node"
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
READ = ["get", "list", "watch"]
# Roles that each cluster has.
ROLES = {
    "cluster-admin": EVERYTHING,
    "admin": EVERYTHING,
    "edit": [{"apiGroups": ["", "batch", "policy"], "resources": ["*"], "verbs": ["*"]}],
    "view": [{"apiGroups": ["", "batch", "policy"], "verbs": READ,
              "resources": ["pods", "pods/log", "services", "endpoints", "configmaps", "events", "jobs", "persistentvolumeclaims"]}],
}


@dataclasses.dataclass(frozen=True)
class User:
    name: str
    account: tuple = ()  # (namespace, name) of a service account
    is_admin: bool = False

    @property
    def is_node(self):
        return self.name == NODE_USER


class Tokens:
    """A service account's token can be checked without a list of those that were given."""

    def __init__(self, secret, admin, node):
        self._secret, self._admin, self._node = secret.encode(), admin, node

    def of_account(self, namespace, name):
        sign = hmac.new(self._secret, f"{namespace}/{name}".encode(), hashlib.sha256).hexdigest()
        return f"account.{namespace}.{name}.{sign}"

    def user_of(self, token):
        """Returns None for a token that is none."""
        if hmac.compare_digest(token, self._admin):
            return User("admin", is_admin=True)
        if hmac.compare_digest(token, self._node):
            return User(NODE_USER, is_admin=True)
        parts = token.split(".")
        if len(parts) == 4 and parts[0] == "account" and hmac.compare_digest(token, self.of_account(*parts[1:3])):
            return User(f"system:serviceaccount:{parts[1]}:{parts[2]}", (parts[1], parts[2]))
        return None


def _is_forbidden(rules, user, verb, what, namespace):
    return any(fnmatch.fnmatchcase(user.name, rule.get("user", "*")) and fnmatch.fnmatchcase(verb, rule.get("verb", "*"))
               and fnmatch.fnmatchcase(what, rule.get("resource", "*"))
               and fnmatch.fnmatchcase(namespace, rule.get("namespace", "*")) for rule in rules)


def _rule_allows(rule, verb, group, what, name):
    def has(values, value):
        return "*" in values or value in values

    return (has(rule.get("apiGroups") or [], group) and has(rule.get("verbs") or [], verb)
            and has(rule.get("resources") or [], what)
            and (not rule.get("resourceNames") or name in rule["resourceNames"]))


def _is_of(subject, binding_namespace, user):
    if subject.get("kind") == "ServiceAccount":
        return user.account == (subject.get("namespace") or binding_namespace, subject.get("name"))
    if subject.get("kind") == "Group":
        return user.account and subject.get("name") in (
            "system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{user.account[0]}")
    return subject.get("name") == user.name


def _rules_of(store, reference, namespace):
    if reference.get("kind") == "ClusterRole":
        role = store.get("clusterroles.rbac.authorization.k8s.io", "", reference.get("name"))
        return role.get("rules") or [] if role else ROLES.get(reference.get("name"), [])
    role = store.get("roles.rbac.authorization.k8s.io", namespace, reference.get("name"))
    return role.get("rules") or [] if role else []


def may(store, forbidden, user, verb, group, what, namespace, name):
    """`what`: "pods" or "pods/exec"; `namespace`: "" for all of them."""
    if user.is_node:
        return True
    if group in ("authorization.k8s.io", "authentication.k8s.io"):
        return True
    if _is_forbidden(forbidden, user, verb, what, namespace):
        return False
    if user.is_admin:
        return True
    bindings = list(store.list("clusterrolebindings.rbac.authorization.k8s.io"))
    if namespace:
        bindings += store.list("rolebindings.rbac.authorization.k8s.io", namespace)
    for binding in bindings:
        own = binding["metadata"].get("namespace", "")
        if any(_is_of(subject, own, user) for subject in binding.get("subjects") or []):
            if any(_rule_allows(rule, verb, group, what, name) for rule in _rules_of(store, binding["roleRef"], own)):
                return True
    return False
