"""Many models beside each other: clean error, mCE, relative mCE and mFR, and on which side of a line each lies.

What Figure 3 and Table 1 of Hendrycks and Dietterich (2019) show, and effective robustness (Taori et al. 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blemish.core.errors import InputError
from blemish.metrics.baselines import published_baseline
from blemish.metrics.effective import EFFECTIVE, Position, position, why_no_line
from blemish.metrics.published import PublishedModel
from blemish.metrics.scored import Score
from blemish.metrics.testbed import published_lines
from blemish.reports.reading import Reading, marked
from blemish.reports.score_tables import cell
from blemish.reports.tables import NOTHING, Cell, Table, number
from blemish.reports.wording import PLAIN, Wording

_NORMALISED = ("mce", "relative_mce", "mfr")
_PLAIN = ("error", "residual", "flips")
_HEADS = {
    "clean_error": "clean error",
    "mce": "mCE",
    "relative_mce": "relative mCE",
    "mfr": "mFR",
    "error": "mean error",
    "residual": "residual robustness",
    "flips": "flip probability",
}
_METRICS = {"clean_error": "error"}
_BASELINE = " (baseline)"
_LINES = {"all": "all {} models", "standard": "the {} of standard training"}


@dataclass(frozen=True)
class Standing:
    """A model with its numbers over whole benchmarks, by metric; ``series`` gives its colour."""

    name: str
    series: int
    numbers: Mapping[str, Score]
    reading: Reading

    def get(self, name: str) -> Score | None:
        """One of its numbers."""
        return self.numbers.get(name)


def standings(readings: Sequence[Reading]) -> list[Standing]:
    """The models of some runs. A run of sequences alone goes with the one run of corruptions of the same model."""
    corrupted = [reading for reading in readings if reading.groups]
    models = []
    for reading in corrupted:
        twins = [other for other in corrupted if _model(other) == _model(reading)]
        others = [r for r in readings if not r.groups and r.sequences and _model(r) == _model(reading)]
        models.append(_standing(reading, others[:1] if len(twins) == 1 else []))
    taken = {_model(reading) for reading in corrupted}
    models += [_standing(r, []) for r in readings if not r.groups and r.sequences and _model(r) not in taken]
    return models


def _model(reading: Reading) -> tuple[str, str]:
    model = reading.run.info.model
    return model.name, model.weights


def _standing(reading: Reading, sequences: Sequence[Reading]) -> Standing:
    numbers: dict[str, Score] = {}
    for source in (reading, *sequences):
        for name in (*_NORMALISED, *_PLAIN):
            # A mean over a part of a benchmark is another number than the benchmark's.
            if source.part is None and (score := source.get(name, "benchmark")) is not None:
                numbers.setdefault(name, score)
        if (clean := source.get("error", "condition", "clean")) is not None:
            numbers.setdefault("clean_error", clean)
    # Two runs of one model have their folders in their names; here they are one.
    name = marked(reading.run.name, reading.scores.near_chance) if sequences else reading.name
    return Standing(name, reading.number, numbers, reading)


def normalised(models: Sequence[Standing]) -> bool:
    """Whether some numbers are relative to a baseline's, so that plain ones need not stand beside them."""
    return any(model.get(name) is not None for model in models for name in _NORMALISED)


def reference_models(models: Sequence[Standing], published: Sequence[PublishedModel]) -> list[PublishedModel]:
    """What stands beside the models: the published baseline that all are relative to, and what was asked for."""
    known = [replace(model, name=f"{model.name} (published)") for model in published]
    names = {model.reading.scores.baseline for model in models if model.get("mce") or model.get("mfr")}
    baseline = names.pop() if len(names) == 1 else None
    try:
        base = None if baseline is None else published_baseline(baseline)
    except InputError:  # that of a run, which is among the models or not
        base = None
    if base is None or base.clean is None:
        return known
    has = [100.0 if any(model.get(name) for model in models) else None for name in _NORMALISED]
    return [PublishedModel(f"{base.name}{_BASELINE}", 100 * base.clean, *has), *known]


def models_table(
    models: Sequence[Standing], references: Sequence[PublishedModel], wording: Wording = PLAIN
) -> Table | None:
    """Table 1 of the paper: a row per model, worst clean error first, with the CE (or error) of each corruption."""
    shown = _NORMALISED if normalised(models) else _PLAIN
    columns = [name for name in ("clean_error", *shown) if any(model.get(name) is not None for model in models)]
    groups = list(dict.fromkeys(group for model in models for group in model.reading.groups))
    metric = "ce" if normalised(models) else "error"
    lines = []
    for model in models:
        own = [model.get(name) for name in columns]
        own += [model.reading.get(metric, "corruption", group) for group in groups]
        lines.append((_clean(model), (Cell(model.name), *(NOTHING if s is None else cell(s.name, s) for s in own))))
    if not columns or len(lines) + len(references) < 2:
        return None
    lines += [(m.clean_error or 0.0, _published_row(m, columns, len(groups))) for m in references]
    rows = tuple(row for _, row in sorted(lines, key=lambda line: -line[0]))
    what = "" if not groups else ", and CE by corruption" if metric == "ce" else ", and error by corruption"
    title = f"Models beside each other: whole benchmarks{what}, %"
    return Table(
        title, ("model", *(wording(_METRICS.get(name, name), _HEADS[name]) for name in columns), *groups), rows
    )


def _clean(model: Standing) -> float:
    score = model.get("clean_error")
    return 0.0 if score is None else score.estimate.value


def _published_row(model: PublishedModel, columns: Sequence[str], groups: int) -> tuple[Cell, ...]:
    values = [model.get(name) if name in ("clean_error", *_NORMALISED) else None for name in columns]
    # A baseline's errors divided by themselves.
    values += [100.0 if model.name.endswith(_BASELINE) else None] * groups
    return (Cell(model.name), *(NOTHING if value is None else Cell(number(value)) for value in values))


def positions(model: Standing) -> dict[str, Position]:
    """Where a model lies, by the name of the line; without those that say nothing about it."""
    scores, reading = model.reading.scores, model.reading
    clean = reading.get("accuracy", "condition", "clean")
    corrupted = reading.get("accuracy", "benchmark")
    by_line = {}
    for metric, name in EFFECTIVE.items():
        effective = reading.get(metric, "benchmark")
        if effective is not None and clean is not None and corrupted is not None:
            line, rates = published_lines()[name], (clean.estimate.value / 100, corrupted.estimate.value / 100)
            by_line[name] = position(line, *rates, effective.estimate, level=scores.level)
    return by_line


def standing_tables(readings: Sequence[Reading], published: Sequence[PublishedModel] = ()) -> list[Table]:
    """Both tables, as far as there is something to show; none for a lone model that no line says anything about."""
    models = standings(readings)
    table = models_table(models, reference_models(models, published))
    effective, refused = effective_table(models)
    if table is None or (len(models) + len(published) < 2 and effective is None):
        return []
    return [replace(table, notes=tuple(refused)), *([effective] if effective else [])]


def effective_table(models: Sequence[Standing]) -> tuple[Table | None, list[str]]:
    """Which models lie above the lines, and why nothing can be said of others."""
    rows = []
    for model in models:
        for name, where in positions(model).items():
            mark = model.reading.get("effective_robustness", "benchmark")
            rows.append(_position_row(model.name, name, where, marked=mark is not None and mark.trained_on))
    reasons: dict[str, list[str]] = {}
    for model in models:
        for why in _why_not(model):
            reasons.setdefault(why, []).append(model.name)
    refused = [f"No effective robustness of {', '.join(names)}: {why}." for why, names in reasons.items()]
    if not rows:
        return None, refused
    columns = (
        *("model", "line of", "it lies"),
        *("effective robustness, points", "clean accuracy, %", "on ImageNet-C, %", "on the line, %", "models below"),
    )
    notes = (_explanation(models[0].reading.scores.level), *refused)
    return Table("Effective robustness on ImageNet-C", columns, tuple(rows), text_columns=3, notes=notes), []


def _why_not(model: Standing) -> list[str]:
    if not model.reading.groups:
        return []
    if (why := why_no_line(model.reading.run)) is not None:
        return [why]
    missing = model.reading.scores.missing
    return [item.why for item in missing if any(name in EFFECTIVE for name in item.names)]


def _position_row(name: str, line: str, position: Position, *, marked: bool) -> tuple[Cell, ...]:
    verdict: str = position.verdict
    if verdict != "cannot be told" and not position.beyond_scatter:
        verdict += ", within the scatter"
    accuracies = [Cell(number(value)) for value in (position.clean, position.corrupted, position.expected)]
    ends = [number(end) for end in (position.overall.low, position.overall.high)]
    value = number(position.effective.value)
    signed = value if value.startswith("−") or not float(value) else f"+{value}"
    count = Cell(f"{position.higher_than} of {position.line.models}")
    which = Cell(_LINES[line].format(position.line.models))
    return (Cell(name), which, Cell(verdict), Cell(signed, marked, ", ".join(ends)), *accuracies, count)


def _explanation(level: float) -> str:
    lines = published_lines()
    spreads = " and ".join(f"{line.spread:.2f}" for line in lines.values())
    return (
        "Effective robustness (Taori et al. 2020) is the accuracy on ImageNet-C minus that of a line through the "
        "logit-transformed accuracies of the ImageNet testbed's models: of all of them, and of those trained in the "
        f"standard way, to which its authors fit theirs. The models scatter around the lines by {spreads} logits "
        f"(standard deviation). In brackets: the {100 * level:g} % interval over images and over the models of the "
        "line; where it holds 0, it cannot be told on which side the model lies. Within the scatter: no further from "
        "the line than its own models. The last column counts those of them that lie further down."
    )
