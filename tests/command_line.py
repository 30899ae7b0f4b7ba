"""Commands of blemish in this process."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result

from blemish.cli.main import app


def command(*arguments: object, where: typer.Typer = app, columns: int = 140) -> Result:
    """What typing a command gives, on a terminal of so many columns."""
    return CliRunner().invoke(where, [str(argument) for argument in arguments], env={"COLUMNS": str(columns)})


def invoke(*arguments: object, where: typer.Typer = app, columns: int = 140) -> tuple[int, str, str]:
    """The exit code of a command and what it wrote to stdout and stderr; errors that it does not expect are raised."""
    result = command(*arguments, where=where, columns=columns)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
