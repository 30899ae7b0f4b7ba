"""Scores of the arena: errors, gains and losses against the model that is not adapted, ranks, forgetting, and costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, normal_quantile, unanimous_interval
from blemish.metrics.rank_groups import Place, rank_groups
from blemish.studies.arena.results import MethodResult, StreamTable, read_method_result, read_stream
from blemish.studies.arena.units import AS_PUBLISHED
from blemish.studies.streams.scores import Collapse, default_window, find_collapse, running_mean

UNADAPTED = "none"

_POINTS = 240


@dataclass(frozen=True)
class Shown:
    """A stream and what each method said of it, by its label: its name, with what is varied of it."""

    stream: StreamTable
    results: Mapping[str, MethodResult]

    @property
    def setting(self) -> str:
        """The name of its setting."""
        assert self.stream.header.setting is not None
        return self.stream.header.setting.name

    def wrong(self, label: str) -> NDArray[np.bool_]:
        """Which images a method got wrong."""
        return np.asarray(self.results[label].predictions != self.stream.labels)


def read_arena(folder: Path) -> list[Shown]:
    """Everything that is finished in a folder, stream by stream."""
    finished = []
    for path in sorted((folder / "streams").glob("*.parquet")):
        results = {}
        for file in sorted((folder / "results" / path.stem).glob("*.parquet")):
            result = read_method_result(file)
            varied = str(result.header.variation)
            results[f"{result.header.method}@{varied}" if varied else result.header.method] = result
        if not results:
            continue
        stream = read_stream(path)
        for label, result in results.items():
            if len(result.predictions) != len(stream.labels):
                raise InputError(f"{path}: {len(stream.labels):,} images, and {label} has {len(result.predictions):,}")
        finished.append(Shown(stream, results))
    if not finished:
        raise InputError(f"{folder}: no results; expected a folder that blemish arena run made")
    return finished


class Clustered:
    """Sums over images that may come several times, under several conditions, orders and seeds: an image counts as one.

    ``mean`` is the mean over all positions, and its interval the normal one of a ratio of sums over images. It says
    how far other images would have changed the number. What another order of the stream would have changed, it does not
    say: see the spread over seeds. Values are 0 or 1, or differences of such. Where all are the same, the interval is
    the exact one of what not one of so many images does.
    """

    def __init__(self, parts: Iterable[tuple[NDArray[np.int64], NDArray[Any]]]) -> None:
        """``parts`` are the ids of the images at some positions, and a value for each position."""
        ids, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._unanimous, self._signed = bool((values == values[0]).all()), values.dtype != np.bool_
        _, position = np.unique(ids, return_inverse=True)
        counts = np.bincount(position).astype(np.float64)
        sums = np.bincount(position, weights=values.astype(np.float64))
        self.images, self.mean = len(counts), float(sums.sum() / counts.sum())
        around = sums - self.mean * counts
        more = self.images / (self.images - 1) if self.images > 1 else math.nan
        self.error = math.sqrt(more * float((around**2).sum())) / float(counts.sum())

    def estimate(self, level: float = 0.95) -> Estimate:
        """The mean with its interval."""
        if self._unanimous:
            other = unanimous_interval(0.0, self.images, level=level).high  # of the images, at most, with another value
            reach = 2 * other if self._signed and self.mean else other
            least = -1.0 if self._signed else 0.0
            return Estimate(self.mean, max(self.mean - reach, least), min(self.mean + reach, 1.0))
        half = normal_quantile(level) * self.error
        return Estimate(self.mean, self.mean - half, self.mean + half)

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the mean is 0, two-sided."""
        if self.error == 0:
            return 1.0 if self.mean == 0 else min(1.0, 2.0 ** (1 - self.images))  # all of them differ the same way
        return math.erfc(abs(self.mean) / self.error / math.sqrt(2))


@dataclass(frozen=True)
class Entrant:
    """A method on a setting, over all its orders and seeds.

    ``gain`` is what it takes away from the error of the model that is not adapted, image by image, ``by_run`` the
    errors of the single streams, and ``seconds`` and ``memory`` what an image, and the device, took. ``behind`` are the
    first stretches, one of a stream, in which it is worse than that model for a whole window, however little: only
    where that is far is it a collapse. ``clean`` is the error on clean images after the stream, ``forgetting`` how much
    that is more than before. ``signals`` are what can be seen without labels.
    """

    label: str
    error: Estimate
    gain: Estimate | None
    by_run: tuple[float, ...]
    by_condition: Mapping[str, float]
    behind: tuple[Collapse, ...]
    clean: Estimate | None
    forgetting: Estimate | None
    adapted: float
    passes: float | None
    seconds: float
    memory: int | None
    signals: Mapping[str, float]
    invalid: int
    published: bool
    place: Place | None = None


@dataclass(frozen=True)
class Scored:
    """A setting: its streams, what each method came to, and running errors at some images of the first stream.

    ``unfinished`` are the methods that are not compared, with how many of the streams they have.
    """

    name: str
    title: str
    source: str
    severities: tuple[float, ...]
    batch: int
    images: int
    streams: int
    device: str
    window: int
    level: float
    unfinished: Mapping[str, int]
    entrants: Mapping[str, Entrant]
    at: tuple[int, ...]
    curves: Mapping[str, tuple[float, ...]]
    begins: tuple[tuple[int, str], ...]


def setting_names(shown: Sequence[Shown]) -> list[str]:
    """The settings that there are, in order."""
    return list(dict.fromkeys(one.setting for one in shown))


def scored(shown: Sequence[Shown], *, level: float = 0.95, window: int | None = None) -> list[Scored]:
    """The scores of each setting, over those of its streams that each method has finished."""
    return [_scored([one for one in shown if one.setting == name], level, window) for name in setting_names(shown)]


def _scored(shown: Sequence[Shown], level: float, window: int | None) -> Scored:
    header = shown[0].stream.header
    assert header.setting is not None
    # Only methods that finished every stream are compared: others would be judged on other images.
    done = Counter(label for one in shown for label in one.results)
    labels = [label for label in done if done[label] == len(shown)]
    length = len(shown[0].stream.labels)
    size = min(window or default_window(length), length)
    entrants = {label: _entrant(shown, label, level, size) for label in labels}
    published = [label for label in labels if entrants[label].published]
    entrants |= _placed(shown, {label: entrants[label] for label in published}, level)
    at = np.unique(np.linspace(0, length - size, _POINTS).astype(np.int64))
    begins = [(block, header.conditions[int(shown[0].stream.condition[block])]) for block in header.blocks]
    first = shown[0].results[labels[0]].header if labels else None
    return Scored(
        name=header.setting.name,
        title=header.setting.title,
        source=header.setting.source,
        severities=header.setting.severities,
        batch=0 if first is None else first.batch,
        images=length,
        streams=len(shown),
        device="" if first is None else first.device,
        window=size,
        level=level,
        unfinished={label: count for label, count in done.items() if count < len(shown)},
        entrants=entrants,
        at=tuple((at + size).tolist()),
        curves={label: tuple((running_mean(shown[0].wrong(label), size)[at]).tolist()) for label in published},
        begins=tuple(begins),
    )


def _entrant(shown: Sequence[Shown], label: str, level: float, window: int) -> Entrant:
    results = [one.results[label] for one in shown]
    header = results[0].header
    compared = label != UNADAPTED and all(UNADAPTED in one.results for one in shown)
    gain = None
    behind: list[Collapse] = []
    if compared:
        changes = [(one.stream.images, one.wrong(UNADAPTED).astype(np.int64) - one.wrong(label)) for one in shown]
        gain = Clustered(changes).estimate(level)
        falls = [
            find_collapse(~one.wrong(label), ~one.wrong(UNADAPTED), min(window, len(one.stream.labels)))
            for one in shown
        ]
        behind = [fall for fall in falls if fall is not None]
    clean, forgetting = _clean(results, level)
    images = sum(len(result.predictions) for result in results)
    memory = [result.header.memory for result in results if result.header.memory is not None]
    return Entrant(
        label=label,
        error=Clustered((one.stream.images, one.wrong(label)) for one in shown).estimate(level),
        gain=gain,
        by_run=tuple(float(one.wrong(label).mean()) for one in shown),
        by_condition=_by_condition(shown, label),
        behind=tuple(behind),
        clean=clean,
        forgetting=forgetting,
        adapted=float(np.mean([result.adapted.mean() for result in results])),
        passes=header.passes,
        seconds=sum(result.header.seconds for result in results) / images,
        memory=max(memory) if memory else None,
        signals=_signals(results),
        invalid=sum(int((result.predictions < 0).sum()) for result in results),
        published=header.variation == AS_PUBLISHED,
    )


def _by_condition(shown: Sequence[Shown], label: str) -> dict[str, float]:
    wrong: dict[str, list[NDArray[np.bool_]]] = {}
    for one in shown:
        each = one.wrong(label)
        for number, name in enumerate(one.stream.header.conditions):
            wrong.setdefault(name, []).append(each[one.stream.condition == number])
    return {name: float(np.concatenate(parts).mean()) for name, parts in wrong.items() if sum(map(len, parts))}


def _clean(results: Sequence[MethodResult], level: float) -> tuple[Estimate | None, Estimate | None]:
    """The error on clean images after the streams, and by how much it rose; each image counts as one."""
    headers = [result.header for result in results if result.header.clean_after]
    if not headers:
        return None, None
    ids = np.arange(len(headers[0].clean_labels))
    after = [np.array(h.clean_after) != np.array(h.clean_labels) for h in headers]
    before = [np.array(h.clean_before) != np.array(h.clean_labels) for h in headers]
    rise = [a.astype(np.int64) - b for a, b in zip(after, before, strict=True)]
    return (
        Clustered((ids, each) for each in after).estimate(level),
        Clustered((ids, each) for each in rise).estimate(level),
    )


def _signals(results: Sequence[MethodResult]) -> dict[str, float]:
    """What can be seen without labels, means over all images: see `MethodResult` and `ResultHeader`.

    Nothing can be seen of a method that gave scores that were not numbers: it would be judged by the others.
    """
    probes = [share for result in results for share in result.header.probes]
    signals = {
        name: float(np.mean([getattr(result, name).mean() for result in results]))
        for name in ("entropy", "density", "concentration")
    }
    signals |= {"consistency": float(np.mean(probes))} if probes else {}
    return signals if all((result.predictions >= 0).all() for result in results) else dict.fromkeys(signals, math.nan)


def _placed(shown: Sequence[Shown], entrants: Mapping[str, Entrant], level: float) -> dict[str, Entrant]:
    """Each method with its ranks among those with published settings."""
    labels = list(entrants)
    ids = np.concatenate([one.stream.images for one in shown])
    wrong = {label: np.concatenate([one.wrong(label) for one in shown]).astype(np.int8) for label in labels}
    p_values = np.ones((len(labels), len(labels)))
    for i, first in enumerate(labels):
        for j in range(i):
            p_values[i, j] = p_values[j, i] = Clustered([(ids, wrong[first] - wrong[labels[j]])]).p_value
    places = rank_groups([entrants[label].error.value for label in labels], p_values, level=level)
    return {labels[place.index]: replace(entrants[labels[place.index]], place=place) for place in places}
