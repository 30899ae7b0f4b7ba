"""The notebooks of examples/ run as they stand, cell by cell."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from foreign import foreign

mpl.use("agg")

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
# The notebook, and what has to be installed for it.
NOTEBOOKS = {
    "1_first_look": [],
    "2_your_timm_model": ["timm"],
    "3_clip_zero_shot": ["transformers", "tokenizers"],
    "4_training_pipeline": ["lightning", "torchvision"],
    "5_reading_records": ["pandas", "duckdb"],
}


def cells(name: str) -> list[dict[str, Any]]:
    content = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def test_all_notebooks_are_tried() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.ipynb")) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_were_executed(name: str) -> None:
    """From the first cell to the last, in order, without an error; nothing of the machine that ran them is left."""
    assert [cell["execution_count"] for cell in cells(name)] == list(range(1, len(cells(name)) + 1))
    outputs = [output for cell in cells(name) for output in cell["outputs"]]
    assert outputs
    assert all(output["output_type"] != "error" for output in outputs)
    assert "site-packages" not in json.dumps(outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NOTEBOOKS[name]:
        foreign(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scope: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what people see and this test does not judge
        for cell in cells(name):
            exec(compile("".join(cell["source"]), name, "exec"), scope)
