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
from blemish.corruptions.base import AtOnce, Corruption, per_image
from blemish.corruptions.draws import Field, add_noise, draw_normals, make_noise
from blemish.corruptions.moves import unmoved
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.balls import Norm, exact_k_mask, in_ball

__all__ = ["LP", "radius"]

_BALLS = "Siedel et al., 2022, on minimal-separation robustness (MSCR); severities defined here"


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


def _draw_ball(norm: Norm, shape: Shape, params: Params, rng: CounterRng) -> Field:
    """A point in the unit ball."""
    return Field(in_ball(rng, norm, *shape))


def _add_ball(norm: Norm, images: Tensor, params: Params, draw: Field) -> Tensor:
    per_epsilon = radius(norm, 1.0, images[0].numel())
    return images.addcmul_(draw.field, per_image(params["epsilon"] * per_epsilon, images))


def _replace(images: Tensor, params: Params, draw: Replacement) -> Tensor:
    return draw.value.where(draw.where, images)


def _draw_replacement(shape: Shape, params: Params, rng: CounterRng) -> Replacement:
    count = (params["fraction"] * math.prod(shape)).round()
    return Replacement(exact_k_mask(rng, count, *shape), rng.coarse_uniforms("value", *shape))


LP: tuple[Corruption, ...] = unmoved(
    Corruption(
        name="lp:l0",
        family="lp",
        description="Replaces a fixed number of values, anywhere, by uniform ones.",
        table=SeverityTable.of(fraction=(0, 0.02, 0.04, 0.06, 0.08, 0.1)),
        draw=_draw_replacement,
        apply=_replace,
        source="defined here",
    ),
    Corruption(
        name="lp:l1",
        family="lp",
        description="Adds noise that is uniform in an L1 ball: mostly small, rarely large.",
        table=SeverityTable.of(epsilon=(0, 0.02, 0.04, 0.06, 0.08, 0.1)),
        draw=partial(_draw_ball, "l1"),
        apply=partial(_add_ball, "l1"),
        source=_BALLS,
    ),
    Corruption(
        name="lp:l2",
        family="lp",
        description="Adds noise that is uniform in an L2 ball.",
        table=SeverityTable.of(epsilon=(0, 0.02, 0.04, 0.06, 0.08, 0.1)),
        draw=partial(_draw_ball, "l2"),
        apply=partial(_add_ball, "l2"),
        source=_BALLS,
    ),
    Corruption(
        name="lp:linf",
        family="lp",
        description="Adds noise that is uniform in an L∞ ball: independent uniform values.",
        table=SeverityTable.of(epsilon=(0, 0.02, 0.04, 0.06, 0.08, 0.1)),
        draw=partial(_draw_ball, "linf"),
        apply=partial(_add_ball, "linf"),
        source=_BALLS,
    ),
    Corruption(
        name="lp:gaussian",
        family="lp",
        description="Adds normal noise of the same mean square, for comparison.",
        table=SeverityTable.of(sigma=[0.02 / math.sqrt(3) * severity for severity in range(6)]),
        draw=draw_normals,
        apply=add_noise,
        at_once=AtOnce("noise", make_noise, draws_little=True),
        source="defined here",
    ),
)
