"""ROID: a certain and diverse self-training, whose weights lean back to the source, with corrected priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Gradient, Optimiser, entropy

Prior = Literal["logits", "probabilities", "none"]

_KEPT = 0.9
_WHITE = 255.0


class ROID(Gradient):
    """Universal test-time adaptation. Marsden et al., WACV 2024.

    With predictions p and their moving average p̄ (at first uniform), images are weighed by w = exp(d c / τ): the
    diversity d = 1 − cos(p̄, p) and the certainty c = −H(p), each scaled to 0 … 1 over the batch; w = 0 where d is below
    its mean. Then p̄ ← 0.9 p̄ + 0.1 mean p. What is minimised is Σ w (ℓ + s) / B: the soft likelihood ratio
    ℓ = −Σ q ln(q / (1 − q) + 1e-5) with q = min(p, 0.99), and on images with w > 0 the symmetric cross entropy
    s = −½ Σ p ln p′ − ½ Σ p′ ln p with the predictions p′ of random views, gradients flowing through both. After the
    step the weights go back a little, θ ← (1 − ``source``) θ + ``source`` θ₀.

    Predictions are those before the step, with their priors corrected: π = mean p over the batch,
    s = max(1/B, 1/C) / max π, π̃ = (π + s) / (1 + s C). The released code multiplies the logits by π̃, the default of
    ``prior``; ``probabilities`` multiplies those instead, as is meant, and ``none`` corrects nothing.

    Settings of the authors' code: temperature τ 1/3, source 0.01; ImageNet, SGD with Nesterov's momentum 0.9, rate
    0.00025, batches of 64; CIFAR, Adam, rate 0.001, batches of 200. Each image's view is drawn by itself; there, one
    augmentation is drawn for a batch. B is the number of images of the batch; there, the usual one even for the last.
    A batch whose images are all alike, such as one of a single image, changes nothing. Needs any normalisation layers.
    """

    name = "roid"
    memory: ClassVar[Mapping[str, Any]] = {"average": None, "steps": 0}

    average: Tensor | None
    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 1 / 3,
        source: float = 0.01,
        prior: Prior = "logits",
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if not temperature > 0 or not 0 <= source <= 1:
            given = f"temperature {temperature:g} and source {source:g} for {self.name}"
            raise InputError(f"{given}; expected a positive number, and a share in 0 … 1")
        if prior not in get_args(Prior):
            raise InputError(f"prior {prior!r} for {self.name}; expected one of {', '.join(get_args(Prior))}")
        self.temperature, self.source, self.prior, self.seed = temperature, source, prior, seed
        super().__init__(model, optimiser=optimiser or Optimiser(nesterov=True))
        self._origin = {name: value.detach().clone() for name, value in self.adapted.items()}

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict, take one step, and lean back."""
        with torch.inference_mode(False), torch.enable_grad():
            logits: Tensor = self.model(batch)
            self.logits = logits.detach()
            self._step(self._weighted(batch, logits))
            with torch.no_grad():
                self._ensemble()
        self.steps += 1
        return corrected(self.logits, self.prior)

    def predict(self, batch: Tensor) -> Tensor:
        """The logits by the network as it is now, with their priors corrected."""
        return corrected(super().predict(batch), self.prior)

    def _weighted(self, batch: Tensor, logits: Tensor) -> Tensor | None:
        weights = self._weights(logits.detach())
        if weights is None:
            return None
        chosen = (weights > 0).nonzero()[:, 0]
        rng = CounterRng(self.seed, chosen.cpu(), f"{ROID.name} {self.steps}", batch.device)
        views = random_views(batch[chosen].to(torch.float32) / _WHITE, rng, smooth=False)
        other: Tensor = self.model(views * _WHITE)
        loss = (weights * likelihood_ratio(logits)).sum()
        loss = loss + (weights[chosen] * symmetric_cross_entropy(logits[chosen], other)).sum()
        return loss / len(batch)

    def _weights(self, logits: Tensor) -> Tensor | None:
        """The weight of each image; none where all are alike. The mean prediction moves on."""
        p = logits.softmax(1)
        average = torch.full_like(p[0], 1 / p.shape[1]) if self.average is None else self.average
        diversity = _scaled(1 - F.cosine_similarity(average[None], p))
        certainty = _scaled(-entropy(logits))
        self.average = _KEPT * average + (1 - _KEPT) * p.mean(0)
        if diversity is None or certainty is None:
            return None
        weights = torch.exp(diversity * certainty / self.temperature)
        return torch.where(diversity < diversity.mean(), 0.0, weights)

    def _ensemble(self) -> None:
        for name, value in self.adapted.items():
            value.lerp_(self._origin[name], self.source)


def _scaled(values: Tensor) -> Tensor | None:
    """Brought to 0 … 1; none where all are the same."""
    low, high = values.aminmax()
    return (values - low) / (high - low) if bool(high > low) else None


def likelihood_ratio(logits: Tensor) -> Tensor:
    """The soft likelihood ratio of each image: −Σ q ln(q / (1 − q) + 1e-5), q = min(p, 0.99)."""
    q = logits.softmax(1).clamp(max=0.99)
    return -(q * (q / (1 - q) + 1e-5).log()).sum(1)


def symmetric_cross_entropy(one: Tensor, other: Tensor) -> Tensor:
    """−½ Σ p ln p′ − ½ Σ p′ ln p of each image, from logits."""
    ways = one.softmax(1) * other.log_softmax(1) + other.softmax(1) * one.log_softmax(1)
    return -ways.sum(1) / 2


def corrected(logits: Tensor, prior: Prior) -> Tensor:
    """Logits whose mean prediction over the batch counts as a prior: see `ROID`."""
    if prior == "none":
        return logits
    count, classes = logits.shape
    mean = logits.softmax(1).mean(0)
    smooth = max(1 / count, 1 / classes) / mean.max()
    smoothed = (mean + smooth) / (1 + smooth * classes)
    return logits * smoothed if prior == "logits" else logits + smoothed.log()
