"""``blemish report``: one page about one or several models."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import Folders, Published, ScoreOptions, chosen_published, read_with_progress
from blemish.core.reading import is_folder
from blemish.reports.html import check_report_path, counted_models, write_report
from blemish.studies.leaderboard.section import place_sections
from blemish.studies.separation.section import separation_sections
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Plugins, Tiles, chosen_catalog
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say


@exit_on_input_error
@spread_options
def report_command(
    folders: Folders,
    how: ScoreOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    against: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL|DIR",
            help="The model that the others are compared with. Default: the run given as --baseline, or else the best.",
        ),
    ] = None,
    published: Published = None,
    with_places: Annotated[
        bool, typer.Option("--place", help="Show where each model would stand among published ones, and what differs.")
    ] = False,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a page with every number, chart, example and setting; it works offline and needs no other file.

    A page that blemish made is replaced; another file is not, unless --overwrite is given.

    Examples of corruptions of your own (--plugin) and of other photographs of frost (--frost) need what made them.

    Where a folder holds separation.json or mscr.json (-o of blemish separation and mscr), they are shown too.

    Examples:

      blemish report results -o report.html

      blemish report results/resnet50 results/vit -o two.html

      blemish report results --against resnet50

      blemish report results --baseline results/resnet50

      blemish report results-c results-p --published leaderboard -o many.html

      blemish report results --place -o placed.html
    """
    check_report_path(out)
    check_replaceable(out, overwrite=overwrite)
    runs, catalog = how.runs(folders), chosen_catalog(plugins, frost, tiles)
    extra = [separation_sections(runs, [folder for folder in folders if is_folder(folder)])]
    if with_places:
        own = partial(place_sections, runs, level=how.level, replicates=how.replicates)
        extra.append(read_with_progress("place", own))
    settings = how.settings(runs)
    if isinstance(settings["baseline"], str) and (named := [run for run in runs if run.name == settings["baseline"]]):
        settings["baseline"] = named[0]
    work = partial(
        write_report,
        runs,
        out,
        catalog=catalog,
        published=chosen_published(published),
        extra=extra,
        against=against,
        **settings,
    )
    written = read_with_progress("report", work)
    size = written.stat().st_size
    said = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
    say(f"wrote {written} ({said}, {counted_models(runs)})")
