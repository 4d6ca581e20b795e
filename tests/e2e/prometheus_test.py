#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a loaded daemon for a minute; what PromQL says is
what memtunectl says. promtool finds nothing in the text."""

import math
import shutil
import sys
import time
import unittest

from harness import Daemon, run
from prometheus_server import Prometheus

SCRAPED_SECONDS = 60


def without(labels, *names):
    return frozenset(item for item in labels if item[0] not in names)


@unittest.skipUnless(shutil.which("prometheus"), "prometheus not installed")
class PrometheusTest(unittest.TestCase):
    def test_scrapes_for_a_minute_and_agrees_with_memtunectl(self):
        with Daemon(pools=("default=256MiB,policy=fixed",)) as daemon, \
                Prometheus(daemon.dir,
                           f"127.0.0.1:{daemon.metrics_port}") as prometheus:
            daemon.wait_until_initialised()
            start = time.monotonic()
            load = daemon.start_load("burst", 1000,
                                     seconds=SCRAPED_SECONDS - 15)
            _, errors = load.communicate(timeout=SCRAPED_SECONDS + 30)
            self.assertEqual(load.returncode, 0, errors)
            time.sleep(max(0, SCRAPED_SECONDS - (time.monotonic() - start)))
            daemon.wait_for_next_sample()
            time.sleep(2.5)  # two scrapes of it

            self.check_every_scrape_succeeded(prometheus)
            self.check_load_was_seen(prometheus)
            self.check_numbers_agree(prometheus, daemon)

    def check_every_scrape_succeeded(self, prometheus):
        window = f"[{SCRAPED_SECONDS - 5}s]"
        up = prometheus.query(f"min_over_time(up{window})")
        count = prometheus.query(f"count_over_time(up{window})")
        self.assertEqual(list(up.values()), [1.0])
        self.assertGreaterEqual(list(count.values())[0], SCRAPED_SECONDS - 15)

    def check_load_was_seen(self, prometheus):
        rate = prometheus.query(
            "sum by (subject) (max_over_time(rate("
            "memtuned_zone_lock_acquisitions_total[10s])[50s:5s]))")
        self.assertGreater(
            rate[frozenset({("subject", "pools/default")})], 1)
        age = prometheus.query("max_over_time(memtuned_sample_age_seconds"
                               "[50s])")
        self.assertLess(max(age.values()), 5)

    def check_numbers_agree(self, prometheus, daemon):
        expected = daemon.stats()
        scraped = prometheus.query('{__name__=~"memtuned_.+"}')
        by_name = {}
        for labels, value in scraped.items():
            name = dict(labels)["__name__"]
            by_name[(name, without(labels, "__name__", "job",
                                   "instance"))] = value
        compared = 0
        for (name, labels), value in expected.items():
            if name == "memtuned_sample_duration_seconds":
                continue  # differs from sample to sample
            self.assertIn((name, labels), by_name)
            # The two print different numbers of digits.
            got = by_name[(name, labels)]
            self.assertTrue(math.isclose(got, value, rel_tol=1e-14),
                            (name, labels, got, value))
            compared += 1
        self.assertGreater(compared, 60)


@unittest.skipUnless(shutil.which("promtool"), "promtool not installed")
class PromtoolTest(unittest.TestCase):
    def test_finds_nothing_in_the_live_text(self):
        with Daemon("--metrics-per-cpu") as daemon:
            daemon.load("burst", 300)
            daemon.wait_for_next_sample()
            result = run("promtool", "check", "metrics",
                         input=daemon.metrics_text())
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, "", ""))


if __name__ == "__main__":
    sys.exit(unittest.main())
