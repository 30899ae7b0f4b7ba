"""``blemish arena settings`` and ``blemish arena methods``: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer

from blemish.reports.tables import Cell, Table
from blemish.studies.adaptation.methods import METHODS
from blemish.studies.arena.setting import built_in, load_setting, setting_text
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.printing import emit
from blemish.terminal.results import deliver


@exit_on_input_error
def settings_command(
    name: Annotated[str | None, typer.Argument(help="Print this one, as a text to begin your own from.")] = None,
) -> None:
    """List the settings, or print one.

    Examples:

      blemish arena settings

      blemish arena settings gradual
    """
    if name is not None:
        load_setting(name)
        emit(setting_text(name))
        return
    settings = [load_setting(each) for each in built_in()]
    rows = tuple((Cell(one.name), Cell(one.title), Cell(one.source)) for one in settings)
    deliver([Table("Settings", ("name", "stream", "after"), rows, text_columns=3)], None)


@exit_on_input_error
def methods_command() -> None:
    """List the methods: what they need of a network, what they change, and what they cost.

    Examples:

      blemish arena methods
    """
    rows = []
    for entry in METHODS.values():
        cost = entry.cost_with({})
        passes = "?" if cost is None else f"{cost.forwards:g} + {cost.backwards:g}"
        needs = entry.needs if not entry.source else f"{entry.needs}, clean images"
        rows.append((Cell(entry.name), Cell(needs), Cell(passes), Cell(entry.changes), Cell(entry.paper)))
    heads = ("method", "needs", "passes", "changes", "paper")
    note = "Passes forward and backward for each image of a stream."
    deliver([Table("Methods", heads, tuple(rows), text_columns=5, notes=(note,))], None)
