"""Courses: which image under which condition a stream shows at each position, and where methods start afresh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.corruptions.severity import severity_text
from blemish.studies.arena.ordering import (
    dirichlet_chunks,
    dirichlet_slots,
    generator,
    label_shift,
    shuffled,
    sorted_by_label,
)
from blemish.studies.arena.setting import Domain, Setting

_MIXING, _SHARED = 1_000_003, 2_000_003


@dataclass(frozen=True)
class Course:
    """A stream as numbers: ``rows`` of the image set, and for each position the number of its condition.

    ``blocks`` are the positions where a corruption begins: no batch goes beyond the next one. At ``resets`` methods
    start afresh; the start of the stream is not among them.
    """

    conditions: tuple[str, ...]
    rows: NDArray[np.int64]
    condition: NDArray[np.int32]
    blocks: tuple[int, ...]
    resets: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int) -> Iterator[tuple[int, int]]:
        """The beginning and the end of each batch; the last of a block has what is left."""
        for begin, end in zip(self.blocks, (*self.blocks[1:], len(self)), strict=True):
            for start in range(begin, end, size):
                yield start, min(end, start + size)


def course_of(
    setting: Setting, variant: str, corruptions: Sequence[str], labels: NDArray[np.int64], seed: int
) -> Course:
    """The stream of a setting over images with these labels, in one of its orders.

    The images of a round come in one order under every corruption, another for every round and seed, as in Döbler et
    al.'s repository; where labels are drawn or bound by RoTTA's procedure, each corruption has its own.
    """
    if setting.walk:
        raise InputError(f"setting {setting.name} shows a walk; expected one that is given with it")
    if len(labels) == 0:
        raise InputError("no images for a stream; expected at least one")
    domains = setting.domains(corruptions, variant)
    if setting.mixed:
        return _mixed(setting, domains, labels, seed)
    names: dict[str, int] = {}
    rows: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.int32]] = []
    blocks: list[int] = []
    resets: list[int] = []
    done, step = 0, 0
    for turn in range(setting.rounds):
        for corruption, severities in domains:
            if setting.reset == "shift" and done:
                resets.append(done)
            for severity in severities:
                own = setting.labels in ("slots", "shift")
                part = _ordered(setting, labels, generator(seed, 1 + step if own else _SHARED + turn))
                number = names.setdefault(f"{corruption}@{severity_text(severity)}", len(names))
                rows.append(part)
                numbers.append(np.full(len(part), number, dtype=np.int32))
                blocks.append(done)
                done += len(part)
                step += 1
    return Course(tuple(names), np.concatenate(rows), np.concatenate(numbers), tuple(blocks), tuple(resets))


def _mixed(setting: Setting, domains: Sequence[Domain], labels: NDArray[np.int64], seed: int) -> Course:
    """All images under all corruptions, each once, as one stream."""
    names = tuple(dict.fromkeys(f"{c}@{severity_text(s)}" for c, severities in domains for s in severities))
    everything = np.tile(np.arange(len(labels)), len(names))
    order = _ordered(setting, labels[everything], generator(seed, _MIXING))
    condition = (order // len(labels)).astype(np.int32)
    return Course(names, everything[order], condition, (0,))


def _ordered(setting: Setting, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    if setting.labels == "sorted":
        return sorted_by_label(labels, rng)
    if setting.labels == "dirichlet":
        return dirichlet_chunks(labels, setting.concentration, rng)
    if setting.labels == "slots":
        return dirichlet_slots(labels, setting.concentration, rng)
    if setting.labels == "shift":
        return label_shift(labels, setting.favour, rng)
    return shuffled(len(labels), rng)
