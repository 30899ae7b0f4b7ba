"""``blemish gate``: may a model pass? For CI systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import ScoreOptions, read_with_progress
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.metrics.gate import Gate, gate
from blemish.metrics.gate_rules import Status
from blemish.reports.gate_files import gate_json, gate_junit, gate_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import complain, say
from blemish.terminal.results import deliver, marked_markdown

_FORMS: dict[str, Callable[[Gate], bytes]] = {
    ".xml": gate_junit,
    ".md": lambda gated: marked_markdown([gate_table(gated)]).encode("utf-8", "replace"),
    ".json": lambda gated: gate_json(gated).encode("utf-8", "replace"),
}
_CODES = {Status.FAILED: 1, Status.UNDECIDED: 3}


@exit_on_input_error
@spread_options
def gate_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run, or FILE:MODEL of predictions.")],
    how: ScoreOptions,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="What must hold: [OF] METRIC SIGN NUMBER, in the unit that blemish score shows. May be repeated.",
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of an earlier run, measured in the same way.")
    ] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(metavar="POINTS", help="By how many points the headline number may be worse than --against."),
    ] = None,
    by_point: Annotated[
        bool, typer.Option("--point", help="Decide by values alone, whatever their intervals say.")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="A file to write to: .xml (JUnit), .md or .json. May be repeated."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with all digits.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Decide whether a model passes: exit code 0 if it does, 1 if it fails, 3 if too few images were measured to tell.

    A requirement passes only if its whole interval does. Bad input, such as a rule that makes no sense or runs that
    were not measured in the same way, gives exit code 2.

    Examples:

      blemish gate results/model --require "mce < 60" --require "fog@3 accuracy > 0.7"

      blemish gate results/model --against baseline/ --max-drop 1.5 -o gate.xml -o gate.md
    """
    files = out or []
    for path in files:
        if path.suffix.lower() not in _FORMS:
            raise InputError(f"{path}: a file of an unknown kind; expected {', '.join(_FORMS)}")
    check_replaceable(*files, overwrite=overwrite)
    run, before = how.run(folder), None if against is None else how.run(against)
    work = partial(gate, run, require or (), against=before, max_drop=max_drop, by_point=by_point)
    gated = read_with_progress("gate", partial(work, **how.settings([run])))
    for path in files:
        write_bytes(path, _FORMS[path.suffix.lower()](gated))
    deliver(gate_json(gated) if as_json else [gate_table(gated)], None)
    for path in files:
        (complain if as_json else say)(f"wrote {path}", style="")
    if gated.status is not Status.PASSED:
        raise typer.Exit(_CODES[gated.status])
