# SPDX-License-Identifier: Apache-2.0
"""The allocators on this machine and how each one's program is run."""

import os
import subprocess

OURS = "memtuned"
# The same library without what makes it survive deaths.
WITHOUT = "no-recovery"
# Name, libraries to preload: the first that is installed.
PRELOADED = (
    ("tcmalloc", ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4")),
    ("jemalloc", ("libjemalloc.so.2",)),
    ("mimalloc", ("libmimalloc.so.2", "libmimalloc.so.2.0")),
)
# Without trimming glibc keeps what is freed, as a pool does.
NO_TRIM = ("glibc.malloc.trim_threshold=4294967296:"
           "glibc.malloc.mmap_threshold=33554432")


class Skipped(Exception):
    """The allocator cannot run here."""


class Allocator:
    """A program that runs one case, and what it must say it measured."""

    def __init__(self, name, program, said, environment=None,
                 processes=False):
        self.name = name
        self.program = program
        self.said = said  # in the program's second word
        self.environment = environment or {}
        self.processes = processes

    def runs(self, case):
        return self.processes or not case.endswith("processes")

    def measure(self, case, milliseconds):
        """Nanoseconds per pair. Raises Skipped, or RuntimeError."""
        done = subprocess.run(
            [self.program, case, str(milliseconds)], capture_output=True,
            env={**os.environ, **self.environment}, text=True, timeout=120,
            check=False)
        if done.returncode == 77:
            raise Skipped(done.stderr.strip())
        words = done.stdout.split()
        if done.returncode != 0 or len(words) != 2:
            raise RuntimeError(f"{self.name}, {case}: exit code "
                               f"{done.returncode}: {done.stderr.strip()}")
        # A preloaded library that does not load is only a warning.
        if self.said not in words[1]:
            raise RuntimeError(f"{self.name}: measured {words[1]} instead")
        return float(words[0])


def installed_libraries():
    """Soname to path, as the loader knows them."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True,
                            text=True, check=True).stdout
    libraries = {}
    for line in listed.splitlines():
        if "=>" in line and "x86-64" in line:
            name, path = line.split("=>")
            libraries.setdefault(name.split()[0], path.strip())
    return libraries


def find(bin_dir):
    """All allocators that are here, ours first, and notes on the others."""
    malloc = os.path.join(bin_dir, "bench_malloc")
    found = [Allocator(OURS, os.path.join(bin_dir, "bench_memtuned"), OURS,
                       processes=True)]
    notes = []
    without = os.path.join(bin_dir, WITHOUT)
    if os.path.isdir(without):
        found.append(Allocator(WITHOUT, found[0].program, OURS,
                               {"LD_LIBRARY_PATH": without}, processes=True))
    libraries = installed_libraries()
    for name, sonames in PRELOADED:
        here = [libraries[s] for s in sonames if s in libraries]
        if here:
            found.append(Allocator(name, malloc, name,
                                   {"LD_PRELOAD": here[0]}))
        else:
            notes.append(f"{name}: not installed, left out")
    found.append(Allocator("glibc", malloc, "libc"))
    found.append(Allocator("glibc-notrim", malloc, "libc",
                           {"GLIBC_TUNABLES": NO_TRIM}))
    for name, program, processes in (
            ("boost-interprocess", "bench_boost", True),
            ("dpdk-mempool", "bench_dpdk", False)):
        path = os.path.join(bin_dir, program)
        if os.path.exists(path):
            found.append(Allocator(name, path, name, processes=processes))
        else:
            notes.append(f"{name}: not installed, left out")
    return found, notes
