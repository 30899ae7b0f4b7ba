"""Options that are written once, and lists as people type them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from blemish.core.errors import InputError
from blemish.terminal.lists import listed, numbers
from blemish.terminal.option_groups import spread_options


@dataclass(frozen=True, kw_only=True)
class Base:
    """What two commands share."""

    loud: Annotated[bool, typer.Option("--loud")] = False


@dataclass(frozen=True, kw_only=True)
class Animal(Base):
    """With a field of its own, without which nothing works."""

    kind: Annotated[str, typer.Option("--kind", "-k", help="Which animal.")]


app = typer.Typer()


@app.command()
@spread_options
def speak(animal: Animal, times: Annotated[int, typer.Option()] = 1) -> None:
    """Say something."""
    typer.echo(" ".join([animal.kind.upper() if animal.loud else animal.kind] * times))


def test_fields_are_options() -> None:
    assert CliRunner().invoke(app, ["-k", "cat"]).stdout == "cat\n"
    assert CliRunner().invoke(app, ["--kind", "cat", "--loud", "--times", "2"]).stdout == "CAT CAT\n"
    assert CliRunner().invoke(app, []).exit_code == 2
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "Say something." in shown
    assert shown.index("--kind") < shown.index("--loud")


def test_two_groups_with_the_same_field_are_refused() -> None:
    def wrong(one: Animal, other: Base) -> None:
        """Two fields called loud."""

    with pytest.raises(ValueError, match="loud"):
        spread_options(wrong)


def test_lists() -> None:
    assert listed(None) == []
    assert listed("a, b,,c ") == ["a", "b", "c"]
    assert listed(["a,b", "c"]) == ["a", "b", "c"]
    assert numbers("1, 2.5", "--x", such_as="1") == [1, 2.5]
    for text in ("", ",", "low"):
        with pytest.raises(InputError, match="expected numbers such as 1,2"):
            numbers(text, "--x", such_as="1,2")
