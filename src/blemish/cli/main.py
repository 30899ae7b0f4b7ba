"""The ``blemish`` command."""

from __future__ import annotations

from typing import Annotated

import typer

from blemish.cli.benchmarks import benchmarks_command
from blemish.cli.build import build_app
from blemish.cli.ccc import ccc_app
from blemish.cli.common import unwrapped
from blemish.cli.compare import compare_command
from blemish.cli.corrupt import corrupt_command
from blemish.cli.demo import demo_command
from blemish.cli.equivalence import equivalence_command
from blemish.cli.fetch_frost import fetch_frost_command
from blemish.cli.list import list_command
from blemish.cli.mscr import mscr_command
from blemish.cli.overlap import overlap_command
from blemish.cli.report import report_command
from blemish.cli.run import run_command
from blemish.cli.score import score_command
from blemish.cli.separation import separation_command
from blemish.cli.show import show_command
from blemish.cli.signals import stop_on_sigterm
from blemish.cli.terminal import App, Group
from blemish.version import VERSION

__all__ = ["app"]

app = App(
    name="blemish",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blemish {VERSION}")
        raise typer.Exit


def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Measure, build and understand corruption-robustness benchmarks for image classifiers.

    Start with "blemish demo": it measures two small networks and writes a report. "blemish show" draws every corruption
    of a picture on one sheet.
    """
    stop_on_sigterm()


app.callback(help=unwrapped(main.__doc__))(main)

_MEASURE = "Measure a classifier"
_CORRUPT = "Corrupt images"
_BUILD = "Build benchmarks"
_SEPARATION = "Class separation"
_STREAMS = "Streams and adaptation"

app.command("demo", rich_help_panel=_MEASURE)(demo_command)
app.command("benchmarks", rich_help_panel=_MEASURE)(benchmarks_command)
app.command("run", rich_help_panel=_MEASURE)(run_command)
app.command("score", rich_help_panel=_MEASURE)(score_command)
app.command("compare", rich_help_panel=_MEASURE)(compare_command)
app.command("report", rich_help_panel=_MEASURE)(report_command)
app.command("equivalence", rich_help_panel=_MEASURE)(equivalence_command)
app.command("list", rich_help_panel=_CORRUPT)(list_command)
app.command("show", rich_help_panel=_CORRUPT)(show_command)
app.command("corrupt", rich_help_panel=_CORRUPT)(corrupt_command)
app.command("fetch-frost", rich_help_panel=_CORRUPT)(fetch_frost_command)
app.command("overlap", rich_help_panel=_BUILD)(overlap_command)
app.add_typer(build_app, name="build", rich_help_panel=_BUILD)
app.command("separation", rich_help_panel=_SEPARATION)(separation_command)
app.command("mscr", rich_help_panel=_SEPARATION)(mscr_command)
app.add_typer(ccc_app, name="ccc", rich_help_panel=_STREAMS)

if __name__ == "__main__":
    app()
