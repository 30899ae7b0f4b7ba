"""What the page says, section by section."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.reports import html_charts as charts
from blemish.reports import score_tables
from blemish.reports.answers import gather, read_pictures
from blemish.reports.html_calibration import calibration_section
from blemish.reports.html_compare import difference_section
from blemish.reports.html_page import ExtraSections, Page
from blemish.reports.html_parts import folded, legend
from blemish.reports.html_pictures import Subject, examples, unmakeable, worst_images
from blemish.reports.html_protocol import protocol_table, run_warnings
from blemish.reports.html_scores import cards, heatmap, html_table
from blemish.reports.html_words import footer, header, terms
from blemish.reports.markup import Markup, element
from blemish.reports.reading import Reading, baseline_note, read_all

__all__ = ["sections"]


def sections(
    runs: Sequence[Run],
    *,
    extra: Sequence[ExtraSections] = (),
    baseline: Baseline | Run | str | None,
    level: float,
    replicates: int,
    drawn: bool = True,
    warnings: Sequence[str] = (),
    report: ProgressReport = tell_nobody,
) -> Page:
    """The page of some runs; what studies have to add stands before the pictures.

    ``warnings`` stand below those of the runs; charts that are not ``drawn`` are told in words.
    """
    readings = read_all(runs, baseline=baseline, level=level, replicates=replicates, report=report)
    all_warnings = [*run_warnings(readings), *(text for study in extra for text in study.warnings), *warnings]
    page = Page(f"Robustness report: {readings[0].title}", header(readings, all_warnings), footer(), drawn)
    _summary(page, readings)
    _corruptions(page, readings)
    _families(page, readings)
    if len(runs) > 1:
        difference_section(page, readings, baseline=baseline, level=level, replicates=replicates, report=report)
    calibration_section(page, readings)
    _other(page, readings)
    for study in extra:
        study.add_to(page)
    _pictures(page, readings, report)
    page.add("protocol", "Protocol", element("p", "Everything that decides the numbers."), protocol_table(readings))
    page.add("terms", "What the numbers mean", terms(readings), short="Terms")
    return page


def _summary(page: Page, readings: Sequence[Reading]) -> None:
    table = score_tables.summary_table(readings, remarks=False)
    whole = folded("All summary numbers with their intervals", html_table(table, caption=False))
    missing = score_tables.missing_table(readings)
    gaps = html_table(missing) if missing else None
    remarks = list(dict.fromkeys(text for reading in readings for text in reading.scores.remarks))
    about = (
        element("h3", "Before comparing with published numbers"),
        element("ul", [element("li", text) for text in remarks], class_="remarks"),
    )
    note = baseline_note(readings)
    relative = element("p", note, class_="small quiet") if note else None
    page.add("summary", "Summary", cards(readings), relative, whole, about if remarks else None, gaps)


def _corruptions(page: Page, readings: Sequence[Reading]) -> None:
    shown = [reading for reading in readings if reading.groups]
    if not shown:
        return
    maps = element("div", [heatmap(reading) for reading in shown], class_="pair")
    page.add("corruptions", "Errors by corruption and severity", maps, short="Corruptions")
    if curves := _curves(page, shown):
        text = (
            "How the error grows from clean images (severity 0) to severity 5, in per cent. Whiskers are intervals. "
            "The same numbers stand in the tables above."
        )
        key = legend([reading.name for reading in readings])
        grid = element("div", curves, class_="plots")
        page.add("severities", "Severity curves", element("p", text), key, grid, short="Curves")


def _curves(page: Page, readings: Sequence[Reading]) -> list[Markup]:
    found = []
    for number, group in enumerate(dict.fromkeys(group for reading in readings for group in reading.groups)):
        lines = [(r.name, r.place, points) for r in readings if len(points := _points(r, group)) > 2]
        if lines:
            found.append(page.chart(charts.curve(f"curve-{number}", group.replace("_", " "), lines)))
    return found


def _points(reading: Reading, group: str) -> dict[float, Estimate]:
    """Errors by severity; clean images are severity 0."""
    clean = reading.get("error", "condition", "clean")
    points = {0.0: clean.estimate} if clean else {}
    for condition in reading.groups.get(group, ()):
        found = reading.get("error", "condition", str(condition))
        if found is not None and condition.severity is not None:
            points[condition.severity] = found.estimate
    return points


def _families(page: Page, readings: Sequence[Reading]) -> None:
    table = score_tables.family_table(readings)
    if table is None:
        return
    families = [row[0].text for row in table.rows]
    models = {
        r.name: [f.estimate if (f := r.get("error", "family", name)) else None for name in families] for r in readings
    }
    chart = page.chart(charts.bars("families-chart", "Mean error by family", families, models), heading=False)
    key = legend([reading.name for reading in readings], squares=True)
    text = element("p", "Mean error of the corruptions of each family.")
    page.add("families", "Families", text, key, chart, html_table(table, caption=False))


def _other(page: Page, readings: Sequence[Reading]) -> None:
    if (table := score_tables.sequence_table(readings)) is not None:
        text = element("p", "How often the prediction changes along a sequence of frames that differ a little.")
        page.add("sequences", "Perturbation sequences", text, html_table(table, caption=False), short="Sequences")
    if (table := score_tables.natural_table(readings)) is not None:
        text = element("p", "Images that nobody corrupted, but that were taken elsewhere, at other times, or drawn.")
        page.add("natural", "Natural sets", text, html_table(table, caption=False))


def _pictures(page: Page, readings: Sequence[Reading], report: ProgressReport) -> None:
    subjects = []
    for number, reading in enumerate(readings):
        report(number, len(readings), "gathering answers")
        if (answers := gather(reading.run)) is not None:
            subjects.append(Subject(reading.name, reading.run, answers, read_pictures(reading.run), reading.place))
    report(0, 1 + len(subjects), "making pictures")
    if grids := examples(subjects):
        text = (
            "A few images under each corruption at the middle of its severities, with each model's first answer and "
            "its confidence. ✓ is right, ✗ is wrong."
        )
        key = legend([subject.name for subject in subjects], squares=True)
        page.add("examples", "Examples", element("p", text), key, _not_shown(subjects), grids)
    worst = []
    for number, subject in enumerate(subjects, start=1):
        report(number, 1 + len(subjects), "making pictures")
        if found := worst_images(subject):
            worst.append((subject, found))
    if worst:
        text = (
            "Right when clean, and wrong under most conditions: where to look first. Beside each, the mildest "
            "corruptions that mislead the model."
        )
        content = [
            (element("h3", subject.name) if len(subjects) > 1 else None, element("div", found, class_="hits"))
            for subject, found in worst
        ]
        page.add("worst", "Worst-hit images", element("p", text), content, short="Worst hit")


def _not_shown(subjects: Sequence[Subject]) -> list[Markup]:
    found = (unmakeable(s.run, c) for s in subjects if s.pictures is not None for c in s.answers.conditions)
    reasons = dict.fromkeys(reason for reason in found if reason is not None)
    return [element("p", f"Some pictures are missing: {reason}.", class_="small quiet") for reason in reasons]
