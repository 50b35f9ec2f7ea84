"""Where pods are in the network of their node: at the node's own address, or each at one of its own, which the node
answers for. Then a pod has a network namespace, and a pair of interfaces joins it to the node."""

import http.client
import socket
import subprocess

WAY_OUT = "169.254.1.1"
# $1: the holder's process, $2: the pod's address, $3: the node's interface to the pod.
JOIN = f"""
ip link add "$3" type veth peer name eth0 netns "$1"
ip link set "$3" up
ip addr add {WAY_OUT}/32 dev "$3"
ip route add "$2/32" dev "$3"
nsenter --net="/proc/$1/ns/net" sh -ec '
ip link set lo up
ip addr add "$1/32" dev eth0
ip link set eth0 up
ip route add {WAY_OUT} dev eth0
ip route add default via {WAY_OUT}' sh "$2"
"""
# $1: the node's interface to the others.
PREPARE = """
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >"/proc/sys/net/ipv4/conf/$1/proxy_arp"
echo 0 >"/proc/sys/net/ipv4/neigh/$1/proxy_delay"
"""


def _answers(address, port, path, limit):
    try:
        if path is None:
            with socket.create_connection((address, int(port)), limit):
                return True
        connection = http.client.HTTPConnection(address, int(port), timeout=limit)
        connection.request("GET", path)
        return 200 <= connection.getresponse().status < 400
    except (OSError, http.client.HTTPException, TypeError, ValueError):
        return False


class OfNode:
    """Pods share the node's address."""

    def __init__(self, address):
        self._address = address

    def connect(self, _pod):
        """Returns what `words` and `disconnect` want, and the pod's address."""
        return None, self._address

    def words(self, _joined):
        return []

    def disconnect(self, joined):
        """Undoes connect."""

    @staticmethod
    def answers(address, port, path, limit):
        return _answers(address, port, path, limit)


class OfPods:
    """Each pod has an address that `new_address()` gives, but those with hostNetwork."""

    def __init__(self, node_address, interface, new_address):
        self._node_address, self._new_address = node_address, new_address
        subprocess.run(["sh", "-ec", PREPARE, "sh", interface], check=True)

    def connect(self, pod):
        if pod["spec"].get("hostNetwork"):
            return None, self._node_address
        address = self._new_address()
        # pylint: disable-next=consider-using-with
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
        holder.stdout.readline()
        # Nodes may share a network, but no address.
        interface = "pod" + socket.inet_aton(address).hex()
        subprocess.run(["sh", "-ec", JOIN, "sh", str(holder.pid), address, interface], check=True)
        return holder, address

    def words(self, joined):
        return [] if joined is None else ["nsenter", f"--net=/proc/{joined.pid}/ns/net", "--"]

    def disconnect(self, joined):
        if joined is not None:
            joined.kill()  # its interfaces go with it
            joined.wait()
            joined.stdout.close()

    @staticmethod
    def answers(address, port, path, limit):
        return _answers(address, port, path, limit)
