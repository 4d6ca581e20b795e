#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each of client/examples does what it says, against a real daemon."""

import os
import subprocess
import sys
import tempfile
import unittest

import grpc

import stubs
from certificates import Authority
from harness import BIN, SOURCE, Daemon, binary, free_port, run

EXAMPLES = os.path.join(SOURCE, "client", "examples")
sys.path.insert(0, os.path.join(EXAMPLES, "python"))
import automation  # noqa: E402

FACTOR = "pageset.batch_factor"
SUBJECT = "pools/default"


class ExampleTest(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(Daemon(
            *cls.flags, pools=("default=256MiB,policy=fixed,populate=lazy",)))
        cls.daemon.wait_until_initialised()

    def tunables(self):
        return self.daemon.ctl_json("--subject", SUBJECT, "tunables")

    def factor(self):
        [value] = [tunable["value"]["real"]
                   for tunable in self.tunables()["tunables"]
                   if tunable["name"].endswith(FACTOR)]
        return value

    def set(self, assignment):
        return self.daemon.ctl_json("--subject", SUBJECT, "set", assignment)

    def expect(self, result, status, output="", error=""):
        self.assertEqual(result.returncode, status,
                         result.stdout + result.stderr)
        self.assertIn(output, result.stdout)
        self.assertIn(error, result.stderr)


class AttachTest(ExampleTest):
    def held_bytes(self):
        return self.daemon.stats("memtuned_pool_largest_holder_bytes")

    def test_c_passes_a_block_on_and_leaves_nothing(self):
        result = run(binary("example_attach_c"), self.daemon.pool_socket())

        self.expect(result, 0, "received: hello from a shared page")
        self.daemon.wait_for_next_sample()
        self.assertEqual(set(self.held_bytes().values()), {0})

    def test_cpp_keeps_containers_in_the_pool(self):
        before = self.allocated()

        result = run(binary("example_attach_cpp"), self.daemon.pool_socket())

        self.expect(result, 0, "111 squared is 12321")
        self.daemon.wait_for_next_sample()
        self.assertGreater(self.allocated(), before)
        self.assertEqual(set(self.held_bytes().values()), {0})

    def allocated(self):
        return sum(self.daemon.stats("memtuned_allocations_total").values())

    def test_both_say_why_they_cannot_attach(self):
        for name in ("example_attach_c", "example_attach_cpp"):
            self.expect(run(binary(name), "/nonexistent/x.sock"), 1,
                        error="/nonexistent/x.sock")
            self.expect(run(binary(name)), 2, error="usage")

    def test_both_build_against_an_installed_library(self):
        with tempfile.TemporaryDirectory() as prefix:
            subprocess.run(["cmake", "--install",
                            os.environ["MEMTUNED_BUILD_DIR"], "--component",
                            "Unspecified", "--prefix", prefix],
                           check=True, capture_output=True)
            environment = dict(os.environ, PKG_CONFIG_PATH=":".join(
                folder for folder, _, files in os.walk(prefix)
                if "memtuned.pc" in files))
            flags = subprocess.run(
                ["pkg-config", "--cflags", "--libs", "memtuned"], check=True,
                capture_output=True, text=True,
                env=environment).stdout.split()
            for compiler, source in (("cc", "c/attach.c"),
                                     ("c++ -std=c++20", "cpp/attach.cc")):
                program = os.path.join(prefix, "attach")
                built = run(*compiler.split(), os.path.join(EXAMPLES, source),
                            *flags, "-o", program)
                self.expect(built, 0)


class Interfered:
    """The stub of the automation, with a hand in one of its calls."""

    def __init__(self, stub, method, change):
        self.stub, self.method, self.change = stub, method, change
        self.calls = 0

    def __getattr__(self, name):
        call = getattr(self.stub, name)
        if name != self.method:
            return call

        def interfered(request, timeout):
            self.calls += 1
            reply = call(request, timeout=timeout)
            if self.calls == 1:
                self.change()
            return reply
        return interfered


class PythonTest(ExampleTest):
    def setUp(self):
        client = self.enterContext(stubs.Client(self.daemon))
        self.tuning = client.tuning

    def test_sets_and_drains(self):
        self.set(FACTOR + "=1")
        self.daemon.load("burst", 50)

        result = run(
            os.path.join(EXAMPLES, "python", "automation.py"), "--target",
            "unix:" + self.daemon.socket, SUBJECT, "2", "nightly",
            env=dict(os.environ, PYTHONPATH=stubs.FOLDER))

        self.expect(result, 0, FACTOR + " 1 -> 2")
        self.assertRegex(result.stdout, r"[1-9]\d* pages left pagesets")
        self.assertEqual(self.factor(), 2)

    def test_says_why_it_is_refused(self):
        result = run(
            os.path.join(EXAMPLES, "python", "automation.py"), "--target",
            "unix:" + self.daemon.socket, SUBJECT, "99", "nightly",
            env=dict(os.environ, PYTHONPATH=stubs.FOLDER))
        self.expect(result, 1, error="INVALID_ARGUMENT")

    def test_reads_again_when_somebody_else_was_faster(self):
        self.set(FACTOR + "=1")
        meddled = Interfered(
            self.tuning, "ListTunables",
            lambda: self.set("watermark.scale_factor=77"))

        change = automation.set_factor(meddled, SUBJECT, 4.0, "test")

        self.assertEqual((meddled.calls, change.values[0].after.real), (2, 4))
        self.set("watermark.scale_factor=10")

    def test_repeats_a_lost_reply_without_changing_twice(self):
        self.set(FACTOR + "=1")
        before = int(self.tunables()["generation"])

        def lose():
            raise Lost()
        meddled = Interfered(self.tuning, "SetTunables", lose)
        change = automation.set_factor(meddled, SUBJECT, 3.0, "test")

        self.assertEqual(meddled.calls, 2)
        self.assertEqual(change.generation, before + 1)
        self.assertEqual(int(self.tunables()["generation"]), before + 1)


class PythonTlsTest(ExampleTest):
    """The same over TCP, by certificates that name their role."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.authority = Authority(folder)
        server = cls.authority.issue("server")
        cls.address = f"127.0.0.1:{free_port()}"
        cls.flags = (
            "--listen-tls", cls.address,
            "--tls-certificate", server.certificate_path,
            "--tls-key", server.key_path,
            "--tls-client-ca", cls.authority.certificate_path,
            "--role", "operator,identities=spiffe://example.org/night",
            "--role", "viewer,identities=spiffe://example.org/eye")
        super().setUpClass()

    def automate(self, name, factor):
        caller = self.authority.issue(name, uri="spiffe://example.org/" + name)
        return run(
            os.path.join(EXAMPLES, "python", "automation.py"), "--target",
            self.address, "--tls-ca", self.authority.certificate_path,
            "--tls-certificate", caller.certificate_path, "--tls-key",
            caller.key_path, SUBJECT, str(factor), "nightly",
            env=dict(os.environ, PYTHONPATH=stubs.FOLDER))

    def test_an_operator_sets_and_drains(self):
        self.expect(self.automate("night", 2), 0, FACTOR + " 1 -> 2")
        self.assertEqual(self.factor(), 2)

    def test_a_viewer_may_look_only(self):
        before = self.factor()
        result = self.automate("eye", 7)
        self.expect(result, 1, "zones/Normal: batch", "PERMISSION_DENIED")
        self.assertEqual(self.factor(), before)


class Lost(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.UNAVAILABLE


class ShellTest(ExampleTest):
    def tune(self, percent):
        return run(
            os.path.join(EXAMPLES, "shell", "tune-contended.sh"), SUBJECT,
            str(percent), env=dict(
                os.environ, PATH=f"{BIN}:{os.environ['PATH']}",
                MEMTUNED_TARGET="unix:" + self.daemon.socket,
                SECONDS_WATCHED="1", LARGEST_FACTOR="2"))

    def test_leaves_quiet_locks_alone(self):
        self.set(FACTOR + "=1")
        self.expect(self.tune(10), 0, "0.0 %")
        self.assertEqual(self.factor(), 1)

    def test_doubles_up_to_the_largest(self):
        self.set(FACTOR + "=1")
        self.expect(self.tune(-1), 0, FACTOR + " 1 -> 2")
        self.assertEqual(self.factor(), 2)
        self.expect(self.tune(-1), 0, "at its largest")

    def test_says_how_to_use_it(self):
        script = os.path.join(EXAMPLES, "shell", "tune-contended.sh")
        self.expect(run(script), 2, error="tune-contended.sh SUBJECT")


if __name__ == "__main__":
    sys.exit(unittest.main())
