"""ImageNet-C's digital corruptions: contrast, elastic transform, pixelate, JPEG and saturate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, alike, as_planes, per_image
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import scale_saturation
from blemish.ops.filters import all_near, gaussian_arrays, gaussian_blur
from blemish.ops.jpeg import jpeg_levels, jpeg_round_trip
from blemish.ops.levels import Levels
from blemish.ops.positions import Positions, pixel_places
from blemish.ops.resample import pixelate_levels, pixelated
from blemish.ops.transfer import to_device
from blemish.ops.warp import affine_from_points, displace, drawn_positions, three_points, warp_affine


def _contrast(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    factor = per_image(params["factor"], images)
    # In double precision, because the order of a sum depends on the number of threads.
    mean = images.mean((2, 3), keepdim=True, dtype=torch.float64).to(torch.float32)
    return images.mul_(factor).add_(mean * (1 - factor))


def _saturate(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return scale_saturation(images, per_image(params["scale"], images), per_image(params["shift"], images))


def _jpeg(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return jpeg_round_trip(levels, params["quality"])


def _small(params: Params | Numbers, height: int, width: int) -> tuple[int, int]:
    scale = float(params["scale"][0])
    return max(1, int(height * scale)), max(1, int(width * scale))


def _pixelate(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return pixelated(levels, *_small(params, *levels.shape[-2:]))


def _make_pixelate(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    pixelate_levels(kernels, levels, out, *_small(params, *levels.shape[-2:]))


def _make_jpeg(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    jpeg_levels(kernels, levels, out, params["quality"].tolist())


# Where the Gaussian that smooths the displacement is cut, in standard deviations.
_FIELD_CUT = 3.0


class Distortion(NamedTuple):
    """Moves of three points in units of `affine`, (B, 3, 2) on the CPU, and fields dx, dy (B, 2, H, W); in (−1, 1)."""

    corners: Tensor
    fields: Tensor


def _draw_elastic(shape: Shape, params: Params, rng: CounterRng) -> Distortion:
    fields = rng.symmetric_uniforms("fields", 2, shape.height, shape.width)
    return Distortion(torch.from_numpy(_drawn_corners(rng)), fields)


def _drawn_corners(rng: CounterRng) -> NDArray[np.float32]:
    corners: NDArray[np.float32] = rng.on_cpu().uniforms("corners", 3, 2).numpy()
    corners += corners
    corners -= 1
    return corners


def _elastic(images: Tensor, params: Params, draw: Distortion) -> Tensor:
    """A random affine map of the whole image, then a smooth random displacement of every pixel."""
    warped = warp_affine(images, _affine(draw.corners, params["affine"], *images.shape[-2:]))
    # Sampling an image where it is may still round its values: one without displacement is not sampled again.
    moving = params["alpha"] > 0
    if bool(moving.all()):
        return _displaced(warped, params["sigma"], params["alpha"], draw.fields)
    if bool(moving.any()):
        rows = to_device(moving.nonzero().flatten(), images.device)
        sigma, alpha = params["sigma"][moving], params["alpha"][moving]
        warped[rows] = _displaced(warped[rows], sigma, alpha, draw.fields[rows])
    return warped


def _affine(corners: Tensor, strength: Tensor, height: int, width: int) -> Tensor:
    """The map that takes three moved points back to where they were."""
    points = torch.from_numpy(three_points(height, width))
    moved = points + corners.to(torch.float64) * strength.view(-1, 1, 1)
    return affine_from_points(points.expand_as(moved), moved)


def _near(params: Numbers, height: int, width: int) -> bool:
    blurs = zip(params["sigma"].tolist(), params["alpha"].tolist(), strict=True)
    return all_near([sigma for sigma, alpha in blurs if alpha > 0], height, width, truncate=_FIELD_CUT)


def _make_elastic(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    height, width = levels.shape[-2:]
    positions = drawn_positions(_drawn_corners(rng), params["affine"], height, width)
    blurs = zip(params["sigma"].tolist(), params["alpha"].tolist(), strict=True)
    weights, radii = gaussian_arrays([sigma if alpha > 0 else 0.0 for sigma, alpha in blurs], _FIELD_CUT)
    fields = alike(rng.symmetric_uniforms("fields", 2, height, width), levels)
    settings = (fields, weights.astype(np.float32), radii, params["alpha"])
    kernels.elastic(levels, out, *positions, *settings)


def _smoothed(sigma: Tensor, alpha: Tensor, fields: Tensor) -> Tensor:
    return gaussian_blur(fields, sigma, truncate=_FIELD_CUT, border="reflect") * per_image(alpha, fields)


def _displaced(images: Tensor, sigma: Tensor, alpha: Tensor, fields: Tensor) -> Tensor:
    return displace(images, _smoothed(sigma, alpha, fields))


def _stretched(images: Tensor, params: Params, draw: Distortion) -> Positions:
    """The displacement leads into the image that the affine map made, whose border mirrors with its edge repeated."""
    height, width = images.shape[-2:]
    x, y = (places.clone() for places in pixel_places(len(images), height, width))
    moving = params["alpha"] > 0
    if bool(moving.any()):
        right, down = _smoothed(params["sigma"][moving], params["alpha"][moving], draw.fields[moving]).unbind(1)
        x[moving] += right
        y[moving] += down
    copies = (x < -0.5) | (x > width - 0.5) | (y < -0.5) | (y > height - 0.5)
    x, y = (_edge_repeated(places, size) for places, size in ((x, width), (y, height)))
    map_x, map_y = _affine(draw.corners, params["affine"], height, width)[..., None, None].unbind(1)
    return Positions(
        map_x[:, 0] * x + map_x[:, 1] * y + map_x[:, 2],
        map_y[:, 0] * x + map_y[:, 1] * y + map_y[:, 2],
        "reflect101",
        copies=copies,
    )


def _edge_repeated(places: Tensor, size: int) -> Tensor:
    inside = (places + 0.5).remainder(2 * size)
    return (torch.minimum(inside, 2 * size - inside) - 0.5).clamp(0, size - 1)


def _make_contrast(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    kernels.flatten(as_planes(levels), as_planes(out), params["factor"])


def _make_saturate(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    if levels.shape[1] == 1:
        out[...] = levels
    else:
        kernels.saturate(as_planes(levels), as_planes(out), params["scale"], params["shift"])


contrast = Corruption(
    name="contrast",
    family="digital",
    description="Pulls every value towards the mean of its channel.",
    table=SeverityTable.by_preset(
        ("factor",), imagenet=(1, 0.4, 0.3, 0.2, 0.1, 0.05), cifar=(1, 0.75, 0.5, 0.4, 0.3, 0.15)
    ),
    apply=_contrast,
    source=SOURCE,
    at_once=AtOnce("colours", _make_contrast, draws_little=True),
)

elastic_transform = Corruption(
    name="elastic_transform",
    family="digital",
    description="Stretches and contracts small regions, after a random affine map.",
    table=SeverityTable.by_preset(
        ("alpha", "sigma", "affine"),
        imagenet=(
            (0, 999, 0),
            (488, 170.8, 24.4),
            (488, 19.52, 48.8),
            (12.2, 2.44, 4.88),
            (17.08, 2.44, 4.88),
            (29.28, 2.44, 4.88),
        ),
        inception=((0, 999, 0), (720, 252, 36), (720, 28.8, 72), (18, 3.6, 7.2), (25.2, 3.6, 7.2), (43.2, 3.6, 7.2)),
        imagenet64=(
            (0, 999, 0),
            (0, 0, 5.12),
            (3.2, 19.2, 3.84),
            (6.4, 5.12, 3.84),
            (6.4, 1.92, 1.92),
            (10.24, 1.92, 1.28),
        ),
        cifar=((0, 999, 0), (0, 0, 2.56), (1.6, 6.4, 2.24), (2.56, 1.92, 1.92), (3.2, 1.28, 1.6), (3.2, 0.96, 0.96)),
    ),
    draw=_draw_elastic,
    apply=_elastic,
    moves=by_map(_stretched),
    source=SOURCE,
    version=2,
    at_once=AtOnce("warps", _make_elastic, _near),
)

pixelate = Corruption(
    name="pixelate",
    family="digital",
    description="Shrinks the image and enlarges it again without smoothing.",
    table=SeverityTable.by_preset(
        ("scale",),
        imagenet=(1, 0.6, 0.5, 0.4, 0.3, 0.25),
        inception=(1, 0.5, 0.4, 0.3, 0.25, 0.2),
        imagenet64=(1, 0.9, 0.8, 0.7, 0.6, 0.5),
        cifar=(1, 0.95, 0.9, 0.85, 0.75, 0.65),
    ),
    apply=_pixelate,
    source=SOURCE,
    shared=("scale",),
    uint8_io=True,
    at_once=AtOnce("boxes", _make_pixelate, draws_little=True),
)

jpeg_compression = Corruption(
    name="jpeg_compression",
    family="digital",
    description="JPEG compression at low quality.",
    table=SeverityTable.by_preset(
        ("quality",),
        imagenet=(85, 25, 18, 15, 10, 7),
        inception=(85, 23, 16, 13, 8, 5),
        imagenet64=(85, 65, 58, 50, 40, 25),
        cifar=(85, 80, 65, 58, 50, 40),
        rounded=("quality",),
    ),
    apply=_jpeg,
    source=SOURCE,
    uint8_io=True,
    at_once=AtOnce("jpeg", _make_jpeg, draws_little=True),
)

saturate = Corruption(
    name="saturate",
    family="digital",
    description="Takes colour away, or exaggerates it.",
    table=SeverityTable.by_preset(
        ("scale", "shift"),
        imagenet=((1, 0), (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
        imagenet64=((1, 0), (0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        cifar=((1, 0), (0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    ),
    apply=_saturate,
    source=SOURCE,
    at_once=AtOnce("colours", _make_saturate, draws_little=True),
)
