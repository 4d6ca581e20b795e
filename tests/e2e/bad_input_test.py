#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A wrong command line or configuration ends memtuned at once with status 2, a
place or machine it cannot use with status 1; the message names what was wrong
and nothing is left behind."""

import os
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import Daemon, binary, run

FAILED = 1
USAGE = 2


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="memtuned-e2e.")
        self.addCleanup(self.folder.cleanup)
        self.runtime = os.path.join(self.folder.name, "run")
        os.mkdir(self.runtime)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def start(self, *flags, runtime=None):
        if "--metrics-listen" not in flags:
            flags += ("--metrics-listen", "off")
        return run(binary("memtuned"), "--runtime-dir",
                   runtime or self.runtime, "--state-dir", self.folder.name,
                   *flags, seconds=20, cwd=self.folder.name)

    def refused(self, *flags, names, status=USAGE, **kwargs):
        result = self.start(*flags, **kwargs)
        message = result.stdout + result.stderr
        self.assertEqual(result.returncode, status, message)
        for name in names:
            self.assertIn(name, message)
        self.assertNotIn("terminate called", message)
        self.assertFalse(
            os.path.exists(os.path.join(self.runtime, "memtuned.sock")))

    def test_flags(self):
        for flags, names in (
                (("--nope",), ("--nope",)),
                (("--topology", "mars"), ("mars", "live")),
                (("--metrics-listen", "0.0.0.0:0"), ("0.0.0.0",)),
                (("--metrics-listen", "[::1]:0"), ("IPv6",)),
                (("--metrics-listen", "127.0.0.1:99999"), ("99999",)),
                (("--config", "/nonexistent.yaml"), ("/nonexistent.yaml",))):
            with self.subTest(flags=flags):
                self.refused("--pool", "default=64MiB", *flags, names=names)

    def test_pools(self):
        for pool, names in (
                ("default", ("default",)),
                ("default=", ("default",)),
                ("default=0", ("0",)),
                ("default=-1GiB", ("-1GiB",)),
                ("default=12XB", ("12XB",)),
                ("default=99999999999999999999GiB", ("99999999999999999999",)),
                ("Bad/Name=64MiB", ("Bad/Name",)),
                ("=64MiB", ("pool name",)),
                ("default=64MiB,policy=fast", ("fast", "memtuned")),
                ("default=64MiB,pageset.batch_factor=9", ("0.25 to 8",)),
                ("default=64MiB,populate=perhaps", ("perhaps", "lazy")),
                ("default=64MiB,mode=999", ("999", "octal")),
                ("default=64MiB,sections_per_second=-1", ("-1",)),
                ("default=64MiB,nope=1", ("nope",))):
            with self.subTest(pool=pool):
                self.refused("--pool", pool, names=names)

    def test_two_pools_of_one_name(self):
        self.refused("--pool", "a=64MiB", "--pool", "a=64MiB", names=("a",))

    def test_configuration_files(self):
        for text, names in (
                ("pool: [", ("bad.yaml",)),
                ("pool: [a]\n", ("bad.yaml:1", "a list")),
                ("nope: 1\n", ("bad.yaml:1", "nope", "sample-interval")),
                ("pool:\n  a: 12XB\n", ("bad.yaml:2", "12XB")),
                ("pool:\n  a:\n    size: 64MiB\n    policy: fast\n",
                 ("bad.yaml:4", "fast")),
                ("sample-interval: never\npool: {a: 64MiB}\n",
                 ("bad.yaml:1", "never")),
                ("log-level: loud\npool: {a: 64MiB}\n", ("loud", "warning")),
                ("", ("pool",)),
                ("- just\n- a list\n", ("bad.yaml",)),
                ("\x00\x01\x02", ("bad.yaml",)),
                ("a: &a [*a, *a]\n" * 50, ("bad.yaml",))):
            with self.subTest(text=text[:20]):
                path = self.path("bad.yaml", text)
                self.refused("--config", path, names=names)

    def test_topologies_that_are_none(self):
        for topology in ("synthetic:nonsense:x", "synthetic:",
                         "synthetic:node:100000 pu:100000",
                         "xml:/nonexistent.xml", "xml:/"):
            with self.subTest(topology=topology):
                self.refused("--topology", topology, "--pool",
                             "default=64MiB", status=FAILED,
                             names=(topology.partition(":")[2],))

    def test_topology_files(self):
        for name, text in (("empty.xml", ""), ("text.xml", "not xml at all"),
                           ("cut.xml", "<?xml version=\"1.0\"?><topology")):
            with self.subTest(name=name):
                path = self.path(name, text)
                self.refused("--topology", "xml:" + path, "--pool",
                             "default=64MiB", names=(name,), status=FAILED)

    def test_a_folder_that_is_none(self):
        file = self.path("file", "x")
        for runtime in (file, file + "/below", "/proc/memtuned"):
            with self.subTest(runtime=runtime):
                self.refused("--pool", "default=64MiB", runtime=runtime,
                             names=(runtime,), status=FAILED)

    def test_a_busy_metrics_port(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            self.refused("--pool", "default=64MiB", "--metrics-listen",
                         f"127.0.0.1:{port}", names=(str(port), "in use"),
                         status=FAILED)

    def test_a_runtime_folder_in_use(self):
        with Daemon(pools=("default=64MiB",)) as first:
            second = self.start("--pool", "default=64MiB",
                                runtime=first.runtime)
            message = second.stdout + second.stderr
            self.assertEqual(second.returncode, FAILED, message)
            self.assertIn(first.runtime, message)
            self.assertEqual(first.ctl("zones").returncode, 0)

    def test_a_socket_left_by_a_dead_daemon_is_taken_over(self):
        with Daemon(pools=("default=64MiB",)) as first:
            first.process.kill()
            first.process.wait()
            with Daemon(pools=("default=64MiB",),
                        directory=first.dir) as second:
                self.assertEqual(second.ctl("zones").returncode, 0)


class MemtunectlTest(unittest.TestCase):
    """Exit status by the documented table."""

    def status(self, *arguments):
        result = run(binary("memtunectl"), *arguments)
        self.assertNotEqual(result.stdout + result.stderr, "")
        return result.returncode

    def test_usage_errors_are_2(self):
        for arguments in (("nope",), ("zones", "--nope"), ("set",),
                          ("--timeout", "soon", "zones"),
                          ("set", "pageset.batch_factor")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.status(*arguments), 2)

    def test_no_daemon_is_3(self):
        self.assertEqual(
            self.status("--target", "unix:/nonexistent.sock", "zones"), 3)

    def test_a_value_out_of_range_says_what_is_allowed(self):
        with Daemon(pools=("default=64MiB",)) as daemon:
            result = daemon.ctl("set", "pageset.batch_factor=9")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("0.25 to 8", result.stdout + result.stderr)


class MemtuneLoadTest(unittest.TestCase):
    def status(self, *arguments):
        result = subprocess.run(
            [binary("memtune-load"), *arguments], capture_output=True,
            text=True, timeout=30, check=False)
        return result.returncode, result.stdout + result.stderr

    def test_refuses_bad_shapes_and_counts(self):
        for arguments in (("spiral",), ("burst", "0"), ("burst", "many"),
                          ("--threads", "0", "lifo"),
                          ("--processes", "-1", "lifo"), ()):
            with self.subTest(arguments=arguments):
                code, message = self.status("--socket", "/nonexistent",
                                            *arguments)
                self.assertEqual(code, 2, message)
                self.assertNotEqual(message, "")

    def test_names_the_socket_that_is_not_there(self):
        code, message = self.status("--socket", "/nonexistent.sock",
                                    "--seconds", "1", "lifo")
        self.assertNotIn(code, (0, 2))
        self.assertIn("/nonexistent.sock", message)


if __name__ == "__main__":
    sys.exit(unittest.main())
