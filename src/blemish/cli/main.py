"""The ``blemish`` command."""

from __future__ import annotations

from typing import Annotated

import typer

from blemish.cli.corrupt import corrupt_command
from blemish.cli.list import list_command
from blemish.cli.show import show_command
from blemish.version import VERSION

__all__ = ["app"]

app = typer.Typer(
    name="blemish",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blemish {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Corrupt images as the robustness benchmarks do: seeded, batched, at any severity from 0 to 5.

    Start with "blemish show": it draws every corruption of a demo picture on one sheet.
    """


app.command("list")(list_command)
app.command("show")(show_command)
app.command("corrupt")(corrupt_command)

if __name__ == "__main__":
    app()
