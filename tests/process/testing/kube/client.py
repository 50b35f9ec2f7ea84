"""Calls to the API server from nodes and scripts."""

import http.client
import json
import ssl
import threading
import urllib.parse


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Client:
    """Used by many threads; each has a connection of its own."""

    def __init__(self, server, authority, token):
        split = urllib.parse.urlsplit(server)
        self._address = split.hostname, split.port
        self._tls = ssl.create_default_context(cafile=authority)
        self._token = token
        self._own = threading.local()

    def connection(self, timeout=10):
        return http.client.HTTPSConnection(*self._address, timeout=timeout, context=self._tls)

    def headers(self):
        return {"Authorization": "Bearer " + self._token, "Content-Type": "application/json"}

    def call(self, verb, path, value=None, content_type="application/json"):
        """Raises OSError if there is no server, Refused if it says no. A connection that the server has left is tried
        once more."""
        body = None if value is None else json.dumps(value)
        for is_last in (False, True):
            if getattr(self._own, "connection", None) is None:
                self._own.connection, is_last = self.connection(), True
            try:
                self._own.connection.request(verb, path, body, dict(self.headers(), **{"Content-Type": content_type}))
                answer = self._own.connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self._own.connection.close()
                self._own.connection = None
                if is_last:
                    raise OSError(f"the API server doesn't answer: {error}") from error
        if answer.status >= 300:
            raise Refused(answer.status, data.decode(errors="replace"))
        return json.loads(data) if data else None

    def watch(self, path, on_event):
        """Calls on_event(event) for each of a watch until that ends."""
        connection = self.connection(timeout=None)
        try:
            connection.request("GET", path, headers=self.headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise Refused(answer.status, answer.read().decode(errors="replace"))
            for line in answer:
                on_event(json.loads(line))
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
