#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two pools are two trust domains: processes of several users, each with one
pool, and what they can do to it, to the other one and to the daemon. Becomes
other users: needs root."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

from harness import Daemon, binary, wait_for

ALICE, BOB, WATCHER, NOBODY = 4001, 4002, 4003, 65534
BOBS_GROUP = 4444
PAGE = 4096
OK, PERMISSION_DENIED, NOT_ATTACHED = 0, 8, 5
LIBRARY = os.path.join(os.path.dirname(binary("")), "..", "lib",
                       "libmemtuned.so")
CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "pool_client.py")


class Client:
    """A pool_client.py of another user."""

    def __init__(self, daemon, pool, how, uid, groups=()):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", daemon.client, daemon.library,
             daemon.pool_socket(pool), how],
            user=uid, group=uid, extra_groups=groups, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.status, self.message = self._answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def _answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self._answer()


class TrustDaemon(Daemon):
    """Pools a of alice and b of bob's group, whose sockets everybody reaches;
    the watcher may observe a."""

    def __init__(self):
        super().__init__(pools=())
        os.chmod(self.dir, 0o755)
        self.path = os.path.join(self.dir, "memtuned.yaml")
        self.write(observers=[WATCHER])
        self.arguments += ["--config", self.path, "--sample-interval", "100ms"]
        # The build may lie where other users cannot go.
        self.client = shutil.copy(CLIENT, self.dir)
        self.library = shutil.copy(LIBRARY, self.dir)

    def write(self, observers):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(
                "pool:\n"
                "  a:\n"
                "    size: 64MiB\n"
                "    mode: 0666\n"
                f"    attach: {{users: [{ALICE}]}}\n"
                f"    observe: {{users: {observers}}}\n"
                "  b:\n"
                "    size: 64MiB\n"
                # Its pagesets give nothing back as time goes by.
                "    policy: watermark\n"
                "    mode: 0666\n"
                f"    attach: {{groups: [{BOBS_GROUP}]}}\n")

    def use(self, pool, how, uid, groups=()):
        return Client(self, pool, how, uid, groups)

    def others(self):
        """What is served of every subject but pool a, without times and
        figures of the machine."""
        answer = {}
        for subject in self.ctl_json("subjects").get("subjects", []):
            name = subject["name"]
            if name == "pools/a":
                continue
            zones = self.ctl_json("--subject", name, "zones")["zones"]
            tunables = self.ctl_json("--subject", name, "tunables")["tunables"]
            for row in tunables:
                row.pop("observed_time", None)
            answer[name] = (
                zones if name.startswith("pools/") else
                [zone["name"] for zone in zones], tunables)
        return answer

    def degraded(self, pool):
        samples = self.metrics()
        return samples[("memtuned_subject_degraded",
                        frozenset({("subject", "pools/" + pool)}))]

    def reason(self, pool):
        for subject in self.ctl_json("subjects")["subjects"]:
            if subject["name"] == "pools/" + pool:
                return subject.get("degraded_reason", "")
        return None


@unittest.skipUnless(os.geteuid() == 0, "becomes other users: needs root")
class TrustTest(unittest.TestCase):
    def setUp(self):
        self.daemon = TrustDaemon()
        self.enterContext(self.daemon)

    def use(self, *arguments, **more):
        return self.enterContext(self.daemon.use(*arguments, **more))

    def count(self, name, **labels):
        return self.daemon.metrics()[(name, frozenset(labels.items()))]

    def test_each_pool_lets_in_whom_it_names(self):
        answers = {
            (uid, pool, how): self.use(pool, how, uid, groups)
            for uid, groups in ((ALICE, ()), (BOB, (BOBS_GROUP,)),
                                (WATCHER, ()), (NOBODY, ()), (0, ()))
            for pool in "ab" for how in ("attach", "observe")}
        allowed = {key for key, client in answers.items()
                   if client.status == OK}

        self.assertEqual(
            allowed,
            {(uid, pool, how) for uid, pool in ((ALICE, "a"), (BOB, "b"),
                                                (0, "a"), (0, "b"))
             for how in ("attach", "observe")} | {(WATCHER, "a", "observe")})
        self.assertEqual({client.status for client in answers.values()},
                         {OK, PERMISSION_DENIED})
        message = answers[(ALICE, "b", "attach")].message
        for part in (f"uid {ALICE}", "pool b", '"attach"'):
            self.assertIn(part, message)
        self.assertIn("attaching to read only is allowed",
                      answers[(WATCHER, "a", "attach")].message)
        refused = len(answers) - len(allowed)
        wait_for(lambda: sum(
            self.count("memtuned_refused_attaches_total", reason="denied",
                       subject="pools/" + pool) for pool in "ab") == refused,
            10, "every refusal is counted")

    def test_who_keeps_asking_does_not_fill_the_log(self):
        nobody = self.use("b", "attach", NOBODY)

        statuses = nobody.ask("again", 99)

        self.assertEqual(statuses, [PERMISSION_DENIED] * 99)
        wait_for(lambda: self.count("memtuned_refused_attaches_total",
                                    reason="denied", subject="pools/b") == 100,
                 10, "every refusal is counted")
        self.assertEqual(self.daemon.log().count("attach-refused pool=b"), 10)

    def test_an_observer_sees_everything_and_writes_nothing(self):
        alice = self.use("a", "attach", ALICE)
        watcher = self.use("a", "observe", WATCHER)
        offset = alice.ask("write", "first")

        self.assertEqual(watcher.ask("read", offset), "first")
        alice.ask("overwrite", offset, "second")
        self.assertEqual(watcher.ask("read", offset), "second")
        self.assertEqual(watcher.ask("use"), [False, False, NOT_ATTACHED])
        intrusions = watcher.ask("intrude")
        self.assertEqual(len(intrusions), 2, intrusions)
        for name, answers in intrusions.items():
            self.assertEqual(answers, {
                "open": "EACCES", "open to write": "EACCES", "map": "EACCES",
                "write": "EBADF", "shrink": "EINVAL", "grow": "EINVAL",
                "seal": "EPERM", "mode": "EPERM"}, name)
        # Who may write changes no size, and passes on no more than it has.
        for name, answers in alice.ask("intrude").items():
            self.assertEqual(
                {key: answers[key] for key in
                 ("open", "shrink", "grow", "seal", "mode")},
                {"open": "EACCES", "shrink": "EPERM", "grow": "EPERM",
                 "seal": "EPERM", "mode": "EPERM"}, name)
        wait_for(lambda: self.count("memtuned_pool_observers",
                                    subject="pools/a") == 1, 10,
                 "the observer is counted")
        self.assertEqual(self.count("memtuned_pool_processes",
                                    subject="pools/a", state="running"), 1)

    def test_an_observer_goes_on_while_the_daemon_is_replaced(self):
        alice = self.use("a", "attach", ALICE)
        watcher = self.use("a", "observe", WATCHER)
        offset = alice.ask("write", "before")
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.assertEqual(watcher.ask("read", offset), "before")

        self.daemon.start()

        self.assertIn("pool-taken-over pool=a", self.daemon.log())
        alice.ask("overwrite", offset, "after")
        self.assertEqual(watcher.ask("read", offset), "after")
        self.assertEqual(self.use("a", "observe", WATCHER).ask(
            "read", offset), "after")

    def test_lists_are_read_again(self):
        watcher = self.use("a", "observe", WATCHER)
        self.daemon.write(observers=[NOBODY])
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "reloaded" in self.daemon.log(), 10, "reloaded")

        self.assertEqual(self.use("a", "observe", WATCHER).status,
                         PERMISSION_DENIED)
        nobody = self.use("a", "observe", NOBODY)
        self.assertEqual(nobody.status, OK, nobody.message)
        self.assertIsInstance(watcher.ask("read", 0), str)
        self.assertIn("attach-list-changed pool=a", self.daemon.log())

    def test_a_broken_pool_is_its_users_alone(self):
        alice = self.use("a", "attach", ALICE)
        bob = self.use("b", "attach", BOB, (BOBS_GROUP,))
        offset = bob.ask("write", "mine")
        wait_for(lambda: [row.get("allocated_bytes") for row in
                          self.daemon.ctl_json(
                              "--subject", "pools/b", "processes").get(
                                  "processes", [])] == [str(PAGE)], 10,
                 "bob's block is seen")
        before = self.daemon.others()
        self.assertIn("pools/b", before)
        self.assertEqual([self.daemon.degraded(pool) for pool in "ab"],
                         [0, 0])

        for kind in ("00", "ff", "noise"):
            with self.subTest(kind):
                self.assertGreater(alice.ask("scribble", kind), 1 << 20)
                wait_for(lambda: self.daemon.degraded("a") == 1, 10,
                         "pool a is degraded")
                self.assertNotEqual(self.daemon.reason("a"), "")
                # Whatever they come to.
                for words in (("drain",), ("recalculate",), ("processes",),
                              ("set", "pageset.batch_factor=2")):
                    self.daemon.ctl("--subject", "pools/a", *words)
                self.assertIsNone(self.daemon.process.poll())
                self.assertEqual(self.daemon.degraded("b"), 0)
                self.assertEqual(self.daemon.others(), before)
        alice.process.kill()
        self.assertEqual(bob.ask("read", offset), "mine")
        self.assertEqual(bob.ask("use"), [True, True, OK])
        self.assertIsNone(self.daemon.process.poll())
        self.assertEqual(self.daemon.terminate()[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
