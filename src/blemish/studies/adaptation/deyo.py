"""DeYO: entropy minimisation over images whose class depends on their shape, seen by shuffling their tiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.base import Gradient, Optimiser, entropy
from blemish.studies.adaptation.sar import before_the_last_stage


class DeYO(Gradient):
    """Destroy your object, then trust what depended on it. Lee et al., ICLR 2024.

    Images with entropy H below ``margin`` · ln(classes) are predicted again with their tiles shuffled (`shuffled`), and
    PLPD = p(y | image) − p(y | shuffled), where y is the class predicted for the image. Those with PLPD > ``drop`` are
    chosen. What is minimised is the mean of α H over them, α = exp(``weight_margin`` · ln(classes) − H) + exp(PLPD)
    being held fixed; where none is chosen nothing changes. Predictions are those before the step.

    Settings: margin 0.5, weight_margin 0.4, a grid of 4 × 4 tiles; SGD with momentum 0.9, rate 0.00025 for a ResNet-50
    and batches of 64 (authors' code). The authors' drop is 0.3 where one corruption comes at a time, 0.2 in wild
    streams and 0.5 for spurious correlations; 0.2, the default, is also that of Döbler et al.'s repository, from
    which Adam with rate 0.001 for CIFAR is. Which scales and shifts change says `before_the_last_stage`. Batch norm
    normalises shuffled images by their own statistics. Tiles are those of the images as they are given, before a
    network's own resizing. Released code can also shuffle pixels or hide the centre instead.
    Needs any normalisation layers.
    """

    name = "deyo"
    memory: ClassVar[Mapping[str, Any]] = {"steps": 0}

    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        margin: float = 0.5,
        weight_margin: float = 0.4,
        drop: float = 0.2,
        grid: int = 4,
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if not (margin > 0 and weight_margin > 0 and -1 <= drop < 1 and grid >= 1):
            given = f"margin {margin:g}, weight_margin {weight_margin:g}, drop {drop:g} and grid {grid} for DeYO"
            raise InputError(f"{given}; expected positive margins, a drop in −1 … 1 and a grid of 1 or more")
        self.margin, self.weight_margin, self.drop, self.grid, self.seed = margin, weight_margin, drop, grid, seed
        super().__init__(model, optimiser=optimiser or Optimiser())

    def _chosen(self) -> dict[str, nn.Parameter]:
        return before_the_last_stage(self.model, method=self.name)

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict, choose by shuffled images, and take one step."""
        with torch.inference_mode(False), torch.enable_grad():
            logits: Tensor = self.model(batch)
            self._step(self._weighted(batch, logits))
        self.steps += 1
        return logits.detach()

    def _weighted(self, batch: Tensor, logits: Tensor) -> Tensor | None:
        """The mean weighted entropy of the chosen images; none where there are none."""
        scale = math.log(logits.shape[1])
        sure = (entropy(logits.detach()) < self.margin * scale).nonzero()[:, 0]
        if len(sure) == 0:
            return None
        uncertainty = entropy(logits[sure])
        with torch.no_grad():
            rng = CounterRng(self.seed, sure.cpu(), f"deyo {self.steps}", batch.device)
            destroyed = self.model(shuffled(batch[sure], self.grid, rng)).softmax(1)
            p, label = logits.detach()[sure].softmax(1).max(1)
            fall = p - destroyed.gather(1, label[:, None])[:, 0]
            weight = torch.exp(self.weight_margin * scale - uncertainty) + torch.exp(fall)
        chosen = fall > self.drop
        return (weight * uncertainty)[chosen].mean() if bool(chosen.any()) else None


def shuffled(images: Tensor, grid: int, rng: CounterRng) -> Tensor:
    """Images whose ``grid`` × ``grid`` tiles have changed places, each image by a permutation of its own.

    Sides that are no multiple of the grid are resized (bilinear) to the next lower one, and back afterwards.
    """
    count, channels, height, width = images.shape
    if min(height, width) < grid:
        raise InputError(f"images of {height} × {width} pixels; expected at least {grid} × {grid} for as many tiles")
    rows, columns = height // grid, width // grid
    fits = (rows * grid, columns * grid) == (height, width)
    whole = images if fits else _resized(images.to(torch.float32), (rows * grid, columns * grid))
    tiles = whole.view(count, channels, grid, rows, grid, columns).permute(0, 2, 4, 1, 3, 5)
    tiles = tiles.reshape(count, grid * grid, channels, rows, columns)
    order = rng.permutations("tiles", grid * grid).to(images.device)
    tiles = tiles[torch.arange(count, device=images.device)[:, None], order]
    mixed = tiles.view(count, grid, grid, channels, rows, columns).permute(0, 3, 1, 4, 2, 5).reshape(whole.shape)
    return mixed if fits else _resized(mixed, (height, width))


def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(images, size, mode="bilinear", align_corners=False)
