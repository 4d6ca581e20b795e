# SPDX-License-Identifier: Apache-2.0
"""A service manager as far as memtuned sees it: a NOTIFY_SOCKET that keeps
descriptors, and LISTEN_FDS for the next main process."""

import contextlib
import os
import socket
import tempfile
import threading
from unittest import mock

MOST_FDS_OF_MESSAGE = 16


class ServiceManager:
    """A context manager. `most`: descriptors that it keeps."""

    def __init__(self, most=4096):
        self._folder = tempfile.TemporaryDirectory()
        self._path = os.path.join(self._folder.name, "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._path)
        self._socket.settimeout(0.1)
        self._lock = threading.Lock()
        self._stored = []  # (name, descriptor)
        self._most = most
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, value, trace):
        self._done.set()
        self._thread.join()
        self._socket.close()
        for _, fd in self._stored:
            os.close(fd)
        self._folder.cleanup()

    def names(self):
        with self._lock:
            return sorted(name for name, _ in self._stored)

    def command(self, arguments):
        """Runs them as a main process that gets what is stored, whatever it
        is numbered until then; LISTEN_PID is the process's own."""
        with self._lock:
            count = len(self._stored)
            names = ":".join(name for name, _ in self._stored)
        script = (f'LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES="{names}" '
                  'exec "$@"')
        return ["/bin/sh", "-c", script if count else 'exec "$@"', "sh",
                *arguments]

    @contextlib.contextmanager
    def environment(self, daemon):
        """While this is on, `daemon` starts as this manager's service."""
        with self._lock:
            daemon.inherited = [fd for _, fd in self._stored]
        with mock.patch.dict(os.environ, {"NOTIFY_SOCKET": self._path}):
            yield
        daemon.inherited = []

    def _run(self):
        while not self._done.is_set():
            with contextlib.suppress(TimeoutError):
                data, fds, _, _ = socket.recv_fds(self._socket, 4096,
                                                  MOST_FDS_OF_MESSAGE)
                with self._lock:
                    self._obey(data.decode().split("\n"), fds)

    def _obey(self, lines, fds):
        fields = dict(line.split("=", 1) for line in lines)
        name = fields.get("FDNAME", "stored")
        if fields.get("FDSTORE") == "1":
            for fd in fds:
                if len(self._stored) < self._most:
                    self._stored.append((name, fd))
                else:
                    os.close(fd)
        elif fields.get("FDSTOREREMOVE") == "1":
            for entry in [e for e in self._stored if e[0] == name]:
                os.close(entry[1])
                self._stored.remove(entry)
