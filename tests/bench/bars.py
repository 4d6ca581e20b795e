# SPDX-License-Identifier: Apache-2.0
"""What issue 2 asks of ratios to tcmalloc."""

from collections import namedtuple

PEER = "tcmalloc"
# Start of the case's name, largest ratio.
BARS = (("lifo/", 1.5), ("burst4096/", 0.4), ("producer-consumer/", 0.2))

# cases: (name, ratio) of each; met: None when nothing was measured.
Verdict = namedtuple("Verdict", "shape limit cases met")


def judge(rows):
    """`rows`: (case, ours_ns, peer, peer_ns, ratio)."""
    verdicts = []
    for shape, limit in BARS:
        cases = [(case, ratio) for case, _, peer, _, ratio in rows
                 if peer == PEER and case.startswith(shape)]
        met = all(ratio <= limit for _, ratio in cases) if cases else None
        verdicts.append(Verdict(shape.rstrip("/"), limit, cases, met))
    return verdicts


def describe(verdict):
    """Lines for people."""
    words = {True: "met", False: "NOT met", None: "not measured"}
    yield (f"bar: {verdict.shape} <= {verdict.limit} x {PEER}: "
           f"{words[verdict.met]}")
    for case, ratio in verdict.cases:
        yield (f"  {case:<36} {ratio:6.2f}  "
               f"{words[ratio <= verdict.limit]}")
