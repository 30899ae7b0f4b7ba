"""``blemish demo`` in a base install, and the commands that it prints for the next steps."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blemish.core.errors
from blemish.cli.main import app

# The demo on fewer digits and conditions, where nothing but the dependencies of the library can be imported, and where
# the photographs of frost are nowhere.
BASE = """
import sys
for name in ("sklearn", "scipy", "matplotlib", "joblib", "pandas", "onnxruntime", "ray", "timm"):
    sys.modules[name] = None
import numpy as np
from blemish.benchmarks.benchmark import only
from blemish.cli import demo, main
from blemish.ops import photographs
photographs._installed = tuple
load, digits = demo.load_benchmark, demo.digits_source
demo.load_benchmark = lambda name: only(load(name), ["frost_drawn@3", "fog@1", "p:tilt"])
demo.digits_source = lambda: digits().take(np.arange(30))
main.app()
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    source = str(Path(blemish.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "XDG_DATA_HOME": str(folder / "home"), "NO_COLOR": "1"}
    result = subprocess.run(
        [sys.executable, "-c", BASE, "demo", "--out", "my demo"],
        cwd=folder,
        env={**environment, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


def test_it_works_in_a_base_install(printed: tuple[Path, str]) -> None:
    folder, _ = printed
    page = (folder / "my demo" / "report.html").read_text(encoding="utf-8")
    assert '<svg class="plot"' in page
    assert "mCE" in page
    assert "frost drawn" in page


def test_the_baseline_is_named(printed: tuple[Path, str]) -> None:
    folder, output = printed
    words = "Relative to the baseline demo-plain, which has 100 %: CE, relative CE, flip rate FR"
    assert words in output
    page = (folder / "my demo" / "report.html").read_text(encoding="utf-8")
    assert words in page
    # In the table of the protocol as well.
    assert re.search(r"baseline</th>\s*<td[^>]*>\s*demo-plain\s*</td>", page)


def test_its_next_steps_give_the_same_numbers(
    printed: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a newcomer would, in another folder; only with fewer digits."""
    commands = [line.split("blemish ", 1)[1] for line in printed[1].splitlines() if line.startswith("  blemish ")]
    own = [shlex.split(text) for text in commands if "digits-c" in text or text.startswith(("score", "report"))]
    assert [words[0] for words in own] == ["run", "run", "score", "report"]
    assert any(text == "fetch-frost" for text in commands)
    monkeypatch.chdir(tmp_path)
    outputs = []
    for words in own:
        few = ["--limit", "20", "--only", "frost_drawn@3,fog@1,p:tilt"] if words[0] == "run" else []
        result = CliRunner().invoke(app, [*words, *few], env={"COLUMNS": "200"})
        assert result.exit_code == 0, result.output
        outputs.append(result.stdout)
    for row in ("mean CE, %", "mean relative CE, %", "mean flip rate FR, %", "mean Zipf distance"):
        numbers = next(line for line in outputs[2].splitlines() if line.strip().startswith(row))
        assert re.search(r"\d", numbers.replace(row, "")), numbers
    assert "Relative to the baseline demo-plain" in outputs[2]
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Relative to the baseline demo-plain" in page
