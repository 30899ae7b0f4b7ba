"""What the stimuli of the comparison with humans share: levels, the gray image, and two arrays.

Levels are those that observers saw, two to eight of them with the unchanged image. The strongest stands for severity 5,
and whole severities are levels; below severity 1 the image fades into the stimulus.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from importlib import resources
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.severity import Params
from blemish.ops.colour import luminance

SOURCE = "Geirhos et al., NeurIPS 2018 and 2021 (model-vs-human): the published stimuli"

unit = partial(Corruption, family="human", source=SOURCE)
"""Declares one of the corruptions."""

BACKGROUND = 0.4423
"""The gray around the images on the observers' screen."""

SEVERITIES: dict[int, tuple[float, ...]] = {
    1: (5,),
    3: (1, 3, 5),
    6: (1, 2, 3, 4, 4.5, 5),
    7: (1, 2, 3, 3.5, 4, 4.5, 5),
}
"""Where the levels of a set lie, by how many there are besides the unchanged image."""

FADING = (0, 0.5, *[1.0] * 9)
"""How much of the stimulus there is at severities 0, 0.5, … 5."""

# What red, green and blue contribute to the stimuli's gray.
_GRAY = (0.2125, 0.7154, 0.0721)


def at_halves(unchanged: float, *levels: float) -> tuple[float, ...]:
    """A parameter at severities 0, 0.5, … 5 from its published levels, the weakest first.

    >>> at_halves(1, 0.5, 0.3, 0.15, 0.1, 0.05, 0.03, 0.01)[6:]
    (0.15, 0.1, 0.05, 0.03, 0.01)
    """
    places = (0.0, *SEVERITIES[len(levels)])
    return tuple(np.interp(np.arange(11) / 2, places, (unchanged, *levels)).tolist())


def on_gray(images: Tensor, params: Params, stimulus: Callable[[Tensor], Tensor]) -> Tensor:
    """The stimulus made of the gray image, faded in by `opacity`; it is clipped before it is mixed."""
    made = stimulus(luminance(images, _GRAY)).to(torch.float32).clamp_(0, 1)
    return torch.lerp(images, made.expand_as(images), per_image(params["opacity"], images))


class Arrays(NamedTuple):
    """The light of the observers' screen for each of the 256 levels, and a mean spectrum of amplitudes.

    The spectrum (224, 113) is that of gray images of 224 pixels in 0 … 1, frequency 0 first, down and right.
    """

    light: Tensor
    amplitude: Tensor


@lru_cache(maxsize=1)
def arrays() -> Arrays:
    """The two arrays, float64. Published by Geirhos et al. (2018) under CC BY 4.0."""
    with (
        resources.as_file(resources.files("blemish.corruptions.human").joinpath("stimuli.npz")) as path,
        np.load(path) as stored,
    ):
        tensors = [torch.from_numpy(stored[name].astype(np.float64)) for name in ("gamma", "amplitude")]
    return Arrays(*tensors)
