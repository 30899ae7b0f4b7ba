"""Mixed statistics of batch norm: norm-α, afresh for every batch, and norm-EMA, which remembers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.studies.adaptation.gradient_free import Unadapted
from blemish.studies.adaptation.norm import batch_norm_layers, with_batch_statistics


class NormAlpha(Unadapted):
    """Statistics of training with a little of the batch's: μ = (1 − α) μ_training + α μ_batch, and so the variance.

    The mixture is Schneider et al.'s (NeurIPS 2020). α = 0.1 for every data set is the setting of the common repository
    of test-time adaptation (Döbler et al.), which runs it on batches of one image. There the variance of a
    batch is ``unbiased`` (n − 1), and only 2-d batch norm is replaced; here it is every batch norm. Nothing is kept
    between batches. Needs batch norm.
    """

    name = "norm_alpha"

    def __init__(self, model: nn.Module, *, alpha: float = 0.1, unbiased: bool = True) -> None:
        if not 0 <= alpha <= 1:
            raise InputError(f"alpha {alpha:g} for {self.name}; expected a share in 0 … 1")
        self.model = with_batch_statistics(model, alpha=alpha, unbiased=unbiased, method=self.name)


class NormEMA(Unadapted):
    """Statistics that follow the stream: μ ← (1 − m) μ + m μ_batch, and so the variance, then predict by them.

    As in the common repository of test-time adaptation (Döbler et al.): a first pass moves the statistics of
    every batch norm layer, which normalises by those of the batch meanwhile; a second one predicts by the moved ones.
    The variance of a batch is the unbiased one (n − 1). ``momentum`` m is by default each layer's own, 0.1 where
    nothing else was chosen. Dropout is off in both passes; there, it is on in the first. Needs batch norm.
    """

    name = "norm_ema"
    parts = ("model",)

    def __init__(self, model: nn.Module, *, momentum: float | None = None) -> None:
        if momentum is not None and not 0 <= momentum <= 1:
            raise InputError(f"momentum {momentum:g} for {self.name}; expected a share in 0 … 1")
        super().__init__(model)
        self._layers = batch_norm_layers(self.model, method=self.name)
        for layer in self._layers:
            layer.momentum = layer.momentum if momentum is None else momentum

    def adapt(self, batch: Tensor) -> Tensor:
        """Move the statistics, then predict."""
        try:
            with torch.inference_mode(False), torch.no_grad():
                for layer in self._layers:
                    layer.train()
                self.model(batch)
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            shape = tuple(batch.shape)
            raise InputError(
                f"{self.name}: a batch of shape {shape} has no statistics; expected more images"
            ) from error
        finally:
            self.model.eval()
        return self._plain(batch)
