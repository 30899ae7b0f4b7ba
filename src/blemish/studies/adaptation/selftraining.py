"""Tent, robust pseudo-labels and conjugate pseudo-labels: one loss each, over scales and shifts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Gradient, Optimiser, entropy


class Tent(Gradient):
    """Minimise the entropy of the predictions, H = −Σ p log p. Wang et al., ICLR 2021.

    ImageNet: SGD with momentum 0.9, rate 0.00025, batches of 64 (paper, and Press et al., NeurIPS 2023); CIFAR-10:
    Adam, rate 0.001, batches of 200 (the authors' code).
    """

    name = "tent"

    def __init__(self, model: nn.Module, *, optimiser: Optimiser | None = None) -> None:
        super().__init__(model, optimiser=optimiser or Optimiser())

    def loss(self, logits: Tensor) -> Tensor | None:
        """The mean entropy."""
        return entropy(logits).mean()


class RPL(Gradient):
    """Minimise the generalised cross entropy of the model's own labels, (1 − p_y^q) / q with y = argmax p.

    Rusak et al., TMLR 2022 ("If your data distribution shifts, use self-learning"), q = 0.8; the loss is
    Zhang and Sabuncu's (NeurIPS 2018). SGD with momentum 0.9 and rate 0.0005 are those of the CCC comparison (Press et
    al., NeurIPS 2023); the authors' own example has rate 0.00075 without momentum, for several epochs.
    """

    name = "rpl"

    def __init__(self, model: nn.Module, *, q: float = 0.8, optimiser: Optimiser | None = None) -> None:
        if not 0 < q <= 1:
            raise InputError(f"q = {q:g} of the generalised cross entropy; expected 0 < q ≤ 1")
        self.q = q
        super().__init__(model, optimiser=optimiser or Optimiser(rate=0.0005))

    def loss(self, logits: Tensor) -> Tensor | None:
        """The mean generalised cross entropy."""
        return ((1 - logits.softmax(1).amax(1) ** self.q) / self.q).mean()


class CPL(Gradient):
    """Minimise the training loss against its own conjugate labels. Goyal et al., NeurIPS 2022.

    For a training loss f(h) − yᵀg(h) the conjugate label y solves ∇f(h) = ∇g(h)ᵀ y. For PolyLoss with ε, f is
    log-sum-exp and g(h) = h − ε (1 − softmax(h)); see `conjugate_labels`. With ε = 0, cross entropy, the label is the
    prediction itself and the loss Tent's: strictly, ε is that of the model's own training. ε = 8 and SGD with momentum
    0.9 and rate 0.001 are those of the CCC comparison (Press et al., NeurIPS 2023), whose network was not trained by
    PolyLoss. The authors' code for CIFAR-10: ε = 6, SGD with Nesterov's momentum 0.9, rate 0.001, temperature 1,
    batches of 200.
    """

    name = "cpl"

    def __init__(self, model: nn.Module, *, epsilon: float = 8.0, optimiser: Optimiser | None = None) -> None:
        if epsilon < 0:
            raise InputError(f"epsilon {epsilon:g} of PolyLoss; expected 0 or more")
        self.epsilon = epsilon
        super().__init__(model, optimiser=optimiser or Optimiser(rate=0.001))

    def loss(self, logits: Tensor) -> Tensor | None:
        """The mean of f(h) − yᵀg(h)."""
        p = logits.softmax(1)
        y = conjugate_labels(p, self.epsilon)
        return (torch.logsumexp(logits, 1) - (y * (logits - self.epsilon * (1 - p))).sum(1)).mean()


def conjugate_labels(p: Tensor, epsilon: float) -> Tensor:
    """The solution y of (I + ε diag(p) − ε p pᵀ) y = p, for each row of (B, classes).

    A diagonal matrix less one of rank one: by Sherman and Morrison y = D⁻¹p / (1 − ε pᵀD⁻¹p) with D = I + ε diag(p),
    in linear time rather than by solving a system for each image.
    """
    scaled = p / (1 + epsilon * p)
    # 1 − ε Σ p² / (1 + ε p) = Σ p / (1 + ε p), as the p sum to one: no difference of nearly equal numbers.
    return scaled / scaled.sum(1, keepdim=True)
