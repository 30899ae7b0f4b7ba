"""The section of a page that shows many models beside each other, and its charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_lowercase

import numpy as np

from blemish.core.statistics import Estimate
from blemish.metrics.published import PublishedModel
from blemish.metrics.testbed import line_models, logit, published_lines
from blemish.reports.charts import Line, Point, scatter
from blemish.reports.page import Chart, Section
from blemish.reports.reading import Reading, is_near_chance
from blemish.reports.standings import (
    Standing,
    effective_table,
    models_table,
    normalised,
    positions,
    reference_models,
    standings,
)
from blemish.reports.svg import Axis
from blemish.reports.wording import PLAIN, Wording

_TITLES = {
    "clean_error": "clean error, %",
    "mce": "mCE, %",
    "relative_mce": "relative mCE, %",
    "mfr": "mFR, %",
    "error": "mean error, %",
    "residual": "residual robustness, %",
    "flips": "flip probability, %",
}
_NORMALISED = (("clean_error", "mce"), ("clean_error", "relative_mce"), ("mce", "mfr"))
_PLAIN = (("clean_error", "error"), ("clean_error", "residual"), ("error", "flips"))

_FEW = 12

# Accuracies at which the axes of the last chart have their marks.
_MARKS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


def standing_section(
    readings: Sequence[Reading], published: Sequence[PublishedModel] = (), wording: Wording = PLAIN
) -> Section | None:
    """Clean error against mCE and relative mCE, mCE against mFR, and effective robustness; None for a lone model."""
    models = standings(readings)
    references = reference_models(models, published)
    table = models_table(models, references, wording)
    effective, refused = effective_table(models)
    if table is None or (len(models) + len(published) < 2 and effective is None):
        return None
    charts = [
        chart
        for x, y in (_NORMALISED if normalised(models) else _PLAIN)
        if (chart := _chart(models, references, x, y, wording)) is not None
    ]
    if effective is not None:
        charts.append(_effective_chart(models))
    data = {
        "names": [f"{number} {model.name}" for number, model in enumerate(models, start=1)],
        "others": [
            f"{label} {model.name}".strip() for label, model in zip(_letters(references), references, strict=True)
        ]
        if len(references) <= _FEW
        else [f"{len(references)} published models, which the last table names"],
        "normalised": normalised(models),
        "table": table,
        "effective": effective,
        "refused": refused,
        "near": [model.name for model in models if is_near_chance(model.name)],
        "charts": charts,
    }
    path = "reports/templates/standings.html.j2"
    return Section("standings", "Models beside each other", path, data, "Models")


def _letters(references: Sequence[PublishedModel]) -> list[str]:
    """A letter for each of a few; of many, none has one."""
    return list(ascii_lowercase[: len(references)]) if len(references) <= _FEW else [""] * len(references)


def _chart(
    models: Sequence[Standing], references: Sequence[PublishedModel], x: str, y: str, wording: Wording
) -> Chart | None:
    points = [
        Point(model.name, str(number), model.series, on_x.estimate, on_y.estimate)
        for number, model in enumerate(models, start=1)
        if not is_near_chance(model.name)  # it would squeeze all others into a corner
        if (on_x := model.get(x)) is not None and (on_y := model.get(y)) is not None
    ]
    quiet = [
        (model.name, label, x_known, tx_known)
        for label, model in zip(_letters(references), references, strict=True)
        if x in _NUMBERS and y in _NUMBERS
        if (x_known := model.get(x)) is not None and (tx_known := model.get(y)) is not None
    ]
    if not points or len(points) + len(quiet) < 2:
        return None
    title = f"{_TITLES[y].removesuffix(', %')} against {_TITLES[x].removesuffix(', %')}"
    return scatter(f"standing-{x}-{y}", title, points, quiet, titles=(_axis_title(x, wording), _axis_title(y, wording)))


def _axis_title(name: str, wording: Wording) -> str:
    return wording("error" if name == "clean_error" else name, _TITLES[name])


_NUMBERS = ("clean_error", "mce", "relative_mce", "mfr")


def _effective_chart(models: Sequence[Standing]) -> Chart:
    """Accuracies on logit axes, where the testbed's models lie along lines."""
    points = [
        Point(model.name, str(number), model.series, *(_on_logit_axis(model, axis) for axis in ("clean", "corrupted")))
        for number, model in enumerate(models, start=1)
        if positions(model)
    ]
    others = line_models()
    quiet = [(other.name, "", float(logit(other.clean)), float(logit(other.corrupted))) for other in others]
    lines = []
    for (name, line), dotted in zip(published_lines().items(), (False, True), strict=True):
        ends = np.array([line.lowest, line.highest])
        lines.append(Line(name, logit(ends).tolist(), logit(line.expected(ends)).tolist(), dotted=dotted))
    titles = ("clean accuracy, % (higher is better)", "accuracy on ImageNet-C, %")
    values = [end for p in points for end in (p.x.low, p.x.high)] + [x for _, _, x, _ in quiet]
    others_y = [end for p in points for end in (p.y.low, p.y.high)] + [y for _, _, _, y in quiet]
    axes = (_logit_axis(values), _logit_axis(others_y))
    title = "Effective robustness"
    return scatter("effective-chart", title, points, quiet, axes=axes, titles=titles, lines=lines, words=_WORDS)


def _logit_axis(places: Sequence[float]) -> Axis:
    """An axis that holds these places, with marks at round accuracies."""
    low, high = min(places), max(places)
    marks = [(float(logit(mark / 100)), str(mark)) for mark in _MARKS]
    inside = tuple((mark, text) for mark, text in marks if low <= mark <= high)
    return Axis(low, high, inside, reads=lambda mark: 100 / (1 + math.exp(-mark)))


_WORDS = "Accuracy on ImageNet-C against clean accuracy, on logit axes; the numbers are in the table below."


def _on_logit_axis(model: Standing, what: str) -> Estimate:
    reading = model.reading
    score = reading.get("accuracy", "condition", "clean") if what == "clean" else reading.get("accuracy", "benchmark")
    assert score is not None
    ends = (score.estimate.value, score.estimate.low, score.estimate.high)
    return Estimate(*(float(logit(np.clip(end / 100, 1e-4, 1 - 1e-4))) for end in ends))
