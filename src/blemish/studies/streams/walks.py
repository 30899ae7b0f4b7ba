"""Walks: one path after the other, from corruption to corruption, as a list of steps that a stream follows."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, UnknownNameError
from blemish.core.printable import first_few
from blemish.core.reading import parse_json, read_text
from blemish.core.rng import check_seed
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import check_severity, severity_text
from blemish.studies.streams.paths import Objective, SeverityPath, find_path
from blemish.studies.streams.surface import Surface

__all__ = ["Walk", "WalkStep", "find_paths", "make_walk", "read_walk", "usable_corruptions"]

Pair = tuple[str, str]

FORMAT = 1


class WalkStep(NamedTuple):
    """Some images under two corruptions, the first applied first, and the accuracy that was calibrated for them."""

    first: str
    first_severity: float
    second: str
    second_severity: float
    images: int
    accuracy: float
    segment: int

    def __str__(self) -> str:
        parts = ((self.first, self.first_severity), (self.second, self.second_severity))
        return "+".join(f"{name}@{severity_text(severity)}" for name, severity in parts if severity > 0) or "clean"


@dataclass(frozen=True)
class Walk:
    """The steps of a stream. ``protocol`` says how they were chosen; ``closed`` walks end where they began."""

    steps: tuple[WalkStep, ...]
    protocol: dict[str, Any]
    closed: bool = False

    def __post_init__(self) -> None:
        """Refuse a walk that cannot be followed."""
        if not self.steps:
            raise InputError("a walk without steps; expected at least one")
        if any(step.images < 1 for step in self.steps):
            raise InputError("a walk with a step of no images; expected at least one image per step")

    def __len__(self) -> int:
        return int(self.ends[-1])

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """For each step, how many images have been shown when it is over."""
        return np.cumsum([step.images for step in self.steps])

    @cached_property
    def corruptions(self) -> tuple[str, ...]:
        """The corruptions that images of the walk meet."""
        pairs = [pair for s in self.steps for pair in ((s.first, s.first_severity), (s.second, s.second_severity))]
        return tuple(dict.fromkeys(name for name, severity in pairs if severity > 0))

    def step_at(self, index: int) -> int:
        """The number of the step that image ``index`` of the walk belongs to."""
        if not 0 <= index < len(self):
            raise InputError(f"image {index} of a walk of {len(self)} images; expected 0 … {len(self) - 1}")
        return int(np.searchsorted(self.ends, index, side="right"))

    def spans(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of some positions of a stream that lie within one step each.

        Each is the number of the step, where those of earlier laps count too, its first position, and the one after its
        last.
        """
        while begin < end:
            lap, index = divmod(begin, len(self))
            number = self.step_at(index)
            stop = min(end, lap * len(self) + int(self.ends[number]))
            yield lap * len(self.steps) + number, begin, stop
            begin = stop

    @property
    def accuracy(self) -> float:
        """The mean calibrated accuracy over the images."""
        return float(np.average([s.accuracy for s in self.steps], weights=[s.images for s in self.steps]))

    def to_json(self) -> str:
        """The walk as text; `from_json` is the way back."""
        head = {"format": FORMAT, "closed": self.closed, "protocol": self.protocol, "columns": list(WalkStep._fields)}
        lines = ",\n".join(json.dumps(step, ensure_ascii=False) for step in self.steps)
        return json.dumps(head, ensure_ascii=False, sort_keys=True)[:-1] + ', "steps": [\n' + lines + "\n]}\n"

    @classmethod
    def from_json(cls, text: str, *, name: str = "walk", catalog: Catalog = catalog) -> Walk:
        """The walk that a text describes, with every corruption and severity checked."""
        try:
            data = parse_json(text)
            if data["format"] != FORMAT:
                raise InputError(f"{name}: a walk of format {data['format']}; this version reads format {FORMAT}")
            steps = tuple(
                WalkStep(str(a), float(s), str(b), float(t), int(n), float(p), int(k))
                for a, s, b, t, n, p, k in data["steps"]
            )
            walk = cls(steps, _checked_protocol(data["protocol"]), bool(data["closed"]))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: not a walk ({error!r}); expected what blemish ccc walk writes") from error
        for step in walk.steps:
            for corruption, severity in ((step.first, step.first_severity), (step.second, step.second_severity)):
                catalog[corruption].require(check_severity(severity))
        return walk


def _checked_protocol(stored: Any) -> dict[str, Any]:
    """What a walk says of how it was chosen, as far as it is read again."""
    protocol = dict(stored)
    target, calibration = protocol.get("target"), protocol.get("calibration")
    if target is not None and (isinstance(target, bool) or not isinstance(target, int | float)):
        raise TypeError(f"target {target!r}")
    if calibration is not None and not isinstance(calibration, dict):
        raise TypeError(f"calibration {calibration!r}")
    if calibration and not isinstance(calibration.get("model", {}), dict | None):
        raise TypeError(f"the model of the calibration {calibration['model']!r}")
    return protocol


def read_walk(path: str | os.PathLike[str], *, catalog: Catalog = catalog) -> Walk:
    """The walk in a file; its corruptions are those of the catalog."""
    return Walk.from_json(read_text(path), name=os.fspath(path), catalog=catalog)


def find_paths(
    surfaces: Mapping[Pair, Surface], target: float, *, objective: Objective = "pointwise", names: Sequence[str] = ()
) -> dict[Pair, SeverityPath]:
    """The path of every ordered pair, of all corruptions or of those named."""
    wanted = _checked_names(names or tuple(dict.fromkeys(first for first, _ in surfaces)))
    pairs = [(first, second) for first in wanted for second in wanted if first != second]
    missing = [f"{first}+{second}" for first, second in pairs if (first, second) not in surfaces]
    if missing:
        raise InputError(f"no calibration surface for {first_few(missing, 4)}; expected one for every ordered pair")
    return {pair: find_path(surfaces[pair], target, objective=objective) for pair in pairs}


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
    paths: Mapping[Pair, SeverityPath],
    *,
    images: int,
    speed: int,
    seed: int = 43,
    start: str | None = None,
    end: str | None = None,
    closed: bool = False,
    protocol: Mapping[str, Any] | None = None,
) -> Walk:
    """Paths one after the other until at least ``images`` images are shown, ``speed`` of them at each step.

    When a path is over, the corruption that has vanished is replaced by a random other one. The walk begins with
    corruption ``start`` and goes on until it has reached corruption ``end``, where they are given. A ``closed`` walk
    ends on the corruption it began with, so that a stream can repeat it without a seam. Seeds 43, 44 and 45 visit the
    release's corruptions in the release's order.
    """
    names = _checked_names(tuple(dict.fromkeys(first for first, _ in paths)))
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
    steps: list[WalkStep] = []
    shown, segment, here = 0, 0, first
    while True:
        following = _another(chance, names, here)
        path = paths[here, following]
        for (a, b), accuracy in zip(path.severities, path.accuracies, strict=True):
            steps.append(WalkStep(here, a, following, b, speed, accuracy, segment))
        shown, segment, here = shown + speed * len(path.cells), segment + 1, following
        if shown >= images and goal in (None, here):
            break
    any_path = next(iter(paths.values()))
    settings = {
        "target": any_path.target,
        "objective": any_path.objective,
        "corruptions": list(names),
        "speed": speed,
        "seed": seed,
        "start": first,
        "end": goal,
    }
    return Walk(tuple(steps), settings | dict(protocol or {}), closed)


def _another(chance: random.Random, names: Sequence[str], but: str) -> str:
    # Drawn again until it differs, as the release does: its order would not come out otherwise.
    while (name := chance.choice(names)) == but:
        pass
    return name
