"""What an image processor of transformers does to pictures, read from its settings and checked against what it does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from blemish.core.errors import InputError, first_line
from blemish.models.base import Preprocessing
from blemish.models.own_preprocessing import from_settings
from blemish.models.resizing import Interpolation, Resizing

# Pillow's numbers of the filters.
_FILTERS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
_KNOWN = ", ".join(f"{name} ({number})" for number, name in _FILTERS.items())

# ConvNeXt's processor presses pictures into shape from this size on, and cuts below it.
_PRESSED_FROM = 384

# Levels by which single values may differ: processors that use torch resize with other rounding than Pillow.
_LEVELS = 2.5

# The shape is that of no model's input, so that the picture is resized and cut; its levels leave room for overshoot,
# which is cut off in the order of columns and rows that a version of Pillow prefers.
_PICTURE = (211, 283)
_DARKEST, _BRIGHTEST = 64, 192


def processor_preprocessing(model: str, processor: Any) -> Preprocessing:
    """The preprocessing of a processor; one that does something else than its settings say is refused.

    Settings mean other things in other processors, so every reading is tried out on a picture.
    """
    number = _filter(processor)
    problem = "nothing of it is known" if number in _FILTERS else f"Pillow's filter {number}, which is none of {_KNOWN}"
    for reading in _readings(processor):
        difference = _difference(model, processor, reading)
        if difference <= _LEVELS:
            return reading
        problem = f"values differ by up to {difference:.0f} levels from what its settings say"
        if math.isinf(difference):
            problem = "they get another size than its settings say"
    raise InputError(
        f"{model}: its {type(processor).__name__} prepares pictures in a way that blemish does not know ({problem}); "
        "write a function that makes the model with its preprocessing, and give python:package.module:function"
    )


def _readings(processor: Any) -> Iterator[Preprocessing]:
    """What the settings can mean, the most usual first."""
    own = getattr(processor, "data_config", None)
    if isinstance(own, Mapping):
        yield from_settings(own)
        return
    normal = _normalisation(processor)
    for size, to in _sizes(processor):
        name = _FILTERS.get(_filter(processor))
        if name is not None:
            resizing = Resizing(cast(Interpolation, name), to, middle="down")
            yield replace(normal, size=size, resizing=resizing)


def _filter(processor: Any) -> int:
    return _number(getattr(processor, "resample", None), 2)


def _normalisation(processor: Any) -> Preprocessing:
    """Mean and standard deviation where white is 1, whatever the processor's own scale is."""
    rescaled = getattr(processor, "do_rescale", True)
    white = 255 * float(getattr(processor, "rescale_factor", None) or 1 / 255) if rescaled else 255.0
    mean, std = [0.0], [1.0]
    if getattr(processor, "do_normalize", False):
        mean, std = (_listed(getattr(processor, name)) for name in ("image_mean", "image_std"))
    if getattr(processor, "rescale_offset", False):  # EfficientNet's: less 1 after rescaling
        mean = [value + 1 for value in mean]
    if getattr(processor, "include_top", False):  # and divided a second time
        std = [value * value for value in std]
    flipped = getattr(processor, "do_flip_channel_order", False)
    return Preprocessing(
        mean=tuple(_scaled(value, white) for value in mean),
        std=tuple(_scaled(value, white) for value in std),
        channels="bgr" if flipped else "rgb",
    )


def _scaled(value: float, white: float) -> float:
    return value if abs(white - 1) < 1e-9 else value / white


def _sizes(processor: Any) -> Iterator[tuple[tuple[int, int], int | tuple[int, int] | None]]:
    """The size of the input, and what pictures are brought to before it is cut out of them."""
    crop = _sides(getattr(processor, "crop_size", None)) if getattr(processor, "do_center_crop", False) else None
    size = getattr(processor, "size", None)
    both, shorter = _sides(size), _entry(size, "shortest_edge")
    if not getattr(processor, "do_resize", True):
        both, shorter = None, None
    if both is not None:
        yield (both, None) if crop is None else (crop, both)
    elif shorter is not None and crop is not None:
        yield crop, shorter
        yield crop, int(256 / 224 * shorter)  # LeViT's own
    elif shorter is not None:
        part = getattr(processor, "crop_pct", None)
        if part and shorter < _PRESSED_FROM:
            yield (shorter, shorter), int(shorter / part)
        yield (shorter, shorter), None
    elif crop is not None:
        yield crop, None


def _difference(model: str, processor: Any, reading: Preprocessing) -> float:
    """The largest difference between a processor's values and those of a reading, in levels of 8 bits."""
    generator = np.random.Generator(np.random.PCG64(0))
    picture = generator.integers(_DARKEST, _BRIGHTEST, (*_PICTURE, 3), dtype=np.uint8)
    try:
        theirs = processor(images=picture, return_tensors="pt")["pixel_values"].to("cpu", torch.float32)
    except Exception as error:  # it is code of others, which may want anything
        raise InputError(f"{model}: its {type(processor).__name__} takes no picture ({first_line(error)})") from error
    try:
        ours = reading(torch.from_numpy(picture).permute(2, 0, 1)[None].contiguous())
    except InputError:
        return float("inf")
    if ours.shape != theirs.shape:
        return float("inf")
    levels = (ours - theirs) * torch.tensor(reading.std).view(1, -1, 1, 1) * 255
    return float(levels.abs().max())


def _sides(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return size, size
    height, width = _entry(size, "height"), _entry(size, "width")
    return None if height is None or width is None else (height, width)


def _entry(size: Any, name: str) -> int | None:
    """An entry of a size, which is a dictionary or, in newer versions, an object."""
    value = size.get(name) if isinstance(size, Mapping) else getattr(size, name, None)
    return None if value is None else int(value)


def _number(value: Any, default: int) -> int:
    return default if value is None else int(value)


def _listed(values: Any) -> list[float]:
    return [float(value) for value in values] if isinstance(values, list | tuple) else [float(values)]
