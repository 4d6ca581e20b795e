#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may do what, with processes of several users; and two of them who set
the same tunable at once. Becomes other users: needs root."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import unittest

import grpc
import stubs
from harness import Daemon, binary, wait_for

OPERATOR, VIEWER, OTHER = 4001, 4002, 4003
WRITES = 1000
REPEAT_EACH = 10
FACTOR = "pageset.batch_factor=2"
COUNTER = "watermark.scale_factor"


class AccessDaemon(Daemon):
    """A daemon whose socket everybody reaches, and with an audit file."""

    def __init__(self, *flags):
        super().__init__("--listen-mode", "0666", *flags)
        os.chmod(self.dir, 0o755)
        self.audit_path = os.path.join(self.dir, "audit.log")
        self.arguments += ["--audit-log", self.audit_path]
        # The build may lie where other users cannot go.
        self.memtunectl = shutil.copy(binary("memtunectl"), self.dir)

    def ctl_as(self, uid, *arguments, groups=()):
        return subprocess.run(
            [self.memtunectl, "--target", "unix:" + self.socket,
             "--subject", "pools/default", *arguments],
            user=uid, group=uid, extra_groups=groups, cwd="/",
            capture_output=True, text=True, timeout=60, check=False)

    def audit(self, path=None):
        with open(path or self.audit_path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


@unittest.skipUnless(os.geteuid() == 0, "becomes other users: needs root")
class RolesTest(unittest.TestCase):
    def test_without_roles_the_sockets_group_operates(self):
        with AccessDaemon("--listen-group", "4444") as daemon:
            member = daemon.ctl_as(OTHER, "set", FACTOR, groups=[4444])
            stranger = daemon.ctl_as(OTHER, "set", FACTOR)
            reads = daemon.ctl_as(OTHER, "zones")

        self.assertEqual(member.returncode, 0, member.stderr)
        self.assertEqual(stranger.returncode, 4, stranger.stderr)
        self.assertIn("operator", stranger.stderr)
        self.assertEqual(reads.returncode, 0, reads.stderr)

    def test_roles_decide_are_audited_and_follow_the_file(self):
        daemon = AccessDaemon()
        path = os.path.join(daemon.dir, "memtuned.yaml")
        daemon.arguments += ["--config", path]
        self.write(path, operator=OPERATOR)
        with daemon:
            codes = [daemon.ctl_as(user, *words).returncode
                     for user in (OPERATOR, VIEWER, OTHER)
                     for words in (("set", FACTOR, "--reason", "mine"),
                                   ("zones",))]
            denied = daemon.metrics()[
                ("memtuned_denied_calls_total", frozenset())]
            moved = daemon.audit_path + ".1"
            os.rename(daemon.audit_path, moved)
            self.write(path, operator=OTHER)
            daemon.process.send_signal(signal.SIGHUP)
            wait_for(lambda: "reloaded" in daemon.log(), 10, "reloaded")
            after = [daemon.ctl_as(user, "set", FACTOR).returncode
                     for user in (OPERATOR, OTHER)]
            before_reload = daemon.audit(moved)
            after_reload = daemon.audit()
            log = daemon.log()

        self.assertEqual(codes, [0, 0, 4, 0, 4, 4])
        self.assertEqual(denied, 3)
        self.assertEqual(after, [4, 0])
        self.assertEqual(
            [(line["caller"], line["method"], line["decision"])
             for line in before_reload],
            [("uid:4001", "TuningService/SetTunables", "applied"),
             ("uid:4002", "TuningService/SetTunables", "denied"),
             ("uid:4003", "TuningService/SetTunables", "denied"),
             ("uid:4003", "StatsService/ListZones", "denied")])
        self.assertEqual(before_reload[0]["before"], "pageset.batch_factor=1")
        self.assertEqual(before_reload[0]["after"], "pageset.batch_factor=2")
        self.assertEqual(before_reload[0]["reason"], "mine")
        self.assertEqual([line["decision"] for line in after_reload],
                         ["denied", "applied"])
        self.assertIn("changed=roles", log)

    @staticmethod
    def write(path, operator):
        with open(path, "w", encoding="utf-8") as file:
            file.write("roles:\n"
                       f"  - {{role: operator, users: [{operator}]}}\n"
                       f"  - {{role: viewer, users: [{VIEWER}]}}\n")


def count_up(daemon, uid, results):
    """Adds 1 to COUNTER, WRITES times, as another user."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    conflicts = 0
    with stubs.Client(daemon) as client:
        def read():
            answer = client.tuning.GetTunable(
                stubs.tuning_pb2.GetTunableRequest(
                    name="pools/default/tunables/" + COUNTER), timeout=20)
            return answer.tunable.value.integer, answer.etag

        value, etag = read()
        done = 0
        while done < WRITES:
            request = stubs.tuning_pb2.SetTunablesRequest(
                parent="pools/default", etag=etag, request_id=str(done),
                assignments=[stubs.tuning_pb2.Assignment(
                    tunable=COUNTER,
                    value=stubs.tuning_pb2.Value(integer=value + 1))])
            try:
                answer = client.tuning.SetTunables(request, timeout=20)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.ABORTED, error
                info = stubs.detail(error, stubs.error_details_pb2.ErrorInfo)
                assert info.reason == "ETAG_MISMATCH", info
                assert info.metadata["etag"] != etag, info
                conflicts += 1
                value, etag = read()
                continue
            if done % REPEAT_EACH == 0:
                again = client.tuning.SetTunables(request, timeout=20)
                assert again == answer, (again, answer)
            value, etag = value + 1, answer.change.etag
            done += 1
    results.put((uid, conflicts))


@unittest.skipUnless(os.geteuid() == 0, "becomes other users: needs root")
class TwoOperatorsTest(unittest.TestCase):
    def test_no_update_is_lost_and_none_happens_twice(self):
        # The children come before any channel of this process.
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        with AccessDaemon("--mutations-per-minute", "1000000", "--role",
                          f"operator,users={OPERATOR},users={OTHER}") as daemon:
            writers = [context.Process(target=count_up,
                                       args=(daemon, uid, results))
                       for uid in (OPERATOR, OTHER)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join(120)
            codes = [writer.exitcode for writer in writers]
            tunable = daemon.ctl_json("--subject", "pools/default",
                                      "tunables", COUNTER)
            audit = daemon.audit()

        self.assertEqual(codes, [0, 0])
        conflicts = [results.get(timeout=5)[1] for _ in writers]
        self.assertGreater(sum(conflicts), 0, "they never met")
        text = json.dumps(tunable)
        self.assertIn(f'"integer": "{10 + 2 * WRITES}"', text)
        decisions = {}
        for line in audit:
            key = line["decision"]
            decisions[key] = decisions.get(key, 0) + 1
        self.assertEqual(decisions, {
            "applied": 2 * WRITES,
            "repeated": 2 * WRITES // REPEAT_EACH,
            "refused": sum(conflicts)})
        generations = [int(line["generation"]) for line in audit
                       if line["decision"] == "applied"]
        self.assertEqual(generations, list(range(1, 2 * WRITES + 1)))
        print(f"{2 * WRITES} changes, {sum(conflicts)} refused by etag",
              file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
