#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards from the table of metrics and dashboards.py:
    deploy/grafana/generate.py [--check]
--check writes nothing and ends with status 1 if a file is out of date.
Environment: MEMTUNED_BUILD_DIR (build), whose memtunectl prints the table."""

import json
import os
import sys

import dashboards
import metric_table
from panels import render

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("MEMTUNED_BUILD_DIR") or os.path.join(
    HERE, "..", "..", "build")
FILES = {"fleet.json": dashboards.FLEET, "host.json": dashboards.HOST}


def text_of(dashboard, table):
    return json.dumps(render(dashboard, table), indent=2) + "\n"


def main():
    table = metric_table.read(os.path.join(BUILD, "bin", "memtunectl"))
    old = []
    for name, dashboard in FILES.items():
        path = os.path.join(HERE, name)
        text = text_of(dashboard, table)
        if "--check" not in sys.argv[1:]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            continue
        with open(path, encoding="utf-8") as file:
            if file.read() != text:
                old.append(name)
    if old:
        sys.exit(f"{', '.join(old)}: out of date; run "
                 "deploy/grafana/generate.py")


if __name__ == "__main__":
    main()
