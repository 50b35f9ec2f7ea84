"""The driver's side of its connections to the tasks of the barrier stage, and the agents that run there."""

import collections
import re
import socket
import threading
import time

from driver_server import NO_MORE, NoHosts
from host_process import one_line
from spark_wire import DRIVER, Wire, WireError

MOST_STRANGERS = 64  # connections that haven't shown the key yet
SLOW = 1.0  # seconds after which one of them makes room for another: a task greets at once
ACCEPT_AGAIN = 0.5  # seconds after a connection that couldn't be taken
LOOK_AGAIN = 5.0  # seconds between two looks at a host that isn't there
SAY_AGAIN = 60.0  # seconds between two words about that, if nothing has changed
OVER = {"over": True}  # lets a task return
GONE = "its task of Spark is gone: its executor has died, or Spark has ended the stage"


class Link:
    """A task that is connected."""

    def __init__(self, wire, partition, attempt, place):
        self.wire = wire
        self.partition = partition
        self.attempt = attempt  # a number that grows with each task of this driver
        self.place = place


class Strangers:
    """The connections that haven't shown the key yet. If there are too many, the oldest of the address with most of them makes
    room, if it is slow: somebody who connects and says nothing keeps no task out."""

    def __init__(self):
        self.lock = threading.Lock()
        self.known = {}  # by connection, the oldest first: the address, and since when

    def add(self, connection, address):
        """Returns whether there is room."""
        with self.lock:
            now = time.monotonic()
            if len(self.known) >= MOST_STRANGERS:
                crowd = collections.Counter(its for its, _ in self.known.values()).most_common(1)[0][0]
                oldest, since = next((one, since) for one, (its, since) in self.known.items() if its == crowd)
                if now - since < SLOW:
                    return False
                del self.known[oldest]
                hang_up(oldest)
            self.known[connection] = (address, now)
            return True

    def remove(self, connection):
        with self.lock:
            self.known.pop(connection, None)


def hang_up(connection):
    """Wakes the thread that reads from it, which closes it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side has, or it is closed
        pass


class Links:
    """All tasks that are connected, the newest of each partition."""

    def __init__(self, key, ports=None):
        self.key = key
        self.links = {}
        self.changed = threading.Condition()
        self.given_up = ""  # why there will be no more
        self.strangers = Strangers()
        self.heard = lambda link, message: None
        self.lost = lambda link: None
        self.closed = threading.Event()
        self.listening = self.listen(ports)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @staticmethod
    def listen(ports):
        """Listens on all addresses, at one of these ports: the first and their number; None: any. NoHosts: none is free."""
        for port in range(ports[0], ports[0] + ports[1]) if ports else [0]:
            listening = None
            try:
                listening = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET, socket.SOCK_STREAM)
                if listening.family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listening.bind(("", port))  # without SO_REUSEADDR, as it would share a port that muster has reserved
                listening.listen(256)
                return listening
            except OSError as error:
                why = error
                if listening is not None:
                    listening.close()
        if not ports:
            raise NoHosts(f"the job's driver can't listen for the tasks of Spark: {why}")
        raise NoHosts(f"none of the ports {ports[0]}-{ports[0] + ports[1] - 1} (ports) is free here, and the job's driver needs one "
                      f"for the tasks of Spark: {why}")

    def accept(self):
        """Takes connections until `close`. No other error is one for ever: descriptors come back, and accept(2) also tells how
        the network of a single connection has failed."""
        while not self.closed.is_set():
            try:
                connection, address = self.listening.accept()
            except OSError:
                self.closed.wait(ACCEPT_AGAIN)
                continue
            its = (connection, re.sub("^::ffff:", "", address[0]))
            if not self.strangers.add(*its):
                connection.close()
                continue
            try:
                threading.Thread(target=self.serve, args=its, daemon=True).start()
            except RuntimeError:  # this user may have no more threads now
                self.strangers.remove(connection)
                connection.close()

    def serve(self, connection, address):
        link = wire = None
        try:
            try:
                wire = Wire(connection, self.key, DRIVER)  # fails if the other side has hung up already
                wire.greet()
                here = wire.receive()
                wire.greeted()
            finally:
                self.strangers.remove(connection)
            if here is None:
                return
            link = Link(wire, here["here"], here["attempt"], {"name": here["name"], "address": address})
            if not self.take(link):
                if self.given_up:
                    wire.send_last(OVER)
                return
            while (message := wire.receive()) is not None:
                self.heard(link, message)
        except (OSError, WireError, ValueError, KeyError, TypeError):
            pass  # it is gone, or isn't one of this job
        finally:
            (wire or connection).close()
            if link is not None:
                self.drop(link)

    def take(self, link):
        """Returns whether it is the newest of its partition."""
        with self.changed:
            before = self.links.get(link.partition)
            if self.given_up or (before is not None and before.attempt > link.attempt):
                return False
            self.links[link.partition] = link
            self.changed.notify_all()
        if before is not None:
            before.wire.close()
        return True

    def drop(self, link):
        with self.changed:
            if self.links.get(link.partition) is link:
                del self.links[link.partition]
                self.changed.notify_all()
        self.lost(link)

    def give_up(self, why):
        with self.changed:
            self.given_up = self.given_up or why
            self.changed.notify_all()

    def close(self):
        self.give_up("the job ends")
        self.closed.set()
        try:
            self.listening.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        except OSError:  # it is closed
            pass
        self.listening.close()
        with self.changed:
            links = list(self.links.values())
        for link in links:
            link.wire.send_last(OVER)
            link.wire.close()


class Host:
    def __init__(self, partition, name):
        self.partition = partition
        self.name = name
        self.wanted = None  # the key of the newest start


class Starts:
    """Agents on the hosts. What happens comes to `tell(key, kind, text)` from threads."""

    def __init__(self, links, hosts, why_waits):
        self.links = links
        self.hosts = {host.name: host for host in hosts}
        self.why_waits = why_waits
        self.tell = lambda key, kind, text: None
        self.running = {}  # by key: the link of its task, once there is one
        self.lock = threading.Lock()
        links.heard = self.on_heard
        links.lost = self.on_lost

    def on_heard(self, link, message):
        for kind in ("line", "ended"):
            if kind in message and self.running.get(message.get("key")) is link:
                self.note(message["key"], kind, str(message[kind]))

    def on_lost(self, link):
        for key, its in list(self.running.items()):
            if its is link:
                self.note(key, "ended", GONE)

    def note(self, key, kind, text):
        if kind in ("ended", NO_MORE):
            with self.lock:
                if key not in self.running:
                    return
                del self.running[key]
        self.tell(key, kind, text)

    def start(self, key, name, arguments, rendezvous):
        host = self.hosts.get(name)
        if host is None:
            return self.tell(key, "ended", f"the job has no host {name}")
        host.wanted = key
        self.running[key] = None
        threading.Thread(target=self.begin, args=(key, host, arguments, rendezvous), daemon=True).start()

    def begin(self, key, host, arguments, rendezvous):
        link = self.await_link(key, host)
        if link is None:
            given_up = self.links.given_up
            return self.note(key, NO_MORE if given_up else "ended", given_up or "it isn't wanted any more")
        try:
            link.wire.send({"start": key, "arguments": arguments, "rendezvous": rendezvous})
        except (OSError, ValueError) as error:
            return self.note(key, "ended", f"{GONE} ({one_line(str(error))})")
        if self.links.links.get(host.partition) is not link:  # it went before it was among `running`
            self.note(key, "ended", GONE)
        if host.wanted != key:  # its end came first
            self.say_to(link, {"end": key})

    def await_link(self, key, host):
        """Waits for the host's task, which Spark makes anew when it begins the stage again. None: it won't come."""
        said, say_again = "", 0.0
        while True:
            with self.links.changed:
                link = self.links.links.get(host.partition)
                if host.wanted != key or (link is None and self.links.given_up):
                    return None
                if link is not None:
                    self.running[key] = link
                    return link
                self.links.changed.wait(LOOK_AGAIN)
                if host.wanted != key or host.partition in self.links.links or self.links.given_up:
                    continue
            why = self.why_waits()
            if why != said or time.monotonic() > say_again:
                said, say_again = why, time.monotonic() + SAY_AGAIN
                self.tell(key, "waits", why)

    def end(self, key, at_once=False):
        """Lets it end. `at_once`: also if it is stopped, or hangs."""
        for host in self.hosts.values():
            if host.wanted == key:
                with self.links.changed:
                    host.wanted = None
                    self.links.changed.notify_all()
        self.say_to(self.running.get(key), {"end": key, "at_once": True} if at_once else {"end": key})

    def end_all(self, at_once=False):
        for key in list(self.running):
            self.end(key, at_once)

    def meet(self, rendezvous):
        for link in set(self.running.values()):
            self.say_to(link, {"meet": rendezvous})

    @staticmethod
    def say_to(link, message):
        if link is not None:
            try:
                link.wire.send(message)
            except OSError:  # whoever reads notices
                pass
