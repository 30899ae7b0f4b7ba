"""Sets of walks: their corruptions, target accuracies, speeds and lengths, and the rule by which paths are chosen.

Those of the papers keep the rules that they were published with. Ours, whose names end in "-smooth", go between the
same corruptions at the same targets, but hold the accuracy at every step (``pointwise``) and choose ends together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blemish.core.errors import UnknownNameError
from blemish.corruptions.imagenet_c import IMAGENET_C
from blemish.studies.streams.paths import Objective
from blemish.studies.streams.planning import Ends, PathRule
from blemish.studies.streams.seams import SEAM_WEIGHT
from blemish.studies.streams.walks import Walk

SEEDS = (43, 44, 45)
"""Of the release. The workshop paper names none; these are used for its sets too."""

_ALL = tuple(corruption.name for corruption in IMAGENET_C[:15])  # of the benchmark; four more are for validation


@dataclass(frozen=True)
class WalkSet:
    """A family of walks: each target with each speed and several seeds.

    A walk ends on the corruption it began with if ``closed``. Where ``subset`` is a number, streams show so many images
    again and again. ``source`` says where it was published, and ``seeds`` which are part of that; both are empty for
    ours.
    """

    name: str
    corruptions: tuple[str, ...]
    targets: tuple[float, ...]
    speeds: tuple[int, ...]
    images: int
    objective: Objective
    ends: Ends
    closed: bool = False
    subset: int | None = None
    source: str = ""
    seeds: tuple[int, ...] = ()

    def rule(self, target: float, *, measured_only: bool = False) -> PathRule:
        """How its paths are chosen."""
        return PathRule(target, self.objective, self.ends, measured_only=measured_only)

    def changes(self, walk: Walk) -> list[str]:
        """In what a walk is not one of this set, each in a few words, such as "speed 500 instead of 1000, 2000"."""
        made = walk.protocol
        compared: dict[str, tuple[Any, Sequence[Any]]] = {
            "objective": (made.objective, [self.objective]),
            "ends": (made.ends, [self.ends]),
            "seam weight": (SEAM_WEIGHT if made.seam_weight is None else made.seam_weight, [SEAM_WEIGHT]),
            "target": (made.target, self.targets),
            "images": (made.images, [self.images]),
            "speed": (made.speed, self.speeds),
            "closed": (walk.closed, [self.closed]),
            "seed": (made.seed, self.seeds or [made.seed]),
        }
        changed = [
            f"{name} {value} instead of {', '.join(map(str, accepted))}"
            for name, (value, accepted) in compared.items()
            if value not in accepted
        ]
        if set(made.corruptions) != set(self.corruptions):
            changed.append(f"{len(made.corruptions)} corruptions instead of its {len(self.corruptions)}")
        return changed

    def marked(self, walk: Walk, *, others: Sequence[str] = ()) -> Walk:
        """The walk with its set in its protocol, and in what it differs from it, ``others`` too."""
        changed = (*self.changes(walk), *others)
        return replace(walk, protocol=replace(walk.protocol, set=self.name, subset=self.subset, changed=changed))


def _level(name: str, target: float, corruptions: Iterable[str]) -> WalkSet:
    return WalkSet(
        name,
        tuple(corruptions),
        (target,),
        (1000, 2000, 5000),
        7_500_000,
        "reference",
        "independent",
        source="the release of Press et al., NeurIPS 2023",
        seeds=SEEDS,
    )


def _workshop(name: str, subset: int | None = None) -> WalkSet:
    return WalkSet(
        name,
        _ALL,
        (0.2, 0.3, 0.4),
        (5000, 10_000, 20_000),
        750_000,
        "mean",
        "independent",
        closed=True,
        subset=subset,
        source="Press et al., Shift Happens workshop, ICML 2022",
    )


LEVELS = {
    "easy": _level("easy", 0.4, (name for name in _ALL if name != "brightness")),
    "medium": _level("medium", 0.2, (name for name in _ALL if name not in ("brightness", "jpeg_compression"))),
    "hard": _level("hard", 0.0, ("gaussian_noise", "shot_noise", "impulse_noise", "contrast")),
}
"""As released with Press et al., RDumb, NeurIPS 2023."""

_PUBLISHED = LEVELS | {"ccc-5k": _workshop("ccc-5k", subset=5000), "ccc-50k": _workshop("ccc-50k")}

_OURS = [
    replace(published, name=f"{name}-smooth", objective="pointwise", ends="joint", source="")
    for name, published in _PUBLISHED.items()
]

SETS = _PUBLISHED | {ours.name: ours for ours in _OURS}
"""The levels, the two sets of Press et al., Shift Happens workshop, ICML 2022, and ours.

`ccc-5k` shows the 5,000 images of the calibration once, twice or four times per step; `ccc-50k` draws each step's
images from all of the validation set.
"""

_RELEASE_NAMES = {"elastic_transform": "elastic", "jpeg_compression": "jpeg"}


def find_set(name: str) -> WalkSet:
    """A set by name."""
    if name not in SETS:
        raise UnknownNameError(f"unknown set {name!r}; expected one of {', '.join(SETS)}")
    return SETS[name]


def release_name(corruption: str) -> str:
    """What the release calls a corruption.

    >>> release_name("jpeg_compression"), release_name("fog")
    ('jpeg', 'fog')
    """
    return _RELEASE_NAMES.get(corruption, corruption)
