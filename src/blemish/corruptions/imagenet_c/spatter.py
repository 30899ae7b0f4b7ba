"""ImageNet-C's spatter: drops of water, or splashes of mud, on the lens."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.corruptions.base import AtOnce, Corruption, Numbers, per_image
from blemish.corruptions.draws import Field, draw_pixel_normals
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import LUMINANCE
from blemish.ops.edges import HIGH, LOW, drop_light
from blemish.ops.filters import all_near, gaussian_arrays, gaussian_blur
from blemish.ops.levels import Levels
from blemish.ops.transfer import to_device

_WATER = (175, 238, 238)
_MUD = (63, 42, 20)

# Mud thinner than this is left out.
_THIN = 0.8


def _apply(images: Tensor, params: Params, draw: Field) -> Tensor:
    # Blurring the standard normal field first, and scaling after, keeps float32 errors out of the mean.
    field = gaussian_blur(draw.field, params["sigma"])
    if bool(params["mud"][0]):
        return _mud(images, params, field)
    return add_water(images, _layer(field, params), per_image(params["strength"], images))


def add_water(images: Tensor, layer: Tensor, strength: Tensor | float) -> Tensor:
    """Add pale turquoise in proportion to the layer's thickness times a relief seen around the drops' outlines."""
    colour = _colour(_WATER, images.shape[1], images.device) * strength
    water = drop_light(layer).mul_(layer)
    # An image without a drop has a maximum of 0 and stays as it is.
    brightest = water.amax((2, 3), keepdim=True).clamp_(min=1)
    return images.addcmul_(water, colour / brightest)


def _layer(field: Tensor, params: Params) -> Tensor:
    """The liquid's thickness in 8-bit levels, 0 where it is below the threshold, as int16."""
    levels = torch.addcmul(per_image(255 * params["mean"], field), field, per_image(255 * params["std"], field))
    wet = torch.ge(levels, per_image(255 * params["threshold"], field), out=torch.empty_like(levels))
    # Beyond 255 the reference's 8-bit integers wrap around.
    return levels.mul_(wet).to(torch.int16).bitwise_and_(255)


def _mud(images: Tensor, params: Params, field: Tensor) -> Tensor:
    """Blends in brown where the layer exceeds the threshold, softened by a blur of standard deviation `strength`."""
    level = (params["threshold"] - params["mean"]) / params["std"]
    cover = torch.gt(field, per_image(level, field), out=torch.empty_like(field))
    cover = gaussian_blur(cover, params["strength"])
    cover = cover.mul_(torch.ge(cover, _THIN, out=torch.empty_like(cover)))
    return images.addcmul_(cover, _colour(_MUD, images.shape[1], images.device) - images)


def _near(params: Numbers, height: int, width: int) -> bool:
    """Whether the blurs are sums over neighbours."""
    sigma, strength, mud = (params[name].tolist() for name in ("sigma", "strength", "mud"))
    outlines = [blur for blur, is_mud in zip(strength, mud, strict=True) if is_mud > 0]
    return all_near(sigma + outlines, height, width, truncate=4.0)


def _make(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    """What `draw_pixel_normals` and `_apply` give, at once."""
    channels, height, width = levels.shape[1:]
    fields = rng.normals("field", height, width).numpy()
    weights, radii = gaussian_arrays(params["sigma"].tolist())
    blur = (fields, weights.astype(np.float32), radii)
    mean, std, threshold, strength = (params[name] for name in ("mean", "std", "threshold", "strength"))
    if params["mud"][0]:
        outlines, reaches = gaussian_arrays(strength.tolist())
        level = ((threshold - mean) / std).astype(np.float32)
        mud = _channels(_MUD, channels)
        kernels.mud(levels, out, *blur, level, outlines.astype(np.float32), reaches, np.float32(_THIN), mud)
        return
    kernels.water(levels, out, *blur, mean, std, threshold, LOW, HIGH, _channels(_WATER, channels), strength)


@lru_cache(maxsize=16)
def _channels(rgb: tuple[int, int, int], channels: int) -> NDArray[np.float32]:
    return _colour(rgb, channels, torch.device("cpu")).numpy().ravel()


@lru_cache(maxsize=16)
def _colour(rgb: tuple[int, int, int], channels: int, device: torch.device) -> Tensor:
    """A colour in [0, 1], (1, C, 1, 1): its luminance for grey images."""
    grey = sum(weight * value for weight, value in zip(LUMINANCE, rgb, strict=True))
    colour = torch.tensor(rgb if channels == 3 else [grey], dtype=torch.float32) / 255
    return to_device(colour.view(1, -1, 1, 1), device)


# Below severity 1 the drops of severity 1 fade. Above 3 ½ there is mud instead of water: `strength` interpolates like
# the rest, but means the water's opacity below and the blur of the mud's outlines (sigma in pixels) above.
spatter = Corruption(
    name="spatter",
    family="weather",
    description="Puts drops of water (severities 1 to 3) or splashes of mud (4 and 5) on the lens.",
    table=SeverityTable.by_preset(
        ("mean", "std", "sigma", "threshold", "strength", "mud"),
        imagenet=(
            (0.65, 0.3, 4, 0.69, 0, 0),
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
        inception=(
            (0.65, 0.3, 4, 0.69, 0, 0),
            (0.65, 0.3, 4, 0.69, 0.9, 0),
            (0.65, 0.3, 3.5, 0.68, 0.9, 0),
            (0.65, 0.3, 3, 0.68, 0.8, 0),
            (0.65, 0.3, 1.2, 0.65, 1.8, 1),
            (0.67, 0.4, 1.2, 0.65, 1.8, 1),
        ),
        imagenet64=(
            (0.62, 0.1, 0.7, 0.7, 0, 0),
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        cifar=(
            (0.62, 0.1, 0.7, 0.7, 0, 0),
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        rounded=("mud",),
    ),
    draw=draw_pixel_normals,
    apply=_apply,
    source=SOURCE,
    shared=("mud",),
    version=2,
    at_once=AtOnce("spatter", _make, _near),
)
