"""NOTE: a memory balanced by predictions, and batch norm that heeds single images, against correlated streams."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.base import Optimiser
from blemish.studies.adaptation.iabn import InstanceAware, with_instance_awareness
from blemish.studies.adaptation.norm import norm_parameters


class BalancedReservoir:
    """Prediction-balanced reservoir sampling: ``room`` images, as even over classes as the stream allows.

    Where there is room an image is added. Else, one of a class that is not among the most frequent ones in memory
    replaces a random item of a random one of these; one of a most frequent class k replaces a random item of its class
    with probability m / n, m being how many are in memory and n how many there were in all.
    """

    def __init__(self, room: int, classes: int) -> None:
        self.room = room
        self.seen = [0] * classes
        self.images: list[Tensor] = []
        self.labels: list[int] = []

    def add(self, image: Tensor, label: int, ranks: tuple[float, float, float]) -> None:
        """Offer an image; three random numbers in 0 … 1 decide."""
        self.seen[label] += 1
        if len(self.images) < self.room:
            self.images.append(image)
            self.labels.append(label)
            return
        counts = [self.labels.count(one) for one in range(len(self.seen))]
        most = [one for one, count in enumerate(counts) if count == max(counts)]
        chosen = label
        if label not in most:
            chosen = most[int(ranks[0] * len(most))]
        elif ranks[1] > counts[label] / self.seen[label]:
            return
        places = [place for place, one in enumerate(self.labels) if one == chosen]
        place = places[int(ranks[2] * len(places))]
        self.images[place], self.labels[place] = image, label


class NOTE:
    """Robust continual adaptation against temporal correlation. Gong et al., NeurIPS 2022.

    Batch norm becomes `InstanceAware`, with ``k`` 4. Images are predicted by it in evaluation mode, which looks at each
    alone, and offered to a `BalancedReservoir` of ``room`` 64. After every ``every`` 64 images scales and shifts take
    one step on the memory, on the mean over images and classes of −p ln(p + 1e-6), with layers that move: their running
    statistics follow the memory's by ``momentum`` 0.01. Images of a batch that come after a step are predicted by what
    it made.

    Settings of the authors' code: Adam with rate 0.0001. It is meant for networks that were trained with its layer; one
    that was not is changed by it before any adaptation, so that a number says little of the method. Needs batch norm.
    """

    name = "note"

    def __init__(
        self,
        model: nn.Module,
        *,
        room: int = 64,
        every: int = 64,
        k: float = 4.0,
        momentum: float = 0.01,
        optimiser: Optimiser | None = None,
        seed: int = 0,
    ) -> None:
        if room < 1 or every < 1 or k < 0 or not 0 <= momentum <= 1:
            given = f"room {room}, every {every}, k {k:g} and momentum {momentum:g} for NOTE"
            raise InputError(f"{given}; expected at least 1, 0 or more, and a share in 0 … 1")
        self.room, self.every, self.seed = room, every, seed
        self.model = with_instance_awareness(model, k, momentum, method=self.name).requires_grad_(False)
        self.adapted = norm_parameters(self.model, method=self.name)
        for value in self.adapted.values():
            value.requires_grad_(True)
        self.optimiser = (optimiser or Optimiser("adam", 0.0001)).make(list(self.adapted.values()))
        self._source = copy.deepcopy(self.model.state_dict())
        self._fresh = copy.deepcopy(self.optimiser.state_dict())
        self._memory: BalancedReservoir | None = None
        self._images = 0

    def adapt(self, batch: Tensor) -> Tensor:
        """The logits of each image; between them, steps on the memory."""
        parts = []
        with torch.inference_mode(False):
            while len(batch):
                count = min(len(batch), self.every - self._images % self.every)
                parts.append(self.predict(batch[:count]))
                self._offer(batch[:count], parts[-1])
                if self._images % self.every == 0:
                    self._learn()
                batch = batch[count:]
        return torch.cat(parts)

    def predict(self, batch: Tensor) -> Tensor:
        """The logits of a batch."""
        with torch.inference_mode(False), torch.no_grad():
            logits: Tensor = self.model(batch)
        return logits

    def _offer(self, batch: Tensor, logits: Tensor) -> None:
        if self._memory is None:
            self._memory = BalancedReservoir(self.room, logits.shape[1])
        numbers = self._images + torch.arange(len(batch))
        ranks = CounterRng(self.seed, numbers, self.name).uniforms("memory", 3).tolist()
        for image, label, rank in zip(batch, logits.argmax(1).tolist(), ranks, strict=True):
            self._memory.add(image, label, tuple(rank))
        self._images += len(batch)

    def _learn(self) -> None:
        assert self._memory is not None
        layers = [layer for layer in self.model.modules() if isinstance(layer, InstanceAware)]
        for layer in layers:
            layer.moving = True
        try:
            with torch.enable_grad():
                p = self.model(torch.stack(self._memory.images)).softmax(1)
                loss: Tensor = -(p * (p + 1e-6).log()).mean()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimiser.step()
        finally:
            for layer in layers:
                layer.moving = False
        self.optimiser.zero_grad(set_to_none=True)

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, for good."""
        for group in self.optimiser.param_groups:
            group["lr"] *= factor
        self._fresh = copy.deepcopy(self.optimiser.state_dict())

    def reset(self) -> None:
        """Back to the model as it was given, with an empty memory."""
        self.model.load_state_dict(self._source)
        self.optimiser.load_state_dict(copy.deepcopy(self._fresh))
        self._memory, self._images = None, 0

    def state_dict(self) -> dict[str, Any]:
        """Model, optimiser, and what is in memory."""
        kept = None
        if self._memory is not None:
            memory = self._memory
            kept = {"images": torch.stack(memory.images), "labels": list(memory.labels), "seen": list(memory.seen)}
        nets = {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}
        return copy.deepcopy({**nets, "memory": kept, "images": self._images})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        try:
            self.model.load_state_dict(state["model"])
            self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
            self._images, self._memory = int(state["images"]), None
            if (kept := state["memory"]) is not None:
                self._memory = BalancedReservoir(self.room, len(kept["seen"]))
                device = next(iter(self.adapted.values())).device
                self._memory.images = list(kept["images"].to(device, copy=True))
                self._memory.labels, self._memory.seen = list(kept["labels"]), list(kept["seen"])
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise InputError(f"a state that is not one of {self.name} on this model ({error})") from error
