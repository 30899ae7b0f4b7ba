"""Training for overlap: half of every batch corrupted on the fly, on the training device, several networks at once.

Everything random is a function of the seed, the epoch and the image, so training continues after a stop as if there
had been none, and a network trained beside others sees exactly what it would see alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng, hash_id
from blemish.corruptions.base import Corruption
from blemish.corruptions.compose import random_severity
from blemish.corruptions.severity import MAX_SEVERITY

# The usual normalisation of ImageNet's pixels; networks have to be measured with what they were trained with.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

# Images that are corrupted in one call: enough to fill a device, few enough to fit beside a network.
_BLOCK = {"cpu": 2**22, "cuda": 2**29}


@dataclass(frozen=True)
class Schedule:
    """How a network is trained; the defaults are those of the ImageNet-NOC paper.

    The learning rate is multiplied by ``factor`` at each of ``milestones``, given as fractions of all epochs (a half
    and three quarters are the paper's epochs 20 and 30 of 40). ``corrupted`` is the part of each batch that is
    corrupted, at a severity drawn from ``severities`` for each image.
    """

    epochs: int = 40
    batch: int = 256
    rate: float = 0.1
    milestones: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1
    momentum: float = 0.9
    decay: float = 1e-4
    corrupted: float = 0.5
    severities: tuple[float, float] = (1.0, 5.0)
    flip: bool = True

    def __post_init__(self) -> None:
        """Refuse settings that train nothing."""
        if self.epochs < 1 or self.batch < 2:
            raise InputError(f"{self.epochs} epochs of batches of {self.batch}; expected at least 1 and 2")
        if not self.rate > 0:
            raise InputError(f"learning rate {self.rate:g}; expected a positive number")
        if not 0 <= self.corrupted <= 1:
            raise InputError(f"{self.corrupted:g} of each batch corrupted; expected a part in 0 … 1")

    def rate_at(self, epoch: int) -> float:
        """The learning rate during an epoch, counted from 0.

        >>> [Schedule().rate_at(epoch) for epoch in (0, 19, 20, 30)]
        [0.1, 0.1, 0.01, 0.001]
        """
        passed = sum(epoch >= milestone * self.epochs for milestone in self.milestones)
        return float(f"{self.rate * self.factor**passed:.12g}")


@dataclass(frozen=True)
class Corruptor:
    """What the corrupted part of a network's batches goes through: nothing, a corruption, or one of several by lot."""

    corruptions: tuple[Corruption, ...] = ()
    severities: tuple[float, float] = (1.0, 5.0)
    preset: str | None = None

    def __call__(self, images: Tensor, *, seed: int, ids: Tensor) -> Tensor:
        """The uint8 batch, corrupted by the ids."""
        if not self.corruptions:
            return images
        choice = np.zeros(len(images), dtype=np.int64)
        if len(self.corruptions) > 1:
            ranks = CounterRng(seed, ids, "training choice").uniforms("which", 1)[:, 0].double().numpy()
            choice = np.minimum((ranks * len(self.corruptions)).astype(np.int64), len(self.corruptions) - 1)
        out = images.clone()
        for number, corruption in enumerate(self.corruptions):
            rows = torch.from_numpy(np.flatnonzero(choice == number))
            if len(rows):
                out[rows.to(images.device)] = self._one(corruption, images, rows, seed, ids)
        return out

    def _one(self, corruption: Corruption, images: Tensor, rows: Tensor, seed: int, ids: Tensor) -> Tensor:
        part = images[rows.to(images.device)]
        ranged = random_severity(corruption, *self.severities) if corruption.only_severity is None else corruption
        return ranged(part, severity=MAX_SEVERITY, seed=seed, ids=ids[rows], preset=self.preset)


@dataclass
class Trainer:
    """Trains a network of one or several copies, each with its own corruptor, epoch by epoch.

    ``images`` is uint8 (N, 3, H, W) on any device, ``labels`` has N classes. A network of several copies takes their
    images side by side (see `blemish.models.resnet`).
    """

    net: nn.Module
    corruptors: Sequence[Corruptor]
    images: Tensor
    labels: Tensor
    schedule: Schedule
    device: torch.device
    seed: int = 0

    def __post_init__(self) -> None:
        """Put the network on the device and make its optimiser."""
        self.net.to(self.device)
        self.optimiser = torch.optim.SGD(
            self.net.parameters(),
            lr=self.schedule.rate,
            momentum=self.schedule.momentum,
            weight_decay=self.schedule.decay,
        )
        self.epoch = 0

    def state(self) -> dict[str, Any]:
        """Everything that continuing needs."""
        return {"net": self.net.state_dict(), "optimiser": self.optimiser.state_dict(), "epoch": self.epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.net.load_state_dict(state["net"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.epoch = int(state["epoch"])

    def run_epoch(self) -> float:
        """Train for one epoch; the mean loss of a copy, as a number to watch."""
        self.net.train()
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate_at(self.epoch)
        total, steps = torch.zeros((), device=self.device), 0
        for values, labels in self._batches():
            total += self._step(values, labels)
            steps += 1
        self.epoch += 1
        return float(total) / steps

    def _step(self, values: Tensor, labels: Tensor) -> Tensor:
        copies = len(self.corruptors)
        with _mixed_precision(self.device):
            scores = self.net(values).view(len(labels), copies, -1)
            # The sum over copies, so that each has the gradients it would have alone.
            loss = functional.cross_entropy(scores.flatten(0, 1), labels.repeat_interleave(copies)) * copies
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return loss.detach() / copies

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Normalised batches (B, copies · 3, H, W), made a block of batches at a time."""
        size = self.schedule.batch
        order = CounterRng(self._epoch_seed("order"), torch.zeros(1, dtype=torch.int64)).permutations(
            "order", len(self.images)
        )[0]
        # A batch of one cannot be normalised over the batch.
        count = len(order) - (len(order) % size == 1)
        per_batch = size * self.images[0].numel() * len(self.corruptors)
        block = size * max(1, _BLOCK.get(self.device.type, _BLOCK["cpu"]) // per_batch)
        mean = torch.tensor(MEAN, device=self.device).view(1, -1, 1, 1).mul(255)
        std = torch.tensor(STD, device=self.device).view(1, -1, 1, 1).mul(255)
        for start in range(0, count, block):
            rows = order[start : min(count, start + block)]
            made = self._block(rows, size)
            labels = self.labels[rows.to(self.labels.device)].to(self.device)
            for first in range(0, len(rows), size):
                part = made[first : first + size]
                values = ((part.float() - mean) / std).flatten(1, 2)
                yield values, labels[first : first + size]

    def _block(self, rows: Tensor, size: int) -> Tensor:
        """Images of some batches for every copy, uint8 (B, copies, 3, H, W); the first part of each batch is clean."""
        images = self.images[rows.to(self.images.device)].to(self.device, non_blocking=True)
        if self.schedule.flip:
            ranks = CounterRng(self._epoch_seed("flip"), rows, "training flip").uniforms("flip", 1)[:, 0]
            flipped = (ranks < 0.5).to(self.device).view(-1, 1, 1, 1)
            images = torch.where(flipped, images.flip(-1), images)
        in_batch = torch.arange(len(rows)) % size
        chosen = torch.nonzero(in_batch >= round(size * (1 - self.schedule.corrupted)))[:, 0]
        out = images[:, None].repeat(1, len(self.corruptors), 1, 1, 1)
        corrupted = chosen.to(self.device)
        seed = self._epoch_seed("corruption")
        for number, corruptor in enumerate(self.corruptors):
            if corruptor.corruptions and len(chosen):
                out[corrupted, number] = corruptor(images[corrupted], seed=seed, ids=rows[chosen])
        return out

    def _epoch_seed(self, what: str) -> int:
        return hash_id(f"training {what} {self.seed} {self.epoch}") % 2**63


def _mixed_precision(device: torch.device) -> AbstractContextManager[object]:
    if device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()
