"""Points drawn uniformly around data points: the noise that MSCR trains and tests with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.ops.balls import Norm, in_ball
from blemish.studies.separation.exact import check_norm

Draws = Literal["independent", "shared"]


@dataclass(frozen=True)
class Noise:
    """``k`` points uniform in the L_p ball of radius ``epsilon`` around each point.

    A draw is a function of seed, run, role and the point's position alone. All radii scale the same draws, so that
    results at different ε differ by ε and not by luck.

    ``draws="shared"`` takes one set of k displacements per run for all points, training and test alike. The published
    2D experiment was made so; the definition asks for ``"independent"`` ones.
    """

    epsilon: float
    norm: Norm = "linf"
    k: int = 1
    seed: int = 0
    run: int = 0
    role: str = "test"
    clip: bool = False
    """Clip to [0, 1] afterwards. The paper does not."""
    draws: Draws = "independent"

    def __post_init__(self) -> None:
        check_norm(self.norm)
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InputError(f"ε = {self.epsilon}; expected a radius of 0 or more")
        if self.k < 1:
            raise InputError(f"k = {self.k}; expected at least 1 noisy point per data point")
        if self.draws not in get_args(Draws):
            raise InputError(f"draws {self.draws!r}; expected one of {', '.join(get_args(Draws))}")

    def of(self, epsilon: float, *, role: str | None = None) -> Noise:
        """The same draws at another radius, for the same role or another."""
        return replace(self, epsilon=float(epsilon), role=self.role if role is None else role)

    def units(
        self, ids: NDArray[np.int64] | Tensor, *shape: int, copy: int = 0, device: torch.device | str = "cpu"
    ) -> Tensor:
        """A point of the unit ball for each of the data points at these positions, float32; one for all if shared."""
        if self.draws == "shared":
            numbers, scope = torch.tensor([self.run]), "mscr/shared"
        else:
            numbers, scope = torch.as_tensor(ids), f"mscr/{self.run}/{self.role}"
        return in_ball(CounterRng(self.seed, numbers, scope, torch.device(device)), self.norm, *shape, name=str(copy))

    def around(self, points: NDArray[Any], *, ids: NDArray[np.int64] | None = None, copy: int = 0) -> NDArray[Any]:
        """One noisy point for each point; ``ids`` are their positions in the data, ``copy`` counts up to k."""
        if self.epsilon == 0:
            return points
        unit = self.units(np.arange(len(points)) if ids is None else ids, *points.shape[1:], copy=copy).numpy()
        noisy = points + (unit * np.float64(self.epsilon)).astype(points.dtype)
        return np.asarray(noisy.clip(0, 1) if self.clip else noisy)

    def around_images(self, images: Tensor, ids: Tensor) -> Tensor:
        """One noisy image for each float image, on their device; ``ids`` are their positions, on the CPU."""
        if self.epsilon == 0:
            return images
        unit = self.units(ids, *images.shape[1:], device=images.device)
        noisy = images + unit * self.epsilon
        return noisy.clamp_(0, 1) if self.clip else noisy

    def augmented(self, points: NDArray[Any], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """k noisy points per point in place of the points themselves; the points as they are where ε is 0."""
        if self.epsilon == 0:
            return points, labels
        copies = np.concatenate([self.around(points, copy=copy) for copy in range(self.k)])
        return copies, np.tile(labels, self.k)


def as_unit_floats(points: NDArray[Any]) -> NDArray[Any]:
    """uint8 images as float32 in [0, 1]; floats as they are; other numbers as float64."""
    if points.dtype == np.uint8:
        return np.asarray(points, dtype=np.float32) / np.float32(255)
    return points if points.dtype in (np.float32, np.float64) else points.astype(np.float64)
