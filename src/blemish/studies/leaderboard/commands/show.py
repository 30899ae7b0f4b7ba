"""``blemish leaderboard show``: who may be compared, and in what order."""

from __future__ import annotations

from typing import Annotated

import typer

from blemish.studies.leaderboard.commands.common import BoardFolder, BoardOptions
from blemish.studies.leaderboard.tables import board_csv, board_json, board_tables
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.results import Format, TableOptions

_TOP, _TOP_OF_MANY = 25, 5
_FEW = 4


@exit_on_input_error
@spread_options
def show_command(
    options: BoardOptions,
    results: TableOptions,
    board: BoardFolder = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=0,
            help=f"So many models of each ranking; 0 for all. Default: as text {_TOP}, of many {_TOP_OF_MANY}; "
            "in files and other formats all.",
        ),
    ] = None,
) -> None:
    """Print rankings: of entries, by paired tests on the same images, and of published tables, by their intervals.

    What can be computed again, what was published per cell and what is only claimed are never mixed in one rank.

    Examples:

      blemish leaderboard show board

      blemish leaderboard show --benchmark cifar10-c

      blemish leaderboard show board --max-parameters 30 --web-scale no --latex -o table.tex

      blemish leaderboard show --published timm/imagenet-r --training-data ImageNet-21k --csv
    """
    results.check()
    boards = options.boards(board, "leaderboard")
    rankings = sum(len(each.rankings) for each in boards)
    shown = _TOP if rankings <= _FEW else _TOP_OF_MANY
    count = (shown if results.format is Format.TEXT and results.out is None else None) if top is None else top or None
    results.deliver(
        json=lambda: board_json(boards, level=options.level),
        csv=lambda: board_csv(boards, level=options.level, top=count),
        tables=lambda: board_tables(boards, top=count),
    )
