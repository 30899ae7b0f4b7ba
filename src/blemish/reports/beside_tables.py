"""Runs beside published accuracies, as tables: of people at each level, and of models and people in all."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.corruptions.severity import severity_text
from blemish.metrics.beside import Beside, Fall
from blemish.reports.reading import Reading
from blemish.reports.tables import Cell, Table, estimate_cell, number, signed


def beside_tables(readings: Sequence[Reading]) -> list[Table]:
    """All tables of those runs whose benchmarks name published accuracies; each benchmark by itself."""
    tables = []
    for name in dict.fromkeys(r.scores.beside.reference.name for r in readings if r.scores.beside is not None):
        pairs = [(r, b) for r in readings if (b := r.scores.beside) is not None and b.reference.name == name]
        made = (published_table(pairs), mean_table(pairs), level_table(pairs), fall_table(pairs))
        tables += [table for table in made if table is not None]
    return tables


Pairs = Sequence[tuple[Reading, Beside]]


def published_table(pairs: Pairs) -> Table | None:
    """Published mean accuracies and those of the runs of a whole benchmark, the highest first."""
    reference = pairs[0][1].reference
    if not reference.rows:
        return None
    lines: list[tuple[float, str, str, Cell]] = [
        (row.accuracy, row.name, row.kind, Cell(number(row.accuracy))) for row in reference.rows
    ]
    notes = [f"Published: {reference.source}."]
    for reading, _ in pairs:
        accuracy = reading.get("accuracy", "benchmark")
        if accuracy is None or reading.part is not None:
            notes.append(f"{reading.name}: only a part of the benchmark was measured, so that it has no place here.")
            continue
        lines.append((accuracy.estimate.value, reading.name, "measured here", estimate_cell(accuracy.estimate)))
        if reading.run.info.protocol.pixels != "stored":
            notes.append(f"{reading.name}: images made here ({reading.title}), not the published ones.")
    rows = tuple((Cell(name), Cell(kind), cell) for _, name, kind, cell in sorted(lines, key=lambda line: -line[0]))
    columns = ("", "kind", "mean accuracy, %")
    return Table(_capital(reference.title), columns, rows, text_columns=2, notes=tuple(notes))


def mean_table(pairs: Pairs) -> Table | None:
    """The mean accuracy of models and people over the levels that count."""
    rows = []
    for reading, beside in pairs:
        if beside.model is not None and beside.people is not None and beside.difference is not None:
            difference = estimate_cell(beside.difference, write=signed)
            cells = (estimate_cell(beside.model), estimate_cell(beside.people), difference)
            rows.append((Cell(reading.name), Cell(str(beside.counted)), *cells))
    if not rows:
        return None
    columns = ("model", "levels", "accuracy, %", "of people, %", "difference")
    note = "Over the levels that the authors count: no controls, and no levels at which people are near chance."
    return Table("Mean accuracy beside people", columns, tuple(rows), notes=(note,))


def level_table(pairs: Pairs) -> Table | None:
    """A row per stimulus and level: the accuracy of people, and of each model."""
    reference = pairs[0][1].reference
    by_model = [
        {(s.corruption, item.level.level): item for s in beside.stimuli for item in s.levels} for _, beside in pairs
    ]
    places = list(dict.fromkeys(severity for model in by_model for severity in model))
    rows = []
    for corruption, text in places:
        items = [model.get((corruption, text)) for model in by_model]
        shown = next(item for item in items if item is not None)
        models = [estimate_cell(None if item is None else item.model) for item in items]
        severity = severity_text(shown.level.severity)
        rows.append((Cell(corruption), Cell(text), Cell(severity), estimate_cell(shown.people), *models))
    if not rows:
        return None
    columns = ("stimulus", "level", "severity", "people", *(reading.name for reading, _ in pairs))
    notes = (
        f"People: {reference.source}. Severity 0 is the control, shown as the experiments had it.",
        "Intervals of people are over trials; other people, or other images, differ by more.",
    )
    return Table(f"Accuracy beside {reference.title}, %", columns, tuple(rows), text_columns=2, notes=notes)


def fall_table(pairs: Pairs) -> Table | None:
    """A row per stimulus and model: at which severity it falls below people."""
    rows = []
    for corruption in dict.fromkeys(s.corruption for _, beside in pairs for s in beside.stimuli):
        for reading, beside in pairs:
            for stimulus in beside.stimuli:
                if stimulus.corruption == corruption and stimulus.fall is not None:
                    fall = stimulus.fall
                    levels = " – ".join(fall.between) if fall.between else "–"
                    rows.append((Cell(corruption), Cell(reading.name), fall_cell(fall), Cell(levels)))
    if not rows:
        return None
    columns = ("stimulus", "model", "below people from severity", "between the levels")
    note = "The first severity at which the accuracy is below that of people, linear between levels."
    return Table("Where models fall below people", columns, tuple(rows), text_columns=2, notes=(note,))


def fall_cell(fall: Fall) -> Cell:
    """A severity with its interval; an end that is open is one at which the model never falls below people."""
    ends = ["never" if end is None else number(end) for end in (fall.low, fall.high)]
    return Cell("never" if fall.severity is None else number(fall.severity), interval=", ".join(ends))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
