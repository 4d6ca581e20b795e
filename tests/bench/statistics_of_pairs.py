# SPDX-License-Identifier: Apache-2.0
"""Ratios of paired measurements. Times on a shared machine drift by far more
than what is compared, so both sides of a pair are taken next to each other
and only their ratio counts."""

from math import comb
from statistics import median


def ratios(pairs):
    """Ours by peer, for each (ours, peer)."""
    return [ours / peer for ours, peer in pairs]


def median_ratio(pairs):
    return median(ratios(pairs))


def interval(values, confidence=0.95):
    """Interval that covers the median with at least `confidence`, by order
    statistics: no assumption about how the values are distributed. Of fewer
    than 6 values it is all of them, with less confidence than asked."""
    ordered = sorted(values)
    n = len(ordered)
    outside, rank = 0.0, 0
    while rank < (n - 1) // 2:
        outside += 2 * comb(n, rank) / 2 ** n
        if outside > 1 - confidence:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]
