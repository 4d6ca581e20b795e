#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures ours against every allocator of this machine, paired: in each
round all of them run each case one after the other, in random order, and only
ratios inside a round count. Writes summary.tsv; time judges nothing unless
--check-bars says so."""

import argparse
import os
import random
import subprocess
import sys
from statistics import median

import allocators
import bars
from statistics_of_pairs import interval, median_ratio, ratios

SHAPES = ("lifo", "bulk64", "burst64", "burst512", "burst4096",
          "producer-consumer")
ORDERS = (0, 3)
WORKERS = ("1thread", "2threads", "2processes")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--out", required=True, help="folder of summary.tsv")
    parser.add_argument("--quick", action="store_true",
                        default=bool(os.environ.get("MEMTUNED_BENCH_SHORT")),
                        help="2 rounds of 20 ms; also by the environment "
                        "variable MEMTUNED_BENCH_SHORT")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--milliseconds", type=int, help="a cell")
    parser.add_argument("--only", default="", help="part of a case's name")
    parser.add_argument("--peers", help="comma-separated; default: all")
    parser.add_argument("--check-bars", action="store_true",
                        help="exit code 1 when a bar is not met")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    arguments.milliseconds = (arguments.milliseconds or
                              (20 if arguments.quick else 60))
    return arguments


def cases(only):
    for shape in SHAPES:
        for order in ORDERS:
            for workers in WORKERS:
                name = f"{shape}/order{order}/{workers}"
                alone = shape == SHAPES[-1] and workers == WORKERS[0]
                if only in name and not alone:
                    yield name


def measure(found, case, arguments, skipped):
    """{name: [ns by round]}; a cell that could not be measured is absent."""
    times = {a.name: [] for a in found}
    for _ in range(arguments.rounds):
        for allocator in random.sample(found, len(found)):
            if not allocator.runs(case) or allocator.name in skipped:
                continue
            try:
                times[allocator.name].append(
                    allocator.measure(case, arguments.milliseconds))
            except allocators.Skipped as why:
                skipped[allocator.name] = str(why)
    return {name: ns for name, ns in times.items() if ns}


def rows_of(case, times):
    """(case, ours_ns, peer, peer_ns, ratio) for each peer."""
    ours = times.get(allocators.OURS)
    if not ours:
        return []
    return [(case, median(ours), name, median(ns),
             median_ratio(list(zip(ours, ns))))
            for name, ns in times.items() if name != allocators.OURS]


def print_row(row):
    print("{:<38} {:>9.2f}  {:<22} {:>10.2f} {:>7.3f}".format(*row),
          flush=True)


def paired_case(arguments, program, names, pairs):
    """A program that prints pairs itself: its row; prints the interval."""
    done = subprocess.run(
        [os.path.join(arguments.bin_dir, program), str(pairs)],
        capture_output=True, text=True, timeout=300, check=True)
    measured = [tuple(map(float, line.split()))
                for line in done.stdout.splitlines()]
    case, peer = names
    row = (case, median(o for o, _ in measured), peer,
           median(p for _, p in measured), median_ratio(measured))
    low, high = interval(ratios(measured))
    print_row(row)
    print(f"  {len(measured)} ABBA pairs, 95 % interval of the median ratio "
          f"{low:.4f} to {high:.4f}", flush=True)
    return row


def write_summary(folder, rows):
    path = os.path.join(folder, "summary.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("case\tours_ns\tpeer\tpeer_ns\tratio\n")
        for case, ours, peer, peer_ns, ratio in rows:
            file.write(f"{case}\t{ours:.2f}\t{peer}\t{peer_ns:.2f}\t"
                       f"{ratio:.4f}\n")
    print(f"written: {path}")


def main():
    arguments = parse_arguments()
    found, notes = allocators.find(arguments.bin_dir)
    if arguments.peers is not None:
        wanted = arguments.peers.split(",") + [allocators.OURS]
        found = [a for a in found if a.name in wanted]
    print(f"{arguments.rounds} rounds of {arguments.milliseconds} ms a cell; "
          "ns per allocation and free; ratio: median over rounds")
    print("{:<38} {:>9}  {:<22} {:>10} {:>7}".format(
        "case", "ours_ns", "peer", "peer_ns", "ratio"))
    rows, skipped = [], {}
    for case in cases(arguments.only):
        for row in rows_of(case, measure(found, case, arguments, skipped)):
            print_row(row)
            rows.append(row)
    if not arguments.only:
        pairs = 15 if arguments.quick else 31
        rows.append(paired_case(arguments, "bench_mems_allowed", (
            "mems-allowed-by-cookie", "two-full-barriers"), pairs))
        rows.append(paired_case(arguments, "bench_snapshot", (
            "lifo-with-snapshots", "without-snapshots"), pairs))
    for note in notes + [f"{n}: {why}" for n, why in skipped.items()]:
        print(note)
    write_summary(arguments.out, rows)
    verdicts = bars.judge(rows)
    for verdict in verdicts:
        print("\n".join(bars.describe(verdict)))
    if arguments.check_bars and not all(v.met for v in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
