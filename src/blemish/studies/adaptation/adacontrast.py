"""AdaContrast: labels that neighbours agree on, and features that tell images apart."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import mirrored, strong_views
from blemish.studies.adaptation.base import Gradient, follow
from blemish.studies.adaptation.features import linear_end, noted_features
from blemish.studies.adaptation.norm import UnsuitedError

_WHITE = 255.0


class AdaContrast(Gradient):
    """Contrastive test-time adaptation. Chen et al., CVPR 2022, online as in Döbler et al.'s repository.

    All parameters change. Of each image there are a weak view, which may be mirrored, and two strong ones
    (`strong_views`). With features z before the linear head, the label ŷ of an image is the student's of the weak view;
    once ``first`` 1,024 images were seen, it is the class of the mean p of those ``neighbours`` items of a bank that
    are nearest to the weak view's z by cosine. Over a batch the student minimises CE(p(strong), ŷ) + InfoNCE +
    Σ p̄ ln p̄, p̄ being the mean p(strong). InfoNCE (`contrast_with_queue`) tells the teacher's features of the other
    strong view from those of a queue, without those of equal label. The teacher follows before it looks,
    θ' ← ``decay`` θ' + (1 − ``decay``) θ. After the step the bank gets the teacher's z and p of the weak views, and the
    prediction is the student's of the plain images, in evaluation mode. Bank and queue hold the last ``room`` images
    each; the queue begins with random features and labels.

    Settings of the repository for all data sets: room 16,384, neighbours 10, temperature 0.07, decay 0.999; SGD with
    Nesterov's momentum 0.9, rate 0.0002 and weight decay 0.0001. Batch norm learns by the statistics of the batch,
    while its running ones follow, by which it predicts; dropout, which is on there, is off. The released code labels
    the newest keys before it leaves out those of equal label, but compares with the features that they replace; here
    the queue moves after the step. Needs a linear head.
    """

    name = "adacontrast"
    parts = ("model", "optimiser", "teacher")
    memory: ClassVar[Mapping[str, Any]] = {"images": 0, "bank": {}, "queue": {}}
    images: int
    bank: dict[str, Tensor]
    queue: dict[str, Tensor]

    def __init__(
        self,
        model: nn.Module,
        *,
        room: int = 16_384,
        neighbours: int = 10,
        first: int = 1024,
        temperature: float = 0.07,
        decay: float = 0.999,
        rate: float = 0.0002,
        weight_decay: float = 0.0001,
        seed: int = 0,
        sample: Tensor | None = None,
    ) -> None:
        if min(room, neighbours, first) < 1 or not (
            temperature > 0 and 0 <= decay <= 1 and rate > 0 and weight_decay >= 0
        ):
            given = f"room {room}, neighbours {neighbours}, temperature {temperature:g}, decay {decay:g}, rate {rate:g}"
            raise InputError(f"{given} for AdaContrast; expected positive numbers, and a decay in 0 … 1")
        self.room, self.neighbours, self.first, self.seed = room, neighbours, first, seed
        self.temperature, self.decay = temperature, decay
        self.model = copy.deepcopy(model).eval()
        if not any(isinstance(layer, nn.Linear) for layer in self.model.modules()):
            raise UnsuitedError(self.name, "needs a", "linear layer at its end", model)
        self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        self._end = None if sample is None else linear_end(self.model, sample, method=self.name)
        self.optimiser = torch.optim.SGD(
            self.model.requires_grad_(True).parameters(), rate, momentum=0.9, nesterov=True, weight_decay=weight_decay
        )
        self.adapted = dict(self.model.named_parameters())
        self._begin()

    def adapt(self, batch: Tensor) -> Tensor:
        """Learn, then predict."""
        with torch.inference_mode(False):
            if self._end is None:
                self._end = linear_end(self.model, batch, method=self.name)
            rng = CounterRng(self.seed, self.images + torch.arange(len(batch)), self.name, batch.device)
            unit = batch.to(torch.float32) / _WHITE
            weak = mirrored(unit, rng.scoped("weak")) * _WHITE
            strong = [strong_views(unit, rng.scoped(which)) * _WHITE for which in ("query", "key")]
            with torch.no_grad():
                features, logits = self._seen(self.model, weak)
                if not self.queue:
                    self.queue = self._first(features, logits.shape[1])
                labels = self._labels(features, logits)
            with torch.enable_grad():
                features, logits = self._seen(self.model, strong[0])
                follow(self.teacher, self.model, 1 - self.decay)
                with torch.no_grad():
                    keys = F.normalize(self._seen(self.teacher, strong[1])[0], dim=1)
                loss = F.cross_entropy(logits, labels)
                loss = loss + contrast_with_queue(features, keys, labels, self.queue, self.temperature)
                average = logits.softmax(1).mean(0)
                self._step(loss + (average * (average + 1e-8).log()).sum())
            with torch.no_grad():
                features, logits = self._seen(self.teacher, weak)
            self.bank = self._newest(self.bank, {"features": F.normalize(features, dim=1), "p": logits.softmax(1)})
            self.queue = self._newest(self.queue, {"features": keys, "labels": labels})
            self.images += len(batch)
        return self.predict(batch)

    def _seen(self, net: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features and logits while batch norm learns."""
        assert self._end is not None
        layers = [layer for layer in net.modules() if isinstance(layer, _BatchNorm)]
        try:
            for layer in layers:
                layer.train()
            with noted_features(net, self._end) as noted:
                logits: Tensor = net(images)
        finally:
            for layer in layers:
                layer.eval()
        return noted[0], logits

    def _labels(self, features: Tensor, logits: Tensor) -> Tensor:
        if self.images < self.first:
            return logits.argmax(1)
        likeness = F.normalize(features, dim=1) @ self.bank["features"].T
        near = likeness.topk(min(self.neighbours, likeness.shape[1])).indices
        return self.bank["p"][near].mean(1).argmax(1)

    def _first(self, features: Tensor, classes: int) -> dict[str, Tensor]:
        rng = CounterRng(self.seed, torch.arange(self.room), f"{self.name} queue", features.device)
        keys = F.normalize(rng.normals("features", features.shape[1]), dim=1)
        return {"features": keys, "labels": rng.integers("labels", 1, high=classes)[:, 0].to(features.device)}

    def _newest(self, kept: dict[str, Tensor], new: dict[str, Tensor]) -> dict[str, Tensor]:
        if not kept:
            return {name: value[-self.room :] for name, value in new.items()}
        return {name: torch.cat([value, new[name]])[-self.room :] for name, value in kept.items()}


def contrast_with_queue(
    features: Tensor, keys: Tensor, labels: Tensor, queue: Mapping[str, Tensor], temperature: float
) -> Tensor:
    """InfoNCE: −ln of the share of exp(z · key / τ) in the sum of it and of all exp(z · k / τ), k in the queue.

    Features have length 1; those of the queue with an image's own label are left out.
    """
    unit = F.normalize(features, dim=1)
    own = (unit * keys).sum(1, keepdim=True)
    others = (unit @ queue["features"].T).masked_fill(labels[:, None] == queue["labels"][None], -torch.inf)
    scores = torch.cat([own, others], 1) / temperature
    return (scores.logsumexp(1) - scores[:, 0]).mean()
