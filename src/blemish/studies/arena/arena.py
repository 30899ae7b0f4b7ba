"""The arena: methods × settings × seeds as units of work, those that are not there yet shared out to workers."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import held_folder
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.settings import keep_settings
from blemish.core.states import DamagedFileError, read_state
from blemish.core.typed import as_json
from blemish.corruptions.catalog import Catalog
from blemish.data.images import Images
from blemish.data.source import Source
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.jobs import PlanJob
from blemish.evaluation.plan import ImageSet, Plan
from blemish.evaluation.travel import mapped_sets, reopened_set
from blemish.models.base import Classifier
from blemish.models.portable import portable
from blemish.studies.adaptation.methods import Settings
from blemish.studies.arena.adapting import STATE_KEYS, Pace
from blemish.studies.arena.course import Course, course_of
from blemish.studies.arena.results import (
    ARENA_FILE,
    ArenaInfo,
    StreamHeader,
    read_method_result,
    stream_bytes,
)
from blemish.studies.arena.units import Stage, Unit
from blemish.studies.arena.work import ArenaWork, Saved, result_header, walk_course, walk_stream
from blemish.studies.streams.walks import Walk
from blemish.version import VERSION


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a model is asked: on which corruptions, by which protocol, with which published settings of methods.

    ``clean`` is how many clean images are predicted before and after each stream, ``batch`` the size of batches where
    settings have none of their own. ``walk`` is what the settings show that have one.
    """

    corruptions: tuple[str, ...]
    protocol: Protocol
    benchmark: str
    batch: int
    methods: Settings = "imagenet"
    clean: int = 2000
    image_list: str | None = None
    walk: Walk | None = None
    catalog: Catalog


@dataclass
class Arena:
    """A folder of results of one model on one set of images, which grows."""

    model: Classifier
    images: Images
    source: Source
    question: Question
    folder: Path
    pace: Pace = field(default_factory=Pace)

    @property
    def info(self) -> ArenaInfo:
        """What all results have in common."""
        asked = self.question
        walk = None if asked.walk is None else _digest(asked.walk.to_json())
        return ArenaInfo(
            model=self.model.describe(),
            data=self.images.name,
            images=len(self.images),
            fingerprint=self.images.fingerprint,
            image_list=asked.image_list,
            benchmark=asked.benchmark,
            corruptions=asked.corruptions,
            protocol=asked.protocol,
            methods=asked.methods,
            clean_images=min(asked.clean, len(self.images)),
            walk=walk,
            batch=asked.batch,
            blemish=VERSION,
        )

    @property
    def mark(self) -> str:
        """A digest by which results know what they belong to."""
        return _digest(json.dumps(as_json(self.info, compared=True), sort_keys=True))

    def course(self, stage: Stage) -> Course:
        """What a stream shows."""
        asked = self.question
        if not stage.setting.walk:
            return course_of(stage.setting, stage.variant, asked.corruptions, self.images.labels, stage.seed)
        if asked.walk is None:
            raise InputError(f"setting {stage.setting.name} shows a walk, and none was given")
        shape = tuple(self.images.shapes[0].tolist())
        nothing = torch.zeros((1, *shape), dtype=torch.uint8).expand(len(self.images), *shape)
        return walk_course(walk_stream(asked.walk, nothing, self.images, stage.seed, asked.protocol, asked.catalog))

    def missing(self, units: Sequence[Unit]) -> list[Unit]:
        """Those without a result; one that was made otherwise is refused."""
        lengths = {stage: len(self.course(stage)) for stage in dict.fromkeys(unit.stage for unit in units)}
        left = []
        for unit in units:
            path = unit.result(self.folder)
            if not path.is_file():
                left.append(unit)
                continue
            read_method_result(path, result_header(unit, self.mark, lengths[unit.stage], self.question.methods))
        return left

    def run(self, units: Sequence[Unit], executor: Executor | None = None, report: ProgressReport = tell_nobody) -> int:
        """Do the units that have no result yet; how many these were."""
        executor = executor or InProcess()
        with held_folder(self.folder), executor:
            keep_settings(self.folder / ARENA_FILE, self.info, holds="another arena")
            left = self.missing(units)
            courses = {stage: self.course(stage) for stage in dict.fromkeys(unit.stage for unit in units)}
            for stage, course in courses.items():
                self._write_stream(stage, course)
            total = sum(len(courses[unit.stage]) for unit in units)
            done = total - sum(len(courses[unit.stage]) for unit in left)
            self._work(left, courses, executor, report, done, total)
        return len(left)

    def _work(
        self,
        units: Sequence[Unit],
        courses: dict[Stage, Course],
        executor: Executor,
        report: ProgressReport,
        done: int,
        total: int,
    ) -> None:
        told: dict[str, int] = {}

        def hear(unit: Unit, said: int | Saved) -> None:
            if isinstance(said, Saved):
                write_bytes(self._state_file(unit), said.state, destination=self.folder)
            else:
                told[str(unit)] = said
                report(done + sum(told.values()), total, str(unit))

        with contextlib.ExitStack() as stack:
            plan = self._plan(courses.values(), executor, stack)
            asked = self.question
            work = ArenaWork(
                asked.corruptions, asked.methods, asked.clean, self.mark, asked.walk, asked.catalog, self.pace
            )
            resumed = [unit.resumed(self._state(unit)) for unit in units]
            outcomes = executor.run(PlanJob(plan, work), resumed, progress=hear, key=_stage_of)
            stack.enter_context(contextlib.closing(outcomes))
            for unit, content in completed(outcomes, self.folder):
                write_bytes(unit.result(self.folder), content, destination=self.folder)
                self._state_file(unit).unlink(missing_ok=True)
                hear(unit, len(courses[unit.stage]))

    def _plan(self, courses: Iterable[Course], executor: Executor, stack: contextlib.ExitStack) -> Plan:
        asked, protocol = self.question, self.question.protocol
        names = dict.fromkeys(name for course in courses for name in course.conditions)
        corruptions = [] if asked.walk is None else [f"{name}@5" for name in asked.walk.corruptions]
        plain = [name for name in names if "+" not in name and name != "clean"]
        conditions = {
            name: parse_condition(name, catalog=asked.catalog) for name in dict.fromkeys([*plain, *corruptions])
        }
        if executor.reach == "process":
            sets = {"": ImageSet(self.images)}
        elif executor.reach == "machine":
            sets = mapped_sets({"": self.images}, self.folder, stack)
        else:
            sets = {"": reopened_set(self.images, self.source, protocol.resize, protocol.view)}
        return Plan(
            model=self.model if executor.reach == "process" else portable(self.model),
            conditions=(CLEAN, *conditions.values()),
            images=sets,
            protocol=protocol,
            batch_size=len(self.images),
        )

    def _write_stream(self, stage: Stage, course: Course) -> None:
        """What a stream shows, for those who read the results."""
        path = self.folder / "streams" / f"{stage.slug}.parquet"
        header = StreamHeader(
            setting=stage.setting,
            variant=stage.variant,
            seed=stage.seed,
            conditions=course.conditions,
            blocks=course.blocks,
            resets=course.resets,
        )
        content = stream_bytes(header, course, self.images.ids, self.images.labels)
        if not path.is_file() or path.read_bytes() != content:
            write_bytes(path, content, destination=self.folder)

    def _state_file(self, unit: Unit) -> Path:
        """Where the state of an interrupted unit is; its name tells it from those of other settings."""
        header = as_json(result_header(unit, self.mark, 0, self.question.methods), compared=True)
        return unit.state_file(self.folder, _digest(json.dumps(header, sort_keys=True))[:8])

    def _state(self, unit: Unit) -> bytes | None:
        """What an interrupted run left; what is damaged, or of another run, is begun again."""
        path = self._state_file(unit)
        if not path.is_file():
            return None
        try:
            read_state(path, STATE_KEYS)
        except DamagedFileError:
            return None
        return path.read_bytes()


def _stage_of(unit: Unit) -> str:
    return unit.stage.slug


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
