"""Frost on the command line: refused at the start without its photographs, and made from a folder of your own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.cli import show
from blemish.data import frost_download as frost
from blemish.data.demo import demo_picture
from blemish.evaluation.runs import open_run
from blemish.studies.streams.info import CalibrationInfo, WalkInfo
from blemish.studies.streams.walks import Walk, WalkStep
from command_line import command
from frost_files import digest, draw_pictures

FROST = """
name = "frosty"
metric = "error"
[[conditions]]
corruptions = ["frost"]
severities = [3]
"""
RUN = ("-m", "demo:plain", "-d", "demo:digits", "-n", "20")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A picture, a benchmark, a walk and a stored set; nothing of them can be read as a model or as images."""
    demo_picture(48).save(tmp_path / "cat.png")
    (tmp_path / "frost.toml").write_text(FROST)
    walk = Walk(
        (WalkStep("frost", 3.0, "fog", 0.0, 8, 0.5, 0),),
        WalkInfo(target=0.5, calibration=CalibrationInfo(frost="reference")),
    )
    (tmp_path / "walk.json").write_text(walk.to_json())
    images = np.zeros((4, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "clean.npz", images=images, labels=np.zeros(4, np.int64))
    np.savez(tmp_path / "theirs.npz", **{"frost@3": images})  # type: ignore[arg-type]
    return tmp_path


REFUSED = {
    "run": ["run", "{}/frost.toml", "-m", "nothing.onnx", "-d", "nowhere", "-o", "{}/out"],
    "imagenet-c": ["run", "imagenet-c", "-m", "nothing.onnx", "-d", "nowhere", "-o", "{}/out"],
    "corrupt": ["corrupt", "{}/cat.png", "-o", "{}/out.png", "-c", "frost", "-s", "1"],
    "corrupt by default": ["corrupt", "{}/cat.png", "-o", "{}/out"],
    "show": ["show", "{}/cat.png", "-c", "weather", "-o", "{}/out.png"],
    "calibrate": ["ccc", "calibrate", "-m", "nothing.onnx", "-d", "nowhere", "-c", "fog,frost", "-o", "{}/out"],
    "stream": ["ccc", "run", "{}/walk.json", "-m", "nothing.onnx", "-d", "nowhere", "-o", "{}/out"],
    "shards": ["ccc", "materialise", "{}/walk.json", "-d", "nowhere", "-o", "{}/out"],
    "severities": [
        "build",
        "match-severities",
        "-c",
        "frost",
        "-m",
        "nothing.onnx",
        "-d",
        "nowhere",
        "-o",
        "{}/out.csv",
    ],
    "overlap": ["train-overlap", "-c", "fog,frost", "-d", "nowhere", "-t", "nowhere", "-o", "{}/out"],
    "equivalence": ["equivalence", "-d", "{}/clean.npz", "--stored", "{}/theirs.npz", "-m", "nothing.onnx"],
}


@pytest.mark.usefixtures("no_photographs")
@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_any_work(name: str, files: Path) -> None:
    """Before the model and the images are opened, which are not there either."""
    before = sorted(files.iterdir())
    result = command(*(str(argument).format(files) for argument in REFUSED[name]))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: frost needs the reference's five photographs")
    assert "with: blemish fetch-frost" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(files.iterdir()) == before


@pytest.mark.usefixtures("no_photographs")
def test_the_default_sheet_shows_drawn_frost_by_its_name(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def sheet(picture: Image.Image, which: list[blemish.Corruption], **_: object) -> Image.Image:
        shown.extend(corruption.name for corruption in which)
        return picture

    monkeypatch.setattr(show, "contact_sheet", sheet)
    result = command("show", files / "cat.png", "-o", files / "sheet.png")
    assert result.exit_code == 0, result.output
    assert "frost_drawn is shown in place of frost" in result.output
    assert "blemish fetch-frost" in result.output
    assert (len(shown), "frost" in shown, "frost_drawn" in shown) == (19, False, True)


@pytest.mark.usefixtures("no_photographs")
def test_what_needs_no_photographs_goes_on(files: Path) -> None:
    assert command("list").exit_code == 0
    assert command("show", files / "cat.png", "-c", "frost_drawn", "-o", files / "sheet.png").exit_code == 0
    result = command("run", "digits-c", *RUN, "--only", "frost_drawn@3", "-o", files / "out")
    assert result.exit_code == 0, result.output
    assert command("report", files / "out", "-o", files / "page.html").exit_code == 0


class TestAFolder:
    def test_run(self, files: Path) -> None:
        ice = draw_pictures(files / "ice")
        result = command("run", files / "frost.toml", *RUN, "-o", files / "out", "--frost", ice)
        assert result.exit_code == 0, result.output
        kind = f"custom-{digest(ice)}"
        assert f"frost: {kind} photographs, not comparable with published numbers of frost" in result.output
        run = open_run(files / "out" / "demo-plain")
        assert run.info.protocol.frost == kind
        assert str(ice) not in json.dumps(asdict(run.info))

    def test_copies(self, files: Path) -> None:
        ice = draw_pictures(files / "ice")
        arguments = ("corrupt", files / "cat.png", "-o", files / "out", "-c", "frost", "-s", "3", "--format", "png")
        assert command(*arguments, "--frost", ice).exit_code == 0
        with Image.open(files / "cat.png") as picture, Image.open(files / "out" / "frost" / "3" / "cat.png") as made:
            mine = blemish.catalog.with_frost(ice)
            ids = blemish.hash_id("cat.png")
            expected = blemish.corrupt(picture.convert("RGB"), "frost", severity=3, ids=ids, catalog=mine)
            np.testing.assert_array_equal(np.asarray(made), np.asarray(expected))
        entries = json.loads((files / "out" / "blemish.json").read_text())["protocol"]["corruptions"]
        assert entries["frost"]["textures"] == f"custom-{digest(ice)}"
        other = command(*arguments, "--frost", draw_pictures(files / "other", seed=2))
        assert other.exit_code == 2
        assert "frost.textures was" in other.stderr

    def test_severities_say_that_the_folder_is_needed_again(self, files: Path) -> None:
        pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
        ice, out = draw_pictures(files / "ice"), files / "mine.toml"
        result = command("build", "match-severities", "-c", "frost", *RUN, "-o", out, "--frost", ice)
        assert result.exit_code == 0, result.output
        assert f"run it with --frost {ice}" in result.output

    def test_a_walk_that_was_calibrated_with_others_is_refused_or_noted(self, files: Path) -> None:
        ice = draw_pictures(files / "ice")
        shards = ("ccc", "materialise", files / "walk.json", "-d", files / "clean.npz", "-o", files / "out")
        result = command(*shards, "--frost", ice)
        assert result.exit_code == 2
        different = f'frost was "reference", now "custom-{digest(ice)}"'
        assert different in result.stderr
        result = command(*shards, "--frost", ice, "--anyway")
        assert result.exit_code == 0, result.output
        assert different in result.output

    def test_a_folder_without_photographs(self, files: Path) -> None:
        result = command("show", files / "cat.png", "-c", "frost", "-o", files / "s.png", "--frost", files)
        assert result.exit_code == 2
        assert "frost1.png" in result.stderr


class TestFetching:
    def test_it_says_where_they_are(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ice = draw_pictures(tmp_path / "ice")
        monkeypatch.setattr(frost, "REFERENCE_DIGEST", digest(ice))
        result = command("fetch-frost", "-o", ice)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith(f"the photographs of frost are already in {ice}\n")

    def test_errors_are_one_line(self, tmp_path: Path) -> None:
        result = command("fetch-frost", "--from", tmp_path / "gone.whl", "-o", tmp_path / "ice")
        assert result.exit_code == 2
        assert result.stderr == f"error: {tmp_path / 'gone.whl'}: no such file\n"
