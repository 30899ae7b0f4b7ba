"""Ends that meet: the joint choice against all choices of small walks, and never worse than paths chosen alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from blemish.core.errors import InputError
from blemish.studies.streams.adaptive import Refinement
from blemish.studies.streams.info import CalibrationInfo, WalkInfo
from blemish.studies.streams.paths import Objective, end_costs, find_path
from blemish.studies.streams.planning import PathRule, calibrated_for, make_walk
from blemish.studies.streams.seams import Chain
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk, WalkStep
from severity_paths import Cells, all_paths

IMAGES = 12
NAMES = ("fog", "snow", "contrast")
PAIRS = tuple(itertools.permutations(NAMES, 2))


def surface(counts: np.ndarray, pair: tuple[str, str] = ("fog", "snow"), known: np.ndarray | None = None) -> Surface:
    grid = tuple(5 * i / (len(counts) - 1) for i in range(len(counts)))
    return Surface(*pair, np.asarray(counts, dtype=np.float64) / IMAGES, IMAGES, grid, known)


def cost(plane: Surface, cells: Cells, target: float, objective: str) -> float:
    """What a path alone costs, from its definition."""
    values = np.array([plane.accuracy[cell] for cell in cells])
    return float(abs(values.mean() - target) if objective == "mean" else np.abs(values - target).mean())


def jumps(paths: list[Cells], grid: tuple[float, ...], closed: bool) -> list[float]:
    """From the end of each path to the beginning of the next; of a closed walk, from the last to the first too."""
    following = [*paths[1:], paths[0]] if closed else paths[1:]
    return [abs(grid[one[-1][1]] - grid[two[0][0]]) for one, two in zip(paths, following, strict=False)]


def total(
    planes: list[Surface], paths: list[Cells], target: float, objective: str, weight: float, closed: bool
) -> float:
    """The objective, from its definition."""
    alone = sum(cost(plane, path, target, objective) for plane, path in zip(planes, paths, strict=True))
    return alone + weight * sum(jumps(paths, planes[0].grid, closed))


def joint(
    planes: list[Surface], target: float, objective: Any, weight: float, closed: bool
) -> tuple[Chain, list[Cells]]:
    chain = Chain(planes[0].grid, weight=weight, closed=closed)
    costs = [end_costs(plane, target, objective=objective) for plane in planes]
    for each in costs:
        chain.extend(each)
    return chain, [tuple(each.cells(*ends)) for each, ends in zip(costs, chain.ends(), strict=True)]


def planes_of(side: int, count: int) -> st.SearchStrategy[list[np.ndarray]]:
    square = arrays(np.int64, (side, side), elements=st.integers(0, IMAGES))
    return st.lists(square, min_size=count, max_size=count)


rules = st.sampled_from(["mean", "pointwise"])
targets = st.integers(0, IMAGES).map(lambda count: count / IMAGES)
weights = st.sampled_from([0.0, 0.01, 0.04, 0.3, 2.0])


# Choices whose costs, fractions with the lengths of paths below, have equal sums that rounded costs do not have.
TIED = [
    [np.array([[0, 3, 6], [6, 1, 12], [9, 12, 1]]), np.array([[9, 3, 7], [12, 3, 9], [2, 4, 12]])],
    [np.array([[0, 2, 9], [9, 10, 2], [11, 1, 10]]), np.array([[1, 5, 11], [12, 6, 7], [11, 9, 2]])],
]


class TestAgainstAllChoices:
    # A side of 3 has 5 paths between 2 × 2 ends, which three in a row choose among in 5³ ways; of side 4 there are 19.
    @settings(max_examples=60, deadline=None)
    @given(st.one_of(planes_of(3, 3), planes_of(3, 1), planes_of(4, 2)), targets, rules, weights, st.booleans())
    def test_the_sum_is_the_least_there_is(
        self, counts: list[np.ndarray], target: float, objective: str, weight: float, closed: bool
    ) -> None:
        planes = [surface(each) for each in counts]
        chain, paths = joint(planes, target, objective, weight, closed)
        everything = list(all_paths(len(counts[0])))
        assert all(path in everything for path in paths)
        best = min(
            total(planes, list(choice), target, objective, weight, closed)
            for choice in itertools.product(everything, repeat=len(planes))
        )
        # Costs are counted in billionths.
        assert total(planes, paths, target, objective, weight, closed) == pytest.approx(best, abs=1e-8)
        assert chain.objective == pytest.approx(best, abs=1e-8)
        assert chain.steps == sum(map(len, paths))

    @example(TIED[0], 5 / IMAGES, 0.04, False)
    @example(TIED[1], 9 / IMAGES, 0.01, True)
    @settings(max_examples=60, deadline=None)
    @given(planes_of(3, 2), targets, weights, st.booleans())
    def test_equal_means_are_told_apart_by_the_deviation(
        self, counts: list[np.ndarray], target: float, weight: float, closed: bool
    ) -> None:
        planes = [surface(each) for each in counts]
        goal, price = round(target * IMAGES), Fraction(str(weight))

        def both(paths: Sequence[Cells]) -> tuple[Fraction, Fraction]:
            """What a choice costs, and how far its paths deviate, in fractions."""
            means, deviations = Fraction(0), Fraction(0)
            for plane, path in zip(counts, paths, strict=True):
                off = [int(plane[cell]) - goal for cell in path]
                means += Fraction(abs(sum(off)), IMAGES * len(off))
                deviations += Fraction(sum(map(abs, off)), IMAGES * len(off))
            return means + price * sum(map(Fraction, jumps(list(paths), planes[0].grid, closed))), deviations

        best = min(both(choice) for choice in itertools.product(all_paths(3), repeat=2))
        cost, deviation = both(joint(planes, target, "mean", weight, closed)[1])
        assert cost == best[0]
        assert float(deviation) == pytest.approx(float(best[1]), abs=1e-8)  # deviations are added in billionths


@settings(max_examples=40, deadline=None)
@given(planes_of(6, 4), targets, rules, weights, st.booleans())
def test_never_worse_than_paths_chosen_alone(
    counts: list[np.ndarray], target: float, objective: Any, weight: float, closed: bool
) -> None:
    planes = [surface(each) for each in counts]
    chain, paths = joint(planes, target, objective, weight, closed)
    alone = [find_path(plane, target, objective=objective).cells for plane in planes]
    assert chain.objective <= total(planes, alone, target, objective, weight, closed) + 1e-8
    # Paths have to pay for what they save at the seams: alone, each costs at most as much.
    for plane, one, other in zip(planes, alone, paths, strict=True):
        assert cost(plane, one, target, objective) <= cost(plane, other, target, objective) + 1e-9


@settings(max_examples=60, deadline=None)
@given(planes_of(4, 1), targets)
def test_ties_of_the_mean_alone(counts: list[np.ndarray], target: float) -> None:
    """Of all paths whose mean is as near to the target as can be, the one that deviates least at its steps."""
    plane = surface(counts[0])
    found = find_path(plane, target, objective="mean")
    errors = {path: round(cost(plane, path, target, "mean"), 9) for path in all_paths(4)}
    tied = [path for path, error in errors.items() if error == min(errors.values())]
    assert found.deviation == pytest.approx(min(cost(plane, path, target, "pointwise") for path in tied), abs=1e-9)


def known_surfaces(seed: int = 0, side: int = 9) -> dict[tuple[str, str], Surface]:
    """Falling surfaces with some noise."""
    chance, ramp = np.random.default_rng(seed), np.linspace(0, 1, side)
    found = {}
    for first, second in PAIRS:
        falls = 0.9 * np.exp(-chance.uniform(1, 3) * ramp[:, None] - chance.uniform(1, 3) * ramp[None, :])
        counts = np.rint(IMAGES * np.clip(falls + chance.normal(0, 0.05, falls.shape), 0, 1))
        found[first, second] = surface(counts, (first, second))
    return found


class TestWalks:
    @pytest.mark.parametrize("objective", ["mean", "pointwise"])
    @pytest.mark.parametrize("closed", [False, True])
    def test_ends_meet_where_that_is_worth_it(self, objective: Any, closed: bool) -> None:
        """A jump of a step of this grid, 0.625, at a weight of 2 costs more than any deviation."""
        rule = PathRule(0.5, objective, seam_weight=2.0)
        walk = make_walk(known_surfaces(), rule, images=400, speed=5, seed=3, closed=closed)
        assert walk.seams.largest == walk.seams.mean == walk.seams.jumping == 0
        assert walk.seams.count == walk.steps[-1].segment + closed
        assert walk.seams.closing == (0.0 if closed else None)
        alone = PathRule(0.5, objective, "independent")
        apart = make_walk(known_surfaces(), alone, images=400, speed=5, seed=3, closed=closed)
        assert apart.seams.largest > 0

    def test_it_is_as_long_as_was_asked_and_no_path_longer(self) -> None:
        planes = known_surfaces()
        walk = make_walk(planes, PathRule(0.5), images=300, speed=5, seed=3)
        chain = Chain(planes["fog", "snow"].grid)
        visited = list(dict.fromkeys((step.segment, step.first, step.second) for step in walk.steps))
        for _, first, second in visited[:-1]:
            chain.extend(end_costs(planes[first, second], 0.5))
        assert 5 * chain.steps < 300 <= len(walk)

    def test_joint_ends_keep_to_measured_cells(self) -> None:
        side = 9
        chance = np.random.default_rng(1)
        planes = {}
        for pair, plane in known_surfaces(side=side).items():
            path = find_path(plane, 0.5)
            known = chance.random((side, side)) < 0.4
            known[tuple(np.array(path.cells).T)] = True
            planes[pair] = surface(plane.accuracy * IMAGES, pair, known)
        for objective in ("mean", "pointwise"):
            rule = PathRule(0.5, objective, measured_only=True)  # type: ignore[arg-type]
            walk = make_walk(planes, rule, images=500, speed=5, seed=3, closed=True)
            for step in walk.steps:
                plane = planes[step.first, step.second]
                cell = plane.grid.index(step.first_severity), plane.grid.index(step.second_severity)
                assert plane.known[cell]
        nothing = {pair: surface(plane.accuracy * IMAGES, pair, np.eye(side) > 0) for pair, plane in planes.items()}
        with pytest.raises(InputError, match=r"no path from .* over measured cells only"):
            make_walk(nothing, rule, images=500, speed=5)

    def test_which_calibrations_have_measured_paths(self) -> None:
        def made(objective: Objective) -> CalibrationInfo:
            return CalibrationInfo(refinement=Refinement((0.4, 0.2), objective=objective))

        assert calibrated_for(made("pointwise"), 0.4)
        assert calibrated_for(made("mean"), 0.2)
        assert not calibrated_for(made("mean"), 0.3)
        assert not calibrated_for(made("reference"), 0.4)
        assert not calibrated_for(CalibrationInfo(), 0.4)


class TestSeams:
    def steps(self) -> tuple[WalkStep, ...]:
        return (
            WalkStep("fog", 2.0, "snow", 0.0, 5, 0.5, 0),
            WalkStep("fog", 0.0, "snow", 1.0, 5, 0.5, 0),
            WalkStep("snow", 1.5, "contrast", 0.0, 5, 0.5, 1),
            # The release's rule may end where nothing is left.
            WalkStep("snow", 0.0, "contrast", 0.0, 5, 0.5, 1),
            WalkStep("contrast", 2.0, "fog", 0.0, 5, 0.5, 2),
            WalkStep("contrast", 0.0, "fog", 3.0, 5, 0.5, 2),
        )

    def test_worked_by_hand(self) -> None:
        """Snow from 1 to 1.5, contrast from nothing to 2; closed, fog from 3 to 2."""
        opened, closed = Walk(self.steps(), WalkInfo()).seams, Walk(self.steps(), WalkInfo(), closed=True).seams
        assert vars(opened) == {"count": 2, "jumping": 2, "mean": 1.25, "largest": 2.0, "closing": None}
        assert vars(closed) == {"count": 3, "jumping": 3, "mean": 3.5 / 3, "largest": 2.0, "closing": 1.0}
        assert Walk(self.steps()[:2], WalkInfo()).seams.count == 0

    def test_they_stand_in_the_file(self) -> None:
        walk = Walk(self.steps(), WalkInfo(), closed=True)
        text = walk.to_json()
        assert '"seams": {"closing": 1.0, "count": 3, "jumping": 3, "largest": 2.0, "mean": ' in text
        assert Walk.from_json(text) == walk
        with pytest.raises(InputError, match=r"my walk: says .*'largest': 9\.5.* of its seams, and its steps say"):
            Walk.from_json(text.replace('"largest": 2.0', '"largest": 9.5'), name="my walk")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PathRule(0.4, "reference"), "joint ends with the release's rule"),
        (lambda: PathRule(0.4, ends="apart"), "ends 'apart'; expected one of joint, independent"),  # type: ignore[arg-type]
        (lambda: PathRule(40), "target accuracy 40"),
        (lambda: PathRule(0.4, seam_weight=-1), "seam weight of -1"),
        (lambda: Chain((0.0, 5.0)).ends(), "no paths"),
        (lambda: end_costs(known_surfaces()["fog", "snow"], 0.4, objective="reference"), "expected mean or pointwise"),
    ],
)
def test_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_surfaces_over_different_severities() -> None:
    mixed = {**known_surfaces(), ("fog", "snow"): known_surfaces(side=5)["fog", "snow"]}
    with pytest.raises(InputError, match="expected one grid for all pairs"):
        make_walk(mixed, PathRule(0.5), images=10, speed=1)
