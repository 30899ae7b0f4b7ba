"""CoTTA: a student that learns from the mean of its own past, over all weights, and forgets some of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Gradient, Optimiser, follow, predicted
from blemish.studies.adaptation.norm import UnsuitedError, grouped, with_batch_statistics

_WHITE = 255.0


class CoTTA(Gradient):
    """Continual test-time adaptation. Wang et al., CVPR 2022. All parameters change.

    The teacher is a moving average of the student, θ' ← ``decay`` θ' + (1 − ``decay``) θ, and gives the
    predictions. Where the model as given is less sure of the batch than ``confident`` on average, the teacher's logits
    are averaged over ``views`` random views. The student minimises −Σ p' log p, the paper's equation, or where
    ``symmetric`` the mean of −Σ p' log p and −Σ p log p'. Then each weight goes back to its value before all adaptation
    with probability ``restore``.

    Settings of the authors' code: decay 0.999, 32 views; ImageNet, SGD with Nesterov's momentum 0.9, rate 0.01, restore
    0.001, confident 0.1, symmetric; CIFAR-10, Adam, rate 0.001, restore 0.01, confident 0.92 (CIFAR-100: 0.72), not
    symmetric. Images are on the scale 0 … 255. Views of a batch are predicted in parts of at most ``room``
    images; each view has its own batch statistics.
    """

    name = "cotta"
    parts = ("model", "optimiser", "teacher")
    memory: ClassVar[Mapping[str, Any]] = {"steps": 0}

    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        decay: float = 0.999,
        views: int = 32,
        confident: float = 0.1,
        restore: float = 0.001,
        symmetric: bool = True,
        optimiser: Optimiser | None = None,
        seed: int = 0,
        room: int = 8192,
    ) -> None:
        for setting, share in (("decay", decay), ("confident", confident), ("restore", restore)):
            if not 0 <= share <= 1:
                raise InputError(f"{setting} {share:g} for CoTTA; expected a share in 0 … 1")
        if views < 1:
            raise InputError(f"{views} views for CoTTA; expected at least 1")
        self.decay, self.views, self.confident, self.restore = decay, views, confident, restore
        self.symmetric = symmetric
        self.seed, self.room = seed, room
        self.model = with_batch_statistics(model)
        self.adapted = dict(self.model.named_parameters())
        if not self.adapted:
            raise UnsuitedError(self.name, "adapts all", "parameters", model)
        self.anchor = copy.deepcopy(self.model).requires_grad_(False)
        self.teacher = copy.deepcopy(self.anchor)
        self._finish(optimiser or Optimiser(rate=0.01, nesterov=True))

    def adapt(self, batch: Tensor) -> Tensor:
        """The teacher's logits; then the student learns them, the teacher follows, and some weights are restored."""
        with torch.inference_mode(False):
            with torch.no_grad():
                sure = float(self.anchor(batch).softmax(1).amax(1).mean())
                logits: Tensor = self.teacher(batch) if sure >= self.confident else self._averaged(batch)
            with torch.enable_grad():
                self._step(self._distance(self.model(batch), logits))
            with torch.no_grad():
                follow(self.teacher, self.model, 1 - self.decay)
                self._restore_some()
        self.steps += 1
        return logits

    def predict(self, batch: Tensor) -> Tensor:
        """The teacher's logits, without views."""
        return predicted(self.teacher, batch)

    def _distance(self, student: Tensor, teacher: Tensor) -> Tensor:
        """The mean cross entropy of the student under the teacher, or of both ways."""
        loss = -(teacher.softmax(1) * student.log_softmax(1)).sum(1).mean()
        if self.symmetric:
            loss = (loss - (student.softmax(1) * teacher.log_softmax(1)).sum(1).mean()) / 2
        return loss

    def _averaged(self, batch: Tensor) -> Tensor:
        """The mean of the teacher's logits over random views."""
        unit = batch.to(torch.float32) / _WHITE
        total: Tensor | float = 0.0
        at_once = max(1, self.room // len(batch))
        for first in range(0, self.views, at_once):
            count = min(at_once, self.views - first)
            # Image i of view v stands at i · count + v: views are the groups of `BatchStatistics`.
            number = torch.arange(len(batch))[:, None] * self.views + torch.arange(first, first + count)
            rng = CounterRng(self.seed, number.flatten(), f"cotta {self.steps}", batch.device)
            views = random_views(unit.repeat_interleave(count, 0), rng)
            with grouped(self.teacher, count):
                logits: Tensor = self.teacher(views * _WHITE)
            total = total + logits.view(len(batch), count, -1).sum(1)
        assert isinstance(total, Tensor)
        return total / self.views

    def _restore_some(self) -> None:
        sizes = [value.numel() for value in self.adapted.values()]
        device = next(iter(self.adapted.values())).device
        # One draw for all weights: on a GPU, many small ones would take longer than all the rest.
        rank = CounterRng(self.seed, torch.tensor([self.steps]), "cotta", device).uniforms("restore", sum(sizes))[0]
        for (name, value), part in zip(self.adapted.items(), torch.split(rank < self.restore, sizes), strict=True):
            value.copy_(torch.where(part.view(value.shape), self._start["model"][name], value))
