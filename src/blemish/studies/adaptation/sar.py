"""SAR: entropy minimisation over sure images, towards flat minima, with a way back out of collapse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Gradient, Optimiser, entropy
from blemish.studies.adaptation.norm import UnsuitedError, norm_parameters

_LAST_STAGE = ("layer4", "blocks.9", "blocks.10", "blocks.11")
_KEPT = 0.9


def before_the_last_stage(model: nn.Module, *, method: str) -> dict[str, nn.Parameter]:
    """Scales and shifts of normalisation layers but those of the last stage, by the rule of the released code.

    The rule goes by names: layers are left out whose name contains ``layer4`` (ResNets) or ``blocks.9``, ``blocks.10``
    or ``blocks.11`` (timm's ViT-B), and the one at the end that is called ``norm``. In a network with other names all
    normalisation layers remain. A model in which none does is refused.
    """
    parameters = {}
    for name, value in norm_parameters(model, method=method).items():
        layer = name.removeprefix("network.").rpartition(".")[0]
        if layer != "norm" and not any(part in layer for part in _LAST_STAGE):
            parameters[name] = value
    if not parameters:
        raise UnsuitedError(method, "adapts the", "scales and shifts of normalisation layers before its end", model)
    return parameters


class SAR(Gradient):
    """Sharpness-aware and reliable entropy minimisation. Niu et al., ICLR 2023.

    Of a batch, the images S₁ with entropy H < E₀ = ``margin`` · ln(classes) are chosen; g is the gradient of their mean
    entropy. At θ + ε, ε = ``radius`` · g / ‖g‖, the same images are predicted again, and those of S₁ chosen whose
    entropy is still below E₀. The gradient of their mean entropy L there is the one by which θ takes a step of SGD.
    Where nothing is chosen it is zero, and momentum alone moves the weights. Predictions are those before the step.

    Recovery: e ← 0.9 e + 0.1 L (at first L; unchanged where nothing is chosen). Once e < ``recover`` the model and the
    optimiser go back to their start, and e to none. In the authors' code e keeps its value instead, so that the model
    is reset at every batch until e has risen again: that is ``keep_average``.

    Settings: margin 0.4, radius 0.05, recover 0.2, momentum 0.9 (authors' code). Rate 0.00025 for a ResNet-50 and
    batches of 64; the authors have 0.001 for ViT-B, Döbler et al.'s repository for ViT, Swin and CIFAR. For a batch of
    B images the authors have 0.00025 · 2 B / 64 below 32, 0.001 · B / 64 for ViT-B, and twice that for single images;
    here a rate stays what it is, unless it is varied. The authors' network is in training mode; here dropout is off.
    Which scales and shifts change says `before_the_last_stage`. Needs any normalisation layers, and is made for group
    and layer norm.
    """

    name = "sar"
    memory: ClassVar[Mapping[str, Any]] = {"average": None}

    average: float | None

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.4,
        radius: float = 0.05,
        recover: float = 0.2,
        keep_average: bool = False,
        optimiser: Optimiser | None = None,
    ) -> None:
        if not (margin > 0 and radius >= 0 and recover >= 0):
            given = f"margin {margin:g}, radius {radius:g} and recover {recover:g} for SAR"
            raise InputError(f"{given}; expected a positive margin, and 0 or more for the others")
        self.margin, self.radius, self.recover, self.keep_average = margin, radius, recover, keep_average
        super().__init__(model, optimiser=optimiser or Optimiser())

    def _chosen(self) -> dict[str, nn.Parameter]:
        return before_the_last_stage(self.model, method=self.name)

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict, look at the gradient a little uphill, take one step, and recover if need be."""
        with torch.inference_mode(False), torch.enable_grad():
            logits: Tensor = self.model(batch)
            limit = self.margin * math.log(logits.shape[1])
            uncertainty = entropy(logits)
            chosen = uncertainty.detach() < limit
            _mean(uncertainty, chosen).backward()  # type: ignore[no-untyped-call]
            before = self._climb()
            uncertainty = entropy(self.model(batch))
            chosen &= uncertainty.detach() < limit
            loss = _mean(uncertainty, chosen)
            loss.backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                for value, old in before:
                    value.copy_(old)
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        if bool(chosen.any()):
            last = float(loss.detach())
            self.average = last if self.average is None else _KEPT * self.average + (1 - _KEPT) * last
        if self.average is not None and self.average < self.recover:
            kept = self.average if self.keep_average else None
            self.reset()
            self.average = kept
        return logits.detach()

    @torch.no_grad()
    def _climb(self) -> list[tuple[nn.Parameter, Tensor]]:
        """Go to θ + ε; the parameters with their values before."""
        used = [(value, value.grad) for value in self.adapted.values() if value.grad is not None]
        norm = torch.stack([gradient.norm() for _, gradient in used]).norm() + 1e-12
        before = [(value, value.detach().clone()) for value, _ in used]
        for value, gradient in used:
            value.add_(gradient * (self.radius / norm))
        self.optimiser.zero_grad(set_to_none=True)
        return before


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen ones; 0, with gradients of 0, where there are none."""
    return values[chosen].sum() / chosen.sum().clamp(min=1)
