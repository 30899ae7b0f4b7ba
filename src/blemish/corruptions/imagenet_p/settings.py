"""What a perturbation sequence is rendered with, for each size of frames and each difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from blemish.corruptions.severity import PRESETS

Settings = Mapping[str, float]
"""What a sequence is rendered with, by physical name; all images of a batch share it."""

Setting = float | tuple[float, float, float]

_FRAMES = 31


class Preset(NamedTuple):
    """What depends on the size of the images: the side of the frames, their number, and settings by difficulty."""

    side: int
    length: int
    rows: tuple[Settings, ...]


def presets(
    *,
    inception: Mapping[str, Setting] | None = None,
    imagenet64: Mapping[str, Setting] | None = None,
    cifar: Mapping[str, Setting] | None = None,
    lengths: Mapping[str, int] | None = None,
    **imagenet: Setting,
) -> dict[str, Preset]:
    """The settings for frames of 224 pixels, and for those of 299, 64 and 32 what differs from them.

    A setting is one number, or one for each difficulty. ``lengths`` are the numbers of frames that are not 31.
    """
    others = {"inception": inception, "imagenet64": imagenet64, "cifar": cifar}
    made = {}
    for name, side in PRESETS.items():
        table = {**imagenet, **(others.get(name) or {})}
        rows = tuple({key: _at(value, i) for key, value in table.items()} for i in range(3))
        made[name] = Preset(side, (lengths or {}).get(name, _FRAMES), rows)
    return made


def _at(value: Setting, index: int) -> float:
    return value[index] if isinstance(value, tuple) else value


def amount(values: Settings, index: int) -> float:
    """A quantity that is ``base``, or 0, at frame ``origin``, exactly, and grows by ``step`` per frame."""
    return values.get("base", 0.0) + values["step"] * (index - values["origin"])
