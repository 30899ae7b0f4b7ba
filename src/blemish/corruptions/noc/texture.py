"""ImageNet-NOC's losses of detail: quantization, two noises, blur, thumbnail resize and pixelate."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.noc.ranges import side_scale, table
from blemish.corruptions.severity import Params
from blemish.ops.cache import cached
from blemish.ops.filters import border_index
from blemish.ops.linear import LinearMap
from blemish.ops.resample import enlarged
from blemish.ops.transfer import to_device

__all__ = ["blur", "gaussian_noise", "pixelate", "quantization", "salt_pepper", "thumbnail_resize"]

_BLUR_PASSES = 5

# The variance of a row of three equal weights: the spread of one pass of the blur, in published pixels.
_BLUR_VARIANCE = 2 / 3


def _quantization(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    steps = per_image(params["levels"] - 1, images)
    return images.mul_(steps).round_().div_(steps)


class Normals(NamedTuple):
    """A standard normal value per image value, (B, C, H, W)."""

    field: Tensor


def _draw_normals(shape: Shape, params: Params, words: CounterRng) -> Normals:
    return Normals(words.normals("field", *shape))


def _gaussian_noise(images: Tensor, params: Params, draw: Normals) -> Tensor:
    return images.addcmul_(draw.field, per_image(params["sigma"], images))


class Ranks(NamedTuple):
    """A uniform value in (0, 1) per pixel, (B, 1, H, W)."""

    field: Tensor


def _draw_ranks(shape: Shape, params: Params, words: CounterRng) -> Ranks:
    # One rank for all channels: the paper counts pixels.
    return Ranks(words.coarse_uniforms("field", 1, shape.height, shape.width))


def _salt_pepper(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """The lowest ranks become white, the highest black."""
    half = per_image(params["amount"] / 2, images)
    # A whole range up or down ends beyond the extremes, where the result is clipped to them.
    return images.add_(draw.field < half).add_(draw.field > 1 - half, alpha=-1)


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
    """All passes of the blur along a side of this size, the border's mirror image folded in."""
    weights = _spreading_weights(_BLUR_VARIANCE * scale**2)
    kernel = weights
    for _ in range(_BLUR_PASSES - 1):
        padded = F.pad(kernel, (len(weights) - 1, len(weights) - 1))
        kernel = padded.unfold(0, len(weights), 1) @ weights
    reach = len(kernel) // 2
    rows = torch.zeros(size, size + 2 * reach, dtype=torch.float64)
    for row in range(size):
        rows[row, row : row + len(kernel)] = kernel
    fold = F.one_hot(border_index(-reach, size + reach, size, "reflect"), size).to(torch.float64)
    return LinearMap.of((rows @ fold)[None, None], device, torch.float32)


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


def _block_means(count: int, size: Tensor, device: torch.device) -> Tensor:
    """For `count` pixels in blocks of size[b], the matrices (B, 1, count, count) that average over the blocks."""
    block = ((torch.arange(count, dtype=torch.float64) + 0.5) / size[:, None]).floor()
    block = to_device(block, device, torch.float32)
    same = (block[:, :, None] == block[:, None, :]).to(torch.float32)
    return (same / same.sum(-1, keepdim=True))[:, None]


def _pixelate(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Blocks of one pixel would be no corruption at any image size: it is the further ones that scale with it."""
    height, width = images.shape[-2:]
    size = 1 + (params["size"] - 1) * side_scale(height, width)
    down, across = (_block_means(count, size, images.device) for count in (height, width))
    return down @ images @ across


quantization = Corruption(
    name="noc:quantization",
    family="noc",
    description="Rounds values to a few evenly spaced levels.",
    table=table("quantization"),
    apply=_quantization,
)

gaussian_noise = Corruption(
    name="noc:gaussian_noise",
    family="noc",
    description="Adds normal noise to every value.",
    table=table("gaussian_noise"),
    draw=_draw_normals,
    apply=_gaussian_noise,
)

salt_pepper = Corruption(
    name="noc:salt_pepper",
    family="noc",
    description="Turns random pixels black or white.",
    table=table("salt_pepper"),
    draw=_draw_ranks,
    apply=_salt_pepper,
    version=2,
)

blur = Corruption(
    name="noc:blur",
    family="noc",
    description="Mixes the image with a blurred copy.",
    table=table("blur"),
    apply=_blur,
)

thumbnail_resize = Corruption(
    name="noc:thumbnail_resize",
    family="noc",
    description="Shrinks the image and enlarges it again, both smoothly.",
    table=table("thumbnail_resize"),
    apply=_thumbnail_resize,
    version=2,
)

pixelate = Corruption(
    name="noc:pixelate",
    family="noc",
    description="Gives blocks of pixels their mean.",
    table=table("pixelate"),
    apply=_pixelate,
)
