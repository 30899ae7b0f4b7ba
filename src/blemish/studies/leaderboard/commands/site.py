"""``blemish leaderboard site``: the leaderboard as pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.folders import check_folder
from blemish.studies.leaderboard.commands.common import BoardFolder, BoardOptions
from blemish.studies.leaderboard.site import write_site
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress


@exit_on_input_error
@spread_options
def site_command(
    options: BoardOptions,
    board: BoardFolder = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the site.")] = Path("leaderboard-site"),
    title: Annotated[str, typer.Option(help="What to call it.")] = "Leaderboard",
) -> None:
    """Write a site of plain files: a page for each benchmark, each model and each corruption.

    It needs no server: open index.html. Tables can be searched, sorted and filtered. A site that blemish made is
    replaced.

    Examples:

      blemish leaderboard site board -o site

      blemish leaderboard site --published all -o published
    """
    check_folder(out)
    boards = options.boards(board, "leaderboard")

    def work(report: Report) -> int:
        return write_site(boards, out, title=title, level=options.level, report=report)

    pages = with_progress(
        "site", partial(work), first="writing pages", unit=None, kept="the rest is written next time."
    )
    say(f"wrote {out / 'index.html'} and {pages - 1:,} more pages")
