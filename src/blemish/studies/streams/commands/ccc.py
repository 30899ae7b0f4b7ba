"""``blemish ccc``: continuously changing corruptions, from calibration to walks and streams."""

from __future__ import annotations

import typer

from blemish.studies.streams.commands.calibrate import calibrate_command
from blemish.studies.streams.commands.materialise import materialise_command
from blemish.studies.streams.commands.protocol import protocol_command
from blemish.studies.streams.commands.run import run_command
from blemish.studies.streams.commands.walk import walk_command
from blemish.terminal.printing import APP_SETTINGS

ccc_app = typer.Typer(
    help="Continuously changing corruptions (CCC): calibrate a model, plan a walk, run adaptation methods on it.",
    **APP_SETTINGS,
)
ccc_app.command("calibrate")(calibrate_command)
ccc_app.command("walk")(walk_command)
ccc_app.command("run")(run_command)
ccc_app.command("protocol")(protocol_command)
ccc_app.command("materialise")(materialise_command)
