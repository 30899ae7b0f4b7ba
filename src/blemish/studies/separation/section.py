"""The sections on class separation and on MSCR, where their files stand beside the runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from blemish.data.classes import class_titles
from blemish.evaluation.runs import Run
from blemish.reports.page import ExtraSections, Section
from blemish.reports.tables import Cell, Table, number
from blemish.studies.separation.exact import Pair, Separation
from blemish.studies.separation.experiment import Protocol
from blemish.studies.separation.files import Entry, Experiment, Mean, Settings, find_separation

_SHOWN = 10
_NORMS = {"l1": "L₁", "l2": "L₂", "linf": "L∞"}
_INTERVALS = "± is Student's 95 % interval over the runs, which a single run does not have."
_NOISE_ONLY = "Trained models are tested with all points; their runs differ in noise only."


def separation_sections(runs: Sequence[Run], folders: Iterable[str | os.PathLike[str]] = ()) -> ExtraSections:
    """What ``separation.json`` and ``mscr.json`` say, in ``folders``, a run's folder or its parent."""
    files = find_separation(runs, folders)
    separations = [_separation(entry) for entry in files.separations]
    experiments = [_experiment(entry) for entry in files.experiments]
    sections = [
        Section(identity, title, f"studies/separation/templates/{identity}.html.j2", {"parts": parts}, short)
        for identity, title, short, parts in (
            ("separation", "Class separation", "Separation", separations),
            ("mscr", "Minimal-separation robustness (MSCR)", "MSCR", experiments),
        )
        if parts
    ]
    named = [(entry.data or str(entry.path), _contradictions(entry.result)) for entry in files.separations]
    return ExtraSections(sections, [f"{name}: {text}" for name, text in named if text])


def _amount(value: float, scale: float) -> str:
    return f"{value:.6g}" if scale == 1 else f"{value:.6f} ({value * scale:g}/{scale:g})"


def _contradictions(separation: Separation) -> str | None:
    if not separation.contradictions:
        return None
    pair, count = separation.contradictions[0], separation.contradiction_count
    one, other = _classes(pair)
    example = f"points {pair.first} ({one}) and {pair.second} ({other})"
    amount = f"{count:,} pairs, such as {example}" if count > 1 else example
    left = "Such pairs are left out." if separation.duplicates_excluded else "So the classes touch, and ε_min is 0."
    return f"equal points have different labels: {amount}. {left}"


def _classes(pair: Pair) -> tuple[str, ...]:
    return class_titles([str(label) for label in pair.classes])


def _separation(entry: Entry[Separation]) -> dict[str, Any]:
    separation = entry.result
    facts = {
        **({"Data": entry.data} if entry.data is not None else {}),
        "2r": _amount(separation.distance, separation.scale),
        "ε_min": _amount(separation.epsilon_min, separation.scale),
        "Norm": _NORMS[separation.norm],
        "Points": f"{separation.points:,}",
        "Classes": f"{len(separation.classes):,}",
    }
    contradictions, closest = _contradictions(separation), _closest(separation)
    return {"path": entry.path, "facts": facts, "contradictions": contradictions, "closest": closest}


def _closest(separation: Separation) -> Table:
    rows = [
        tuple(
            Cell(text)
            for text in (
                " – ".join(_classes(pair)),
                str(pair.first),
                str(pair.second),
                _amount(pair.distance, separation.scale),
            )
        )
        for pair in separation.closest[:_SHOWN]
    ]
    columns = ("classes", "first point", "second point", "distance")
    return Table("Closest pairs; points are counted from 0", columns, tuple(rows))


def _experiment(entry: Entry[Experiment]) -> dict[str, Any]:
    experiment = entry.result
    texts = [f"ε = {experiment.epsilon:.6g} ({experiment.radius})", *_settings(experiment.settings)]
    if entry.data is not None:
        texts.insert(0, entry.data)
    if count := sum(map(len, experiment.left_out)):
        example = " = ".join(map(str, experiment.left_out[0]))
        texts.append(f"without {count:,} points that are equal but have different labels, such as {example}")
    tables = [table for table in (_models(experiment), _trained(experiment)) if table is not None]
    return {"path": entry.path, "settings": ", ".join(texts), "tables": tables}


def _settings(settings: Settings) -> list[str]:
    clipped = "clipped to 0 … 1" if settings.clip else "not clipped"
    runs = "1 run" if settings.runs == 1 else f"{settings.runs} runs"
    return [_NORMS[settings.norm], f"k = {settings.k}", runs, clipped, f"seed {settings.seed}"]


def _percent(mean: Mean) -> Cell:
    half = "" if mean.half_width is None else f" ± {number(100 * mean.half_width, 3)}"
    return Cell(number(100 * mean.mean, 3) + half)


def _models(experiment: Experiment) -> Table | None:
    if not experiment.models:
        return None
    protocol = next(iter(experiment.models.values())).protocol
    rows = [
        (Cell(name), Cell(f"{eps:.6g}"), *map(_percent, values))
        for name, model in experiment.models.items()
        for eps, *values in zip(protocol.eps_train, *model.accuracy.values(), model.mscr, strict=True)
    ]
    tested = ["clean accuracy, %" if eps == 0 else f"accuracy at ε = {eps:.6g}, %" for eps in protocol.eps_test]
    columns = ("model", "ε_train", *tested, "MSCR, %")
    title = "Models trained with noise of radius ε_train"
    return Table(title, columns, tuple(rows), text_columns=2, notes=(f"{_INTERVALS} {_split(protocol)}",))


def _split(protocol: Protocol) -> str:
    share = f"{100 * protocol.test_share:g} % of the points"
    return f"Each run tests with {share} and trains with the others, {protocol.draws} draws."


def _trained(experiment: Experiment) -> Table | None:
    if not experiment.trained:
        return None
    rows = [
        (Cell(score.model), Cell(number(100 * score.clean, 3)), _percent(score.robust), _percent(score.mscr))
        for score in experiment.trained
    ]
    columns = ("model", "clean accuracy, %", f"accuracy at ε = {experiment.epsilon:.6g}, %", "MSCR, %")
    return Table("Trained models", columns, tuple(rows), notes=(f"{_INTERVALS} {_NOISE_ONLY}",))
