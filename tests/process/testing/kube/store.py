"""What a stand-in cluster knows: objects by resource, namespace and name, each with the number of its last change. Every
change is a line in a journal before anyone hears of it, so that a killed API server comes back with all it has answered.
Objects that are handed out are shared and must not be changed; `change` gives a copy to the caller's function. Used by
many threads."""

import collections
import contextlib
import json
import os
import threading

KEPT_EVENTS = 5000  # a watch that asks for something older begins anew


class Conflict(Exception):
    """The object has been changed since the caller read it."""


class Absent(Exception):
    """There is no such object."""


class Exists(Exception):
    """There is such an object already."""


class TooOld(Exception):
    """The events that a watch asks for are forgotten."""


Change = collections.namedtuple("Change", "version resource kind object before")


def copied(value):
    return json.loads(json.dumps(value))


class Store:
    def __init__(self, path):
        self._changed = threading.Condition(threading.RLock())
        self._objects = collections.defaultdict(dict)
        self._events = collections.deque(maxlen=KEPT_EVENTS)
        self._version = 0
        self._path = path
        self._read()
        self._oldest = self._version
        self._journal = self._begin_journal()

    def _read(self):
        if not os.path.exists(self._path):
            return
        with open(self._path, encoding="utf-8") as lines:
            for line in lines:
                try:
                    version, resource, namespace, name, value = json.loads(line)
                except ValueError:
                    continue  # the last line of a process that was killed while it wrote
                self._version = max(self._version, version)
                if value is None:
                    self._objects[resource].pop((namespace, name), None)
                else:
                    self._objects[resource][namespace, name] = value

    def _begin_journal(self):
        """Writes what there is as a new journal beside the old one, which it then replaces."""
        new = self._path + ".new"
        with open(new, "w", encoding="utf-8") as file:
            file.write(json.dumps([self._version, "", "", "", None]) + "\n")
            for resource, objects in self._objects.items():
                for (namespace, name), value in objects.items():
                    file.write(json.dumps([self._version, resource, namespace, name, value]) + "\n")
        os.replace(new, self._path)
        return open(self._path, "a", encoding="utf-8")  # pylint: disable=consider-using-with

    @contextlib.contextmanager
    def locked(self):
        """For several reads and changes that belong together."""
        with self._changed:
            yield

    @property
    def version(self):
        with self._changed:
            return self._version

    def get(self, resource, namespace, name):
        with self._changed:
            return self._objects[resource].get((namespace, name))

    def list(self, resource, namespace=None):
        """Returns the objects by namespace and name; those of all namespaces for None."""
        with self._changed:
            return [value for (where, _), value in sorted(self._objects[resource].items(), key=lambda item: item[0])
                    if namespace is None or where == namespace]

    def resources(self):
        with self._changed:
            return [resource for resource, objects in self._objects.items() if objects]

    def create(self, resource, value):
        namespace, name = self._key(value)
        with self._changed:
            if (namespace, name) in self._objects[resource]:
                raise Exists(name)
            return self._put(resource, namespace, name, copied(value), "ADDED", None)

    def change(self, resource, namespace, name, function, version=None):
        """Calls function(copy), which changes the copy, and keeps it. Nothing happens if it is as before. `version`, if
        not None, must still be the object's."""
        with self._changed:
            before = self._objects[resource].get((namespace, name))
            if before is None:
                raise Absent(name)
            if version not in (None, "", before["metadata"]["resourceVersion"]):
                raise Conflict(name)
            value = copied(before)
            function(value)
            value["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
            if value == before:
                return before
            return self._put(resource, namespace, name, copied(value), "MODIFIED", before)

    def delete(self, resource, namespace, name):
        """Returns what the object was."""
        with self._changed:
            before = self._objects[resource].get((namespace, name))
            if before is None:
                raise Absent(name)
            last = copied(before)
            self._put(resource, namespace, name, last, "DELETED", before)
            return last

    def _put(self, resource, namespace, name, value, kind, before):
        self._version += 1
        value["metadata"]["resourceVersion"] = str(self._version)
        gone = kind == "DELETED"
        self._journal.write(json.dumps([self._version, resource, namespace, name, None if gone else value]) + "\n")
        self._journal.flush()
        if gone:
            del self._objects[resource][namespace, name]
        else:
            self._objects[resource][namespace, name] = value
        if len(self._events) == KEPT_EVENTS:
            self._oldest = self._events[0].version
        self._events.append(Change(self._version, resource, kind, value, before))
        self._changed.notify_all()
        return value

    @staticmethod
    def _key(value):
        return value["metadata"].get("namespace", ""), value["metadata"]["name"]

    def changes_after(self, version, resource=None, timeout=1.0):
        """Waits for changes behind a version, and returns (the version up to which it has looked, the changes)."""
        with self._changed:
            if version < self._oldest or version > self._version:
                raise TooOld(version)
            if self._version == version:
                self._changed.wait(timeout)
            return self._version, [event for event in self._newer(version) if resource in (None, event.resource)]

    def _newer(self, version):
        newer = []
        for event in reversed(self._events):
            if event.version <= version:
                break
            newer.append(event)
        return reversed(newer)
