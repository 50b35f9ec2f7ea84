"""A connection between the driver of a job of Spark and one of its tasks: JSON objects, one a line, each with a code that
only who has the job's key can make (docs/spark_engine.md)."""

import hashlib
import hmac
import json
import secrets
import socket
import threading
import time

DRIVER, TASK = "driver", "task"
GREETING = 10.0  # seconds in all for the other side to show that it has the key
MOST_GREETING = 100  # bytes of its first line
MOST_FIRST = 4 << 10  # bytes of the second, which shows it
MOST_WIRE_LINE = 256 << 10  # bytes of each other one
# Seconds after which a silent network between two hosts counts as broken, as in spark.network.timeout: a task that goes on
# without its driver would keep the stage from beginning anew.
SILENCE = 120
KEEP_ALIVE = ((socket.SO_KEEPALIVE, 1, socket.SOL_SOCKET), (socket.TCP_KEEPIDLE, SILENCE // 2, socket.IPPROTO_TCP),
              (socket.TCP_KEEPINTVL, SILENCE // 12, socket.IPPROTO_TCP), (socket.TCP_KEEPCNT, 6, socket.IPPROTO_TCP),
              (socket.TCP_USER_TIMEOUT, SILENCE * 1000, socket.IPPROTO_TCP))


class WireError(Exception):
    """What comes isn't from the other side of this job."""


def code_of(key, text):
    return hmac.new(key, text, hashlib.sha256).hexdigest().encode()


class Wire:
    """One side of a connection. `send` may be called by any thread, `receive` by one."""

    def __init__(self, connection, key, side):
        self.connection = connection
        self.side = side
        self.other = TASK if side == DRIVER else DRIVER
        self.rest = b""
        self.until = None  # when the greeting must be over; None: it is
        self.key = key
        self.sent = self.received = 0
        self.lock = threading.Lock()
        for option, value, level in KEEP_ALIVE:
            connection.setsockopt(level, option, value)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def greet(self):
        """Each side says a number that it never says again. From both follows the key of this connection, so that nothing of
        another one passes for a line of it."""
        self.until = time.monotonic() + GREETING
        self.connection.settimeout(GREETING)
        own = secrets.token_hex(16).encode()
        self.connection.sendall(own + b"\n")
        others = self.line(MOST_GREETING)
        if others is None:
            raise WireError("it has hung up")
        both = (own, others) if self.side == DRIVER else (others, own)
        self.key = code_of(self.key, b"muster spark 1 " + b" ".join(both))

    def greeted(self):
        """The other side has shown that it has the key: from now on it may be silent."""
        self.until = None
        self.connection.settimeout(None)

    def send(self, message):
        with self.lock:
            self.connection.sendall(self.line_of(message))

    def send_last(self, message):
        """Says it if that takes no time: the other side may not read any more."""
        if self.lock.acquire(blocking=False):
            try:
                self.connection.send(self.line_of(message), socket.MSG_DONTWAIT)
            except OSError:
                pass
            finally:
                self.lock.release()

    def line_of(self, message):
        text = json.dumps(message).encode()
        code = code_of(self.key, f"{self.side} {self.sent} ".encode() + text)
        self.sent += 1
        return code + b" " + text + b"\n"

    def receive(self):
        """Returns the next object; None at the end."""
        line = self.line(MOST_WIRE_LINE if self.until is None else MOST_FIRST)
        if line is None:
            return None
        code, _, text = line.partition(b" ")
        wanted = code_of(self.key, f"{self.other} {self.received} ".encode() + text)
        if not hmac.compare_digest(code, wanted):
            raise WireError("a line isn't from the other side of this job")
        self.received += 1
        return json.loads(text)

    def line(self, most):
        while b"\n" not in self.rest:
            if len(self.rest) > most:
                raise WireError("a line has no end")
            if self.until is not None:
                left = self.until - time.monotonic()
                if left <= 0:
                    raise WireError(f"its greeting takes longer than {GREETING:g} s")
                self.connection.settimeout(left)
            data = self.connection.recv(min(1 << 16, most + 1))
            if not data:
                return None
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def close(self):
        """Ends it for both directions, also for a thread that waits in `receive`."""
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.connection.close()
