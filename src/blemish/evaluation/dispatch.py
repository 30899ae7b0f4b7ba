"""One stage of a run: every condition on one set of images, shared out to workers, written and never repeated."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.data.cache import Images
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.header import made_with
from blemish.evaluation.parts import Parts, remove_parts, spans_left
from blemish.evaluation.runs import Run, record_path
from blemish.evaluation.shards import STORED, Compiled, Outputs, Shard, ShardJob, batches_of
from blemish.evaluation.stage import (
    Setting,
    Stage,
    Step,
    check_chance,
    check_model,
    fitting_batcher,
    is_finished,
    view_name,
    views_of,
)
from blemish.evaluation.travel import reopening, travelling
from blemish.models.portable import portable
from blemish.models.speed import note_compiling

__all__ = ["run_stage"]


def run_stage(setting: Setting, run: Run, stage: Stage) -> None:
    """Measure what is not there yet; what is there has to be this run's."""
    conditions = setting.benchmark.conditions
    waiting = [condition for condition in conditions if not is_finished(setting, run, condition, stage.number)]
    if not waiting:
        remove_parts(run.folder, stage.number)
        return
    device = setting.executor.device or setting.model.device
    if CLEAN not in waiting:
        check_chance(setting, run, stage.number)
        check_model(setting, run, stage, fitting_batcher(stage.images, setting.model.device, setting.batch_size))
    with contextlib.ExitStack() as stack:
        views = views_of(setting, stage, waiting)
        job = ShardJob(
            conditions={str(condition): condition for condition in waiting},
            model=setting.model if setting.executor.reach == "process" else portable(setting.model),
            protocol=setting.benchmark.protocol,
            size=fitting_batcher(stage.images, device, setting.batch_size).size,
            views=travelling(setting, stage, views, run.folder, stack),
            header={
                "benchmark": setting.benchmark.name,
                "protocol": run.info["protocol"],
                "model": run.info["model"],
                "data": run.info["stages"][stage.number],
                "made_with": made_with(),
            },
            stored=setting.stored if setting.executor.reach == "process" else reopening(setting.stored),
            crop=setting.benchmark.protocol.crop if setting.benchmark.has_sequences else None,
            zipf=setting.zipf,
        )
        _Stages(setting, run, stage, views, job, waiting).work()


def _shared(shard: Shard) -> Hashable:
    """What shards of the same worker have in common: their images.

    Clean images are nobody's, so that all of them come first: whether to go on depends on them.
    """
    return (str(CLEAN), shard.place) if shard.condition == str(CLEAN) else (shard.view, shard.place)


@dataclass
class _Stages:
    """The conditions of a stage on their way: the shards that are left, and the parts that are there."""

    setting: Setting
    run: Run
    stage: Stage
    views: Mapping[str, Images]
    job: ShardJob
    waiting: list[Condition]
    outputs: int | None = None

    def work(self) -> None:
        """Measure all shards, and write the records of a condition as soon as its parts are there."""
        self.parts = {str(condition): self._parts(condition) for condition in self.waiting}
        shards = [shard for condition in self.waiting for shard in self._shards(condition)]
        self.left = Counter(shard.condition for shard in shards)
        for condition in self.waiting:
            if not self.left[str(condition)]:  # stopped between the last part and the whole
                self._finish(str(condition))
        sizes = {str(condition): self._size(condition) for condition in self.setting.benchmark.conditions}
        self.total = sum(sizes.values())
        left = sum(self._measures(shard) for shard in shards)
        self.done, self.told = self.total - left, dict[Shard, int]()
        outcomes = self.setting.executor.run(self.job, shards, progress=self._hear, key=_shared)
        with contextlib.closing(outcomes):
            for shard, content in completed(outcomes, self.run.folder):
                self._keep(shard, content)
        remove_parts(self.run.folder, self.stage.number)

    def _hear(self, shard: Shard, told: int | Compiled | Outputs) -> None:
        if isinstance(told, Compiled):
            note_compiling(self.setting.model, told.seconds)
        elif isinstance(told, Outputs):
            self.outputs = self.outputs or told.count
            if told.count != self.outputs:
                raise InputError(
                    f"model {self.setting.model.name}: {told.count} classes in {shard}, {self.outputs} before; "
                    "expected as many for all images"
                )
        else:
            self._count(shard, told)

    def _count(self, shard: Shard, count: int) -> None:
        self.done += count - self.told.get(shard, 0)
        self.told[shard] = count
        self.setting.report(Step(shard.condition, self.done, self.total))

    def _keep(self, shard: Shard, content: bytes) -> None:
        self._count(shard, self._measures(shard))  # as counted beforehand, where sequences turned out shorter
        if shard.last is None:
            self._write(shard.condition, content)
            return
        self.parts[shard.condition].write((shard.first, shard.last), content)
        self.left[shard.condition] -= 1
        if not self.left[shard.condition]:
            self._finish(shard.condition)

    def _finish(self, condition: str) -> None:
        parts = self.parts[condition]
        self._write(condition, parts.joined(self.views[view_name(self.setting, parts.condition)].names))
        parts.remove()

    def _write(self, condition: str, content: bytes) -> None:
        path = record_path(self.run.folder, self.parts[condition].condition, self.stage.number)
        write_bytes(path, content, destination=self.run.folder)
        if condition == str(CLEAN):
            check_chance(self.setting, self.run, self.stage.number)

    def _parts(self, condition: Condition) -> Parts:
        view = view_name(self.setting, condition)
        # The fingerprint of stored images is known to those who read them; their conditions are not divided.
        pixels = "" if view == STORED else self.views[view].fingerprint
        header = json.loads(json.dumps(self.job.task_header(str(condition), pixels)))
        return Parts(self.run.folder, condition, self.stage.number, self.job.size, header)

    def _shards(self, condition: Condition) -> list[Shard]:
        name, view = str(condition), view_name(self.setting, condition)
        if view == STORED:
            return [Shard(name, view)]
        count = len(self._batches(view))
        there = self.parts[name].there()
        places = min(count, self.setting.executor.workers)
        if places == 1 and not there:
            return [self._marked(Shard(name, view))]
        spans = spans_left(count, there, places)
        return [self._marked(Shard(name, view, first, last, place)) for place, (first, last) in spans]

    def _batches(self, view: str) -> list[list[int]]:
        if view not in self._batch_lists:
            self._batch_lists[view] = batches_of(self.views[view], self.job.size)
        return self._batch_lists[view]

    def _marked(self, shard: Shard) -> Shard:
        """With the fingerprint of its images, for workers that read them from files of their own."""
        if self.setting.executor.reach != "cluster":
            return shard
        key = (shard.view, shard.first, shard.last)
        if key not in self._marks:
            batches = self._batches(shard.view)[shard.first : shard.last]
            rows = [row for batch in batches for row in batch] if shard.last is not None else None
            images = self.views[shard.view]
            self._marks[key] = images.take(range(len(images)) if rows is None else rows).fingerprint
        return replace(shard, mark=self._marks[key])

    def _size(self, condition: Condition) -> int:
        """How many images the model sees under a condition."""
        view = view_name(self.setting, condition)
        # The clean images of some classes are counted as if they were all, where they have been measured before.
        images = self.views.get(view, self.stage.images)
        return len(images) * (condition.sequence().length() if condition.is_sequence else 1)

    def _measures(self, shard: Shard) -> int:
        condition = self.job.conditions[shard.condition]
        if shard.last is None:
            return self._size(condition)
        rows = sum(len(batch) for batch in self._batches(shard.view)[shard.first : shard.last])
        return rows * (condition.sequence().length() if condition.is_sequence else 1)

    def __post_init__(self) -> None:
        self._batch_lists: dict[str, list[list[int]]] = {}
        self._marks: dict[tuple[str, int, int | None], str] = {}
