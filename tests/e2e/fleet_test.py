#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One memtunectl and a fleet: a hundred daemons, half of them over TLS, and
hosts that hang, refuse and deny among them."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from certificates import Authority, ServedFolder
from harness import binary, free_port, run, wait_for

DAEMONS = int(os.environ.get("MEMTUNED_FLEET_DAEMONS", "100"))
OPERATOR = "spiffe://fleet.test/operator"
VIEWER = "spiffe://fleet.test/viewer"


class Fleet:
    """Daemons with a pool each; odd ones listen on TCP as well."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = Authority(os.path.join(folder, "ca"))
        server = self.ca.issue("server")
        self.operator = self.ca.issue("operator", uri=OPERATOR)
        self.viewer = self.ca.issue("viewer", uri=VIEWER)
        self.served = ServedFolder(os.path.join(folder, "served"))
        self.served.rotate(server.certificate, server.key,
                           self.ca.certificate)
        self.config = os.path.join(folder, "memtuned.yaml")
        with open(self.config, "w", encoding="ascii") as file:
            file.write("roles:\n"
                       f"  - {{role: operator, identities: ['{OPERATOR}']}}\n"
                       f"  - {{role: viewer, identities: ['{VIEWER}']}}\n")
        self.targets = []
        self.processes = []
        for i in range(DAEMONS):
            self.start(i)

    def start(self, number):
        runtime = os.path.join(self.folder, str(number))
        os.makedirs(runtime)
        arguments = [binary("memtuned"), "--config", self.config,
                     "--runtime-dir", runtime, "--state-dir", runtime,
                     "--metrics-listen", "off", "--pool", "default=128MiB",
                     "--sample-interval", "10s"]
        if number % 2 == 1:
            address = f"127.0.0.1:{free_port()}"
            arguments += self.served.flags(address)
        else:
            address = "unix:" + os.path.join(runtime, "memtuned.sock")
        self.targets.append(address)
        with open(os.path.join(runtime, "log"), "wb") as log:
            self.processes.append(subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def ctl(self, targets, *arguments, who=None, seconds=60):
        pair = who or self.operator
        return run(binary("memtunectl"), "--targets", ",".join(targets),
                   "--tls-ca", self.ca.certificate_path,
                   "--tls-certificate", pair.certificate_path,
                   "--tls-key", pair.key_path, *arguments, seconds=seconds)

    def all_serve(self):
        # Those that answer are done; the others are asked again.
        result = self.ctl(self.targets, "-o", "json", "--timeout", "20s",
                          "zones")
        return result.returncode == 0


class FleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="memtuned-fleet.")
        cls.fleet = Fleet(cls.folder)
        wait_for(cls.fleet.all_serve, 120, "all daemons serve")

    @classmethod
    def tearDownClass(cls):
        cls.fleet.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def rows(self, result):
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        return ({row["target"]: row for row in rows if "target" in row},
                rows[-1]["summary"])

    def test_sets_a_factor_on_all_of_them(self):
        start = time.monotonic()
        result = self.fleet.ctl(self.fleet.targets, "-o", "json", "--yes",
                                "set", "pageset.batch_factor=2",
                                "--reason", "fleet")
        seconds = time.monotonic() - start
        self.assertEqual(result.returncode, 0, result.stdout[-2000:])
        rows, summary = self.rows(result)
        self.assertEqual(set(rows), set(self.fleet.targets))
        for row in rows.values():
            change = row["documents"][0]["change"]
            self.assertEqual(change["state"], "CHANGE_STATE_APPLIED")
        self.assertEqual(summary["outcomes"], {"done": DAEMONS})
        print(f"set on {DAEMONS} daemons: {seconds:.2f} s", file=sys.stderr)
        self.assertLessEqual(seconds, 8)

    def test_one_that_hangs_refuses_or_denies_delays_nobody(self):
        with socket.socket(socket.AF_UNIX) as hung:
            path = os.path.join(self.folder, "hung.sock")
            hung.bind(path)
            hung.listen()
            good = [t for t in self.fleet.targets[:20]
                    if t.startswith("unix:")]
            denied = self.fleet.targets[1]
            refusing = f"127.0.0.1:{free_port()}"
            # The denied one speaks TLS with a viewer's certificate; to the
            # others a certificate does not matter.
            targets = ["unix:" + path, refusing, denied] + good
            result = self.fleet.ctl(
                targets, "-o", "json", "--yes", "--timeout", "3s", "set",
                "pageset.batch_factor=3", "--reason", "fleet",
                who=self.fleet.viewer)
        self.assertEqual(result.returncode, 1, result.stderr)
        order = [json.loads(line).get("target")
                 for line in result.stdout.splitlines()]
        rows, summary = self.rows(result)
        self.assertEqual(rows["unix:" + path]["outcome"], "unreachable")
        self.assertEqual(rows[refusing]["outcome"], "unreachable")
        self.assertEqual(rows[denied]["outcome"], "denied")
        self.assertGreaterEqual(rows["unix:" + path]["seconds"], 2.5)
        self.assertLess(rows["unix:" + path]["seconds"], 5)
        for target in good:
            self.assertEqual(rows[target]["outcome"], "done")
            self.assertLess(rows[target]["seconds"], 2.5)
        # What hung came last: nobody waited for it.
        self.assertEqual(order[-2], "unix:" + path)
        self.assertEqual(summary["targets"], len(targets))

    def test_asks_before_it_changes_several(self):
        targets = self.fleet.targets[:2]
        result = self.fleet.ctl(targets, "set", "pageset.batch_factor=1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("set on 2 targets needs --yes", result.stderr)
        plan = self.fleet.ctl(targets, "set", "pageset.batch_factor=1",
                              "--dry-run")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertEqual(plan.stdout.count("plan only"), 2, plan.stdout)


if __name__ == "__main__":
    unittest.main()
