#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon with mutual TLS: how it starts, how it follows its files, and
what metrics and log say about it."""

import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import unittest

import grpc
import stubs
from certificates import Authority, ServedFolder
from harness import Daemon, binary, free_port, run, wait_for

EXPIRY = "memtuned_certificate_expiry_timestamp_seconds"
FAILURES = "memtuned_certificate_reload_failures_total"


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="memtuned-tls.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.ca = Authority(os.path.join(self.folder, "a"))
        self.server = self.ca.issue("server")
        self.client = self.ca.issue("client")
        self.served = ServedFolder(os.path.join(self.folder, "served"))
        self.served.rotate(self.server.certificate, self.server.key,
                           self.ca.certificate)
        self.address = f"127.0.0.1:{free_port()}"

    def flags(self):
        return self.served.flags(self.address)

    def call(self, ca, client):
        """The code of a call by a new client."""
        credentials = grpc.ssl_channel_credentials(
            ca.certificate, client.key, client.certificate)
        options = (("grpc.use_local_subchannel_pool", 1),)
        with grpc.secure_channel(self.address, credentials,
                                 options) as channel:
            stub = stubs.topology_pb2_grpc.TopologyServiceStub(channel)
            try:
                stub.ListSubjects(stubs.topology_pb2.ListSubjectsRequest(),
                                  timeout=10)
            except grpc.RpcError as error:
                return error.code()
        return grpc.StatusCode.OK

    def gets_in(self, ca, client):
        """Any answer but a refused handshake: roles are another matter."""
        return self.call(ca, client) != grpc.StatusCode.UNAVAILABLE

    def metric(self, daemon, name, kind):
        return daemon.metrics()[(name, frozenset({("kind", kind)}))]

    def test_it_follows_its_files_and_says_so(self):
        with Daemon(*self.flags()) as daemon:
            self.assertIn(f"listen-tls={self.address}", daemon.log())
            self.assertTrue(self.gets_in(self.ca, self.client))
            day = time.time() + 86400
            self.assertAlmostEqual(self.metric(daemon, EXPIRY, "server"), day,
                                   delta=120)
            self.assertAlmostEqual(self.metric(daemon, EXPIRY, "ca"),
                                   day + 86400, delta=120)

            self.rotate_to_another_ca(daemon)
            self.offer_a_torn_certificate(daemon)

    def rotate_to_another_ca(self, daemon):
        other_ca = Authority(os.path.join(self.folder, "b"), "other")
        server = other_ca.issue("server", days=9)
        client = other_ca.issue("client")

        self.served.rotate(server.certificate, server.key,
                           other_ca.certificate)
        wait_for(lambda: self.gets_in(other_ca, client), 10,
                 "the new CA is served")

        self.assertFalse(self.gets_in(other_ca, self.client))
        self.assertGreater(self.metric(daemon, EXPIRY, "server"),
                           time.time() + 8 * 86400)
        self.assertEqual(daemon.log().count(" certificates "), 2)
        self.ca, self.client, self.server = other_ca, client, server

    def offer_a_torn_certificate(self, daemon):
        self.served.rotate(self.server.certificate[:-40], self.server.key,
                           self.ca.certificate)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: self.metric(daemon, FAILURES, "server") == 1, 10,
                 "the refusal is counted")

        self.assertIn(f"{self.served.certificate}: certificate 1 is torn",
                      daemon.log())
        self.assertEqual(self.metric(daemon, FAILURES, "ca"), 0)
        self.assertTrue(self.gets_in(self.ca, self.client))

    def test_strangers_cannot_fill_the_log(self):
        with Daemon(*self.flags()) as daemon:
            self.knock(60)
            time.sleep(1.1)
            self.knock(1)
            wait_for(lambda: " dropped=" in daemon.log(), 10,
                     "the log says how much it left out")

            lines = daemon.log().splitlines()
            complaints = [line for line in lines if " grpc message=" in line]
            self.assertIn("Handshake failed", complaints[0])
            self.assertLess(len(complaints), 30)
            self.assertEqual([], [line for line in lines
                                  if not re.match("[0-9]{4}-", line)])
            self.assertTrue(self.gets_in(self.ca, self.client))

    def knock(self, times):
        host, port = self.address.split(":")
        for _ in range(times):
            with socket.create_connection((host, int(port)), 10) as stranger:
                stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
                stranger.settimeout(10)
                with contextlib.suppress(ConnectionResetError):
                    while stranger.recv(4096):
                        pass

    def test_a_bad_set_at_the_start_is_named(self):
        other = self.ca.issue("another")
        self.served.rotate(self.server.certificate, other.key,
                           self.ca.certificate)
        arguments = (binary("memtuned"), "--pool", "default=64MiB",
                     "--runtime-dir", os.path.join(self.folder, "run"),
                     "--metrics-listen", "off", *self.flags())
        said = f"{self.served.key}: does not fit the certificate in"

        started = run(*arguments)
        checked = run(*arguments, "--check")

        self.assertEqual((started.returncode, checked.returncode), (1, 2))
        self.assertIn(said, started.stderr)
        self.assertIn(said, checked.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "run")))


if __name__ == "__main__":
    sys.exit(unittest.main())
