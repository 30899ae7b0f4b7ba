"""Planning walks: paths one after the other, from corruption to corruption, at one accuracy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from blemish.core.errors import InputError, UnknownNameError
from blemish.core.printable import first_few
from blemish.core.rng import check_seed
from blemish.studies.streams.end_costs import Cell, EndCosts
from blemish.studies.streams.info import CalibrationInfo, WalkInfo
from blemish.studies.streams.paths import Objective, SeverityPath, check_rule, end_costs, find_path, path_over
from blemish.studies.streams.seams import SEAM_WEIGHT, Chain, check_weight
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk, WalkStep

Pair = tuple[str, str]
WalkCell = tuple[Surface, Cell]
"""A surface and a cell in it."""

Ends = Literal["joint", "independent"]
ENDS: tuple[str, ...] = get_args(Ends)


@dataclass(frozen=True)
class PathRule:
    """How the paths of a walk are chosen.

    ``objective`` is what is optimised (see `paths`). With ``joint`` ends the paths of a walk are chosen together, so
    that they meet, a jump by one severity counting ``seam_weight`` (see `seams`); with ``independent`` ones each for
    itself, as in the published sets. With ``measured_only``, joint choice keeps to cells that were measured.
    """

    target: float
    objective: Objective = "pointwise"
    ends: Ends = "joint"
    seam_weight: float = SEAM_WEIGHT
    measured_only: bool = False

    def __post_init__(self) -> None:
        """Refuse a rule that there is not."""
        check_rule(self.target, self.objective)
        check_weight(self.seam_weight)
        if self.ends not in ENDS:
            raise InputError(f"ends {self.ends!r}; expected one of {', '.join(ENDS)}")
        if self.objective == "reference" and self.ends == "joint":
            raise InputError("joint ends with the release's rule, which chooses each path's ends; expected independent")

    def describe(self) -> WalkInfo:
        """What a walk says of it."""
        joint = self.ends == "joint"
        return WalkInfo(
            target=self.target,
            objective=self.objective,
            ends=self.ends,
            seam_weight=self.seam_weight if joint else None,
            measured_only=self.measured_only if joint else None,
        )


def calibrated_for(calibration: CalibrationInfo, target: float) -> bool:
    """Whether a calibration measured only some cells, and among them a whole path at this target for every pair.

    Then walks need not rely on the others. Paths of the release's rule do not count, as they may end where no
    corruption is left.
    """
    refinement = calibration.refinement
    return refinement is not None and refinement.objective != "reference" and target in refinement.targets


def _checked_names(names: Sequence[str]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise InputError(f"corruptions {', '.join(names)}; expected each once")
    if len(names) < 2:
        raise InputError(f"{len(names)} corruptions to walk between; expected at least two")
    return tuple(names)


def usable_corruptions(
    surfaces: Mapping[Pair, Surface], target: float, *, tolerance: float, names: Sequence[str] = ()
) -> tuple[str, ...]:
    """The corruptions that, alone and at some severity above 0, bring the accuracy within a tolerance of the target.

    The release left out those that even at severity 5 stay far from it: a walk cannot begin or end with them.
    """
    usable = []
    for name in names or tuple(dict.fromkeys(first for first, _ in surfaces)):
        alone = [plane.accuracy[1:, 0] for (first, _), plane in surfaces.items() if first == name]
        if not alone:
            raise InputError(f"no calibration surface that begins with {name}")
        if np.abs(alone[0] - target).min() <= tolerance:
            usable.append(name)
    if len(usable) < 2:
        holding = f"only {usable[0]} holds" if usable else "no corruption holds"
        raise InputError(f"{holding} {100 * target:g} % within {100 * tolerance:g} points; choose another target")
    return tuple(usable)


def make_walk(
    surfaces: Mapping[Pair, Surface],
    rule: PathRule,
    *,
    images: int,
    speed: int,
    names: Sequence[str] = (),
    seed: int = 43,
    start: str | None = None,
    end: str | None = None,
    closed: bool = False,
    repair: bool | None = None,
    calibration: CalibrationInfo | None = None,
) -> Walk:
    """Paths one after the other until at least ``images`` images are shown, ``speed`` of them at each step.

    It goes between the corruptions of the surfaces, or those of them that are ``names``. When a path is over, the
    corruption that has vanished is replaced by a random other one. The walk begins with corruption ``start`` and goes
    on until it has reached corruption ``end``, where they are given. A ``closed`` walk ends on the corruption it began
    with, so that a stream can repeat it; whether severities jump there is in its `Walk.seams`. Seeds 43, 44 and 45
    visit the release's corruptions in the release's order. ``repair`` and ``calibration`` are said of the surfaces.
    """
    chosen = _checked_surfaces(surfaces, names)
    names = tuple(dict.fromkeys(first for first, _ in chosen))
    for setting, value in (("images", images), ("speed", speed)):
        if value < 1:
            raise InputError(f"{value} for {setting}; expected at least 1")
    for setting, name in (("start", start), ("end", end)):
        if name is not None and name not in names:
            raise UnknownNameError(f"the walk's {setting} {name!r} is not among its corruptions: {', '.join(names)}")
    if closed and end is not None and start is not None and end != start:
        raise InputError(f"a closed walk from {start} to {end}; expected it to end where it begins")
    chance = random.Random(check_seed(seed))
    first = (end if closed else None) or start or chance.choice(names)
    goal = first if closed else end
    route = _JointPaths(chosen, rule, closed=closed) if rule.ends == "joint" else _IndependentPaths(chosen, rule)
    for pair in _pairs(chance, names, first):
        route.follow(pair)
        if goal in (None, pair[1]) and route.steps * speed >= images:
            break
    steps = [
        WalkStep(path.first, a, path.second, b, speed, accuracy, segment)
        for segment, path in enumerate(route.paths())
        for (a, b), accuracy in zip(path.severities, path.accuracies, strict=True)
    ]
    info = replace(
        rule.describe(),
        corruptions=tuple(names),
        images=images,
        speed=speed,
        seed=seed,
        start=first,
        end=goal,
        repair=repair,
        calibration=calibration,
    )
    return Walk(tuple(steps), info, closed)


def walk_cells(surfaces: Mapping[Pair, Surface], walk: Walk) -> list[WalkCell]:
    """For each step of a walk its surface and the cell in it."""
    planes = [surfaces[step.first, step.second] for step in walk.steps]
    return [
        (plane, (plane.grid.index(step.first_severity), plane.grid.index(step.second_severity)))
        for plane, step in zip(planes, walk.steps, strict=True)
    ]


def _checked_surfaces(surfaces: Mapping[Pair, Surface], names: Sequence[str]) -> dict[Pair, Surface]:
    """The surfaces of all ordered pairs of some corruptions, or of all."""
    wanted = _checked_names(names or tuple(dict.fromkeys(first for first, _ in surfaces)))
    pairs = [(first, second) for first in wanted for second in wanted if first != second]
    missing = [f"{first}+{second}" for first, second in pairs if (first, second) not in surfaces]
    if missing:
        raise InputError(f"no calibration surface for {first_few(missing, 4)}; expected one for every ordered pair")
    chosen = {pair: surfaces[pair] for pair in pairs}
    if len({surface.grid for surface in chosen.values()}) > 1:
        raise InputError("surfaces over different severities; expected one grid for all pairs")
    return chosen


def _pairs(chance: random.Random, names: Sequence[str], first: str) -> Iterator[Pair]:
    """From corruption to corruption for ever: the one that has appeared stays, another one replaces the other."""
    here = first
    while True:
        following = _another(chance, names, here)
        yield here, following
        here = following


def _another(chance: random.Random, names: Sequence[str], but: str) -> str:
    # Drawn again until it differs, as the release does: its order would not come out otherwise.
    while (name := chance.choice(names)) == but:
        pass
    return name


class _IndependentPaths:
    """The paths of the pairs that a walk visits, each the best for itself."""

    def __init__(self, surfaces: Mapping[Pair, Surface], rule: PathRule) -> None:
        self._surfaces, self._rule = surfaces, rule
        self._known: dict[Pair, SeverityPath] = {}
        self._visits: list[Pair] = []
        self.steps = 0
        """How many steps the paths so far have."""

    def follow(self, pair: Pair) -> None:
        """Go along another pair."""
        if pair not in self._known:
            rule = self._rule
            self._known[pair] = find_path(self._surfaces[pair], rule.target, objective=rule.objective)
        self._visits.append(pair)
        self.steps += len(self._known[pair].cells)

    def paths(self) -> list[SeverityPath]:
        """The paths, in order."""
        return [self._known[pair] for pair in self._visits]


class _JointPaths:
    """The paths of the pairs that a walk visits, with ends that are settled when all pairs are known."""

    def __init__(self, surfaces: Mapping[Pair, Surface], rule: PathRule, *, closed: bool) -> None:
        self._surfaces, self._rule = surfaces, rule
        self._costs: dict[Pair, EndCosts] = {}
        self._visits: list[Pair] = []
        grid = next(iter(surfaces.values())).grid
        self._chain = Chain(grid, weight=rule.seam_weight, closed=closed)

    @property
    def steps(self) -> int:
        """How many steps the paths so far have, as their ends would be if no path followed."""
        return self._chain.steps

    def follow(self, pair: Pair) -> None:
        """Go along another pair."""
        if pair not in self._costs:
            rule = self._rule
            self._costs[pair] = end_costs(
                self._surfaces[pair], rule.target, objective=rule.objective, measured_only=rule.measured_only
            )
        self._visits.append(pair)
        self._chain.extend(self._costs[pair])

    def paths(self) -> list[SeverityPath]:
        """The paths, in order."""
        visits = list(zip(self._visits, self._chain.ends(), strict=True))
        cells = {(pair, ends): self._costs[pair].cells(*ends) for pair, ends in dict.fromkeys(visits)}
        rule = self._rule
        return [
            path_over(self._surfaces[pair], cells[pair, ends], rule.target, rule.objective) for pair, ends in visits
        ]
