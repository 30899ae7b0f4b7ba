"""The section that compares the first model with each other one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blemish.core.progress import ProgressReport, tell_nobody
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.compare import compare, protocol_differences
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.html_page import Page
from blemish.reports.html_parts import folded
from blemish.reports.html_scores import html_table
from blemish.reports.markup import Markup, element
from blemish.reports.reading import Reading

__all__ = ["difference_section"]


def difference_section(
    page: Page,
    readings: Sequence[Reading],
    *,
    baseline: Baseline | Run | str | None,
    level: float,
    replicates: int,
    report: ProgressReport = tell_nobody,
) -> None:
    """Differences from the first model, paired over images; runs that are not comparable are named with the reason."""
    first = readings[0]
    content: list[Markup] = []
    for other in readings[1:]:
        title = f"{other.name} less {first.name}"
        if reasons := protocol_differences(first.run, other.run):
            text = f"Not compared, because they were not measured in the same way: {'; '.join(reasons)}."
            content += [element("h3", title), element("p", text)]
            continue
        found = compare(first.run, other.run, baseline=baseline, level=level, replicates=replicates, report=report)
        tables = comparison_tables(found, first.name, other.name)
        content += [element("h3", title), html_table(tables[0], caption=False)]
        content += [
            folded(
                "By corruption, family, sequence and set",
                *(html_table(replace(table, notes=())) for table in tables[1:]),
            )
        ]
    text = (
        f"Each model beside the first, {first.name}: the difference on the same images with its interval, and how "
        "often chance alone would give one as large (p)."
    )
    page.add("differences", "Differences between models", element("p", text), content, short="Differences")
