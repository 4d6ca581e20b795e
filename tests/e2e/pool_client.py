#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that uses a pool through libmemtuned, and does to its files what
its user may. Started as other users by the tests: needs nothing but Python.

    pool_client.py LIBRARY SOCKET attach|observe

It answers one JSON object a line: first what attaching came to, then, for each
line "COMMAND ARGUMENT..." it reads, what that came to."""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import sys

PAGE = 4096
TO_READ = 1
F_ADD_SEALS, F_SEAL_WRITE = 1033, 8


class Options(ctypes.Structure):
    _fields_ = [("timeout_ms", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32 * 6)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 508)]


def load(path):
    library = ctypes.CDLL(path)
    library.memtuned_allocate.restype = ctypes.c_void_p
    library.memtuned_allocate.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.memtuned_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p,
                                      ctypes.c_int]
    library.memtuned_to_offset.restype = ctypes.c_uint64
    library.memtuned_to_offset.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.memtuned_from_offset.restype = ctypes.c_void_p
    library.memtuned_from_offset.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.memtuned_is_attached.argtypes = [ctypes.c_void_p]
    return library


def refusal(call):
    """The name of the error that `call` ends in, "" if it succeeds."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return ""


class PoolClient:
    def __init__(self, library, socket, how):
        self.library = load(library)
        self.socket = socket.encode()
        self.options = Options(flags=TO_READ if how == "observe" else 0)
        self.pool, self.status, self.message = self.attach()

    def attach(self):
        pool, error = ctypes.c_void_p(), Error()
        status = self.library.memtuned_attach(
            self.socket, ctypes.byref(self.options), ctypes.byref(pool),
            ctypes.byref(error))
        return pool, status, error.message.decode() if status else ""

    def files(self):
        """(descriptor, name) of the pool's files."""
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink("/proc/self/fd/" + name)
            except FileNotFoundError:
                continue
            if target.startswith("/memfd:memtuned:"):
                yield int(name), target.split(" ")[0].split(":", 2)[2]

    def metadata(self):
        return next(fd for fd, name in self.files() if ":node" not in name)

    # Commands.

    def again(self, count):
        """Attaches so many times more; the statuses."""
        return [self.attach()[1] for _ in range(int(count))]

    def write(self, text):
        """Writes into a new block; its offset."""
        block = self.library.memtuned_allocate(self.pool, 0)
        if not block:
            return None
        ctypes.memmove(block, text.encode() + b"\0", len(text) + 1)
        return self.library.memtuned_to_offset(self.pool, block)

    def overwrite(self, offset, text):
        at = self.library.memtuned_from_offset(self.pool, int(offset))
        ctypes.memmove(at, text.encode() + b"\0", len(text) + 1)

    def read(self, offset):
        at = self.library.memtuned_from_offset(self.pool, int(offset))
        return ctypes.string_at(at).decode()

    def use(self):
        """What the data path says: allocated, attached, status of a free."""
        block = self.library.memtuned_allocate(self.pool, 0)
        view = self.library.memtuned_from_offset(self.pool, 0)
        return [bool(block),
                bool(self.library.memtuned_is_attached(self.pool)),
                self.library.memtuned_free(self.pool, block or view, 0)]

    def intrude(self):
        """Every way to write through a descriptor, for each of the pool's."""
        answers = {}
        for fd, name in self.files():
            path = f"/proc/self/fd/{fd}"
            answers[name] = {
                "open": refusal(lambda p=path: os.open(p, os.O_RDWR)),
                "open to write": refusal(lambda p=path: os.open(
                    p, os.O_WRONLY)),
                "map": refusal(lambda f=fd: mmap.mmap(f, PAGE)),
                "write": refusal(lambda f=fd: os.pwrite(f, b"x", 0)),
                "shrink": refusal(lambda f=fd: os.ftruncate(f, 0)),
                "grow": refusal(lambda f=fd: os.ftruncate(f, 1 << 40)),
                "seal": refusal(lambda f=fd: fcntl.fcntl(
                    f, F_ADD_SEALS, F_SEAL_WRITE)),
                "mode": refusal(lambda f=fd: os.fchmod(f, 0o666)),
            }
        return answers

    def scribble(self, kind):
        """Overwrites all of the pool's metadata. How many bytes."""
        fd = self.metadata()
        size = os.fstat(fd).st_size
        noise = random.Random(7)
        with mmap.mmap(fd, size) as data:
            step = 1 << 20
            for at in range(0, size, step):
                length = min(step, size - at)
                data[at:at + length] = (
                    noise.randbytes(length) if kind == "noise"
                    else bytes([int(kind, 16)]) * length)
        return size


def main():
    client = PoolClient(*sys.argv[1:])
    print(json.dumps([client.status, client.message]), flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        print(json.dumps(getattr(client, command)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
