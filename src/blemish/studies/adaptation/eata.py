"""Entropy minimisation over chosen images: ETA, EATA, and RDumb, which starts afresh every so often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Gradient, Optimiser, entropy

_KEPT = 0.9

MARGINS = {"release": 0.4, "first-release": 0.5 - 1 / math.log(1000)}
"""RDumb's margins by name, as shares of ln(classes).

``release`` is what the authors' code has since 17 August 2023, and ETA's; ``first-release`` what it had before:
E₀ = ln(1000)/2 − 1 for the 1,000 classes of ImageNet, which is 0.355 · ln 1000.
"""


def named_margin(margin: float | str) -> float:
    """A margin, given as a number or as one of the names of `MARGINS`.

    >>> named_margin("release"), round(named_margin("first-release"), 3), named_margin("0.3")
    (0.4, 0.355, 0.3)
    """
    if isinstance(margin, str) and margin not in MARGINS:
        try:
            return float(margin)
        except ValueError as error:
            raise InputError(f"margin {margin!r}; expected a number, or one of {', '.join(MARGINS)}") from error
    return MARGINS[margin] if isinstance(margin, str) else margin


class ETA(Gradient):
    """Minimise the weighted entropy of images that are reliable and not redundant. Niu et al., ICML 2022.

    Reliable (equation 3): entropy E below E₀ = ``margin`` · ln(classes), weighed by exp(E₀ − E). Not redundant
    (equation 5): cosine between the prediction and the moving average of earlier ones below ``similarity``. The paper's
    settings, for batches of 64: margin 0.4, SGD with momentum 0.9; ImageNet, rate 0.00025, similarity 0.05, as in the
    authors' code; CIFAR-10, rate 0.005, similarity 0.4, of which the code says nothing.
    """

    name = "eta"
    memory: ClassVar[Mapping[str, Any]] = {"average": None}

    average: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.4,
        similarity: float = 0.05,
        optimiser: Optimiser | None = None,
    ) -> None:
        if not (margin > 0 and similarity > 0):
            raise InputError(f"margin {margin:g} and similarity {similarity:g}; expected positive numbers")
        self.margin, self.similarity = margin, similarity
        super().__init__(model, optimiser=optimiser or Optimiser())

    def loss(self, logits: Tensor) -> Tensor | None:
        """The mean weighted entropy of the chosen images; none where there are none."""
        uncertainty = entropy(logits)
        limit = self.margin * math.log(logits.shape[1])
        predictions = logits.detach().softmax(1)
        chosen = uncertainty.detach() < limit
        if self.average is not None:
            chosen &= F.cosine_similarity(self.average[None], predictions).abs() < self.similarity
        if not bool(chosen.any()):
            return None
        mean = predictions[chosen].mean(0)
        self.average = mean if self.average is None else _KEPT * self.average + (1 - _KEPT) * mean
        weight = torch.exp(limit - uncertainty.detach())
        return (uncertainty * weight)[chosen].mean()


class EATA(ETA):
    """ETA, held near the weights that matter for clean images. Niu et al., ICML 2022, equation 8.

    Adds β Σ ω (θ − θ₀)², where ω is the diagonal Fisher information of clean images under the model's own labels
    (equation 9), as released: the mean over batches of the squared gradient of their mean loss. ``clean`` gives these
    batches; the paper uses 2,000 images in batches of 64. The release of the CCC comparison passes images of the stream
    instead. β is 2,000 for ImageNet (paper and code), 1 for CIFAR-10 (paper).
    """

    name = "eata"

    def __init__(
        self,
        model: nn.Module,
        *,
        clean: Iterable[Tensor],
        beta: float = 2000.0,
        margin: float = 0.4,
        similarity: float = 0.05,
        optimiser: Optimiser | None = None,
    ) -> None:
        if beta < 0:
            raise InputError(f"beta {beta:g}; expected 0 or more")
        super().__init__(model, margin=margin, similarity=similarity, optimiser=optimiser)
        self.beta = beta
        self.anchor = {name: value.detach().clone() for name, value in self.adapted.items()}
        self.fisher = self._fisher(clean)

    def _fisher(self, clean: Iterable[Tensor]) -> dict[str, Tensor]:
        total = {name: torch.zeros_like(value) for name, value in self.anchor.items()}
        count = 0
        with torch.inference_mode(False), torch.enable_grad():
            for batch in clean:
                logits: Tensor = self.model(batch)
                F.cross_entropy(logits, logits.detach().argmax(1)).backward()  # type: ignore[no-untyped-call]
                for name, value in self.adapted.items():
                    if value.grad is not None:
                        total[name] += value.grad.detach() ** 2
                self.optimiser.zero_grad(set_to_none=True)
                count += 1
        if count == 0:
            raise InputError("no clean images for EATA; expected batches of images like those of training")
        return {name: value / count for name, value in total.items()}

    def loss(self, logits: Tensor) -> Tensor | None:
        """ETA's loss and the penalty."""
        loss = super().loss(logits)
        if loss is None:
            return None
        moved = (self.fisher[name] * (value - self.anchor[name]) ** 2 for name, value in self.adapted.items())
        return loss + self.beta * torch.stack([part.sum() for part in moved]).sum()


class RDumb(ETA):
    """ETA that goes back to the model as it was given every ``every`` batches. Press et al., NeurIPS 2023.

    1,000 in the paper, with batches of 64 images; the rest are ETA's settings for ImageNet, the margin of 0.4 too. The
    authors' code had another margin at first, which is called ``first-release``: see `MARGINS`. It is kept as a share
    of ln(classes): ln(C)/2 − 1 would leave out nearly every image where there are 10 classes, and all of them below 8.
    """

    name = "rdumb"
    memory: ClassVar[Mapping[str, Any]] = {"average": None, "steps": 0}

    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        every: int = 1000,
        margin: float | str = 0.4,
        similarity: float = 0.05,
        optimiser: Optimiser | None = None,
    ) -> None:
        if every < 1:
            raise InputError(f"a reset every {every} batches; expected at least 1")
        self.every = every
        super().__init__(model, margin=named_margin(margin), similarity=similarity, optimiser=optimiser)

    def adapt(self, batch: Tensor) -> Tensor:
        """Start afresh if it is time, predict, then take one step."""
        if self.steps and self.steps % self.every == 0:
            self.reset()
        self.steps += 1
        return super().adapt(batch)
