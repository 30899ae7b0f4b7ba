"""What a torch module, or the weights it came with, says of its input: size, resizing, mean and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from torch import nn

from blemish.core.errors import InputError
from blemish.models.base import Preprocessing
from blemish.models.resizing import Interpolation, Resizing

# Where timm keeps its settings, in new versions and in old ones; then what people attach to a module themselves.
_TIMM = ("pretrained_cfg", "default_cfg")
_ATTACHED = ("preprocessing", "weights")
# Wrappers that only pass images on: DataParallel and compiled modules. Others may normalise themselves.
_WRAPPED = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}

_HOW = "Say it with --mean and --std, in Python with from_module(net, preprocessing=…)"

Preprocessed = Preprocessing | Any
"""A preprocessing; or, of torchvision, a member of a weights enum or what its ``transforms()`` gives."""


NOTHING_SAID = (
    "nothing says what its input is like; assumed values in 0 … 1, red first, without mean and standard deviation. "
    f"{_HOW}: 0 and 1 for a model that normalises by itself"
)
"""What is assumed of a model that says nothing, and how to say it."""


def own_preprocessing(module: nn.Module) -> tuple[Preprocessing, str | None]:
    """What a module says of its input: timm's settings, torchvision's weights where they are attached to it.

    Also the text of the notice for the user; None where a `Preprocessing` was attached for us.
    """
    while (inner := _WRAPPED.get(type(module).__name__)) and isinstance(getattr(module, inner, None), nn.Module):
        module = getattr(module, inner)
    for name in (*_TIMM, *_ATTACHED):
        attached = getattr(module, name, None)
        if name in _ATTACHED and isinstance(attached, Preprocessing):
            return attached, None
        own = _from_timm(attached) if name in _TIMM else _from_torchvision(attached)
        if own is not None:
            size = "" if own.size is None else f"size {own.size[0]}×{own.size[1]}, "
            return own, f"{size}mean {_shown(own.mean)}, std {_shown(own.std)}, read from its {name}. {_HOW}"
    return Preprocessing(), NOTHING_SAID


def as_preprocessing(given: Preprocessed) -> Preprocessing:
    """A preprocessing, whichever way it is given."""
    if isinstance(given, Preprocessing):
        return given
    own = _from_torchvision(given)
    if own is None:
        raise InputError(
            f"a preprocessing of type {type(given).__name__}; expected a Preprocessing, or torchvision's weights or "
            "their transforms()"
        )
    return own


def from_settings(settings: Mapping[str, Any]) -> Preprocessing:
    """The preprocessing of timm's settings: ``input_size``, ``mean``, ``std``, and how pictures are resized and cut."""
    count, height, width = (int(number) for number in settings["input_size"])
    part, mode = float(settings.get("crop_pct") or 0.875), settings.get("crop_mode") or "center"
    tall, wide = math.floor(height / part), math.floor(width / part)
    to: int | tuple[int, int] | None = None  # timm's other ways add borders, or need not cut
    if mode == "squash":
        to = tall, wide
    elif mode == "center" and height == width:
        to = tall
    return Preprocessing(
        size=(height, width),
        mean=_numbers(settings["mean"]),
        std=_numbers(settings["std"]),
        channels="gray" if count == 1 else "rgb",
        resizing=_resizing(settings.get("interpolation"), to),
    )


def _resizing(interpolation: Any, to: int | tuple[int, int] | None) -> Resizing | None:
    """How pictures are resized by a filter of this name, or by the member of an enum with such a value."""
    name = getattr(interpolation, "value", interpolation)
    return Resizing(cast(Interpolation, name), to) if name in get_args(Interpolation) else None


def _from_timm(settings: Any) -> Preprocessing | None:
    plain = settings if isinstance(settings, Mapping) else getattr(settings, "__dict__", {})
    try:
        return from_settings(plain)
    except (KeyError, TypeError, ValueError):
        return None


def _from_torchvision(given: Any) -> Preprocessing | None:
    """Of weights, or of the transform of some: a crop, a mean and a standard deviation."""
    try:
        transform = given.transforms() if callable(getattr(given, "transforms", None)) else given
        side = transform.crop_size
        sides = tuple(side) if isinstance(side, Sequence) else (side,)
        wanted = getattr(transform, "resize_size", None)
        to = None if not isinstance(wanted, Sequence) else tuple(int(side) for side in wanted)
        return Preprocessing(
            size=(int(sides[0]), int(sides[-1])),
            mean=_numbers(transform.mean),
            std=_numbers(transform.std),
            resizing=_resizing(getattr(transform, "interpolation", None), to[0] if to else None),
        )
    except (AttributeError, TypeError, ValueError, IndexError):
        return None


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _shown(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
