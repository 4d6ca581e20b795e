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
    """A daemon with a configuration file that changes under it."""

    def setUp(self):
        self.daemon = Daemon(pools=())
        self.path = os.path.join(self.daemon.dir, "memtuned.yaml")
        self.write("pool: {default: 64MiB}\nsample-interval: 10s\n")
        self.daemon.arguments += ["--config", self.path]
        self.daemon.start()
        self.addCleanup(self.daemon.__exit__, None, None, None)

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def hangup(self, *said):
        before = len(self.daemon.log())
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: all(word in self.daemon.log()[before:]
                             for word in said), 10, f"the log says {said}")

    def samples_in(self, seconds):
        seen = set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            seen.add(self.daemon.sample_time())
            time.sleep(0.05)
        return len(seen)

    def test_a_new_interval_counts_at_once(self):
        self.assertLessEqual(self.samples_in(1.5), 2)

        self.write("pool: {default: 64MiB}\nsample-interval: 100ms\n")
        self.hangup("sample-interval")

        # Once a second it would be 5 at most.
        self.assertGreater(self.samples_in(4), 6)

    def test_a_bad_file_keeps_the_old_values(self):
        self.write("sample-interval: [\n")
        self.hangup("memtuned.yaml")

        self.assertIsNone(self.daemon.process.poll())
        self.assertEqual(self.daemon.ctl("zones").returncode, 0)

    def test_what_cannot_change_is_named(self):
        self.write("pool: {default: 128MiB}\nsample-interval: 10s\n")
        self.hangup("pool")

        size = self.daemon.stats("memtuned_pool_size_bytes")
        self.assertEqual(list(size.values()), [64 << 20])


if __name__ == "__main__":
    sys.exit(unittest.main())
