#!/usr/bin/env python3
"""A stand-in for a Kubernetes cluster, for tests: an API server that the real kubectl talks to, a scheduler, controllers,
and a kubelet for each node, whose pods are processes of this machine. docs/development.md says what it does.

  standin.py init FOLDER --address A [--port P]    makes keys, tokens and FOLDER/kubeconfig
  standin.py api FOLDER                            serves the API; all it knows is in FOLDER/state
  standin.py kubelet FOLDER --name N --address A   runs a node's pods
  standin.py control FOLDER                        schedules and controls for a real API server, to which kubelets are --real
  standin.py script FOLDER PATH [JSON]             calls the stand-in's own /standin/PATH
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import access  # noqa: E402
import api_server  # noqa: E402
import client as clients  # noqa: E402
import cluster as clusters  # noqa: E402
import controllers  # noqa: E402
import kubelet as kubelets  # noqa: E402
import node_api  # noqa: E402
import real_api  # noqa: E402
import remote_cluster  # noqa: E402


def _path(options, *names):
    return os.path.join(options.folder, *names)


def _read(options, name):
    with open(_path(options, name), encoding="utf-8") as file:
        return file.read().strip()


def _write(options, name, text):
    with open(os.open(_path(options, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def _make_certificates(options):
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650"]
    _openssl("req", "-x509", *key, "-keyout", _path(options, "ca.key"), "-out", _path(options, "ca.crt"), "-subj",
             "/CN=stand-in CA", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    _openssl("req", *key[:5], "-keyout", _path(options, "server.key"), "-out", _path(options, "server.csr"), "-subj", "/CN=stand-in")
    _write(options, "server.ext", f"subjectAltName=IP:{options.address},IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,"
           "clientAuth\n")
    _openssl("x509", "-req", "-in", _path(options, "server.csr"), "-CA", _path(options, "ca.crt"), "-CAkey", _path(options, "ca.key"),
             "-CAcreateserial", "-days", "3650", "-extfile", _path(options, "server.ext"), "-out", _path(options, "server.crt"))


def _kubeconfig(options, user, token):
    server = f"https://{options.address}:{options.port}"
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "standin",
        "clusters": [{"name": "standin", "cluster": {"server": server, "certificate-authority": _path(options, "ca.crt")}}],
        "contexts": [{"name": "standin", "context": {"cluster": "standin", "user": user, "namespace": "default"}}],
        "users": [{"name": user, "user": {"token": token}}]}, indent=1)


def init(options):
    os.makedirs(_path(options, "state"), mode=0o700, exist_ok=True)
    os.makedirs(_path(options, "claims"), exist_ok=True)
    _make_certificates(options)
    for name in ("admin.token", "node.token", "accounts.secret"):
        _write(options, name, secrets.token_hex(16))
    # For --token-auth-file of a real API server.
    _write(options, "tokens.csv", "".join(f"{_read(options, name + '.token')},{name},{name},system:masters\n" for name in ("admin", "node")))
    settings = {"address": options.address, "port": options.port, "node_grace_s": options.node_grace,
                "node_eviction_s": options.node_eviction, "pod_addresses": options.pod_addresses}
    _write(options, "settings.json", json.dumps(settings))
    _write(options, "kubeconfig", _kubeconfig(options, "admin", _read(options, "admin.token")))


def _tokens(options):
    return access.Tokens(_read(options, "accounts.secret"), _read(options, "admin.token"), _read(options, "node.token"))


def api(options):
    settings = json.loads(_read(options, "settings.json"))
    cluster = clusters.Cluster(clusters.Settings(folder=_path(options, "state"), claims=_path(options, "claims"), **settings),
                               _tokens(options))
    server = api_server.Server(cluster, _path(options, "server.crt"), _path(options, "server.key"), _read(options, "node.token"))
    server.start()
    controllers.Controllers(cluster).start()
    print("api: ready", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os._exit(0)


def control(options):
    controllers.Controllers(remote_cluster.RemoteCluster(_client(options, "node.token"), _path(options, "state"))).start()
    print("control: ready", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os._exit(0)


def _client(options, token_file):
    settings = json.loads(_read(options, "settings.json"))
    return clients.Client(f"https://{settings['address']}:{settings['port']}", _path(options, "ca.crt"), _read(options, token_file))


def _pairs(text):
    return dict(part.split("=", 1) for part in text.split(",") if part)


def _taint(text):
    """KEY=VALUE:EFFECT, as `kubectl taint` has it."""
    what, _, effect = text.rpartition(":")
    key, _, value = what.partition("=")
    return {"key": key, "value": value, "effect": effect}


def kubelet(options):
    settings = json.loads(_read(options, "settings.json"))
    os.makedirs(options.root, exist_ok=True)
    client = _client(options, "node.token")
    api_of_node = real_api.NodeApi(client, options.pod_addresses) if options.real else node_api.OfStandIn(client)
    kubelets.Kubelet(kubelets.Settings(
        name=options.name, address=options.address, root=options.root, authority=_path(options, "ca.crt"),
        is_real=options.real, gives_tokens=not options.real,
        claims=_path(options, "claims"), api_host=settings["address"], api_port=str(settings["port"]), visible=options.visible,
        cpus=options.cpus, memory=options.memory, gpus=options.gpus, labels=_pairs(options.labels),
        taints=[_taint(one) for one in options.taint], pod_interface=options.pod_interface), client, api_of_node).run()


def script(options):
    value = json.loads(options.json) if options.json else None
    try:
        answer = _client(options, "admin.token").call("GET" if value is None else "POST", "/standin/" + options.path, value)
    except (OSError, clients.Refused) as error:
        sys.exit(f"standin: {error}")
    print(json.dumps(answer))


def account(options):
    """Writes FOLDER/NAME.kubeconfig, by which a service account calls."""
    token = _tokens(options).of_account(options.namespace, options.name)
    settings = json.loads(_read(options, "settings.json"))
    options.address, options.port = settings["address"], settings["port"]
    _write(options, options.name + ".kubeconfig", _kubeconfig(options, options.name, token))
    print(_path(options, options.name + ".kubeconfig"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function, text):
        one = commands.add_parser(function.__name__, help=text)
        one.add_argument("folder", metavar="FOLDER")
        one.set_defaults(function=function)
        return one

    one = command(init, "make keys, tokens and a kubeconfig")
    one.add_argument("--address", required=True)
    one.add_argument("--port", type=int, default=6443)
    one.add_argument("--node-grace", type=float, default=4, help="a node that is silent for so many seconds isn't ready")
    one.add_argument("--node-eviction", type=float, default=300, help="its pods are deleted after as many more")
    one.add_argument("--pod-addresses", default="", help="FIRST-LAST: the addresses that pods have, for kubelets with --pod-interface")
    command(api, "serve the API")
    one = command(kubelet, "run the pods of a node")
    one.add_argument("--name", required=True)
    one.add_argument("--address", required=True)
    one.add_argument("--root", required=True, help="a folder of the node's own")
    one.add_argument("--cpus", default="4")
    one.add_argument("--memory", default="4Gi")
    one.add_argument("--gpus", default="0")
    one.add_argument("--labels", default="", help="A=B,C=D")
    one.add_argument("--taint", action="append", default=[], help="KEY=VALUE:EFFECT")
    one.add_argument("--visible", action="append", default=[], help="a folder below /tmp, /run, /root or /home that pods see")
    one.add_argument("--pod-interface", default="", help="pods get addresses of their own behind this interface of the node")
    one.add_argument("--real", action="store_true", help="for a real API server, which calls it by HTTPS with a certificate of FOLDER")
    one.add_argument("--pod-addresses", default="127.0.0.1-127.0.0.1", help="FIRST-LAST: the node's own range, with --real")
    command(control, "do for a real API server what a scheduler and controllers do")
    one = command(script, "call the stand-in's own API")
    one.add_argument("path", metavar="PATH", help="faults, pods/evict, pods/oom, pods/kill, pods/preempt")
    one.add_argument("json", metavar="JSON", nargs="?")
    one = command(account, "write the kubeconfig of a service account")
    one.add_argument("namespace")
    one.add_argument("name")
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
