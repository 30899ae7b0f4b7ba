"""Tasks: what is asked of a model besides classes, and the part of the one loop that asks it.

The loop knows no task. One is handed to it with the plan, and says itself what it keeps of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from torch import Tensor

from blemish.benchmarks.benchmark import BALANCED, Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, notify
from blemish.core.printable import first_few
from blemish.corruptions.base import Corruption
from blemish.data.images import Images
from blemish.evaluation.answers import Answers, Column, join_answers
from blemish.evaluation.feed import Feed
from blemish.evaluation.info import RecordsHeader, TaskInfo

if TYPE_CHECKING:
    from blemish.evaluation.measure import Measurer

_ELASTIC = "elastic_transform"
_SHOWN = 3


class Task(Protocol):
    """What is asked of a model, and what is kept of its answers; it travels to workers."""

    @property
    def info(self) -> TaskInfo:
        """What records and run files say of it."""

    @property
    def metric(self) -> str:
        """What benchmarks are headed by."""

    @property
    def in_places(self) -> bool:
        """Whether the truth lies at places in images: then it would have to move with their pixels, and does not."""

    def check(self, model: Any, names: Sequence[str]) -> None:
        """Refuse a model that cannot be asked this, and images of which the truth is not known, before any work."""

    def answers(self, model: Any, pixels: Tensor, names: Sequence[str]) -> Mapping[str, Column]:
        """Ask the model about a batch of uint8 (B, C, H, W); the columns of the records, a row per image."""

    def changed(self, before: Answers, now: Answers) -> str | None:
        """An image to which the model now gives another answer; None where answers differ by rounding at most."""


def fitting_benchmark(benchmark: Benchmark, task: Task) -> Benchmark:
    """A benchmark for a task: headed by the task's number. A truth in places would not fit cut or resized images.

    One that is headed by a balanced error already keeps its own, and what it is divided by.
    """
    protocol = benchmark.protocol
    if task.in_places and (protocol.resize, protocol.view) != (None, None):
        raise InputError(
            f"{benchmark.name} brings images to another size, where the truth of {task.info.name} does not move "
            "with them; expected a benchmark without resize and crop, such as coco-c"
        )
    if benchmark.has_sequences:
        raise InputError(f"{benchmark.name} has sequences, which are for classes; expected none for {task.info.name}")
    if task.in_places and (moving := [name for name in benchmark.groups if _moves_far(name, benchmark)]):
        notify(
            f"{first_few(moving, _SHOWN)}: moves pixels, and the truth of {task.info.name} does not move with them, so "
            "that numbers are lower than they should be"
        )
    if task.metric in BALANCED and benchmark.metric in BALANCED:
        return benchmark
    whole = None if benchmark.part_of is None else fitting_benchmark(benchmark.part_of, task)
    return replace(benchmark, metric=task.metric, baseline=None, reference=None, part_of=whole)


def _moves_far(group: str, benchmark: Benchmark) -> bool:
    """Whether pixels end up elsewhere. Elastic transform is published with labels that stay, as are all others here."""
    steps = {step.name: step.unit for condition in benchmark.conditions for step in condition.steps}
    units = [steps[name] for name in group.split("+") if name in steps and name != _ELASTIC]
    return any(
        isinstance(unit, Corruption) and unit.moves is not None and unit.moves.maps is not None for unit in units
    )


def named_model(model: Any, name: str | None) -> Any:
    """A model under another name, where one is given."""
    return model if name is None else replace(model, name=name)


def ask(
    measurer: Measurer, condition: Condition, images: Images, header: RecordsHeader, tell: Callable[[int], None]
) -> Callable[[], Answers]:
    """Ask a model about all images under a condition; calling the result gives the records."""
    task = measurer.plan.task
    assert task is not None
    crop = measurer.plan.crop
    if measurer.is_stored(condition):
        condition, crop = CLEAN, None
    measurer.begin(condition, images)
    parts: list[Answers] = []
    order: list[int] = []
    for shape_rows in images.by_shape():
        with Feed(images, shape_rows, measurer.model.device) as feed:

            def work(rows: list[int], feed: Feed = feed) -> Answers:
                pixels = measurer.pixels(condition, images, feed.batch(rows), rows, crop)
                names = [images.names[row] for row in rows]
                return Answers(header, np.asarray(names, dtype=np.str_), task.answers(measurer.model, pixels, names))

            for rows, answers in measurer.batcher.map(work, shape_rows):
                order += rows
                parts.append(answers)
                tell(len(order))
    joined = join_answers(parts).take(np.argsort(order, kind="stable"))
    return lambda: joined
