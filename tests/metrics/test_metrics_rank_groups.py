"""Ranks as ranges, and groups that paired tests cannot tell apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.metrics.rank_groups import holm, rank_groups


class TestHolm:
    def test_by_hand(self) -> None:
        # Sorted 0.005, 0.01, 0.03, 0.04, times 4, 3, 2, 1: 0.02, 0.03, 0.06 and 0.04, which may not fall below 0.06.
        assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_never_above_one(self) -> None:
        assert holm([0.9, 0.8]).tolist() == [1, 1]
        assert holm([]).tolist() == []

    @pytest.mark.parametrize("bad", [[-0.1], [1.1], [float("nan")], [[0.1]]])
    def test_what_is_no_p_value(self, bad: list[float]) -> None:
        with pytest.raises(InputError, match="expected a list of numbers between 0 and 1"):
            holm(bad)


def matrix(count: int, small: dict[tuple[int, int], float]) -> np.ndarray:
    values = np.ones((count, count))
    for (one, other), p in small.items():
        values[one, other] = values[other, one] = p
    return values


class TestGroups:
    def test_overlapping_groups(self) -> None:
        # Only the first and the last are told apart: the one in the middle belongs to both groups.
        places = rank_groups([30.0, 10.0, 20.0], matrix(3, {(0, 1): 0.001}))
        assert [(p.index, p.value, p.rank, p.letters) for p in places] == [
            (1, 10.0, "1–2", "a"),
            (2, 20.0, "1–3", "a b"),
            (0, 30.0, "2–3", "b"),
        ]
        assert [p.may_be_best for p in places] == [True, True, False]

    def test_correction_counts_all_pairs(self) -> None:
        # One p of 0.03 tells two models apart; among the three pairs of three models it is 0.09.
        assert [p.rank for p in rank_groups([1.0, 2.0], matrix(2, {(0, 1): 0.03}))] == ["1", "2"]
        assert [p.rank for p in rank_groups([1.0, 2.0, 3.0], matrix(3, {(0, 1): 0.03}))] == ["1–3"] * 3

    def test_all_apart(self) -> None:
        pairs = dict.fromkeys(combinations(range(4), 2), 0.0001)
        places = rank_groups([1.0, 3.0, 2.0, 4.0], matrix(4, pairs), higher_is_better=True)
        assert [(p.index, p.rank, p.letters) for p in places] == [
            (3, "1", "a"),
            (1, "2", "b"),
            (2, "3", "c"),
            (0, "4", "d"),
        ]

    def test_one_and_none(self) -> None:
        assert [(p.rank, p.letters) for p in rank_groups([5.0], [[1.0]])] == [("1", "a")]
        assert rank_groups([], np.ones((0, 0))) == []

    @given(st.integers(2, 9), st.data())
    def test_groups_are_what_the_pairs_say(self, count: int, data: st.DataObject) -> None:
        """Two models share a group if and only if their pair is not told apart, whatever the p-values."""
        pairs = list(combinations(range(count), 2))
        drawn = {pair: data.draw(st.sampled_from([1e-9, 1.0])) for pair in pairs}
        places = rank_groups([float(i) for i in range(count)], matrix(count, drawn))
        assert [p.index for p in places] == list(range(count))
        for one, other in pairs:
            share = bool(set(places[one].groups) & set(places[other].groups))
            assert share == (drawn[one, other] == 1.0)
        for place in places:
            better = [
                drawn[min(p.index, place.index), max(p.index, place.index)] < 1
                for p in places
                if p.index != place.index
            ]
            assert place.low == 1 + sum(better[: place.index])
            assert place.high == count - sum(better[place.index :])

    def test_what_cannot_be_ranked(self) -> None:
        with pytest.raises(InputError, match="expected finite numbers"):
            rank_groups([float("nan")], [[1.0]])
        with pytest.raises(InputError, match="expected a symmetric matrix"):
            rank_groups([1.0, 2.0], [[1.0, 0.1], [0.2, 1.0]])
        with pytest.raises(InputError, match="level 95"):
            rank_groups([1.0], [[1.0]], level=95)
