"""ImageNet-P's sequences that leave pixels in their place: noise, motion blur, snow, brightness, and the extra ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, quantise
from blemish.corruptions.draws import Field, draw_normals
from blemish.corruptions.imagenet_c import digital, noise, weather
from blemish.corruptions.imagenet_c.blur import motion_taps
from blemish.corruptions.imagenet_c.spatter import add_water
from blemish.corruptions.imagenet_p.sequence import PerturbationSequence, Scene
from blemish.corruptions.imagenet_p.settings import Settings, amount, presets
from blemish.ops.colour import luminance
from blemish.ops.filters import gaussian_blur as blur_gaussian
from blemish.ops.filters import line_blur
from blemish.ops.levels import unit_range
from blemish.ops.resample import centre_zoom


def _corrupted(corruption: Corruption, scene: Scene, values: Settings, draw: Any = ()) -> Tensor:
    result: Tensor = corruption.apply(scene.unit(), scene.params(values), draw)
    return result


def _gaussian_noise(scene: Scene, values: Settings, draw: Field, index: int) -> Tensor:
    return _corrupted(noise.gaussian_noise, scene, values, draw)


def _shot_noise(scene: Scene, values: Settings, draw: Field, index: int) -> Tensor:
    return _corrupted(noise.shot_noise, scene, values, draw)


def _speckle_noise(scene: Scene, values: Settings, draw: Field, index: int) -> Tensor:
    return _corrupted(noise.speckle_noise, scene, values, draw)


def _smeared(images: Tensor, values: Settings, degrees: float) -> Tensor:
    """Motion blur in one direction for all images."""
    radius, sigma, angle = (
        torch.tensor([v], dtype=torch.float64) for v in (values["radius"], values["sigma"], degrees)
    )
    shifts, weights = motion_taps(radius, sigma, angle)
    count, reach = len(images), 2 * math.ceil(values["radius"])
    return line_blur(images, shifts.expand(count, -1, -1), weights.expand(count, -1), reach=reach)


def _motion_blur(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    return _smeared(scene.unit(), values, amount(values, index))


def _gaussian_blur(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    sigma = scene.params({"sigma": amount(values, index)})["sigma"]
    return blur_gaussian(scene.unit(), sigma, truncate=values["truncate"])


def _brightness(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    return _corrupted(weather.brightness, scene, {"shift": amount(values, index)})


def _saturate(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    return _corrupted(digital.saturate, scene, {"scale": amount(values, index), "shift": 0.0})


def _draw_specks(shape: Shape, values: Settings, rng: CounterRng) -> Tensor:
    """Enlarged specks of snow above the threshold, uint8 (B, 1, H, W): the same in all frames."""
    field = rng.normals("field", 1, shape.height, shape.width).mul_(values["std"]).add_(values["mean"])
    specks = centre_zoom(field, values["zoom"])
    return quantise(specks * (specks >= values["threshold"]))


def _snow(scene: Scene, values: Settings, specks: Tensor, index: int) -> Tensor:
    """Specks smeared along the fall, and the same turned by half a turn, over a whitened image."""
    layer = unit_range(quantise(_smeared(unit_range(specks), values, amount(values, index))))
    images, weight = scene.unit(), values["image_weight"]
    whitened = torch.maximum(images, luminance(images).mul_(1.5).add_(0.5))
    return images.mul_(weight).add_(whitened, alpha=1 - weight).add_(layer + layer.flip(-2, -1))


def _draw_drops(shape: Shape, values: Settings, rng: CounterRng) -> Tensor:
    """The thickness of water in frame 0, 0 below the threshold, float32 (B, 1, H, W)."""
    field = rng.normals("field", 1, shape.height, shape.width)
    sigma = torch.full((len(field),), values["sigma"], dtype=torch.float64)
    thickness = blur_gaussian(field, sigma).mul(values["std"]).add_(values["mean"])
    return thickness * (thickness >= values["threshold"])


def _drag(scene: Scene, values: Settings, thickness: Tensor, index: int) -> Tensor:
    """Lets the water run down: each pixel takes shares of itself and of its neighbours above and, a little, below."""
    height = thickness.shape[-2]
    padded = F.pad(thickness, (0, 0, 2, 1))
    shares = (values["from_two_above"], values["from_above"], values["stay"], values["from_below"])
    total = torch.zeros_like(thickness)
    for start, share in enumerate(shares):
        total += padded[..., start : start + height, :] * share
    return total


def _spatter(scene: Scene, values: Settings, thickness: Tensor, index: int) -> Tensor:
    return add_water(scene.unit(), (thickness * 255).to(torch.int16), values["strength"])


gaussian_noise = PerturbationSequence(
    name="p:gaussian_noise",
    description="Faint normal noise, new in every frame.",
    presets=presets(
        sigma=(0.03, 0.05, 0.08),
        inception={"sigma": (0.035, 0.055, 0.085)},
        imagenet64={"sigma": (0.025, 0.05, 0.075)},
        cifar={"sigma": (0.02, 0.04, 0.06)},
    ),
    draw=draw_normals,
    render=_gaussian_noise,
    noise=True,
)

shot_noise = PerturbationSequence(
    name="p:shot_noise",
    description="Poisson counts of many photons, new in every frame.",
    presets=presets(
        photons=(300, 120, 60),
        inception={"photons": (250, 100, 50)},
        imagenet64={"photons": (500, 250, 125)},
        cifar={"photons": (700, 400, 200)},
    ),
    draw=draw_normals,
    render=_shot_noise,
    noise=True,
)

motion_blur = PerturbationSequence(
    name="p:motion_blur",
    description="A smear along a line that turns.",
    presets=presets(
        radius=10,
        sigma=3,
        origin=30,
        step=4,
        inception={"radius": 13},
        imagenet64={"radius": 14, "step": 5},
        cifar={"radius": 6, "sigma": 1.8, "origin": 20, "step": 9},
        lengths={"cifar": 21},
    ),
    render=_motion_blur,
)

snow = PerturbationSequence(
    name="p:snow",
    description="Snow whose direction of fall turns.",
    presets=presets(
        mean=0.05,
        std=0.3,
        zoom=3,
        threshold=0.5,
        image_weight=0.85,
        radius=14,
        sigma=4,
        base=-150,
        origin=0,
        step=4,
        imagenet64={"std": 0.28, "zoom": 2, "radius": 10, "sigma": 2.5},
        cifar={"zoom": 2, "radius": 10, "sigma": 2},
    ),
    draw=_draw_specks,
    render=_snow,
)

brightness = PerturbationSequence(
    name="p:brightness",
    description="Brightens the image, from darker than it is to brighter.",
    presets=presets(origin=15, step=0.02, cifar={"step": 0.015}),
    render=_brightness,
)

speckle_noise = PerturbationSequence(
    name="p:speckle_noise",
    description="Faint normal noise in proportion to each value, new in every frame.",
    presets=presets(
        sigma=(0.05, 0.10, 0.15), inception={"sigma": (0.06, 0.11, 0.16)}, cifar={"sigma": (0.05, 0.07, 0.10)}
    ),
    draw=draw_normals,
    render=_speckle_noise,
    noise=True,
    extra=True,
)

gaussian_blur = PerturbationSequence(
    name="p:gaussian_blur",
    description="A Gaussian blur that widens.",
    presets=presets(
        truncate=6,
        base=0.25,
        origin=0,
        step=0.035,
        inception={"base": 0.35},
        imagenet64={"truncate": 7, "base": 0.35, "step": 0.014},
        cifar={"truncate": 7, "base": 0.3, "step": 0.015},
    ),
    render=_gaussian_blur,
    extra=True,
    version=2,
)

_SMALL_DROPS = {"mean": 0.6, "std": 0.25, "sigma": 1.75, "threshold": 0.7}
_SMALL_DROPS |= {"from_two_above": 0, "from_above": 0.8, "stay": 0.2, "from_below": 0}

spatter = PerturbationSequence(
    name="p:spatter",
    description="Drops of water that run down the lens.",
    presets=presets(
        mean=0.65,
        std=0.27,
        sigma=3.7,
        threshold=0.69,
        strength=0.6,
        from_two_above=0.7,
        from_above=0.15,
        stay=0.1,
        from_below=0.05,
        inception={"std": 0.3, "sigma": 4},
        imagenet64=_SMALL_DROPS,
        cifar={**_SMALL_DROPS, "std": 0.265},
    ),
    draw=_draw_drops,
    advance=_drag,
    render=_spatter,
    extra=True,
    version=2,
)

saturate = PerturbationSequence(
    name="p:saturate",
    description="Scales colour saturation from 0.4 to 1.6. Not in the published generator; defined here.",
    presets=presets(base=1, origin=15, step=0.04),
    render=_saturate,
    source="defined here",
    extra=True,
)
