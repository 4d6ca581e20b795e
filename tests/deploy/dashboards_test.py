#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboards are what the table of metrics makes of them, keep the usual
rules, and leave no metric out; each rule is shown finding fault."""

import copy
import json
import os
import re
import sys
import unittest

from harness import SOURCE, binary, run

GRAFANA = os.path.join(SOURCE, "deploy", "grafana")
sys.path.insert(0, GRAFANA)
import dashboard_lint as lint  # noqa: E402
import metric_table  # noqa: E402


def load(name):
    with open(os.path.join(GRAFANA, name), encoding="utf-8") as file:
        return json.load(file)


TABLE = metric_table.read(binary("memtunectl"))
FLEET, HOST = load("fleet.json"), load("host.json")


class DashboardsTest(unittest.TestCase):
    def test_are_what_the_generator_writes(self):
        result = run(os.path.join(GRAFANA, "generate.py"), "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_keep_every_rule(self):
        for dashboard in (FLEET, HOST):
            for check in lint.CHECKS:
                with self.subTest(check.__name__):
                    self.assertEqual(check(dashboard, TABLE), [])

    def test_one_host_shows_every_metric(self):
        shown = {metric_table.family_of(name, TABLE) for name in re.findall(
            r"memtuned_\w+", json.dumps([expression for _, expression
                                         in lint.expressions(HOST)]))}
        self.assertEqual({name for name, metric in TABLE.items()
                          if not metric.per_cpu} - shown, set())


class LintTest(unittest.TestCase):
    """One panel is spoiled at a time."""

    def complaints(self, check, spoil):
        dashboard = copy.deepcopy(FLEET)
        panel = next(panel for panel in lint.panels(dashboard)
                     if panel["title"] == "Refills")
        spoil(panel, dashboard)
        return len(check(dashboard, TABLE))

    def spoil_expression(self, check, expression):
        def spoil(panel, _):
            panel["targets"][0]["expr"] = expression
        return self.complaints(check, spoil)

    def test_finds_a_fixed_datasource(self):
        def spoil(panel, dashboard):
            panel["datasource"] = {"type": "prometheus", "uid": "P1"}
            dashboard["templating"]["list"].pop(0)
        self.assertEqual(
            self.complaints(lint.templated_datasource, spoil), 2)

    def test_finds_bad_expressions(self):
        labels = '{job=~"$job",instance=~"$instance",subject=~"$subject"}'
        refills = "memtuned_pageset_refills_total"
        for check, expression in (
                (lint.selects_what_the_variables_name,
                 refills + '{job=~"$job",instance=~"$instance"}'),
                (lint.known_metrics, "memtuned_refills_total" + labels),
                (lint.counters_as_rates, refills + labels),
                (lint.counters_as_rates, f"rate({refills}{labels}[5m])"),
                (lint.counters_as_rates,
                 f"rate(memtuned_pageset_pages{labels}[$__rate_interval])"),
                (lint.never_summed_over_subjects,
                 f"sum(rate({refills}{labels}[$__rate_interval]))"),
                (lint.never_summed_over_subjects,
                 f"avg by (instance) (memtuned_pageset_pages{labels})")):
            with self.subTest(expression):
                self.assertEqual(self.spoil_expression(check, expression), 1)

    def test_finds_missing_words(self):
        def spoil(panel, dashboard):
            panel["description"] = ""
            panel["fieldConfig"]["defaults"]["unit"] = ""
            panel["targets"][0]["legendFormat"] = ""
            dashboard["title"] = ""
        self.assertEqual(self.complaints(lint.words_and_units, spoil), 4)

    def test_finds_a_title_twice(self):
        def spoil(panel, _):
            panel["title"] = "Pageset batch"
        self.assertEqual(self.complaints(lint.words_and_units, spoil), 2)

    def test_finds_a_panel_over_another(self):
        def spoil(panel, _):
            panel["gridPos"]["x"] += 20
        self.assertGreater(self.complaints(lint.places, spoil), 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
