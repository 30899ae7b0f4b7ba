"""The same thing has the same name in every command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from blemish.cli.main import COMMANDS, import_command
from blemish.terminal.models import ModelSettings

# What a short or a long name stands for, wherever it is used.
PAIRS = {
    "-o": "--out",
    "-c": "--corruption",
    "-s": "--severity",
    "-d": "--data",
    "-m": "--model",
    "-j": "--jobs",
    "-n": "--limit",
    "-b": "--benchmark",
}
FORBIDDEN = {"--output", "--to", "--json-file", "--batch", "--workers", "--corruptions", "--severities"}
NO_CORRUPTIONS = {"demo", "score", "compare", "gate", "fetch-frost", "separation", "mscr"}
RESULTS_ONLY = {
    *(f"leaderboard {name}" for name in ("add", "import", "show", "site", "card", "tables")),
    *(f"arena {name}" for name in ("report", "settings", "methods")),
}
TABLES_ONLY = {"gather", "table", "overlap-scores", "compare", "sweep", "balance", "categories", "stability"}


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands below a command, or the command itself."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
    for child, below in (children or {}).items():
        yield from leaves(f"{name} {child}", below)


LEAVES = dict(leaf for name in COMMANDS for leaf in leaves(name, import_command(name)))


def options(command: Any) -> dict[str, Any]:
    return {text: each for each in command.params if each.param_type_name == "option" for text in each.opts}


@pytest.mark.parametrize("name", LEAVES)
def test_one_vocabulary(name: str) -> None:
    known = options(LEAVES[name])
    assert not FORBIDDEN & set(known)
    assert "-v" not in known  # of the program: it is taken behind a command as well
    for short, long in PAIRS.items():
        assert known.get(short) is known.get(long), (short, long)
    for each in LEAVES[name].params:
        assert each.param_type_name == "option" or "OUT" not in (each.metavar or each.name).upper()


@pytest.mark.parametrize("name", LEAVES)
def test_the_same_options_for_every_model(name: str) -> None:
    known = options(LEAVES[name])
    if "--model" in known:
        reference = options(LEAVES["run"])
        for field in fields(ModelSettings):
            option = f"--{field.name.replace('_', '-')}"
            assert known[option].help == reference[option].help


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--corruption", {"Names, families or catalogues", "Corruptions by their names in the table"}),
        ("--only", {"Only these conditions"}),
        ("--jobs", {"Worker processes"}),
        (
            "--batch-size",
            {"Images at a time; halved", "Images per step", "Images per adaptation step", "Images a step"},
        ),
    ],
)
def test_the_same_is_said_of_it_everywhere(option: str, names: set[str]) -> None:
    """Corruptions are named by -c and conditions selected by --only: none of the two does the other's work."""
    said = [known[option].help for known in map(options, LEAVES.values()) if option in known]
    assert len(said) > 3
    assert [text for text in said if not text.startswith(tuple(names))] == []


# One picture is looked at, or points are.
NO_BATCHES = {"explore", "mscr"}


@pytest.mark.parametrize("name", LEAVES)
def test_batches_wherever_a_model_is_measured(name: str) -> None:
    known = options(LEAVES[name])
    assert ("--model" not in known) or name in NO_BATCHES or "--batch-size" in known


# What only prints, asks or edits: everything else leaves its results where --out says.
PRINTING = {
    *("benchmarks", "audit", "list"),
    *(f"leaderboard {name}" for name in ("tables", "verify")),
    *(f"arena {name}" for name in ("settings", "methods")),
}


@pytest.mark.parametrize("name", LEAVES)
def test_results_go_to_out(name: str) -> None:
    assert ("--out" in options(LEAVES[name])) != (name in PRINTING)


@pytest.mark.parametrize("name", LEAVES)
def test_plugins_wherever_corruptions_are(name: str) -> None:
    without = name in NO_CORRUPTIONS | RESULTS_ONLY or name.removeprefix("build ") in TABLES_ONLY
    assert ("--plugin" in options(LEAVES[name])) != without


def kind(option: Any) -> str:
    """Whether an option is a flag, counts something, or says something else, once or repeatedly."""
    descriptor = getattr(option, "type_descriptor", None)
    if descriptor is None:  # older versions of typer take click's types
        return {"boolean": "bool", "integer": "int", "integer range": "int"}.get(option.type.name, "words")
    text = str(descriptor.annotation)
    return next((word for word in ("bool", "int") if f"'{word}'" in text), "words")


def test_one_meaning() -> None:
    """An option that is a flag here and names a file there, or counts images and names a text of them, is two."""
    kinds: dict[str, set[str]] = {}
    for command in LEAVES.values():
        for text, option in options(command).items():
            kinds.setdefault(text, set()).add(kind(option))
    assert {text: found for text, found in kinds.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", LEAVES)
def test_other_files_of_corruptions_wherever_they_are_made(name: str) -> None:
    known = options(LEAVES[name])
    assert ("--frost" in known) is ("--tiles" in known)


def test_there_are_commands() -> None:
    assert len(LEAVES) > 30
