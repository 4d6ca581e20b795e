#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every ctest test has exactly one of the labels that tests/run.sh runs."""

import json
import os
import subprocess
import sys

LABELS = {"unit", "e2e", "rules", "fuzz", "bench", "torture"}


def labels_of(test):
    for prop in test.get("properties", []):
        if prop["name"] == "LABELS":
            return prop["value"]
    return []


def main():
    listed = subprocess.run(
        [sys.argv[1], "--test-dir", os.environ["MEMTUNED_BUILD_DIR"],
         "--show-only=json-v1"], capture_output=True, check=True)
    tests = json.loads(listed.stdout)["tests"]
    if len(tests) < 5:
        sys.exit(f"only {len(tests)} tests are registered")
    bad = [f"{test['name']}: labels {labels_of(test)}, allowed one of "
           f"{sorted(LABELS)}" for test in tests
           if len(labels_of(test)) != 1 or labels_of(test)[0] not in LABELS]
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
