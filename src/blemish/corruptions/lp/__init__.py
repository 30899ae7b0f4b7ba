"""Noise that is uniform in an L_p ball, as minimal-separation robustness uses it, and Gaussian noise for comparison.

At equal severity the four additive noises have the same mean square per value: severity s is L_∞ noise of radius
0.02·s, and the other radii follow from the number of values. L_0 noise replaces 2 % of the values per unit of severity.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.balls import Norm, exact_k_mask, in_ball

__all__ = ["LP", "radius"]

_STEP = 0.02


class Noise(NamedTuple):
    """A point in the unit ball (or standard normal values), (B, C, H, W)."""

    field: Tensor


class Replacement(NamedTuple):
    """Which values are replaced, bool, and by what, in (0, 1); both (B, C, H, W)."""

    where: Tensor
    value: Tensor


def radius(norm: Norm, epsilon: float, values: int) -> float:
    """The radius at which noise in the ball of this norm has the mean square of L_∞ noise of radius `epsilon`.

    Mean squares per value in d dimensions: 1/3 in the unit ball of L_∞, 1/(d + 2) in L_2, 2/((d + 1)(d + 2)) in L_1.

    >>> round(radius("l2", 0.1, 3072), 4)
    3.201
    """
    mean_square = {"linf": 1 / 3, "l2": 1 / (values + 2), "l1": 2 / ((values + 1) * (values + 2))}[norm]
    return epsilon * math.sqrt(1 / 3 / mean_square)


def _table(parameter: str, step: float) -> SeverityTable:
    return SeverityTable((parameter,), {"any": tuple((step * s,) for s in range(6))}, {"any": 224})


def _draw_ball(norm: Norm, shape: Shape, params: Params, words: CounterRng) -> Noise:
    return Noise(in_ball(words, norm, *shape))


def _add_ball(norm: Norm, images: Tensor, params: Params, draw: Noise) -> Tensor:
    per_epsilon = radius(norm, 1.0, images[0].numel())
    return images.addcmul_(draw.field, per_image(params["epsilon"] * per_epsilon, images))


def _ball(norm: Norm, description: str) -> Corruption:
    return Corruption(
        name=f"lp:{norm}",
        family="lp",
        description=description,
        table=_table("epsilon", _STEP),
        draw=partial(_draw_ball, norm),
        apply=partial(_add_ball, norm),
    )


def _gaussian(images: Tensor, params: Params, draw: Noise) -> Tensor:
    return images.addcmul_(draw.field, per_image(params["sigma"], images))


def _replace(images: Tensor, params: Params, draw: Replacement) -> Tensor:
    return draw.value.where(draw.where, images)


def _draw_normal(shape: Shape, params: Params, words: CounterRng) -> Noise:
    return Noise(words.normals("field", *shape))


def _draw_replacement(shape: Shape, params: Params, words: CounterRng) -> Replacement:
    count = (params["fraction"] * math.prod(shape)).round()
    return Replacement(exact_k_mask(words, count, *shape), words.coarse_uniforms("value", *shape))


LP: tuple[Corruption, ...] = (
    Corruption(
        "lp:l0",
        "lp",
        "Replaces a fixed number of values, anywhere, by uniform ones.",
        _table("fraction", _STEP),
        apply=_replace,
        draw=_draw_replacement,
    ),
    _ball("l1", "Adds noise that is uniform in an L1 ball: mostly small, rarely large."),
    _ball("l2", "Adds noise that is uniform in an L2 ball."),
    _ball("linf", "Adds noise that is uniform in an L∞ ball: independent uniform values."),
    Corruption(
        "lp:gaussian",
        "lp",
        "Adds normal noise of the same mean square, for comparison.",
        _table("sigma", _STEP / math.sqrt(3)),
        apply=_gaussian,
        draw=_draw_normal,
    ),
)
