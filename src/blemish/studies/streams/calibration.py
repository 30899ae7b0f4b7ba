"""Calibration: the accuracy of a model under every ordered pair of corruptions, over a grid of severities.

One file per pair in a folder, each complete or not there, and one that states the protocol; a stopped calibration goes
on where it was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import held_folder, temporary_folder
from blemish.core.reading import is_there, read_json
from blemish.core.settings import keep_settings
from blemish.core.typed import read_typed
from blemish.corruptions.plugins import own_code
from blemish.data.source import Source
from blemish.evaluation.executors.base import Executor, Reach
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.jobs import PlanJob
from blemish.evaluation.travel import mapped_sets, reopened_set
from blemish.models.portable import portable
from blemish.studies.streams.adaptive import Refinement
from blemish.studies.streams.bench import Bench, Pair, SurfaceMeasurement
from blemish.studies.streams.info import CalibrationInfo
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.surface_files import read_surface, surface_bytes

__all__ = ["PROTOCOL_FILE", "Bench", "calibrate", "pair_file", "read_calibration"]

PROTOCOL_FILE = "calibration.json"


def calibrate(
    bench: Bench,
    names: Sequence[str],
    *,
    folder: Path | None = None,
    refinement: Refinement | None = None,
    progress: Callable[[int, int], None] | None = None,
    executor: Executor | None = None,
    source: Source | None = None,
    resize: int | None = None,
    crop: int | None = None,
) -> dict[Pair, Surface]:
    """The surfaces of all ordered pairs of corruptions; with a ``refinement``, only the cells that its paths may use.

    ``folder`` keeps them, and what is there already is not measured again. The workers of an ``executor`` measure a
    pair each; on other machines they read the images of the ``source`` anew and bring them to size.
    """
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"corruptions {', '.join(names)}; expected at least two, each once")
    for name in names:
        if bench.catalog[name].only_severity is not None:
            raise InputError(f"{name} exists at one severity only; it cannot fade in and out")
        bench.catalog[name].check_files()
    with held_folder(folder) if folder is not None else contextlib.nullcontext():
        info = bench.describe(refinement)
        if folder is not None:
            info = keep_settings(folder / PROTOCOL_FILE, info, holds="a calibration made otherwise")
        pairs = [(first, second) for first in names for second in names if first != second]
        surfaces: dict[Pair, Surface] = {}
        paths = {pair: folder / pair_file(*pair) for pair in pairs} if folder is not None else {}
        for pair, path in paths.items():
            if is_there(path):
                surfaces[pair] = _read(path, _pair_info(info, bench, pair), pair)
        todo = [pair for pair in pairs if pair not in surfaces]
        workers = executor or InProcess()
        with _job(bench, refinement, workers.reach, source, resize, crop) as job:
            # A worker keeps the images under the first corruption for its other pairs.
            outcomes = workers.run(job, todo, key=lambda pair: pair[0])
            with contextlib.closing(outcomes):
                for pair, surface in completed(outcomes, folder, lambda pair: "+".join(pair)):
                    surfaces[pair] = surface
                    if pair in paths:
                        write_bytes(
                            paths[pair],
                            surface_bytes(surface, _pair_info(info, bench, pair)),
                            destination=folder,
                        )
                    if progress is not None:
                        progress(len(surfaces), len(pairs))
        if progress is not None and not todo:
            progress(len(pairs), len(pairs))
    return {pair: surfaces[pair] for pair in pairs}


@contextlib.contextmanager
def _job(
    bench: Bench,
    refinement: Refinement | None,
    reach: Reach,
    source: Source | None,
    resize: int | None,
    crop: int | None,
) -> Iterator[PlanJob[Pair, Surface]]:
    """The job for an executor, by what its workers share with this process."""
    plan = bench.plan
    with temporary_folder() as folder, contextlib.ExitStack() as stack:
        if reach != "process":
            plan = replace(plan, model=portable(bench.model))
        if reach == "machine":
            plan = replace(plan, images=mapped_sets({"": bench.images}, folder, stack))
        elif reach == "cluster":
            if source is None:
                raise InputError("a calibration on other machines needs the source of its images")
            plan = replace(plan, images={"": reopened_set(bench.images, source, resize, crop)})
        yield PlanJob(plan, SurfaceMeasurement(bench.grid, bench.catalog, refinement))


def _pair_info(info: CalibrationInfo, bench: Bench, pair: Pair) -> CalibrationInfo:
    """What the surface of a pair depends on: also the code of users' own corruptions in the pair."""
    return replace(info, code=own_code(bench.catalog[name] for name in pair) or None)


def pair_file(first: str, second: str) -> str:
    """The file name of a pair's surface.

    >>> pair_file("fog", "noc:rain")
    'fog+noc_rain.parquet'
    """
    return f"{first}+{second}.parquet".replace(":", "_")


def _read(path: Path, info: CalibrationInfo, pair: Pair | None = None) -> Surface:
    surface, stored = read_surface(path)
    if pair is not None and (surface.first, surface.second) != pair:
        raise InputError(
            f"{path}: the surface of {surface.first} and {surface.second}; expected {pair[0]} and {pair[1]}"
        )
    if pair is None:  # whoever only reads surfaces need not have the code
        stored = replace(stored, code=None)
    if stored != info:
        raise InputError(f"{path}: measured otherwise than {PROTOCOL_FILE} says; remove it to measure it again")
    return surface


def read_calibration(folder: Path) -> tuple[dict[Pair, Surface], CalibrationInfo]:
    """All surfaces in a folder, and how they were measured."""
    path = folder / PROTOCOL_FILE
    if not is_there(path):
        raise InputError(f"{folder}: no {PROTOCOL_FILE} in it; expected a folder that blemish ccc calibrate made")
    try:
        info = read_typed(CalibrationInfo, read_json(path))
    except InputError as error:
        raise InputError(f"{path}: {error}; expected what blemish ccc calibrate writes") from error
    surfaces = [_read(file, info) for file in sorted(folder.glob("*+*.parquet"))]
    if not surfaces:
        raise InputError(f"{folder}: no surfaces in it yet; run blemish ccc calibrate again to finish")
    return {(surface.first, surface.second): surface for surface in surfaces}, info
