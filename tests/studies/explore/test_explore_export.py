"""The page without a server: what is in it, what it refuses, and the texts that it fills in itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.studies.explore.copies import Origin, texts_of
from blemish.studies.explore.export import LEVELS, SEVERITY, write_export
from blemish.studies.explore.subject import Subject, beginning
from blemish.studies.explore.views import View
from command_line import invoke
from explorers import CATALOG, digit_files, subject


def state_of(page: Path) -> dict:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="state">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def what(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return subject(digit_files(tmp_path_factory.mktemp("a private place"), 2), side=32)


@pytest.fixture(scope="module")
def page(what: Subject, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_export(tmp_path_factory.mktemp("export") / "page", what)


def test_strips_hold_the_pictures_and_the_page_their_answers(what: Subject, page: Path) -> None:
    state = state_of(page)
    picture = what.pictures[1]
    for condition in ("contrast@2.5", "fog@5", "clean", "gaussian_noise@0.5"):
        entry = state["stored"][picture.key][condition]
        view = View.of(condition, 7, CATALOG)
        strip = Image.open(page.parent / entry["file"])
        cell = strip.crop((entry["at"] * 32, 0, (entry["at"] + 1) * 32, 32))
        expected = np.asarray(view.image(picture).convert("RGB"), dtype=float)
        assert np.abs(np.asarray(cell, dtype=float) - expected).mean() < 4, condition  # JPEG of quality 92
        assert entry["answers"] == [witness.told(picture, view) for witness in what.witnesses]
    assert state["levels"] == list(LEVELS)
    # A film needs views at other severities, chains among them.
    assert {frame["c"] for frame in state["film"]} <= set(state["stored"][picture.key])
    assert any("+" in frame["c"] for frame in state["film"])


def test_texts_are_filled_in_with_the_severity(what: Subject, page: Path) -> None:
    picture = replace(what.pictures[1], path=what.pictures[1].name)
    texts = state_of(page)["texts"][picture.key]
    for kind, text in texts_of(picture, View.of("fog@2.5", 7), Origin()).items():
        assert texts["fog"][kind].replace(SEVERITY, "2.5") == text
    assert texts["clean"]["command"].startswith("blemish explore")


def test_nothing_of_this_machine_is_in_it(what: Subject, page: Path) -> None:
    assert "a private place" in str(what.pictures[0].path)
    assert "a private place" not in page.read_text(encoding="utf-8")
    assert "read_picture('digit 0.png')" in next(iter(state_of(page)["texts"].values()))["fog"]["python"]


def test_it_is_made_again_but_replaces_nothing_else(tmp_path: Path) -> None:
    what = subject(None, (), side=32)
    page = write_export(tmp_path / "page", what)
    (page.parent / "strips" / "9-old-0.jpg").write_bytes(b"old")
    write_export(tmp_path / "page", what)
    assert not (page.parent / "strips" / "9-old-0.jpg").exists()
    for name, content in (("mine.txt", "x"), ("index.html", "<p>mine</p>")):
        other = tmp_path / name.partition(".")[0]
        other.mkdir()
        (other / name).write_text(content)
        with pytest.raises(InputError, match="not a page of blemish explore"):
            write_export(other, what)
        assert (other / name).read_text() == content
        assert len(list(other.iterdir())) == 1
    with pytest.raises(InputError, match="a file; expected a folder"):
        write_export(tmp_path / "mine" / "mine.txt", what)


def test_what_an_export_cannot_begin_with(tmp_path: Path) -> None:
    what = subject(None, (), side=32)
    with pytest.raises(InputError, match="single corruptions"):
        write_export(tmp_path / "page", replace(what, begin=View.of("fog@1+contrast@2")))
    with pytest.raises(InputError, match="not among the corruptions"):
        write_export(tmp_path / "page", replace(what, begin=View.of("snow@1")))
    assert not (tmp_path / "page").exists()


def test_a_page_begins_with_fog_or_what_there_is() -> None:
    assert str(beginning(CATALOG).condition) == "fog@3"
    assert str(beginning(Catalog(CATALOG["contrast"])).condition) == "contrast@3"
    with pytest.raises(InputError, match="none of 0 corruptions"):
        beginning(Catalog())


def test_the_command(tmp_path: Path) -> None:
    folder = digit_files(tmp_path / "digits", 1)
    words = ("explore", folder, "-m", "demo:plain", "-c", "contrast", "--side", 32, "--export", tmp_path / "page")
    code, output, errors = invoke(*words)
    assert code == 0, errors
    assert "index.html" in output
    state = state_of(tmp_path / "page" / "index.html")
    assert [each["name"] for each in state["catalogues"][0]["units"]] == ["contrast"]
    assert state["models"] == ["demo-plain"]
    for more, message in (
        (("--condition", "nothing@1"), "nothing"),
        (("--condition", "fog@2"), "fog"),
        (("--walk", tmp_path / "none.json"), "none.json"),
        (("-m", "demo:other"), "demo network"),
        (("--seed", 2**31), "expected 0 … 2147483647"),
    ):
        code, _, errors = invoke(*words, *more)
        assert code == 2
        assert message in errors
    code, _, errors = invoke("explore", tmp_path / "none.png", "--no-open")
    assert (code, "none.png" in errors) == (2, True)
