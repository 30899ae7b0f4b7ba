"""OpticsBench: eight aberrations of a lens, their four published pairs, and all eight with other colours.

Severity is the aberration in waves. The lens has errors of its own, by colour, from severity 1 on; below it they fade,
and the image with them into the clean one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, no_draw, side_scale
from blemish.corruptions.moves import unmoved
from blemish.corruptions.optics.kernels import point_spread
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import luminance
from blemish.ops.filters import convolve

__all__ = ["OPTICS"]

_SOURCE = "Müller, Braun and Keuper, OpticsBench, ICCV Workshops 2023: the published kernels"


class Mode(NamedTuple):
    """An aberration: the Fringe number of its polynomial, its waves at severities 1 … 5, and what it looks like."""

    fringe: int
    waves: tuple[float, ...]
    description: str


MODES = {
    "defocus": Mode(4, (0.7, 0.9, 1.3, 1.6, 2.1), "Blurs as a lens out of focus does: to rings."),
    "vertical_astigmatism": Mode(
        5, (1.1, 1.5, 2.1, 3.0, 3.7), "Blurs as astigmatism does: upright in one colour, level in another."
    ),
    "oblique_astigmatism": Mode(6, (1.1, 1.5, 2.2, 3.0, 3.8), "Blurs as astigmatism does: along the diagonals."),
    "horizontal_coma": Mode(7, (0.9, 1.3, 2.2, 2.9, 3.5), "Blurs as coma does: points get a tail to the right."),
    "vertical_coma": Mode(8, (0.9, 1.3, 2.2, 2.9, 3.5), "Blurs as coma does: points get a tail downwards."),
    "primary_spherical": Mode(
        9, (0.7, 0.9, 1.4, 2.0, 2.6), "Blurs as spherical aberration does: points get a wide halo."
    ),
    "oblique_trefoil": Mode(10, (0.9, 1.4, 2.2, 2.8, 3.3), "Blurs as trefoil does: points become stars of three rays."),
    "vertical_trefoil": Mode(
        11, (0.9, 1.4, 2.2, 2.8, 3.2), "Blurs as trefoil does: points become upright stars of three rays."
    ),
}
"""The eight aberrations by name."""

GROUPS = {
    "defocus_spherical": ("defocus", "primary_spherical"),
    "astigmatism": ("vertical_astigmatism", "oblique_astigmatism"),
    "coma": ("horizontal_coma", "vertical_coma"),
    "trefoil": ("oblique_trefoil", "vertical_trefoil"),
}
"""The benchmark's corruptions: one of two aberrations for each image."""


class Choice(NamedTuple):
    """Which of the aberrations each image gets, int64 (B,) on the CPU."""

    which: Tensor


def _draw_choice(shape: Shape, params: Params, rng: CounterRng) -> Choice:
    return Choice(rng.on_cpu().integers("mode", 1, high=2)[:, 0])


def _blurred(images: Tensor, settings: Sequence[tuple[float, ...]], *, magenta: bool) -> Tensor:
    """Each image through the lens of its setting: Fringe number, waves, lens."""
    scale = side_scale(*images.shape[-2:])
    chosen, inverse = np.unique(np.array(settings), axis=0, return_inverse=True)
    kernels = [
        point_spread(int(fringe), waves, lens, scale, magenta=magenta) for fringe, waves, lens in chosen.tolist()
    ]
    if images.shape[1] == 1:
        # What the luminance of its colour version would be: a mean of the colours' kernels does the same at once. One
        # by one, because the rounding of many would depend on their number.
        kernels = [luminance(kernel[None])[0] for kernel in kernels]
    reach = kernels[0].shape[-1] // 2
    which = torch.from_numpy(inverse.ravel())
    channels = images.shape[1]
    planes = (which[:, None] * channels + torch.arange(channels)).flatten()
    blurred = convolve(images.flatten(0, 1)[:, None], torch.cat(kernels), (reach, reach), "reflect101", which=planes)
    return blurred.reshape(images.shape)


def _one_mode(fringe: int, magenta: bool, images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    pairs = zip(params["waves"].tolist(), params["lens"].tolist(), strict=True)
    return _blurred(images, [(fringe, *pair) for pair in pairs], magenta=magenta)


def _one_of_two(fringes: tuple[int, int], images: Tensor, params: Params, draw: Choice) -> Tensor:
    waves = torch.stack([params["first_waves"], params["second_waves"]])
    settings = [
        (fringes[which], float(waves[which, i]), float(params["lens"][i]))
        for i, which in enumerate(draw.which.tolist())
    ]
    return _blurred(images, settings, magenta=False)


_FADING = (0, 1, 1, 1, 1, 1)


def _aberration(name: str, mode: Mode, *, magenta: bool) -> Corruption:
    return Corruption(
        name=f"optics:{name}_rg" if magenta else f"optics:{name}",
        family="optics",
        description=f"{mode.description[:-1]}; with fringes of magenta and green." if magenta else mode.description,
        table=SeverityTable.of(waves=(0, *mode.waves), lens=_FADING),
        draw=no_draw,
        apply=partial(_one_mode, mode.fringe, magenta),
        source=_SOURCE,
        variant_of=f"optics:{name}" if magenta else None,
    )


def _group(name: str, first: str, second: str) -> Corruption:
    pair = MODES[first], MODES[second]
    return Corruption(
        name=f"optics:{name}",
        family="optics",
        description=f"One of two aberrations, drawn for each image: {first} or {second}.".replace("_", " "),
        table=SeverityTable.of(first_waves=(0, *pair[0].waves), second_waves=(0, *pair[1].waves), lens=_FADING),
        draw=_draw_choice,
        apply=partial(_one_of_two, (pair[0].fringe, pair[1].fringe)),
        source=_SOURCE,
    )


OPTICS: tuple[Corruption, ...] = unmoved(
    *(_aberration(name, mode, magenta=False) for name, mode in MODES.items()),
    *(_group(name, *pair) for name, pair in GROUPS.items()),
    *(_aberration(name, mode, magenta=True) for name, mode in MODES.items()),
)
