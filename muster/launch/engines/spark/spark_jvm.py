"""Spark's JVM, which the driver starts by the installation's spark-submit as pyspark's launch_gateway does, but in a session of its
own and with a limit: one that hangs must end with the driver, too."""

import os
import signal
import struct
import subprocess
import tempfile
import time

import spark_texts
from driver_server import LIBC, PR_SET_PDEATHSIG, NoHosts
from spark_client import SUBMIT

LOOK = 0.1  # seconds between two looks whether it has started


def end_with_driver(blocked):
    """Runs in the child. By SIGKILL a JVM would leave files and executors. `blocked`: the signals that the driver doesn't hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver says when it ends
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class Jvm:
    def __init__(self):
        self.program = None

    def start(self, home, words, until, seconds):
        """Starts it, and waits until it listens. Returns its port and the secret of its connections. The thread that calls this
        must live as long as the JVM. `until`: by time.monotonic(), which is `seconds` after the beginning."""
        with tempfile.TemporaryDirectory() as folder:
            told = os.path.join(folder, "told")  # is there once it is complete
            # A signal that ends the driver is heard once there is a program to end.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
            try:
                self.program = subprocess.Popen(
                    [os.path.join(home, SUBMIT), *words],
                    stdin=subprocess.PIPE,
                    env={**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": told},
                    start_new_session=True,
                    preexec_fn=lambda: end_with_driver(before),
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            while not os.path.exists(told):
                if self.has_ended():
                    raise NoHosts(spark_texts.NO_JVM)
                if time.monotonic() >= until:
                    raise NoHosts(spark_texts.why_jvm_late(seconds))
                time.sleep(LOOK)
            with open(told, "rb") as file:
                port, length = struct.unpack(">ii", file.read(8))
                return port, file.read(length).decode()

    def has_ended(self):
        """Doesn't reap it, so that its number stays that of its group."""
        try:
            return os.waitid(os.P_PID, self.program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # `end` has reaped it
            return True

    def await_end(self, patience):
        """Waits so many seconds for its end. Returns whether it has ended; False: it was never started, either."""
        if self.program is None:
            return False
        until = time.monotonic() + patience
        while not (ended := self.has_ended()) and time.monotonic() < until:
            time.sleep(LOOK)
        return ended

    def end(self, patience):
        """Closes its stdin, by which it ends, and kills what is left of it and its children after `patience` seconds."""
        if self.program is None:
            return
        self.program.stdin.close()
        self.await_end(patience)
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
