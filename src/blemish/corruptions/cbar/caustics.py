"""The light at the bottom of moving water, which C̄ adds, or looks through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.published import pixel_axes, uniform
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.series import power_of_fifth, sine_and_cosine


class Water(NamedTuple):
    """When one looks, and the size of the pattern in pixels; float64 (B, 1, 1)."""

    time: Tensor
    size: Tensor


_LOOPS = 5
_FAR = 250  # the pattern is a window of the plane so far from its origin
_TURN = 6.28318530718  # the reference's 2π
_FOCUS = 0.005


def draw_water(shape: Shape, params: Params, rng: CounterRng) -> Water:
    """Anywhere between half a unit of time and two."""
    size = uniform(rng, "size", 0.75, 1.25, 1, 1) * min(shape.height, shape.width)
    return Water(uniform(rng, "time", 0.5, 2, 1, 1), size)


def caustics(images: Tensor, draw: Water) -> Tensor:
    """The pattern, in 0 … 1, (B, H, W): waves that bend one another.

    In each loop a point lies at most 2 from where it began, so that few terms of a series give the sine and cosine of
    its place from those of where it began.
    """
    moments = torch.cat([draw.time * (1 - 3.5 / (loop + 1)) for loop in range(_LOOPS)], dim=2)[:, 0]
    moments = torch.stack([moments.cos(), moments.sin()], dim=1)
    rows, columns = (_along(axis / draw.size) for axis in pixel_axes(images))
    if images.device.type != "cpu":
        return _pattern(moments, rows, columns)
    kernels = compiled("water")
    if kernels is not None:
        out = torch.empty(len(images), *images.shape[-2:], dtype=torch.float64)
        shared_out(kernels.caustics, [moments, rows, columns, out])
        return out
    # One image after the other, while its planes are in the processor's cache.
    alone = [slice(image, image + 1) for image in range(len(images))]
    return torch.cat([_pattern(moments[own], rows[own], columns[own]) for own in alone])


def _along(places: Tensor) -> Tensor:
    """Of the places of rows or columns in the pattern: the sine, the cosine and the square of the slope, (B, 3, n)."""
    start = places.flatten(1).remainder_(1).mul_(_TURN).sub_(_FAR)
    return torch.stack([start.sin(), start.cos(), (_FOCUS * start).square_()], dim=1)


def _pattern(moments: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """From cosines and sines of the moments (B, 2, loops), and what `_along` says of rows and columns."""
    start_row, slope = rows[:, :2, :, None].unbind(1), rows[:, 2, :, None]
    start_column, steep = columns[:, :2, None].unbind(1), columns[:, 2, None]
    row, column = start_row, start_column
    light = torch.ones_like(moments[:, :1, :1])
    for moment in moments[..., None, None].unbind(2):
        near, aside = moment.unbind(1)
        (row_sine, row_cosine), (column_sine, column_cosine) = row, column
        down = (row_cosine + column_sine) * near + (row_sine + column_cosine) * aside
        right = (row_cosine - column_sine) * near + (column_cosine - row_sine) * aside
        row, column = _moved(start_row, down), _moved(start_column, right)
        sine = row[0] * near + row[1] * aside
        cosine = column[1] * near - column[0] * aside
        light = light + (sine * cosine).abs_() * (cosine.square_() * slope + sine.square_() * steep).rsqrt_()
    return (1.17 - power_of_fifth(light)).square_().square_().square_().clamp_(max=1)


def _moved(start: Sequence[Tensor], offset: Tensor) -> tuple[Tensor, Tensor]:
    """The sine and cosine of a place after a move of at most 2."""
    sine, cosine = sine_and_cosine(offset)
    return start[0] * cosine + start[1] * sine, start[1] * cosine - start[0] * sine
