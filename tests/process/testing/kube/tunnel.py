"""Bytes both ways between two sockets, one of which may be TLS, by one thread: a TLS connection isn't for two."""

import select
import socket
import ssl

MOST_WAITING = 1 << 18


class _End:
    def __init__(self, sock, first=b""):
        self.sock, self.out, self.is_over = sock, bytearray(first), False
        sock.setblocking(False)

    def read(self):
        """Returns what has come; None for nothing yet, b"" at the end."""
        try:
            return self.sock.recv(1 << 16)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return None
        except OSError:
            return b""

    def pending(self):
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def flush(self):
        """Returns False if the other side is gone."""
        try:
            while self.out:
                del self.out[:self.sock.send(self.out[:1 << 16])]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
            return True
        except OSError:
            return False
        return True


def tunnel(client, server, to_server=b"", to_client=b""):
    """Copies until one of them ends, and what the server has sent then still reaches the client. The two texts go first."""
    ends = {client: _End(client, to_client), server: _End(server, to_server)}
    other = {client: server, server: client}
    over = False
    while True:
        for end in ends.values():
            if not end.flush():
                return
        if over:
            if not ends[client].out:
                return
            select.select([], [client], [], 10)
            continue
        readers = [sock for sock in ends if len(ends[other[sock]].out) < MOST_WAITING]
        ready = [sock for sock in readers if ends[sock].pending()]
        if not ready:
            writers = [sock for sock, end in ends.items() if end.out]
            ready = select.select(readers, writers, [], 60)[0]
        for sock in ready:
            data = ends[sock].read()
            if data:
                ends[other[sock]].out += data
            elif data == b"":
                if sock is client:
                    return
                over = True


def connect(address, port, timeout=3):
    sock = socket.create_connection((address, port), timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
