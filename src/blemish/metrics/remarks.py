"""What a reader has to know before comparing the numbers of a run with published ones."""

from __future__ import annotations

from blemish.evaluation.chance import LOOK_AT, Chance
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.caveats import part_of
from blemish.metrics.titles import TITLES

__all__ = ["remarks_on"]


def remarks_on(run: Run, baseline: Baseline | None, chance: Chance | None) -> list[str]:
    """What a reader has to know before comparing with published numbers."""
    own = [f"{run.name}: {chance}. {LOOK_AT}."] if chance is not None and chance.near else []
    own += _partial(run)
    if baseline is not None and baseline.near_chance:
        own.append(f"The baseline, {baseline.name}, is near chance: what is divided by its numbers means nothing.")
    if baseline is None or not baseline.published or baseline.unfit is not None:
        return own
    return own + _baseline_remarks(run, baseline)


def _partial(run: Run) -> list[str]:
    """That only a part of a benchmark was measured: the mean over it is another number than the benchmark's."""
    if (part := part_of(run)) is None:
        return []
    metric = run.info.benchmark.metric
    title = TITLES[metric].title if metric in TITLES else metric
    return [f"only {part.conditions} of the {part.whole} conditions of {part.benchmark}: not its {title}"]


def _baseline_remarks(run: Run, baseline: Baseline) -> list[str]:
    protocol, classes = run.info.protocol, run.info.data.classes
    groups = {condition.group for condition in run.conditions}
    remarks = baseline.remarks_on(run.conditions)
    if any(c.severity is not None and str(c) in baseline.errors for c in run.conditions):
        if protocol.storage == "raw":
            remarks.append("This run classified raw pixels; published numbers are of JPEG files of quality 85.")
        if "frost" in groups and protocol.frost not in (None, "reference"):
            remarks.append(f"Frost was made with {protocol.frost} photographs, not with those of published numbers.")
    if any(condition.is_sequence for condition in run.conditions):
        remarks.append("These are raw frames; published flip probabilities are of frames compressed as video.")
    if classes is not None and classes != 1000:
        remarks.append(f"The baseline's numbers are of ImageNet's 1000 classes; this data has {classes}.")
    return remarks
