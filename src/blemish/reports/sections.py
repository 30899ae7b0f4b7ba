"""The sections of the page of some runs, each made of the same material, so that a page can choose among them.

Each function gives a section, or several, or None where there is nothing to show; markup is in the templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from blemish.metrics.titles import both_names
from blemish.reports import score_tables
from blemish.reports.beside_section import beside_sections
from blemish.reports.calibration_section import calibration_section
from blemish.reports.charts import curve, dots
from blemish.reports.differences_section import differences_section
from blemish.reports.material import Material, section
from blemish.reports.overview import overview_section
from blemish.reports.page import Chart, Section
from blemish.reports.protocol import protocol_rows
from blemish.reports.quantity_sections import quantity_sections
from blemish.reports.ranking_section import ranking_section
from blemish.reports.reading import baseline_note
from blemish.reports.score_cards import card, curve_points, heatmap
from blemish.reports.standing_charts import standing_section
from blemish.reports.tables import Table

_TERMS = (
    *("score", "miou", "ap", "rpc", "mcd", "mrcd"),
    *("error", "mce", "relative_mce", "balanced_error", "mbe", "relative_mbe", "robustness", "residual", "ece"),
    *("flips", "ut5d", "zipf", "natural_gap", "effective_robustness"),
)

SectionMaker = Callable[[Material], Section | Iterable[Section] | None]


def made(makers: tuple[SectionMaker, ...], material: Material) -> Iterator[Section]:
    """The sections that have something to show."""
    for maker in makers:
        result = maker(material)
        if isinstance(result, Section):
            yield result
        elif result is not None:
            yield from result


def ranking(material: Material) -> Section | None:
    """Who is better, as far as the images tell."""
    return ranking_section(material.sets)


def overview(material: Material) -> Section | None:
    """One heatmap of models and corruptions."""
    return overview_section([reading for reading in material.ordered if reading.quantity == "error"])


def summary(material: Material) -> Section:
    """A card for each model, all means, and what could not be computed."""
    readings = material.readings
    return section(
        "summary",
        "Summary",
        cards=[card(reading) for reading in material.ordered],
        baseline=baseline_note(readings),
        table=score_tables.summary_table(readings, remarks=False, wording=material.wording),
        remarks=list(dict.fromkeys(text for reading in readings for text in reading.scores.remarks)),
        missing=score_tables.missing_table(readings),
    )


def quantities(material: Material) -> Iterable[Section]:
    """The same for tasks that are told by another number than the error."""
    return quantity_sections([reading for reading in material.ordered if reading.quantity != "error"])


def corruptions(material: Material) -> Section | None:
    """Errors by corruption and severity, a heatmap for each model."""
    maps = [heatmap(r, material.wording) for r in material.ordered if r.groups and r.quantity == "error"]
    return section("corruptions", "Errors by severity", short="Severities", maps=maps) if maps else None


def severities(material: Material) -> Section | None:
    """A chart for each corruption: the error of all models over severity."""
    readings, charts = [reading for reading in material.plain if reading.groups], list[Chart]()
    for index, group in enumerate(dict.fromkeys(group for reading in readings for group in reading.groups)):
        lines = [(r.name, r.number, points) for r in readings if len(points := curve_points(r, group)) > 2]
        if lines:
            charts.append(curve(f"curve-{index}", group.replace("_", " "), lines))
    names = material.names
    return section("severities", "Severity curves", short="Curves", names=names, charts=charts) if charts else None


def beside(material: Material) -> Section | None:
    """Published accuracies that a benchmark names."""
    return next(beside_sections(material.plain), None)


def families(material: Material) -> Section | None:
    """The mean error of the corruptions of each family."""
    if (table := score_tables.family_table(material.plain)) is None:
        return None
    chart = _family_chart(material, table)
    return section("families", "Families", names=material.names, table=table, charts=[chart])


def _family_chart(material: Material, table: Table) -> Chart:
    families = [row[0].text for row in table.rows]
    models = {
        r.name: [f.estimate if (f := r.get("error", "family", name)) else None for name in families]
        for r in material.plain
    }
    return dots("families-chart", "Mean error by family, %", families, models)


def standings(material: Material) -> Section | None:
    """Clean errors against those under corruption, and effective robustness."""
    return standing_section(material.plain, material.published, material.wording)


def differences(material: Material) -> Section | None:
    """Each model less the chosen one, or less the best."""
    return differences_section(material)


def calibration(material: Material) -> Section | None:
    """Whether confidences can be believed."""
    return calibration_section(material)


def sequences(material: Material) -> Section | None:
    """How often answers change along perturbation sequences."""
    if (table := score_tables.sequence_table(material.readings, wording=material.wording)) is None:
        return None
    words = "How often the prediction changes along a sequence of frames that differ a little; lower is better."
    return section("sequences", "Perturbation sequences", short="Sequences", template="table", words=words, table=table)


def natural(material: Material) -> Section | None:
    """Accuracy on natural sets."""
    if (table := score_tables.natural_table(material.readings, wording=material.wording)) is None:
        return None
    words = "Images that nobody corrupted, but that were taken elsewhere, at other times, or drawn."
    return section("natural", "Natural sets", template="table", words=words, table=table)


def protocol(material: Material) -> Section:
    """How the numbers were measured."""
    return section("protocol", "Protocol", names=material.names, parts=protocol_rows(material.readings))


def terms(material: Material) -> Section:
    """What the numbers mean."""
    readings = material.readings
    scores = readings[0].scores
    shown = [name for name in _TERMS if any(r.get(own, "benchmark") for r in readings for own in both_names([name]))]
    level, replicates = scores.level, scores.replicates
    title = "What the numbers mean"
    return section("terms", title, short="Terms", shown=shown, level=level, replicates=replicates)


SCORE_SECTIONS: tuple[SectionMaker, ...] = (
    *(ranking, overview, summary, quantities, corruptions, severities, beside, families, standings, differences),
    *(calibration, sequences, natural),
)
"""What the page of some runs shows of their numbers, in its order."""

SETTING_SECTIONS: tuple[SectionMaker, ...] = (protocol, terms)
"""What stands at its end."""
