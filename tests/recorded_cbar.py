"""Turn the recorded draws of C̄'s generator into ours: each function takes the recording and returns a draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.corruptions.cbar import blur, caustics, distortion, obscure, perlin, sparkles, spectral, waves

Recording = Mapping[str, NDArray[Any]]


def _draw(recording: Recording, number: int) -> Tensor:
    """The draw made at this place, with the batch in front."""
    (found,) = (value for key, value in recording.items() if key.startswith(f"draw{number}_"))
    return torch.from_numpy(np.array(found))[None]


def _number(recording: Recording, number: int) -> Tensor:
    return _draw(recording, number).to(torch.float64).view(1, 1, 1, 1)


def _wave(recording: Recording, side: int) -> waves.Wave:
    pair = torch.stack([_number(recording, 0), _number(recording, 1)])
    right, down = pair[_draw(recording, 2)[0]]
    return waves.Wave(right, down, _number(recording, 3))


def _rings(recording: Recording, side: int) -> waves.Rings:
    centre = _draw(recording, 0).view(2, 1, 1, 1, 1)
    return waves.Rings(*centre, *(_number(recording, i) for i in (1, 2, 3)))


def _plasma(recording: Recording, side: int) -> waves.Plasma:
    time, iterations, sharpness, scale = (_number(recording, i) for i in range(4))
    return waves.Plasma(time, iterations, sharpness, scale * side)


def _sparkles(recording: Recording, side: int) -> sparkles.Rays:
    counts = _draw(recording, 2)
    normals = torch.zeros(1, counts.shape[1], int(counts.max()), dtype=torch.float64)
    parts = torch.split(_draw(recording, 3)[0], counts[0].tolist())
    for row, part in zip(normals[0], parts, strict=True):
        row[: len(part)] = part
    return sparkles.Rays(_draw(recording, 0), counts.to(torch.float64), normals)


def _inverse_sparkles(recording: Recording, side: int) -> sparkles.Rays:
    counts = _draw(recording, 2).view(1, 1).to(torch.float64)
    return sparkles.Rays(_draw(recording, 0)[:, None] * side, counts, _draw(recording, 3)[:, None])


def _gradients(recording: Recording, side: int) -> perlin.Gradients:
    pairs = (_draw(recording, 1)[:, :256].to(torch.int64) % 512 - 256).to(torch.float64) / 256
    places = list(range(256))
    for i, other in zip(range(255, -1, -1), (_draw(recording, 2)[0] % 256).tolist(), strict=True):
        places[i], places[other] = places[other], places[i]
    return perlin.Gradients(pairs / pairs.square().sum(2, keepdim=True).sqrt(), torch.tensor([places]))


def _phases(recording: Recording, side: int) -> spectral.Phases:
    return spectral.Phases(_draw(recording, 1).view(1, -1, side, side // 2))


def _board(recording: Recording, side: int) -> obscure.Board:
    cell = (_number(recording, 1) * side).clamp(min=1)
    return obscure.Board(_number(recording, 0), cell, _draw(recording, 3))


def _lines(recording: Recording, side: int) -> obscure.Lines:
    angle, variation = (_draw(recording, i).view(1, 1) for i in (0, 1))
    ranks = _draw(recording, 3)
    return obscure.Lines(angle + 2 * np.pi * variation * (ranks[..., 2] - 0.5), ranks[..., :2] * side)


def _water(recording: Recording, side: int) -> caustics.Water:
    return caustics.Water(_number(recording, 0)[0], _number(recording, 1)[0] * side)


def _twirls(recording: Recording, side: int) -> distortion.Twirls:
    return distortion.Twirls(_draw(recording, 0).to(torch.float64).transpose(1, 2))


def _ripples(recording: Recording, side: int) -> distortion.Ripples:
    return distortion.Ripples(_draw(recording, 0) * side, _draw(recording, 1))


def _order(recording: Recording, side: int) -> blur.Order:
    return blur.Order(_draw(recording, 0))


def _nothing(recording: Recording, side: int) -> tuple[()]:
    return ()


INJECT: dict[str, Callable[[Recording, int], Any]] = {
    "single_frequency_greyscale": _wave,
    "cocentric_sine_waves": _rings,
    "plasma_noise": _plasma,
    "sparkles": _sparkles,
    "inverse_sparkles": _inverse_sparkles,
    "perlin_noise": _gradients,
    "brownish_noise": _phases,
    "blue_noise_sample": _phases,
    "checkerboard_cutout": _board,
    "lines": _lines,
    "caustic_refraction": _water,
    "pinch_and_twirl": _twirls,
    "ripple": _ripples,
    "transverse_chromatic_abberation": _order,
    "circular_motion_blur": _nothing,
}
"""By the reference's name: our draw for a recording, and the image's side."""
