"""What is seen of a picture is what the library makes and what models say of it; the copied texts make it again."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import blemish
from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.corruptions.plugins import load_catalog
from blemish.data.demo import demo_picture
from blemish.data.images import picture_batch
from blemish.studies.explore.copies import Origin, texts_of
from blemish.studies.explore.film import film_walk, frames_of
from blemish.studies.explore.pictures import Picture, Shelf, pictures_at
from blemish.studies.explore.views import View, Witness
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.stream import corrupt_step
from blemish.studies.streams.walks import Walk, WalkStep
from command_line import invoke
from explorers import CATALOG

NOWHERE = Origin()

TURNED = 6  # EXIF: to be turned by a quarter for viewing


def photograph(path: Path, size: tuple[int, int] = (320, 280), **settings: object) -> Picture:
    demo_picture(64).resize(size).save(path, **settings)
    [picture], _ = pictures_at(path)
    return picture


@pytest.fixture
def picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Picture:
    monkeypatch.chdir(tmp_path)
    return photograph(Path("a photo.png"))


def levels(image: Image.Image) -> np.ndarray:
    return np.asarray(image)


@pytest.mark.parametrize("condition", ["clean", "fog@2.55", "gaussian_noise@1.5+contrast@2"])
def test_the_python_that_is_copied_makes_the_same_pixels(picture: Picture, condition: str) -> None:
    view = View.of(condition, 5)
    exec(compile(texts_of(picture, view, NOWHERE)["python"], "copied", "exec"), {})
    [made] = Path().glob("*-*.png")
    assert np.array_equal(levels(Image.open(made)), levels(view.image(picture)))
    assert (condition == "clean") == np.array_equal(levels(view.image(picture)), levels(picture.image))


def test_python_for_pictures_that_are_turned_small_or_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exif = Image.Exif()
    exif[0x0112] = TURNED
    turned = photograph(Path("turned.jpg"), exif=exif)
    assert turned.turned
    small = photograph(Path("small.png"), (40, 32))
    assert (small.resize, small.crop, small.image.size) == (None, 32, (32, 32))
    view = View.of("gaussian_noise@3", 1)
    for picture in (turned, small, *pictures_at(None)[0]):
        exec(compile(texts_of(picture, view, NOWHERE)["python"], "copied", "exec"), {})
        made = Path(f"{picture.name.partition('.')[0]}-gaussian_noise@3.png")
        assert np.array_equal(levels(Image.open(made)), levels(view.image(picture))), picture.name


def test_the_command_that_is_copied_makes_the_same_pixels(picture: Picture) -> None:
    view = View.of("gaussian_noise@2.5", 5)
    corrupt, explore = texts_of(picture, view, NOWHERE)["command"].splitlines()
    code, _, errors = invoke(*shlex.split(corrupt)[1:])
    assert code == 0, errors
    assert np.array_equal(levels(Image.open("a_photo-gaussian_noise@2.5.png")), levels(view.image(picture)))
    words = shlex.split(explore)
    assert words[:3] == ["blemish", "explore", "a photo.png"]
    assert words[words.index("--condition") + 1] == "gaussian_noise@2.5"
    # A chain is no corruption that the command knows, so only the page is opened again.
    assert texts_of(picture, View.of("fog@1+contrast@2"), NOWHERE)["command"].startswith("blemish explore")


@pytest.mark.parametrize(("size", "side"), [((20, 26), 224), ((40, 60), 224), ((300, 260), 512), ((300, 260), 64)])
def test_the_command_that_opens_the_page_again_shows_the_same_pixels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], side: int
) -> None:
    """Pictures that are smaller than the page's squares were not resized, so they may not be with the copied side."""
    monkeypatch.chdir(tmp_path)
    demo_picture(64).resize(size).save("small.png")
    [picture], _ = pictures_at(Path("small.png"), side)
    words = shlex.split(texts_of(picture, View.of("contrast@2"), NOWHERE)["command"].splitlines()[-1])
    [again], _ = pictures_at(Path(words[2]), int(words[words.index("--side") + 1]))
    assert again.key == picture.key
    code, _, errors = invoke(*words[1:], "-c", "contrast", "--export", "page")
    assert code == 0, errors


@pytest.mark.parametrize("condition", ["contrast@2.5", "gaussian_noise@1.5+contrast@2"])
def test_the_benchmark_that_is_copied_is_run_on_the_same_pixels(picture: Picture, condition: str) -> None:
    view = View.of(condition, 5)
    path = Path("copied.toml")
    path.write_text(texts_of(picture, view, NOWHERE)["toml"], encoding="utf-8")
    benchmark = blemish.load_benchmark(path)
    assert [str(each) for each in benchmark.conditions] == ["clean", condition]
    assert (benchmark.protocol.seed, benchmark.protocol.resize, benchmark.protocol.crop) == (5, 256, 224)
    seen = []

    def forward(images: torch.Tensor) -> torch.Tensor:
        seen.append(images.clone())
        return torch.tensor([-1.0, 2.0]).expand(len(images), 2)

    for folder in ("set/0", "set/1"):
        Path(folder).mkdir(parents=True)
        Path(folder, picture.name).write_bytes(Path(picture.name).read_bytes())
    # In a folder of classes an image has the id of its class and name; here that of its name, as a single file has.
    source = replace(blemish.open_source("set"), ids=np.full(2, picture.id))
    blemish.evaluate(blemish.from_function(forward, name="noting"), source, benchmark, out="results")
    assert any(torch.equal(batch[0], view.pixels(picture)) for batch in seen)


@pytest.mark.parametrize("condition", ["mine:shaded@2", "fog@1+mine:shaded@2", "laion:stickers@3"])
def test_copies_name_where_corruptions_come_from(picture: Picture, condition: str) -> None:
    """A user's own corruption, and one made of files of the user's."""
    Path("tiles").mkdir()
    for number in range(3):
        Image.fromarray(np.random.default_rng(number).integers(0, 255, (90, 90, 3), np.uint8)).save(
            f"tiles/{number}.png"
        )
    catalog = load_catalog(["own_corruptions"]).with_tiles("tiles")
    view = View.of(condition, 5, catalog)
    texts = texts_of(picture, view, Origin(("own_corruptions",), None, Path("tiles")))
    exec(compile(texts["python"], "copied", "exec"), {})
    [made] = Path().glob("*-*.png")
    expected = levels(view.image(picture))
    assert np.array_equal(levels(Image.open(made)), expected)
    made.unlink()
    *corrupt, explore = texts["command"].splitlines()
    assert explore.endswith(" --plugin own_corruptions --tiles tiles")
    assert len(corrupt) == (0 if "+" in condition else 1)
    for line in corrupt:
        code, _, errors = invoke(*shlex.split(line)[1:])
        assert code == 0, errors
        [made] = Path().glob("*-*.png")
        assert np.array_equal(levels(Image.open(made)), expected)
    Path("copied.toml").write_text(texts["toml"], encoding="utf-8")
    assert str(blemish.load_benchmark("copied.toml", catalog=catalog).conditions[1]) == condition
    assert "--plugin own_corruptions --tiles tiles" in texts["toml"]


def test_there_is_no_benchmark_of_nothing(picture: Picture) -> None:
    assert texts_of(picture, View(CLEAN), NOWHERE)["toml"].startswith("#")


def test_answers_are_those_of_a_run(picture: Picture) -> None:
    """The numbers of the records that `evaluate` writes of the same pixels."""
    model = blemish.open_model("demo:plain")
    view = View.of("contrast@2", 3)
    said = Witness(model).told(picture, view)
    array = view.pixels(picture)[None]
    [share] = model(array)
    order = share.argsort(descending=True)[:5].tolist()
    assert [each["class"] for each in said["top"]] == order
    assert [each["confidence"] for each in said["top"]] == pytest.approx(share[order].tolist())
    clean = int(model(picture_batch(picture.image).contiguous()).argmax())
    assert said["clean"]["class"] == clean
    assert said["clean"]["confidence"] == pytest.approx(float(share[clean]))
    assert said["top"][0]["name"] == f"class {order[0]}"


def test_classes_have_names(picture: Picture) -> None:
    def thousand(images: torch.Tensor) -> torch.Tensor:
        return torch.eye(1000)[1].expand(len(images), 1000) * 9

    model = blemish.from_function(thousand, name="thousand")
    assert Witness(model).told(picture, View(CLEAN))["top"][0]["name"] == "goldfish"
    ten = Witness(blemish.open_model("demo:plain"), [f"digit {n}" for n in range(10)])
    assert ten.told(picture, View(CLEAN))["top"][0]["name"].startswith("digit ")


@pytest.mark.parametrize("text", ["p:tilt@1", "fog@1-3", "fog@1+contrast@1+fog@2", "natural:imagenet-a", "fog", "x@1"])
def test_conditions_that_are_no_view_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        View.of(text)


def test_pictures_of_a_folder(tmp_path: Path) -> None:
    for number in range(30):
        Image.new("L", (32, 32), number).save(tmp_path / f"{number:02}.png")
    pictures, note = pictures_at(tmp_path)
    assert len(pictures) <= 24
    assert "of the folder's 30 pictures" in note
    assert len({picture.key for picture in pictures}) == len(pictures)
    with pytest.raises(InputError, match="at least 8×8"):
        photograph(tmp_path / "thin.png", (400, 4))


def test_a_damaged_picture_of_a_folder_is_left_out_with_a_word(tmp_path: Path) -> None:
    for number in range(3):
        Image.new("L", (32, 32), number).save(tmp_path / f"{number}.png")
    (tmp_path / "1.png").write_bytes((tmp_path / "1.png").read_bytes()[:40])
    pictures, note = pictures_at(tmp_path)
    assert [picture.name for picture in pictures] == ["0.png", "2.png"]
    assert "2 of the folder's 3 pictures are shown; left out: " in note
    assert "left out: 1.png" in note
    assert str(tmp_path) not in note
    for number in (0, 2):
        (tmp_path / f"{number}.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"0\.png"):
        pictures_at(tmp_path)


def test_dropped_pictures_are_kept_until_there_are_too_many() -> None:
    shelf = Shelf([])
    keys = []
    for number in range(13):
        path = f"/somewhere/{number}.png"
        content = io.BytesIO()
        Image.new("RGB", (16 + number,) * 2).save(content, "PNG")
        key, picture = shelf.add(content.getvalue(), path)
        assert picture.path == picture.name == f"{number}.png"
        keys.append(key)
    assert shelf[keys[-1]].image.width == 28
    with pytest.raises(InputError, match="drop it onto the page again"):
        shelf[keys[0]]


def test_a_film_has_the_pixels_of_a_stream(picture: Picture, tmp_path: Path) -> None:
    step = WalkStep("gaussian_noise", 1.25, "contrast", 0.5, 10, 0.4, 0)
    walk = Walk((step, step._replace(second_severity=0.0)), WalkInfo(target=0.4))
    path = tmp_path / "walk.json"
    path.write_text(walk.to_json(), encoding="utf-8")
    read, note = film_walk(path)
    assert read is not None
    assert "walk.json" in note
    frames = frames_of(read)
    assert [frame["c"] for frame in frames] == ["gaussian_noise@1.25+contrast@0.5", "gaussian_noise@1.25"]
    assert frames[0]["accuracy"] == 0.4
    made = View.of(frames[0]["c"], 5).pixels(picture)
    batch = picture_batch(picture.image).contiguous()
    assert torch.equal(made, corrupt_step(batch, step, seed=5, ids=torch.tensor([picture.id]))[0])


def test_the_walk_without_a_calibration_holds_the_sum_of_severities() -> None:
    walk, note = film_walk(None, CATALOG)
    assert walk is not None
    assert "add up to 3" in note
    assert {step.first_severity + step.second_severity for step in walk.steps} == {3.0}
    assert max(a.jump_to(b) for a, b in zip(walk.steps, walk.steps[1:], strict=False)) == 0.25
    assert set(walk.corruptions) == {"fog", "contrast", "gaussian_noise"}
