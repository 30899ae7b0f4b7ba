"""RMT: a mean teacher by symmetric cross entropy, and features that stay near prototypes of the source."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Gradient, Optimiser, follow, predicted
from blemish.studies.adaptation.features import linear_end, noted_features
from blemish.studies.adaptation.norm import with_batch_statistics
from blemish.studies.adaptation.roid import symmetric_cross_entropy

_WHITE = 255.0
_WIDTH = 128


class RMT(Gradient):
    """Robust mean teacher, its source-free variant. Döbler et al., CVPR 2023.

    All parameters change. With student f, teacher t, a random view x′ of each image and
    SCE(a, b) = −½ Σ p_b ln p_a − ½ Σ p_a ln p_b, the student minimises the mean of ½ SCE(f(x), t(x)) + ½ SCE(f(x′),
    t(x)) and ``weight`` times a contrastive term (`contrast`) over three projected features of each image: its own,
    that of its view, and the prototype of the source that is nearest to its own by cosine. Then the teacher follows,
    θ' ← ``decay`` θ' + (1 − ``decay``) θ. The prediction is the sum of both networks' logits, before the step. Both use
    the statistics of the batch. The projector (linear, ReLU, linear, 128 wide) learns along.

    The paper's full method also trains on labelled source images and warms up on 50,000 of them, which is not here, as
    no such images come with a network. Prototypes are mean features of ``clean`` images under the network's own
    classes; there, under labels.

    Settings of the authors' code: decay 0.999, temperature 0.1, weight 1; ImageNet, SGD with Nesterov's momentum 0.9,
    rate 0.01; CIFAR, Adam, rate 0.001, batches of 200. Needs a linear head.
    """

    name = "rmt"
    parts = ("model", "optimiser", "teacher", "projector")
    memory: ClassVar[Mapping[str, Any]] = {"steps": 0}

    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        clean: Iterable[Tensor],
        decay: float = 0.999,
        temperature: float = 0.1,
        weight: float = 1.0,
        optimiser: Optimiser | None = None,
        seed: int = 0,
        sample: Tensor | None = None,
    ) -> None:
        if not (0 <= decay <= 1 and temperature > 0 and weight >= 0):
            given = f"decay {decay:g}, temperature {temperature:g} and weight {weight:g} for RMT"
            raise InputError(f"{given}; expected a share in 0 … 1, a positive number, and 0 or more")
        self.decay, self.temperature, self.weight, self.seed = decay, temperature, weight, seed
        self.model = with_batch_statistics(model)
        batches = list(clean)
        if not batches:
            raise InputError("no clean images for RMT; expected batches of images like those of training")
        plain = copy.deepcopy(model).eval()
        self._end = linear_end(plain, batches[0] if sample is None else sample, method=self.name)
        self.prototypes = _prototypes(plain, self._end, batches)
        self.projector = _projector(self.prototypes.shape[1], seed).to(self.prototypes.device)
        own = {f"projector.{name}": value for name, value in self.projector.named_parameters()}
        self.adapted = dict(self.model.named_parameters()) | own
        self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        self._finish(optimiser or Optimiser(rate=0.01, nesterov=True))

    def adapt(self, batch: Tensor) -> Tensor:
        """The sum of both networks' logits; then the student learns, and the teacher follows."""
        with torch.inference_mode(False):
            rng = CounterRng(self.seed, torch.arange(len(batch)), f"rmt {self.steps}", batch.device)
            views = random_views(batch.to(torch.float32) / _WHITE, rng) * _WHITE
            with torch.no_grad():
                teacher: Tensor = self.teacher(batch)
            with torch.enable_grad(), noted_features(self.model, self._end) as features:
                student: Tensor = self.model(batch)
                other: Tensor = self.model(views)
                self.logits = student.detach()
                loss = (symmetric_cross_entropy(student, teacher) + symmetric_cross_entropy(other, teacher)).mean() / 2
                nearest = self.prototypes[_nearest(features[0].detach(), self.prototypes)]
                projected = [self.projector(each) for each in (nearest, *features)]
                self._step(loss + self.weight * contrast(torch.stack(projected, 1), self.temperature))
            follow(self.teacher, self.model, 1 - self.decay)
        self.steps += 1
        return self.logits + teacher

    def predict(self, batch: Tensor) -> Tensor:
        """The sum of both networks' logits."""
        return predicted(self.model, batch) + predicted(self.teacher, batch)


def _prototypes(model: nn.Module, end: str, batches: Iterable[Tensor]) -> Tensor:
    """Mean features of each class that the network sees in clean images, (classes that there are, width)."""
    seen, labels = [], []
    with torch.inference_mode(False), torch.no_grad(), noted_features(model, end) as features:
        for batch in batches:
            labels.append(model(batch).argmax(1))
            seen.append(features.pop())
    whole, label = torch.cat(seen), torch.cat(labels)
    return torch.stack([whole[label == one].mean(0) for one in torch.unique(label)])


def _projector(width: int, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(width, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH))


def _nearest(features: Tensor, prototypes: Tensor) -> Tensor:
    return (F.normalize(features, dim=1) @ F.normalize(prototypes, dim=1).T).argmax(1)


def contrast(views: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss over (images, views, width): the other views of an image are its positives.

    For each of all anchors: − mean over positives of ln(exp(s / τ) / Σ exp(s / τ)), s being cosines and the sum over
    all others but the anchor itself; then the mean over anchors. Khosla et al., NeurIPS 2020.
    """
    count, each = views.shape[:2]
    flat = F.normalize(views.flatten(0, 1), dim=1)
    mine = torch.eye(len(flat), dtype=torch.bool, device=flat.device)
    scores = (flat @ flat.T / temperature).masked_fill(mine, -torch.inf)
    image = torch.arange(count, device=flat.device).repeat_interleave(each)
    positive = (image[:, None] == image[None]) & ~mine
    logs = scores.log_softmax(1).masked_fill(~positive, 0.0)
    return -(logs.sum(1) / (each - 1)).mean()
