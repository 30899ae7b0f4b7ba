"""The ``blemish`` command. Commands are imported when they are used: help and version should not wait for torch."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Any, NamedTuple

import typer
from typer.main import get_command

from blemish.terminal.printing import APP_SETTINGS, App, Group, unwrapped
from blemish.terminal.startup import log_to_stderr, stop_on_sigterm
from blemish.version import VERSION

_MEASURE = "Measure a classifier"
_CORRUPT = "Corrupt images"
_BUILD = "Build benchmarks"
_SEPARATION = "Class separation"
_STREAMS = "Streams and adaptation"


class Command(NamedTuple):
    """Where a command is, and what is said of it before it is imported."""

    panel: str
    module: str
    attribute: str
    help: str


COMMANDS = {
    "demo": Command(_MEASURE, "cli.demo", "demo_command", "Measure two small networks and write a report to look at."),
    "benchmarks": Command(_MEASURE, "cli.benchmarks", "benchmarks_command", "List the benchmarks that can be run."),
    "audit": Command(
        _MEASURE,
        "studies.audit.command",
        "audit_command",
        "Look for what makes numbers wrong: preprocessing, labels, images.",
    ),
    "run": Command(_MEASURE, "cli.run", "run_command", "Measure how a classifier holds up, condition by condition."),
    "score": Command(_MEASURE, "cli.score", "score_command", "The numbers of one or several models, with intervals."),
    "template": Command(
        _MEASURE, "cli.template", "template_command", "An empty file of predictions, to be scored when it is filled in."
    ),
    "compare": Command(_MEASURE, "cli.compare", "compare_command", "Compare two models on the same images."),
    "gate": Command(_MEASURE, "cli.gate", "gate_command", "Decide whether a model passes: requirements, for CI."),
    "report": Command(_MEASURE, "cli.report", "report_command", "One page about one or several models."),
    "leaderboard": Command(
        _MEASURE,
        "studies.leaderboard.commands.leaderboard",
        "leaderboard_app",
        "Sealed entries, honest ranks, published tables, and a site of them.",
    ),
    "equivalence": Command(
        _MEASURE,
        "studies.equivalence.command",
        "equivalence_command",
        "Images made on the fly against a set that others made.",
    ),
    "perceptual": Command(
        _MEASURE,
        "studies.perceptual.command",
        "perceptual_command",
        "How far corruptions are from clean images; errors against that.",
    ),
    "list": Command(_CORRUPT, "cli.list", "list_command", "List the corruptions, by family."),
    "show": Command(_CORRUPT, "cli.show", "show_command", "Draw corruptions of a picture on one sheet."),
    "corrupt": Command(_CORRUPT, "cli.corrupt", "corrupt_command", "Write corrupted copies of pictures or arrays."),
    "explore": Command(
        _CORRUPT, "studies.explore.command", "explore_command", "Look at corruptions, and what models say, on a page."
    ),
    "fetch-frost": Command(
        _CORRUPT, "cli.fetch_frost", "fetch_frost_command", "Fetch the five photographs that frost needs."
    ),
    "train-overlap": Command(
        _BUILD,
        "studies.overlap.command",
        "train_overlap_command",
        "Train a network per corruption, to see which help against which.",
    ),
    "build": Command(
        _BUILD, "studies.construction.commands.build", "build_app", "Build benchmarks from tables of accuracies."
    ),
    "separation": Command(
        _SEPARATION,
        "studies.separation.commands.separation",
        "separation_command",
        "How far apart the classes of a set lie.",
    ),
    "mscr": Command(
        _SEPARATION,
        "studies.separation.commands.mscr",
        "mscr_command",
        "Minimal-separation corruption robustness of classifiers.",
    ),
    "ccc": Command(
        _STREAMS,
        "studies.streams.commands.ccc",
        "ccc_app",
        "Continuously changing corruptions, and adaptation to them.",
    ),
    "arena": Command(
        _STREAMS,
        "studies.arena.commands.arena",
        "arena_app",
        "Compare test-time adaptation methods on the same streams.",
    ),
}


class _Lazy(Group):
    """Shows stand-ins in its help, and imports a command when it is called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``-v`` may stand behind the command as well; none has an option of that name."""
        end = args.index("--") if "--" in args else len(args)
        loud = [arg for arg in args[:end] if arg == "--verbose" or (arg[:1] == "-" and set(arg[1:]) == {"v"})]
        others = [arg for arg in args[:end] if arg not in loud]
        return super().parse_args(ctx, [*loud, *others, *args[end:]])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, import_command(name) if name in COMMANDS else command, rest


def import_command(name: str) -> Any:
    """The command itself."""
    # Threads that wait for work should sleep: while they spin, a busy machine gets little else done, torch included.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    command = getattr(importlib.import_module(f"blemish.{COMMANDS[name].module}"), COMMANDS[name].attribute)
    if not isinstance(command, typer.Typer):
        single = typer.Typer(**APP_SETTINGS | {"no_args_is_help": False})
        single.command(name)(command)
        command = single
    return get_command(command)


app = App(name="blemish", cls=_Lazy, **APP_SETTINGS)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"blemish {VERSION}")
        raise typer.Exit


def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Say on stderr what is done; -vv says every detail.")
    ] = 0,
) -> None:
    """Measure, build and understand corruption-robustness benchmarks for image classifiers.

    Start with "blemish demo": it measures two small networks and writes a report. "blemish show" draws every corruption
    of a picture on one sheet.
    """
    stop_on_sigterm()
    if verbose:
        log_to_stderr(verbose)


app.callback(help=unwrapped(main.__doc__))(main)


def _stand_in() -> None:
    """Take the place of a command that is not imported yet."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help, rich_help_panel=_command.panel)(_stand_in)
