"""What the numbers of a run may be called, and where they mean nothing: parts of benchmarks, models near chance."""

from __future__ import annotations

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.corruptions.labels import how_it_moves
from blemish.corruptions.moves import A_LITTLE, NOT_STATED
from blemish.evaluation.chance import LOOK_AT, Chance, chance_of
from blemish.evaluation.runs import NOT_HERE, Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.formulas import HIGHEST_CLEAN_ERROR
from blemish.metrics.maker import Metric, Missing
from blemish.metrics.plan import Plan
from blemish.metrics.references import references
from blemish.metrics.titles import TITLES, Part, partial_name

_RELATIVE = (
    *("relative_ce", "relative_mce", "mean_relative_ce"),
    *("relative_be", "relative_mbe", "mean_relative_be"),
    *("rcd", "mrcd", "mean_rcd"),
)
_IMAGENET = 1000
_LOSSES = (*_RELATIVE, "residual")
_BY_SIZE = ("ap_small", "ap_medium", "ap_large")
_CALIBRATION = ("confidence", "ece")


def part_of(run: Run) -> Part | None:
    """Which part of a benchmark a run is of; None for a whole one."""
    if (whole := run.info.benchmark.part_of) is None:
        return None
    # Clean images are measured along with any part; they are no condition of the benchmark to be counted.
    count = sum(condition != CLEAN for condition in run.conditions)
    return Part(count, whole.conditions, whole.name)


def headline_name(run: Run) -> str:
    """The name of the number that a run is headed by: the benchmark's metric, or that of a part of it."""
    metric = run.info.benchmark.metric
    return metric if part_of(run) is None else partial_name(metric)


def clean_chance(run: Run) -> Chance | None:
    """How a run's clean accuracy compares with chance, where its clean images are measured."""
    if run.info.task is not None:  # whose answers have no labels to be dealt out among them
        return None
    return chance_of(run.records(CLEAN)) if run.finished(CLEAN) else None


def refuse_near_chance(metric: Metric, *chances: Chance | None) -> None:
    """Refuse what a model near chance loses: it would be about 0, as if nothing could harm it."""
    if metric.name in _LOSSES and (near := [chance for chance in chances if chance is not None and chance.near]):
        raise InputError(f"{near[0]}: there is nothing left to lose")


def has_confidences(run: Run) -> bool:
    """Whether the confidences in records are a model's: the mean probability of a superclass's members is none."""
    if run.info.task is not None:
        return "confidence" in run.info.task.columns
    return run.info.protocol.pool != "mean"


def with_confidences(plan: Plan, *runs: Run) -> Plan:
    """The plan; without calibration, and with the reason, where a run has no confidences."""
    if all(map(has_confidences, runs)):
        return plan
    rest = [metric for metric in plan.metrics if metric.name not in _CALIBRATION]
    lost = [item for item in plan.missing if not {*item.names} <= {*_CALIBRATION}]
    if any(run.info.task is not None for run in runs):
        return Plan(tuple(rest), tuple(lost))
    why = "superclasses are decided by the mean probability of their members, which is no confidence"
    return Plan(tuple(rest), (*lost, Missing(_CALIBRATION, "", why)))


def is_worth_saying(metric: Metric) -> bool:
    """Whether it has to be said that a metric is missing: of objects of a size, once for the whole benchmark."""
    return metric.scope == "benchmark" or metric.name not in _BY_SIZE


def undefined_where(metric: Metric) -> str:
    """Where a metric is no finite number."""
    if metric.name in _RELATIVE:
        return f"the clean error is above {100 * HIGHEST_CLEAN_ERROR:g} %"
    if metric.name == "rpc":
        return "the number on clean images is 0"
    if metric.name.startswith("ap"):
        return "none of the images has an object of that kind"
    if metric.name.startswith("effective"):
        return "the clean accuracy is 0 or 100 %"
    return "the clean accuracy is 0"


def remarks(run: Run, baseline: Baseline | None, chance: Chance | None) -> list[str]:
    """What a reader has to know before comparing with published numbers."""
    lines = [f"{run.name}: {chance}. {LOOK_AT}."] if chance is not None and chance.near else []
    if run.info.model.card is not None and (remark := run.info.model.card.remark) is not None:
        lines.append(f"{run.name}: {remark}.")
    if (part := part_of(run)) is not None:
        metric = run.info.benchmark.metric
        title = TITLES[metric].title if metric in TITLES else metric
        lines.append(f"only {part.conditions} of the {part.whole} conditions of {part.benchmark}: not its {title}")
    if (name := run.info.benchmark.reference) is not None and name not in references():
        lines.append(f"No published accuracies are called {name!r}; known are {', '.join(references())}.")
    if run.info.protocol.pixels == NOT_HERE:
        lines.append(
            f"The answers came as a file ({run.folder.name}): nothing is known here of the pixels behind them."
        )
    lines += _places_remarks(run)
    if (task := run.info.task) is not None and (labels := task.settings.get("labels")) is not None:
        lines.append(
            f"An image has any of {labels} labels: the error is the share of them that is told wrongly, and the "
            "balanced error the mean over labels of that of yes and no."
        )
    if baseline is not None and baseline.near_chance:
        lines.append(f"The baseline, {baseline.name}, is near chance: what is divided by its numbers means nothing.")
    if baseline is None or not baseline.published or baseline.unfit is not None:
        return lines
    return lines + _baseline_remarks(run, baseline)


def _places_remarks(run: Run) -> list[str]:
    """Which corruptions of a run move pixels, where the truth is of places and stays."""
    if run.info.protocol.pixels == NOT_HERE or run.info.task is None or "truth" not in run.info.task.settings:
        return []
    told = {A_LITTLE.how: "a little", "by a map": "by a map", NOT_STATED: "as nobody states"}
    names = dict.fromkeys(name for condition in run.conditions for name in condition.names())
    moving: dict[str, list[str]] = {}
    for name in names:
        moving.setdefault(how_it_moves(catalog[name].moves if name in catalog else None), []).append(name)
    parts = [f"{told[how]} under {', '.join(moving[how])}" for how in told if how in moving]
    return [f"The truth stays where it is, though pixels move {'; '.join(parts)}."] if parts else []


def _baseline_remarks(run: Run, baseline: Baseline) -> list[str]:
    protocol, task = run.info.protocol, run.info.task
    classes = run.info.data.classes if task is None else task.settings.get("labels")
    groups = {condition.group for condition in run.conditions}
    lines = baseline.remarks_on(run.conditions)
    if any(c.severity is not None and str(c) in baseline.errors for c in run.conditions):
        if protocol.storage == "raw":
            lines.append("This run classified raw pixels; published numbers are of JPEG files of quality 85.")
        if "frost" in groups and protocol.frost not in (None, "reference"):
            lines.append(f"Frost was made with {protocol.frost} photographs, not with those of published numbers.")
    if any(condition.is_sequence for condition in run.conditions):
        lines.append("These are raw frames; published flip probabilities are of frames compressed as video.")
    if classes is not None and classes != baseline.classes:
        whose = "ImageNet's " if baseline.classes == _IMAGENET else ""
        lines.append(f"The baseline's numbers are of {whose}{baseline.classes} classes; this data has {classes}.")
    return lines
