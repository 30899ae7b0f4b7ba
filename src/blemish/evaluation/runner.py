"""Running a benchmark: every condition of it on one model, one file of records each, resumable at any moment."""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import Dataset

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.folders import held_folder
from blemish.core.links import check_no_link
from blemish.data.cache import Images, Progress
from blemish.data.labels import fit_labels, labels_entry
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order
from blemish.data.stored import StoredSet
from blemish.evaluation.dispatch import run_stage
from blemish.evaluation.executors.base import Executor, Failed
from blemish.evaluation.executors.failures import raise_failures
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.fitting import fit
from blemish.evaluation.header import (
    benchmark_entry,
    chance_allowed,
    check_same,
    data_entry,
    joined_data,
    made_with,
    protocol_entry,
    save_info,
    stages_present,
)
from blemish.evaluation.pictures import save_pictures
from blemish.evaluation.runs import Run
from blemish.evaluation.stage import Report, Setting, Stage, Step
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.models.torch_module import from_module

__all__ = ["FIRST_STAGE", "Step", "evaluate"]

FIRST_STAGE = 256
"""How many images a run that goes on until it is precise enough begins with, unless it is told; then it doubles."""

# File systems end names at 255 bytes, and a letter may take four.
_LONGEST_NAME = 60

Enough = Callable[[Run, int], bool]


def _silent(step: Step) -> None:
    """Report to nobody."""


def evaluate(
    model: Classifier | nn.Module | str,
    data: Source | Dataset[Any] | str | os.PathLike[str],
    benchmark: Benchmark | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    limit: int | None = None,
    stop_when: Enough | None = None,
    natural: Mapping[str, Source] | None = None,
    stored: StoredSet | None = None,
    batch_size: int | None = None,
    zipf: bool = False,
    cache: str | os.PathLike[str] | None = None,
    report: Report = _silent,
    reading: Progress | None = None,
    executor: Executor | None = None,
    allow_chance: bool = False,
) -> Run:
    """Measure a model on all conditions of a benchmark and leave one file of records for each below ``out``.

    A benchmark may be named, a model given as a torch module (as `from_module` takes it) or as a text that `open_model`
    takes, and the data as a path or torch dataset that `open_source` takes. What had to be assumed, of labels or of the
    model's input, is told by a `Notice`, a warning. A model that is not better than chance on the clean images is not
    measured further (`NearChanceError`) unless ``allow_chance`` is set.

    Finished files are kept and skipped, so that the same call continues a run that was stopped; a folder made with
    other settings is refused. ``limit`` takes a subset that holds the classes in their proportions. With ``stop_when``,
    the run begins with ``limit`` images and doubles them until ``stop_when(run, look)`` says so for the number of
    looks, or there are no more. ``natural`` and ``stored`` give the images of conditions that are not made here.
    ``cache`` is a folder for decoded images that do not fit into memory. ``batch_size`` is halved when memory runs out;
    its default suits the device. ``report`` is told where the run stands, and ``reading`` how many images are decoded,
    of how many; nothing is printed. ``executor`` shares the work out to other processes, GPUs or machines; the records
    are the same.
    """
    chosen = benchmark if isinstance(benchmark, Benchmark) else load_benchmark(benchmark)
    classifier = from_module(model) if isinstance(model, nn.Module) else model
    classifier = open_model(classifier) if isinstance(classifier, str) else classifier
    if not isinstance(classifier, Classifier):
        kind = type(model).__name__
        raise InputError(f"a model of type {kind}; expected a torch module, a Classifier, or a text for open_model")
    source = open_source(data)
    setting = Setting(
        chosen,
        classifier,
        source,
        natural or {},
        stored,
        zipf,
        cache,
        batch_size,
        report,
        executor or InProcess(),
        reading=reading,
        allow_chance=allow_chance,
    )
    setting.check(staged=stop_when is not None)
    folder = Path(out) / (re.sub(r"[^\w.@+-]", "_", classifier.name)[:_LONGEST_NAME].strip(".") or "model")
    check_no_link(folder, Path(out))
    setting = _fitted(setting, folder)
    with held_folder(folder), setting.executor:
        return _run(setting, folder, limit, stop_when)


def _fitted(setting: Setting, folder: Path) -> Setting:
    """What was asked for, with labels that are the model's class numbers."""
    protocol = setting.benchmark.protocol
    try:
        fitted = fit(setting.model, setting.source, resize=protocol.resize, crop=protocol.crop)
    except InputError as error:
        if error.__cause__ is not None:  # what the model raised may be wanted
            raise_failures([Failed(CLEAN, str(error), traceback.format_exc(), 1, bad_input=True)], folder)
        raise
    for other in setting.natural.values():
        fit_labels(other, fitted.outputs, model=setting.model.name)
    return replace(setting, source=fitted.source, outputs=fitted.outputs)


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


def _run(setting: Setting, folder: Path, limit: int | None, stop_when: Enough | None) -> Run:
    rows_of = _stage_rows(setting.source, limit, stop_when is not None)
    others = {name: setting.load(source) for name, source in setting.natural.items()}
    info = _info(setting, folder, staged=stop_when is not None)
    run = Run(folder, info)
    images: list[Images] = []
    # A run that has gone further is not cut short by a wider interval.
    before = stages_present(folder) if stop_when is not None else 1
    for number, rows in enumerate(rows_of):
        source = setting.source.take(rows)
        images.append(setting.load(source, crop=not setting.benchmark.has_sequences))
        if number == 0:
            info["protocol"]["stored"] = setting.stored_mark(images[0])
        info["stages"].append(_data(setting, images[-1], others, sum(len(part) for part in rows_of[: number + 1])))
        info["data"] = joined_data(info["stages"])
        check_same(folder, info)
        if number + 1 >= before:
            save_info(folder, info)
        run_stage(setting, run, Stage(number, source, images[-1], others))
        if number + 1 >= before and (stop_when is None or stop_when(run, number + 1)):
            break
    save_pictures(run, images)
    return run


def _info(setting: Setting, folder: Path, *, staged: bool) -> dict[str, Any]:
    classes = setting.source.classes
    info = {
        "benchmark": benchmark_entry(setting.benchmark),
        "protocol": protocol_entry(
            setting.benchmark,
            pixels="stored" if setting.stored else "generated",
            labels=labels_entry(setting.source),
        ),
        "model": {**setting.model.describe(), "outputs": setting.outputs},
        "data": {},
        "stages": [],
        "until": staged,
        "allow_chance": setting.allow_chance or chance_allowed(folder),
        "classes": list(classes) if classes is not None else None,
        "made_with": made_with(),
    }
    # Lists where there were tuples, as in the files it is compared with.
    return dict(json.loads(json.dumps(info)))


def _data(setting: Setting, images: Images, others: Mapping[str, Images], taken: int) -> dict[str, Any]:
    count = len(setting.source)
    return data_entry(
        name=setting.source.name,
        images=len(images),
        classes=len(np.unique(setting.source.labels)),
        fingerprint=images.fingerprint,
        selection="all" if taken == count else f"{taken} of {count}, stratified by class",
        others={name: other.fingerprint for name, other in others.items()},
    )
