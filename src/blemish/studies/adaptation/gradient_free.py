"""Methods without gradients: no adaptation at all, and the statistics of the batch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Changing
from blemish.studies.adaptation.norm import BatchStatistics, with_batch_statistics


class Unadapted(Changing):
    """The model as it is: what every method is compared with."""

    name = "none"

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model).eval()
        self._begin()

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict."""
        return self._plain(batch)

    def predict(self, batch: Tensor) -> Tensor:
        """The logits of a batch by the network as it is now."""
        return self._plain(batch)

    def _plain(self, batch: Tensor) -> Tensor:
        with torch.no_grad():
            logits: Tensor = self.model(batch)
        if not bool(logits.isfinite().all()):
            raise InputError(f"method {self.name}: the model gave scores that are not numbers; expected finite ones")
        return logits


class BatchNorm(Unadapted):
    """Statistics of the batch, mixed with those of training: μ = (1 − α) μ_training + α μ_batch, and so the variance.

    Schneider et al., NeurIPS 2020, where α = n / (N + n) for batches of n images and a ``prior`` of N
    pseudo-images; Nado et al., 2020, use α = 1, the default.
    """

    name = "bn"

    def __init__(self, model: nn.Module, *, alpha: float = 1.0, prior: int | None = None) -> None:
        if not 0 <= alpha <= 1:
            raise InputError(f"alpha {alpha:g} for batch statistics; expected a share in 0 … 1")
        if prior is not None and (prior < 0 or alpha != 1.0):
            raise InputError(f"prior {prior} with alpha {alpha:g}; expected a prior of 0 or more, or alpha, not both")
        self.prior = prior
        self.model = with_batch_statistics(model, alpha=alpha if not prior else 0.5, method=self.name)

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict by the mixed statistics."""
        if self.prior:
            for layer in self.model.modules():
                if isinstance(layer, BatchStatistics):
                    layer.alpha = len(batch) / (self.prior + len(batch))
        return self._plain(batch)
