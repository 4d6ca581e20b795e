#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Of the ratios, their interval and the bars."""

import unittest

import bars
from statistics_of_pairs import interval, median_ratio


class RatioTest(unittest.TestCase):
    def test_pairs_inside_a_round(self):
        # The machine slowed down threefold in the second round.
        self.assertEqual(median_ratio([(2, 1), (6, 3), (4, 2)]), 2)


class IntervalTest(unittest.TestCase):
    def test_has_the_ranks_of_the_binomial_table(self):
        for n, rank in ((6, 1), (8, 1), (9, 2), (15, 4), (31, 10)):
            with self.subTest(n):
                self.assertEqual(interval(range(1, n + 1)),
                                 (rank, n + 1 - rank))

    def test_of_few_values_is_all_of_them(self):
        self.assertEqual(interval([3, 1, 2]), (1, 3))


class BarTest(unittest.TestCase):
    def row(self, ratio, case="lifo/order0/1thread", peer="tcmalloc"):
        return (case, 1.0, peer, 1.0, ratio)

    def test_is_met_when_every_case_is(self):
        lifo = bars.judge([self.row(1.5), self.row(1.2)])[0]

        self.assertTrue(lifo.met)

    def test_is_not_met_when_one_case_is_not(self):
        lifo = bars.judge([self.row(1.51), self.row(1.2)])[0]

        self.assertFalse(lifo.met)

    def test_looks_at_tcmalloc_and_its_own_shape_only(self):
        rows = [self.row(9, peer="jemalloc"), self.row(9, case="burst64/x")]

        self.assertTrue(all(bar.met is None for bar in bars.judge(rows)))


if __name__ == "__main__":
    unittest.main()
