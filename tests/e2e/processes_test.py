#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What operators see of attached processes, and how they limit them: real
loads that hold memory, want too much, stop and go on."""

import os
import signal
import sys
import unittest

from harness import Daemon, wait_for

PAGE = 4096


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.daemon.__enter__()
        self.addCleanup(self.daemon.__exit__, None, None, None)

    def load(self, blocks, seconds=20):
        """A load that holds up to so many blocks of order 0 at a time."""
        load = self.daemon.start_load("burst", blocks, seconds=seconds,
                                      threads=1)
        self.addCleanup(lambda: (load.kill(), load.communicate()))
        wait_for(self.rows, 10, "the load is attached")
        return load

    def rows(self, *more):
        return self.daemon.ctl_json("processes", *more).get("processes", [])

    def failures(self, reason):
        samples = self.daemon.metrics()
        return samples[("memtuned_allocation_failures_total", frozenset({
            ("subject", "pools/default"), ("reason", reason)}))]

    def id(self):
        return self.rows()[0]["name"].split("/")[-1]

    def test_shows_what_a_process_holds_and_held(self):
        self.load(2000)

        wait_for(lambda: int(self.rows()[0]["peak_bytes"]) > 1000 * PAGE, 10,
                 "the peak shows")
        row = self.rows()[0]
        self.assertLessEqual(int(row["peak_bytes"]), 2000 * PAGE)
        self.assertEqual(row["state"], "PROCESS_STATE_RUNNING")
        self.assertNotIn("limit_bytes", row)
        nodes = self.rows("--nodes")[0]["nodes"]
        self.assertLessEqual(int(nodes[0].get("bytes", 0)), 2000 * PAGE)

    def test_a_stopped_process_is_said_to_be(self):
        self.load(100)
        pid = int(self.rows()[0]["pid"])
        os.kill(pid, signal.SIGSTOP)

        wait_for(lambda: self.rows()[0]["state"] == "PROCESS_STATE_STOPPED",
                 10, "it is shown as stopped")
        self.assertIn("stopped", self.daemon.ctl("processes").stdout)
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: self.rows()[0]["state"] == "PROCESS_STATE_RUNNING",
                 10, "it is shown as running")

    def test_a_limit_holds_for_one_process_and_is_counted(self):
        self.load(2000)
        self.assertEqual(self.failures("process_limit"), 0)

        result = self.daemon.ctl("limit", self.id(), "1MiB", "--reason",
                                 "it leaks")

        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("process.max_bytes  auto -> 1048576", result.stdout)
        wait_for(lambda: self.failures("process_limit") > 0, 10,
                 "it fails at its limit")
        wait_for(lambda: int(self.rows()[0].get("allocated_bytes", 0))
                 <= 1 << 20, 10, "it holds no more")
        self.assertEqual(int(self.rows()[0]["limit_bytes"]), 1 << 20)
        self.assertTrue(self.rows()[0]["own_limit"])
        self.assertEqual(self.failures("no_memory"), 0)

    def test_nodes_are_set_live_and_nothing_fails(self):
        daemon = Daemon(topology="synthetic:node:2 pu:1",
                        pools=("default=512MiB,policy=fixed",))
        with daemon:
            self.daemon = daemon
            daemon.wait_until_initialised()
            self.load(500, seconds=90)
            pid = self.rows()[0]["pid"]
            for nodes in ["0", "1"] * 20:
                result = daemon.ctl("process", "set-mems", str(pid), nodes)
                self.assertEqual(result.returncode, 0, result.stderr)

            wait_for(lambda: self.rows()[0]["mems_allowed"] == [1], 10,
                     "the nodes show")
            wait_for(lambda: self.held_of(0) == 0, 10,
                     "what it held of the other node is given back")
            wait_for(lambda: self.held_of(1) > 0, 10,
                     "what it holds is of the node it may use")
            self.assertEqual(self.failures("no_memory"), 0)
            self.assertEqual(self.failures("busy"), 0)

    def held_of(self, node):
        for row in self.rows("--nodes")[0].get("nodes", []):
            if int(row.get("node", 0)) == node:
                return int(row.get("bytes", 0))
        return 0

    def test_the_pools_limit_is_for_whoever_comes(self):
        self.assertEqual(
            self.daemon.ctl("set", "process.max_bytes=2097152").returncode, 0)
        self.load(2000)

        wait_for(lambda: self.failures("process_limit") > 0, 10,
                 "it fails at the pool's limit")
        self.assertEqual(int(self.rows()[0]["limit_bytes"]), 2 << 20)
        result = self.daemon.ctl("limit", "1000-1", "none")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("has no process 1000-1; there are", result.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
