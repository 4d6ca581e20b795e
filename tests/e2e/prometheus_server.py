# SPDX-License-Identifier: Apache-2.0
"""A Prometheus of our own."""

import json
import os
import subprocess
import urllib.parse
import urllib.request

from harness import free_port, wait_for


class Prometheus:
    """Scrapes one target every second. A context manager."""

    def __init__(self, folder, target, rule_files=()):
        self.port = free_port()
        self.folder = folder
        self.config = os.path.join(folder, "prometheus.yml")
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({  # YAML too
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                           "evaluation_interval": "1s"},
                "rule_files": list(rule_files),
                "scrape_configs": [{
                    "job_name": "memtuned",
                    "static_configs": [{"targets": [target]}]}]}, file)
        self.process = None

    def __enter__(self):
        with open(os.path.join(self.folder, "prometheus.log"), "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.config}",
                 f"--storage.tsdb.path={self.folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                stdout=log, stderr=log)
        wait_for(self._up, 30, "Prometheus scrapes memtuned")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)

    def get(self, path, **parameters):
        """The `data` of an answer of the HTTP API."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + \
            urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, promql, **parameters):
        """{frozenset(labels): value}, at `time` if it is given."""
        data = self.get("query", query=promql, **parameters)
        return {frozenset(row["metric"].items()): float(row["value"][1])
                for row in data["result"]}

    def query_range(self, promql, start, end):
        """{frozenset(labels): [value of each second that has one]}"""
        data = self.get("query_range", query=promql, start=start, end=end,
                        step=1)
        return {frozenset(row["metric"].items()):
                [float(value) for _, value in row["values"]]
                for row in data["result"]}

    def _up(self):
        try:
            return 1.0 in self.query("up").values()
        except OSError:
            return False
