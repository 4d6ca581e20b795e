#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The unit that deploy/ ships, started by a real systemd: its sandbox lets the
daemon work, and its store of descriptors brings a pool over kill -9, restart
and reload. Needs root, for namespaces of its own."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import free_port, wait_for

BIN = os.environ["MEMTUNED_BIN_DIR"]
SOURCE = os.environ["MEMTUNED_SOURCE_DIR"]
SYSTEMD = "/lib/systemd/systemd"
CONFIG = """
metrics-listen: 127.0.0.1:{port}
pool:
  default:
    size: 64MiB
    mode: 0666
"""


class SystemdTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not os.path.exists(SYSTEMD):
            self.skipTest("boots a systemd: needs root, and systemd")
        self.work = tempfile.mkdtemp(prefix="memtuned-e2e.")
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        os.chmod(self.work, 0o755)
        with open(os.path.join(self.work, "memtuned.yaml"), "w",
                  encoding="utf-8") as file:
            file.write(CONFIG.format(port=free_port()))
        self.machine = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup",
             "--fork", "--kill-child", "--mount-proc", "bash",
             os.path.join(SOURCE, "tests/e2e/systemd_boot.sh"), BIN,
             os.path.join(SOURCE, "deploy/systemd/memtuned.service"),
             self.work],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.power_off)
        self.wait_for_ready(0)

    def power_off(self):
        self.machine.kill()
        said = self.machine.communicate()[0]
        if sys.exc_info()[0] is not None:
            print(said, self.log(), file=sys.stderr)

    def log(self):
        with contextlib.suppress(OSError):
            with open(os.path.join(self.work, "memtuned.log"),
                      encoding="utf-8") as file:
                return file.read()
        return ""

    def inside(self, *command, **options):
        """A command, or its Popen, in the machine's namespaces."""
        with open(f"/proc/{self.machine.pid}/task/{self.machine.pid}/children",
                  encoding="ascii") as file:
            init = file.read().split()[0]
        words = ["nsenter", "-t", init, "-m", "-p", "-i", "-u", *command]
        if options.pop("background", False):
            return subprocess.Popen(words, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        return subprocess.run(words, text=True, capture_output=True,
                              timeout=60, check=False)

    def show(self, name):
        return self.inside("systemctl", "show", "--value", "-p", name,
                           "memtuned").stdout.strip()

    def wait_for_ready(self, other_than):
        """Returns: the daemon's pid."""
        def ready():
            self.assertIsNone(self.machine.poll(), "the machine runs")
            with contextlib.suppress(IndexError, OSError):
                return (self.show("ActiveState") == "active"
                        and int(self.show("MainPID")) not in (0, other_than))
            return False
        wait_for(ready, 30, "systemd says that memtuned is ready")
        return int(self.show("MainPID"))

    def ctl(self, *arguments):
        result = self.inside("/mnt/bin/memtunectl", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def processes(self):
        found = json.loads(self.ctl("processes", "-o", "json"))
        return [process["pid"] for process in found.get("processes", [])]

    def batch_factor(self):
        shown = json.loads(
            self.ctl("tunables", "pageset.batch_factor", "-o", "json"))
        return shown["tunable"]["value"]["real"]

    def start_load(self):
        load = self.inside(
            "/mnt/bin/memtune-load", "--socket",
            "/run/memtuned/pools/default.sock", "--seconds", "15", "-o",
            "json", "burst", "300", background=True)
        self.addCleanup(load.communicate)
        self.addCleanup(load.kill)
        wait_for(self.processes, 10, "the load is attached")
        return load

    def test_a_pool_outlives_its_daemon_in_systemds_store(self):
        load = self.start_load()
        pids = self.processes()
        self.ctl("set", "pageset.batch_factor=2", "--reason", "test")
        stored = int(self.show("NFileDescriptorStore"))
        # Metadata and one node's frames; a process costs two more.
        self.assertEqual(stored, 4)
        pid = self.wait_for_ready(0)

        # Everything in the service's control group dies, its keeper too.
        self.inside("systemctl", "kill", "--signal=KILL", "memtuned")
        pid = self.wait_for_ready(pid)
        self.assertEqual(self.processes(), pids)
        self.inside("systemctl", "restart", "memtuned")
        self.wait_for_ready(pid)

        self.assertEqual(self.processes(), pids)
        self.assertEqual(self.log().count('source="service manager"'), 2)
        self.assertEqual(self.batch_factor(), 2)
        out, err = load.communicate(timeout=60)
        self.assertEqual(load.returncode, 0, err)
        result = json.loads(out)
        self.assertEqual(result["allocation_failures"], 0)
        self.assertEqual(result["counters"]["refused_frees"], 0)
        self.assertGreater(result["allocations"], 0)
        wait_for(lambda: self.show("NFileDescriptorStore") == "2", 10,
                 "only the pool is stored")
        self.inside("systemctl", "stop", "memtuned")
        self.assertEqual(self.show("ActiveState"), "inactive")
        self.assertEqual(self.show("Result"), "success")
        self.assertEqual(self.show("NFileDescriptorStore"), "0")

    def test_reload_and_watchdog(self):
        pid = self.wait_for_ready(0)
        path = os.path.join(self.work, "memtuned.yaml")
        with open(path, "a", encoding="utf-8") as file:
            file.write("    pageset.batch_factor: 4\n")

        self.assertEqual(
            self.inside("systemctl", "reload", "memtuned").returncode, 0)

        wait_for(lambda: self.batch_factor() == 4, 10, "it is read again")
        self.assertEqual(int(self.show("MainPID")), pid)
        self.assertGreater(int(self.show("WatchdogTimestampMonotonic")), 0)
        self.assertEqual(self.show("User"), "memtuned")
        status = self.inside("cat", f"/proc/{pid}/status").stdout
        self.assertIn("CapEff:\t0000000000000000", status)
        self.assertIn("Seccomp:\t2", status)


if __name__ == "__main__":
    unittest.main()
