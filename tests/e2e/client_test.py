#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A Python client generated from the protos by the stock tools: lists zones,
sets a factor, drains, watches, and is refused with details it can read."""

import sys
import unittest

import grpc
import stubs
from harness import Daemon

POOL = "pools/default"


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(pools=("default=256MiB,policy=fixed",))
        cls.daemon.start()
        cls.daemon.wait_until_initialised()
        cls.client = stubs.Client(cls.daemon)

    @classmethod
    def tearDownClass(cls):
        cls.client.channel.close()
        cls.daemon.__exit__(None, None, None)

    def set(self, name, timeout=10, **fields):
        value = {key: fields.pop(key) for key in ("integer", "real", "choice")
                 if key in fields}
        return self.client.tuning.SetTunables(
            stubs.tuning_pb2.SetTunablesRequest(
                parent=POOL, reason="python client",
                assignments=[stubs.tuning_pb2.Assignment(
                    tunable=name, value=stubs.tuning_pb2.Value(**value))],
                **fields), timeout=timeout)

    def tunable(self, name):
        return self.client.tuning.GetTunable(
            stubs.tuning_pb2.GetTunableRequest(
                name=f"{POOL}/tunables/{name}"), timeout=10).tunable

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception

    def test_lists_zones(self):
        zones = self.client.stats.ListZones(
            stubs.stats_pb2.ListZonesRequest(parent=POOL), timeout=10).zones

        self.assertTrue(zones)
        self.assertTrue(zones[0].name.startswith(f"{POOL}/nodes/"))
        self.assertEqual(sum(zone.present_bytes for zone in zones), 256 << 20)
        for zone in zones:
            self.assertEqual(zone.managed_bytes, zone.present_bytes)
            self.assertEqual(len(zone.free_blocks), 11)
            self.assertGreater(zone.pagesets.batch, 0)

    def test_sets_a_factor_and_reads_it_back(self):
        change = self.set("pageset.batch_factor", real=2).change

        self.assertEqual(change.reason, "python client")
        self.assertEqual(change.values[0].after.real, 2)
        self.assertTrue(any(effect.what == "pageset batch" and
                            effect.after > effect.before
                            for effect in change.effects))
        self.assertEqual(self.tunable("pageset.batch_factor").value.real, 2)
        self.set("pageset.batch_factor", real=1)

    def test_plans_without_changing(self):
        before = self.tunable("pageset.free_high_factor")
        change = self.set("pageset.free_high_factor", real=9,
                          validate_only=True).change

        self.assertEqual(change.state, stubs.tuning_pb2.CHANGE_STATE_PLANNED)
        self.assertEqual(self.tunable("pageset.free_high_factor").value,
                         before.value)

    def test_drains(self):
        self.daemon.load("burst", 300)

        answer = self.client.tuning.Drain(
            stubs.tuning_pb2.DrainRequest(parent=POOL, reason="python"),
            timeout=10)

        self.assertGreater(
            sum(zone.pages_before for zone in answer.result.zones), 0)
        self.assertEqual(
            sum(zone.pages_after for zone in answer.result.zones), 0)

    def test_bad_value_names_field_value_and_range(self):
        error = self.refused(lambda: self.set("pageset.batch_factor", real=9))

        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("pageset.batch_factor is 9; allowed 0.25 to 8",
                      error.details())
        bad = stubs.detail(error, stubs.error_details_pb2.BadRequest)
        self.assertIn("assignments[0]", bad.field_violations[0].field)
        self.assertIn("0.25 to 8", bad.field_violations[0].description)
        info = stubs.detail(error, stubs.error_details_pb2.ErrorInfo)
        self.assertEqual(info.domain, "memtuned.v1")

    def test_one_bad_value_of_two_changes_nothing(self):
        before = self.tunable("pageset.free_high_factor").value.real
        request = stubs.tuning_pb2.SetTunablesRequest(parent=POOL)
        for name, value in (("pageset.free_high_factor", before + 1),
                            ("pageset.batch_factor", float("nan"))):
            request.assignments.add(
                tunable=name, value=stubs.tuning_pb2.Value(real=value))

        error = self.refused(
            lambda: self.client.tuning.SetTunables(request, timeout=10))

        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.tunable("pageset.free_high_factor").value.real,
                         before)

    def test_old_etag_is_refused(self):
        etag = self.client.tuning.ListTunables(
            stubs.tuning_pb2.ListTunablesRequest(parent=POOL),
            timeout=10).etag
        self.set("pageset.free_high_factor", real=7)

        error = self.refused(lambda: self.set(
            "pageset.free_high_factor", real=8, etag=etag))

        self.assertEqual(error.code(), grpc.StatusCode.ABORTED)
        info = stubs.detail(error, stubs.error_details_pb2.ErrorInfo)
        self.assertEqual(info.reason, "ETAG_MISMATCH")

    def test_a_change_without_deadline_is_refused(self):
        error = self.refused(lambda: self.set(
            "pageset.batch_factor", real=1, timeout=None))

        self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("deadline", error.details())

    def test_what_does_not_exist_is_not_found(self):
        for parent in ("pools/other", "host/nodes/9", f"{POOL}/nodes/77"):
            error = self.refused(lambda name=parent: self.client.stats
                                 .ListZones(stubs.stats_pb2.ListZonesRequest(
                                     parent=name), timeout=10))
            self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND, parent)

    def test_malformed_names_and_pages_are_refused(self):
        for fields in ({"parent": ""}, {"parent": "pools/../etc"},
                       {"parent": POOL, "page_size": -1},
                       {"parent": POOL, "page_size": 1 << 30},
                       {"parent": POOL, "page_token": "garbage"}):
            error = self.refused(lambda f=fields: self.client.stats.ListZones(
                stubs.stats_pb2.ListZonesRequest(**f), timeout=10))
            self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT,
                             fields)

    def test_watches(self):
        request = stubs.stats_pb2.WatchSnapshotsRequest(name=POOL)
        stream = self.client.stats.WatchSnapshots(request, timeout=20)
        times = []
        for event in stream:
            times.append(event.snapshot.sample.time.ToNanoseconds())
            if len(times) == 3:
                stream.cancel()
                break

        self.assertEqual(times, sorted(set(times)))

    def test_health_serves(self):
        answer = self.client.health.Check(
            stubs.health_pb2.HealthCheckRequest(), timeout=10)

        self.assertEqual(answer.status,
                         stubs.health_pb2.HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(unittest.main())
