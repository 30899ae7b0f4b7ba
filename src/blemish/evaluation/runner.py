"""Running a benchmark: every condition of it on one model, one file of records each, resumable at any moment."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import Dataset

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.benchmarks.files import load_benchmark
from blemish.data.cache import Images, load
from blemish.data.natural import same_classes
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order
from blemish.data.stored import StoredSet
from blemish.evaluation.header import (
    benchmark_entry,
    check_same,
    data_entry,
    joined_data,
    made_with,
    protocol_entry,
    save_info,
)
from blemish.evaluation.pictures import save_pictures
from blemish.evaluation.predict import Batcher
from blemish.evaluation.records import records_bytes
from blemish.evaluation.runs import Run, record_path
from blemish.evaluation.work import Task, measure
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.models.torch_module import from_module
from blemish.storage.files import check_folder, staged_destination, write_bytes
from blemish.types import InputError

__all__ = ["FIRST_STAGE", "Step", "evaluate"]

FIRST_STAGE = 256
"""How many images a run that goes on until it is precise enough begins with, unless it is told; then it doubles."""

# Values of a batch. On a CPU the activations of larger batches are given back to the system and zeroed by it again at
# every layer, which was measured to double the time.
_CPU_VALUES = 2**20
_GPU_VALUES = 2**26


@dataclass(frozen=True)
class Step:
    """Where a run stands: ``done`` of ``total`` classifications, at present those of ``condition``."""

    condition: str
    done: int
    total: int


Report = Callable[[Step], None]
Enough = Callable[[Run, int], bool]


def _silent(step: Step) -> None:
    """Report to nobody."""


def evaluate(
    benchmark: Benchmark | str | os.PathLike[str],
    model: Classifier | nn.Module | str,
    data: Source | Dataset[Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    limit: int | None = None,
    enough: Enough | None = None,
    natural: Mapping[str, Source] | None = None,
    stored: StoredSet | None = None,
    batch_size: int | None = None,
    zipf: bool = False,
    cache: str | os.PathLike[str] | None = None,
    report: Report = _silent,
) -> Run:
    """Measure a model on all conditions of a benchmark, and leave one file of records for each below ``out``.

    A benchmark may be named, a model given as a torch module (whose input is RGB in 0 … 1) or as a text that
    `open_model` takes, and the data as a path or torch dataset that `open_source` takes.

    Finished files are kept and skipped, so that the same call continues a run that was stopped; a folder made with
    other settings is refused. ``limit`` takes a subset that holds the classes in their proportions. With ``enough``,
    the run begins with ``limit`` images and doubles them until ``enough(run, look)`` says so for the number of looks,
    or there are no more. ``natural`` and ``stored`` give the images of conditions that are not made here. ``cache`` is
    a folder for decoded images that do not fit into memory. ``batch_size`` is halved when memory runs out; its default
    suits the device.
    """
    chosen = benchmark if isinstance(benchmark, Benchmark) else load_benchmark(benchmark)
    classifier = from_module(model) if isinstance(model, nn.Module) else model
    classifier = open_model(classifier) if isinstance(classifier, str) else classifier
    source = open_source(data)
    setting = _Setting(chosen, classifier, source, natural or {}, stored, zipf, cache, batch_size, report)
    setting.check(staged=enough is not None)
    folder = Path(out) / (re.sub(r"[^\w.@+-]", "_", classifier.name).strip(".") or "model")
    check_folder(folder)
    with staged_destination(folder):
        return _run(setting, folder, limit, enough)


@dataclass(frozen=True)
class _Setting:
    benchmark: Benchmark
    model: Classifier
    source: Source
    natural: Mapping[str, Source]
    stored: StoredSet | None
    zipf: bool
    cache: str | os.PathLike[str] | None
    batch_size: int | None
    report: Report

    def check(self, *, staged: bool) -> None:
        """Refuse conditions whose images nobody gave, before any work."""
        sets = {_set_name(condition) for condition in self.benchmark.conditions if condition.other}
        missing = sorted(sets - self.natural.keys())
        if missing:
            raise InputError(f"{self.benchmark.name} needs the images of {', '.join(missing)}; name their folders")
        if sets and staged:
            raise InputError(f"{self.benchmark.name} has other sets of images, which cannot grow until they suffice")
        if self.stored is not None:
            there = {*self.stored.conditions()}
            absent = [str(c) for c in self.benchmark.conditions if c.steps and str(c) not in there]
            if absent:
                shown = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
                raise InputError(f"{self.stored.name}: no images of {shown}; leave them out with --only")

    def load(self, source: Source, *, crop: bool = True) -> Images:
        protocol = self.benchmark.protocol
        return load(source, resize=protocol.resize, crop=protocol.crop if crop else None, folder=self.cache)


def _batcher(setting: _Setting, images: Images) -> Batcher:
    """Batches as asked, or such that a CPU's caches, or a GPU, are well used; results do not depend on it."""
    if setting.batch_size is not None:
        return Batcher(setting.batch_size)
    values = _CPU_VALUES if setting.model.device.type == "cpu" else _GPU_VALUES
    return Batcher(max(1, values // int(images.shapes[0].prod())))


def _set_name(condition: Condition) -> str:
    return str(condition.other).partition(":")[2]


def _stage_rows(source: Source, limit: int | None, staged: bool) -> list[NDArray[np.int64]]:
    """The rows of each stage; a single one unless the run is to go on until it is precise enough."""
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} images; expected at least 1")
    count = len(source)
    first = min(count, limit or (FIRST_STAGE if staged else count))
    stops = [first]
    while staged and stops[-1] < count:
        stops.append(min(count, 2 * stops[-1]))
    if stops == [count]:
        return [np.arange(count)]
    order = stratified_order(source.labels, source.ids)
    return [np.sort(order[start:stop]) for start, stop in zip([0, *stops], stops, strict=False)]


def _run(setting: _Setting, folder: Path, limit: int | None, enough: Enough | None) -> Run:
    stages = _stage_rows(setting.source, limit, enough is not None)
    others = {name: setting.load(source) for name, source in setting.natural.items()}
    info: dict[str, Any] = {
        "benchmark": benchmark_entry(setting.benchmark),
        "protocol": protocol_entry(setting.benchmark, pixels="stored" if setting.stored else "generated"),
        "model": setting.model.describe(),
        "data": {},
        "stages": [],
        "until": enough is not None,
        "classes": list(setting.source.classes) if setting.source.classes is not None else None,
        "made_with": made_with(),
    }
    info = json.loads(json.dumps(info))  # lists where there were tuples, as in the files it is compared with
    run = Run(folder, info)
    images: list[Images] = []
    for stage, rows in enumerate(stages):
        source = setting.source.take(rows)
        images.append(setting.load(source, crop=not setting.benchmark.has_sequences))
        info["stages"].append(_data(setting, images[-1], others, sum(len(part) for part in stages[: stage + 1])))
        info["data"] = joined_data(info["stages"])
        check_same(folder, info)
        save_info(folder, info)
        _run_stage(setting, folder, info, stage, images[-1], others)
        if enough is None or enough(run, stage + 1):
            break
    save_pictures(run, images)
    return run


def _data(setting: _Setting, images: Images, others: Mapping[str, Images], taken: int) -> dict[str, Any]:
    count = len(setting.source)
    return data_entry(
        name=setting.source.name,
        images=len(images),
        classes=len(np.unique(setting.source.labels)),
        fingerprint=images.fingerprint,
        selection="all" if taken == count else f"{taken} of {count}, stratified by class",
        others={name: other.fingerprint for name, other in others.items()},
    )


def _run_stage(
    setting: _Setting, folder: Path, info: dict[str, Any], stage: int, images: Images, others: Mapping[str, Images]
) -> None:
    conditions = setting.benchmark.conditions
    sizes = {condition: _classifications(condition, images, others) for condition in conditions}
    waiting = [condition for condition in conditions if not record_path(folder, condition, stage).is_file()]
    batcher = _batcher(setting, images)
    total = sum(sizes.values())
    done = total - sum(sizes[condition] for condition in waiting)

    for condition in waiting:
        name, before = str(condition), done
        setting.report(Step(name, done, total))

        def advance(count: int, name: str = name) -> None:
            nonlocal done
            done += count
            setting.report(Step(name, done, total))

        header = {
            "condition": name,
            "benchmark": setting.benchmark.name,
            "protocol": info["protocol"],
            "model": info["model"],
            "data": info["stages"][stage],
        }
        records = measure(_task(setting, condition, images, others), header, batcher, advance)
        write_bytes(record_path(folder, condition, stage), records_bytes(records), destination=folder)
        done = before + sizes[condition]


def _classifications(condition: Condition, images: Images, others: Mapping[str, Images]) -> int:
    """How many images the model will see; what is left of the clean set for other classes is taken to be all of it."""
    if condition.other is not None and condition.other.startswith("natural:"):
        return len(others[_set_name(condition)])
    return len(images) * (condition.sequence().length() if condition.is_sequence else 1)


def _task(setting: _Setting, condition: Condition, images: Images, others: Mapping[str, Images]) -> Task:
    protocol = setting.benchmark.protocol
    if condition.other is not None:
        name = _set_name(condition)
        if condition.other.startswith("natural:"):
            return Task(setting.model, condition, others[name], protocol)
        return Task(setting.model, condition, setting.load(same_classes(name, setting.source)), protocol)
    if setting.stored is not None and condition.steps:
        # Stored images have their size already, and are needed once: no cache is worth their place on the disk.
        copies = load(setting.stored.source(str(condition), like=images))
        return Task(setting.model, CLEAN, copies, protocol)
    crop = protocol.crop if setting.benchmark.has_sequences else None
    return Task(setting.model, condition, images, protocol, crop=crop, zipf=setting.zipf)
