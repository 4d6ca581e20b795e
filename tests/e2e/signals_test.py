#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM stops in order, under load and with watchers; SIGHUP reads the
configuration again and keeps the old one when the new one is bad."""

import json
import os
import signal
import sys
import time
import unittest

import grpc
import stubs
from harness import Daemon, wait_for

POOL = "pools/default"


class TerminateTest(unittest.TestCase):
    def test_idle_daemon_stops_at_once_and_cleans_up(self):
        with Daemon() as daemon:
            status, seconds = daemon.terminate()

            self.assertEqual(status, 0)
            self.assertLess(seconds, 3)
            self.assertFalse(os.path.exists(daemon.socket))
            self.assertFalse(os.path.exists(daemon.pool_socket()))

    def test_under_load_the_attached_process_works_on(self):
        with Daemon() as daemon:
            load = daemon.start_load("burst", 300, seconds=4)
            wait_for(lambda: self.processes(daemon) == 1, 10, "load attached")

            status, seconds = daemon.terminate()
            output, errors = load.communicate(timeout=30)

        self.assertEqual(status, 0)
        self.assertLess(seconds, 10)
        self.assertEqual(load.returncode, 0, errors)
        self.assertTrue(json.loads(output))

    def processes(self, daemon):
        document = daemon.ctl_json("--subject", POOL, "processes")
        return len(document.get("processes", []))

    def test_watchers_are_told(self):
        with Daemon() as daemon, stubs.Client(daemon) as client:
            stream = client.stats.WatchSnapshots(
                stubs.stats_pb2.WatchSnapshotsRequest(name=POOL), timeout=60)
            next(stream)

            status, seconds = daemon.terminate()
            with self.assertRaises(grpc.RpcError) as caught:
                for _ in stream:
                    pass

        self.assertEqual(status, 0)
        self.assertLess(seconds, 10)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_sigint_is_the_same(self):
        with Daemon() as daemon:
            daemon.process.send_signal(signal.SIGINT)
            self.assertEqual(daemon.process.wait(10), 0)


class HangupTest(unittest.TestCase):
    def config(self, daemon, text):
        with open(os.path.join(daemon.dir, "memtuned.yaml"), "w",
                  encoding="utf-8") as file:
            file.write(text)

    def hangup(self, daemon, said):
        before = len(daemon.log())
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: said in daemon.log()[before:].lower(), 10,
                 f"the log says {said!r}")

    def test_a_bad_file_keeps_the_old_values(self):
        daemon = Daemon(pools=())
        self.config(daemon, "pools:\n  - name: default\n    size: 64MiB\n")
        daemon.arguments += ["--config",
                             os.path.join(daemon.dir, "memtuned.yaml")]
        with daemon:
            self.config(daemon, "nope: [\n")
            self.hangup(daemon, "memtuned.yaml")
            time.sleep(0.2)

            self.assertIsNone(daemon.process.poll())
            self.assertEqual(daemon.ctl("zones").returncode, 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
