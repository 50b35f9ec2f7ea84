"""What a node does: it says what it has, runs the pods that are given to it, writes the names that they may resolve, and
serves their output and commands in them to the API server."""

import dataclasses
import fnmatch
import http.server
import json
import os
import signal
import socket
import ssl
import threading
import traceback
import urllib.parse

import client as clients
import exec_session
import pod_network
import pod_worker
import tunnel
import volumes

PORT = 10250
HEARTBEAT_S = 1.0
DOMAIN = "svc.cluster.local"


@dataclasses.dataclass
class Settings:
    name: str
    address: str
    root: str  # a folder of the node's own
    authority: str  # the file with the API server's
    claims: str
    api_host: str
    api_port: str
    visible: list  # folders that pods see although they lie below those of which they have their own
    cpus: str = "4"
    memory: str = "4Gi"
    gpus: str = "0"
    labels: dict = dataclasses.field(default_factory=dict)
    taints: list = dataclasses.field(default_factory=list)
    pod_interface: str = ""  # of the node's network, where pods have addresses of their own
    gives_tokens: bool = True
    is_real: bool = False  # the API server; then it calls by HTTPS, and shows its certificate


class Kubelet:
    def __init__(self, settings, client, node_api):
        """`node_api`: as node_api.OfStandIn."""
        self.settings, self.client, self._api = settings, client, node_api
        self.source = volumes.Source(client, settings)
        self.network = (pod_network.OfPods(settings.address, settings.pod_interface, node_api.new_address)
                        if settings.pod_interface else pod_network.OfNode(settings.address))
        self._workers, self._lock = {}, threading.Lock()
        self._images = ["*"]
        self._endpoints = {}
        self._ended = threading.Event()

    # ---- the node itself ----

    def run(self):
        """Serves until the process ends."""
        self._until_it_works(self._register)
        for loop in (self._beat, self._follow_pods, self._follow_names):
            threading.Thread(target=self._for_ever, args=(loop,), daemon=True).start()
        server = (TlsNodeServer if self.settings.is_real else NodeServer)((self.settings.address, PORT), self)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("kubelet: ready", flush=True)
        self._ended.wait()

    def _until_it_works(self, function):
        while True:
            try:
                return function()
            except (OSError, clients.Refused):
                self._ended.wait(0.1)

    def _for_ever(self, loop):
        while not self._ended.is_set():
            try:
                loop()
            except (OSError, clients.Refused):
                pass  # the API server is away
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
            self._ended.wait(0.1)

    def _register(self):
        one = self.settings
        capacity = {"cpu": one.cpus, "memory": one.memory, "pods": "110", "ephemeral-storage": "10Gi"}
        if one.gpus not in ("", "0"):
            capacity["nvidia.com/gpu"] = one.gpus
        status = {"capacity": capacity, "allocatable": capacity, "nodeInfo": {"kubeletVersion": "v1.20.2", "architecture": "amd64"},
                  "addresses": [{"type": "InternalIP", "address": one.address}, {"type": "Hostname", "address": one.name}]}
        labels = {"kubernetes.io/hostname": one.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **one.labels}
        try:
            self.client.call("POST", "/api/v1/nodes", {"metadata": {"name": one.name, "labels": labels},
                                                       "spec": {"taints": one.taints}, "status": status})
        except clients.Refused as refused:
            if refused.code != 409:
                raise
            self.client.call("PATCH", f"/api/v1/nodes/{one.name}/status", {"status": status}, "application/merge-patch+json")
        self._api.beat(one.name)

    def _beat(self):
        while not self._ended.wait(HEARTBEAT_S):
            self._images = self._api.beat(self.settings.name)["images"]

    def has_image(self, image):
        try:
            self._images = self._api.images()
        except (OSError, clients.Refused):
            pass
        return any(fnmatch.fnmatchcase(image, pattern) for pattern in self._images)

    def event(self, pod, reason, message, kind="Normal"):
        try:
            self._api.event(pod, reason, message, kind)
        except (OSError, clients.Refused):
            return

    # ---- pods ----

    def _follow_pods(self):
        listed = self.client.call("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self.settings.name}")
        here = {pod["metadata"]["uid"] for pod in listed["items"]}
        for pod in listed["items"]:
            self._see(pod)
        with self._lock:
            missing = [worker for uid, worker in self._workers.items() if uid not in here]
        for worker in missing:
            worker.gone()
        self.client.watch(f"/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3D{self.settings.name}&resourceVersion="
                          + listed["metadata"]["resourceVersion"], self._on_pod)

    def _on_pod(self, event):
        if event["type"] in ("ADDED", "MODIFIED"):
            self._see(event["object"])
        elif event["type"] == "DELETED":
            worker = self._workers.get(event["object"]["metadata"]["uid"])
            if worker is not None:
                worker.gone()

    def _see(self, pod):
        with self._lock:
            worker = self._workers.get(pod["metadata"]["uid"])
            if worker is None:
                worker = self._workers[pod["metadata"]["uid"]] = pod_worker.PodWorker(self, pod)
                worker.start()
                return
        worker.update(pod)

    def forget(self, worker):
        with self._lock:
            self._workers.pop(worker.uid, None)

    def worker(self, uid):
        with self._lock:
            return self._workers.get(uid)

    def worker_of(self, namespace, name):
        """Returns that of the pod which has this name now."""
        with self._lock:
            return next((worker for worker in self._workers.values() if not worker.is_gone and (
                worker.pod["metadata"]["namespace"], worker.pod["metadata"]["name"]) == (namespace, name)), None)

    # ---- names ----

    def _follow_names(self):
        listed = self.client.call("GET", "/api/v1/endpoints")
        self._endpoints = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in listed["items"]}
        self._write_all_hosts()
        self.client.watch("/api/v1/endpoints?watch=true&resourceVersion=" + listed["metadata"]["resourceVersion"], self._on_endpoints)

    def _on_endpoints(self, event):
        if event["type"] == "ERROR":
            return
        key = event["object"]["metadata"]["namespace"], event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            self._endpoints.pop(key, None)
        else:
            self._endpoints[key] = event["object"]
        self._write_all_hosts()

    def _write_all_hosts(self):
        with self._lock:
            workers = list(self._workers.values())
        for worker in workers:
            if worker.address:
                self.write_hosts(worker)

    def write_hosts(self, worker):
        """Writes in place: the file is mounted in containers."""
        meta, spec = worker.pod["metadata"], worker.pod["spec"]
        host = spec.get("hostname") or meta["name"][:63]
        names = [f"{host}.{spec['subdomain']}.{meta['namespace']}.{DOMAIN}", host] if spec.get("subdomain") else [host]
        lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", f"{worker.address} {' '.join(names)}"]
        lines += [f"{one['ip']} {' '.join(one['hostnames'])}" for one in spec.get("hostAliases") or []]
        for (namespace, service), value in sorted(self._endpoints.items()):
            for address in [one for subset in value.get("subsets") or [] for one in subset.get("addresses") or []]:
                for name in [f"{address['hostname']}.{service}"] if address.get("hostname") else []:
                    lines.append(f"{address['ip']} {' '.join(_forms(name, namespace, meta['namespace']))}")
                lines.append(f"{address['ip']} {' '.join(_forms(service, namespace, meta['namespace']))}")
        data = ("\n".join(lines) + "\n").encode()
        with self._lock:
            file = os.open(worker.hosts_file(), os.O_WRONLY | os.O_CREAT, 0o644)
            os.pwrite(file, data, 0)
            os.ftruncate(file, len(data))
            os.close(file)

    # ---- what befalls pods ----

    def strike(self, how, which):
        worker = self.worker(which["uid"])
        if worker is None:
            raise KeyError(which["uid"])
        slots = [slot for slot in [worker.slot(which["container"])] if slot] if which.get("container") else \
            [slot for slot in [worker.slot(one["name"]) for one in worker.pod["spec"]["containers"]] if slot]
        if how == "oom":
            for slot in slots:
                if slot.run is not None and slot.run.is_running:
                    slot.run.killed_because = "OOMKilled"
                    slot.run.signal(signal.SIGKILL)
        elif how == "kill":
            for slot in slots:
                if slot.run is not None:
                    slot.run.signal(which.get("signal", signal.SIGKILL))
        elif how == "evict":
            message = which.get("message", "The node was low on resource: memory. ")
            worker.forced = {"reason": "Evicted", "message": message, "condition": "TerminationByKubelet",
                             "grace": which.get("grace", 0)}
            self.event(worker.pod, "Evicted", message, "Warning")
        else:
            raise KeyError(how)
        worker.wake()


def _forms(name, namespace, own):
    """How a pod of the namespace `own` may write the name of a service of another."""
    forms = [f"{name}.{namespace}.{DOMAIN}", f"{name}.{namespace}.svc", f"{name}.{namespace}"]
    return forms + [name] if namespace == own else forms


class NodeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """Keeps still."""

    def do_GET(self):
        self.close_connection = True
        split = urllib.parse.urlsplit(self.path)
        queries = urllib.parse.parse_qs(split.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.server.is_allowed(self.headers):
            return self._say(401, "Unauthorized")
        try:
            if split.path.startswith("/standin/"):
                self.server.kubelet.strike(split.path.split("/")[2], json.loads(body))
                return self._say(200, "{}")
            # VERB, NAMESPACE, POD, perhaps UID, and CONTAINER
            parts = [urllib.parse.unquote(part) for part in split.path.split("/")[1:]]
            if len(parts) not in (4, 5):
                return self._say(404, f"the node has no {split.path}")
            verb, namespace, name, *uid, container = parts
            worker = self.server.kubelet.worker(uid[0]) if uid else self.server.kubelet.worker_of(namespace, name)
            slot = worker.slot(container) if worker else None
            if slot is None:
                return self._say(404, f'container not found ("{container}")')
            if verb == "exec":
                return self._exec(slot, queries)
            return self._logs(worker, slot, {key: values[0] for key, values in queries.items()})
        except KeyError as error:
            return self._say(404, f"the node knows no {error}")
        except (BrokenPipeError, ConnectionError):
            return None

    do_POST = do_GET

    def _say(self, code, message):
        reasons = {400: "BadRequest", 404: "NotFound", 500: "InternalError"}
        data = message.encode() if code == 200 else json.dumps(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
             "reason": reasons.get(code, "Unknown")}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _logs(self, worker, slot, queries):
        previous = queries.get("previous") == "true"
        name, pod = slot.name, worker.pod["metadata"]["name"]
        if previous and not slot.restarts:
            return self._say(400, f'previous terminated container "{name}" in pod "{pod}" not found')
        run = slot.run
        if run is None and not slot.restarts:
            return self._say(400, f'container "{name}" in pod "{pod}" is waiting to start: '
                             + {"ErrImagePull": "image can't be pulled",
                                "ImagePullBackOff": "trying and failing to pull image"}.get(slot.waiting[0], slot.waiting[0]))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        if previous or run is None:
            log = OldLog(worker.log_path(name, slot.restarts - 1))
        else:
            log = run.log
        log.read(self._chunk, queries)
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _chunk(self, data):
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        elif self._is_gone():
            raise BrokenPipeError

    def _is_gone(self):
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)

    def _exec(self, slot, queries):
        if "SPDY/3.1" not in (self.headers.get("Upgrade") or ""):
            return self._say(400, "unable to upgrade: the stand-in speaks SPDY/3.1")
        if not slot.is_running:
            return self._say(500, f'unable to upgrade connection: container not found ("{slot.name}")')
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                         f"X-Stream-Protocol-Version: {exec_session.PROTOCOL}\r\n\r\n".encode())
        self.wfile.flush()
        wanted = [name for name, asked in (("stdin", "input"), ("stdout", "output"), ("stderr", "error"))
                  if queries.get(asked, [""])[0] in ("true", "1")]
        session = exec_session.ExecSession(slot.run, queries["command"], wanted)
        session.serve(self.rfile.read1, self.connection.sendall, lambda: self.connection.shutdown(socket.SHUT_RDWR))
        return None


class OldLog:
    """The output of a run that is over."""

    def __init__(self, path):
        self._path = path

    def read(self, write, queries):
        if not os.path.exists(self._path):
            return
        with open(self._path, "rb") as file:
            lines = file.readlines()
        if queries.get("tailLines"):
            lines = lines[-int(queries["tailLines"]):] if int(queries["tailLines"]) else []
        write(b"".join(line.split(b" ", 3)[3] for line in lines))


class NodeServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, kubelet):
        super().__init__(address, NodeHandler)
        self.kubelet = kubelet
        with open(self.file("node.token"), encoding="utf-8") as file:
            self._token = file.read().strip()

    def file(self, name):
        return os.path.join(os.path.dirname(self.kubelet.settings.authority), name)

    def is_allowed(self, headers):
        return headers.get("Authorization") == "Bearer " + self._token

    def finish_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().finish_request(request, client_address)


class TlsNodeServer(NodeServer):
    """The same for a real API server, which calls by HTTPS and is known by its certificate."""

    def __init__(self, address, kubelet):
        super().__init__(address, kubelet)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(self.file("server.crt"), self.file("server.key"))
        self._tls.load_verify_locations(kubelet.settings.authority)
        self._tls.verify_mode = ssl.CERT_REQUIRED

    def is_allowed(self, headers):
        return True

    def finish_request(self, request, client_address):
        """Several threads write to a request of exec, which TLS doesn't allow: they have one end of a pair of sockets."""
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request.settimeout(10)
        try:
            client = self._tls.wrap_socket(request, server_side=True)
        except OSError:
            return
        ours, its = socket.socketpair()
        threading.Thread(target=self._serve, args=(its, client_address), daemon=True).start()
        with client, ours:
            tunnel.tunnel(client, ours)

    def _serve(self, sock, client_address):
        with sock:
            self.RequestHandlerClass(sock, client_address, self)
