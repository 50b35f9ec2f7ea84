"""SPDY/3.1 as far as `kubectl exec` speaks it: frames of a connection that has been upgraded. The client opens a stream
for each of error, stdin, stdout and stderr; nobody minds the window, as Kubernetes' own library doesn't. The format is
that of the draft "SPDY Protocol, draft 3.1"."""

import struct
import threading
import zlib

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 1
MOST_OF_A_FRAME = 1 << 24

# What both ends put before the first headers when they compress: words with their lengths, then a text.
_WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer
retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status
200\N{NO-BREAK SPACE}OK version HTTP/1.1 url public set-cookie keep-alive origin"""
_TEXT = (b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
         b"Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
         b"Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
         b"00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
         b"application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
         b"charset=iso-8859-1,utf-,*,enq=0.")


def _dictionary():
    parts = []
    for word in _WORDS.replace("\n", " ").split(" "):
        word = word.replace("\N{NO-BREAK SPACE}", " ").encode()
        parts.append(struct.pack(">I", len(word)) + word)
    return b"".join(parts) + _TEXT


DICTIONARY = _dictionary()


class Ended(Exception):
    """The connection has ended."""


class Stream:
    """One that the client has opened."""

    def __init__(self, connection, number, headers):
        self.connection, self.number, self.headers = connection, number, headers
        self.ended = False

    def write(self, data):
        for begin in range(0, len(data), 1 << 15):
            self.connection.send_data(self.number, data[begin:begin + (1 << 15)], 0)

    def end(self):
        if not self.ended:
            self.ended = True
            self.connection.send_data(self.number, b"", FIN)


class Connection:
    """The server's end. `read` and `write` move bytes of the connection: read(n) returns as many or fewer at its end. One
    thread calls `serve`; any thread writes to streams."""

    def __init__(self, read, write):
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._streams = {}

    def serve(self, on_stream, on_data):
        """Calls on_stream(stream) and on_data(stream, bytes), the latter with b"" at the end of a stream, until the
        connection ends."""
        try:
            while True:
                self._one_frame(on_stream, on_data)
        except (Ended, OSError, zlib.error, struct.error):
            return

    def _exactly(self, size):
        data = b""
        while len(data) < size:
            more = self._read(size - len(data))
            if not more:
                raise Ended
            data += more
        return data

    def _one_frame(self, on_stream, on_data):
        head = self._exactly(8)
        first, flags_and_size = struct.unpack(">II", head)
        flags, size = flags_and_size >> 24, flags_and_size & 0xFFFFFF
        body = self._exactly(size)
        if first >> 31:
            self._control(first & 0xFFFF, flags, body, on_stream, on_data)
            return
        stream = self._streams.get(first)
        if stream is None:
            return
        if body:
            on_data(stream, body)
        if flags & FIN:
            on_data(stream, b"")

    def _control(self, kind, flags, body, on_stream, on_data):
        if kind == SYN_STREAM:
            number = struct.unpack(">I", body[:4])[0] & 0x7FFFFFFF
            stream = Stream(self, number, self._headers(body[10:]))
            self._streams[number] = stream
            self._send(SYN_REPLY, 0, struct.pack(">I", number) + self._compressed_headers({}))
            on_stream(stream)
            if flags & FIN:
                on_data(stream, b"")
        elif kind == HEADERS:
            self._headers(body[4:])  # keeps the state of the decompression
        elif kind == RST_STREAM:
            stream = self._streams.get(struct.unpack(">I", body[:4])[0])
            if stream is not None:
                on_data(stream, b"")
        elif kind == PING:
            self._send(PING, 0, body)
        elif kind == GOAWAY:
            raise Ended

    def _headers(self, data):
        text = self._inflate.decompress(data, MOST_OF_A_FRAME)
        count, at, headers = struct.unpack(">I", text[:4])[0], 4, {}
        for _ in range(count):
            pair = []
            for _ in range(2):
                size = struct.unpack(">I", text[at:at + 4])[0]
                pair.append(text[at + 4:at + 4 + size].decode())
                at += 4 + size
            headers[pair[0].lower()] = pair[1]
        return headers

    def _compressed_headers(self, headers):
        text = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for part in (name.encode(), value.encode()):
                text += struct.pack(">I", len(part)) + part
        return self._deflate.compress(text) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def _send(self, kind, flags, body):
        with self._lock:
            self._write(struct.pack(">HHI", 0x8003, kind, (flags << 24) | len(body)) + body)

    def send_data(self, number, data, flags):
        with self._lock:
            self._write(struct.pack(">II", number, (flags << 24) | len(data)) + data)
