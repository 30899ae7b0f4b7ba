"""How pictures are brought to the size of a model's input, as the libraries that models come from do it.

They resize 8-bit pictures with Pillow, and so do these functions, level by level, on any device. Values that are no
levels (pictures on their way through a study) are resized by the same filters without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.ops import pillow

Interpolation = Literal["nearest", "bilinear", "bicubic"]
Middle = Literal["down", "even"]


@dataclass(frozen=True)
class Resizing:
    """What becomes of pictures that do not have the size of a model's input.

    Those of another shape are first brought ``to`` a size, (height, width) or that of the shorter side, and their
    middle is cut out; without it they are pressed into shape. Those of the same shape are not cut: the pictures of a
    benchmark were, before they were corrupted, and a second cut would take more of them away. ``middle`` says where
    half a pixel goes: ``down``, or to the ``even`` one of both places.
    """

    interpolation: Interpolation = "bilinear"
    to: int | tuple[int, int] | None = None
    middle: Middle = "even"

    def __post_init__(self) -> None:
        """Refuse settings that nobody means."""
        for setting, value, known in (
            ("interpolation", self.interpolation, Interpolation),
            ("middle", self.middle, Middle),
        ):
            if value not in get_args(known):
                raise InputError(f"{setting} {value!r}; expected {', '.join(get_args(known))}")

    def __call__(self, pictures: Tensor, size: tuple[int, int]) -> Tensor:
        """(B, C, H, W), uint8 or floats, at this size."""
        height, width = pictures.shape[-2:]
        if (height, width) == size:
            return pictures
        if self.to is None or height * size[1] == width * size[0]:
            return _resized(pictures, self.interpolation, size)
        larger = self.to if isinstance(self.to, tuple) else _shorter_side(height, width, self.to)
        if larger[0] < size[0] or larger[1] < size[1]:
            raise InputError(
                f"pictures of {height}×{width} pixels are brought to {larger[0]}×{larger[1]}, of which "
                f"{size[0]}×{size[1]} cannot be cut"
            )
        made = _resized(pictures, self.interpolation, larger)
        top, left = (self._start(have - want) for have, want in zip(larger, size, strict=True))
        return made[..., top : top + size[0], left : left + size[1]]

    def for_size(self, size: tuple[int, int]) -> Resizing:
        """The same for an input of another size: what is cut is as much of a picture as can be."""
        return replace(self, to=max(size) if isinstance(self.to, int) else None)

    def _start(self, spare: int) -> int:
        return spare // 2 if self.middle == "down" else round(spare / 2)


def _shorter_side(height: int, width: int, side: int) -> tuple[int, int]:
    shorter = min(height, width)
    return side * height // shorter, side * width // shorter


def _resized(pictures: Tensor, interpolation: Interpolation, size: tuple[int, int]) -> Tensor:
    if interpolation == "nearest":
        rows, columns = (
            _nearest(have, want, pictures.device) for have, want in zip(pictures.shape[-2:], size, strict=True)
        )
        return pictures.index_select(-2, rows).index_select(-1, columns)
    if pictures.dtype == torch.uint8:
        return pillow.resized(pictures, *size, interpolation)
    return functional.interpolate(pictures, size=size, mode=interpolation, align_corners=False, antialias=True)


def _nearest(length: int, wanted: int, device: torch.device) -> Tensor:
    """The pixel below the centre of each wanted one; Pillow adds up steps, which decides where a centre is an edge."""
    steps = np.full(wanted, length / wanted)
    steps[0] /= 2
    return torch.from_numpy(np.cumsum(steps).astype(np.int64)).to(device)
