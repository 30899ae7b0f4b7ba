"""NOTE: a memory balanced by predictions, and batch norm that heeds single images, against correlated streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.base import Gradient, Optimiser
from blemish.studies.adaptation.moving_norms import InstanceAware, moving, with_moving_norms
from blemish.studies.adaptation.norm import norm_parameters


class BalancedReservoir:
    """Prediction-balanced reservoir sampling: ``room`` images, as even over classes as the stream allows.

    Where there is room an image is added. Else, one of a class that is not among the most frequent ones in memory
    replaces a random item of a random one of these; one of a most frequent class k replaces a random item of its class
    with probability m / n, m being how many are in memory and n how many there were in all.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.seen: dict[int, int] = {}
        self.images: list[Tensor] = []
        self.labels: list[int] = []

    def add(self, image: Tensor, label: int, ranks: tuple[float, float, float]) -> None:
        """Offer an image; three random numbers in 0 … 1 decide."""
        self.seen[label] = self.seen.get(label, 0) + 1
        if len(self.images) < self.room:
            self.images.append(image.clone())  # part of a batch would keep all of it in memory, and change with it
            self.labels.append(label)
            return
        counts = Counter(self.labels)
        most = sorted(one for one, count in counts.items() if count == max(counts.values()))
        chosen = label
        if label not in most:
            chosen = most[int(ranks[0] * len(most))]
        elif ranks[1] > counts[label] / self.seen[label]:
            return
        places = [index for index, one in enumerate(self.labels) if one == chosen]
        index = places[int(ranks[2] * len(places))]
        self.images[index], self.labels[index] = image.clone(), label

    def state_dict(self) -> dict[str, Any]:
        """What is in it, and what there was."""
        images = torch.stack(self.images) if self.images else torch.empty(0)
        return {"images": images, "labels": list(self.labels), "seen": dict(self.seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Hold what is in a state."""
        self.images, self.labels, self.seen = list(state["images"]), list(state["labels"]), dict(state["seen"])


class NOTE(Gradient):
    """Robust continual adaptation against temporal correlation. Gong et al., NeurIPS 2022.

    Batch norm becomes `InstanceAware`, with ``k`` 4. Images are predicted by it in evaluation mode, which looks at each
    alone, and offered to a `BalancedReservoir` of ``room`` 64. After every ``every`` 64 images scales and shifts take
    one step on the memory, on the mean over images and classes of −p ln(p + 1e-6), with layers that move: their running
    statistics follow the memory's by ``momentum`` 0.01. Images of a batch that come after a step are predicted by what
    it made.

    Settings of the authors' code: Adam with rate 0.0001. It is meant for networks that were trained with its layer
    (`instance_aware` makes one to train); one that was not is changed by it before any adaptation, so that a number
    says little of the method. Needs batch norm, or its layer.
    """

    name = "note"
    parts = ("model", "optimiser", "reservoir")
    memory: ClassVar[Mapping[str, Any]] = {"images": 0}
    images: int

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
        self.model = with_moving_norms(model, InstanceAware, method=self.name, momentum=momentum, k=k)
        self.adapted = norm_parameters(self.model, method=self.name)
        self.reservoir = BalancedReservoir(room)
        self._finish(optimiser or Optimiser("adam", 0.0001))

    def adapt(self, batch: Tensor) -> Tensor:
        """The logits of each image; between them, steps on the memory."""
        parts = []
        with torch.inference_mode(False):
            while len(batch):
                count = min(len(batch), self.every - self.images % self.every)
                parts.append(self.predict(batch[:count]))
                self._offer(batch[:count], parts[-1])
                if self.images % self.every == 0:
                    self._learn()
                batch = batch[count:]
        return torch.cat(parts)

    def _offer(self, batch: Tensor, logits: Tensor) -> None:
        numbers = self.images + torch.arange(len(batch))
        ranks = CounterRng(self.seed, numbers, self.name).uniforms("memory", 3).tolist()
        for image, label, rank in zip(batch, logits.argmax(1).tolist(), ranks, strict=True):
            self.reservoir.add(image, label, tuple(rank))
        self.images += len(batch)

    def _learn(self) -> None:
        device = next(self.model.parameters()).device
        images = torch.stack([image.to(device) for image in self.reservoir.images])
        with moving(self.model), torch.enable_grad():
            p = self.model(images).softmax(1)
            self._step(-(p * (p + 1e-6).log()).mean())
