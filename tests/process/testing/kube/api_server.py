"""The API as HTTPS: who calls, which object a path means, lists, watches, and what goes on to a node (logs, exec)."""

import base64
import fnmatch
import http.server
import json
import select
import socket
import ssl
import threading
import urllib.parse

import cluster as clusters
import errors
import protobuf
import resources
import selectors_of as selectors
import store as stores
import tables
import times
import tunnel

NODE_PORT = 10250
VERB_OF = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
NAME_AT_NODE = {"stdin": "input", "stdout": "output", "stderr": "error"}  # the streams of exec
JSON = "application/json"
OPENAPI = "application/octet-stream"  # the true name, with an @, is none that kubectl can read


class Target:
    """What a path means: a resource, perhaps one object of it, perhaps a part of that."""

    def __init__(self, resource, namespace, name, subresource):
        self.resource, self.namespace, self.name, self.subresource = resource, namespace, name, subresource

    @property
    def what(self):
        return self.resource.plural + ("/" + self.subresource if self.subresource else "")


def target_of(path, known):
    """Returns None for a path that isn't one of objects."""
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        namespace, parts = parts[1], parts[2:]
    resource = known.get((group, version, parts[0]))
    if resource is None or len(parts) > 3:
        return None
    return Target(resource, namespace, parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else "")


def _place_of(value):
    """Orders objects as lists do."""
    return value["metadata"].get("namespace", "") + "\0" + value["metadata"]["name"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None  # set by Server
    disable_nagle_algorithm = True

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """Keeps still: what goes wrong is in the answers."""

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (OSError, ssl.SSLError):
            self.close_connection = True

    def do_GET(self):
        self._answer()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    # ---- one request ----

    def _answer(self):
        self._body = self._read_body()
        split = urllib.parse.urlsplit(self.path)
        self._path = split.path
        self._queries = urllib.parse.parse_qs(split.query, keep_blank_values=True)
        try:
            self._user = self._who()
            self._route()
        except errors.ApiError as error:
            self._send(error.code, error.status())
        except stores.Absent as error:
            self._send(404, errors.ApiError(404, "NotFound", f'"{error}" not found').status())
        except (BrokenPipeError, ConnectionError, ssl.SSLError):
            self.close_connection = True

    def _read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _query(self, name, default=""):
        return self._queries.get(name, [default])[0]

    def _who(self):
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip()
        user = self.cluster.tokens.user_of(token) if token else None
        if user is None and self._path not in ("/version", "/healthz", "/readyz", "/livez"):
            raise errors.ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def _send(self, code, value, content_type=JSON):
        data = value if isinstance(value, bytes) else (json.dumps(value) + "\n").encode()
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _json_body(self):
        if not self._body:
            return {}
        if self._body.startswith(protobuf.MAGIC) and "selfsubjectaccessreviews" in self._path:
            return protobuf.access_review(self._body)
        if self._body.startswith(protobuf.MAGIC):
            raise errors.ApiError(415, "UnsupportedMediaType", "the stand-in reads JSON only")
        try:
            value = json.loads(self._body)
        except ValueError as error:
            raise errors.bad_request(f"couldn't parse the body as JSON: {error}") from error
        return value

    def _route(self):
        known = resources.by_path(self.cluster.resources())
        target = target_of(self._path, known)
        if target is not None:
            self._objects(target)
        elif self._path.startswith("/standin/"):
            self._standin()
        else:
            self._discovery()

    def _discovery(self):
        known, parts = self.cluster.resources(), self._path.strip("/").split("/")
        if self._path == "/version":
            return self._send(200, {"major": "1", "minor": "20", "gitVersion": "v1.20.2", "platform": "linux/amd64",
                                    "gitCommit": "0", "gitTreeState": "clean", "buildDate": times.text(), "goVersion": "none",
                                    "compiler": "none"})
        if self._path in ("/healthz", "/readyz", "/livez"):
            return self._send(200, b"ok", "text/plain")
        if self._path == "/api":
            return self._send(200, resources.core_versions())
        if self._path == "/apis":
            return self._send(200, resources.group_list(known))
        if self._path == "/openapi/v2":
            return self._send(200, resources.openapi_v2(known), OPENAPI)
        found = None
        if parts[0] == "api" and len(parts) == 2:
            found = resources.resource_list(known, "", parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = resources.resource_list(known, parts[1], parts[2])
        if found is None:
            raise errors.no_such_path()
        return self._send(200, found)

    # ---- objects ----

    def _objects(self, target):
        verb = VERB_OF[self.command]
        if verb == "get" and not target.name:
            verb = "watch" if self._query("watch") in ("true", "1") else "list"
        if verb == "delete" and not target.name:
            verb = "deletecollection"
        if target.subresource == "exec":
            verb = "create"
        group = target.resource.group
        if not self.cluster.may(self._user, verb, group, target.what, target.namespace, target.name):
            where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
            raise errors.forbidden(target.resource, target.name, f'User "{self._user.name}" cannot {verb} resource '
                                   f'"{target.what}" in API group "{group}"{where}')
        if target.subresource in ("log", "exec"):
            return self._pass_on(target)
        if verb == "list":
            return self._list(target)
        if verb == "watch":
            return self._watch(target)
        dry_run = "All" in self._queries.get("dryRun", [])
        if verb == "create":
            return self._create(target, dry_run)
        if verb == "get":
            return self._shown(target, self.cluster.get(target.resource, target.namespace, target.name))
        if verb == "deletecollection":
            return self._delete_all(target, dry_run)
        if verb == "delete":
            return self._delete(target, dry_run)
        arguments = target.resource, target.namespace, target.name
        if verb == "update":
            changed = self.cluster.update(*arguments, self._json_body(), target.subresource, dry_run)
        else:
            content_type = (self.headers.get("Content-Type") or "").split(";")[0]
            changed = self.cluster.patch(*arguments, content_type, self._json_body(), target.subresource, dry_run)
        return self._shown(target, changed)

    def _wants_table(self):
        return "as=Table" in (self.headers.get("Accept") or "")

    def _shown(self, target, value, code=200):
        if self._wants_table():
            return self._send(code, tables.table(target.resource, [value], value["metadata"].get("resourceVersion", "")))
        return self._send(code, value)

    def _matcher(self):
        return selectors.matcher(self._query("labelSelector"), self._query("fieldSelector"))

    def _listed(self, target):
        if target.resource.key == "customresourcedefinitions.apiextensions.k8s.io":
            return self.cluster.definitions()
        values = self.cluster.store.list(target.resource.key, target.namespace or None)
        return [value for value in values if self._matcher()(value)]

    def _page(self, values):
        """Returns those of a list that the query's limit and continue ask for, and where the next page begins; "" is the end."""
        last = base64.urlsafe_b64decode(self._query("continue")).decode()
        rest = [value for value in values if _place_of(value) > last]
        limit = int(self._query("limit") or 0)
        if not limit or len(rest) <= limit:
            return rest, ""
        return rest[:limit], base64.urlsafe_b64encode(_place_of(rest[limit - 1]).encode()).decode()

    def _list(self, target):
        with self.cluster.store.locked():
            values, version = self._listed(target), str(self.cluster.store.version)
        values, after = self._page(values)
        meta = {"resourceVersion": version, **({"continue": after} if after else {})}
        if self._wants_table():
            return self._send(200, dict(tables.table(target.resource, values, version), metadata=meta))
        return self._send(200, {"kind": target.resource.kind + "List", "apiVersion": target.resource.api_version,
                                "metadata": meta, "items": values})

    def _create(self, target, dry_run):
        value = self._json_body()
        if target.resource.key == "selfsubjectaccessreviews.authorization.k8s.io":
            return self._send(201, self._reviewed(value))
        if target.resource.key == "selfsubjectreviews.authentication.k8s.io":
            return self._send(201, dict(value, status={"userInfo": {"username": self._user.name}}))
        if target.subresource == "binding":
            return self._bind(target, value)
        if target.subresource == "eviction":
            self.cluster.change_status("pods", self.cluster.get(target.resource, target.namespace, target.name),
                                       lambda status: clusters.set_condition(status, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                                                                             "Eviction API: evicting"))
            self.cluster.delete(target.resource, target.namespace, target.name, value.get("deleteOptions"), dry_run)
            return self._send(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        if target.subresource == "token":
            self.cluster.get(target.resource, target.namespace, target.name)
            token = self.cluster.tokens.of_account(target.namespace, target.name)
            return self._send(201, dict(value, status={"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"}))
        created = self.cluster.create(target.resource, value, target.namespace, dry_run)
        return self._shown(target, created, 201)

    def _bind(self, target, value):
        node = value.get("target", {}).get("name")

        def change(pod):
            if pod["spec"].get("nodeName"):
                raise errors.conflict(target.resource, target.name)
            pod["spec"]["nodeName"] = node
        self.cluster.store.change("pods", target.namespace, target.name, change)
        return self._send(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})

    def _reviewed(self, review):
        wanted = review.get("spec", {}).get("resourceAttributes") or {}
        known = {(one.group, one.plural) for one in self.cluster.resources()}
        what = wanted.get("resource", "") + ("/" + wanted["subresource"] if wanted.get("subresource") else "")
        allowed = self.cluster.may(self._user, wanted.get("verb", ""), wanted.get("group", ""), what,
                                   wanted.get("namespace", ""), wanted.get("name", ""))
        if (wanted.get("group", ""), wanted.get("resource", "")) not in known and not self._user.is_admin:
            allowed = False
        return dict(review, status={"allowed": allowed, "reason": "" if allowed else "no role that is bound to the user allows it"})

    def _delete(self, target, dry_run):
        options = self._json_body()
        if self._query("gracePeriodSeconds"):
            options["gracePeriodSeconds"] = int(self._query("gracePeriodSeconds"))
        value, gone = self.cluster.delete(target.resource, target.namespace, target.name, options, dry_run)
        if not gone or target.resource.key == "pods":
            return self._send(200, value)
        details = {"name": target.name, "kind": target.resource.plural, "group": target.resource.group,
                   "uid": value["metadata"]["uid"]}
        return self._send(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})

    def _delete_all(self, target, dry_run):
        values = self._listed(target)
        for value in values:
            try:
                self.cluster.delete(target.resource, target.namespace, value["metadata"]["name"], self._json_body(), dry_run)
            except errors.ApiError as error:
                if error.code != 404:
                    raise
        return self._send(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    # ---- watches ----

    def _watch(self, target):
        store, matches = self.cluster.store, self._matcher()
        asked, limit = self._query("resourceVersion"), float(self._query("timeoutSeconds") or 3600)
        with store.locked():
            version = int(asked) if asked not in ("", "0") else store.version
            first = [] if asked not in ("", "0") else self._listed(target)
        self._begin_chunks(JSON)
        started = times.now()
        for value in first:
            self._event(target, "ADDED", value)
        while (times.now() - started).total_seconds() < limit and not self._is_gone():
            try:
                version, changes = store.changes_after(version, target.resource.key, timeout=1)
            except stores.TooOld:
                self._chunk({"type": "ERROR", "object": errors.ApiError(410, "Expired", "too old resource version").status()})
                break
            for change in changes:
                if target.namespace and change.object["metadata"].get("namespace") != target.namespace:
                    continue
                kind = self._kind_for(matches, change)
                if kind is not None:
                    self._event(target, kind, change.object)
        self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _kind_for(matches, change):
        """What a change is for a watch that sees chosen objects only; None if it sees nothing of it."""
        now = matches(change.object)
        if change.kind != "MODIFIED":
            return change.kind if now or (change.kind == "DELETED" and matches(change.before)) else None
        before = matches(change.before)
        return "MODIFIED" if now and before else "ADDED" if now else "DELETED" if before else None

    def _event(self, target, kind, value):
        if self._wants_table():
            value = tables.table(target.resource, [value], value["metadata"]["resourceVersion"])
        self._chunk({"type": kind, "object": value})

    def _begin_chunks(self, content_type):
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, value):
        data = (json.dumps(value) + "\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _is_gone(self):
        """A client says nothing more while it watches; so what comes from it is its end."""
        return bool(select.select([self.connection], [], [], 0)[0])

    # ---- what nodes do ----

    def _pass_on(self, target):
        """Hands the request to the pod's node, with the container named, and then only copies bytes."""
        pod = self.cluster.get(target.resource, target.namespace, target.name)
        node_name = pod["spec"].get("nodeName")
        if not node_name:
            raise errors.bad_request(f"pod {target.name} does not have a host assigned")
        if target.subresource == "exec" and pod["status"].get("phase") in ("Succeeded", "Failed"):
            raise errors.bad_request("cannot exec into a container in a completed pod; current phase is "
                                     + pod["status"]["phase"])
        container = self._container(pod)
        node = self.cluster.store.get("nodes", "", node_name)
        address = node["status"]["addresses"][0]["address"] if node else node_name
        verb = "containerLogs" if target.subresource == "log" else "exec"
        queries = {NAME_AT_NODE.get(name, name): values for name, values in self._queries.items()}
        meta = pod["metadata"]
        path = "/".join(["", verb, meta["namespace"], meta["name"], meta["uid"], container])
        path += "?" + urllib.parse.urlencode(queries, doseq=True)
        try:
            server = tunnel.connect(address, NODE_PORT)
        except OSError as error:
            raise errors.ApiError(500, "InternalError", f'Get "https://{address}:{NODE_PORT}/{verb}/{target.namespace}/'
                                  f'{target.name}/{container}": dial tcp {address}:{NODE_PORT}: connect: '
                                  f"{error.strerror or error}") from error
        head = [f"{self.command} {path} HTTP/1.1", f"Host: {address}", f"Authorization: Bearer {self.server.node_token}"]
        head += [f"{name}: {value}" for name, value in self.headers.items()
                 if name.lower() in ("upgrade", "connection", "x-stream-protocol-version", "accept")]
        self.close_connection = True
        with server:
            tunnel.tunnel(self.connection, server, "\r\n".join(head + ["", ""]).encode())
        return None

    def _container(self, pod):
        names = [one["name"] for kind in ("containers", "initContainers") for one in pod["spec"].get(kind) or []]
        asked = self._query("container")
        if asked:
            if asked not in names:
                raise errors.bad_request(f"container {asked} is not valid for pod {pod['metadata']['name']}")
            return asked
        if len(pod["spec"]["containers"]) > 1:
            shown = " ".join(one["name"] for one in pod["spec"]["containers"])
            raise errors.bad_request(f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: "
                                     f"[{shown}]")
        return names[0]

    # ---- scripts ----

    def _standin(self):
        if not self._user.is_admin:
            raise errors.ApiError(403, "Forbidden", "the stand-in's scripts are for its administrator")
        parts = self._path.strip("/").split("/")[1:]
        if parts[0] == "heartbeat":
            self.cluster.heartbeats[parts[1]] = times.now()
            return self._send(200, self.cluster.faults())
        if parts[0] == "address":
            return self._send(200, {"address": self.cluster.new_address()})
        if parts[0] == "events":
            told = self._json_body()
            self.cluster.event(told["about"], told["reason"], told["message"], told["type"], told["source"])
            return self._send(200, {})
        if parts[0] == "faults":
            return self._send(200, self.cluster.script(self._json_body()) if self._body else self.cluster.faults())
        if parts[0] == "pods":
            return self._send(200, self._strike(parts[1], self._json_body()))
        raise errors.no_such_path()

    def _preempt(self, pod):
        """A pod of higher priority takes its place."""
        message = "preempted by a pod of higher priority"
        self.cluster.change_status("pods", pod, lambda status: clusters.set_condition(
            status, "DisruptionTarget", "True", "PreemptionByScheduler", message))
        self.cluster.event(pod, "Preempted", message, source="default-scheduler")
        self.cluster.delete(self.cluster.resource("pods"), pod["metadata"]["namespace"], pod["metadata"]["name"])
        return pod["metadata"]["name"]

    def _strike(self, how, which):
        """Something befalls the pods whose names match: it is handed to their nodes."""
        struck = []
        if how == "preempt":
            return {"pods": [self._preempt(pod) for pod in self.cluster.store.list("pods")
                             if fnmatch.fnmatchcase(pod["metadata"]["name"], which["pod"])]}
        for pod in self.cluster.store.list("pods"):
            name, address = pod["metadata"]["name"], pod.get("status", {}).get("hostIP")
            if not fnmatch.fnmatchcase(name, which["pod"]) or not address:
                continue
            body = json.dumps(dict(which, uid=pod["metadata"]["uid"])).encode()
            with tunnel.connect(address, NODE_PORT) as node:
                node.sendall(f"POST /standin/{how} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer "
                             f"{self.server.node_token}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                answer = node.makefile("rb").read()
            if b" 200 " not in answer.split(b"\r\n", 1)[0]:
                raise errors.ApiError(500, "InternalError", answer.decode(errors="replace"))
            struck.append(name)
        return {"pods": struck}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cluster, certificate, key, node_token):
        handler = type("ClusterHandler", (Handler,), {"cluster": cluster})
        super().__init__((cluster.settings.address, cluster.settings.port), handler)
        self.node_token = node_token
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)

    def finish_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request.settimeout(10)
        try:
            request = self._tls.wrap_socket(request, server_side=True)
        except (ssl.SSLError, OSError):
            return
        request.settimeout(None)
        try:
            super().finish_request(request, client_address)
        finally:
            request.close()

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
