"""Training as a worker does it: a group of networks from their first epoch, or from where another has stopped."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.states import DamagedFileError, read_state, state_bytes
from blemish.evaluation.executors.base import Tell
from blemish.models.code import ending_refused
from blemish.models.copies import join_copies, split_copies
from blemish.studies.overlap.plan import Plan, build_net
from blemish.studies.overlap.training import Schedule, Trainer

STATE_KEYS = ("net", "optimiser", "epoch", "names", "seconds")
"""What the file of an unfinished training holds: everything that continuing needs."""

# Images of up to so many bytes lie beside the network on its GPU.
_ROOM = 2**33


@dataclass(eq=False)
class Group:
    """Networks that are trained together. ``start`` is the file of the weights to begin with, ``begun`` a state."""

    names: tuple[str, ...]
    schedule: Schedule
    start: bytes | None = None
    begun: bytes | None = None

    def __str__(self) -> str:
        return ", ".join(self.names)


@dataclass(frozen=True)
class Epoch:
    """Told after each epoch."""

    done: int
    of: int
    loss: float


@dataclass(frozen=True)
class TrainingJob:
    """What every worker needs: the plan and the training images. ``device`` is that of a run without workers."""

    plan: Plan
    images: Callable[[], Tensor]
    labels: Tensor
    device: torch.device

    def open(self, device: torch.device | None) -> Callable[[Group, Tell], list[bytes]]:
        """Bring the images to the device, where there is room for them."""
        own = device or self.device
        images, labels = self.images(), self.labels
        if own.type == "cuda" and images.numel() < _ROOM:
            images, labels = images.to(own), labels.to(own)
        return _WorkerState(self.plan, images, labels, own).train


@dataclass(frozen=True)
class _WorkerState:
    plan: Plan
    images: Tensor
    labels: Tensor
    device: torch.device

    def train(self, group: Group, tell: Tell) -> list[bytes]:
        """The files of the networks' weights."""
        trainer, seconds = self._trainer(group), 0.0
        state = _loaded(group.begun, self.device)
        if state is not None and state["names"] == list(group.names):
            trainer.restore(state)
            seconds = float(state["seconds"])
        epochs = group.schedule.epochs
        while trainer.epoch < epochs:
            clock = time.perf_counter()
            with ending_refused(f"architecture {self.plan.architecture}"):
                loss = trainer.run_epoch()
            seconds += time.perf_counter() - clock
            tell(Epoch(trainer.epoch, epochs, loss))
            if trainer.epoch < epochs:
                tell(state_bytes({**trainer.state(), "names": list(group.names), "seconds": seconds}))
        count = len(group.names)
        states = split_copies(trainer.net.state_dict(), count) if count > 1 else [trainer.net.state_dict()]
        weights = [{key: value.detach().cpu() for key, value in state.items()} for state in states]
        return [state_bytes({"weights": each, "seconds": seconds / count}) for each in weights]

    def _trainer(self, group: Group) -> Trainer:
        start = _loaded(group.start, torch.device("cpu"))
        net = make_net(self.plan, len(group.names), None if start is None else start["weights"])
        corruptors = [self.plan.corruptor(name, group.schedule) for name in group.names]
        return Trainer(net, corruptors, self.images, self.labels, group.schedule, self.device, seed=self.plan.seed)


def make_net(plan: Plan, copies: int, start: dict[str, Tensor] | None) -> nn.Module:
    """A network of so many copies. All of a plan begin with the same weights, so that only corruptions tell them apart.

    ``start`` takes the place of random weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed)
        single = build_net(plan.architecture, plan.classes)
    if start is not None:
        single.load_state_dict(start)
    if copies == 1:
        return single
    net = build_net(plan.architecture, plan.classes, copies)
    net.load_state_dict(join_copies([single.state_dict()] * copies))
    return net


def read_weights(path: Path) -> dict[str, Any]:
    """The ``weights`` of a finished network, and the ``seconds`` of its training."""
    try:
        return read_state(path, ("weights", "seconds"), sealed=False)
    except DamagedFileError as error:
        raise DamagedFileError(f"{error}; remove it, and this network is trained again") from error


def _loaded(content: bytes | None, device: torch.device) -> dict[str, Any] | None:
    if content is None:
        return None
    return dict(torch.load(io.BytesIO(content), map_location=device, weights_only=True))
