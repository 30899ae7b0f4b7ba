"""ImageNet-C's weather: snow, frost, fog and brightness."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, alike, as_planes, per_image, quantise
from blemish.corruptions.imagenet_c.blur import drawn_degrees, motion_arrays, motion_taps
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.moves import STILL
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import luminance
from blemish.ops.distinct import distinct
from blemish.ops.filters import line_blur
from blemish.ops.levels import Levels, unit_range
from blemish.ops.photographs import Photographs
from blemish.ops.plasma import plasma, plasma_noise, plasma_sizes
from blemish.ops.resample import centre_zoom, zoom_places
from blemish.ops.textures import Textures, cut, frost_textures


class Flakes(NamedTuple):
    """A standard normal field (B, 1, H, W), and the direction of the fall in degrees, (B,) on the CPU."""

    field: Tensor
    degrees: Tensor


# The longest smear in any table; see blur.py.
_SNOW_REACH = 28


def _draw_snow(shape: Shape, params: Params, rng: CounterRng) -> Flakes:
    degrees = torch.tensor(drawn_degrees(rng, -135), dtype=torch.float64)
    return Flakes(rng.normals("field", 1, shape.height, shape.width), degrees)


def _snow_layer(params: Params, draw: Flakes) -> Tensor:
    """Enlarged specks above a threshold, smeared along the fall."""
    field = draw.field
    specks = field * per_image(params["std"], field) + per_image(params["mean"], field)
    specks = centre_zoom(specks, float(params["zoom"][0]))
    specks = specks * (specks >= per_image(params["threshold"], specks))
    taps = motion_taps(params["blur_radius"], params["blur_sigma"], draw.degrees)
    return unit_range(quantise(line_blur(unit_range(quantise(specks)), *taps, reach=_SNOW_REACH)))


def _snow(images: Tensor, params: Params, draw: Flakes) -> Tensor:
    layer = _snow_layer(params, draw)
    layer = layer + layer.flip(-2, -1)
    weight = per_image(params["image_weight"], images)
    whitened = torch.maximum(images, luminance(images).mul_(1.5).add_(0.5))
    return images.mul_(weight).addcmul_(whitened, 1 - weight).add_(layer)


def _make_snow(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    field = alike(rng.normals("field", *levels.shape[2:]), levels)
    taps = motion_arrays(params["blur_radius"].tolist(), params["blur_sigma"].tolist(), drawn_degrees(rng, -135))
    settings = (params["mean"], params["std"], params["threshold"], params["image_weight"])
    zoom = zoom_places(levels.shape[2:], (float(params["zoom"][0]),))
    kernels.snow(levels, out, field, *settings, *zoom, *taps)


class Crop(NamedTuple):
    """Which texture, and where in it; three (B,) int64 tensors on the CPU."""

    texture: Tensor
    top: Tensor
    left: Tensor


# The reference draws from six textures with an exclusive upper bound of five, so that the last is never used.
_USED_TEXTURES = 5


@dataclass(frozen=True)
class _Textured:
    """A function that needs textures: an object rather than a closure, so that it can be compared and sent to workers.

    The textures are photographs, or the drawn ones where there are none.
    """

    photographs: Photographs | None

    def textures(self, params: Params | Numbers, height: int, width: int, device: torch.device) -> Textures:
        return frost_textures(self.photographs, float(params["texture_scale"][0]), height, width, device)


class _DrawFrost(_Textured):
    def __call__(self, shape: Shape, params: Params, rng: CounterRng) -> Crop:
        _, height, width = shape
        textures = self.textures(params, height, width, torch.device("cpu"))
        return Crop(*map(torch.from_numpy, _places(textures, height, width, rng.on_cpu())))


def _places(textures: Textures, height: int, width: int, rng: CounterRng) -> list[NDArray[np.int64]]:
    """What a `Crop` holds, as arrays."""
    chosen = rng.integers("texture", 1, high=_USED_TEXTURES).numpy()[:, 0]
    # In double precision, as the sizes are whole numbers.
    start = rng.uniforms("start", 2).numpy() * _room(tuple(textures.sizes), height, width)[chosen]
    return [chosen, *start.T.astype(np.int64, order="C")]


@lru_cache(maxsize=64)
def _room(sizes: tuple[tuple[int, int], ...], height: int, width: int) -> NDArray[np.int64]:
    """One row and column fewer than fit, as in the reference."""
    room: NDArray[np.int64] = np.array(sizes, dtype=np.int64)
    room -= (height, width)
    return room


class _Frost(_Textured):
    def __call__(self, images: Tensor, params: Params, draw: Crop) -> Tensor:
        height, width = images.shape[-2:]
        textures = self.textures(params, height, width, images.device)
        crops = unit_range(cut(textures, draw.texture, draw.top, draw.left, height, width))
        crops = crops if images.shape[1] == 3 else luminance(crops)
        weight = per_image(params["frost_weight"], images)
        return images.mul_(per_image(params["image_weight"], images)).addcmul_(crops, weight)


class _MakeFrost(_Textured):
    def __call__(self, kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
        height, width = levels.shape[2:]
        textures = self.textures(params, height, width, rng.device)
        places = _places(textures, height, width, rng.on_cpu())
        weights = (params["image_weight"], params["frost_weight"])
        kernels.blend(levels, out, alike(textures.sheets, levels), *places, *weights)


class Wobble(NamedTuple):
    """Uniform values in (−1, 1) for each level of the plasma map, (B, 3, n, n): see `plasma`."""

    levels: tuple[Tensor, ...]


def _draw_fog(shape: Shape, params: Params, rng: CounterRng) -> Wobble:
    sizes = plasma_sizes(1 << (max(shape.height, shape.width) - 1).bit_length())
    field = rng.symmetric_uniforms("plasma", sum(3 * n * n for n in sizes))
    parts = torch.split(field, [3 * n * n for n in sizes], dim=1)
    return Wobble(tuple(part.reshape(-1, 3, n, n) for part, n in zip(parts, sizes, strict=True)))


def _fog(images: Tensor, params: Params, draw: Wobble) -> Tensor:
    height, width = images.shape[-2:]
    thickness = per_image(params["thickness"], images)
    field = plasma(draw.levels, params["wibble_decay"])[..., :height, :width]
    brightest = images.amax((1, 2, 3), keepdim=True)
    return images.add_(field * thickness).mul_(brightest / (brightest + thickness))


def _make_fog(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    sizes = plasma_sizes(1 << (max(levels.shape[-2:]) - 1).bit_length())
    wobble = rng.symmetric_uniforms("plasma", sum(3 * n * n for n in sizes))
    known, which = distinct(params["wibble_decay"].tolist())
    noise = np.array([plasma_noise(decay, len(sizes)) for decay in known])[which]
    kernels.fog(levels, out, alike(wobble, levels), noise, params["thickness"])


def _brightness(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Raise HSV's V by `shift`: scale the pixel by clip(V + shift)/V, and turn black into gray."""
    value = images.amax(1, keepdim=True)
    target = (value + per_image(params["shift"], images)).clamp_(0, 1)
    black = value <= 0
    return images.mul_(target / (value + black)).add_(target * black)


def _make_brightness(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    kernels.brighten(as_planes(levels), as_planes(out), params["shift"])


snow = Corruption(
    name="snow",
    family="weather",
    description="Falling snow over a whitened scene.",
    table=SeverityTable.by_preset(
        ("mean", "std", "zoom", "threshold", "blur_radius", "blur_sigma", "image_weight"),
        imagenet=(
            (0.1, 0.3, 3, 1, 10, 4, 1),
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        imagenet64=(
            (0.1, 0.3, 3, 1, 10, 4, 1),
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        cifar=(
            (0.1, 0.3, 3, 1, 10, 4, 1),
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    ),
    draw=_draw_snow,
    apply=_snow,
    source=SOURCE,
    at_once=AtOnce("lines", _make_snow),
    shared=("zoom",),
)

frost = Corruption(
    name="frost",
    family="weather",
    description="Ice crystals on the window, from the reference's photographs: blemish fetch-frost gets them.",
    table=SeverityTable.by_preset(
        ("image_weight", "frost_weight", "texture_scale"),
        imagenet=((1, 0, 1), (1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
        imagenet64=((1, 0, 0.3), (1, 0.3, 0.3), (0.9, 0.4, 0.3), (0.8, 0.45, 0.3), (0.75, 0.5, 0.3), (0.7, 0.55, 0.3)),
        cifar=((1, 0, 0.2), (1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
    ),
    draw=_DrawFrost(Photographs()),
    apply=_Frost(Photographs()),
    moves=STILL,
    source=SOURCE,
    files=Photographs(),
    at_once=AtOnce("colours", _MakeFrost(Photographs()), draws_little=True),
)


def frost_from(folder: str | os.PathLike[str]) -> Corruption:
    """Frost with the five photographs in a folder: frost1.png to frost3.png, frost4.jpg and frost5.jpg.

    Protocols name photographs that are not the reference's by their digest.
    """
    mine = Photographs.of(folder)
    made = AtOnce("colours", _MakeFrost(mine), draws_little=True)
    return replace(frost, draw=_DrawFrost(mine), apply=_Frost(mine), files=mine, at_once=made)


frost_drawn = Corruption(
    name="frost_drawn",
    family="weather",
    description="Ice crystals on the window, drawn here: like frost without its photographs, but not comparable.",
    table=frost.table,
    draw=_DrawFrost(None),
    apply=_Frost(None),
    source="defined here, after frost",
    stream="frost",
    variant_of="frost",
    version=2,
    at_once=AtOnce("colours", _MakeFrost(None), draws_little=True),
)

fog = Corruption(
    name="fog",
    family="weather",
    description="Uneven fog, a diamond-square cloud.",
    table=SeverityTable.by_preset(
        ("thickness", "wibble_decay"),
        imagenet=((0, 2), (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
        inception=((0, 2), (1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
        imagenet64=((0, 2), (0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        cifar=((0, 2), (0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    ),
    draw=_draw_fog,
    apply=_fog,
    source=SOURCE,
    at_once=AtOnce("clouds", _make_fog),
)

brightness = Corruption(
    name="brightness",
    family="weather",
    description="Overexposure: raises every pixel's brightness.",
    table=SeverityTable.by_preset(
        ("shift",), imagenet=(0, 0.1, 0.2, 0.3, 0.4, 0.5), cifar=(0, 0.05, 0.1, 0.15, 0.2, 0.3)
    ),
    apply=_brightness,
    source=SOURCE,
    at_once=AtOnce("colours", _make_brightness, draws_little=True),
)
