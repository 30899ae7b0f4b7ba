"""RoTTA: a memory that is balanced over classes and fresh, robust statistics, and a teacher."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Optimiser
from blemish.studies.adaptation.norm import norm_parameters
from blemish.studies.adaptation.robust_norm import RobustNorm, with_robust_norm

_WHITE = 255.0


class Item(NamedTuple):
    """An image in memory, with the class predicted for it, its entropy and its age in images."""

    image: Tensor
    label: int
    entropy: float
    age: int


class Memory:
    """Category-balanced sampling with timeliness and uncertainty: ``room`` images, about as many of each class.

    An item's score is 1 / (1 + exp(−age / room)) + entropy / ln C. An image of a class that holds fewer than room / C
    is added where there is room, and else replaces, of the most frequent classes, the item with the highest score (the
    last of equal ones), if that is higher than its own at age 0. One of a full class replaces within its class, by the
    same rule. After each image, kept or not, all ages rise by one.
    """

    def __init__(self, room: int, classes: int) -> None:
        self.room, self.classes = room, classes
        self.items: list[Item] = []

    def add(self, image: Tensor, label: int, entropy: float) -> None:
        """Offer an image."""
        new = Item(image, label, entropy, 0)
        counts = [0] * self.classes
        for item in self.items:
            counts[item.label] += 1
        if counts[label] < self.room / self.classes and len(self.items) < self.room:
            self.items.append(new)
        else:
            most = max(counts)
            full = counts[label] >= self.room / self.classes
            rivals = [
                i for i, item in enumerate(self.items) if (item.label == label if full else counts[item.label] == most)
            ]
            worst = max(reversed(rivals), key=lambda place: self.score(self.items[place]))
            if self.score(self.items[worst]) > self.score(new):
                self.items[worst] = new
        self.items = [item._replace(age=item.age + 1) for item in self.items]

    def score(self, item: Item) -> float:
        """How dispensable an item is."""
        return 1 / (1 + math.exp(-item.age / self.room)) + item.entropy / math.log(self.classes)


class RoTTA:
    """Robust test-time adaptation in dynamic scenarios. Yuan et al., CVPR 2023.

    Batch norm becomes robust (`RobustNorm`): μ ← (1 − a) μ + a μ_batch, and so the variance, a = ``momentum``, which
    the student and the teacher do by themselves when they train. The teacher predicts, in evaluation mode; these are
    the predictions. Its classes and entropies (−Σ p ln(p + 1e-6)) are what the `Memory` of ``room`` images judges by,
    which is offered one image after the other. After every ``every`` images the student takes a step on the memory: the
    mean of w(age) · CE, w = exp(−age / room) / (1 + exp(−age / room)), CE = −Σ p ln p′ with the teacher's p of the
    images and the student's p′ of random views; scales and shifts change. Then the teacher follows,
    θ' ← (1 − ``follow``) θ' + ``follow`` θ.

    Settings of the authors' code: room 64, every 64 images, momentum 0.05, follow 0.001, Adam with rate 0.001; batches
    of 64, CIFAR only. Views are those of CoTTA (`random_views`), each drawn by itself. An update in the middle of a
    batch comes after the predictions of the whole batch. Needs batch norm; scales and shifts of other layers change,
    too.
    """

    name = "rotta"

    def __init__(
        self,
        model: nn.Module,
        *,
        room: int = 64,
        every: int = 64,
        momentum: float = 0.05,
        follow: float = 0.001,
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if room < 1 or every < 1 or not (0 <= momentum <= 1 and 0 <= follow <= 1):
            given = f"room {room}, every {every}, momentum {momentum:g} and follow {follow:g} for RoTTA"
            raise InputError(f"{given}; expected at least 1, and shares in 0 … 1")
        self.room, self.every, self.follow, self.seed = room, every, follow, seed
        self.model = with_robust_norm(model, momentum, method=self.name).requires_grad_(False)
        self.teacher = copy.deepcopy(self.model)
        self.adapted = norm_parameters(self.model, method=self.name)
        for value in self.adapted.values():
            value.requires_grad_(True)
        self.optimiser = (optimiser or Optimiser("adam", 0.001)).make(list(self.adapted.values()))
        self._source = copy.deepcopy(self.model.state_dict())
        self._fresh = copy.deepcopy(self.optimiser.state_dict())
        self._memory: Memory | None = None
        self._images = self._steps = 0

    def adapt(self, batch: Tensor) -> Tensor:
        """The teacher's logits; then the memory is offered the images, and the student learns now and then."""
        with torch.inference_mode(False):
            logits = self.predict(batch)
            p = logits.softmax(1)
            labels = p.argmax(1).tolist()
            uncertainties = (-(p * (p + 1e-6).log()).sum(1)).tolist()
            if self._memory is None:
                self._memory = Memory(self.room, logits.shape[1])
            for image, label, uncertainty in zip(batch, labels, uncertainties, strict=True):
                self._memory.add(image, label, uncertainty)
                self._images += 1
                if self._images % self.every == 0:
                    self._learn(self._memory)
        return logits

    def predict(self, batch: Tensor) -> Tensor:
        """The teacher's logits."""
        with torch.inference_mode(False), torch.no_grad():
            logits: Tensor = self.teacher(batch)
        return logits

    def _learn(self, memory: Memory) -> None:
        images = torch.stack([item.image for item in memory.items])
        ages = torch.tensor([item.age for item in memory.items], device=images.device) / memory.room
        rng = CounterRng(self.seed, torch.arange(len(images)), f"rotta {self._steps}", images.device)
        views = random_views(images.to(torch.float32) / _WHITE, rng) * _WHITE
        for net in (self.model, self.teacher):
            _moving(net, True)
        try:
            with torch.no_grad():
                target = self.teacher(images).softmax(1)
            with torch.enable_grad():
                cross = -(target * self.model(views).log_softmax(1)).sum(1)
                weights = torch.exp(-ages) / (1 + torch.exp(-ages))
                (weights * cross).mean().backward()
                self.optimiser.step()
        finally:
            for net in (self.model, self.teacher):
                _moving(net, False)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.no_grad():
            for teacher, student in zip(self.teacher.parameters(), self.model.parameters(), strict=True):
                teacher.lerp_(student, self.follow)
        self._steps += 1

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, for good."""
        for group in self.optimiser.param_groups:
            group["lr"] *= factor
        self._fresh = copy.deepcopy(self.optimiser.state_dict())

    def reset(self) -> None:
        """Back to the model as it was given, with an empty memory."""
        self.model.load_state_dict(self._source)
        self.teacher.load_state_dict(self._source)
        self.optimiser.load_state_dict(copy.deepcopy(self._fresh))
        self._memory, self._images, self._steps = None, 0, 0

    def state_dict(self) -> dict[str, Any]:
        """Student, teacher, optimiser, and what is in memory."""
        kept = None
        if self._memory is not None:
            items = self._memory.items
            kept = {
                "classes": self._memory.classes,
                "images": torch.stack([item.image for item in items]),
                "rest": [[item.label, item.entropy, item.age] for item in items],
            }
        nets = {"model": self.model.state_dict(), "teacher": self.teacher.state_dict()}
        rest = {"optimiser": self.optimiser.state_dict(), "memory": kept, "counts": [self._images, self._steps]}
        return copy.deepcopy({**nets, **rest})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        try:
            self.model.load_state_dict(state["model"])
            self.teacher.load_state_dict(state["teacher"])
            self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
            self._images, self._steps = state["counts"]
            self._memory = None
            if (kept := state["memory"]) is not None:
                self._memory = Memory(self.room, kept["classes"])
                device = next(iter(self.adapted.values())).device
                images = kept["images"].to(device, copy=True)
                items = zip(images, kept["rest"], strict=True)
                self._memory.items = [Item(image, label, entropy, age) for image, (label, entropy, age) in items]
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise InputError(f"a state that is not one of {self.name} on this model ({error})") from error


def _moving(net: nn.Module, on: bool) -> None:
    for layer in net.modules():
        if isinstance(layer, RobustNorm):
            layer.moving = on
