"""``blemish arena``: test-time adaptation methods compared on the same streams."""

from __future__ import annotations

import typer

from blemish.studies.arena.commands.lists import methods_command, settings_command
from blemish.studies.arena.commands.report import report_command
from blemish.studies.arena.commands.run import run_command
from blemish.terminal.printing import APP_SETTINGS

arena_app = typer.Typer(
    help="Compare test-time adaptation methods on the same streams, setting by setting.", **APP_SETTINGS
)
arena_app.command("run")(run_command)
arena_app.command("report")(report_command)
arena_app.command("settings")(settings_command)
arena_app.command("methods")(methods_command)
