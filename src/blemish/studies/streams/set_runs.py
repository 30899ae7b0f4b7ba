"""All runs of some sets: each target with each seed and each speed, one after the other, and what came out of each.

::

    OUT/<set>/seed-43-speed-1000/walk.json     the walk
    OUT/<set>/seed-43-speed-1000/…             the run, as `run` writes it, and its ``summary.json`` when it is over

A run that is over is not repeated, and one that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.models.base import ModelInfo
from blemish.studies.adaptation.base import Adapts
from blemish.studies.streams.info import CalibrationInfo, MethodSettings
from blemish.studies.streams.levels import SEEDS, WalkSet
from blemish.studies.streams.planning import Pair, calibrated_for, make_walk
from blemish.studies.streams.run import run_info, run_stream
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.summaries import read_summary, run_summary, save_summary
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk

WALK_FILE = "walk.json"

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class SetRun:
    """A run that belongs to a set: the walk at one target, by one seed and at one speed."""

    of: WalkSet
    target: float
    seed: int
    speed: int
    walk: Walk

    @property
    def column(self) -> str:
        """The set, and the target where it has several: runs of one column are averaged."""
        several = len(self.of.targets) > 1
        return f"{self.of.name}, {100 * self.target:g} %" if several else self.of.name

    @property
    def folder(self) -> str:
        """The folder below that of all runs."""
        several = len(self.of.targets) > 1
        name = f"{self.of.name}-{100 * self.target:g}" if several else self.of.name
        return f"{name}/seed-{self.seed}-speed-{self.speed}"

    def __str__(self) -> str:
        return f"{self.column}, seed {self.seed}, {self.speed:,} a step"


def planned_runs(
    surfaces: Mapping[Pair, Surface],
    calibration: CalibrationInfo,
    sets: Iterable[WalkSet],
    *,
    seeds: Sequence[int] = SEEDS,
    speeds: Sequence[int] = (),
    images: int | None = None,
) -> list[SetRun]:
    """All runs of the sets, with walks over the surfaces of a calibration; nine for each target where nothing is said.

    Other ``speeds`` and another number of ``images`` than the set's are noted in the walks.
    """
    for what, values in (("seeds", seeds), ("speeds", speeds)):
        if len(set(values)) != len(values):
            raise InputError(f"{what} {', '.join(map(str, values))}; expected each once")
    runs = []
    for chosen in sets:
        for target in chosen.targets:
            rule = chosen.rule(target, measured_only=calibrated_for(calibration, target))
            for seed in seeds:
                for speed in speeds or chosen.speeds:
                    walk = make_walk(
                        surfaces,
                        rule,
                        images=images or chosen.images,
                        speed=speed,
                        names=chosen.corruptions,
                        seed=seed,
                        closed=chosen.closed,
                        repair=False,
                        calibration=calibration,
                    )
                    runs.append(SetRun(chosen, target, seed, speed, chosen.marked(walk)))
    return runs


@dataclass(frozen=True)
class FinishedRun:
    """A run of a set and its scores: see `run_summary`."""

    run: SetRun
    scores: Mapping[str, Any]


@dataclass(frozen=True)
class RunSettings:
    """What all runs share. ``methods`` names them; ``model`` and ``settings`` describe what is run."""

    methods: Sequence[str]
    model: ModelInfo
    settings: MethodSettings
    window: int | None = None
    every: int = 500
    workers: int = 0


def finish_runs(
    runs: Sequence[SetRun],
    streams: Sequence[Stream],
    out: Path,
    shared: RunSettings,
    fresh: Callable[[Stream], Mapping[str, Adapts]],
    *,
    part: int = 0,
    parts: int = 1,
    progress: Progress | None = None,
) -> list[FinishedRun | None]:
    """Do all runs that are not over, each on its stream, with ``fresh`` methods; several calls may share the work.

    Those that are over are given back, whoever did them, and None for the others. ``progress`` is told how many images
    of this part are done, of how many, and which run it is at.
    """
    finished = [_finished(run, stream, out, shared) for run, stream in zip(runs, streams, strict=True)]
    mine = range(part, len(runs), parts)
    todo = [index for index in mine if finished[index] is None]
    total = sum(int(streams[index].length) for index in mine)
    done = total - sum(int(streams[index].length) for index in todo)
    for index in todo:
        run, stream = runs[index], streams[index]

        def tell(images: int, _: int, run: SetRun = run, before: int = done) -> None:
            if progress is not None:
                progress(before + images, total, str(run))

        tell(0, 0)  # what was there took no time
        finished[index] = _finish(run, stream, out, shared, fresh(stream), tell)
        done += int(stream.length)
    # Other parts may have finished some meanwhile.
    return [
        done or _finished(run, stream, out, shared) for done, run, stream in zip(finished, runs, streams, strict=True)
    ]


def _finished(run: SetRun, stream: Stream, out: Path, shared: RunSettings) -> FinishedRun | None:
    """The scores of a run, if it is over."""
    info = run_info(stream, shared.methods, model=shared.model, settings=shared.settings)
    scores = read_summary(out / run.folder, info, shared.window)
    return None if scores is None else FinishedRun(run, scores)


def _finish(
    run: SetRun,
    stream: Stream,
    out: Path,
    shared: RunSettings,
    methods: Mapping[str, Adapts],
    tell: Callable[[int, int], None],
) -> FinishedRun:
    """Do a run, or go on with one that was stopped; keep its walk and its scores."""
    folder = out / run.folder
    result = run_stream(
        stream,
        methods,
        folder=folder,
        every=shared.every,
        workers=shared.workers,
        model=shared.model,
        settings=shared.settings,
        progress=tell,
    )
    write_bytes(folder / WALK_FILE, run.walk.to_json().encode())
    scores = run_summary(result, run.walk, shared.window)
    save_summary(folder, scores)
    return FinishedRun(run, scores)
