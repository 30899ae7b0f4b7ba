"""The networks that overlap is measured with: a standard one and one per corruption, trained, kept and resumed."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from blemish.core.files import staging_path, write_bytes
from blemish.core.folders import held_folder
from blemish.core.settings import keep_settings
from blemish.core.states import DamagedFileError, read_state
from blemish.corruptions.plugins import own_code
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.executors.tensors import shared_tensor
from blemish.studies.overlap.pace import faster_size
from blemish.studies.overlap.plan import ALL, ARCHITECTURES, STANDARD, Plan, build_net, conditions
from blemish.studies.overlap.trainees import STATE_KEYS, Epoch, Group, TrainingJob, read_weights
from blemish.studies.overlap.training import Schedule

__all__ = ["ALL", "ARCHITECTURES", "STANDARD", "Plan", "Trained", "build_net", "conditions", "train_all"]

PLAN_FILE = "training.json"
_MODELS = "models"


@dataclass(frozen=True)
class Trained:
    """A network's name, the file of its weights, and how long its training took (its share of a joint one)."""

    name: str
    weights: Path
    seconds: float


Report = Callable[[str, int, int, float], None]
"""Told after each epoch: what is trained, epochs done, epochs in all, and the loss."""


def train_all(
    plan: Plan,
    images: Tensor,
    labels: Tensor,
    folder: Path,
    *,
    device: torch.device,
    together: int | None = None,
    report: Report = lambda *_: None,
    executor: Executor | None = None,
    again: Callable[[], Tensor] | None = None,
) -> list[Trained]:
    """Train every network of a plan and keep its weights; what is finished or begun is continued.

    ``together`` networks are trained at once; by default the number that is measured to be fastest, as `pace` finds it.
    The workers of an ``executor`` train networks, or groups of them, side by side; those on other machines make the
    images with ``again``.
    """
    for name in (*plan.corruptions, *plan.under):
        plan.catalog[name].check_files()  # that, and an unknown name, is refused before any work
    executor = executor or InProcess()
    with contextlib.ExitStack() as stack:
        stack.enter_context(held_folder(folder))
        stack.enter_context(executor)
        _check_plan(folder, plan, images, labels)
        path = staging_path(folder, "images")
        pixels = stack.enter_context(shared_tensor(images, executor.reach, path, again))
        work = _Work(plan, TrainingJob(plan, pixels, labels.cpu(), device), folder, executor, report)
        work.remove_states_of_finished()
        groups = _groups(work, executor.workers, lambda names: together or faster_size(plan, names, images, device))
        if plan.fine_tune is None:
            work.train([(STANDARD,), *groups], plan.schedule)
        else:
            work.train([(STANDARD,)], plan.schedule)
            read_weights(work.path(STANDARD))  # refused here if damaged, rather than by every worker
            work.train(groups, plan.fine_tune, start=work.path(STANDARD).read_bytes())
        work.remove_states_of_finished()
        return [work.trained(name) for name in plan.names()]


def _groups(work: _Work, workers: int, size_of: Callable[[Sequence[str]], int]) -> list[tuple[str, ...]]:
    """The networks still to be trained besides the standard one, those that were begun together still together."""
    missing = [name for name in work.plan.names()[1:] if not work.path(name).is_file()]
    begun = work.begun_groups(missing)
    rest = [name for name in missing if not any(name in group for group in begun)]
    size = size_of(rest[: -(-len(rest) // workers)]) if rest else 1
    return [*begun, *(tuple(rest[first : first + size]) for first in range(0, len(rest), size))]


@dataclass(frozen=True, kw_only=True)
class _PlanInfo:
    """What networks depend on: the plan, but for what they are measured under, and the images."""

    corruptions: tuple[str, ...]
    architecture: str
    classes: int
    schedule: Schedule
    fine_tune: Schedule | None
    with_all: bool
    seed: int
    preset: str | None
    images: tuple[int, ...]
    data_fingerprint: str


@dataclass(frozen=True)
class _CodeInfo:
    """A digest of the code of a user's own corruption."""

    code: str


def _check_plan(folder: Path, plan: Plan, images: Tensor, labels: Tensor) -> None:
    path = folder / PLAN_FILE
    digest = hashlib.blake2b(images.cpu().contiguous().numpy().data, digest_size=12)
    digest.update(labels.cpu().contiguous().numpy().data)
    settings = _PlanInfo(
        corruptions=plan.corruptions,
        architecture=plan.architecture,
        classes=plan.classes,
        schedule=plan.schedule,
        fine_tune=plan.fine_tune,
        with_all=plan.with_all,
        seed=plan.seed,
        preset=plan.preset,
        images=tuple(images.shape),
        data_fingerprint=digest.hexdigest(),
    )
    # Further corruptions do not touch the networks that are there; one trained on all of them would.
    growing = () if plan.with_all else ("corruptions",)
    keep_settings(path, settings, holds="networks trained otherwise", growing=growing)
    for name, code in own_code(plan.catalog[name] for name in plan.corruptions).items():
        file = folder / f"code-of-{name.replace(':', '_')}.json"
        keep_settings(file, _CodeInfo(code), holds=f"networks trained with other code of {name}")


@dataclass(frozen=True)
class _Work:
    """The coordinator of a training: it hands out groups of networks, and writes all files."""

    plan: Plan
    job: TrainingJob
    folder: Path
    executor: Executor
    report: Report

    def path(self, name: str) -> Path:
        return self.folder / _MODELS / f"{name.replace(':', '_')}.pt"

    def trained(self, name: str) -> Trained:
        return Trained(name, self.path(name), float(read_weights(self.path(name))["seconds"]))

    def train(self, groups: Sequence[tuple[str, ...]], schedule: Schedule, start: bytes | None = None) -> None:
        """Train groups of networks, each from the common start or from random weights, epoch by epoch."""
        outcomes = self.executor.run(self.job, self._units(groups, schedule, start), progress=self._hear)
        with contextlib.closing(outcomes):
            # A full disk ends everything: whatever is trained from then on could not be kept.
            for group, weights in completed(outcomes, self.folder, stop_at_bad_input=True):
                for name, content in zip(group.names, weights, strict=True):
                    write_bytes(self.path(name), content, destination=self.folder)
                self._begun(group.names).unlink(missing_ok=True)

    def _units(self, groups: Sequence[tuple[str, ...]], schedule: Schedule, start: bytes | None) -> Iterator[Group]:
        """Made one by one, because each holds the weights that it begins with."""
        for names in groups:
            if not all(self.path(name).is_file() for name in names):
                begun = self._begun(names)
                yield Group(names, schedule, start, begun.read_bytes() if _held_by(begun) == names else None)

    def remove_states_of_finished(self) -> None:
        """Remove states that nobody goes on from any more: a run was killed between the weights and their removal."""
        for path in self._states():
            names = _held_by(path)
            if names and all(self.path(name).is_file() for name in names):
                path.unlink(missing_ok=True)

    def _states(self) -> list[Path]:
        return sorted((self.folder / _MODELS).glob("unfinished-*.pt"))

    def begun_groups(self, missing: Sequence[str]) -> list[tuple[str, ...]]:
        """Groups that have a state to go on from, with at least one network that is missing.

        Where a run was killed between the weights of two, both are trained again: one alone differs in the last bits.
        """
        groups: list[tuple[str, ...]] = []
        free = set(self.plan.names()[1:])
        for group in map(_held_by, self._states()):
            if free.issuperset(group) and not set(missing).isdisjoint(group):
                groups.append(group)
                free.difference_update(group)
        return groups

    def _begun(self, names: Sequence[str]) -> Path:
        return self.folder / _MODELS / f"unfinished-{names[0].replace(':', '_')}-{len(names)}.pt"

    def _hear(self, group: Group, message: Epoch | bytes) -> None:
        if isinstance(message, bytes):
            group.begun = message  # the state after an epoch: should the worker die, another goes on from here
            write_bytes(self._begun(group.names), message, destination=self.folder)
            return
        title = group.names[0] if len(group.names) == 1 else f"{len(group.names)} networks"
        self.report(title, message.done, message.of, message.loss)


def _held_by(path: Path) -> tuple[str, ...]:
    """The networks whose unfinished training a file holds; none where it is missing, or damaged and set aside."""
    if not path.is_file():
        return ()
    try:
        return tuple(read_state(path, STATE_KEYS)["names"])
    except DamagedFileError as error:
        warnings.warn(
            f"{error}; it is set aside, and what it held is trained from the start; finished networks are kept",
            RuntimeWarning,
            stacklevel=2,
        )
        path.replace(path.with_name(f"{path.name}.damaged"))
        return ()
