#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What memtuned tells a service manager, read from a NOTIFY_SOCKET of our
own, and when it stops to feed the watchdog."""

import contextlib
import os
import signal
import socket
import sys
import time
import unittest
from unittest import mock

from harness import Daemon, binary, wait_for


class Manager:
    """The other end of NOTIFY_SOCKET; messages as lists of lines."""

    def __init__(self, folder, watchdog_seconds=None):
        path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.environment = {"NOTIFY_SOCKET": path}
        if watchdog_seconds is not None:
            self.environment["WATCHDOG_USEC"] = str(
                round(watchdog_seconds * 1e6))

    def next(self, seconds=5):
        """The next message; none in time is a TimeoutError. What is stored
        here (tests/e2e/takeover_test.py) is skipped."""
        self.socket.settimeout(seconds)
        while (message := self.socket.recv(4096).decode().split("\n"))[
                0].startswith("FDSTORE"):
            pass
        return message

    def next_state(self):
        """Skips feedings of the watchdog."""
        while (message := self.next()) == ["WATCHDOG=1"]:
            pass
        return message[0]

    def forget(self):
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.socket.recv(4096)

    def feedings(self, seconds):
        """How many came in that time."""
        count = 0
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                count += self.next(left) == ["WATCHDOG=1"]
        return count


class NotifyTest(unittest.TestCase):
    def start(self, *flags, watchdog_seconds=None, program="memtuned",
              **options):
        daemon = Daemon(*flags, **options)
        daemon.arguments[0] = binary(program)
        manager = Manager(daemon.dir, watchdog_seconds)
        self.addCleanup(manager.socket.close)
        with mock.patch.dict(os.environ, manager.environment):
            self.enterContext(daemon)
        return daemon, manager

    def test_ready_reloading_and_stopping_are_told(self):
        daemon, manager = self.start()

        first = manager.next()
        daemon.process.send_signal(signal.SIGHUP)
        reload = [manager.next_state(), manager.next_state()]
        daemon.process.send_signal(signal.SIGTERM)
        last = manager.next_state()
        status = daemon.process.wait(10)

        self.assertEqual(first, [
            "READY=1", f"STATUS=metrics on 127.0.0.1:{daemon.metrics_port}"])
        self.assertEqual(reload, ["RELOADING=1", "READY=1"])
        self.assertEqual((last, status), ("STOPPING=1", 0))

    def test_the_watchdog_is_fed_several_times_a_period(self):
        _, manager = self.start(watchdog_seconds=1)

        manager.forget()

        self.assertGreaterEqual(manager.feedings(2), 6)

    def test_long_sample_intervals_are_no_reason_to_starve(self):
        _, manager = self.start("--sample-interval", "1h", watchdog_seconds=1)

        manager.forget()

        self.assertGreaterEqual(manager.feedings(2), 6)

    def test_a_hung_sampler_starves_the_watchdog(self):
        daemon, manager = self.start(
            "--sample-interval", "100ms", program="fake_memtuned",
            watchdog_seconds=1, pools=("default=64MiB", "hangs=64MiB"))

        wait_for(lambda: "watchdog-not-fed" in daemon.log(), 10,
                 "the hung sampler is noticed")
        manager.forget()

        self.assertEqual(manager.feedings(1.5), 0)
        self.assertEqual(daemon.ctl("version").returncode, 0)  # not dead
        daemon.process.kill()  # as systemd does

    def test_without_a_watchdog_there_is_no_feeding(self):
        _, manager = self.start()

        manager.forget()

        self.assertEqual(manager.feedings(0.5), 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
