"""Flips and distances between rankings, against cases worked by hand and the definition over whole rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.evaluation.info import RecordsHeader
from blemish.evaluation.records import Records
from blemish.metrics.flips import (
    compared_frames,
    flip_fractions,
    frame_grid,
    top5_distance,
    top5_distances,
    zipf_distances,
)


def film(images: list[str], frames: list[int]) -> Records:
    count = len(images)
    top5 = np.tile(np.arange(5, dtype=np.int32), (count, 1))
    ones = np.ones(count, dtype=np.float32)
    numbers = np.array(frames, dtype=np.int16)
    header = RecordsHeader("p:tilt@1")
    return Records(header, np.array(images), np.zeros(count, dtype=np.int32), top5, ones, ones, frames=numbers)


class TestFlips:
    def test_temporal_and_noise(self) -> None:
        classes = [[1, 2, 2, 1], [5, 5, 5, 5]]
        # Along time: 1→2, 2→2, 2→1 are two flips of three. Against the first frame: 2, 2, 1 are two flips of three.
        assert flip_fractions(classes, [(0, 1), (1, 2), (2, 3)]).tolist() == [2 / 3, 0]
        assert flip_fractions([1, 1, 2, 2], [(0, 1), (1, 2), (2, 3)]).tolist() == 1 / 3
        assert flip_fractions([1, 1, 2, 2], [(0, 1), (0, 2), (0, 3)]).tolist() == 2 / 3

    def test_difficulty_strides_and_noise_rule(self) -> None:
        """At difficulty 2 frames 0, 2, 4, … and 1, 3, 5, … are read, so alternating answers never flip."""
        alternating = np.arange(31) % 2
        assert flip_fractions(alternating, compared_frames(parse_condition("p:tilt@1"), 31)) == 1
        assert flip_fractions(alternating, compared_frames(parse_condition("p:tilt@2"), 31)) == 0
        # 15 of the 30 later frames differ from the first.
        assert flip_fractions(alternating, compared_frames(parse_condition("p:gaussian_noise@2"), 31)) == 0.5

    def test_lengths(self) -> None:
        assert len(compared_frames(parse_condition("p:translate@1"), 41)) == 40
        assert len(compared_frames(parse_condition("p:translate@1"), 31)) == 30
        assert len(compared_frames(parse_condition("p:tilt@3"), 31)) == 28
        with pytest.raises(InputError, match=r"p:translate@1: 30 frames per image; expected 16, 31 or 41"):
            compared_frames(parse_condition("p:translate@1"), 30)
        with pytest.raises(InputError, match="no frames to compare"):
            flip_fractions([1, 2], [])


class TestTopFive:
    @pytest.mark.parametrize(
        ("before", "after", "distance"),
        [
            ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], 0),
            ([1, 2, 3, 4, 5], [2, 1, 3, 4, 5], 2),  # |0−1| + |1−0|
            ([1, 2, 3, 4, 5], [1, 2, 3, 4, 9], 1),  # class 5: |4 − 5|
            ([1, 2, 3, 4, 5], [9, 2, 3, 4, 5], 5),  # class 1: |0 − 5|
            ([1, 2, 3, 4, 5], [9, 1, 2, 3, 4], 5),  # four by one place, class 5: |4 − 5|
            ([1, 2, 3, 4, 5], [2, 3, 4, 5, 9], 9),  # class 1: 5, four by one place: not the same the other way round
            ([1, 2, 3, 4, 5], [6, 7, 8, 9, 10], 15),  # 5 + 4 + 3 + 2 + 1
            ([1, 2, -1, -1, -1], [2, 1, -1, -1, -1], 2),  # a model with two classes
        ],
    )
    def test_worked_by_hand(self, before: list[int], after: list[int], distance: int) -> None:
        assert int(top5_distance(before, after)) == distance

    @given(st.permutations(range(9)), st.permutations(range(9)))
    def test_against_whole_rankings(self, first: list[int], second: list[int]) -> None:
        """The definition with both full rankings: Σ over the first five |min(rank − 1, 5) − min(rank' − 1, 5)|."""
        wanted = sum(abs(min(first.index(c), 5) - min(second.index(c), 5)) for c in first[:5])
        assert int(top5_distance(first[:5], second[:5])) == wanted

    def test_means_along_frames(self) -> None:
        lists = [[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [2, 1, 3, 4, 5]]]
        assert top5_distances(lists, [(0, 1), (1, 2)]).tolist() == [1.0]
        assert top5_distances(lists, [(0, 1), (0, 2)]).tolist() == [2.0]

    def test_zipf_is_read_at_the_later_frame(self) -> None:
        assert zipf_distances([[9.0, 1.0, 2.0, 6.0]], [(0, 1), (1, 2), (2, 3)]).tolist() == [3.0]
        assert zipf_distances([[9.0, 9.0, 2.0, 6.0]], [(0, 2), (1, 3)]).tolist() == [4.0]


class TestGrid:
    def test_rows_in_any_order(self) -> None:
        names, grid = frame_grid(film(["b", "a", "a", "b"], [1, 1, 0, 0]))
        assert names.tolist() == ["a", "b"]
        assert grid.tolist() == [[2, 1], [3, 0]]

    @pytest.mark.parametrize(
        ("images", "frames"), [(["a", "a", "b"], [0, 1, 0]), (["a", "a", "b", "b"], [0, 1, 0, 0]), (["a", "b"], [1, 1])]
    )
    def test_missing_frames_are_named(self, images: list[str], frames: list[int]) -> None:
        with pytest.raises(InputError, match=r"p:tilt@1: image [ab] has \d frames"):
            frame_grid(film(images, frames))
