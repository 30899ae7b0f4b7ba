"""docs/extending.md is followed from its first line to its last: its files are written, its commands and code run."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blemish.cli.main import app
from blemish.data.demo import demo_picture

PAGE = Path(__file__).resolve().parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"^```([a-z]+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a picture to work in, which modules can be imported from."""
    demo_picture(64).save(tmp_path / "cat.jpg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_corruptions", raising=False)
    yield tmp_path
    sys.modules.pop("my_corruptions", None)


def test_the_page_can_be_followed(folder: Path) -> None:
    said: dict[str, str] = {}
    for kind, text in BLOCKS:
        if named := re.match(r"# (\w+\.(?:py|toml))\n", text):
            (folder / named[1]).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, PAGE.name, "exec"), {"__name__": "example"})
        elif kind == "sh":
            for line in text.splitlines():
                words = shlex.split(line)
                assert words[0] == "blemish"
                result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "140"})
                assert result.exit_code == 0, f"{line}\n{result.output}"
                said[words[1]] = result.stdout
    assert "A bar of dead sensor rows." in said["list"]
    assert "dead_bar" in said["benchmarks"]
    assert "dead_bar" in said["score"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "dead bar, severity" in page
    assert "not a corruption of this catalog" not in page
    assert sorted(path.name for path in (folder / "copies" / "dead_bar").iterdir()) == ["1", "3"]


def test_there_is_something_to_follow() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("sh") >= 2
    assert kinds.count("python") >= 2
