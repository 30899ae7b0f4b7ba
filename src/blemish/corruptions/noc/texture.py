"""ImageNet-NOC's losses of detail: quantization, two noises, blur, thumbnail resize and pixelate."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.corruptions.base import AtOnce, Corruption, Numbers, as_planes, per_image, side_scale
from blemish.corruptions.draws import Field, add_noise, by_level, draw_normals, draw_pixel_uniforms, make_noise
from blemish.corruptions.noc.published import FIGURE_5, unit
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.cache import cached
from blemish.ops.linear import LinearMap
from blemish.ops.resample import enlarged
from blemish.ops.transfer import to_device

_BLUR_PASSES = 5

# The numbers of levels of the published range.
_MOST_LEVELS, _FEWEST_LEVELS = 9, 4

# The variance of a row of three equal weights: the spread of one pass of the blur, in published pixels.
_BLUR_VARIANCE = 2 / 3


def _whole_levels(levels: Tensor) -> Tensor:
    """Whole numbers of levels; each of the published ones has an equal share of the range, as one drawn by lot has."""
    kinds = _MOST_LEVELS - _FEWEST_LEVELS + 1
    passed = ((_MOST_LEVELS - levels) * kinds / (kinds - 1)).floor().clamp(max=kinds - 1)
    return torch.where(levels < _MOST_LEVELS, _MOST_LEVELS - passed, levels.round())


def _quantization(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    steps = per_image(_whole_levels(params["levels"]) - 1, images)
    return images.mul_(steps).round_().div_(steps)


def _salt_pepper(images: Tensor, params: Params, draw: Field) -> Tensor:
    """The lowest ranks become white, the highest black; whole pixels, as the paper counts them."""
    half = per_image(params["amount"] / 2, images)
    # A whole range up or down ends beyond the extremes, where the result is clipped to them.
    return images.add_(draw.field < half).add_(draw.field > 1 - half, alpha=-1)


def _make_salt_pepper(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    """Of the ranks (r + ½)/2¹⁶ those with r below a whole number are white, and those from another one on black."""
    half = (params["amount"] / 2).astype(np.float32)
    white = np.ceil(half.astype(np.float64) * 2.0**16 - 0.5).astype(np.int32)
    # What is not above the bound is no pepper.
    black = (np.floor((np.float32(1) - half).astype(np.float64) * 2.0**16 - 0.5) + 1).astype(np.int32)
    kernels.salt_and_pepper(as_planes(levels), as_planes(out), rng.keys("field"), white, black)


def _spreading_weights(variance: float) -> Tensor:
    """Equal weights, but for the outermost two, that sum to 1 and have the given variance."""
    reach = int(((1 + 12 * variance + 1e-9) ** 0.5 - 1) / 2)
    squares = reach * (reach + 1) * (2 * reach + 1) / 3
    edge = (variance * (2 * reach + 1) - squares) / (2 * ((reach + 1) ** 2 - variance))
    weights = torch.ones(2 * reach + 3, dtype=torch.float64)
    weights[0] = weights[-1] = max(edge, 0.0)
    return weights / weights.sum()


@cached()
def _blur_map(size: int, scale: float, device: torch.device) -> LinearMap:
    """All passes of the blur along a side of this size; before each of them zeros stand beyond the border."""
    weights = _spreading_weights(_BLUR_VARIANCE * scale**2)
    reach = len(weights) // 2
    bands = torch.zeros(size, size + 2 * reach, dtype=torch.float64)
    for row in range(size):
        bands[row, row : row + len(weights)] = weights
    one_pass = bands[:, reach : reach + size]
    return LinearMap.of(torch.linalg.matrix_power(one_pass, _BLUR_PASSES)[None, None], device, torch.float32)


def _blur(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    height, width = images.shape[-2:]
    scale = side_scale(height, width)
    down, across = (_blur_map(size, scale, images.device) for size in (height, width))
    weight = per_image(params["weight"], images)
    blurred = across.across(down.down(images))
    return images.mul_(1 - weight).add_(blurred.mul_(weight))


def _thumbnail(images: Tensor, height: int, width: int) -> Tensor:
    """Shrunk with a triangular filter as wide as the reduction asks for, and enlarged again."""
    small = F.interpolate(images, size=(height, width), mode="bilinear", antialias=True)
    return enlarged(small, *images.shape[-2:])


def _thumbnail_resize(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    height, width = images.shape[-2:]
    sizes: dict[tuple[int, int], list[int]] = {}
    for i, factor in enumerate(params["factor"].tolist()):
        sizes.setdefault((max(1, round(height / factor)), max(1, round(width / factor))), []).append(i)
    if len(sizes) == 1:
        return _thumbnail(images, *next(iter(sizes)))
    for size, members in sizes.items():
        rows = to_device(torch.tensor(members), images.device)
        images.index_copy_(0, rows, _thumbnail(images.index_select(0, rows), *size))
    return images


def _blocks(count: int, size: Tensor) -> Tensor:
    """For `count` pixels in blocks of size[b], the number of each one's block, (B, count)."""
    return ((torch.arange(count, dtype=torch.float64) + 0.5) / size[:, None]).floor()


def _block_means(count: int, size: Tensor, device: torch.device) -> Tensor:
    """The matrices (B, 1, count, count) that average over the blocks."""
    block = to_device(_blocks(count, size), device, torch.float32)
    same = (block[:, :, None] == block[:, None, :]).to(torch.float32)
    return (same / same.sum(-1, keepdim=True))[:, None]


def _pixelate(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Blocks of one pixel would be no corruption at any image size: it is the further ones that scale with it."""
    height, width = images.shape[-2:]
    size = _block_sizes(params["size"], height, width)
    down, across = (_block_means(count, size, images.device) for count in (height, width))
    return down @ images @ across


def _block_sizes(published: Tensor, height: int, width: int) -> Tensor:
    return 1 + (published - 1) * side_scale(height, width)


def _extents(blocks: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each pixel of rows (B, n) the first pixel of its block, and the first behind it."""
    count = blocks.shape[1]
    new = np.ones((len(blocks), count + 1), bool)
    new[:, 1:-1] = blocks[:, 1:] != blocks[:, :-1]
    pixel = np.arange(count + 1)
    first = np.maximum.accumulate(np.where(new, pixel, 0)[:, :-1], axis=1)
    behind = np.minimum.accumulate(np.where(new, pixel, count)[:, :0:-1], axis=1)[:, ::-1]
    return first, behind


def _make_pixelate(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    """In whole numbers: a mean that is no whole level is far enough from one for its fraction not to matter."""
    sides = levels.shape[-2:]
    size = _block_sizes(torch.from_numpy(params["size"]), *sides)
    kernels.block_means(levels, out, *(_extents(_blocks(count, size).numpy()) for count in sides))


TEXTURE: tuple[Corruption, ...] = (
    unit(
        name="noc:quantization",
        description="Rounds values to a few evenly spaced levels.",
        table=SeverityTable.between(levels=(256, _MOST_LEVELS, _FEWEST_LEVELS)),
        apply=_quantization,
        source=FIGURE_5,
        version=2,
        at_once=by_level(_quantization),
    ),
    unit(
        name="noc:gaussian_noise",
        description="Adds normal noise to every value.",
        table=SeverityTable.between(sigma=(0, 0.05, 0.18)),
        draw=draw_normals,
        apply=add_noise,
        at_once=AtOnce("noise", make_noise, draws_little=True),
        source=FIGURE_5,
    ),
    unit(
        name="noc:salt_pepper",
        description="Turns random pixels black or white.",
        table=SeverityTable.between(amount=(0, 0.003, 0.032)),
        draw=draw_pixel_uniforms,
        apply=_salt_pepper,
        at_once=AtOnce("noise", _make_salt_pepper),
        source=FIGURE_5,
        version=2,
    ),
    unit(
        name="noc:blur",
        description="Mixes the image with a blurred copy.",
        table=SeverityTable.between(weight=(0, 0.4, 0.95)),
        apply=_blur,
        source=FIGURE_5,
        version=2,
    ),
    unit(
        name="noc:thumbnail_resize",
        description="Shrinks the image and enlarges it again, both smoothly.",
        table=SeverityTable.between(factor=(1, 1.1, 3.25)),
        apply=_thumbnail_resize,
        source=FIGURE_5,
        version=2,
    ),
    unit(
        name="noc:pixelate",
        description="Gives blocks of pixels their mean.",
        table=SeverityTable.between(size=(1, 2, 4)),
        apply=_pixelate,
        at_once=AtOnce("blocks", _make_pixelate),
        source=FIGURE_5,
    ),
)
