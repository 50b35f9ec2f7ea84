"""What a container has printed: a file of lines, each with its time and stream, which grows while it is read."""

import os
import threading

import times


class ContainerLog:
    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._path = path
        self._file = open(path, "ab")  # pylint: disable=consider-using-with
        self._grown = threading.Condition()
        self._writers = 0

    @property
    def is_open(self):
        return self._writers > 0

    def pump(self, descriptor, stream):
        """Copies from a pipe until its end, by a thread of its own."""
        with self._grown:
            self._writers += 1
        thread = threading.Thread(target=self._copy, args=(descriptor, stream), daemon=True)
        thread.start()
        return thread

    def _copy(self, descriptor, stream):
        rest = b""
        while True:
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:
                data = b""
            lines = (rest + data).split(b"\n")
            rest = lines.pop() if data else b""
            time = times.exact_text().encode()
            text = b"".join(b"%s %s F %s\n" % (time, stream, line) for line in lines if data or line)
            with self._grown:
                self._file.write(text)
                self._file.flush()
                self._writers -= not data
                self._grown.notify_all()
            if not data:
                os.close(descriptor)
                return

    def _lines(self):
        with open(self._path, "rb") as file:
            return file.readlines()

    def tail(self, most_lines, most_bytes):
        """Returns the end of what was printed, as text."""
        text = b"".join(line.split(b" ", 3)[3] for line in self._lines()[-most_lines:])
        return text[-most_bytes:].decode(errors="replace")

    def read(self, write, queries):
        """Calls write(bytes) for the lines that are asked for; with `follow` until the container ends."""
        show = (lambda line: b"%s %s" % (line.split(b" ", 1)[0], line.split(b" ", 3)[3])) if queries.get("timestamps") == "true" \
            else (lambda line: line.split(b" ", 3)[3])
        with open(self._path, "rb") as file:
            lines = file.readlines()
            if queries.get("sinceSeconds"):
                lines = [line for line in lines if times.since(line.split(b" ", 1)[0].decode()) <= int(queries["sinceSeconds"])]
            if queries.get("sinceTime"):
                since = times.parsed(queries["sinceTime"])
                lines = [line for line in lines if times.parsed(line.split(b" ", 1)[0].decode()) >= since]
            if queries.get("tailLines"):
                count = int(queries["tailLines"])
                lines = lines[-count:] if count else []
            text = b"".join(show(line) for line in lines)
            write(text[:int(queries["limitBytes"])] if queries.get("limitBytes") else text)
            while queries.get("follow") == "true":
                with self._grown:
                    is_open, more = self.is_open, file.readlines()
                    if not more and is_open:
                        self._grown.wait(1)
                if more:
                    write(b"".join(show(line) for line in more))
                elif not is_open:
                    return
                else:
                    write(b"")

    def close(self):
        self._file.close()
