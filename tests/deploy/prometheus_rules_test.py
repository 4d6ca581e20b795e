#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""promtool finds the configuration, rules and alerts right, each alert is
seen firing and not firing, and all are about metrics that there are."""

import os
import re
import sys
import unittest

import yaml

from harness import SOURCE, binary, run

sys.path.insert(0, os.path.join(SOURCE, "deploy", "grafana"))
import metric_table  # noqa: E402

SHIPPED = os.path.join(SOURCE, "deploy", "prometheus")
CASES = os.path.join(SOURCE, "tests", "deploy", "prometheus")
HEALTHY = "a healthy daemon under load"


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return yaml.safe_load(file)


def rules_of(name):
    return [rule for group in load(SHIPPED, name)["groups"]
            for rule in group["rules"]]


class PrometheusRulesTest(unittest.TestCase):
    def promtool(self, *words):
        result = run("promtool", *words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_configuration_and_rules_are_valid(self):
        self.promtool("check", "config",
                      os.path.join(SHIPPED, "prometheus.yml"))

    def test_rules_make_of_known_counters_what_they_should(self):
        self.promtool("test", "rules",
                      os.path.join(CASES, "rules_test.yml"))

    def test_alerts_fire_when_they_should_and_not_before(self):
        self.promtool("test", "rules",
                      os.path.join(CASES, "alerts_test.yml"))

    def test_each_alert_has_its_case_and_is_silent_when_all_is_well(self):
        fires, silent, healthy = set(), set(), set()
        for test in load(CASES, "alerts_test.yml")["tests"]:
            for check in test["alert_rule_test"]:
                kind = fires if check.get("exp_alerts") else silent
                kind.add(check["alertname"])
                if test["name"] == HEALTHY:
                    healthy.add(check["alertname"])

        alerts = {rule["alert"] for rule in rules_of("alerts.yml")}
        self.assertEqual((fires, silent, healthy), (alerts, alerts, alerts))

    def test_each_recording_rule_has_its_case(self):
        tested = {check["expr"]
                  for test in load(CASES, "rules_test.yml")["tests"]
                  for check in test["promql_expr_test"]}
        self.assertEqual(
            {rule["record"] for rule in rules_of("rules.yml")}, tested)

    def test_each_metric_exists(self):
        table = metric_table.read(binary("memtunectl"))
        recorded = {rule["record"] for rule in rules_of("rules.yml")}
        for rule in rules_of("rules.yml") + rules_of("alerts.yml"):
            for name in re.findall(r"[\w:]*memtuned_[\w:]+", rule["expr"]):
                self.assertTrue(
                    name in recorded or metric_table.family_of(name, table),
                    f"{rule['expr']}: no metric {name}")

    def test_alerts_tell_what_and_what_to_do(self):
        for rule in rules_of("alerts.yml"):
            self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
            self.assertIn("$labels.instance", rule["annotations"]["summary"])
            self.assertTrue(rule["annotations"]["description"])


if __name__ == "__main__":
    sys.exit(unittest.main())
