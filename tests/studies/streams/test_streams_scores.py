"""Running means, segments, held accuracy and collapse, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.scores import (
    default_window,
    find_collapse,
    held_accuracy,
    running_mean,
    segment_accuracies,
    step_accuracies,
    summary,
)
from blemish.studies.streams.walks import Walk, WalkStep

WALK = Walk(
    (
        WalkStep("fog", 1.0, "snow", 0.0, 2, 0.5, 0),
        WalkStep("fog", 0.0, "snow", 1.0, 2, 0.6, 0),
        WalkStep("snow", 1.0, "fog", 0.0, 2, 0.7, 1),
    ),
    WalkInfo(),
    closed=True,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.data())
def test_running_means_are_means(hits: list[bool], data: st.DataObject) -> None:
    window = data.draw(st.integers(1, len(hits)))
    found = running_mean(np.array(hits), window)
    expected = [np.mean(hits[i : i + window]) for i in range(len(hits) - window + 1)]
    assert found == pytest.approx(expected)


def test_summary() -> None:
    """Windows of 2 over 1 1 0 0 1: 1, 0.5, 0, 0.5; the worst ends at image 3."""
    found = summary(np.array([True, True, False, False, True]), 2)
    assert (found.minimum, found.mean, found.maximum) == (0.0, 0.5, 1.0)
    assert found.lowest_at == 3
    assert found.accuracy == 0.6
    assert default_window(20) == 2
    assert default_window(3) == 1
    with pytest.raises(InputError, match="a window of 6"):
        summary(np.array([True] * 5), 6)


def test_steps_and_segments() -> None:
    """Eight images over a walk of six: the last two begin the second lap."""
    hits = np.array([1, 0, 1, 1, 0, 0, 1, 1], dtype=bool)
    assert step_accuracies(hits, WALK) == [(0, 2, 0.5, 0.5), (1, 2, 1.0, 0.6), (2, 2, 0.0, 0.7), (0, 2, 1.0, 0.5)]
    segments = segment_accuracies(hits, WALK)
    assert [(s.first, s.second, s.start, s.images, s.accuracy) for s in segments] == [
        ("fog", "snow", 0, 4, 0.75),
        ("snow", "fog", 4, 2, 0.0),
        ("fog", "snow", 6, 2, 1.0),
    ]
    assert segments[0].calibrated == pytest.approx(0.55)
    held = held_accuracy(hits[:6], WALK, 0.4)
    assert held.mean == pytest.approx(0.5)
    assert held.bias == pytest.approx(0.1)
    assert held.deviation == pytest.approx((0.1 + 0.6 + 0.4) / 3)
    assert held.steps == 3


class TestCollapse:
    def test_for_good(self) -> None:
        """Right on 10 images, wrong on the other 10, against one that is right on every other image."""
        adapted = np.array([True] * 10 + [False] * 10)
        unadapted = np.tile([True, False], 10)
        found = find_collapse(adapted, unadapted, 4)
        # Windows of 4 against 0.5: the one that ends at image 11 holds two right ones, that at 12 one.
        assert found is not None
        assert found.at == 12
        assert found.until == 19
        assert found.to_the_end
        assert found.loss == 0.5

    def test_and_back(self) -> None:
        adapted = np.array([True] * 6 + [False] * 8 + [True] * 6)
        unadapted = np.tile([True, False], 10)
        found = find_collapse(adapted, unadapted, 4)
        assert found is not None
        assert not found.to_the_end
        assert found.until < 19

    def test_a_short_dip_is_none(self) -> None:
        adapted = np.array([True] * 6 + [False] * 3 + [True] * 11)
        assert find_collapse(adapted, np.tile([True, False], 10), 4) is None
        assert find_collapse(adapted, adapted, 4) is None

    def test_one_stream(self) -> None:
        with pytest.raises(InputError, match="expected one stream"):
            find_collapse(np.ones(3, dtype=bool), np.ones(4, dtype=bool), 2)
