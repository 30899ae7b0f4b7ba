"""A short run to damage, disturb or repeat, and what it left."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.cli.main import app

FOG = parse_condition("fog@1")
RUN = ["run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "--only", "fog@1", "--device", "cpu"]


def invoke(*arguments: object) -> tuple[int, str]:
    """A command in this process: its exit code and what it said."""
    result = CliRunner().invoke(app, [str(item) for item in arguments], env={"COLUMNS": "300"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def the_run(folder: Path) -> blemish.Run:
    (run,) = blemish.find_runs([folder])
    return run
