"""The page: complete, self-contained, and safe whatever the names in the data are."""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError, StorageError
from blemish.evaluation.runs import Run
from blemish.reports.html import report_page, write_report
from report_runs import CONDITIONS, HOSTILE, pictured_run
from synthetic_runs import write_run


class Page(HTMLParser):
    """What a browser would make of it, as far as the tests ask."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._joined = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._joined = tag == "wbr"
        if tag not in ("meta", "img", "br", "wbr", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._joined:
            _, before = self.texts.pop()
            data = before + data
        self._joined = False
        self.texts.append((self._open[-1] if self._open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def scripts(self) -> list[str]:
        found: dict[int, str] = {}
        for tag, text in self.texts:
            if tag == "script":
                found[len(found)] = text
        return list(found.values())

    def words(self) -> str:
        """The text that is shown; a place where a line may be broken does not break a word."""
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))

    def charts(self) -> list[dict[str, str | None]]:
        return [a for a in self.all("svg") if (a.get("class") or "").startswith("plot")]


def make(runs: list[Run]) -> Page:
    return Page(report_page(runs, replicates=10))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("runs")
    model = {"training": {"corruptions": ["fog"], "augmentations": ["flips"]}}
    classes = [f"kind {number}" for number in range(10)]
    sequences = {"p:tilt@1": 0.1}
    natural = {"clean:imagenet-a": 0.8, "natural:imagenet-a": 0.3}
    conditions = {**CONDITIONS, **sequences, **natural}
    first = pictured_run(folder, "first", conditions, classes=classes)
    return make([first, pictured_run(folder, "second", conditions, classes=classes, seed=1, model=model)])


class TestContent:
    def test_sections(self, two: Page) -> None:
        found = [attributes["id"] for attributes in two.all("section")]
        assert found == [
            "ranking",
            "overview",
            "summary",
            "corruptions",
            "severities",
            "families",
            "standings",
            "differences",
            "calibration",
            "sequences",
            "natural",
            "examples",
            "worst",
            "protocol",
            "terms",
        ]
        links = [attributes["href"] for attributes in two.all("a")]
        assert links[1:] == [f"#{identity}" for identity in found]

    def test_charts_have_places_and_words(self, two: Page) -> None:
        plots = two.charts()
        assert len([a for a in two.all("figure") if a.get("class") == "chart"]) == len(plots)
        # Models beside each other, severity curves, families, and a reliability diagram for each model.
        assert len(plots) == 3 + 3 + 1 + 2
        assert all(a["role"] == "img" and a["aria-label"] for a in plots)

    def test_headings_do_not_skip_levels(self, two: Page) -> None:
        levels = [int(tag[1]) for tag, _ in two.tags if re.fullmatch(r"h[1-6]", tag)]
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))

    def test_numbers_are_those_of_the_records(self, two: Page) -> None:
        cells = [a for a in two.all("td") if (a.get("class") or "").startswith("cell")]
        # One map for each model, by severity and with means, and one of models, with clean images and the mean of all.
        assert len(cells) == 2 * 3 * (3 + 1) + 2 * (3 + 2)
        assert "trained on fog" in two.words()
        assert "†" in two.words()

    def test_pictures_and_answers(self, two: Page) -> None:
        pictures = two.all("img")
        assert pictures
        assert all(str(a["data-src"]).startswith("data:image/png;base64,") and a["alt"] for a in pictures)
        assert re.search(r"[✓✗] kind \d \d+\N{NO-BREAK SPACE}%", two.words())

    def test_identities_are_unique(self, two: Page) -> None:
        found = [a["id"] for _, a in two.tags if "id" in a]
        assert len(found) == len(set(found))


class TestSelfContained:
    def test_nothing_is_loaded(self, two: Page) -> None:
        for tag, attributes in two.tags:
            assert tag not in ("link", "iframe", "object", "embed", "base", "form", "audio", "video")
            for name, value in attributes.items():
                assert not name.startswith("on")
                if name in ("src", "href", "srcset", "action"):
                    assert str(value).startswith(("data:image/", "#")), (tag, name, value)
        styles = "".join(text for tag, text in two.texts if tag == "style")
        assert "url(" not in styles
        assert "@import" not in styles

    def test_only_its_own_script_may_run(self, two: Page) -> None:
        (policy,) = [a["content"] for a in two.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy is not None
        assert "default-src 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "'unsafe-inline'" not in policy.split("style-src")[0]
        assert len(two.scripts()) == 1
        for text in two.scripts():
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy

    def test_the_same_runs_give_the_same_page(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "m")
        assert report_page([run], replicates=5) == report_page([run], replicates=5)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("hostile")
    training = {"corruptions": ["fog", HOSTILE], "augmentations": [HOSTILE]}
    more: dict[str, Any] = {
        "names": [f"{HOSTILE}{i}" for i in range(30)],
        "classes": [HOSTILE] * 10,
        "model": {"name": HOSTILE, "weights": HOSTILE, "training": training},
        "benchmark": {"title": HOSTILE, "name": HOSTILE},
        "data": {"name": HOSTILE, "selection": HOSTILE},
    }
    return make([pictured_run(folder, name, seed=i, **more) for i, name in enumerate(("a", "b"))])


class TestHostileNames:
    def test_no_tags_come_from_data(self, hostile: Page) -> None:
        assert all(str(a["data-src"]).startswith("data:image/") for a in hostile.all("img"))
        assert len(hostile.scripts()) == 1
        assert not [name for _, attributes in hostile.tags for name in attributes if name.startswith("on")]

    def test_names_are_shown_as_they_are(self, hostile: Page) -> None:
        assert HOSTILE.replace("\u202e", "\\u202e") in hostile.words()
        assert "\u202e" not in hostile.words()

    def test_labels_of_charts_are_text(self, hostile: Page) -> None:
        shown = HOSTILE.replace("\u202e", "\\u202e")
        assert any(tag == "title" and shown in text for tag, text in hostile.texts)
        assert all(shown in str(a["aria-label"]) for a in hostile.charts() if "one" in str(a["aria-label"]))


class TestModelCards:
    def test_what_is_known_of_a_model(self, tmp_path: Path) -> None:
        card = {"parameters": 86_192_616, "input_size": [224, 224], "training_data": ["LAION-2B"], "web_scale": True}
        page = make([pictured_run(tmp_path, "clip", model={"card": {**card, "source": HOSTILE}})])
        words = page.words()
        assert "86.2 million" in words
        assert "LAION-2B (web-scale)" in words
        assert "corruptions are not out of distribution for it" in words
        assert not [image for image in page.all("img") if image.get("src") == "x"]

    def test_nothing_is_said_where_nothing_is_known(self, tmp_path: Path) -> None:
        assert "out of distribution" not in make([pictured_run(tmp_path, "net")]).words()


class TestKinds:
    def test_one_model(self, tmp_path: Path) -> None:
        page = make([pictured_run(tmp_path, "m")])
        assert "differences" not in [a["id"] for a in page.all("section")]

    def test_only_sequences(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.8, "p:tilt@1": 0.2}, images=10, benchmark={"metric": "flips"})
        found = [a["id"] for a in make([run]).all("section")]
        assert found == ["summary", "calibration", "sequences", "protocol", "terms"]

    def test_only_natural_sets(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.8, "clean:imagenet-a": 0.8, "natural:imagenet-a": 0.4}
        run = write_run(tmp_path, "m", conditions, images=10, benchmark={"metric": "natural_gap"})
        assert "natural" in [a["id"] for a in make([run]).all("section")]

    def test_severities_from_a_range(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "m", {"clean": 0.8, "noc:border@1-5": 0.5, "noc:hue@1-5": 0.4})
        page = make([run])
        assert "severities" not in [a["id"] for a in page.all("section")]
        assert "noc:border@1-5" in page.words()

    def test_gray_and_large_pictures(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "m", side=128)
        assert "data:image/webp" in str(make([run]).all("img")[0]["data-src"])
        path = run.folder / "pictures.npz"
        with np.load(path) as found:
            arrays = dict(found)
        arrays["images"] = arrays["images"][:, :32, :32, :1]
        np.savez(path, **arrays)
        assert "data:image/png" in str(make([run]).all("img")[0]["data-src"])

    def test_unfinished(self, tmp_path: Path) -> None:
        page = make([pictured_run(tmp_path, "m", {**CONDITIONS, "snow@1": None, "snow@3": 0.5})])
        assert "1 of 12 conditions are not measured yet: snow@1." in page.words()

    def test_headline_that_cannot_be_computed(self, tmp_path: Path) -> None:
        page = make([pictured_run(tmp_path, "m", benchmark={"metric": "mce"})])
        assert "could not be computed" in page.words()
        assert "no baseline was given" in page.words()

    def test_stored_pixels_are_not_made_again(self, tmp_path: Path) -> None:
        page = make([pictured_run(tmp_path, "m", protocol={"pixels": "stored"})])
        assert "the corrupted images were stored" in page.words()
        assert all("clean" in str(a["alt"]) for a in page.all("img"))

    def test_other_photographs_of_frost(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "m", {"clean": 0.8, "frost@3": 0.5})
        assert "frost uses custom-0123456789abcdef photographs" in make([run]).words()

    def test_differences_are_marked(self, tmp_path: Path) -> None:
        one = pictured_run(tmp_path, "one")
        two = pictured_run(tmp_path, "two", protocol={"seed": 7})
        page = make([one, two])
        assert "one and two were not measured in the same way" in page.words()
        assert "Not compared" in page.words()
        marked = [a for a in page.all("td") if "differs" in (a.get("class") or "")]
        assert len(marked) == 2
        # Predictions of the second run are of other pixels than those shown.
        assert page.words().count("protocol.seed is 0 and 7") == 2


class TestWriting:
    def test_complete_or_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = pictured_run(tmp_path, "m")
        target = tmp_path / "new" / "report.html"
        assert write_report([run], target, replicates=5) == target
        before = target.read_bytes()
        assert before.startswith(b"<!doctype html>")
        assert [path.name for path in target.parent.iterdir()] == ["report.html"]

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left"):
            write_report([run], target, replicates=5)
        assert target.read_bytes() == before

    def test_bad_paths(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "m")
        with pytest.raises(InputError, match=r"expected a file name that ends in \.html"):
            write_report([run], tmp_path / "report.pdf")
        (tmp_path / "folder.html").mkdir()
        with pytest.raises(InputError, match="is a folder"):
            write_report([run], tmp_path / "folder.html")
        with pytest.raises(InputError, match="no runs"):
            report_page([])
