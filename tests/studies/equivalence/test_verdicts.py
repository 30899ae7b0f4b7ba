"""Intervals and verdicts of equivalence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.studies.equivalence.verdicts import (
    Verdict,
    bounded_interval,
    judge,
    mean_interval,
    overall,
    paired_interval,
)

SAME, EQUIVALENT, DIFFERENT, UNDECIDED = Verdict.SAME, Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.UNDECIDED


# Intervals


def test_few_images_have_no_interval() -> None:
    found = mean_interval(np.zeros(29))
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert judge(found, found, 100.0) is UNDECIDED


def test_no_disagreement_at_all() -> None:
    """With none of n images telling the two apart, Tango's interval ends at ± z²/(n + z²)."""
    z2 = 1.959964**2
    found = paired_interval(0, 0, 300)
    assert found.value == 0
    assert found.high == pytest.approx(z2 / (300 + z2), rel=1e-5)
    assert found.low == pytest.approx(-found.high)


def restricted_score(first: int, second: int, images: int, gap: float) -> float:
    """The score statistic with the nuisance parameter found by trying them all."""
    low, high = max(0.0, -gap), min(1.0, (1 - gap) / 2)
    q = np.linspace(low, high, 200_001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [k * np.log(p) if k else 0.0 for k, p in ((first, q + gap), (second, q))]
        likelihood = terms[0] + terms[1] + (images - first - second) * np.log(1 - gap - 2 * q)
    best = float(q[np.nanargmax(likelihood)])
    return (first - second - images * gap) / math.sqrt(images * (2 * best + gap - gap**2))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_ends_of_the_paired_interval_are_two_deviations_away(first: int, second: int, rest: int) -> None:
    images = first + second + rest + 1
    found = paired_interval(first, second, images)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert restricted_score(first, second, images, found.low) == pytest.approx(1.96, abs=0.02)
    assert restricted_score(first, second, images, found.high) == pytest.approx(-1.96, abs=0.02)
    mirrored = paired_interval(second, first, images)
    assert (mirrored.low, mirrored.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_impossible_counts() -> None:
    with pytest.raises(InputError, match="5 and 6 of 10 images"):
        paired_interval(5, 6, 10)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 100), st.sampled_from([0.8, 0.95, 0.999]))
@settings(max_examples=25, deadline=None)
def test_the_interval_of_one_cell_is_tangos(first: int, second: int, rest: int, level: float) -> None:
    gains = np.array([1.0] * first + [-1.0] * second + [0.0] * (rest + 1))
    found, expected = bounded_interval(gains, level=level), paired_interval(first, second, len(gains), level=level)
    assert found.value == pytest.approx(expected.value)
    assert (found.low, found.high) == (pytest.approx(expected.low, abs=1e-7), pytest.approx(expected.high, abs=1e-7))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_intervals_of_bounded_values(fifths: list[int]) -> None:
    gains = np.array(fifths) / 5
    found, mirrored = bounded_interval(gains), bounded_interval(-gains)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.width > 0
    assert found.value == pytest.approx(gains.mean())
    assert (mirrored.low, mirrored.high) == (pytest.approx(-found.high), pytest.approx(-found.low))
    wider = bounded_interval(gains, level=0.99)
    assert wider.low <= found.low
    assert found.high <= wider.high


def test_a_tiny_gain_widens_the_interval_a_little() -> None:
    """One image of 30 that differs in one of 57 cells tells hardly more than none; a bootstrap would end at 0.2 %."""
    none, one = (bounded_interval(np.array([gain] + [0.0] * 29)) for gain in (0.0, 1 / 57))
    assert one.high == pytest.approx(none.high, abs=0.005)
    assert one.low == pytest.approx(none.low, abs=0.005)


def test_bounded_intervals_cover_rare_gaps() -> None:
    """Of 30 images, 1 % differ, in all cells: 3 of 4 samples have none that does, and then a bootstrap ends at 0."""
    rng = np.random.default_rng(0)
    samples = (rng.random((200, 30)) < 0.01).astype(float)
    assert np.mean(samples.any(axis=1)) < 0.4
    found = [bounded_interval(sample) for sample in samples]
    assert np.mean([item.low <= 0.01 <= item.high for item in found]) >= 0.95


@pytest.mark.parametrize("values", [[], [0.0, 1.5], [math.nan]])
def test_values_without_bounds(values: list[float]) -> None:
    with pytest.raises(InputError, match="values; expected at least one, and all from -1 to 1"):
        bounded_interval(np.array(values))


@pytest.mark.parametrize(
    ("interval", "widened", "expected"),
    [
        ((0.2, -0.5, 0.9), (0.2, -1.0, 1.4), EQUIVALENT),
        ((0.8, 0.7, 0.9), (0.8, 0.6, 1.0), EQUIVALENT),  # a difference, but a small one
        ((0.8, 0.3, 1.3), (0.8, 0.1, 1.5), UNDECIDED),  # a difference that may be larger than the margin
        ((3.0, 1.5, 4.5), (3.0, 0.5, 5.5), DIFFERENT),
        ((-3.0, -4.5, -1.5), (-3.0, -5.5, -0.5), DIFFERENT),
        ((3.0, 1.5, 4.5), (3.0, -0.5, 6.5), UNDECIDED),  # one of many comparisons may look so by chance
        ((0.0, -3.0, 3.0), (0.0, -5.0, 5.0), UNDECIDED),
    ],
)
def test_verdicts(interval: tuple[float, ...], widened: tuple[float, ...], expected: Verdict) -> None:
    assert judge(Estimate(*interval), Estimate(*widened), 1.0) is expected


def test_the_whole_is_as_good_as_its_worst_part() -> None:
    assert overall([SAME, SAME]) is SAME
    assert overall([SAME, EQUIVALENT]) is EQUIVALENT
    assert overall([EQUIVALENT, UNDECIDED]) is UNDECIDED
    assert overall([EQUIVALENT, UNDECIDED, DIFFERENT]) is DIFFERENT
    assert overall([]) is UNDECIDED


# Statistics
