# SPDX-License-Identifier: Apache-2.0
"""Starts the real binaries in a private folder and talks to them the way
users do: memtunectl, HTTP, gRPC."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SOURCE = os.environ.get("MEMTUNED_SOURCE_DIR") or os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.environ.get("MEMTUNED_BIN_DIR") or os.path.join(
    SOURCE, "build", "bin")
START_SECONDS = 20


def binary(name):
    return os.path.join(BIN, name)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds, what):
    """Polls until condition() is true and returns its value."""
    give_up = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def run(*arguments, seconds=60, **kwargs):
    return subprocess.run(arguments, capture_output=True, text=True,
                          timeout=seconds, check=False, **kwargs)


def parse_metrics(text):
    """Prometheus text -> {(name, frozenset(labels)): value}."""
    samples = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r'([a-zA-Z0-9_]+)(?:\{(.*)\})? (\S+)', line)
        if match is None:
            raise AssertionError(f"not a sample: {line!r}")
        labels = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"',
                            match.group(2) or "")
        key = (match.group(1), frozenset(labels))
        if key in samples:
            raise AssertionError(f"twice: {line!r}")
        samples[key] = float(match.group(3))
    return samples


class Daemon:
    """memtuned with a runtime folder of its own. A context manager: on exit
    it is stopped if it still runs, and its folder removed."""

    def __init__(self, *flags, pools=("default=256MiB",), topology="live",
                 directory=None):
        self._owned = directory is None
        self.dir = directory or tempfile.mkdtemp(prefix="memtuned-e2e.")
        self.runtime = os.path.join(self.dir, "run")
        self.state = os.path.join(self.dir, "state")
        for folder in (self.runtime, self.state):
            os.makedirs(folder, exist_ok=True)
        self.metrics_port = free_port()
        self.socket = os.path.join(self.runtime, "memtuned.sock")
        self.log_path = os.path.join(self.dir, "memtuned.log")
        self.arguments = [
            binary("memtuned"), "--runtime-dir", self.runtime,
            "--state-dir", self.state, "--topology", topology,
            "--metrics-listen", f"127.0.0.1:{self.metrics_port}"]
        for pool in pools:
            self.arguments += ["--pool", pool]
        self.arguments += flags
        self.inherited = []  # descriptors it gets as 3, 4, ...
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        if kind is not None:
            print(self.log()[-4000:], file=sys.stderr)
        if self._owned:
            shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, close_fds=not self.inherited,
                preexec_fn=self._pass_on if self.inherited else None)
        try:
            wait_for(self._answers, START_SECONDS, "memtuned answers")
        except AssertionError:
            self.process.kill()
            self.process.wait()
            print(self.log()[-4000:], file=sys.stderr)
            raise
        return self

    def _pass_on(self):
        # Out of the way first: one may have a number that another one gets.
        above = [fcntl.fcntl(fd, fcntl.F_DUPFD, 500) for fd in self.inherited]
        for number, fd in enumerate(above, 3):
            os.dup2(fd, number)
            os.set_inheritable(number, True)
            os.close(fd)
        os.closerange(3 + len(above), 500)

    def _answers(self):
        if self.process.poll() is not None:
            raise AssertionError(
                f"memtuned ended with {self.process.returncode}")
        return self.ctl("--timeout", "1s", "zones").returncode == 0

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def pool_socket(self, pool="default"):
        return os.path.join(self.runtime, "pools", pool + ".sock")

    def ctl(self, *arguments, seconds=60):
        return run(binary("memtunectl"), "--target", "unix:" + self.socket,
                   *arguments, seconds=seconds)

    def ctl_json(self, *arguments):
        result = self.ctl("-o", "json", *arguments)
        if result.returncode != 0:
            raise AssertionError(
                f"memtunectl {arguments}: status {result.returncode}: "
                f"{result.stdout}{result.stderr}")
        return json.loads(result.stdout)

    def stats(self, *names):
        """memtunectl's view, in the form of parse_metrics()."""
        document = self.ctl_json("--subject", "pools/default", "stats", *names)
        samples = {}
        for stat in document["snapshot"]["stats"]:
            labels = frozenset(stat["labels"].items())
            if "histogram" not in stat:
                samples[(stat["name"], labels)] = float(stat["value"])
                continue
            histogram = stat["histogram"]
            for bucket in histogram["buckets"]:
                bound = float(bucket["upper_bound"])
                text = "+Inf" if bound == float("inf") else f"{bound:g}"
                samples[(stat["name"] + "_bucket",
                         labels | {("le", text)})] = float(
                             bucket["cumulative_count"])
            samples[(stat["name"] + "_sum", labels)] = float(histogram["sum"])
            samples[(stat["name"] + "_count", labels)] = float(
                histogram["count"])
        return samples

    def metrics_text(self):
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()

    def metrics(self):
        return parse_metrics(self.metrics_text())

    def sample_time(self):
        document = self.ctl_json("--subject", "pools/default", "stats",
                                 "memtuned_subject_ready")
        return document["snapshot"]["sample"]["time"]

    def wait_for_next_sample(self):
        """Two more samples: the later one began after this call."""
        for _ in range(2):
            before = self.sample_time()
            wait_for(lambda seen=before: self.sample_time() != seen, 20,
                     "a new sample")

    def wait_until_initialised(self, seconds=60):
        def initialised():
            values = {name: value for (name, _), value
                      in self.stats("memtuned_pool_").items()}
            return values["memtuned_pool_initialised_bytes"] == \
                values["memtuned_pool_size_bytes"]
        wait_for(initialised, seconds, "the pool is initialised")

    def load(self, *shape, seconds=1, processes=1, threads=2):
        """Runs memtune-load and returns its JSON."""
        result = run(binary("memtune-load"), "--socket", self.pool_socket(),
                     "--processes", str(processes), "--threads", str(threads),
                     "--seconds", str(seconds), "-o", "json",
                     *[str(word) for word in shape], seconds=seconds + 60)
        if result.returncode != 0:
            raise AssertionError(f"memtune-load: {result.stderr}")
        return json.loads(result.stdout)

    def start_load(self, *shape, seconds, threads=2):
        return subprocess.Popen(
            [binary("memtune-load"), "--socket", self.pool_socket(),
             "--processes", "1", "--threads", str(threads),
             "--seconds", str(seconds), "-o", "json",
             *[str(word) for word in shape]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def terminate(self, seconds=15):
        """SIGTERM; returns (exit status, seconds it took)."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(seconds)
        return status, time.monotonic() - start
