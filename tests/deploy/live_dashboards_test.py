#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A pool is initialised under load: its limits are small and its zone lock is
busy until they are recalculated. A real Prometheus watches; what the
dashboards' own queries say afterwards is the story, and none of them is
empty."""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from certificates import Authority
from harness import SOURCE, Daemon, binary, free_port, wait_for
from prometheus_server import Prometheus

SHIPPED = os.path.join(SOURCE, "deploy")
sys.path.insert(0, os.path.join(SHIPPED, "grafana"))
import dashboard_lint as lint  # noqa: E402
import metric_table  # noqa: E402

# 32 sections of 128 MiB, one a second until the story goes on.
POOL = "default=4GiB,policy=fixed,populate=lazy,sections_per_second=1"
# A window of $__rate_interval lies within it.
PHASE_SECONDS = 7


def load(name):
    with open(os.path.join(SHIPPED, "grafana", name),
              encoding="utf-8") as file:
        return json.load(file)


FLEET, HOST = load("fleet.json"), load("host.json")


class LiveDashboardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(
            Daemon("--sample-interval", "250ms", *cls.tls_flags(),
                   pools=(POOL,)))
        rules = [os.path.join(SHIPPED, "prometheus", name)
                 for name in ("rules.yml", "alerts.yml")]
        target = f"127.0.0.1:{cls.daemon.metrics_port}"
        cls.prometheus = cls.enterClassContext(
            Prometheus(cls.daemon.dir, target, rules))
        cls.variables = {
            "job": "memtuned", "subject": "pools/default",
            "instance": re.escape(target).replace("\\", "\\\\"),
            "__rate_interval": "5s"}
        cls.tell_the_story()

    @classmethod
    def tls_flags(cls):
        """Certificates that have a day or two left."""
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        authority = Authority(folder)
        server = authority.issue("server", days=1)
        return ("--listen-tls", f"127.0.0.1:{free_port()}",
                "--tls-certificate", server.certificate_path,
                "--tls-key", server.key_path,
                "--tls-client-ca", authority.certificate_path)

    @classmethod
    def tell_the_story(cls):
        cls.start = time.time()
        loads = cls.start_loads()
        cls.while_small = cls.pass_time()
        cls.set("init.sections_per_second=0")
        wait_for(lambda: cls.batch() > 7, 30, "limits are recalculated")
        cls.recalculated = time.time()
        cls.while_large = cls.pass_time()
        cls.set("pageset.batch_factor=2")
        for running in loads:
            running.terminate()
            output, _ = running.communicate(timeout=60)
            assert running.returncode == 0, output
        time.sleep(3)
        cls.end = time.time()

    @classmethod
    def pass_time(cls):
        """Calls all the while, so that those show too."""
        end = time.monotonic() + PHASE_SECONDS
        while time.monotonic() < end:
            cls.batch()
            time.sleep(0.2)
        return time.time()

    @classmethod
    def set(cls, assignment):
        cls.daemon.ctl_json("--subject", "pools/default", "set", assignment,
                            "--reason", "story")

    @classmethod
    def start_loads(cls):
        """A thread on each of two CPUs, so that they share the zone lock and
        no pageset."""
        return [subprocess.Popen(
            [binary("memtune-load"), "--socket", cls.daemon.pool_socket(),
             "--processes", "1", "--threads", "1",
             "--seconds", "300", "burst", "300"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu}))
            for cpu in sorted(os.sched_getaffinity(0))[:2]]

    @classmethod
    def batch(cls):
        stats = cls.daemon.stats("memtuned_pageset_batch_pages")
        return next(iter(stats.values()))

    def expand(self, text):
        for name, value in self.variables.items():
            text = text.replace("$" + name, value)
        return text

    def panel(self, title, moment, dashboard=HOST, **labels):
        """The numbers that a panel's queries give at that moment."""
        [panel] = [panel for panel in lint.panels(dashboard)
                   if panel["title"] == title]
        numbers = []
        for target in panel["targets"]:
            for row, value in self.prometheus.query(
                    self.expand(target["expr"]), time=moment).items():
                if labels.items() <= dict(row).items():
                    numbers.append(value)
        return numbers

    def one(self, title, moment, **options):
        [number] = self.panel(title, moment, **options)
        return number

    def test_every_query_finds_data(self):
        for dashboard in (FLEET, HOST):
            for where, text in lint.expressions(dashboard):
                with self.subTest(dashboard["title"], panel=where):
                    rows = self.prometheus.query_range(
                        self.expand(text), self.start, self.end)
                    self.assertTrue(any(math.isfinite(value)
                                        for values in rows.values()
                                        for value in values), text)

    def test_every_variable_has_a_choice(self):
        for dashboard in (FLEET, HOST):
            for variable in dashboard["templating"]["list"][1:]:
                selector, label = re.fullmatch(
                    r"label_values\((.*), (\w+)\)",
                    variable["definition"]).groups()
                values = self.prometheus.get(
                    f"label/{label}/values",
                    **{"match[]": self.expand(selector)})
                self.assertEqual(len(values), 1, variable["name"])

    def test_rules_and_alerts_find_their_metrics(self):
        for row in self.prometheus.get("rules")["groups"]:
            for rule in row["rules"]:
                self.assertEqual(rule["health"], "ok", rule)
                if rule["type"] == "recording":
                    self.assertTrue(self.prometheus.query(rule["name"],
                                                          time=self.end))
        known = {name for name in self.prometheus.get(
            "label/__name__/values") if name.startswith("memtuned_")}
        table = metric_table.read(binary("memtunectl"))
        families = {metric_table.family_of(name, table) for name in known}
        self.assertNotIn(None, families)
        self.assertEqual({name for name, metric in table.items()
                          if not metric.per_cpu} - families, set())

    def test_an_alert_fires(self):
        firing = self.prometheus.query('ALERTS{alertstate="firing"}',
                                       time=self.end)
        self.assertEqual(
            {(dict(row)["alertname"], dict(row).get("kind"))
             for row in firing},
            {("MemtunedCertificateExpiresNow", "server"),
             ("MemtunedCertificateExpiresNow", "ca")})

    def test_metrics_are_described_as_the_daemon_does(self):
        table = metric_table.read(binary("memtunectl"))
        lines = self.daemon.metrics_text().splitlines()
        for line in lines:
            words = line.split(" ", 3)
            if line.startswith("# HELP memtuned_"):
                self.assertEqual(table[words[2]].help, words[3])
            elif line.startswith("# TYPE memtuned_"):
                self.assertEqual(table[words[2]].kind, words[3])

    def test_while_limits_are_small_the_zone_lock_is_busy(self):
        small = self.while_small

        self.assertEqual(self.one("Batch", small), 7)
        self.assertEqual(self.one("High and its bounds", small,
                                  limit="high_max"), 42)
        self.assertAlmostEqual(self.one("Pages per refill", small), 7,
                               delta=0.5)
        self.assertGreater(self.one("Holds per block allocated", small), 0.1)
        self.assertGreater(self.one("Acquisitions that wait", small), 0)
        self.assertLess(self.one("Initialised share of the pool", small,
                                 dashboard=FLEET), 1)

    def test_recalculation_shows(self):
        self.assertGreater(self.one("Recalculations", self.recalculated + 3,
                                    trigger="initialised"), 0.9)

    def test_with_large_limits_it_falls_quiet(self):
        large = self.while_large

        self.assertEqual(self.one("Batch", large), 63)
        self.assertEqual(self.one("High and its bounds", large,
                                  limit="high_max"), 378)
        self.assertLess(self.one("Holds per block allocated", large), 0.01)
        waited = [sum(self.panel("Time waited for zone locks", moment,
                                 dashboard=FLEET))
                  for moment in (self.while_small, large)]
        self.assertGreater(waited[0], 10 * waited[1])

    def test_the_change_shows(self):
        self.assertEqual(self.one("Batch factor", self.end,
                                  dashboard=FLEET), 2)
        self.assertEqual(self.one("Batch", self.end), 126)
        changes = self.prometheus.query_range(
            self.expand(HOST["annotations"]["list"][0]["expr"]),
            self.while_large, self.end)
        self.assertTrue(changes)


if __name__ == "__main__":
    sys.exit(unittest.main())
