"""The comparison of two models as tables that people read."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.metrics.compare import Comparison, Difference
from blemish.metrics.consistency import Consistency
from blemish.metrics.quantities import QUANTITIES
from blemish.metrics.titles import SUMMARY, TITLES, both_names
from blemish.reports.reading import benchmark_title, title_of
from blemish.reports.score_tables import signed, value_text
from blemish.reports.tables import Cell, Table, estimate_cell
from blemish.reports.wording import PLAIN, Wording

_WHOLE = both_names(SUMMARY)


def p_text(value: float) -> str:
    """A p-value.

    >>> p_text(0.03214), p_text(0.0002), p_text(1.0)
    ('0.032', '<0.001', '1.000')
    """
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def comparison_tables(comparison: Comparison, first: str, second: str, *, wording: Wording = PLAIN) -> list[Table]:
    """The headline with the corruptions first, then sequences and natural sets; empty ones are left out."""
    rows = {
        scope: [row for row in comparison.rows if row.scope == scope]
        for scope in ("benchmark", "corruption", "family", "sequence", "natural")
    }
    order = [comparison.metric, *(name for name in _WHOLE if name != comparison.metric)]
    whole = sorted((row for row in rows["benchmark"] if row.name in order), key=lambda row: order.index(row.name))
    number_of = next((q.name for q in QUANTITIES if any(row.name == q.name for row in comparison.rows)), "error")
    clean = [row for row in comparison.rows if (row.name, row.scope, row.of) == (number_of, "condition", "clean")]
    named = TITLES[number_of].title
    tables = [
        (
            "The whole benchmark" if comparison.part is None else f"The means {comparison.part}",
            "metric",
            [*whole, *clean],
        ),
        (f"Mean {named} by corruption", "corruption", _of(number_of, rows["corruption"])),
        (f"Mean {named} by family", "family", _of(number_of, rows["family"])),
        ("Flip probability by sequence", "sequence", _of("flips", rows["sequence"])),
        ("Accuracy on natural sets", "set", _of("accuracy", rows["natural"])),
    ]
    note = (
        f"The difference is {second} minus {first}, with its {100 * comparison.level:g} % interval, over the same "
        f"{comparison.images:,} images; p is of a paired test and is not corrected for the number of rows."
    )
    shown = [_table(*table, first, second, (note,), wording) for table in tables if table[2]]
    return shown if comparison.consistency is None else [*shown, consistency_table(comparison.consistency)]


def consistency_table(consistency: Consistency) -> Table:
    """Whether two models fail on the same images: κ over all corruptions, and for each."""
    rows = [("all, mean over conditions", consistency.mean), *consistency.corruptions.items()]
    clean = [(item.condition, item.kappa) for item in consistency.conditions if item.condition == "clean"]
    cells = tuple((Cell(name), estimate_cell(estimate, 2)) for name, estimate in (*rows, *clean))
    notes = ["1: right and wrong on the same images; 0: as independent errors at the same accuracies would be."]
    if consistency.people is not None:
        notes.append(f"Between people, at the published levels that count: {consistency.people:.2f}.")
    return Table("Error consistency (Cohen's κ)", ("corruption", "κ"), cells, notes=tuple(notes))


def _of(name: str, rows: Sequence[Difference]) -> list[Difference]:
    return [row for row in rows if row.name == name]


def _table(
    title: str, what: str, rows: Sequence[Difference], first: str, second: str, notes: tuple[str, ...], wording: Wording
) -> Table:
    heads = (what, first, second, "difference", "p")
    # A table by corruption is of one metric, which is in its title; others name one in each row.
    if rows[0].scope not in ("benchmark", "condition"):
        title = wording(rows[0].name, title)
    return Table(title, heads, tuple(_row(row, wording) for row in rows), notes=notes)


def _row(row: Difference, wording: Wording) -> tuple[Cell, ...]:
    label = wording(row.name, benchmark_title(row.name, None)) if row.scope == "benchmark" else row.of
    if row.scope == "condition":
        label = wording(row.name, f"{row.of} {title_of(row.name)}")
    ends = (row.difference.low, row.difference.high)
    interval = ", ".join(signed(row.name, end) for end in ends)
    return (
        Cell(label),
        Cell(value_text(row.name, row.first), row.trained_on[0]),
        Cell(value_text(row.name, row.second), row.trained_on[1]),
        Cell(signed(row.name, row.difference.value), any(row.trained_on), interval),
        Cell(p_text(row.p_value)),
    )
