#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The largest machine memtuned promises to serve quickly, described to hwloc:
16 nodes x 1024 CPUs. Sampling, scraping and recalculating stay in their
bounds; and on 2 nodes x 256 CPUs limits follow initialisation by themselves.
"""

import statistics
import sys
import time
import unittest
from datetime import datetime

from harness import Daemon, wait_for

ROUNDS = 7


def seconds_between(change):
    def read(text):
        # Python reads microseconds; the daemon may print nanoseconds.
        whole, _, fraction = text.rstrip("Z").partition(".")
        return datetime.fromisoformat(whole).timestamp() + \
            float("0." + (fraction or "0"))
    return read(change["complete_time"]) - read(change["create_time"])


class LargeMachineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(
            "--sample-interval", "100ms", topology="synthetic:node:16 pu:64",
            pools=("default=2GiB/node,populate=lazy",))
        cls.daemon.start()
        cls.daemon.wait_until_initialised(120)
        cls.daemon.load("burst", 300)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__(None, None, None)

    def median(self, measure):
        values = [measure() for _ in range(ROUNDS)]
        print(self.id(), [f"{value * 1e3:.2f} ms" for value in values])
        return statistics.median(values)

    def test_has_1024_cpus(self):
        topology = self.daemon.ctl_json("--subject", "pools/default",
                                        "topology")["topology"]
        self.assertEqual(len(topology["nodes"]), 16)
        self.assertEqual(sum(len(node["cpus"]) for node in topology["nodes"]),
                         1024)

    def test_a_sample_takes_at_most_20_ms(self):
        def duration():
            time.sleep(0.15)
            values = self.daemon.stats("memtuned_sample_duration_seconds")
            return list(values.values())[0]
        self.assertLessEqual(self.median(duration), 0.020)

    def test_a_scrape_takes_at_most_50_ms(self):
        def scrape():
            start = time.monotonic()
            text = self.daemon.metrics_text()
            self.assertIn('node="15"', text)
            return time.monotonic() - start
        self.assertLessEqual(self.median(scrape), 0.050)

    def test_recalculating_takes_at_most_10_ms(self):
        def recalculate():
            return seconds_between(self.daemon.ctl_json(
                "--subject", "pools/default", "recalculate",
                "--reason", "e2e")["change"])
        self.assertLessEqual(self.median(recalculate), 0.010)


class SeedCaseTest(unittest.TestCase):
    """Limits computed too early stay tiny; ours follow the memory."""

    def limits(self, daemon):
        """{(batch, high)} over the zones."""
        zones = daemon.ctl_json("--subject", "pools/default", "zones")["zones"]
        self.assertEqual(len(zones), 2)
        for zone in zones:
            self.assertEqual(zone["pagesets"]["count"], 256)
        return {(zone["pagesets"]["batch"], zone["pagesets"]["high_max"])
                for zone in zones}

    def test_fixed_limits_grow_with_the_last_section_without_a_command(self):
        pool = ("default=2GiB/node,populate=lazy,policy=fixed,"
                "sections_per_second=4")
        with Daemon("--sample-interval", "100ms", pools=(pool,),
                    topology="synthetic:node:2 pu:128") as daemon:
            early = self.limits(daemon)
            generation = daemon.stats("memtuned_subject_generation")
            daemon.wait_until_initialised()
            wait_for(lambda: self.limits(daemon) != early, 5, "new limits")

            self.assertEqual(early, {(7, 42)})
            self.assertEqual(self.limits(daemon), {(63, 378)})
            self.assertEqual(daemon.stats("memtuned_subject_generation"),
                             generation)


if __name__ == "__main__":
    sys.exit(unittest.main())
