"""What can be seen of a batch of predictions without labels, as single numbers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.studies.adaptation.base import entropy

_TEMPERATURE = 0.05


def concentration(logits: Tensor) -> Tensor:
    """The entropy of the softmax of the mean logits, in nats: low where a model says one class of all images.

    Lim et al., ICLR 2026 (ASR), who reset by it; they call its negative the concentration.

    The mean of these two is undecided, and its entropy ln 2:

    >>> round(float(concentration(torch.tensor([[5.0, 0.0], [0.0, 5.0]]))), 4)
    0.6931
    """
    return entropy(logits.mean(0, keepdim=True))[0]


def density(logits: Tensor) -> Tensor:
    """Soft neighbourhood density (Saito et al., ICCV 2021): how evenly predictions have others near them.

    The mean entropy of softmax(similarities / 0.05) over the other images of a batch, where predictions have length 1.
    High is held to be good; one cluster of everything is high, too. A single image has none, 0.
    """
    if len(logits) < 2:
        return torch.zeros((), device=logits.device)
    unit = F.normalize(logits.softmax(1), dim=1)
    others = (unit @ unit.T / _TEMPERATURE).fill_diagonal_(-torch.inf).softmax(1)
    return -(others * others.clamp_min(1e-12).log()).sum(1).mean()
