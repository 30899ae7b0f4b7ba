"""The command itself: quick to answer, and every command where it is said to be."""

from __future__ import annotations

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import blemish
from blemish.cli.main import COMMANDS, app
from blemish.version import VERSION

HEAVY = {"torch", "numpy", "pyarrow", "PIL", "blemish.corruptions"}


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_help_and_version_import_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys\nfrom blemish.cli.main import app\n"
        "try:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\nprint('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert HEAVY.isdisjoint(result.stderr.split())
    assert "blemish" in result.stdout


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_the_package_can_be_run(words: list[str]) -> None:
    """Where the script is not on the path, ``python -m blemish`` is; and it is as light."""
    command = [sys.executable, "-X", "importtime", "-m", "blemish", *words]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "blemish.cli.main" in imported
    assert HEAVY.isdisjoint(imported)
    assert (f"blemish {VERSION}\n" == result.stdout) if words == ["--version"] else ("-m blemish" in result.stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_asked_for_help(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert f"blemish {name}" in " ".join(result.stdout.split())


def test_verbose_says_what_is_done(tmp_path: Path) -> None:
    words = ["run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "--only", "contrast@1", "-n", "10"]
    logger = logging.getLogger("blemish")
    before = logger.level, list(logger.handlers)
    try:
        quiet, some, much, behind = (
            CliRunner().invoke(app, [*before_it, *words, "-o", str(tmp_path / str(number)), *behind_it]).stderr
            for number, (before_it, behind_it) in enumerate([([], []), (["-v"], []), (["-vv"], []), ([], ["-v"])])
        )
    finally:
        logger.setLevel(before[0])
        logger.handlers[:] = before[1]
    assert "blemish." not in quiet
    assert "blemish.models.open: opening model demo:plain" in some
    assert "was opened in" not in some
    assert "was opened in" in much
    assert "opening model demo:plain" in behind
    assert "was opened in" not in behind


def test_typing_mistakes_get_a_hint() -> None:
    result = CliRunner().invoke(app, ["scroe"])
    assert result.exit_code == 2
    assert "score" in result.stderr


def test_import_of_the_library_sets_nothing_and_loads_little() -> None:
    code = (
        "import os, sys\nbefore = dict(os.environ)\nimport blemish\n"
        "assert before == dict(os.environ)\nassert 'torch' not in sys.modules\nassert 'evaluate' in dir(blemish)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(str(blemish.__file__)).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {name: f"blemish.{module}" for name, module in blemish._MODULES.items()}
    assert {*blemish.__all__} == {*seen}
    for name in seen:
        assert getattr(blemish, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = blemish.nothing  # type: ignore[attr-defined]


def test_corrupt_as_people_type_it() -> None:
    image = torch.zeros(3, 16, 16, dtype=torch.uint8)
    assert torch.equal(blemish.corrupt(image, "fog", 3), blemish.corrupt(image, "fog", severity=3))
