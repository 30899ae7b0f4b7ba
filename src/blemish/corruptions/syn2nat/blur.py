"""Syn2Nat's candidates that lose detail: blurs, compression and a lower resolution.

Kernels are those of OpenCV, which mirrors at the border without repeating the edge (the median repeats it). Their sizes
are for 224 pixels and grow with the image.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import HALF_LEVEL, unit
from blemish.ops.box import box_blur
from blemish.ops.filters import gaussian_blur as blur_gaussian
from blemish.ops.filters import line_blur, pad
from blemish.ops.jpeg import jpeg_round_trip
from blemish.ops.rank import median_filter
from blemish.ops.transfer import to_device

# Kernels at severity 5 on 224 pixels: sides of 5, 7 and 9; of 9 … 13, even ones rounded up, for which OpenCV's sigma is
# 0.15 · side + 0.35; of 5 … 11; and of 11 … 17.
_BOX_RADII = (2.0, 3.0, 4.0)
_GAUSSIAN_SIGMAS = tuple(0.15 * side + 0.35 for side in (9, 11, 11, 13, 13))
_MEDIAN_RADII = (2.0, 3.0, 4.0, 5.0)
_MOTION_SIDES = (11, 13, 15, 17)

# OpenCV cuts its Gaussians at 4, 5 and 6 pixels; this cut gives the same, and serves every size.
_GAUSSIAN_CUT = 2.5

# Many means along a line end in exactly one half; a GPU's transform may miss it by less than this part of a level.
_TIE = 0.01 / 255


class Kernel(NamedTuple):
    """The radius of a kernel, or its standard deviation, in pixels, (B,) float64 on the CPU."""

    size: Tensor


def _draw_kernel(sizes: tuple[float, ...], shape: Shape, params: Params, rng: CounterRng) -> Kernel:
    """One of the sizes, which shrinks with severity and grows with the image."""
    chosen = rng.on_cpu().integers("side", 1, high=len(sizes))[:, 0]
    size = torch.tensor(sizes, dtype=torch.float64)[chosen] * params["size"]
    return Kernel(size * side_scale(shape.height, shape.width))


def _blur(images: Tensor, params: Params, draw: Kernel) -> Tensor:
    largest = max(_BOX_RADII) * side_scale(*images.shape[-2:])
    return box_blur(images, draw.size, largest=largest).add_(HALF_LEVEL)


def _gaussian(images: Tensor, params: Params, draw: Kernel) -> Tensor:
    return blur_gaussian(images, draw.size, truncate=_GAUSSIAN_CUT, border="reflect101").add_(HALF_LEVEL)


def _median(levels: Tensor, params: Params, draw: Kernel) -> Tensor:
    radii = draw.size.round().to(torch.int64)
    out = levels.clone()
    for radius in set(radii.tolist()):
        members = to_device((radii == radius).nonzero()[:, 0], levels.device)
        out[members] = median_filter(levels[members], radius)
    return out


class Line(NamedTuple):
    """Both ends of a line from the kernel's centre, in pixels down and right, (B, 2, 2) float64 on the CPU."""

    ends: Tensor


def _draw_motion(shape: Shape, params: Params, rng: CounterRng) -> Line:
    """Two different places of a square kernel."""
    rng = rng.on_cpu()
    chosen = rng.integers("side", 1, high=len(_MOTION_SIDES))[:, 0]
    side = torch.tensor(_MOTION_SIDES, dtype=torch.float64)[chosen][:, None]
    ranks = rng.uniforms("ends", 5).to(torch.float64)
    top, left, bottom, right = (ranks[:, :4] * side).floor().unbind(1)
    # In one column the rows must differ: another of the side − 1 others.
    other = (top + 1 + (ranks[:, 4] * (side[:, 0] - 1)).floor()) % side[:, 0]
    bottom = torch.where(left == right, other, bottom)
    ends = torch.stack([top, left, bottom, right], dim=1).sub_((side - 1) / 2).view(-1, 2, 2)
    return Line(ends * params["size"].view(-1, 1, 1) * side_scale(shape.height, shape.width))


def _motion(images: Tensor, params: Params, draw: Line) -> Tensor:
    """The mean along a line one pixel wide; as it need not pass the centre, the image moves as well."""
    height, width = images.shape[-2:]
    reach = math.ceil((max(_MOTION_SIDES) - 1) / 2 * side_scale(height, width))
    start, end = draw.ends.round()[:, None].unbind(2)
    length = (end - start).abs().amax(2, keepdim=True)
    step = torch.arange(2 * reach + 1, dtype=torch.float64)[:, None]
    on_line = step <= length
    shifts = torch.where(on_line, start + (end - start) * step / length.clamp(min=1), 0).add_(0.5).floor_()
    weights = on_line[..., 0] / (length[..., 0] + 1)
    padded = pad(images, reach, reach, reach, reach, "reflect101")
    blurred = line_blur(padded, shifts.to(torch.int64), weights, reach=reach)
    return blurred[..., reach : reach + height, reach : reach + width].add(HALF_LEVEL + _TIE)


class Quality(NamedTuple):
    """JPEG quality, whole numbers in 1 … 100, (B,) float64 on the CPU."""

    quality: Tensor


def _draw_quality(shape: Shape, params: Params, rng: CounterRng) -> Quality:
    """A whole number between the two bounds, each as likely."""
    low, high = params["quality_low"].round(), params["quality_high"].round()
    rank = rng.on_cpu().uniforms("quality", 1)[:, 0].to(torch.float64)
    return Quality(low + (rank * (high - low + 1)).floor())


def _jpeg(levels: Tensor, params: Params, draw: Quality) -> Tensor:
    """Red and blue change places on the way into the codec and out of it, as the original hands RGB to OpenCV."""
    return jpeg_round_trip(levels.flip(1), draw.quality).flip(1)


def _source(size: int, scale: float) -> Tensor:
    """The pixel each pixel comes from after choosing the nearest twice, by OpenCV's rule, which rounds down."""
    small = max(1, round(size * scale))
    index = (torch.arange(size, dtype=torch.float64) * (small / size)).floor()
    return (index / scale).floor().clamp(max=size - 1).to(torch.int64)


def _downscale(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    height, width = levels.shape[-2:]
    scale = float(params["scale"][0])
    rows, columns = (to_device(_source(size, scale), levels.device) for size in (height, width))
    return levels.index_select(-2, rows).index_select(-1, columns)


BLURS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:blur",
        description="The mean over a square of 5, 7 or 9 of 224 pixels; lower severities have smaller squares.",
        table=SeverityTable.linear(size=(0, 1)),
        draw=partial(_draw_kernel, _BOX_RADII),
        apply=_blur,
    ),
    unit(
        name="syn2nat:gaussian_blur",
        description="A Gaussian kernel of 9, 11 or 13 of 224 pixels (sigma 1.7, 2 or 2.3); "
        "lower severities have smaller ones.",
        table=SeverityTable.linear(size=(0, 1)),
        draw=partial(_draw_kernel, _GAUSSIAN_SIGMAS),
        apply=_gaussian,
        version=2,
    ),
    unit(
        name="syn2nat:median_blur",
        description="The median over a square of 5, 7, 9 or 11 of 224 pixels; lower severities have smaller squares.",
        table=SeverityTable.linear(size=(0, 1)),
        draw=partial(_draw_kernel, _MEDIAN_RADII),
        apply=_median,
        uint8_io=True,
    ),
    unit(
        name="syn2nat:motion_blur",
        description="The mean along a random line in a square of 11 to 17 of 224 pixels; "
        "lower severities have shorter lines.",
        table=SeverityTable.linear(size=(0, 1)),
        draw=_draw_motion,
        apply=_motion,
        moves=A_LITTLE,
    ),
    unit(
        name="syn2nat:image_compression",
        description="JPEG compression at quality 5–15; "
        "lower severities approach quality 100. The same law as jpeg_compression.",
        table=SeverityTable.linear(quality_low=(100, 5), quality_high=(100, 15)),
        draw=_draw_quality,
        apply=_jpeg,
        uint8_io=True,
    ),
    unit(
        name="syn2nat:jpeg_compression",
        description="JPEG compression at quality 5–15; lower severities approach quality 100.",
        table=SeverityTable.linear(quality_low=(100, 5), quality_high=(100, 15)),
        draw=_draw_quality,
        apply=_jpeg,
        uint8_io=True,
    ),
    unit(
        name="syn2nat:downscale",
        description="Shrinks the image to 45 % and enlarges it again, without smoothing; lower severities shrink less.",
        table=SeverityTable.linear(scale=(1, 0.45)),
        apply=_downscale,
        moves=A_LITTLE,
        shared=("scale",),
        uint8_io=True,
    ),
)
