"""Every tutorial is followed from its first line to its last; what it shows is what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from followed import agrees, follow, reader

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "tutorials"
QUICK = ("first-number.md", "your-corruption.md")
TUTORIALS = [
    pytest.param(page, id=page.stem, marks=() if page.name in QUICK else pytest.mark.slow)
    for page in sorted(FOLDER.glob("*.md"))
    if page.name != "index.md"
]


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_can_be_followed(page: Path, tmp_path: Path) -> None:
    steps = 0
    with reader(tmp_path.resolve()):
        for step in follow(page):
            assert agrees(step.told, step.printed), f"{step.what}\nprints\n{step.printed}\ninstead of\n{step.told}"
            steps += 1
    assert steps


def test_all_are_listed() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert all(f"]({page.name})" in index for page in FOLDER.glob("*.md") if page.name != "index.md")


@pytest.mark.parametrize(
    ("told", "printed", "same"),
    [
        ("a\nb", "a \nb\n\n", True),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…", "a", True),
        ("a\n…\nd", "a\nb\nc", False),
        ("a …\nc", "a b\nc", True),
        ("a …", "b", False),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
        ("", "a", False),
    ],
)
def test_the_comparison_can_fail(told: str, printed: str, same: bool) -> None:
    assert agrees(told, printed) is same
