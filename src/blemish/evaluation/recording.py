"""Carrying out a plan on workers: parts are shared out, written when they are done, and never repeated."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.progress import ProgressReport
from blemish.evaluation.answers import content_of
from blemish.evaluation.executors.base import Executor, PendingResult, Tell, wait_for
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.jobs import PlanJob
from blemish.evaluation.measure import Measurer
from blemish.evaluation.parts import Parts, remove_parts, spans_left
from blemish.evaluation.plan import STORED, Part, Plan
from blemish.evaluation.runs import record_path
from blemish.models.base import Classifier
from blemish.models.speed import compile_seconds, note_compiling


@dataclass(frozen=True)
class Compiled:
    """Told by a worker with a compiled model: how long compiling took so far."""

    seconds: float


@dataclass(frozen=True)
class Outputs:
    """Told by a worker: how many outputs its model has, which has to be the same for all workers."""

    count: int


def measure_part(measurer: Measurer, part: Part, tell: Tell) -> bytes | PendingResult:
    """The file of records of a part; a GPU begins with the next part before the host has written it."""
    tell(0)
    plan, model, condition = measurer.plan, measurer.model, measurer.conditions[part.condition]
    images = measurer.images_of(condition, part)
    whole = images if plan.set_of(condition) == STORED else plan.images_of(condition)
    header = plan.header_of(condition, whole.fingerprint)
    if part.last is not None:
        header = replace(header, part=(plan.batch_size, part.first, part.last))
    records = measurer.queue(condition, images, header, tell)
    if (seconds := compile_seconds(model)) is not None:
        tell(Compiled(seconds))
    if (outputs := model.outputs_seen) is not None:
        tell(Outputs(outputs))
    later = PendingResult(lambda: content_of(records()))
    return later if model.device.type == "cuda" else wait_for(later)


@dataclass
class Recording:
    """The conditions of a plan on their way into the folder of a run.

    ``earlier`` is how many classifications of the same images were finished before; ``after_clean`` is called as soon
    as the records of the clean images are written.
    """

    plan: Plan
    folder: Path
    model: Classifier
    executor: Executor
    report: ProgressReport
    earlier: int = 0
    after_clean: Callable[[], None] = lambda: None
    _outputs: int | None = None
    _batches: dict[str, list[list[int]]] = field(default_factory=dict)
    _fingerprints: dict[tuple[str, int, int | None], str] = field(default_factory=dict)

    def work(self) -> None:
        """Measure all parts, and write the records of a condition as soon as its parts are there."""
        conditions = self.plan.conditions
        self._conditions = {str(condition): condition for condition in conditions}
        self._files = {str(condition): self._files_of(condition) for condition in conditions}
        parts = [part for condition in conditions for part in self._parts(condition)]
        self._left = Counter(part.condition for part in parts)
        for condition in conditions:
            if not self._left[str(condition)]:  # stopped between the last part and the whole
                self._join(str(condition))
        self._total = self.earlier + sum(map(self._size, conditions))
        self._done = self._total - sum(map(self._part_size, parts))
        self._told: dict[Part, int] = {}
        job = PlanJob(self.plan, measure_part)
        outcomes = self.executor.run(job, parts, progress=self._hear, key=self._images_of)
        with contextlib.closing(outcomes):
            for part, content in completed(outcomes, self.folder):
                self._keep(part, content)  # type: ignore[arg-type]
        remove_parts(self.folder, self.plan.stage)

    def _images_of(self, part: Part) -> Hashable:
        """What parts of the same worker have in common: their images.

        Clean images are nobody's, so that all of them come first: whether to go on depends on them.
        """
        name = self.plan.set_of(self._conditions[part.condition])
        return (str(CLEAN) if part.condition == str(CLEAN) else name, part.share)

    def _hear(self, part: Part, told: int | Compiled | Outputs) -> None:
        if isinstance(told, Compiled):
            note_compiling(self.model, told.seconds)
        elif isinstance(told, Outputs):
            self._outputs = self._outputs or told.count
            if told.count != self._outputs:
                raise InputError(
                    f"model {self.model.name}: {told.count} classes in {part}, {self._outputs} before; "
                    "expected as many for all images"
                )
        else:
            self._count(part, told)

    def _count(self, part: Part, count: int) -> None:
        self._done += count - self._told.get(part, 0)
        self._told[part] = count
        self.report(self._done, self._total, part.condition)

    def _keep(self, part: Part, content: bytes) -> None:
        self._count(part, self._part_size(part))  # as counted beforehand, where sequences turned out shorter
        if part.last is None:
            self._write(part.condition, content)
            return
        self._files[part.condition].write((part.first, part.last), content)
        self._left[part.condition] -= 1
        if not self._left[part.condition]:
            self._join(part.condition)

    def _join(self, condition: str) -> None:
        files = self._files[condition]
        self._write(condition, files.joined(self.plan.images_of(files.condition).names))
        files.remove()

    def _write(self, condition: str, content: bytes) -> None:
        path = record_path(self.folder, self._conditions[condition], self.plan.stage)
        write_bytes(path, content, destination=self.folder)
        if condition == str(CLEAN):
            self.after_clean()

    def _files_of(self, condition: Condition) -> Parts:
        # The fingerprint of stored images is known to those who read them; their conditions are not divided.
        stored = self.plan.set_of(condition) == STORED
        fingerprint = "" if stored else self.plan.images_of(condition).fingerprint
        header = self.plan.header_of(condition, fingerprint)
        return Parts(self.folder, condition, self.plan.stage, self.plan.batch_size, header)

    def _parts(self, condition: Condition) -> list[Part]:
        name = str(condition)
        if self.plan.set_of(condition) == STORED:
            return [Part(name)]
        count = len(self._rows(condition))
        finished = self._files[name].measured()
        shares = min(count, self.executor.workers)
        if shares == 1 and not finished:
            return [self._with_fingerprint(Part(name))]
        spans = spans_left(count, finished, shares)
        return [self._with_fingerprint(Part(name, first, last, share)) for share, (first, last) in spans]

    def _rows(self, condition: Condition) -> list[list[int]]:
        """The rows of each batch."""
        name = self.plan.set_of(condition)
        if name not in self._batches:
            self._batches[name] = self.plan.batches_of(condition)
        return self._batches[name]

    def _with_fingerprint(self, part: Part) -> Part:
        """With the fingerprint of its images, for workers that read them from files of their own."""
        if self.executor.reach != "cluster":
            return part
        condition = self._conditions[part.condition]
        key = (self.plan.set_of(condition), part.first, part.last)
        if key not in self._fingerprints:
            images = self.plan.images_of(condition)
            batches = self._rows(condition)[part.first : part.last]
            rows = range(len(images)) if part.last is None else [row for batch in batches for row in batch]
            self._fingerprints[key] = images.take(rows).fingerprint
        return replace(part, fingerprint=self._fingerprints[key])

    def _size(self, condition: Condition) -> int:
        """How many images the model sees under a condition."""
        return len(self.plan.images_of(condition)) * frames_of(condition, self.plan.protocol)

    def _part_size(self, part: Part) -> int:
        condition = self._conditions[part.condition]
        if part.last is None:
            return self._size(condition)
        return sum(map(len, self._rows(condition)[part.first : part.last])) * frames_of(condition, self.plan.protocol)


def frames_of(condition: Condition, protocol: Protocol) -> int:
    """How many pictures a condition makes of an image; as if of 224 pixels where only its size will tell."""
    return condition.sequence().length(protocol.preset or "imagenet") if condition.is_sequence else 1
