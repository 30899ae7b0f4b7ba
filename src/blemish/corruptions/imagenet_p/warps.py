"""ImageNet-P's geometric sequences: translate, rotate, tilt, scale, shear, and the zooms that zoom blur averages.

All are rendered from the whole image and cropped last. The fixed point is (w/2, h/2), counted from the centre of the
first pixel, half a pixel right of and below the middle, as in the published generator. Outside the image it is black.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.corruptions.imagenet_p.sequence import PerturbationSequence, Scene, Window
from blemish.corruptions.imagenet_p.settings import Settings, amount, presets
from blemish.ops.cache import cached
from blemish.ops.levels import truncated, unit_range
from blemish.ops.transfer import to_device
from blemish.ops.warp import sample

Matrix = NDArray[np.float64]


def _around_centre(linear: Matrix, height: int, width: int) -> Matrix:
    """A map of positions relative to the fixed point, (3, 3), as one of positions."""
    move = np.array([[1, 0, width / 2], [0, 1, height / 2], [0, 0, 1]])
    return move @ linear @ np.linalg.inv(move)


@cached(mebibytes=256)
def _positions(
    backward: tuple[float, ...], height: int, width: int, window: Window, device: torch.device
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Where the window's pixels come from, x and y (1, h, w), and which lie in the image, unless all do.

    In double precision on the CPU: a pixel at the edge is inside or outside on every device.
    """
    rows = torch.arange(window.top, window.top + window.height, dtype=torch.float64)[:, None]
    columns = torch.arange(window.left, window.left + window.width, dtype=torch.float64)
    a, b, c, d, e, f, g, h, i = backward
    depth = g * columns + h * rows + i
    x, y = (a * columns + b * rows + c) / depth, (d * columns + e * rows + f) / depth
    inside = (x >= -0.5) & (x < width - 0.5) & (y >= -0.5) & (y < height - 0.5)
    mask = None if bool(inside.all()) else to_device(inside, device, torch.float32)
    return to_device(x[None], device, torch.float32), to_device(y[None], device, torch.float32), mask


def _warped(scene: Scene, linear: Matrix) -> Tensor:
    """The window of the images under a backward map relative to the fixed point, bilinearly, as float32."""
    images = unit_range(scene.levels)
    height, width = images.shape[-2:]
    backward = tuple(_around_centre(linear, height, width).ravel().tolist())
    x, y, mask = _positions(backward, height, width, scene.window, images.device)
    count = len(images)
    out = sample(images, x.expand(count, -1, -1), y.expand(count, -1, -1), outside="replicate")
    return out if mask is None else out.mul_(mask)


def _rotate(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    """Clockwise by the amount in degrees."""
    angle = math.radians(amount(values, index))
    if angle == 0:
        return scene.cropped()
    cos, sin = math.cos(angle), math.sin(angle)
    return _warped(scene, np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]]))


def _shear(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    """Turns vertical lines by the amount in degrees; they keep their length, and horizontal lines their direction."""
    angle = math.radians(amount(values, index))
    if angle == 0:
        return scene.cropped()
    return _warped(scene, np.array([[1, math.tan(angle), 0], [0, 1 / math.cos(angle), 0], [0, 0, 1]]))


def _zoomed(scene: Scene, factor: float) -> Tensor:
    return _warped(scene, np.diag([1 / factor, 1 / factor, 1.0]))


def _scale(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    factor = amount(values, index)
    return scene.cropped() if factor == 1 else _zoomed(scene, factor)


def _tilt(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    """The image as a plane in space, turned about its vertical and then its horizontal axis, seen in perspective.

    The eye is one image diagonal away, so that the plane is seen in its own size before it turns.
    """
    angle = math.radians(amount(values, index))
    if angle == 0:
        return scene.cropped()
    cos, sin = math.cos(angle), math.sin(angle)
    about_x = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
    about_y = np.array([[cos, 0, -sin], [0, 1, 0], [sin, 0, cos]])
    focal = math.hypot(*scene.levels.shape[-2:])
    turned = (about_x @ about_y)[:, :2]
    forward = np.column_stack([turned, [0, 0, focal]])
    forward[:2] *= focal
    return _warped(scene, np.linalg.inv(forward))


def _translate(scene: Scene, values: Settings, state: None, index: int) -> Tensor:
    """To the right by the amount in whole pixels."""
    shift = round(amount(values, index))
    top, left, height, width = scene.window
    rows = scene.levels[..., top : top + height, :]
    margin = abs(shift)
    start = left - shift + margin
    return F.pad(rows, (margin, margin))[..., start : start + width]


def _add_zoom(scene: Scene, values: Settings, total: Tensor | None, index: int) -> Tensor:
    """The sum of the clean window and the zooms up to this frame's, each on whole levels."""
    if total is None:
        total = scene.cropped().to(torch.int16)
    # A zoom is a picture of its own in the published generator, with levels of its own.
    levels = _zoomed(scene, amount(values, index)).mul_(255).add_(2.0**-12).clamp_(0, 255)
    return total + truncated(levels)


def _mean_zoom(scene: Scene, values: Settings, total: Tensor | None, index: int) -> Tensor:
    if total is None:
        return scene.cropped()
    return torch.div(total, index + 1, rounding_mode="floor").to(torch.uint8)


translate = PerturbationSequence(
    name="p:translate",
    description="Moves the image to the right, one pixel per frame.",
    presets=presets(
        origin=20,
        step=1,
        imagenet64={"origin": 15},
        cifar={"origin": 7},
        lengths={"imagenet": 41, "inception": 41, "cifar": 16},
    ),
    render=_translate,
    moves=True,
)

rotate = PerturbationSequence(
    name="p:rotate",
    description="Turns the image clockwise, one degree per frame.",
    presets=presets(origin=15, step=1),
    render=_rotate,
    moves=True,
)

tilt = PerturbationSequence(
    name="p:tilt",
    description="Turns the image in space about both of its axes, by a degree per frame or a little less.",
    presets=presets(origin=15, step=1, cifar={"step": 0.75}),
    render=_tilt,
    moves=True,
)

scale = PerturbationSequence(
    name="p:scale",
    description="Scales the image, from smaller than it is to larger.",
    presets=presets(base=1, origin=24, step=0.025, cifar={"origin": 15, "step": 0.02}),
    render=_scale,
)

shear = PerturbationSequence(
    name="p:shear",
    description="Shears the image, one degree per frame.",
    presets=presets(origin=15, step=1),
    render=_shear,
    moves=True,
    extra=True,
)

zoom_blur = PerturbationSequence(
    name="p:zoom_blur",
    description="Averages more and more slight enlargements.",
    presets=presets(base=1, origin=0, step=0.004),
    render=_mean_zoom,
    advance=_add_zoom,
)
