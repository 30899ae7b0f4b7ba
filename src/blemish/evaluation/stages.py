"""The images of a run, stage by stage: most runs have one; a run that grows gets further ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Benchmark
from blemish.core.errors import InputError, notify
from blemish.data.images import Images, joined_fingerprint
from blemish.data.source import Source, stratified_order
from blemish.evaluation.info import DataInfo

FIRST_STAGE = 256
"""How many images a run that goes on until it is precise enough begins with, unless it is told; then it doubles."""

Rows = NDArray[np.int64]


def check_growth(folder: Path, total: int, asked: int, benchmark: Benchmark) -> None:
    """Say so where a folder holds more images than are asked for; raise where it holds fewer, and cannot grow."""
    if asked < total:
        notify(f"{folder} holds {total} images already, more than the {asked} that were asked for")
    elif asked > total and (others := [str(c) for c in benchmark.conditions if c.other]):
        raise InputError(
            f"{folder} holds {total} images; {others[0]} is of another set of images, "
            "which does not grow with a limit: choose another --out"
        )


def stage_rows(source: Source, limit: int | None, present: Sequence[int], *, doubling: bool) -> list[Rows]:
    """The rows of each stage: those of which there are records (``present`` counts them), then what is asked for.

    A run asks for ``limit`` images; one that is ``doubling`` begins with them.
    """
    if limit is not None and limit < 1:
        raise InputError(f"a limit of {limit} images; expected at least 1")
    count = len(source)
    asked = min(count, limit or (FIRST_STAGE if doubling else count))
    stops = list(itertools.accumulate(present)) or [asked]
    if stops[-1] > count:  # other images, which are refused when they are compared
        stops = [asked]
    if asked > stops[-1] and not doubling:
        stops.append(asked)
    while doubling and stops[-1] < count:
        stops.append(min(count, 2 * stops[-1]))
    if stops == [count]:
        return [np.arange(count)]
    order = stratified_order(source.labels, source.ids)
    return [np.sort(order[start:stop]) for start, stop in itertools.pairwise([0, *stops])]


def data_entries(
    source: Source, stages: Sequence[Images], rows: Sequence[Rows], others: Mapping[str, Images]
) -> tuple[DataInfo, DataInfo]:
    """What the run file says of the images of the last stage, and of all stages, as if they had been one."""
    count, taken = len(source), sum(map(len, rows))
    last = DataInfo(
        images=len(stages[-1]),
        name=source.name,
        classes=len(np.unique(source.labels)),
        fingerprint=stages[-1].fingerprint,
        selection="all" if taken == count else f"{taken} of {count}, stratified by class",
        others={name: other.fingerprint for name, other in others.items()},
    )
    order = np.argsort(np.concatenate(rows), kind="stable")
    return last, replace(last, images=taken, fingerprint=joined_fingerprint(stages, order))
