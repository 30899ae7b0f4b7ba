"""Materialised pictures: layout, equality with the library call, resume, refusals, and independence of the jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

import blemish.core.errors
from blemish.core.errors import InputError, StorageError
from blemish.core.files import STAGING
from blemish.core.folders import held_folder
from blemish.corruptions.catalog import catalog
from blemish.corruptions.transform import corrupt
from blemish.data.pictures import picture_id, read_picture, resize_and_crop
from blemish.export import corrupt_picture, corrupt_tree, make_recipe
from frost_files import digest, draw_pictures
from stored_sets import contents, noise
from until import until

NAMES = ["gaussian_noise", "fog", "contrast"]


def make_tree(root: Path, count: int = 4, side: int = 24) -> Path:
    for index in range(count):
        path = root / f"class{index % 2}" / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(side, side + 4, 3, seed=index)).save(path)
    return root


def run_cli(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "blemish", *map(str, arguments)]


def environment() -> dict[str, str]:
    source = str(Path(blemish.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}


class TestTrees:
    def test_layout_and_pixels(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src")
        Image.fromarray(noise(30, 40)).save(source / "class0" / "gray.JPEG")
        outcome = corrupt_tree(source, tmp_path / "dst", make_recipe(NAMES, [1, 2.5], seed=3, file_format="png"))
        assert (outcome.written, outcome.skipped, outcome.failures) == (5 * 3 * 2, 0, [])
        assert outcome.presets == {"cifar": 5}
        made = set(contents(tmp_path / "dst"))
        names = ["class0/0.png", "class0/2.png", "class0/gray.png", "class1/1.png", "class1/3.png"]
        assert made == {
            "blemish.json",
            "blemish-files.jsonl",
            *(f"{c}/{s}/{n}" for c in NAMES for s in ("1", "2.5") for n in names),
        }
        for name, stored in (("class1/3.png", "class1/3.png"), ("class0/gray.JPEG", "class0/gray.png")):
            expected = corrupt(read_picture(source / name), "fog", severity=2.5, seed=3, ids=picture_id(name))
            result = read_picture(tmp_path / "dst" / "fog" / "2.5" / stored)
            assert result.mode == expected.mode
            assert result.tobytes() == expected.tobytes()

    def test_jpeg_85_keeps_fitting_names(self, tmp_path: Path) -> None:
        source = tmp_path / "src"
        source.mkdir()
        Image.fromarray(noise(40, 40, 3)).save(source / "ILSVRC_1.JPEG")
        corrupt_tree(source, tmp_path / "dst", make_recipe(["contrast"], [2]))
        path = tmp_path / "dst" / "contrast" / "2" / "ILSVRC_1.JPEG"
        picture = read_picture(source / "ILSVRC_1.JPEG")
        reference = tmp_path / "reference.jpg"
        corrupt(picture, "contrast", severity=2, ids=picture_id("ILSVRC_1.JPEG")).save(reference, quality=85)
        with Image.open(path) as stored, Image.open(reference) as wanted:
            assert stored.format == "JPEG"
            assert stored.tobytes() == wanted.tobytes()

    def test_resize_and_crop(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=1, side=50)
        corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [1], file_format="png", resize=36, crop=32))
        clean = resize_and_crop(read_picture(source / "class0" / "0.png"), resize=36, crop=32)
        expected = corrupt(clean, "fog", severity=1, ids=picture_id("class0/0.png"))
        result = read_picture(tmp_path / "dst" / "fog" / "1" / "class0" / "0.png")
        assert result.size == (32, 32)
        assert result.tobytes() == expected.tobytes()

    @pytest.mark.parametrize("file_format", ["jpeg", "png"])
    def test_orientation_travels_along(self, tmp_path: Path, file_format: str) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        (tmp_path / "src").mkdir()
        Image.fromarray(noise(24, 32, 3)).save(tmp_path / "src" / "x.jpg", exif=exif)
        corrupt_tree(tmp_path / "src", tmp_path / "dst", make_recipe(["fog"], [1], file_format=file_format))
        (path,) = (tmp_path / "dst" / "fog").rglob("*.*")
        with Image.open(path) as picture:
            assert picture.size == (32, 24)
            assert picture.getexif()[0x0112] == 6

    def test_broken_pictures_are_reported_and_the_rest_done(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src")
        whole = (source / "class0" / "0.png").read_bytes()
        (source / "class1" / "cut.png").write_bytes(whole[: len(whole) // 2])
        (source / "class0" / "empty.jpg").touch()
        Image.new("RGB", (30, 5)).save(source / "class0" / "flat.png")
        outcome = corrupt_tree(source, tmp_path / "dst", make_recipe(NAMES, [1, 2]))
        assert [failure.name for failure in outcome.failures] == [
            "class0/empty.jpg",
            "class0/flat.png",
            "class1/cut.png",
        ]
        assert "30×5 pixels" in outcome.failures[1].reason
        assert "truncated" in outcome.failures[2].reason
        assert outcome.written == 4 * 6

    def test_progress(self, tmp_path: Path) -> None:
        seen: list[tuple[int, int]] = []
        source = make_tree(tmp_path / "src")
        (source / "bad.png").touch()
        recipe = make_recipe(NAMES, [1, 2])
        corrupt_tree(source, tmp_path / "dst", recipe, progress=lambda done, total: seen.append((done, total)))
        assert seen == [(done, 30) for done in (6, 12, 18, 24, 30)]

    def test_finished_files_are_skipped(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src")
        recipe = make_recipe(NAMES, [1, 2])
        corrupt_tree(source, tmp_path / "dst", recipe)
        before = contents(tmp_path / "dst")
        (tmp_path / "dst" / "fog" / "2" / "class0" / "0.jpg").unlink()
        kept = tmp_path / "dst" / "fog" / "1" / "class0" / "0.jpg"
        stamp = kept.stat().st_mtime_ns
        outcome = corrupt_tree(source, tmp_path / "dst", recipe)
        assert (outcome.written, outcome.skipped) == (1, 23)
        assert contents(tmp_path / "dst") == before
        assert kept.stat().st_mtime_ns == stamp

    def test_more_corruptions_and_severities_may_be_added(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=1)
        corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3]))
        corrupt_tree(source, tmp_path / "dst", make_recipe(["contrast"], [1]))
        entries = json.loads((tmp_path / "dst" / "blemish.json").read_text())["protocol"]
        assert set(entries["corruptions"]) == {"fog", "contrast"}
        assert entries["severities"] == [1, 3]

    def test_pictures_of_another_folder_are_not_taken_for_these(self, tmp_path: Path) -> None:
        corrupt_tree(make_tree(tmp_path / "one", count=1), tmp_path / "dst", make_recipe(["contrast"], [1]))
        with pytest.raises(InputError, match=r"source was \"one \(.*\)\", now \"two"):
            corrupt_tree(make_tree(tmp_path / "two", count=1), tmp_path / "dst", make_recipe(["contrast"], [1]))

    def test_manifest(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=1, side=40)
        mine = catalog.with_frost(draw_pictures(tmp_path / "ice"))
        recipe = make_recipe(["frost"], [1], seed=5, resize=36, crop=32, catalog=mine)
        corrupt_tree(source, tmp_path / "dst", recipe)
        entries = json.loads((tmp_path / "dst" / "blemish.json").read_text())
        assert set(entries["made_with"]) == {"blemish", "torch", "numpy", "pillow"}
        frost = entries["protocol"].pop("corruptions")["frost"]
        assert frost["version"] == catalog["frost"].version
        assert frost["textures"] == f"custom-{digest(tmp_path / 'ice')}"
        assert entries["protocol"].pop("source").startswith("src (")
        assert entries["protocol"] == {
            "layout": "tree",
            "seed": 5,
            "preset": "nearest to the shorter side",
            "format": "jpeg",
            "resize": 36,
            "crop": 32,
            "severities": [1],
        }

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seed": 1}, "seed was 0, now 1"),
            ({"file_format": "png"}, 'format was "jpeg", now "png"'),
            ({"preset": "cifar"}, 'preset was "nearest to the shorter side", now "cifar"'),
            ({"resize": 16}, "resize was not set, now 16"),
        ],
    )
    def test_another_protocol_is_refused(self, tmp_path: Path, change: dict[str, object], message: str) -> None:
        source = make_tree(tmp_path / "src", count=1)
        corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3]))
        before = contents(tmp_path / "dst")
        with pytest.raises(InputError, match=message):
            corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3], **change))  # type: ignore[arg-type]
        assert contents(tmp_path / "dst") == before

    def test_another_version_is_refused(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=1)
        recipe = make_recipe(["fog"], [3])
        corrupt_tree(source, tmp_path / "dst", recipe)
        manifest = tmp_path / "dst" / "blemish.json"
        manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 0'))
        with pytest.raises(InputError, match=r"fog\.version was 0, now 1"):
            corrupt_tree(source, tmp_path / "dst", recipe)

    def test_destination_refusals(self, tmp_path: Path) -> None:
        source, recipe = make_tree(tmp_path / "src", count=2), make_recipe(["fog"], [3])
        for inside in (source, source / "out", tmp_path):
            with pytest.raises(InputError, match="inside each other"):
                corrupt_tree(source, inside, recipe)
        (tmp_path / "file").touch()
        for target in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(InputError, match="is a file; expected a folder"):
                corrupt_tree(source, target, recipe)
        (tmp_path / "foreign" / "fog").mkdir(parents=True)
        with pytest.raises(InputError, match=r"no blemish\.json says how it was made"):
            corrupt_tree(source, tmp_path / "foreign", recipe)
        (tmp_path / "damaged").mkdir()
        (tmp_path / "damaged" / "blemish.json").write_text("{")
        with pytest.raises(InputError, match="not a readable manifest"):
            corrupt_tree(source, tmp_path / "damaged", recipe)
        with pytest.raises(InputError, match="0 jobs"):
            corrupt_tree(source, tmp_path / "dst", recipe, jobs=0)
        assert not (tmp_path / "dst").exists()

    def test_read_only_destination(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        source = make_tree(tmp_path / "src", count=1)
        monkeypatch.setattr(os, "access", lambda *_: False)  # permissions do not bind root
        with pytest.raises(StorageError, match="no permission"):
            corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3]))

    def test_names_that_would_collide(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=1)
        Image.new("RGB", (24, 24)).save(source / "class0" / "0.bmp")
        with pytest.raises(InputError, match=r"0\.bmp and class0/0\.png would both be stored as class0/0\.jpg"):
            corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3]))

    def test_a_second_run_at_the_same_time_is_refused(self, tmp_path: Path) -> None:
        pytest.importorskip("fcntl")
        source = make_tree(tmp_path / "src", count=1)
        with (
            held_folder(tmp_path / "dst"),
            pytest.raises(StorageError, match="another run is writing"),
        ):
            corrupt_tree(source, tmp_path / "dst", make_recipe(["fog"], [3]))

    def test_write_errors_stop_the_run(self, tmp_path: Path) -> None:
        source = make_tree(tmp_path / "src", count=2)
        (tmp_path / "dst").mkdir()
        recipe = make_recipe(["contrast", "fog"], [3])
        corrupt_tree(source, tmp_path / "dst", make_recipe(["contrast"], [3]))
        (tmp_path / "dst" / "fog").touch()  # a file where a folder must go
        with pytest.raises(StorageError, match=r"cannot write .*fog"):
            corrupt_tree(source, tmp_path / "dst", recipe)
        assert not (tmp_path / "dst" / STAGING).exists()


class TestInterruption:
    def test_killed_and_resumed_equals_uninterrupted(self, tmp_path: Path) -> None:
        """Kill a real run with two workers, continue it with two, and compare with one process that was left alone."""
        source, target = make_tree(tmp_path / "src", count=40, side=64), tmp_path / "dst"
        settings = ["-c", ",".join(NAMES), "-j", "2"]
        process = subprocess.Popen(
            run_cli("corrupt", source, "-o", target, *settings), env=environment(), stdout=subprocess.DEVNULL
        )
        until(lambda: len([*target.glob("*/*/*/*.jpg")]) >= 40, process)
        process.kill()
        process.wait()
        time.sleep(0.3)  # the workers notice
        survivors = sorted(target.glob("*/*/*/*.jpg"))
        assert 40 <= len(survivors) < 40 * 15
        for path in survivors:
            read_picture(path)
        recipe = make_recipe(NAMES)
        outcome = corrupt_tree(source, target, recipe, jobs=2)
        # Those of the pictures that were being worked on are made again, because no line of the manifest knows them.
        assert len(survivors) - 2 * 15 <= outcome.skipped <= len(survivors)
        assert outcome.written == 40 * 15 - outcome.skipped
        corrupt_tree(source, tmp_path / "whole", recipe, jobs=1)
        assert contents(target) == contents(tmp_path / "whole")

    @pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to send")
    @pytest.mark.parametrize(("number", "jobs"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
    def test_ctrl_c_and_schedulers_are_told_how_to_resume(self, tmp_path: Path, number: int, jobs: int) -> None:
        source, target = make_tree(tmp_path / "src", count=200, side=64), tmp_path / "dst"
        command = run_cli("corrupt", source, "-o", target, "-c", "gaussian_noise,fog", "-j", jobs)
        process = subprocess.Popen(
            command,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background of a shell is born deaf to Ctrl-C, and so would be its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        until(lambda: [*target.glob("*/*/*/*.jpg")], process)
        process.send_signal(number)
        _, errors = process.communicate()
        assert process.returncode == 130
        assert "Run the same command again to continue" in errors
        assert "Traceback" not in errors
        assert not (target / STAGING).exists()
        for path in target.glob("*/*/*/*.jpg"):
            read_picture(path)


class TestOnePicture:
    def test_one_file(self, tmp_path: Path) -> None:
        Image.fromarray(noise(24, 32, 3)).save(tmp_path / "cat.png")
        recipe = make_recipe(["fog"], [3], seed=2)
        assert corrupt_picture(tmp_path / "cat.png", tmp_path / "new" / "foggy.png", recipe).written == 1
        expected = corrupt(read_picture(tmp_path / "cat.png"), "fog", severity=3, seed=2, ids=picture_id("cat.png"))
        assert read_picture(tmp_path / "new" / "foggy.png").tobytes() == expected.tobytes()
        assert set(contents(tmp_path)) == {"cat.png", "new/foggy.png"}

    def test_folder(self, tmp_path: Path) -> None:
        Image.fromarray(noise(24, 32, 3)).save(tmp_path / "cat.png")
        recipe = make_recipe(NAMES, [1, 2], file_format="png")
        assert corrupt_picture(tmp_path / "cat.png", tmp_path, recipe).written == 6
        corrupt_picture(tmp_path / "cat.png", tmp_path / "foggy.png", make_recipe(["fog"], [2]))
        assert (tmp_path / "fog" / "2" / "cat.png").read_bytes() == (tmp_path / "foggy.png").read_bytes()
        (tmp_path / "v1.5").mkdir()
        assert corrupt_picture(tmp_path / "cat.png", tmp_path / "v1.5", recipe).written == 6

    def test_refusals(self, tmp_path: Path) -> None:
        path = tmp_path / "cat.png"
        Image.fromarray(noise(24, 32, 3)).save(path)
        with pytest.raises(InputError, match="6 corrupted copies for one file"):
            corrupt_picture(path, tmp_path / "x.jpg", make_recipe(NAMES, [1, 2]))
        with pytest.raises(InputError, match=r"cannot write \.bmp files"):
            corrupt_picture(path, tmp_path / "x.bmp", make_recipe(["fog"], [1]))
        with pytest.raises(InputError, match=r"x\.xyz: cannot write \.xyz files; .* one of .*, \.png, \.webp, or a"):
            corrupt_picture(path, tmp_path / "x.xyz", make_recipe(["fog"], [1]))
        assert not (tmp_path / "x.xyz").exists()
        with pytest.raises(InputError, match="is the source itself"):
            corrupt_picture(path, path, make_recipe(["fog"], [1]))
        Image.new("RGB", (24, 4)).save(path)
        with pytest.raises(InputError, match=r"cat\.png: 24×4 pixels"):
            corrupt_picture(path, tmp_path / "x", make_recipe(["fog"], [1]))
        path.write_bytes(b"")
        with pytest.raises(InputError, match=r"cat\.png: not a readable picture"):
            corrupt_picture(path, tmp_path / "x", make_recipe(["fog"], [1]))
        assert not (tmp_path / "x").exists()
