"""The published sets: which corruptions, target accuracies, speeds and lengths they have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blemish.core.errors import UnknownNameError
from blemish.corruptions.imagenet_c import IMAGENET_C

__all__ = ["LEVELS", "SETS", "PublishedSet", "find_set", "release_name"]

_ALL = tuple(corruption.name for corruption in IMAGENET_C[:15])  # of the benchmark; four more are for validation


@dataclass(frozen=True)
class PublishedSet:
    """A published family of runs. A run ends on the corruption it began with if ``closed``."""

    name: str
    corruptions: tuple[str, ...]
    targets: tuple[float, ...]
    speeds: tuple[int, ...]
    images: int
    closed: bool = False
    subset: int | None = None


def _level(name: str, target: float, corruptions: Iterable[str]) -> PublishedSet:
    return PublishedSet(name, tuple(corruptions), (target,), (1000, 2000, 5000), 7_500_000)


def _workshop(name: str, subset: int | None = None) -> PublishedSet:
    return PublishedSet(name, _ALL, (0.2, 0.3, 0.4), (5000, 10_000, 20_000), 750_000, closed=True, subset=subset)


LEVELS = {
    "easy": _level("easy", 0.4, (name for name in _ALL if name != "brightness")),
    "medium": _level("medium", 0.2, (name for name in _ALL if name not in ("brightness", "jpeg_compression"))),
    "hard": _level("hard", 0.0, ("gaussian_noise", "shot_noise", "impulse_noise", "contrast")),
}
"""As released with Press et al., RDumb, NeurIPS 2023, with the seeds 43, 44 and 45."""

SETS = LEVELS | {"ccc-5k": _workshop("ccc-5k", subset=5000), "ccc-50k": _workshop("ccc-50k")}
"""The levels, and the two sets of Press et al., Shift Happens workshop, ICML 2022, which does not name its seeds.

`ccc-5k` shows the 5,000 images of the calibration once, twice or four times per step; `ccc-50k` draws each step's
images from all of the validation set.
"""

_RELEASE_NAMES = {"elastic_transform": "elastic", "jpeg_compression": "jpeg"}


def find_set(name: str) -> PublishedSet:
    """A published set by name."""
    if name not in SETS:
        raise UnknownNameError(f"unknown set {name!r}; expected one of {', '.join(SETS)}")
    return SETS[name]


def release_name(corruption: str) -> str:
    """What the release calls a corruption.

    >>> release_name("jpeg_compression"), release_name("fog")
    ('jpeg', 'fog')
    """
    return _RELEASE_NAMES.get(corruption, corruption)
