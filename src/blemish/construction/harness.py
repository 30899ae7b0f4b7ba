"""The networks that overlap is measured with: a standard one and one per corruption, trained, kept and resumed."""

from __future__ import annotations

import importlib
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from blemish.construction.training import Corruptor, Schedule, Trainer
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog, hint
from blemish.evaluation.header import differences
from blemish.models import resnet
from blemish.models.resnet import join_copies, split_copies
from blemish.storage.files import staged_destination, write_bytes
from blemish.types import InputError

__all__ = ["ALL", "ARCHITECTURES", "STANDARD", "Plan", "Trained", "build_net", "train_all"]

STANDARD = "standard"
ALL = "all"
"""The name of the network that is trained on all corruptions together, which coverage is measured with."""

PLAN_FILE = "training.json"
_MODELS = "models"

ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "resnet18": resnet.resnet18,
    "resnet18_small": resnet.resnet18_small,
    "resnet50": resnet.resnet50,
    "small_net": resnet.small_net,
}
"""Networks that can be trained several at once; others are named as PACKAGE.MODULE:FUNCTION."""


@dataclass(frozen=True)
class Plan:
    """What is trained. With ``fine_tune``, networks start from the standard one and follow that schedule instead."""

    corruptions: tuple[str, ...]
    architecture: str = "resnet18"
    classes: int = 1000
    schedule: Schedule = field(default_factory=Schedule)
    fine_tune: Schedule | None = None
    with_all: bool = False
    seed: int = 0
    preset: str | None = None

    def names(self) -> tuple[str, ...]:
        """The networks, the standard one first."""
        return (STANDARD, *self.corruptions, *((ALL,) if self.with_all else ()))

    def corruptor(self, name: str, schedule: Schedule) -> Corruptor:
        """What a network's batches go through."""
        chosen: tuple[Corruption, ...] = ()
        if name == ALL:
            chosen = tuple(catalog[member] for member in self.corruptions)
        elif name != STANDARD:
            chosen = (catalog[name],)
        return Corruptor(chosen, schedule.severities, self.preset)


@dataclass(frozen=True)
class Trained:
    """A network's name, the file of its weights, and how long its training took (its share of a joint one)."""

    name: str
    weights: Path
    seconds: float


Report = Callable[[str, int, int, float], None]
"""Told after each epoch: what is trained, epochs done, epochs in all, and the loss."""


def build_net(architecture: str, classes: int, copies: int = 1) -> nn.Module:
    """A new network by name, or by ``package.module:function`` called with the number of classes."""
    if architecture in ARCHITECTURES:
        return ARCHITECTURES[architecture](classes, copies=copies)
    module, found, function = architecture.partition(":")
    if not found:
        raise InputError(f"unknown architecture {architecture!r}; {hint(architecture, [*ARCHITECTURES])}")
    try:
        net = getattr(importlib.import_module(module), function)(classes)
    except (ImportError, AttributeError) as error:
        raise InputError(f"architecture {architecture}: {error}") from error
    if not isinstance(net, nn.Module):
        raise InputError(f"architecture {architecture} made a {type(net).__name__}; expected a torch module")
    return net


def train_all(
    plan: Plan,
    images: Tensor,
    labels: Tensor,
    folder: Path,
    *,
    device: torch.device,
    together: int | None = None,
    report: Report = lambda *_: None,
) -> list[Trained]:
    """Train every network of a plan and keep its weights; what is finished or begun is continued.

    ``together`` networks are trained at once; by default one by one or all at once, whichever is measured to be faster.
    """
    for name in plan.corruptions:
        catalog[name]  # an unknown name is refused before any work
    with staged_destination(folder):
        _check_plan(folder, plan, images, labels)
        work = _Work(plan, images, labels, folder, device, report)
        work.train([STANDARD], plan.schedule, None)
        start = None if plan.fine_tune is None else work.weights(STANDARD)
        rest = [name for name in plan.names()[1:] if not work.path(name).is_file()]
        size = together or work.faster_size(len(rest))
        for begin in range(0, len(rest), size):
            work.train(rest[begin : begin + size], plan.fine_tune or plan.schedule, start)
        return [work.trained(name) for name in plan.names()]


def _check_plan(folder: Path, plan: Plan, images: Tensor, labels: Tensor) -> None:
    path = folder / PLAN_FILE
    entry = json.loads(json.dumps({**asdict(plan), "images": list(images.shape), "labels": int(labels.sum())}))
    # Further corruptions do not touch the networks that are there; one trained on all of them would.
    kept = {key: value for key, value in entry.items() if key != "corruptions" or plan.with_all}
    if path.exists():
        try:
            present = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: not readable ({error}); choose another folder") from error
        found = differences({key: present.get(key) for key in kept}, kept)
        if found:
            raise InputError(
                f"{folder} holds networks trained otherwise ({'; '.join(found[:4])}); choose another folder"
            )
    write_bytes(path, f"{json.dumps(entry, indent=2)}\n".encode(), destination=folder)


@dataclass(frozen=True)
class _Work:
    plan: Plan
    images: Tensor
    labels: Tensor
    folder: Path
    device: torch.device
    report: Report

    def path(self, name: str) -> Path:
        return self.folder / _MODELS / f"{name.replace(':', '_')}.pt"

    def weights(self, name: str) -> dict[str, Tensor]:
        return dict(torch.load(self.path(name), map_location="cpu", weights_only=True)["weights"])

    def trained(self, name: str) -> Trained:
        return Trained(name, self.path(name), _seconds(self.path(name)))

    def train(self, names: Sequence[str], schedule: Schedule, start: dict[str, Tensor] | None) -> None:
        """Train networks together, from a common start or from their own random ones, epoch by epoch."""
        if all(self.path(name).is_file() for name in names):
            return
        trainer = self._trainer(names, schedule, start)
        begun = self.folder / _MODELS / f"unfinished-{names[0].replace(':', '_')}-{len(names)}.pt"
        seconds = 0.0
        if begun.is_file():
            state = torch.load(begun, map_location=self.device, weights_only=True)
            if state["names"] == list(names):
                trainer.restore(state)
                seconds = float(state["seconds"])
        title = names[0] if len(names) == 1 else f"{len(names)} networks"
        while trainer.epoch < schedule.epochs:
            clock = time.perf_counter()
            loss = trainer.run_epoch()
            seconds += time.perf_counter() - clock
            self.report(title, trainer.epoch, schedule.epochs, loss)
            if trainer.epoch < schedule.epochs:
                self._save(begun, {**trainer.state(), "names": list(names), "seconds": seconds})
        states = split_copies(trainer.net.state_dict(), len(names)) if len(names) > 1 else [trainer.net.state_dict()]
        for name, state_dict in zip(names, states, strict=True):
            weights = {key: value.detach().cpu() for key, value in state_dict.items()}
            self._save(self.path(name), {"weights": weights, "seconds": seconds / len(names)})
        begun.unlink(missing_ok=True)

    def _trainer(self, names: Sequence[str], schedule: Schedule, start: dict[str, Tensor] | None) -> Trainer:
        net = self._net(names, start)
        corruptors = [self.plan.corruptor(name, schedule) for name in names]
        return Trainer(net, corruptors, self.images, self.labels, schedule, self.device, seed=self.plan.seed)

    def _net(self, names: Sequence[str], start: dict[str, Tensor] | None) -> nn.Module:
        # All networks of a plan begin with the same weights, so that only the corruption tells them apart.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.plan.seed)
            single = build_net(self.plan.architecture, self.plan.classes)
        if start is not None:
            single.load_state_dict(start)
        if len(names) == 1:
            return single
        net = build_net(self.plan.architecture, self.plan.classes, len(names))
        net.load_state_dict(join_copies([single.state_dict()] * len(names)))
        return net

    def _save(self, path: Path, content: dict[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(content, buffer)
        write_bytes(path, buffer.getvalue(), destination=self.folder)

    def faster_size(self, count: int) -> int:
        """How many networks to train at once: one or all, by timing a few steps of each."""
        if count < 2 or self.plan.architecture not in ARCHITECTURES or self.device.type == "cpu":
            return 1
        alone = _step_seconds(self._net([STANDARD], None), self.images, self.plan, 1, self.device)
        at_once = _step_seconds(self._net([STANDARD] * count, None), self.images, self.plan, count, self.device)
        return count if at_once < alone * count else 1


def _step_seconds(net: nn.Module, images: Tensor, plan: Plan, copies: int, device: torch.device) -> float:
    """The time of a training step on clean images; corrupting them costs the same either way."""
    schedule = Schedule(epochs=1, batch=plan.schedule.batch, corrupted=0.0)
    count = min(len(images), 8 * schedule.batch)
    labels = torch.from_numpy(np.zeros(count, dtype=np.int64))
    trainer = Trainer(net, [Corruptor()] * copies, images[:count], labels, schedule, device)
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        clock = time.perf_counter()
        trainer.run_epoch()  # waits for the device, because it returns a number
        best = min(best, time.perf_counter() - clock)
    return best


def _seconds(path: Path) -> float:
    return float(torch.load(path, map_location="cpu", weights_only=True)["seconds"])


def conditions(plan: Plan) -> Iterator[str]:
    """The conditions that every network of a plan is measured under."""
    low, high = plan.schedule.severities
    for name in plan.corruptions:
        only = catalog[name].only_severity
        yield f"{name}@{low:g}-{high:g}" if only is None else f"{name}@{only:g}"
