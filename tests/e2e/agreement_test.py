#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""memtunectl and the metrics endpoint show the same numbers, and changes made
with memtunectl show up in both."""

import math
import sys
import unittest

from harness import Daemon

SUBJECT = frozenset({("subject", "pools/default")})
VARIES = {"memtuned_sample_duration_seconds", "memtuned_sample_age_seconds"}
OWN = ("memtuned_rpc_", "memtuned_build_info", "memtuned_watch_",
       "memtuned_denied_", "exposer_")


class AgreementTest(unittest.TestCase):
    def test_every_number_agrees_on_an_idle_pool(self):
        # Of a policy whose pagesets give nothing back as time goes by.
        with Daemon(pools=("default=256MiB,policy=fixed",)) as daemon:
            daemon.wait_until_initialised()
            daemon.load("burst", 1000)
            daemon.load("stream")
            daemon.wait_for_next_sample()
            metrics = daemon.metrics()
            stats = daemon.stats()

        for key, value in stats.items():
            if key[0] not in VARIES:
                self.assertIn(key, metrics)
                # The two print different numbers of digits.
                self.assertTrue(math.isclose(metrics[key], value,
                                             rel_tol=1e-14),
                                (key, metrics[key], value))
        only_scraped = {key[0] for key in metrics if key not in stats
                        and key[0] not in VARIES
                        and not key[0].startswith(OWN)}
        self.assertEqual(only_scraped, set())

    def test_counts_allocations_exactly(self):
        with Daemon() as daemon:
            daemon.wait_until_initialised()
            before = daemon.stats("memtuned_allocations_total",
                                  "memtuned_frees_total")
            daemon.load("burst", 300)
            daemon.wait_for_next_sample()
            after = daemon.stats("memtuned_allocations_total",
                                 "memtuned_frees_total")

        grown = {"memtuned_allocations_total": 0, "memtuned_frees_total": 0}
        for key, value in after.items():
            grown[key[0]] += value - before[key]
        self.assertGreater(grown["memtuned_allocations_total"], 300)
        self.assertEqual(grown["memtuned_allocations_total"],
                         grown["memtuned_frees_total"])

    def test_a_factor_shows_in_tunables_limits_and_metrics(self):
        with Daemon(pools=("default=256MiB,policy=fixed",)) as daemon:
            daemon.wait_until_initialised()
            daemon.wait_for_next_sample()
            before = daemon.metrics()
            change = daemon.ctl_json(
                "--subject", "pools/default", "set",
                "pageset.batch_factor=2", "--reason", "e2e")["change"]
            daemon.wait_for_next_sample()
            after = daemon.metrics()

        key = ("memtuned_tunable_value",
               SUBJECT | {("tunable", "pageset.batch_factor")})
        self.assertEqual((before[key], after[key]), (1, 2))
        self.assertEqual(change["state"], "CHANGE_STATE_APPLIED")
        generation = ("memtuned_subject_generation", SUBJECT)
        self.assertEqual(after[generation], float(change["generation"]))
        self.assertEqual(after[generation], before[generation] + 1)
        for (name, labels), value in before.items():
            if name == "memtuned_pageset_batch_pages":
                self.assertGreater(after[(name, labels)], value)

    def test_drain_empties_what_the_metrics_show(self):
        # Of a policy whose pagesets give nothing back as time goes by.
        with Daemon(pools=("default=256MiB,policy=fixed",)) as daemon:
            daemon.wait_until_initialised()
            daemon.load("burst", 300)
            daemon.wait_for_next_sample()
            parked = total(daemon.metrics(), "memtuned_pageset_stored_bytes")
            result = daemon.ctl_json("--subject", "pools/default", "drain",
                                     "--reason", "e2e")["result"]
            daemon.wait_for_next_sample()
            left = total(daemon.metrics(), "memtuned_pageset_stored_bytes",
                         "memtuned_depot_stored_bytes")

        self.assertGreater(parked, 0)
        self.assertGreaterEqual(
            sum(int(zone["pages_before"]) for zone in result["zones"]) * 4096,
            parked)
        self.assertEqual(left, 0)


def total(metrics, *names):
    return sum(value for (name, _), value in metrics.items() if name in names)


if __name__ == "__main__":
    sys.exit(unittest.main())
