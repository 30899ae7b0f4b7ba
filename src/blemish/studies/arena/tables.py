"""Scores of the arena as tables that people read."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.reports.tables import NOTHING, Cell, Table, number, percent_cell, signed
from blemish.studies.arena.scores import UNADAPTED, Entrant, Scored
from blemish.studies.arena.tuning import SIGNALS, Choice, choices
from blemish.studies.streams.scores import Collapse


def intervals_text(level: float) -> str:
    """What the intervals are."""
    return (
        f"Errors in per cent. Intervals ({100 * level:g} %) are over images, each of which counts as one however often "
        "it comes; gains are paired, image by image. They do not say what another order of the stream would have "
        "changed: that shows the spread over seeds."
    )


def error_table(settings: Sequence[Scored]) -> Table:
    """Methods × settings: the error, and after it the rank among the methods of the setting."""
    names = list(dict.fromkeys(n for setting in settings for n, e in setting.entrants.items() if e.published))

    def cell(setting: Scored, name: str) -> Cell:
        entrant = setting.entrants.get(name)
        if entrant is None:
            return NOTHING
        rank = "" if entrant.place is None else f" ({entrant.place.rank})"
        return Cell(number(100 * entrant.error.value) + rank)

    rows = tuple((Cell(name), *(cell(setting, name) for setting in settings)) for name in names)
    heads = ("method", *(setting.name for setting in settings))
    note = (
        "In brackets the rank. A method's rank is a range where paired tests, corrected over all pairs of its setting "
        "(Holm), cannot tell it from others."
    )
    return Table("Error, %", heads, rows, notes=(note,))


def setting_table(setting: Scored) -> Table:
    """How well the methods of one setting did, the best first."""
    compared = UNADAPTED in setting.entrants
    rows = tuple(_row(entrant, compared=compared) for entrant in _ordered(setting))
    heads = (
        "method",
        "error",
        "gain on none, points",
        "rank",
        "group",
        "over streams",
        "behind none",
        "forgotten, points",
    )
    streams = "1 stream" if setting.streams == 1 else f"{setting.streams} streams"
    title = f"{setting.name}: {streams} of {setting.images:,} images, batches of {setting.batch}"
    notes = [f"{setting.title}. {setting.source}."]
    if missing := [f"{label} ({count} of {setting.streams})" for label, count in setting.unfinished.items()]:
        notes.append(f"Not compared, because streams are missing: {', '.join(missing)}.")
    if broken := [f"{e.label} ({e.invalid:,})" for e in setting.entrants.values() if e.invalid]:
        notes.append(f"Scores that were not numbers count as errors: {', '.join(broken)}.")
    return Table(title, heads, rows, notes=tuple(notes))


def _ordered(setting: Scored) -> list[Entrant]:
    published = [entrant for entrant in setting.entrants.values() if entrant.published]
    return sorted(published, key=lambda entrant: (entrant.error.value, entrant.label))


def _row(entrant: Entrant, *, compared: bool) -> tuple[Cell, ...]:
    runs = [100 * error for error in entrant.by_run]
    spread = NOTHING if len(runs) < 2 else Cell(f"{number(min(runs))} … {number(max(runs))}")
    place = entrant.place
    behind = NOTHING if entrant.label == UNADAPTED or not compared else Cell(_behind(entrant.behind))
    return (
        Cell(entrant.label),
        percent_cell(entrant.error),
        percent_cell(entrant.gain, write=signed),
        NOTHING if place is None else Cell(place.rank),
        NOTHING if place is None else Cell(place.letters),
        spread,
        behind,
        percent_cell(entrant.forgetting, write=signed),
    )


def _behind(falls: Sequence[Collapse]) -> str:
    """Where a method is worse than the network that is not adapted, and by how much: a little is no collapse."""
    if not falls:
        return "never"
    first = falls[0]
    many = f" ({len(falls)} streams)" if len(falls) > 1 else ""
    until = "the end" if first.to_the_end else f"{first.until:,}"
    return f"image {first.at:,} to {until}, by up to {number(100 * first.loss)}{many}"


def cost_table(setting: Scored) -> Table:
    """What the methods of one setting took, and the error on clean images that they leave."""
    base = setting.entrants.get(UNADAPTED)
    rows = tuple(_cost_row(entrant, base) for entrant in _ordered(setting))
    heads = ("method", "ms an image", "times none", "passes", "memory, MB", "adapted, %", "clean error after")
    notes = (f"Times and memory as measured on {setting.device}; passes are counted, a backward one as two.",)
    return Table(f"{setting.name}: what it took", heads, rows, notes=notes)


def _cost_row(entrant: Entrant, base: Entrant | None) -> tuple[Cell, ...]:
    times = None if base is None or base.seconds == 0 else entrant.seconds / base.seconds
    return (
        Cell(entrant.label),
        Cell(number(1000 * entrant.seconds, 3)),
        NOTHING if times is None else Cell(number(times)),
        NOTHING if entrant.passes is None else Cell(f"{entrant.passes:g}"),
        NOTHING if entrant.memory is None else Cell(f"{entrant.memory / 1e6:,.0f}"),
        Cell(number(100 * entrant.adapted)),
        percent_cell(entrant.clean),
    )


def condition_table(setting: Scored) -> Table:
    """The error of each method under each condition, in the order of the stream."""
    entrants = [entrant for entrant in setting.entrants.values() if entrant.published]
    names = list(dict.fromkeys(name for entrant in entrants for name in entrant.by_condition))
    rows = tuple(
        (
            Cell(entrant.label),
            *(
                Cell(number(100 * entrant.by_condition[name])) if name in entrant.by_condition else NOTHING
                for name in names
            ),
        )
        for entrant in entrants
    )
    return Table(f"{setting.name}: error by condition, %", ("method", *names), rows)


def tuning_table(setting: Scored) -> Table | None:
    """How a method's error depends on its learning rate and batch size, and what label-free choices come to."""
    chosen = choices(setting)
    if not chosen:
        return None
    rows = tuple(_tuned(choice) for choice in chosen)
    heads = ("method", "published", "oracle", *(f"by {name}" for name in SIGNALS), "worst")
    note = (
        "Each number is the error of the settings that a rule chooses among those tried, and which these are. The "
        "oracle sees the labels. Rules without labels: the lowest entropy, the highest consistency under mirroring, "
        "the highest soft neighbourhood density, the highest entropy of mean logits. A rule that is a method's own "
        "loss, such as entropy for tent, chooses badly (Cygert et al., 2024): say the rule with every number."
    )
    return Table(f"{setting.name}: choosing learning rate and batch size", heads, rows, notes=(note,))


def _tuned(choice: Choice) -> tuple[Cell, ...]:
    def cell(entrant: Entrant | None) -> Cell:
        if entrant is None:
            return NOTHING
        return Cell(f"{number(100 * entrant.error.value)} ({entrant.label.partition('@')[2] or 'published'})")

    rules = (cell(choice.by.get(name)) for name in SIGNALS)
    return Cell(choice.method), cell(choice.published), cell(choice.oracle), *rules, cell(choice.worst)


def all_tables(settings: Sequence[Scored]) -> list[Table]:
    """What is printed after a run."""
    tuned = [table for setting in settings if (table := tuning_table(setting)) is not None]
    return [error_table(settings), *(setting_table(setting) for setting in settings), *tuned]
