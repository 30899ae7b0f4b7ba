"""The page on building benchmarks can be followed: its first commands run in order, in an empty folder."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blemish.cli.main import app

PAGE = Path(__file__).resolve().parents[3] / "docs" / "construction.md"


def test_the_page_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks if block.startswith("blemish build table") for line in block.splitlines()]
    assert len(lines) == 16
    for line in lines:
        result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:], env={"COLUMNS": "140"})
        assert result.exit_code == 0, f"{line}: {result.output}"
    with (tmp_path / "result.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["group"] for row in rows} == {"n2k3", "n3k2", "imagenet-c"}
    # The page's table, ImageNet-C's row.
    found = {row["natural"]: float(row["correlation"]) for row in rows if row["group"] == "imagenet-c"}
    printed = {"imagenet-a": 0.596, "imagenet-r": 0.699, "imagenet-v2": 0.665, "objectnet": 0.608}
    assert found == pytest.approx(printed | {"imagenet-sketch": 0.692}, abs=6e-4)
    with (tmp_path / "covered-by-imagenet-c.csv").open() as stream:
        assert {row["corruption"] for row in csv.DictReader(stream) if row["covered"] == "no"} == {
            "noc:border",
            "noc:hue",
        }
