"""Turn the reference's recorded draws into ours: each function takes the recording and returns a draw for `apply`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from blemish.corruptions import draws
from blemish.corruptions.imagenet_c import blur, digital, weather
from blemish.corruptions.severity import Params

Recording = Mapping[str, NDArray[Any]]


def _chw(array: NDArray[Any]) -> Tensor:
    """(H, W, C) or (H, W) to (1, C, H, W)."""
    tensor = torch.from_numpy(np.array(array))
    return (tensor.permute(2, 0, 1) if tensor.ndim == 3 else tensor[None])[None]


def _standardised(array: NDArray[Any], mean: float, std: float) -> Tensor:
    return ((_chw(array).double() - mean) / std).float()


def _additive(recording: Recording, params: Params, image: NDArray[np.uint8]) -> draws.Field:
    return draws.Field(_standardised(recording["draw0_normal"], 0.0, float(params["sigma"])))


def _counts(recording: Recording, params: Params, image: NDArray[np.uint8]) -> draws.Field:
    """The normal deviate at the middle of the recorded count's share of probability."""
    counts = recording["draw0_poisson"].astype(float)
    mean = image / 255.0 * float(params["photons"])
    # Ranks are taken from the nearer tail, where they keep their precision.
    below = 0.5 * (stats.poisson.cdf(counts - 1, mean) + stats.poisson.cdf(counts, mean))
    above = 0.5 * (stats.poisson.sf(counts - 1, mean) + stats.poisson.sf(counts, mean))
    return draws.Field(_chw(np.where(below < 0.5, stats.norm.ppf(below), stats.norm.isf(above))).float())


def _hits(recording: Recording, params: Params, image: NDArray[np.uint8]) -> draws.Field:
    amount = float(params["amount"])
    hit = np.where(recording["draw1_salted"], amount / 4, amount * 3 / 4)
    return draws.Field(_chw(np.where(recording["draw0_flipped"], hit, 1.0)).float())


def _offsets(recording: Recording, params: Params, image: NDArray[np.uint8]) -> blur.Offsets:
    """(dx, dy) per visited pixel in visiting order."""
    delta, passes = int(params["max_delta"]), int(params["iterations"])
    height, width = image.shape[:2]
    rows, columns = np.arange(height - delta, delta, -1), np.arange(width - delta, delta, -1)
    if not passes:
        still = torch.zeros(1, 1, height, width, dtype=torch.int8)
        return blur.Offsets(still, still)
    moves = recording["draw_offsets"].reshape(passes, len(rows), len(columns), 2)
    fields = np.zeros((2, 1, passes, height, width), np.int64)
    fields[np.ix_([0], [0], range(passes), rows, columns)] = moves[None, None, ..., 1]
    fields[np.ix_([1], [0], range(passes), rows, columns)] = moves[None, None, ..., 0]
    return blur.Offsets(*torch.from_numpy(fields))


def _angle(recording: Recording, params: Params, image: NDArray[np.uint8]) -> blur.Angle:
    return blur.Angle(torch.as_tensor(recording["draw0_uniform"]).view(1))


def _flakes(recording: Recording, params: Params, image: NDArray[np.uint8]) -> weather.Flakes:
    field = _standardised(recording["draw0_normal"], float(params["mean"]), float(params["std"]))
    return weather.Flakes(field, torch.from_numpy(recording["draw1_uniform"]).view(1))


def _crop(recording: Recording, params: Params, image: NDArray[np.uint8]) -> weather.Crop:
    return weather.Crop(*(torch.from_numpy(recording[f"draw{i}_randint"]).view(1) for i in range(3)))


def _wobble(recording: Recording, params: Params, image: NDArray[np.uint8]) -> weather.Wobble:
    levels, width = [], 100.0
    for i in range(0, len([key for key in recording if key.startswith("draw")]), 3):
        fields = [recording[f"draw{j}_uniform"] / width for j in (i, i + 1, i + 2)]
        levels.append(torch.from_numpy(np.stack(fields)).float()[None])
        width = width / float(params["wibble_decay"])
    return weather.Wobble(tuple(levels))


def _distortion(recording: Recording, params: Params, image: NDArray[np.uint8]) -> digital.Distortion:
    corners = torch.from_numpy(recording["draw0_uniform"] / float(params["affine"]))[None]
    fields = [_chw(recording[key]) for key in ("draw1_uniform", "draw2_uniform") if key in recording]
    return digital.Distortion(corners, torch.cat(fields, dim=1) if fields else torch.zeros(1, 2, *image.shape[:2]))


def _specks(recording: Recording, params: Params, image: NDArray[np.uint8]) -> Any:
    return draws.Field(_standardised(recording["draw0_normal"], float(params["mean"]), float(params["std"])))


def _nothing(recording: Recording, params: Params, image: NDArray[np.uint8]) -> tuple[()]:
    return ()


INJECT: dict[str, Callable[[Recording, Params, NDArray[np.uint8]], Any]] = {
    "gaussian_noise": _additive,
    "speckle_noise": _additive,
    "shot_noise": _counts,
    "impulse_noise": _hits,
    "glass_blur": _offsets,
    "motion_blur": _angle,
    "snow": _flakes,
    "frost": _crop,
    "fog": _wobble,
    "elastic_transform": _distortion,
    "spatter": _specks,
}


def inject(name: str, recording: Recording, params: Params, image: NDArray[np.uint8]) -> Any:
    """Our draw for a recording of the reference's draws."""
    return INJECT.get(name, _nothing)(recording, params, image)
