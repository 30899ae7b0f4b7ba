"""What the page of some runs shows, section by section; the words and the markup are in the templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate
from blemish.corruptions.catalog import Catalog
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.calibration import Reliability, pooled
from blemish.metrics.compare import compare, protocol_differences
from blemish.metrics.published import PublishedModel
from blemish.metrics.titles import both_names
from blemish.reports import score_tables
from blemish.reports.answers import gather, read_pictures
from blemish.reports.beside_section import beside_sections
from blemish.reports.charts import curve, dots, reliability_chart
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.examples import Subject, examples, unmakeable, worst_images
from blemish.reports.page import Chart, Section
from blemish.reports.protocol import protocol_rows
from blemish.reports.quantity_sections import quantity_sections
from blemish.reports.reading import Reading, baseline_note, firsts
from blemish.reports.score_cards import card, heatmap
from blemish.reports.standing_charts import standing_section
from blemish.reports.tables import Cell, Table, number

_TERMS = (
    *(
        *("score", "ap", "rpc", "mcd", "mrcd"),
        "error",
        "mce",
        "relative_mce",
        "balanced_error",
        "mbe",
        "relative_mbe",
        "robustness",
        "residual",
        "ece",
        "flips",
        "ut5d",
        "zipf",
        "natural_gap",
    ),
    "effective_robustness",
)


def _section(identity: str, title: str, *, short: str = "", template: str = "", **data: Any) -> Section:
    return Section(identity, title, f"reports/templates/{template or identity}.html.j2", data, short)


def score_sections(
    readings: Sequence[Reading],
    *,
    baseline: Baseline | Run | str | None,
    level: float,
    replicates: int,
    published: Sequence[PublishedModel] = (),
    report: ProgressReport = tell_nobody,
) -> Iterator[Section]:
    """The numbers of some runs, and what is measured of their difference."""
    yield _section(
        "summary",
        "Summary",
        cards=[card(reading) for reading in readings],
        baseline=baseline_note(readings),
        table=score_tables.summary_table(readings, remarks=False),
        remarks=list(dict.fromkeys(text for reading in readings for text in reading.scores.remarks)),
        missing=score_tables.missing_table(readings),
    )
    names = [reading.name for reading in readings]
    plain = [reading for reading in readings if reading.quantity == "error"]
    yield from quantity_sections([reading for reading in readings if reading.quantity != "error"])
    if shown := [reading for reading in plain if reading.groups]:
        maps = [heatmap(reading) for reading in shown]
        yield _section("corruptions", "Errors by corruption and severity", short="Corruptions", maps=maps)
        if curves := list(_curves(shown)):
            yield _section("severities", "Severity curves", short="Curves", names=names, charts=curves)
    yield from beside_sections(plain)
    if (table := score_tables.family_table(plain)) is not None:
        yield _section("families", "Families", names=names, table=table, charts=[_family_chart(plain, table)])
    if (section := standing_section(plain, published)) is not None:
        yield section
    beside = [(first, other) for first, other in zip(firsts(readings), readings, strict=True) if first is not other]
    if beside:
        pairs = [_pair(first, other, baseline, level, replicates, report) for first, other in beside]
        named = ", ".join(dict.fromkeys(first.name for first, _ in beside))
        yield _section("differences", "Differences between models", short="Differences", first=named, pairs=pairs)
    if (table := score_tables.calibration_table(readings)) is not None:
        charts = [_reliability(reading) for reading in readings if reading.scores.reliability]
        yield _section("calibration", "Calibration", table=table, bins=_bins_table(readings), charts=charts)
    if (table := score_tables.sequence_table(readings)) is not None:
        words = "How often the prediction changes along a sequence of frames that differ a little."
        yield _section(
            "sequences", "Perturbation sequences", short="Sequences", template="table", words=words, table=table
        )
    if (table := score_tables.natural_table(readings)) is not None:
        words = "Images that nobody corrupted, but that were taken elsewhere, at other times, or drawn."
        yield _section("natural", "Natural sets", template="table", words=words, table=table)


def _curves(readings: Sequence[Reading]) -> Iterator[Chart]:
    for index, group in enumerate(dict.fromkeys(group for reading in readings for group in reading.groups)):
        lines = [(r.name, r.number, points) for r in readings if len(points := _points(r, group)) > 2]
        if lines:
            yield curve(f"curve-{index}", group.replace("_", " "), lines)


def _points(reading: Reading, group: str) -> dict[float, Estimate]:
    """Errors by severity; clean images are severity 0."""
    clean = reading.get("error", "condition", "clean")
    points = {0.0: clean.estimate} if clean else {}
    for condition in reading.groups.get(group, ()):
        score = reading.get("error", "condition", str(condition))
        if score is not None and condition.severity is not None:
            points[condition.severity] = score.estimate
    return points


def _family_chart(readings: Sequence[Reading], table: Table) -> Chart:
    families = [row[0].text for row in table.rows]
    models = {
        r.name: [f.estimate if (f := r.get("error", "family", name)) else None for name in families] for r in readings
    }
    return dots("families-chart", "Mean error by family", families, models)


def _pair(
    first: Reading,
    other: Reading,
    baseline: Baseline | Run | str | None,
    level: float,
    replicates: int,
    report: ProgressReport,
) -> dict[str, Any]:
    """The difference of two models, paired over images; why there is none where they are not comparable."""
    title = f"{other.name} less {first.name}"
    if reasons := protocol_differences(first.run, other.run):
        return {"title": title, "reasons": "; ".join(reasons)}
    comparison = compare(first.run, other.run, baseline=baseline, level=level, replicates=replicates, report=report)
    whole, *parts = comparison_tables(comparison, first.name, other.name)
    return {"title": title, "reasons": "", "table": whole, "parts": [replace(table, notes=()) for table in parts]}


def _pools(reading: Reading) -> list[tuple[str, Reliability]]:
    """Clean images, and all corrupted ones together."""
    known = reading.scores.reliability
    corrupted = [str(c) for members in reading.groups.values() for c in members if str(c) in known]
    pools = [("clean", known["clean"])] if "clean" in known else []
    return pools + ([("corrupted", pooled([known[text] for text in corrupted]))] if corrupted else [])


def _reliability(reading: Reading) -> Chart:
    lines = [(pool, series, bins) for series, (pool, bins) in enumerate(_pools(reading))]
    return reliability_chart(f"reliability-{reading.number}", reading.name, lines, model=reading.number)


def _bins_table(readings: Sequence[Reading]) -> Table:
    rows = []
    for reading in readings:
        for pool, bins in _pools(reading):
            for index in np.flatnonzero(bins.counts).tolist():
                edges = f"{number(100 * bins.edges[index], 0)}–{number(100 * bins.edges[index + 1], 0)}"
                rates = (number(100 * bins.confidence[index]), number(100 * bins.accuracy[index]))
                texts = (reading.name, pool, edges, *rates, f"{bins.counts[index]:,}")
                rows.append(tuple(Cell(text) for text in texts))
    columns = ("model", "images", "confidence bin, %", "mean confidence, %", "accuracy, %", "answers")
    return Table("Reliability by confidence", columns, tuple(rows), text_columns=3)


def picture_sections(
    readings: Sequence[Reading], catalog: Catalog, report: ProgressReport = tell_nobody
) -> Iterator[Section]:
    """Some images as the models were given them, and those that they lost most often."""
    subjects = []
    for done, reading in enumerate(readings):
        report(done, len(readings), "gathering answers")
        if (answers := gather(reading.run)) is not None:
            pictures = read_pictures(reading.run)
            subjects.append(Subject(reading.name, reading.run, answers, pictures, reading.number, catalog))
    report(0, 1 + len(subjects), "making pictures")
    if shown := examples(subjects):
        reasons_by_condition = (
            unmakeable(s.run, c, catalog) for s in subjects if s.pictures is not None for c in s.answers.conditions
        )
        gaps = list(dict.fromkeys(reason for reason in reasons_by_condition if reason is not None))
        names = [subject.name for subject in subjects]
        yield _section("examples", "Examples", names=names, gaps=gaps, examples=shown)
    worst = []
    for done, subject in enumerate(subjects, start=1):
        report(done, 1 + len(subjects), "making pictures")
        if hits := worst_images(subject):
            worst.append((subject.name if len(subjects) > 1 else "", hits))
    if worst:
        yield _section("worst", "Worst-hit images", short="Worst hit", models=worst)


def setting_sections(readings: Sequence[Reading]) -> Iterator[Section]:
    """How the numbers were measured, and what they mean."""
    names = [reading.name for reading in readings]
    yield _section("protocol", "Protocol", names=names, parts=protocol_rows(readings))
    scores = readings[0].scores
    shown = [
        name
        for name in _TERMS
        if any(reading.get(own, "benchmark") for reading in readings for own in both_names([name]))
    ]
    yield _section(
        "terms", "What the numbers mean", short="Terms", shown=shown, level=scores.level, replicates=scores.replicates
    )
