"""Damage to what a camera stores or sends: bits turned over in the stream of a JPEG image or of an H.265 video."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.sensor.published import OURS
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.codecs import FFMPEG, H265_FRAMES, PILLOW, PLACE_BITS, Planes, damaged_h265, damaged_jpeg, jpeg_rows
from blemish.ops.compiled.threads import shares, together


class Errors(NamedTuple):
    """Where bits may be turned over, int64 (B, N), and three uniform values per image (B, 3); on the CPU."""

    places: Tensor
    ranks: Tensor


# The most errors for each row of blocks, or frame, in any table.
_MOST = 4


def _draw_jpeg(shape: Shape, params: Params, rng: CounterRng) -> Errors:
    return _errors(jpeg_rows(shape.channels, shape.height), rng.on_cpu())


def _draw_h265(shape: Shape, params: Params, rng: CounterRng) -> Errors:
    return _errors(H265_FRAMES, rng.on_cpu())


def _errors(parts: int, rng: CounterRng) -> Errors:
    # Always as many as the strongest has, so that a stronger one adds errors to those of a weaker one.
    return Errors(rng.integers("places", _MOST * parts + 1, high=2**PLACE_BITS), rng.uniforms("ranks", 3))


def _chosen(errors: Tensor, draw: Errors, parts: int) -> list[NDArray[np.int64]]:
    """The places of each image: so many for each part on average, and a whole number of them."""
    counts = (errors * parts + draw.ranks[:, 0].to(torch.float64)).floor().tolist()
    return [places[: int(count)].numpy() for places, count in zip(draw.places, counts, strict=True)]


def _by_codec(
    levels: Tensor, work: Callable[[Sequence[Planes], slice], Sequence[Planes]], most: int | None = None
) -> Tensor:
    """A codec's images, which it makes on the CPU, ``most`` at a time at most, with a share of them for each thread."""
    source = levels.cpu().numpy()
    out = np.empty_like(source)

    def some(own: slice) -> None:
        out[own] = work(list(source[own]), own)

    together([partial(some, own) for own in shares(len(source), most)])
    return torch.from_numpy(out).to(levels.device)


_QUALITY = 90


def _jpeg_bit_error(levels: Tensor, params: Params, draw: Errors) -> Tensor:
    places = _chosen(params["errors"], draw, jpeg_rows(*levels.shape[1:3]))

    def work(images: Sequence[Planes], own: slice) -> list[Planes]:
        return [damaged_jpeg(planes, _QUALITY, where) for planes, where in zip(images, places[own], strict=True)]

    return _by_codec(levels, work)


# How far a clip's frames are apart, in pixels of the published size.
_STEP = 2.0
# The most images whose clips are made at a time, and their pixels: all frames are in memory, and all decoders.
_CLIPS, _CLIP_PIXELS = 32, 2**21


def _h265_bit_error(levels: Tensor, params: Params, draw: Errors) -> Tensor:
    places = _chosen(params["errors"], draw, H265_FRAMES)
    step = _STEP * side_scale(*levels.shape[-2:])
    angles = [2 * math.pi * rank for rank in draw.ranks[:, 1].tolist()]
    pans = [(step * math.cos(angle), step * math.sin(angle)) for angle in angles]
    most = max(1, min(_CLIPS, _CLIP_PIXELS // math.prod(levels.shape[-2:])))
    return _by_codec(levels, lambda images, own: damaged_h265(images, pans[own], places[own]), most)


jpeg_bit_error = Corruption(
    name="sensor:jpeg_bit_error",
    family="sensor",
    description="Turns over bits of the image's JPEG stream: from there to the end of their row, blocks are damaged.",
    table=SeverityTable.of(errors=(0, 0.25, 0.5, 1, 2, 4)),
    draw=_draw_jpeg,
    apply=_jpeg_bit_error,
    moves=A_LITTLE,
    uint8_io=True,
    source=OURS,
    files=PILLOW,
)

h265_bit_error = Corruption(
    name="sensor:h265_bit_error",
    family="sensor",
    description="Turns over bits of the H.265 stream of a short pan over the image, and shows the last frame.",
    table=SeverityTable.of(errors=(0, 0.1, 0.25, 0.6, 1.5, 4)),
    draw=_draw_h265,
    apply=_h265_bit_error,
    moves=A_LITTLE,
    uint8_io=True,
    version=2,
    source=OURS,
    files=FFMPEG,
)
