"""The published sets: which corruptions, target accuracies, speeds and seeds they used."""

from __future__ import annotations

from dataclasses import dataclass

from blemish.core.errors import UnknownNameError

__all__ = ["LEVELS", "RELEASE_IMAGES", "SETS", "PublishedSet", "find_set", "release_name"]

_ALL = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)

RELEASE_IMAGES = 7_500_000
"""The length of a run of the release."""


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _ALL if name not in names)


@dataclass(frozen=True)
class PublishedSet:
    """A published family of runs. A run ends on the corruption it began with if ``closed``."""

    name: str
    source: str
    corruptions: tuple[str, ...]
    targets: tuple[float, ...]
    speeds: tuple[int, ...]
    images: int
    seeds: tuple[int, ...] = (43, 44, 45)
    closed: bool = False
    subset: int | None = None


_WORKSHOP = "Press et al., Shift Happens workshop, ICML 2022"
_RDUMB = "Press et al., RDumb, NeurIPS 2023, as released"

LEVELS: dict[str, PublishedSet] = {
    "easy": PublishedSet("easy", _RDUMB, _without("brightness"), (0.4,), (1000, 2000, 5000), RELEASE_IMAGES),
    "medium": PublishedSet(
        "medium", _RDUMB, _without("brightness", "jpeg_compression"), (0.2,), (1000, 2000, 5000), RELEASE_IMAGES
    ),
    "hard": PublishedSet(
        "hard",
        _RDUMB,
        ("gaussian_noise", "shot_noise", "impulse_noise", "contrast"),
        (0.0,),
        (1000, 2000, 5000),
        RELEASE_IMAGES,
    ),
}

_TARGETS, _SPEEDS = (0.2, 0.3, 0.4), (5000, 10_000, 20_000)

SETS: dict[str, PublishedSet] = LEVELS | {
    "ccc-5k": PublishedSet("ccc-5k", _WORKSHOP, _ALL, _TARGETS, _SPEEDS, 750_000, closed=True, subset=5000),
    "ccc-50k": PublishedSet("ccc-50k", _WORKSHOP, _ALL, _TARGETS, _SPEEDS, 750_000, closed=True),
}
"""The three levels of the release, and the two sets of the workshop paper.

`ccc-5k` shows the 5,000 images of the calibration once, twice or four times per step; `ccc-50k` draws each step's
images from all of the validation set. The workshop paper does not name its seeds; the release's are given.
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
