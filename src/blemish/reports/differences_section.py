"""The section with differences of models, each paired over images, against one that is chosen or the best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blemish.metrics.compare import compare, protocol_differences
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.material import Material, section
from blemish.reports.page import Section
from blemish.reports.reading import Reading


def differences_section(material: Material) -> Section | None:
    """Each model beside its partner; None where no model has one."""
    pairs = [
        (first, other) for first, other in zip(material.partners, material.readings, strict=True) if first is not other
    ]
    if not pairs:
        return None
    firsts = list(dict.fromkeys(first.name for first, _ in pairs))
    chosen = material.against is not None and firsts == [material.against.name]
    return section(
        "differences",
        "Differences between models",
        short="Differences",
        first=", ".join(firsts),
        how="which was chosen" if chosen else "the best of those measured alike",
        pairs=[_pair(first, other, material) for first, other in pairs],
    )


def _pair(first: Reading, other: Reading, material: Material) -> dict[str, Any]:
    """The difference of two models; why there is none where they are not comparable."""
    entry = {"title": f"{other.name} minus {first.name}", "model": other.number, "reasons": ""}
    if reasons := protocol_differences(first.run, other.run):
        return {**entry, "reasons": f"they were not measured in the same way: {'; '.join(reasons)}"}
    near = [reading for reading in (first, other) if reading.scores.near_chance]
    if near:
        return {**entry, "reasons": f"{near[0].label} is near chance: {near[0].scores.chance}"}
    comparison = compare(
        first.run,
        other.run,
        baseline=material.baseline,
        level=material.level,
        replicates=material.replicates,
        report=material.report,
    )
    whole, *parts = comparison_tables(comparison, first.name, other.name, wording=material.wording)
    return {**entry, "table": whole, "parts": [replace(table, notes=()) for table in parts]}
