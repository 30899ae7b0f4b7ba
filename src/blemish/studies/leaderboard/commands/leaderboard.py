"""``blemish leaderboard``: entries that anyone can make and check, and ranks that say no more than tests allow."""

from __future__ import annotations

import typer

from blemish.studies.leaderboard.commands.card import card_command
from blemish.studies.leaderboard.commands.entries import add_command, import_command, tables_command
from blemish.studies.leaderboard.commands.show import show_command
from blemish.studies.leaderboard.commands.site import site_command
from blemish.studies.leaderboard.commands.verify import verify_command
from blemish.terminal.printing import APP_SETTINGS, unwrapped

leaderboard_app = typer.Typer(name="leaderboard", **APP_SETTINGS)


def leaderboard() -> None:
    """Leaderboards one can defend: sealed entries, checks, ranks with what they cannot tell, and pages.

    An entry holds whether each image was answered correctly, so that anyone can compute its numbers again. What others
    published per cell, and what is only claimed, stands beside it, never in the same rank.

    Try it without measuring anything:

      blemish leaderboard show --benchmark cifar10-c
    """


leaderboard_app.callback(help=unwrapped(leaderboard.__doc__))(leaderboard)

_COMMANDS = (
    ("add", add_command, "Make entries of finished results."),
    ("import", import_command, "Make an entry of numbers that others published."),
    ("verify", verify_command, "Compute again what entries claim."),
    ("show", show_command, "Print rankings; CSV, Markdown, LaTeX, JSON."),
    ("site", site_command, "Write pages: one per benchmark, model and corruption."),
    ("card", card_command, "Numbers for a model's page on the Hugging Face Hub."),
    ("tables", tables_command, "List the published tables that come with blemish."),
)
for _name, _command, _help in _COMMANDS:
    leaderboard_app.command(_name, short_help=_help)(_command)
