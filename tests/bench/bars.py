# SPDX-License-Identifier: Apache-2.0
"""What is asked of ratios: to tcmalloc, and to ourselves without recovery."""

from collections import namedtuple

# Peer, start of the case's name, largest ratio.
BARS = (("tcmalloc", "lifo/", 1.5), ("tcmalloc", "burst4096/", 0.4),
        ("tcmalloc", "producer-consumer/", 0.2),
        ("no-recovery", "lifo/", 1.05))

# cases: (name, ratio) of each; met: None when nothing was measured.
Verdict = namedtuple("Verdict", "peer shape limit cases met")


def judge(rows):
    """`rows`: (case, ours_ns, peer, peer_ns, ratio)."""
    verdicts = []
    for bar_peer, shape, limit in BARS:
        cases = [(case, ratio) for case, _, peer, _, ratio in rows
                 if peer == bar_peer and case.startswith(shape)]
        met = all(ratio <= limit for _, ratio in cases) if cases else None
        verdicts.append(Verdict(bar_peer, shape.rstrip("/"), limit, cases,
                                met))
    return verdicts


def describe(verdict):
    """Lines for people."""
    words = {True: "met", False: "NOT met", None: "not measured"}
    yield (f"bar: {verdict.shape} <= {verdict.limit} x {verdict.peer}: "
           f"{words[verdict.met]}")
    for case, ratio in verdict.cases:
        yield (f"  {case:<36} {ratio:6.2f}  "
               f"{words[ratio <= verdict.limit]}")
