"""The examples of docs/integrations.md run as they stand, each where its library is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foreign import foreign

PAGE = Path(__file__).resolve().parents[1] / "docs" / "integrations.md"
# The section's heading, and what has to be installed for its example.
SECTIONS = {
    "torchvision": ["torchvision"],
    "Albumentations": ["albumentations"],
    "mmcv": ["mmcv", "mmengine"],
    "Lightning": ["lightning"],
    "torchmetrics": ["torchmetrics"],
    "MAITE": ["maite"],
    "nrtk": ["nrtk"],
    "Trackers": ["tensorboard"],
}


def examples() -> dict[str, list[str]]:
    """The examples of each section."""
    _, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = {text.partition("\n")[0]: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in sections}
    return {heading: found for heading, found in blocks.items() if found}


def test_no_example_is_left_out() -> None:
    assert examples().keys() == SECTIONS.keys()


# What libraries advise, and what their older parts call.
@pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.slow
@pytest.mark.parametrize("heading", SECTIONS)
def test_examples_run(heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in SECTIONS[heading]:
        foreign(package)
    monkeypatch.chdir(tmp_path)  # for what they write
    for block in examples()[heading]:
        exec(compile(block, PAGE.name, "exec"), {"__name__": "example"})
