#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A million pairs through libmemtuned.so make no system call: strace sees
nothing between the two writes that mark them."""

import argparse
import os
import subprocess
import sys
import tempfile

SKIP = 77


def traced(command):
    """Lines of `strace -f` as (thread, call); None: strace cannot attach."""
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                ["strace", "-f", "-o", log.name, "-e", "signal=none"] +
                command, capture_output=True, text=True, timeout=100,
                check=False)
        except FileNotFoundError:
            return None, "strace is not installed"
        calls = [tuple(line.rstrip().split(None, 1)) for line in log]
    if not calls and done.returncode != 0:
        return None, done.stderr.strip()
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {done.stderr}")
    return calls, ""


def between_markers(calls):
    """For each pair of markers, the calls that its thread made in between."""
    spans, thread = [], None
    for who, call in calls:
        if "fast path begins" in call:
            thread = who
            spans.append([])
        elif "fast path ends" in call:
            thread = None
        elif who == thread:
            spans[-1].append(call)
    return spans


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", required=True)
    program = os.path.join(parser.parse_args().bin_dir, "bench_memtuned")
    calls, why = traced([program, "--markers"])
    if calls is None:
        print(f"skipped: strace: {why}")
        sys.exit(SKIP)
    spans = between_markers(calls)
    if len(spans) != 2:
        sys.exit(f"{len(spans)} of 2 spans of 1,000,000 pairs were seen")
    for order, span in zip((0, 3), spans):
        print(f"order {order}: {len(span)} system calls in 1,000,000 pairs "
              f"(of {len(calls)} in the whole run)")
        if span:
            sys.exit("\n".join(span[:20]))


if __name__ == "__main__":
    main()
