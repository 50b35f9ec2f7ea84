"""A command that `kubectl exec` runs in a container: the streams of a SPDY connection are its input and outputs, and how
it ended is told on the stream "error" (protocol v4.channel.k8s.io)."""

import json
import os
import subprocess
import threading

import spdy

PROTOCOL = "v4.channel.k8s.io"


class ExecSession:
    def __init__(self, run, words, wanted):
        """`wanted`: those of stdin, stdout and stderr that the client opens."""
        self._run, self._words, self._wanted = run, words, wanted
        self._streams = {}
        self._process = None
        self._ended = threading.Event()

    def serve(self, read, write, hang_up):
        """Returns when the client is gone. hang_up() ends the connection."""
        self._hang_up = hang_up
        spdy.Connection(read, write).serve(self._on_stream, self._on_data)
        self._ended.set()
        if self._process is not None:
            self._close_input()

    def _on_stream(self, stream):
        self._streams[stream.headers.get("streamtype", "")] = stream
        if self._process is None and {"error", *self._wanted} <= set(self._streams):
            self._start()

    def _on_data(self, stream, data):
        if stream is not self._streams.get("stdin") or self._process is None:
            return
        if not data:
            self._close_input()
            return
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (OSError, ValueError):
            return  # the command doesn't read any more

    def _close_input(self):
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
        except OSError:
            return

    def _start(self):
        # pylint: disable-next=consider-using-with
        self._process = subprocess.Popen(
            self._run.words_to_run(self._words), stdin=subprocess.PIPE if "stdin" in self._wanted else subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE if "stderr" in self._wanted else subprocess.STDOUT, cwd="/")
        pumps = [threading.Thread(target=self._copy, args=(pipe, self._streams.get(name)), daemon=True)
                 for name, pipe in (("stdout", self._process.stdout), ("stderr", self._process.stderr)) if pipe is not None]
        for pump in pumps:
            pump.start()
        threading.Thread(target=self._await_end, args=(pumps,), daemon=True).start()

    @staticmethod
    def _copy(pipe, stream):
        with pipe:
            while data := os.read(pipe.fileno(), 1 << 15):
                if stream is None:
                    continue
                try:
                    stream.write(data)
                except OSError:
                    return  # the client is gone; the command gets SIGPIPE

    def _await_end(self, pumps):
        code = self._process.wait()
        for pump in pumps:
            pump.join()
        try:
            self._streams["error"].write(json.dumps(self._status(code if code >= 0 else 128 - code)).encode())
            for stream in self._streams.values():
                stream.end()
        except OSError:
            return
        if not self._ended.wait(10):
            self._hang_up()

    def _status(self, code):
        if code == 0:
            return {"metadata": {}, "status": "Success"}
        if code in (126, 127):
            message = (f"OCI runtime exec failed: exec failed: unable to start container process: exec: \"{self._words[0]}\": "
                       "executable file not found in $PATH: unknown")
        else:
            message = f"command terminated with non-zero exit code: exit status {code}"
        return {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message,
                "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}
