"""When a run that takes more and more images may stop."""

from __future__ import annotations

import math

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.caveats import headline_name, part_of
from blemish.metrics.looks import enough_replicates, look_levels
from blemish.metrics.plan import make_plan
from blemish.metrics.scores import as_baseline, finished, measured, resampled, sample_means
from blemish.metrics.table import read_tables

_FEWEST = 100


def precise_enough(
    run: Run,
    *,
    width: float,
    look: int,
    alpha: float = 0.05,
    baseline: Baseline | Run | str | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> tuple[bool, float]:
    """Whether the headline's interval at this look is narrower than ``width``, in its own units, and its width.

    The interval has level 1 − α/(k(k + 1)) at look k. `score` gives the same one by itself, with ``level=1 - alpha``,
    for a run that went on until it was precise enough: do not correct its level once more. Fewer than 100 images are
    never enough, and neither is an interval of no width: images may agree by chance, for no good reason.
    """
    if not width > 0:
        raise InputError(f"width {width:g}; expected more than 0")
    share = look_levels(alpha, look)
    name = headline_name(run)
    tables = [
        table.only("correct", "flip", "top5", "zipf", "score", "boxes") for table in read_tables(run, finished(run))
    ]
    keys = [key for table in tables for key in table]
    partial = part_of(run) is not None
    plan = make_plan(run.conditions, keys, as_baseline(run, baseline), family=run.family, partial=partial)
    headline = [metric for metric in plan.metrics if (metric.scope, metric.name) == ("benchmark", name)]
    if not headline:
        why = [item.why for item in plan.missing if name in item.names and not item.of]
        raise InputError(f"{run.name}: {name} cannot be computed: {why[0] if why else 'no condition has it'}")
    replicated = resampled(tables, replicates=enough_replicates(share, replicates), seed=seed)
    metric = headline[0]
    try:
        number = measured(metric, tables, sample_means(tables), replicated, level=1 - share)
    except InputError:  # a clean accuracy of 0, which more images may mend
        return False, math.inf
    few = any(len(table.images) < _FEWEST for table in tables)
    return 0 < number.width < width and not few, number.width
