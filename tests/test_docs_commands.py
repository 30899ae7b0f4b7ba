"""Every command line in the README, in the docs and in the help texts is one that the commands understand."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from blemish.cli.main import COMMANDS, app, import_command

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "perf").glob("*.md"))]


def lines_of_page(text: str) -> list[str]:
    """Lines of code blocks that call blemish, continued ones joined."""
    found = []
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", text.replace("\\\n", " "), re.DOTALL | re.MULTILINE):
        found += re.findall(r"^(?:\$ )?blemish .*$", block, re.MULTILINE)
    return [line.removeprefix("$ ") for line in found]


def lines_of_help(command: object) -> list[str]:
    found = re.findall(r"^  (blemish .*)$", getattr(command, "help", None) or "", re.MULTILINE)
    for child in getattr(command, "commands", {}).values():
        found += lines_of_help(child)
    return found


ROOT_COMMAND = get_command(app)
ROOT_COMMAND.commands = {name: import_command(name) for name in COMMANDS}  # instead of stand-ins
LINES = [(page.name, line) for page in PAGES for line in lines_of_page(page.read_text(encoding="utf-8"))]
LINES += [("help", line) for line in lines_of_help(ROOT_COMMAND)]


def refusal(line: str) -> str | None:
    """Why a line is not understood; it is parsed as on the command line, without doing anything."""
    arguments = shlex.split(line, comments=True)[1:]
    if ">" in arguments:  # where the output goes is the shell's
        arguments = arguments[: arguments.index(">")]
    command, name = ROOT_COMMAND, "blemish"
    while hasattr(command, "commands"):
        name = arguments.pop(0) if arguments else ""
        if name not in command.commands:
            return f"no command {name!r}"
        command = command.commands[name]
    try:
        command.make_context(name, arguments)
    except typer.Exit:  # --help
        return None
    except Exception as error:
        return str(error) or repr(error)
    return None


@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page}-{number}" for number, (page, _) in enumerate(LINES)])
def test_lines_are_understood(page: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))  # which some options change
    if "…" not in line:  # a sketch
        assert refusal(line) is None, f"{page}: {line}"


def test_there_are_lines() -> None:
    assert len(LINES) > 100
    assert any(page == "help" for page, _ in LINES)


@pytest.mark.parametrize(
    "line", ["run imagenet-c", "score --jsn x", "scores x", "corrupt a b --format gif", "build", ""]
)
def test_the_check_can_fail(line: str) -> None:
    assert refusal(f"blemish {line}")
