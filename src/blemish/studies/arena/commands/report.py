"""``blemish arena report``: the tables and the page of what is finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.files import write_bytes
from blemish.core.marks import MADE_WITH
from blemish.core.reading import read_json
from blemish.core.typed import read_typed
from blemish.reports.html import check_report_path
from blemish.studies.arena.json_scores import scores_json
from blemish.studies.arena.page import write_page
from blemish.studies.arena.published import published_table
from blemish.studies.arena.results import ARENA_FILE, ArenaInfo
from blemish.studies.arena.scores import Scored, read_arena, scored
from blemish.studies.arena.tables import all_tables, intervals_text
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say
from blemish.terminal.results import Level, deliver

PAGE, SCORES = "report.html", "scores.json"


@exit_on_input_error
def report_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What blemish arena run wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page. Default: report.html in the folder.")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Images of running means. Default: 50,000, or a tenth of a stream that is shorter."),
    ] = None,
    level: Level = 0.95,
    overwrite: Overwrite = False,
) -> None:
    """Print the scores of all that is finished in a folder, and write them as JSON and as a page with curves.

    Examples:

      blemish arena report arena -o arena.html
    """
    page = check_report_path(out or folder / PAGE)
    check_replaceable(page, overwrite=overwrite)
    write_all(folder, page, level=level, window=window)


def write_all(folder: Path, page: Path, *, level: float = 0.95, window: int | None = None) -> list[Scored]:
    """Print and write everything."""
    info = read_typed(ArenaInfo, read_json(folder / ARENA_FILE))
    settings = scored(read_arena(folder), level=level, window=window)
    numbers = {"made_with": MADE_WITH, "level": level, "settings": scores_json(settings)}
    write_bytes(folder / SCORES, (json.dumps(numbers, indent=1) + "\n").encode())
    write_page(settings, info, page)
    published = [table for setting in settings if (table := published_table(setting, info)) is not None]
    deliver([*all_tables(settings), *published], None)
    say(intervals_text(level), style="dim")
    say(f"wrote {page} and {folder / SCORES}")
    return settings
