"""Everything that can be said of a run: the headline and all its parts, each with an interval."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Bootstrap, stream_of
from blemish.core.statistics import Estimate, percentile_interval, unanimous_interval
from blemish.corruptions.catalog import catalog
from blemish.evaluation.runs import Run, RunLike, as_run, as_runs
from blemish.metrics.agreement import agreed
from blemish.metrics.baselines import Baseline, baseline_from_run, fitted, published_baseline
from blemish.metrics.beside import beside
from blemish.metrics.calibration import Reliability, reliability
from blemish.metrics.caveats import (
    clean_chance,
    has_confidences,
    headline_name,
    is_worth_saying,
    part_of,
    refuse_near_chance,
    remarks,
    undefined_where,
    with_confidences,
)
from blemish.metrics.effective import effective_metrics
from blemish.metrics.formulas import Array
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.maker import Metric, Missing, merged
from blemish.metrics.plan import make_plan
from blemish.metrics.scored import Score, Scores
from blemish.metrics.table import Key, Table, drawn_with, read_tables
from blemish.metrics.titles import TITLES


@overload
def score(run: RunLike, **settings: Any) -> Scores: ...


@overload
def score(run: Sequence[RunLike], **settings: Any) -> list[Scores]: ...


def score(run: RunLike | Sequence[RunLike], **settings: Any) -> Scores | list[Scores]:
    """All metrics that apply to a run, with percentile bootstrap intervals over its images; of a list, all of them.

    A run may be named by its folder. ``settings`` are those of `score_run`: ``baseline``, ``level``, ``replicates``,
    ``seed`` and ``report``.
    """
    if isinstance(run, (Run, str, os.PathLike)):
        return score_run(as_run(run), **settings)
    return [score_run(one, **settings) for one in as_runs(run)]


def score_run(
    run: Run,
    *,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    report: ProgressReport = tell_nobody,
) -> Scores:
    """All metrics that apply to a run, with percentile bootstrap intervals over its images.

    ``baseline`` is a published one by name, a run or a `Baseline`; by default the one that the benchmark names. It
    counts as known exactly: intervals are about the images the model was measured on. Those of a run that went on until
    it was precise enough are wider, so that they hold at this ``level`` whenever it stopped. ``report`` is told how far
    reading and resampling have come.
    """
    used, replicates = level_and_replicates(level, replicates, run)
    conditions, base = finished(run), as_baseline(run, baseline)
    tables = read_tables(run, conditions, report=report)
    part, chance = part_of(run), clean_chance(run)
    keys = [key for table in tables for key in table]
    plan = make_plan(run.conditions, keys, base, family=run.family, partial=part is not None)
    plan = with_confidences(plan, run)
    point = sample_means(tables)
    replicated = resampled(tables, replicates=replicates, seed=seed, report=report)
    clean = point.get(("correct", str(CLEAN)))
    further, absent = effective_metrics(run, set(keys), None if clean is None else float(clean))
    rows, missing = [], [*plan.missing, *absent]
    for metric in (*plan.metrics, *further):
        try:
            refuse_near_chance(metric, chance)
            number = measured(metric, tables, point, replicated, level=used)
        except InputError as error:
            if is_worth_saying(metric):
                missing.append(Missing((metric.name,), metric.of, str(error)))
            continue
        if metric.name == "ece":
            number = replace(number, low=max(0.0, number.low))
        rows.append(Score(metric.name, metric.scope, metric.of, number, trained(run, metric)))
    return Scores(
        model=run.name,
        benchmark=run.info.benchmark.name,
        metric=headline_name(run),
        rows=tuple(rows),
        missing=merged(missing),
        reliability=_reliability(tables) if has_confidences(run) else {},
        baseline=base.name if base and base.unfit is None else None,
        remarks=tuple(remarks(run, base, chance)),
        images=len(tables[0].images),
        level=level,
        replicates=replicates,
        seed=seed,
        part=part,
        chance=chance,
        beside=beside(run, point, replicated, level=used, seed=seed),
    )


def finished(run: Run) -> list[Condition]:
    """The conditions whose records are complete; at least one."""
    conditions = [condition for condition in run.conditions if run.finished(condition)]
    if not conditions:
        raise InputError(f"{run.folder}: no condition is finished yet; run the same command again to finish")
    return conditions


def as_baseline(run: Run, baseline: Baseline | Run | str | None) -> Baseline | None:
    """The baseline that was asked for, or else the one that the run's benchmark names."""
    chosen = run.info.benchmark.baseline if baseline is None else baseline
    if isinstance(chosen, Run):
        return baseline_from_run(chosen)
    named = published_baseline(chosen) if isinstance(chosen, str) else chosen
    return None if named is None else fitted(named, run)


def sample_means(tables: Sequence[Table]) -> dict[Key, Array]:
    """The means over the images as they are."""
    return {key: value for table in tables for key, value in table.means().items()}


def resampled(
    tables: Sequence[Table], *, replicates: int, seed: int, report: ProgressReport = tell_nobody
) -> dict[Key, Array]:
    """The means over resampled images; different sets of images are resampled independently."""
    means: dict[Key, Array] = {}
    for table in tables:
        whole, rows = drawn_with(tables, table)
        draws = Bootstrap(len(whole.images), replicates, seed, stream_of(whole.name))
        means |= draws.means(table, rows, report=report)
    return means


def estimate(metric: Metric, value: Array, replicates: Array, *, level: float) -> Estimate:
    """A metric with its interval, in the units it is shown in."""
    scale = TITLES[metric.name].scale
    why = undefined_where(metric)
    if not np.isfinite(value):
        raise InputError(why)
    if not np.isfinite(replicates).all():
        raise InputError(f"{why} in some resamples: there are too few images for an interval")
    if metric.name == "ece":
        # Resampling adds noise to every bin and so raises ECE: without this the interval could lie above the value.
        replicates = replicates - (replicates.mean() - value)
    return percentile_interval(float(value) * scale, replicates * scale, level=level)


def measured(
    metric: Metric,
    tables: Sequence[Table],
    point: Mapping[Key, Array],
    replicated: Mapping[Key, Array],
    *,
    level: float,
) -> Estimate:
    """A metric of one model. Where all answers under all its conditions agree, rates get an exact interval.

    An image counts once, however many conditions it was seen under. What is made of such rates gets the interval that
    as many images could move it by.
    """
    value = metric.function(point)
    known = ("error", "accuracy", "balanced_error")
    keys: list[Key] = [("correct", str(condition)) for condition in metric.conditions]
    table = next((table for table in tables if all(key in table.columns for key in keys)), None)
    if metric.name in known and table is not None and value in (0, 1):
        images = table.images_by_the_rarest if metric.name == "balanced_error" else len(table.images)
        return unanimous_interval(float(value), images, level=level).scaled(TITLES[metric.name].scale)
    values = metric.function(replicated)
    interval = agreed(metric, tables, point, values, level=level)
    return interval or estimate(metric, value, values, level=level)


def trained(run: Run, metric: Metric) -> bool:
    """Whether the model is declared to be trained on a corruption in it."""
    training = run.info.model.training
    seen = {kin for name in (training.corruptions if training else ()) for kin in catalog.kin(name)}
    return any(name in seen for condition in metric.conditions for name in condition.names())


def _reliability(tables: Sequence[Table]) -> dict[str, Reliability]:
    return {
        text: reliability(values, table.columns["correct", text])
        for table in tables
        for (kind, text), values in table.columns.items()
        if kind == "confidence"
    }
