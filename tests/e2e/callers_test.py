#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sixty-four callers at once, reads and writes mixed: how long calls take,
that nothing is lost, that the daemon does not grow, and that reading takes no
lock of an allocating thread. MEMTUNED_CALLERS_SECONDS: default 6; 60 is what
the figures of a release are from."""

import os
import random
import statistics
import sys
import threading
import time
import unittest
from multiprocessing import Pool

import grpc
import stubs
from harness import Daemon, wait_for

SECONDS = float(os.environ.get("MEMTUNED_CALLERS_SECONDS", "6"))
PROCESSES = 4
THREADS = 16
POOL = "pools/default"
LOCKS = "memtuned_zone_lock_acquisitions_total"


def read(stub, _number):
    stub.ListZones(stubs.stats_pb2.ListZonesRequest(parent=POOL), timeout=20)


def write(stub, number):
    # Without a request id: the daemon keeps the answers of the last 16,384.
    request = stubs.tuning_pb2.SetTunablesRequest(
        parent=POOL, reason="callers")
    assignment = request.assignments.add(tunable="pageset.batch_factor")
    assignment.value.real = 1 + number % 4
    return stub.SetTunables(request, timeout=20).change.generation


def caller(channel, end, writes, seed, result):
    stats = stubs.stats_pb2_grpc.StatsServiceStub(channel)
    tuning = stubs.tuning_pb2_grpc.TuningServiceStub(channel)
    dice = random.Random(seed)
    times, generations, errors = [], [], []
    while time.monotonic() < end:
        start = time.monotonic()
        try:
            if dice.random() < writes:
                generations.append(write(tuning, dice.getrandbits(8)))
            else:
                read(stats, 0)
        except grpc.RpcError as error:
            errors.append(str(error.code()))
        times.append(time.monotonic() - start)
    result.append((times, generations, errors))


def callers(arguments):
    """One process with THREADS callers on a channel of their own."""
    address, seconds, writes, seed = arguments
    result = []
    end = time.monotonic() + seconds
    channels = [grpc.insecure_channel(
        address, (("grpc.use_local_subchannel_pool", 1),))
        for _ in range(THREADS)]
    threads = [threading.Thread(target=caller, args=(
        channel, end, writes, seed * THREADS + i, result))
        for i, channel in enumerate(channels)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for channel in channels:
        channel.close()
    return result


def run_callers(address, seconds, writes):
    with Pool(PROCESSES) as pool:
        parts = pool.map(callers, [(address, seconds, writes, i)
                                   for i in range(PROCESSES)])
    everything = [row for part in parts for row in part]
    times = sorted(t for row in everything for t in row[0])
    generations = [g for row in everything for g in row[1]]
    errors = [e for row in everything for e in row[2]]
    return times, generations, errors


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")


class CallersTest(unittest.TestCase):
    def test_sixty_four_callers(self):
        with Daemon("--mutations-per-minute", "1000000") as daemon:
            address = "unix:" + daemon.socket
            daemon.wait_until_initialised()
            run_callers(address, 2, 0.1)  # warm
            before = daemon.ctl_json("--subject", POOL, "tunables")
            resident = resident_kib(daemon.process.pid)

            times, generations, errors = run_callers(address, SECONDS, 0.1)

            self.assertEqual(errors, [])
            # Each write that was answered is a generation of its own.
            self.assertEqual(len(set(generations)), len(generations))
            after = daemon.ctl_json("--subject", POOL, "tunables")
            self.assertEqual(int(after["generation"]),
                             int(before["generation"]) + len(generations))
            grown = resident_kib(daemon.process.pid) - resident
            p50 = statistics.median(times) * 1000
            p99 = times[int(len(times) * 0.99)] * 1000
            print(f"64 callers, {SECONDS:g} s: {len(times)} calls, "
                  f"{len(generations)} of them writes, p50 {p50:.1f} ms, "
                  f"p99 {p99:.1f} ms, daemon grew {grown} KiB of {resident}",
                  file=sys.stderr)
            self.assertGreater(len(generations), 50)
            self.assertLess(grown, max(8192, resident // 10))

    def test_readers_take_no_lock_of_the_pool(self):
        with Daemon() as daemon:
            daemon.wait_until_initialised()
            daemon.load("lifo", seconds=1)
            wait_for(lambda: not daemon.ctl_json("processes")["processes"],
                     20, "the load is gone")
            daemon.wait_for_next_sample()
            before = self.locks(daemon)
            _, _, errors = run_callers("unix:" + daemon.socket, 2, 0)
            self.assertEqual(errors, [])
            daemon.wait_for_next_sample()
            self.assertEqual(self.locks(daemon), before)

    def locks(self, daemon):
        locks = {key: value for key, value in daemon.metrics().items()
                 if key[0] == LOCKS}
        self.assertTrue(locks)
        return locks


if __name__ == "__main__":
    unittest.main()
