"""CMF: ROID whose weights lean towards a source model that moves, tracked by a Kalman filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Optimiser
from blemish.studies.adaptation.roid import ROID, Prior

_VIT = 38_400
_LEAST, _MOST = 0.89, 0.9999


class CMF(ROID):
    """Continual momentum filtering. Lee and Chang, ICLR 2024.

    ROID's loss, weights and corrected priors (`ROID`). In place of leaning back, a hidden source model φ follows the
    adapted one by a Kalman filter; φ starts at θ₀ and its variance v at 0. After each step, with q = ``noise`` n /
    38,400 for n adapted numbers:
    φ̂ = α φ + (1 − α) θ₀, v ← α² v + q, r = 1 − q, β = r / (v + r), which is raised to 0.89 where it is below and set to
    1 where it is at least 0.9999; v ← β v, φ ← β φ̂ + (1 − β) θ, and then θ ← γ θ + (1 − γ) φ.

    Settings of the authors' code: α = ``alpha`` 0.99, γ = ``gamma`` 0.99, noise 0.005 (38,400 are the scales and shifts
    of ViT-B); optimisers as ROID's. Only adapted weights are tracked, as all others stay at θ₀. In Döbler et al.'s
    repository a reset leaves v as it is; here it starts anew. Needs any normalisation layers.
    """

    name = "cmf"
    memory: ClassVar[Mapping[str, Any]] = {**ROID.memory, "hidden": None, "variance": 0.0}
    hidden: dict[str, Tensor] | None
    """None for the model as it was given."""
    variance: float

    def __init__(
        self,
        model: nn.Module,
        *,
        alpha: float = 0.99,
        gamma: float = 0.99,
        noise: float = 0.005,
        temperature: float = 1 / 3,
        prior: Prior = "logits",
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if not (0 <= alpha <= 1 and 0 <= gamma <= 1 and noise >= 0):
            given = f"alpha {alpha:g}, gamma {gamma:g} and noise {noise:g} for CMF"
            raise InputError(f"{given}; expected shares in 0 … 1, and noise of 0 or more")
        super().__init__(model, temperature=temperature, prior=prior, optimiser=optimiser, seed=seed)
        self.alpha, self.gamma = alpha, gamma
        self.noise = noise * sum(value.numel() for value in self.adapted.values()) / _VIT

    def _ensemble(self) -> None:
        self.variance = self.alpha**2 * self.variance + self.noise
        rest = 1 - self.noise
        beta = max(_LEAST, rest / (self.variance + rest))
        beta = 1.0 if beta >= _MOST else beta
        self.variance *= beta
        before, self.hidden = self.hidden or self._origin, {}
        for name, value in self.adapted.items():
            expected = self.alpha * before[name] + (1 - self.alpha) * self._origin[name]
            self.hidden[name] = beta * expected + (1 - beta) * value
            value.copy_(self.gamma * value + (1 - self.gamma) * self.hidden[name])
