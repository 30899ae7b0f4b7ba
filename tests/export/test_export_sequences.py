"""Sequences on disk: layout, equality with the library call, resume, refusals, and independence of the jobs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from blemish.core.errors import InputError
from blemish.core.files import STAGING
from blemish.core.types import Square
from blemish.corruptions.imagenet_p import sequences
from blemish.data.pictures import picture_id, read_picture, resize_and_crop
from blemish.export.sequences import corrupt_sequences, make_sequence_recipe


def make_tree(root: Path, count: int = 3, side: int = 24) -> Path:
    for index in range(count):
        path = root / f"class{index % 2}" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        levels = np.random.default_rng(index).integers(0, 256, (side, side + 4, 3), dtype=np.uint8)
        Image.fromarray(levels).save(path)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_layout_and_pixels(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src")
    recipe = make_sequence_recipe(["p:tilt", "p:shot_noise"], seed=3, difficulty=2)
    outcome = corrupt_sequences(source, tmp_path / "dst", recipe)
    assert (outcome.written, outcome.skipped, outcome.failures) == (3 * 2 * 31, 0, [])
    assert outcome.presets == {"cifar": 3}
    stems = ["class0/0", "class0/2", "class1/1"]
    expected = {f"{s}/{n}/{i:02d}.png" for s in ("tilt", "shot_noise_2") for n in stems for i in range(31)}
    assert set(contents(tmp_path / "dst")) == {"blemish.json", "blemish-files.jsonl", *expected}
    picture = np.array(read_picture(source / "class1" / "1.png"))
    batch = torch.from_numpy(picture).permute(2, 0, 1)[None]
    for name, folder in (("p:tilt", "tilt"), ("p:shot_noise", "shot_noise_2")):
        frame = sequences[name].frame(batch, 7, seed=3, ids=[picture_id("class1/1.png")], difficulty=2)
        stored = np.array(read_picture(tmp_path / "dst" / folder / "class1" / "1" / "07.png"))
        assert np.array_equal(stored, frame[0].permute(1, 2, 0).numpy())


def test_resize_first_and_crop_last(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src", count=1, side=50)
    recipe = make_sequence_recipe(["p:rotate"], resize=40, crop=32)
    corrupt_sequences(source, tmp_path / "dst", recipe)
    picture = np.array(resize_and_crop(read_picture(source / "class0" / "0.png"), resize=40))
    expected = sequences["p:rotate"].frame(torch.from_numpy(picture).permute(2, 0, 1)[None], 0, crop=32)
    stored = np.array(read_picture(tmp_path / "dst" / "rotate" / "class0" / "0" / "00.png"))
    assert np.array_equal(stored, expected[0].permute(1, 2, 0).numpy())


def test_squares_come_last_where_the_image_moves(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src", count=1, side=50)
    square = Square(32, 0.75)
    corrupt_sequences(source, tmp_path / "dst", make_sequence_recipe(["p:rotate", "p:translate"], crop=square))
    picture = torch.from_numpy(np.array(read_picture(source / "class0" / "0.png"))).permute(2, 0, 1)[None]
    expected = sequences["p:rotate"].frame(picture, 0, preset="cifar", crop=square)
    stored = np.array(read_picture(tmp_path / "dst" / "rotate" / "class0" / "0" / "00.png"))
    assert np.array_equal(stored, expected[0].permute(1, 2, 0).numpy())
    assert len(list((tmp_path / "dst" / "translate").rglob("*.png"))) == 16  # the preset is the square's
    protocol = json.loads((tmp_path / "dst" / "blemish.json").read_text())["protocol"]
    assert protocol["crop"] == "the middle 75 % of each side, as 32×32 pixels"
    with pytest.raises(InputError, match=r"crop was .the middle 75 % of each side"):
        corrupt_sequences(source, tmp_path / "dst", make_sequence_recipe(["p:rotate"], crop=32))


def test_resume_repeats_only_what_is_missing(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src")
    recipe = make_sequence_recipe(["p:spatter", "p:translate"], preset="imagenet64")
    corrupt_sequences(source, tmp_path / "dst", recipe)
    before = contents(tmp_path / "dst")
    for name in ("spatter/class0/0/09.png", "translate/class1/1/30.png"):
        (tmp_path / "dst" / name).unlink()
    seen: list[tuple[int, int]] = []
    outcome = corrupt_sequences(source, tmp_path / "dst", recipe, progress=lambda *numbers: seen.append(numbers))
    assert (outcome.written, outcome.skipped) == (2, 3 * 62 - 2)
    assert contents(tmp_path / "dst") == before
    assert seen[-1] == (3 * 62, 3 * 62)
    assert not (tmp_path / "dst" / STAGING).exists()


def test_jobs_change_nothing(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src", count=2)
    recipe = make_sequence_recipe(["p:snow", "p:gaussian_noise"], file_format="jpeg")
    corrupt_sequences(source, tmp_path / "one", recipe)
    corrupt_sequences(source, tmp_path / "two", recipe, jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert (tmp_path / "one" / "snow" / "class0" / "0" / "00.jpg").exists()


def test_one_picture_and_gray(tmp_path: Path) -> None:
    path = tmp_path / "gray.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 90), dtype=np.uint8)).save(path)
    outcome = corrupt_sequences(path, tmp_path / "dst", make_sequence_recipe(["p:brightness"]))
    assert outcome.written == 31
    with Image.open(tmp_path / "dst" / "brightness" / "gray" / "30.png") as frame:
        assert (frame.mode, frame.size) == ("L", (64, 64))


def test_the_manifest_grows_and_guards(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src", count=1)
    target = tmp_path / "dst"
    corrupt_sequences(source, target, make_sequence_recipe(["p:tilt"]))
    corrupt_sequences(source, target, make_sequence_recipe(["p:shot_noise"], difficulty=3))
    protocol = json.loads((target / "blemish.json").read_text())["protocol"]
    assert protocol["layout"] == "sequences"
    assert protocol["corruptions"] == {
        "tilt": {"sequence": "p:tilt", "version": 2},
        "shot_noise_3": {"sequence": "p:shot_noise", "version": 2, "difficulty": 3},
    }
    with pytest.raises(InputError, match="seed was 0, now 1"):
        corrupt_sequences(source, target, make_sequence_recipe(["p:tilt"], seed=1))
    (tmp_path / "other" / "tilt").mkdir(parents=True)
    with pytest.raises(InputError, match=r"no blemish\.json says how it was made"):
        corrupt_sequences(source, tmp_path / "other", make_sequence_recipe(["p:tilt"]))


def test_pictures_that_cannot_be_used_are_reported(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src")
    (source / "class0" / "empty.jpg").touch()
    Image.new("RGB", (40, 12)).save(source / "class1" / "flat.png")
    outcome = corrupt_sequences(source, tmp_path / "dst", make_sequence_recipe(["p:scale"], crop=20))
    assert outcome.written == 3 * 31
    assert [failure.name for failure in outcome.failures] == ["class0/empty.jpg", "class1/flat.png"]
    assert "a crop of 20×20 out of images of 12×40 pixels" in outcome.failures[1].reason


def test_refusals(tmp_path: Path) -> None:
    source = make_tree(tmp_path / "src", count=1)
    Image.new("RGB", (20, 20)).save(source / "class0" / "0.jpg")
    with pytest.raises(InputError, match=r"class0/0.jpg and class0/0.png would share the folder class0/0"):
        corrupt_sequences(source, tmp_path / "dst", make_sequence_recipe(["p:tilt"]))
    with pytest.raises(InputError, match="lie inside each other"):
        corrupt_sequences(source, source / "dst", make_sequence_recipe(["p:tilt"]))
    for bad, message in (
        ({"names": ["p:tild"]}, "did you mean p:tilt"),
        ({"names": []}, "expected at least one name"),
        ({"difficulty": 0}, "expected 1, 2 or 3"),
        ({"preset": "small"}, "expected one of imagenet, inception, imagenet64, cifar"),
        ({"file_format": "gif"}, "expected jpeg, jpeg:95"),
        ({"resize": 30, "crop": 40}, "expected a crop of at most 30"),
        ({"resize": 30, "crop": Square(40)}, "a square together with resize"),
        ({"crop": Square(4)}, "expected at least 8×8"),
    ):
        with pytest.raises(InputError, match=message):
            make_sequence_recipe(**bad)  # type: ignore[arg-type]
    assert len(make_sequence_recipe().sequences) == 15
