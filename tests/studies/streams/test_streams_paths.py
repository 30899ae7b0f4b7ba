"""Surfaces and paths: the exact optimum against all paths of small grids, and the reference's rule worked by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blemish.core.errors import InputError
from blemish.studies.streams.paths import OBJECTIVES, find_path
from blemish.studies.streams.surface import GRID, Surface, isotonic, monotonicity, repaired
from severity_paths import Cells, all_paths

IMAGES = 20


def surface(counts: np.ndarray, images: int = IMAGES) -> Surface:
    side = len(counts)
    grid = tuple(5 * i / (side - 1) for i in range(side))
    return Surface("fog", "snow", np.asarray(counts, dtype=np.float64) / images, images, grid)


squares = st.integers(2, 5).flatmap(lambda side: arrays(np.int64, (side, side), elements=st.integers(0, IMAGES)))


class TestAgainstAllPaths:
    @settings(max_examples=150, deadline=None)
    @given(squares, st.integers(0, IMAGES))
    def test_mean_is_exact(self, counts: np.ndarray, wanted: int) -> None:
        target = wanted / IMAGES
        found = find_path(surface(counts), target, objective="mean")

        def error(cells: Cells) -> Fraction:
            return abs(Fraction(int(sum(counts[cell] for cell in cells)), len(cells)) - wanted)

        best = min(error(cells) for cells in all_paths(len(counts)))
        assert error(found.cells) == best
        assert found.cells in set(all_paths(len(counts)))

    @settings(max_examples=150, deadline=None)
    @given(squares, st.floats(0, 1))
    def test_pointwise_is_exact(self, counts: np.ndarray, target: float) -> None:
        plane = surface(counts)
        found = find_path(plane, target, objective="pointwise")
        best = min(np.mean([abs(plane.accuracy[cell] - target) for cell in cells]) for cells in all_paths(len(counts)))
        assert found.deviation == pytest.approx(best, abs=1e-12)
        assert found.cells in set(all_paths(len(counts)))

    @settings(max_examples=60, deadline=None)
    @given(squares, st.floats(0, 1))
    def test_no_rule_beats_the_exact_one(self, counts: np.ndarray, target: float) -> None:
        plane = surface(counts)
        errors = {}
        for rule in OBJECTIVES:
            path = find_path(plane, target, objective=rule)
            # The reference may end at (0, 0), where no corruption is left: a path the others may not take.
            if path.cells[-1] != (0, 0):
                errors[rule] = abs(path.mean - target)
        assert all(errors["mean"] <= error + 1e-9 for error in errors.values())


class TestReference:
    def test_worked_by_hand(self) -> None:
        """One partial mean per cell, from the end backwards; target 6 of 20.

        (0, b) keep 20, 8, 4. Row 1: at (1, 2) only (0, 2) is left: (7 + 4) / 2 = 5.5. At (1, 1): up to (0, 1),
        (6 + 8) / 2 = 7, or on to (1, 2), (6 + 11) / 3 = 5.67: nearer, kept. At (1, 0): to (0, 0), (10 + 20) / 2 = 15,
        or to (1, 1), (10 + 17) / 4 = 6.75: kept. Row 2: at (2, 2), (1 + 11) / 3 = 4. At (2, 1): to (1, 1),
        (3 + 17) / 4 = 5, or to (2, 2), (3 + 12) / 4 = 3.75: the former. At (2, 0): to (1, 0), (4 + 27) / 5 = 6.2, or to
        (2, 1), (4 + 20) / 5 = 4.8: the former. Starts: (1, 0) is off by 0.75, (2, 0) by 0.2.
        """
        counts = np.array([[20, 8, 4], [10, 6, 7], [4, 3, 1]])
        path = find_path(surface(counts), 6 / 20, objective="reference")
        assert path.cells == ((2, 0), (1, 0), (1, 1), (1, 2), (0, 2))
        assert path.mean == pytest.approx(6.2 / 20)

    def test_it_is_greedy(self) -> None:
        """The best path goes through a partial mean that the rule discards: (2, 0) (1, 0) (1, 1) (0, 1), 24 / 4 = 6."""
        counts = np.array([[20, 8, 4], [8, 6, 5], [2, 3, 1]])
        greedy = find_path(surface(counts), 6 / 20, objective="reference")
        exact = find_path(surface(counts), 6 / 20, objective="mean")
        assert exact.mean == pytest.approx(6 / 20)
        assert exact.cells == ((2, 0), (1, 0), (1, 1), (0, 1))
        assert greedy.mean != pytest.approx(6 / 20)

    def test_it_may_end_where_nothing_is_left(self) -> None:
        counts = np.array([[10, 0], [10, 0]])
        assert find_path(surface(counts), 0.5, objective="reference").cells == ((1, 0), (0, 0))
        assert find_path(surface(counts), 0.5, objective="mean").cells[-1] == (0, 1)


def test_full_size_and_what_a_path_says() -> None:
    ramp = np.arange(21)
    counts = np.rint(5000 * 0.76 * np.exp(-0.15 * ramp[:, None] - 0.1 * ramp[None, :]))
    plane = surface(counts, 5000)
    assert plane.grid == GRID
    path = find_path(plane, 0.3, objective="mean")
    assert abs(path.mean - 0.3) < 1e-4
    assert path.severities[0][1] == 0
    assert path.severities[-1][0] == 0
    assert path.deviation >= find_path(plane, 0.3, objective="pointwise").deviation


def test_interpolated_values_are_rounded_finely() -> None:
    values = np.array([[0.9, 1 / 3, 0.2], [np.pi / 10, 0.25, 0.1], [0.2, 0.1, 0.05]])
    found = find_path(Surface("fog", "snow", values, 7, (0.0, 1.0, 2.0)), 0.25, objective="mean")
    best = min(abs(np.mean([values[cell] for cell in cells]) - 0.25) for cells in all_paths(3))
    assert abs(found.mean - 0.25) <= best + 1e-4


class TestSurfaces:
    @settings(max_examples=100, deadline=None)
    @given(squares)
    def test_repair_falls_along_both_axes_and_is_the_nearest(self, counts: np.ndarray) -> None:
        values = counts / IMAGES
        fixed = isotonic(values)
        assert (np.diff(fixed, axis=0) <= 1e-12).all()
        assert (np.diff(fixed, axis=1) <= 1e-12).all()
        # No falling surface can be nearer than half the greatest rise from a cell to one beyond it.
        side = len(values)
        rises = [values[a:, b:].max() - values[a, b] for a in range(side) for b in range(side)]
        assert np.abs(fixed - values).max() == pytest.approx(max(rises) / 2, abs=1e-12)

    def test_a_falling_surface_is_left_alone(self) -> None:
        values = np.array([[0.9, 0.5], [0.7, 0.1]])
        plane = Surface("fog", "snow", values, 10, (0.0, 5.0))
        assert np.array_equal(repaired(plane).accuracy, values)
        assert monotonicity(plane) == (0, 4, 0.0, 0.0)

    def test_rises_are_counted(self) -> None:
        plane = Surface("fog", "snow", np.array([[0.9, 0.5], [0.6, 0.8]]), 10, (0.0, 5.0))
        found = monotonicity(plane)
        assert (found.steps, found.of) == (2, 4)
        assert found.largest == pytest.approx(0.3)
        assert found.largest_repair == pytest.approx(0.15)

    @pytest.mark.parametrize(
        ("values", "grid", "message"),
        [
            (np.zeros((2, 3)), (0.0, 1.0), r"shape \(2, 3\)"),
            (np.full((2, 2), 40.0), (0.0, 1.0), "shares, not percent"),
            (np.zeros((2, 2)), (0.25, 1.0), "severity grid"),
            (np.zeros((2, 2)), (0.0, 6.0), "at most 5"),
        ],
    )
    def test_refusals(self, values: np.ndarray, grid: tuple[float, ...], message: str) -> None:
        with pytest.raises(InputError, match=message):
            Surface("fog", "snow", values, 10, grid)


def test_refusals() -> None:
    plane = surface(np.zeros((3, 3)))
    with pytest.raises(InputError, match="target accuracy 40"):
        find_path(plane, 40)
    with pytest.raises(InputError, match="expected one of mean, reference, pointwise"):
        find_path(plane, 0.4, objective="best")  # type: ignore[arg-type]
