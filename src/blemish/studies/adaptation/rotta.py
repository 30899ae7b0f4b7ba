"""RoTTA: a memory that is balanced over classes and fresh, robust statistics, and a teacher."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Gradient, Optimiser, follow, predicted
from blemish.studies.adaptation.moving_norms import RobustNorm, moving, with_moving_norms
from blemish.studies.adaptation.norm import norm_parameters

_WHITE = 255.0


class Item(NamedTuple):
    """An image in memory, with the class predicted for it, its entropy and its age in images."""

    image: Tensor
    label: int
    entropy: float
    age: int


class Memory:
    """Category-balanced sampling with timeliness and uncertainty: ``room`` images, about as many of each class.

    An item's score is λ / (1 + exp(−age / room)) + μ · entropy / ln C, λ being ``timely`` and μ ``sure``. An image of a
    class that holds fewer than room / C is added where there is room, and else replaces, of the most frequent classes,
    the item with the highest score (the last of equal ones), if that is higher than its own at age 0. One of a full
    class replaces within its class, by the same rule. After each image, kept or not, all ages rise by one.
    """

    def __init__(self, room: int, classes: int = 0, *, timely: float = 1.0, sure: float = 1.0) -> None:
        self.room, self.classes, self.timely, self.sure = room, classes, timely, sure
        self.items: list[Item] = []

    def add(self, image: Tensor, label: int, entropy: float) -> None:
        """Offer an image."""
        new = Item(image, label, entropy, 0)
        counts = [0] * self.classes
        for item in self.items:
            counts[item.label] += 1
        if counts[label] < self.room / self.classes and len(self.items) < self.room:
            self.items.append(_own(new))
        else:
            most = max(counts)
            full = counts[label] >= self.room / self.classes
            rivals = [
                i for i, item in enumerate(self.items) if (item.label == label if full else counts[item.label] == most)
            ]
            worst = max(reversed(rivals), key=lambda index: self.score(self.items[index]))
            if self.score(self.items[worst]) > self.score(new):
                self.items[worst] = _own(new)
        self.items = [item._replace(age=item.age + 1) for item in self.items]

    def score(self, item: Item) -> float:
        """How dispensable an item is."""
        age = 1 / (1 + math.exp(-item.age / self.room))
        return self.timely * age + self.sure * item.entropy / math.log(self.classes)

    def state_dict(self) -> dict[str, Any]:
        """What is in it."""
        images = [item.image for item in self.items]
        rest = [[item.label, item.entropy, item.age] for item in self.items]
        return {"classes": self.classes, "images": torch.stack(images) if images else torch.empty(0), "rest": rest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what is in a state."""
        self.classes = state["classes"]
        self.items = [Item(image, *rest) for image, rest in zip(state["images"], state["rest"], strict=True)]


def _own(item: Item) -> Item:
    """The item with an image of its own: part of a batch would keep all of it in memory, and change with it."""
    return item._replace(image=item.image.clone())


class RoTTA(Gradient):
    """Robust test-time adaptation in dynamic scenarios. Yuan et al., CVPR 2023.

    Batch norm becomes robust (`RobustNorm`): μ ← (1 − a) μ + a μ_batch, and so the variance, a = ``momentum``, which
    the student and the teacher do by themselves when they train. The teacher predicts, in evaluation mode; these are
    the predictions. Its classes and entropies (−Σ p ln(p + 1e-6)) are what the `Memory` of ``room`` images judges by,
    which is offered one image after the other. After every ``every`` images the student takes a step on the memory: the
    mean of w(age) · CE, w = exp(−age / room) / (1 + exp(−age / room)), CE = −Σ p ln p′ with the teacher's p of the
    images and the student's p′ of random views; scales and shifts change. Then the teacher follows,
    θ' ← (1 − ``follow``) θ' + ``follow`` θ.

    Settings of the authors' code: room 64, every 64 images, momentum 0.05, follow 0.001, ``timely`` and ``sure`` 1,
    Adam with rate 0.001; batches of 64, CIFAR only. Views are those of CoTTA (`random_views`), each drawn by itself. An
    update in the middle of a batch comes after the predictions of the whole batch. The statistics are those of the
    memory, which prefers images that the network is sure of; where these are unlike the others, a batch's own serve
    better. Needs batch norm; scales and shifts of other layers change, too.
    """

    name = "rotta"
    parts = ("model", "optimiser", "teacher", "kept")
    memory: ClassVar[Mapping[str, Any]] = {"images": 0, "steps": 0}
    images: int
    steps: int

    def __init__(
        self,
        model: nn.Module,
        *,
        room: int = 64,
        every: int = 64,
        momentum: float = 0.05,
        follow: float = 0.001,
        timely: float = 1.0,
        sure: float = 1.0,
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if room < 1 or every < 1 or not (0 <= momentum <= 1 and 0 <= follow <= 1):
            given = f"room {room}, every {every}, momentum {momentum:g} and follow {follow:g} for RoTTA"
            raise InputError(f"{given}; expected at least 1, and shares in 0 … 1")
        if not (timely >= 0 and sure >= 0):
            raise InputError(f"timely {timely:g} and sure {sure:g} for RoTTA; expected 0 or more")
        self.room, self.every, self.follow, self.seed = room, every, follow, seed
        self.model = with_moving_norms(model, RobustNorm, method=self.name, momentum=momentum)
        self.teacher = copy.deepcopy(self.model)
        self.adapted = norm_parameters(self.model, method=self.name)
        self.kept = Memory(room, timely=timely, sure=sure)
        self._finish(optimiser or Optimiser("adam", 0.001))

    def adapt(self, batch: Tensor) -> Tensor:
        """The teacher's logits; then the memory is offered the images, and the student learns now and then."""
        with torch.inference_mode(False):
            logits = self.predict(batch)
            p = logits.softmax(1)
            labels = p.argmax(1).tolist()
            uncertainties = (-(p * (p + 1e-6).log()).sum(1)).tolist()
            self.kept.classes = logits.shape[1]
            for image, label, uncertainty in zip(batch, labels, uncertainties, strict=True):
                self.kept.add(image, label, uncertainty)
                self.images += 1
                if self.images % self.every == 0:
                    self._learn(self.kept)
        return logits

    def predict(self, batch: Tensor) -> Tensor:
        """The teacher's logits."""
        return predicted(self.teacher, batch)

    def _learn(self, memory: Memory) -> None:
        device = next(self.model.parameters()).device
        images = torch.stack([item.image.to(device) for item in memory.items])
        ages = torch.tensor([item.age for item in memory.items], device=images.device) / memory.room
        rng = CounterRng(self.seed, torch.arange(len(images)), f"rotta {self.steps}", images.device)
        views = random_views(images.to(torch.float32) / _WHITE, rng) * _WHITE
        with moving(self.model, self.teacher):
            with torch.no_grad():
                target = self.teacher(images).softmax(1)
            with torch.enable_grad():
                cross = -(target * self.model(views).log_softmax(1)).sum(1)
                weights = torch.exp(-ages) / (1 + torch.exp(-ages))
                self._step((weights * cross).mean())
        follow(self.teacher, self.model, self.follow)
        self.steps += 1
