"""Errors against perceptual distance: severities of all corruptions on one scale, and the area under the curve."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Bootstrap, stream_of
from blemish.core.settings import differing, listed
from blemish.core.statistics import Estimate, percentile_interval
from blemish.evaluation.header import protocol_info
from blemish.evaluation.runs import Run
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.table import read_tables

# Another seed draws other noise of the same strength; the rest does not touch pixels.
_NO_MATTER = ("seed", "labels", "superclasses", "pool")


@dataclass(frozen=True)
class Curve:
    """The errors of a model under one corruption, with the mean distance of each condition; the nearest comes first.

    Errors are shares with their intervals. The first point is that of the clean images, at distance 0.
    """

    corruption: str
    conditions: tuple[Condition, ...]
    distances: tuple[float, ...]
    errors: tuple[Estimate, ...]

    @property
    def reach(self) -> float:
        """The largest distance."""
        return self.distances[-1]


@dataclass(frozen=True)
class Area:
    """The mean error between distance 0 and ``up_to``, of a corruption or of several (their mean).

    ``corruptions`` is how many reach so far and count; ``left_out`` how many do not. None where none does.
    """

    of: str
    up_to: float
    error: Estimate | None
    corruptions: int = 1
    left_out: int = 0


@dataclass(frozen=True)
class ErrorCurves:
    """The curves of one model, and the areas under them: each to its own reach, and each to one common distance."""

    model: str
    measure: str
    curves: tuple[Curve, ...]
    own: tuple[Area, ...]
    common: tuple[Area, ...]
    catalogues: tuple[Area, ...]


def area_weights(distances: ArrayLike, up_to: float) -> NDArray[np.float64] | None:
    """The weights with which errors at some distances give the mean error between 0 and ``up_to``.

    Errors between the distances are linear, so that the mean is (1/D) ∫₀ᴰ e(d) dd, a weighted sum. The distances
    ascend, from 0. None where they do not reach so far: nothing is extrapolated.

    >>> area_weights([0.0, 0.2, 0.4], 0.4).tolist()
    [0.25, 0.5, 0.25]
    >>> area_weights([0.0, 0.4], 0.2).round(3).tolist()
    [0.75, 0.25]
    """
    places = np.asarray(distances, dtype=np.float64)
    if not up_to > 0:
        raise InputError(f"an area up to a distance of {up_to:g}; expected more than 0")
    if places.ndim != 1 or not len(places) or places[0] != 0 or (np.diff(places) < 0).any():
        raise InputError(f"distances {places.tolist()}; expected some that ascend from 0")
    if places[-1] < up_to:
        return None
    weights = np.zeros(len(places))
    for i, (start, end) in enumerate(itertools.pairwise(places.tolist())):
        if start >= up_to:
            break
        length = min(end, up_to) - start
        share = length / (end - start) if end > start else 0.0
        weights[i] += length * (1 - share / 2)
        weights[i + 1] += length * share / 2
    return np.asarray(weights / up_to)


def error_curves(
    run: Run,
    benchmark: Benchmark,
    distances: Mapping[str, float],
    *,
    measure: str,
    up_to: float,
    catalogue: Mapping[str, str],
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    report: ProgressReport = tell_nobody,
) -> ErrorCurves:
    """The errors of a run against the mean distances of its conditions, which are texts in ``distances``.

    Intervals are over the images of the run; distances count as known exactly. Conditions that only one side has are
    left out; pixels that were made in another way than those of the ``benchmark`` here are refused. ``catalogue`` names
    that of each corruption, for the means.
    """
    used, replicates = level_and_replicates(level, replicates, run)
    shared = [c for c in run.conditions if str(c) in distances and run.finished(c)]
    if not shared or not run.finished(CLEAN):
        raise InputError(f"{run.folder}: no condition with a distance is finished; expected records of the same ones")
    _check_same_pixels(run, benchmark, shared)
    table = read_tables(run, [CLEAN, *shared], report=report)[0]
    keys = [("correct", str(condition)) for condition in (CLEAN, *shared)]
    columns = {key: table.columns["correct", key[1]] for key in keys}
    resampled = Bootstrap(len(table.images), replicates, seed, stream_of(table.name)).means(columns, report=report)
    point = {str(c): 1 - float(columns["correct", str(c)].mean()) for c in (CLEAN, *shared)}
    drawn = {str(c): 1 - resampled["correct", str(c)] for c in (CLEAN, *shared)}

    curves: list[Curve] = []
    own: list[_Drawn] = []
    common: list[_Drawn] = []
    for corruption in dict.fromkeys(condition.group for condition in shared):
        members = sorted((c for c in shared if c.group == corruption), key=lambda c: distances[str(c)])
        # Rounding can put an unchanged image a little below 0.
        places = [0.0, *(max(0.0, distances[str(c)]) for c in members)]
        texts = [str(CLEAN), *map(str, members)]
        errors = [percentile_interval(point[text], drawn[text], level=used) for text in texts]
        curves.append(Curve(corruption, (CLEAN, *members), tuple(places), tuple(errors)))
        values, replicated = np.array([point[t] for t in texts]), np.stack([drawn[t] for t in texts])
        own.append(_area(corruption, places, places[-1], values, replicated, used))
        common.append(_area(corruption, places, up_to, values, replicated, used))
    groups: dict[str, list[_Drawn]] = {}
    for area in common:
        groups.setdefault(catalogue[area.area.of], []).append(area)
    if len(groups) > 1:
        groups["all"] = common
    return ErrorCurves(
        run.name,
        measure,
        tuple(curves),
        tuple(item.area for item in own),
        tuple(item.area for item in common),
        tuple(_mean(name, members, up_to, used) for name, members in groups.items()),
    )


class _Drawn(NamedTuple):
    """An area, and the same of all resamples; None where the distance is not reached."""

    area: Area
    replicates: NDArray[np.float64] | None


def _area(
    of: str,
    places: Sequence[float],
    up_to: float,
    errors: NDArray[np.float64],
    replicated: NDArray[np.float64],
    level: float,
) -> _Drawn:
    weights = area_weights(places, up_to) if up_to > 0 else None
    if weights is None:
        return _Drawn(Area(of, up_to, None, 0, 1), None)
    drawn = np.asarray(weights @ replicated)
    return _Drawn(Area(of, up_to, percentile_interval(float(weights @ errors), drawn, level=level)), drawn)


def _mean(name: str, members: Sequence[_Drawn], up_to: float, level: float) -> Area:
    reached = [(m.area.error.value, m.replicates) for m in members if m.area.error and m.replicates is not None]
    lost = len(members) - len(reached)
    if not reached:
        return Area(name, up_to, None, 0, lost)
    value = float(np.mean([error for error, _ in reached]))
    replicated = np.mean([replicates for _, replicates in reached], axis=0)
    return Area(name, up_to, percentile_interval(value, replicated, level=level), len(reached), lost)


def _check_same_pixels(run: Run, benchmark: Benchmark, conditions: Sequence[Condition]) -> None:
    ours = protocol_info(benchmark)
    lines: dict[str, None] = {}
    for condition in conditions:
        pair = [asdict(protocol.of(condition)) for protocol in (run.info.protocol, ours)]
        plain = [{key: value for key, value in entry.items() if key not in _NO_MATTER} for entry in pair]
        different = differing(plain[0], plain[1], "protocol")
        lines |= dict.fromkeys(f"{name} is {there} there and {here} here" for name, there, here in different)
    if lines:
        raise InputError(f"{run.folder}: its images were not made as here ({listed(list(lines))})")
