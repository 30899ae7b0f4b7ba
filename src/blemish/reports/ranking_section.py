"""The table at the top of a page of several models: who is better, as far as the images tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blemish.reports.first_words import worst_words
from blemish.reports.page import Section
from blemish.reports.ranks import RankedSet, Row
from blemish.reports.reading import benchmark_title, title_of
from blemish.reports.score_tables import with_interval
from blemish.reports.tables import FOOTNOTE
from blemish.reports.wording import direction, page_wording


def ranking_section(sets: Sequence[RankedSet]) -> Section | None:
    """Rankings of the sets of runs that hold several models; None where there is no such set."""
    shown = [_shown(own) for own in sets if len(own.readings) > 1]
    if not shown:
        return None
    return Section("ranking", "Ranking", "reports/templates/ranking.html.j2", {"sets": shown})


def _shown(own: RankedSet) -> dict[str, Any]:
    title = own.readings[0].title
    if own.ranking is None:
        return {"title": title, "why": own.why}
    name, level = own.ranking.metric, own.ranking.level
    wording = page_wording(own.readings)
    quantity = own.readings[0].quantity
    clean = wording(quantity, f"clean {title_of(quantity)}")
    heads = [wording(name, benchmark_title(name, own.readings[0].part)), clean]
    test = "one paired test" if own.ranking.pairs == 1 else f"paired tests of all {own.ranking.pairs} pairs"
    note = (
        f"By {test} over the same {own.readings[0].scores.images:,} images ({own.ranking.swaps:,} random swaps of "
        f"answers), corrected by Holm's method so that at most {100 * (1 - level):g} % of such tables tell any two "
        "models apart that do not differ. Models that share a letter in the last column cannot be told apart; a rank "
        "such as 1–3 says which ranks a model may have."
    )
    fallback = " (the benchmark's own number could not be computed)" if name != own.readings[0].metric else ""
    words = f"By {benchmark_title(name, own.readings[0].part, unit=False)}{fallback}; {direction(name)}."
    rows = [_row(row, name) for row in own.rows]
    return {
        "title": title,
        "why": "",
        "words": f"{words} {_summary(own)}" if len(own.ranking.places) > 1 else words,
        "heads": heads,
        "rows": rows,
        "note": note,
        "footnote": FOOTNOTE if any(cell.marked for row in rows for cell in row["cells"]) else "",
    }


def _summary(own: RankedSet) -> str:
    """How much of the order is certain."""
    ranked = [row for row in own.rows if not row.why]
    certain = sum(row.rank.isdigit() for row in ranked)
    if certain == len(ranked):
        return "Every model is told apart from every other."
    if certain == 0:
        return "No model's rank is certain."
    return f"{certain} of {len(ranked)} ranks are certain."


def _row(row: Row, name: str) -> dict[str, Any]:
    reading = row.reading
    cells = [
        with_interval(name, reading.get(name, "benchmark")),
        with_interval(reading.quantity, reading.get(reading.quantity, "condition", "clean")),
    ]
    return {
        "reading": reading,
        "rank": row.rank,
        "letters": row.letters,
        "is_best": row.is_best,
        "alone": row.alone,
        "may_be_best": row.may_be_best,
        "why": row.why,
        "cells": cells,
        "worst": "–" if reading.scores.near_chance else worst_words(reading, short=True) or "–",
    }
