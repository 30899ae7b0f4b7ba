"""`evaluate`: a model on a benchmark, condition by condition, into a folder that grows and is never measured twice."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.folders import check_no_link, held_folder
from blemish.core.live import shown_progress
from blemish.core.printable import first_few
from blemish.core.progress import READING, ProgressReport
from blemish.core.typed import as_json, read_typed
from blemish.core.types import Square
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.labels import labels_entry
from blemish.data.open import Data, open_source
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.arguments import AskedBenchmark, AskedModel, as_benchmark, as_classifier, results_folder
from blemish.evaluation.chance import check_above_chance
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.fitting import check_outputs_unchanged, fit_all
from blemish.evaluation.header import (
    benchmark_info,
    extended,
    made_with,
    merged,
    protocol_info,
    read_info,
    save_info,
    stored_fingerprints,
)
from blemish.evaluation.info import DataInfo, RunInfo
from blemish.evaluation.parts import remove_parts
from blemish.evaluation.pictures import save_pictures
from blemish.evaluation.plan import Plan, fitting_batch_size
from blemish.evaluation.recording import Recording, frames_of
from blemish.evaluation.records import read_header
from blemish.evaluation.runs import Run, model_folder, record_path
from blemish.evaluation.stages import check_growth, data_entries, stage_rows
from blemish.evaluation.task import Task, fitting_benchmark, named_model
from blemish.evaluation.travel import image_sets, other_images, reopening, set_name
from blemish.evaluation.warming import warming
from blemish.models.base import Classifier
from blemish.models.portable import portable

StopWhen = Callable[[Run, int], bool]


def evaluate(
    model: AskedModel,
    data: Data,
    benchmark: AskedBenchmark,
    *,
    out: str | os.PathLike[str] | None = None,
    name: str | None = None,
    limit: int | None = None,
    stop_when: StopWhen | None = None,
    natural: Mapping[str, Source] | None = None,
    stored: StoredSet | None = None,
    batch_size: int | None = None,
    zipf: bool = False,
    cache: str | os.PathLike[str] | None = None,
    report: ProgressReport | None = None,
    executor: Executor | None = None,
    allow_chance: bool = False,
    task: Task | None = None,
) -> Run:
    """Measure a model on all conditions of a benchmark and leave one file of records for each below ``out``.

    The benchmark is a name, a file, or a list such as ``["fog", "snow@3"]``; the model a torch module (as `from_module`
    takes it), a function of uint8 batches, or a text that `open_model` takes, called ``name``; the data a path or torch
    dataset that `open_source` takes. Without ``out``, results are kept in the user's cache, and the same call finds
    them again. What had to be assumed, of labels or of the model's input, is told by a `Notice`, a warning. A model
    that is not better than chance on the clean images is not measured further (`NearChanceError`) unless
    ``allow_chance`` is set.

    Finished files are kept and skipped, so that the same call continues a run that was stopped. A run grows: with
    further conditions of the same benchmark, or a larger ``limit``, the same folder gets what is missing; anything else
    that decides numbers has to be the same. ``limit`` takes a subset that holds the classes in their proportions, and a
    larger one holds the smaller. With ``stop_when``, the run begins with ``limit`` images and doubles them until
    ``stop_when(run, look)`` says so for the number of looks, or there are no more.

    ``natural`` and ``stored`` give the images of conditions that are not made here. ``cache`` is a folder for decoded
    images that do not fit into memory. ``batch_size`` is halved when memory runs out; its default suits the device.
    Progress is shown: a bar on a terminal or in a notebook, elsewhere a line every half minute; a ``report`` is told
    instead. ``executor`` shares the work out to other processes, GPUs or machines; the records are the same. With a
    ``task``, the model is asked that, and need not be better than chance.
    """
    chosen, source = as_benchmark(benchmark), open_source(data)
    chosen = chosen if task is None else fitting_benchmark(chosen, task)
    classifier: Any = as_classifier(model, name) if task is None else named_model(model, name)
    root = results_folder(chosen, classifier, source) if out is None else Path(out)
    folder = model_folder(root, classifier.name)
    with shown_progress("evaluate", first=READING) if report is None else contextlib.nullcontext(report) as told:
        evaluation = _Evaluation(
            chosen,
            classifier,
            source,
            folder,
            natural=natural or {},
            stored=stored,
            zipf=zipf,
            cache=cache,
            batch_size=batch_size,
            report=told,
            executor=executor or InProcess(),
            allow_chance=allow_chance,
            task=task,
        )
        evaluation.check_conditions(chosen.conditions, grows=stop_when is not None)
        check_no_link(folder, root)
        evaluation.fit()
        with held_folder(folder), evaluation.executor:
            return evaluation.run(limit, stop_when)


@dataclass
class _Evaluation:
    """What `evaluate` was asked for, and the steps of doing it."""

    benchmark: Benchmark
    model: Classifier
    source: Source
    folder: Path
    natural: Mapping[str, Source]
    stored: StoredSet | None
    zipf: bool
    cache: str | os.PathLike[str] | None
    batch_size: int | None
    report: ProgressReport
    executor: Executor
    allow_chance: bool
    task: Task | None
    outputs: int | None = None

    def check_conditions(self, conditions: Sequence[Condition], *, grows: bool) -> None:
        """Refuse conditions whose images nobody gave, or whose pixels cannot be made here, before any work."""
        name = self.benchmark.name
        if self.stored is None:
            for condition in conditions:
                condition.check_files()
        sets = {set_name(condition) for condition in conditions if condition.other}
        if missing := sorted(sets - self.natural.keys()):
            raise InputError(f"{name} needs the images of {', '.join(missing)}; name their folders")
        if sets and grows:
            raise InputError(f"{name} has other sets of images, which cannot grow until they suffice")
        stored = self.stored
        if stored is not None and (absent := [str(c) for c in conditions if c.steps and not stored.holds(str(c))]):
            raise InputError(f"{stored.name}: no images of {first_few(absent, 5)}; leave them out with --only")

    def fit(self) -> None:
        """Make the labels the model's class numbers; of a task, look whether the model and the images are its own."""
        if self.task is not None:
            self.task.check(self.model, self.source.names)
            return
        fitted = fit_all(self.model, self.source, self.natural.values(), self.benchmark.protocol, self.folder)
        self.source, self.outputs = fitted
        if self.benchmark.protocol.superclasses is not None and self.stored is not None:
            self.source = self.stored.shared(self.source)

    def run(self, limit: int | None, stop_when: StopWhen | None) -> Run:
        """Measure stage by stage; a run has one, unless it grows."""
        present = read_info(self.folder)
        self.benchmark = extended(self.benchmark, present, self.folder)
        doubling = stop_when is not None
        counts = [stage.images for stage in present.stages] if present else []
        if counts and not doubling and sum(counts) <= len(self.source):
            check_growth(self.folder, sum(counts), limit or len(self.source), self.benchmark)
        rows_of = stage_rows(self.source, limit, counts, doubling=doubling)
        others = {name: self._load(source) for name, source in self.natural.items()}
        stages: list[Images] = []
        entries: list[DataInfo] = []
        reached = 1 if present is None else len(present.stages)
        for number, rows in enumerate(rows_of):
            source = self.source.take(rows)
            here = self.executor.reach == "process" and self.stored is None and self.task is None
            ready = warming(self.model, self.benchmark, source, self.folder, number, self.batch_size)
            with ready if here else contextlib.nullcontext():
                stages.append(self._load(source, crop=not self.benchmark.has_sequences))
            entry, whole = data_entries(self.source, stages, rows_of[: number + 1], others)
            entries.append(entry)
            info = self._info(present, stages[0], entries, whole, doubling=doubling)
            run = Run(self.folder, info)
            # A run that has gone further is not cut short by a wider interval.
            self._measure_stage(run, number, source, stages[-1], others, save=number + 1 >= reached)
            if number + 1 >= reached and stop_when is not None and stop_when(run, number + 1):
                break
        if self.task is None:
            save_pictures(run, stages, crop=self._late_crop)
        return run

    def _load(self, source: Source, *, crop: bool = True) -> Images:
        """The images of a source, brought to the size of the protocol."""
        protocol = self.benchmark.protocol
        view = protocol.view if crop else None
        return load(source, resize=protocol.resize, crop=view, folder=self.cache, progress=self.report)

    @property
    def _late_crop(self) -> int | Square | None:
        """What is still to be cut from the loaded images: sequences are made of whole ones."""
        return self.benchmark.protocol.view if self.benchmark.has_sequences else None

    def _info(
        self, present: RunInfo | None, first: Images, stages: Sequence[DataInfo], data: DataInfo, *, doubling: bool
    ) -> RunInfo:
        """The run file: of this run, and of what its folder holds; raise if that was made in another way."""
        stored = None if self.stored is None else stored_fingerprints(self.stored, self.benchmark, first)
        info = RunInfo(
            benchmark=benchmark_info(self.benchmark, stored=stored is not None),
            protocol=protocol_info(self.benchmark, stored=stored, labels=labels_entry(self.source)),
            model=self.model.describe(self.outputs),
            data=data,
            stages=tuple(stages),
            until=doubling,
            allow_chance=self.allow_chance or (present is not None and present.allow_chance),
            classes=self.source.class_names or self.source.classes,
            made_with=made_with(),
            task=None if self.task is None else self.task.info,
        )
        # As it comes back from its file, with which it is compared: numbers where there were those of NumPy.
        return merged(self.folder, present, read_typed(RunInfo, json.loads(json.dumps(as_json(info)))))

    def _measure_stage(
        self, run: Run, stage: int, source: Source, images: Images, others: Mapping[str, Images], *, save: bool
    ) -> None:
        """Measure what is not there yet; what is there has to be this run's, before its file is touched."""
        conditions = self.benchmark.conditions
        finished = [condition for condition in conditions if self._is_finished(run, condition, stage)]
        waiting = tuple(condition for condition in conditions if condition not in finished)
        if waiting:
            self.check_conditions(waiting, grows=stage > 0)
        if CLEAN in finished:
            if waiting:
                self._check_chance(run, stage)
            protocol, crop, size = self.benchmark.protocol, self._late_crop, self.batch_size
            check_outputs_unchanged(
                self.model, images, run, stage, protocol=protocol, batch_size=size, crop=crop, task=self.task
            )
        if save:
            save_info(run.folder, run.info)
        if not waiting:
            remove_parts(run.folder, stage)
            return
        sets = {"": images}
        for condition in waiting:
            if condition.other is not None and condition.other not in sets:
                sets[condition.other] = other_images(condition, source, images, others)
        reach, benchmark = self.executor.reach, self.benchmark
        with contextlib.ExitStack() as stack:
            plan = Plan(
                model=self.model if reach == "process" else portable(self.model),
                conditions=waiting,
                images=image_sets(sets, reach, source, self.natural, benchmark, folder=run.folder, stack=stack),
                protocol=self.benchmark.protocol,
                batch_size=self.batch_size or fitting_batch_size(images, self.executor.device or self.model.device),
                crop=self._late_crop,
                zipf=self.zipf,
                stored=self.stored if reach == "process" else reopening(self.stored),
                info=run.info,
                stage=stage,
                task=self.task,
            )
            Recording(
                plan,
                run.folder,
                self.model,
                self.executor,
                self.report,
                earlier=sum(len(images) * frames_of(condition, self.benchmark.protocol) for condition in finished),
                after_clean=lambda: self._check_chance(run, stage),
            ).work()

    def _is_finished(self, run: Run, condition: Condition, stage: int) -> bool:
        """Whether the records of a condition are there, made in the way of this run."""
        path = record_path(run.folder, condition, stage)
        if not path.is_file():
            return False
        try:
            run.check(path, condition, stage)
        except InputError as error:
            raise InputError(f"{error}; remove the file to measure it again") from error
        # Distances that nobody asked for the first time are worth measuring again.
        return not (self.zipf and condition.is_sequence) or read_header(path).zipf

    def _check_chance(self, run: Run, stage: int) -> None:
        if not self.allow_chance and self.task is None:
            check_above_chance(run, stage)
