#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The unit, its user and its folders, as systemd's own tools judge them; and
that what the unit forbids is nothing the daemon does."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

from certificates import Authority
from harness import SOURCE, Daemon, binary, run, wait_for

UNIT = os.path.join(SOURCE, "deploy", "systemd", "memtuned.service")
SYSTEM_UNITS = "/usr/lib/systemd/system"
# systemd counts from 0 (best) to 100; what most daemons ship is above 90.
MAX_EXPOSURE = 20


def unit_lines():
    with open(UNIT, encoding="utf-8") as file:
        return file.read().splitlines()


def exposure_is_below(text, limit):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memtuned.service")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return run("systemd-analyze", "security", "--offline=true",
                   f"--threshold={limit}", "--no-pager",
                   path).returncode == 0


class Stage:
    """An installed tree under a folder of its own."""

    def __init__(self, folder):
        self.root = folder
        subprocess.run(
            ["cmake", "--install", os.environ["MEMTUNED_BUILD_DIR"],
             "--component", "service", "--prefix", os.path.join(folder, "usr")],
            check=True, capture_output=True)
        self.units = os.path.join(folder, "usr/lib/systemd/system")
        for name in ("sysinit", "basic", "network", "shutdown", "multi-user"):
            shutil.copy(os.path.join(SYSTEM_UNITS, name + ".target"),
                        self.units)
        for name in ("bin", "etc"):
            os.makedirs(os.path.join(folder, name))
        shutil.copy("/bin/kill", os.path.join(folder, "bin"))

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def verify(self):
        """What systemd finds wrong with the unit."""
        result = run("systemd-analyze", "verify", "--man=no",
                     "--root=" + self.root, "memtuned.service")
        return result.stderr or (f"status {result.returncode}"
                                 if result.returncode else "")


class UnitTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stage = Stage(folder.name)

    def test_systemd_finds_nothing_wrong(self):
        self.assertEqual(self.stage.verify(), "")

    def test_systemd_would_find_a_mistake(self):
        path = os.path.join(self.stage.units, "memtuned.service")
        for wrong, right in (("RestartSecs=", "RestartSec="),
                             ("/usr/bin/memtuner", "/usr/bin/memtuned")):
            with self.subTest(wrong), open(path, "w",
                                           encoding="utf-8") as file:
                file.write("\n".join(unit_lines()).replace(right, wrong))
            self.assertNotEqual(self.stage.verify(), "")

    def test_user_and_folders_are_made(self):
        for tool, folder in (("systemd-sysusers", "sysusers.d"),
                             ("systemd-tmpfiles", "tmpfiles.d")):
            if folder == "tmpfiles.d" and os.geteuid() != 0:
                self.skipTest("only root may give folders away")
            words = [tool, "--root=" + self.stage.root]
            if folder == "tmpfiles.d":
                words.append("--create")
            result = run(*words, self.stage.path("usr/lib", folder,
                                                 "memtuned.conf"))
            self.assertEqual(result.returncode, 0, result.stderr)

        with open(self.stage.path("etc/passwd"), encoding="utf-8") as file:
            self.assertIn("memtuned:x:", file.read())
        with open(self.stage.path("etc/group"), encoding="utf-8") as file:
            group = int(re.search("^memtuned:x:(\\d+):", file.read(),
                                  re.MULTILINE).group(1))
        info = os.stat(self.stage.path("etc/memtuned/tls"))
        self.assertEqual((info.st_gid, info.st_mode & 0o7777), (group, 0o750))

    def test_unit_uses_the_user_that_is_made(self):
        self.assertIn("User=memtuned", unit_lines())

    def test_descriptors_of_every_process_can_be_stored(self):
        value = next(line.split("=")[1] for line in unit_lines()
                     if line.startswith("FileDescriptorStoreMax="))
        self.assertGreaterEqual(int(value), 2 * 256 + 2)
        self.assertIn("NotifyAccess=main", unit_lines())

    def check_settings(self, path):
        result = run(binary("memtuned"), "--check", "--config", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        return yaml.safe_load(result.stdout)

    def test_shipped_settings_are_accepted(self):
        self.check_settings(
            self.stage.path("usr/share/doc/memtuned/memtuned.yaml"))

    def test_so_are_those_they_suggest(self):
        authority = Authority(self.stage.root)
        server = authority.issue("server")
        path = self.stage.path("usr/share/doc/memtuned/memtuned.yaml")
        with open(path, encoding="utf-8") as file:
            text = re.sub("^# (listen-tls|tls-|roles:|  )", r"\1",
                          file.read(), flags=re.MULTILINE)
        for suggested, here in (
                ("/etc/memtuned/tls/tls.crt", server.certificate_path),
                ("/etc/memtuned/tls/tls.key", server.key_path),
                ("/etc/memtuned/tls/ca.crt", authority.certificate_path),
                ("groups: [memtuned]", "groups: [0]")):
            self.assertIn(suggested, text)
            text = text.replace(suggested, here)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

        effective = self.check_settings(path)

        self.assertEqual(effective["listen-tls"], "0.0.0.0:9751")
        self.assertEqual(effective["roles"][0]["role"], "operator")


class HardeningTest(unittest.TestCase):
    def test_exposure_is_low(self):
        self.assertTrue(
            exposure_is_below("\n".join(unit_lines()), MAX_EXPOSURE))

    def test_exposure_of_a_bare_unit_would_be_noticed(self):
        bare = [line for line in unit_lines() if not line.startswith(
            ("Protect", "Restrict", "SystemCall", "Capability"))]
        self.assertFalse(exposure_is_below("\n".join(bare), MAX_EXPOSURE))

    def test_nothing_stands_between_the_daemon_and_its_callers(self):
        for forbidden in ("PrivateUsers", "ProtectProc", "ProcSubset",
                          "PrivateNetwork", "IPAddressDeny"):
            self.assertFalse(
                [line for line in unit_lines()
                 if line.startswith(forbidden + "=")], forbidden)


def expand(names):
    """System calls of a list of calls and @groups."""
    calls = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        listed = run("systemd-analyze", "syscall-filter", name).stdout
        words = [line.strip() for line in listed.splitlines()[1:]]
        calls |= expand(word for word in words
                        if word and not word.startswith("#"))
    return calls


def allowed_calls():
    allowed = set()
    for line in unit_lines():
        if not line.startswith("SystemCallFilter="):
            continue
        value = line.split("=", 1)[1]
        if value.startswith("~"):
            allowed -= expand(value[1:].split())
        else:
            allowed |= expand(value.split())
    return allowed


class SystemCallTest(unittest.TestCase):
    """A life of the daemon, with every system call it makes."""

    def made_calls(self):
        daemon = Daemon(pools=("default=256MiB,populate=reserve",))
        summary = os.path.join(daemon.dir, "calls")
        daemon.arguments[:0] = ["strace", "-f", "-c", "-o", summary]
        with daemon:
            daemon.wait_until_initialised()
            daemon.load("burst", 300)
            for words in (("set", "pageset.batch_factor=2"), ("recalculate",),
                          ("drain",), ("processes",), ("topology",)):
                self.assertEqual(daemon.ctl(*words).returncode, 0)
            daemon.metrics()
            lock = os.path.join(daemon.runtime, "memtuned.lock")
            with open(lock, encoding="utf-8") as file:
                pid = int(file.read())
            os.kill(pid, 1)
            wait_for(lambda: "reloaded" in daemon.log(), 10, "reload")
            os.kill(pid, 15)
            daemon.process.wait(20)
            with open(summary, encoding="utf-8") as file:
                lines = file.read().splitlines()
        rows = [line.split() for line in lines[2:]]
        return {row[-1] for row in rows
                if len(row) >= 5 and row[-1].isidentifier()} - {"total"}

    def test_the_unit_allows_each_and_no_privileged_one(self):
        made = self.made_calls()
        allowed = allowed_calls()

        self.assertLessEqual({"mbind", "membarrier", "memfd_create"}, made)
        self.assertEqual(made - allowed, set())
        self.assertEqual({"mount", "reboot", "bpf", "setuid"} & allowed, set())


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class UserTest(unittest.TestCase):
    """The daemon as the unit runs it: another user, no capability."""

    def test_serves_without_a_privilege(self):
        uid = 65534
        daemon = Daemon(pools=("default=256MiB,populate=reserve",))
        program = os.path.join(daemon.dir, "memtuned")
        shutil.copy(binary("memtuned"), program)  # it may enter this folder
        daemon.arguments[0] = program
        daemon.arguments[:0] = [
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
            "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
        for folder in (daemon.dir, daemon.runtime, daemon.state):
            os.chown(folder, uid, uid)

        with daemon:
            load = daemon.load("burst", 300)
            owner = os.stat(daemon.socket).st_uid
            log = daemon.log()

        self.assertGreater(load["allocations"], 0)
        self.assertEqual(owner, uid)
        self.assertNotIn("frames-not-bound", log)


if __name__ == "__main__":
    sys.exit(unittest.main())
