"""``blemish build``: benchmarks from accuracies."""

from __future__ import annotations

import typer

from blemish.studies.construction.commands.core import core_command, stability_command
from blemish.studies.construction.commands.gather import gather_command
from blemish.studies.construction.commands.generate import (
    categories_command,
    generate_command,
    syn2nat_command,
    unbalance_command,
)
from blemish.studies.construction.commands.match_severities import match_severities_command
from blemish.studies.construction.commands.natural import natural_command
from blemish.studies.construction.commands.overlap_scores import compare_command, overlap_scores_command
from blemish.studies.construction.commands.select import (
    balance_command,
    coverage_command,
    select_command,
    sweep_command,
)
from blemish.studies.construction.commands.table import table_command
from blemish.terminal.printing import APP_SETTINGS, unwrapped

build_app = typer.Typer(name="build", **APP_SETTINGS)


def build() -> None:
    """Build benchmarks from tables of accuracies.

    Two roads lead from accuracies to a benchmark. Both start with overlapping scores: does training on one corruption
    help against another?

      1. Non-overlapping (ImageNet-NOC): overlap-scores, select or core; then sweep, stability, coverage, balance.

      2. Categories (Syn2Nat): overlap-scores, categories, generate or syn2nat; then unbalance, natural.

    Try it without training anything:

      blemish build table imagenet-c -o accuracies.csv

      blemish build overlap-scores accuracies.csv -o overlap.csv --figure overlap.png

      blemish build select overlap.csv -o mine.toml --threshold 0.2
    """


build_app.callback(help=unwrapped(build.__doc__))(build)

_COMMANDS = (
    ("gather", gather_command, "A table of accuracies from results of blemish run."),
    ("table", table_command, "Write a published accuracy table to try things with."),
    ("overlap-scores", overlap_scores_command, "Overlapping scores of corruptions, from accuracies."),
    ("compare", compare_command, "How far two overlap matrices agree."),
    ("select", select_command, "The largest benchmark that does not overlap."),
    ("sweep", sweep_command, "That benchmark at several thresholds."),
    ("core", core_command, "The smallest benchmark that covers the most."),
    ("stability", stability_command, "How stable the choice of a benchmark is."),
    ("coverage", coverage_command, "Which corruptions a benchmark covers."),
    ("balance", balance_command, "How evenly a benchmark weighs its corruptions."),
    ("categories", categories_command, "Split corruptions into categories."),
    ("generate", generate_command, "Random benchmarks from categories."),
    ("unbalance", unbalance_command, "Represent categories less evenly."),
    ("syn2nat", syn2nat_command, "From every category what overlaps least."),
    ("natural", natural_command, "Do benchmarks predict natural robustness?"),
    ("match-severities", match_severities_command, "Severity ranges as hard for your model as NOC's."),
)
for _name, _command, _help in _COMMANDS:
    build_app.command(_name, short_help=_help)(_command)
