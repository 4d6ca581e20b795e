#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon: attached processes go on, and the next daemon goes on
with their pool, from the keeper, the service manager or the processes."""

import contextlib
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import time
import unittest

from harness import Daemon, binary, wait_for
from service_manager import ServiceManager

POOL = "pools/default"
LAYOUT_VERSION_OFFSET = 8  # in the metadata's header: 32 bits after the magic


def links(pid):
    """(descriptor, what it is) of a process."""
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            yield path, os.readlink(path)


class Machine(unittest.TestCase):
    """A daemon with a keeper beside it, and loads."""

    def start(self, *flags, **options):
        self.daemon = Daemon(*flags, **options)
        self.enterContext(self.daemon)
        self.daemon.wait_until_initialised()
        return self.daemon

    def keeper(self):
        """Its pid; 0 when there is none."""
        path = os.path.join(self.daemon.runtime, "keeper.sock")
        for folder in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                with open(folder + "/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                if words[0] == b"memtuned-keeper" and path.encode() in words:
                    return int(os.path.basename(folder))
        return 0

    def kill(self):
        self.daemon.process.kill()
        self.daemon.process.wait()

    def load(self, pool="default", processes=1):
        """Goes on until finish()."""
        load = subprocess.Popen(
            [binary("memtune-load"), "--socket", self.daemon.pool_socket(pool),
             "--processes", str(processes), "--threads", "2", "--seconds",
             "120", "-o", "json", "burst", "300"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        self.addCleanup(self.end, load)
        wait_for(lambda: len(self.processes(pool)) >= processes, 10,
                 "the load is attached")
        return load

    def end(self, load):
        if load.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(load.pid, signal.SIGKILL)
        load.communicate()

    def finish(self, load):
        """Ends a load, which must have met no error."""
        load.send_signal(signal.SIGINT)
        output, errors = load.communicate(timeout=60)
        self.assertEqual(load.returncode, 0, errors)
        result = json.loads(output)
        self.assertEqual(result["allocation_failures"], 0)
        self.assertEqual(result["counters"]["refused_frees"], 0)
        self.assertGreater(result["allocations"], 0)

    def processes(self, pool="default"):
        return [process["pid"] for process in self.daemon.ctl_json(
            "--subject", "pools/" + pool, "processes")["processes"]]

    def sample(self):
        return self.daemon.ctl_json("--subject", POOL, "zones")["sample"]

    def tunables(self):
        return {row["name"]: (row["value"], row["origin"],
                              row["changed_generation"])
                for row in self.daemon.ctl_json(
                    "--subject", POOL, "tunables")["tunables"]}

    def totals(self):
        """The pool's counters, which outlive the daemon."""
        return {key: value for key, value in self.daemon.metrics().items()
                if key[0].endswith("_total") and ("subject", POOL) in key[1]
                and not key[0].startswith(("memtuned_rpc", "memtuned_denied",
                                           "memtuned_watch"))}

    def held_pages(self):
        """What is not in zones, pagesets or depots."""
        values = {}
        for (name, _), value in self.daemon.stats().items():
            values[name] = values.get(name, 0) + value
        return values["memtuned_zone_managed_bytes"] - sum(
            values[name] for name in ("memtuned_zone_free_bytes",
                                      "memtuned_pageset_stored_bytes",
                                      "memtuned_depot_stored_bytes"))

    def assert_all_back(self):
        wait_for(lambda: not self.processes() and self.held_pages() == 0, 20,
                 "every page is back")


class KillTest(Machine):
    def test_the_pool_goes_on_as_it_was(self):
        self.start()
        self.daemon.ctl("set", "pageset.batch_factor=2", "--reason", "test")
        load = self.load()
        self.daemon.wait_for_next_sample()
        pids = self.processes()
        sample, tunables, totals = (self.sample(), self.tunables(),
                                    self.totals())

        self.kill()
        time.sleep(1)
        self.daemon.start()
        new_sample, new_tunables, new_totals = (
            self.sample(), self.tunables(), self.totals())

        self.assertIn("pool-taken-over pool=default source=keeper",
                      self.daemon.log())
        self.assertEqual(self.processes(), pids)
        self.assertEqual(new_sample["generation"], sample["generation"])
        self.assertEqual(new_sample["etag"], sample["etag"])
        self.assertEqual(new_tunables, tunables)
        self.assertEqual(new_tunables[POOL + "/tunables/pageset.batch_factor"],
                         ({"real": 2}, "ORIGIN_CHANGE", "1"))
        self.assertEqual(new_totals.keys(), totals.keys())
        self.assertEqual([key for key, value in totals.items()
                          if new_totals[key] < value], [])
        name = "memtuned_allocations_total"
        self.assertGreater(
            sum(v for k, v in new_totals.items() if k[0] == name),
            sum(v for k, v in totals.items() if k[0] == name))
        self.finish(load)
        self.assert_all_back()

    def test_the_old_etag_is_good_for_the_next_change(self):
        self.start()
        etag = self.sample()["etag"]
        self.kill()
        self.daemon.start()

        done = self.daemon.ctl("set", "pageset.batch_factor=4", "--etag", etag,
                               "--reason", "test")

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.sample()["generation"], "1")

    def test_who_is_killed_meanwhile_gives_everything_back(self):
        self.start()
        stays = self.load()
        stays_pid = self.processes()
        dies = self.load(processes=2)
        self.kill()
        os.killpg(dies.pid, signal.SIGKILL)
        dies.wait()

        self.daemon.start()

        wait_for(lambda: self.processes() == stays_pid, 10, "they are reaped")
        self.finish(stays)
        self.assert_all_back()

    def test_again_and_again_under_load(self):
        self.start()
        load = self.load(processes=2)
        for _ in range(5):
            time.sleep(0.5)
            self.kill()
            self.daemon.start()

        self.assertEqual(len(self.processes()), 2)
        self.finish(load)
        self.assert_all_back()
        self.assertEqual(self.daemon.log().count("pool-taken-over"), 5)

    def test_initialisation_goes_on(self):
        self.daemon = Daemon(pools=(
            "default=1GiB,populate=reserve,init.sections_per_second=4",))
        with self.daemon:
            time.sleep(0.6)
            self.kill()
            self.daemon.start()

            self.assertIn("pool-taken-over", self.daemon.log())
            self.daemon.wait_until_initialised()
            self.daemon.load("burst", 300)

    def test_without_processes_it_goes_on_too(self):
        self.start()
        self.daemon.ctl("set", "pageset.batch_factor=2", "--reason", "test")
        self.kill()

        self.daemon.start()

        self.assertEqual(self.sample()["generation"], "1")

    def test_a_keeper_that_is_killed_is_replaced(self):
        self.start()
        load = self.load()
        first = self.keeper()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: self.keeper() not in (0, first), 10, "another keeper")

        self.kill()
        self.daemon.start()

        self.assertIn("source=keeper", self.daemon.log())
        self.finish(load)
        self.assert_all_back()

    def test_without_any_keeper_the_processes_have_it(self):
        name = f"found-{os.getpid()}"
        self.daemon = Daemon(pools=(name + "=256MiB",))
        self.enterContext(self.daemon)
        load = self.load(pool=name)
        pids = self.processes(name)
        keeper = self.keeper()
        self.kill()
        os.kill(keeper, signal.SIGKILL)

        self.daemon.start()

        self.assertIn(f'source="process {pids[0]}"', self.daemon.log())
        self.assertEqual(self.processes(name), pids)
        self.finish(load)


class ServiceManagerTest(Machine):
    """systemd ends every process of a service before it starts it anew."""

    def start_under(self, manager):
        self.daemon = Daemon()
        wrap = self.daemon.arguments
        self.daemon.arguments = manager.command(wrap)
        with manager.environment(self.daemon):
            self.daemon.start()
        self.daemon.arguments = wrap
        self.addCleanup(self.daemon.__exit__, None, None, None)

    def restart_under(self, manager):
        arguments = self.daemon.arguments
        self.daemon.arguments = manager.command(arguments)
        with manager.environment(self.daemon):
            self.daemon.start()
        self.daemon.arguments = arguments

    def test_its_store_is_enough(self):
        with ServiceManager() as manager:
            self.start_under(manager)
            load = self.load()
            pids = self.processes()
            for _ in range(2):
                keeper = self.keeper()
                self.kill()
                os.kill(keeper, signal.SIGKILL)
                self.restart_under(manager)
                self.assertEqual(self.processes(), pids)

            self.assertEqual(
                self.daemon.log().count('source="service manager"'), 2)
            self.finish(load)
            self.assert_all_back()
            wait_for(lambda: manager.names() == [
                "default.0.0.2", "default.0.1.2"], 10,
                "only the pool is stored")
            self.assertEqual(self.daemon.terminate()[0], 0)
            wait_for(lambda: manager.names() == [], 10, "nothing is stored")

    def test_half_of_a_store_is_no_pool(self):
        with ServiceManager(most=1) as manager:
            self.start_under(manager)
            keeper = self.keeper()
            self.kill()
            os.kill(keeper, signal.SIGKILL)

            self.restart_under(manager)

            self.assertIn("descriptors-missing pool=default",
                          self.daemon.log())
            self.assertEqual(self.daemon.ctl("zones").returncode, 0)


class UpgradeTest(Machine):
    def change_layout(self):
        """As if another version had made the pool."""
        for path, target in links(self.keeper()):
            if target != "/memfd:memtuned:default (deleted)":
                continue
            with open(path, "r+b", buffering=0) as file:
                file.seek(LAYOUT_VERSION_OFFSET)
                file.write(struct.pack("=I", 999))
            return
        self.fail("the keeper has no pool")

    def test_the_old_pool_stays_with_its_processes(self):
        self.start()
        old = self.load()
        self.change_layout()
        self.kill()

        self.daemon.start()
        self.daemon.wait_until_initialised()
        log = self.daemon.log()
        new = self.load()
        self.finish(new)
        self.finish(old)

        self.assertIn("pool-left pool=default", log)
        self.assertIn("layout 999", log)
        wait_for(lambda: "pool-dropped pool=default~1" in self.daemon.log(),
                 10, "the old pool is dropped with its last process")
        self.assert_all_back()


class ConfigurationTest(Machine):
    def test_another_size_waits_for_a_restart_without_processes(self):
        self.start(pools=("default=256MiB",))
        load = self.load()
        self.kill()
        self.daemon.arguments[self.daemon.arguments.index(
            "default=256MiB")] = "default=384MiB"

        self.daemon.start()
        kept = self.daemon.stats("memtuned_pool_size_bytes")
        self.finish(load)
        self.assert_all_back()
        self.kill()
        self.daemon.start()
        new = self.daemon.stats("memtuned_pool_size_bytes")

        self.assertEqual(list(kept.values()), [256 << 20])
        self.assertIn("pool-not-as-configured pool=default differs=size",
                      self.daemon.log())
        self.assertEqual(list(new.values()), [384 << 20])

    def test_a_pool_no_longer_configured_is_left(self):
        self.start(pools=("default=256MiB", "other=64MiB"))
        self.kill()
        self.daemon.arguments.remove("other=64MiB")
        del self.daemon.arguments[len(self.daemon.arguments) - 1]

        self.daemon.start()

        self.assertIn("pool-dropped pool=other", self.daemon.log())
        self.assertIn("pool-taken-over pool=default", self.daemon.log())


class StopTest(Machine):
    def test_without_processes_nothing_is_left(self):
        self.start()
        self.daemon.load("burst", 300)
        wait_for(lambda: not self.processes(), 10, "the load left")
        self.assertGreater(self.keeper(), 0)

        status, seconds = self.daemon.terminate()

        self.assertEqual(status, 0)
        self.assertLess(seconds, 5)
        self.assertEqual(self.keeper(), 0)
        self.assertEqual(os.listdir(self.daemon.runtime + "/pools"), [])
        self.assertFalse(os.path.exists(self.daemon.runtime + "/keeper.sock"))
        self.assertIn("pool-ended", self.daemon.log())

    def test_with_processes_the_pool_goes_with_the_last_one(self):
        self.start()
        load = self.load()

        status, _ = self.daemon.terminate()
        kept = self.keeper()
        self.finish(load)

        self.assertEqual(status, 0)
        self.assertIn("pool-handed-on pool=default processes=1",
                      self.daemon.log())
        self.assertGreater(kept, 0)
        wait_for(lambda: self.keeper() == 0, 10, "the keeper ends")

    def test_a_daemon_started_meanwhile_has_it(self):
        self.start()
        self.daemon.ctl("set", "pageset.batch_factor=2", "--reason", "test")
        load = self.load()
        self.daemon.terminate()

        self.daemon.start()

        self.assertEqual(len(self.processes()), 1)
        self.assertEqual(self.sample()["generation"], "1")
        self.finish(load)
        self.assert_all_back()


if __name__ == "__main__":
    sys.exit(unittest.main())
