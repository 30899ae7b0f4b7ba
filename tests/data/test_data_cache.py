"""Decoding once: memory, mapped files, reuse, damage, and fingerprints."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from blemish.core.errors import InputError, StorageError
from blemish.core.files import part_file
from blemish.data.array_source import array_source
from blemish.data.cache import Images, load
from blemish.data.folders import folder_source
from blemish.data.pictures import read_picture, resize_and_crop
from blemish.data.source import Source
from conftest import SHARED

SIZES = {"a/0.png": (30, 20), "a/1.png": (25, 25), "b/2.png": (30, 20), "b/3.png": (40, 22)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, (width, height) in SIZES.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)
    return tmp_path / "tree"


def same(first: Images, second: Images) -> bool:
    return first.fingerprint == second.fingerprint and all(
        np.array_equal(first.image(row), second.image(row)) for row in range(len(first))
    )


class TestImages:
    def test_images_of_any_size(self, root: Path) -> None:
        source = folder_source(root)
        images = load(source)
        assert images.by_shape() == [[0, 2], [1], [3]]
        for row, name in enumerate(images.names):
            levels = np.asarray(read_picture(root / name)).transpose(2, 0, 1)
            np.testing.assert_array_equal(images.image(row), levels)
        batch = images.batch([2, 0])
        assert batch.dtype == torch.uint8
        assert batch.shape == (2, 3, 20, 30)
        np.testing.assert_array_equal(batch[0], images.image(2))
        assert images.labels.tolist() == [0, 0, 1, 1]
        assert images.classes == ("a", "b")
        assert images.ids.tolist() == source.ids.tolist()

    def test_batches_are_copies(self, root: Path) -> None:
        images = load(folder_source(root))
        before = images.image(0).copy()
        images.batch([0]).zero_()
        np.testing.assert_array_equal(images.image(0), before)

    def test_batches_of_one_shape(self, root: Path) -> None:
        images = load(folder_source(root))
        with pytest.raises(InputError, match="different shapes"):
            images.batch([0, 1])
        with pytest.raises(InputError, match="no images"):
            images.batch([])

    def test_resize_and_crop(self, root: Path) -> None:
        images = load(folder_source(root), resize=18, crop=16)
        assert images.by_shape() == [[0, 1, 2, 3]]
        expected = resize_and_crop(read_picture(root / "b/3.png"), resize=18, crop=16)
        np.testing.assert_array_equal(images.image(3), np.asarray(expected).transpose(2, 0, 1))

    def test_gray_pictures_become_rgb(self, root: Path) -> None:
        Image.new("L", (30, 20), 77).save(root / "a" / "0.png")
        assert (load(folder_source(root)).image(0) == 77).all()
        assert load(folder_source(root)).image(0).shape == (3, 20, 30)

    def test_gray_sources_stay_gray(self) -> None:
        source = Source("x", ["0"], np.arange(1), np.arange(1), lambda _: Image.new("L", (9, 8), 3), channels=1)
        assert load(source).batch([0]).shape == (1, 1, 8, 9)
        with pytest.raises(InputError, match="x, 0: a picture of mode RGB among gray ones"):
            load(replace(source, read=lambda _: Image.new("RGB", (9, 8))))

    @settings(max_examples=20, deadline=None)
    @given(rows=st.lists(st.integers(0, 3), min_size=1, unique=True), workers=st.integers(1, 4))
    def test_taking_before_and_after_is_the_same(self, rows: list[int], workers: int) -> None:
        pictures = [Image.new("RGB", (8 + i, 9), (i, i, i)) for i in range(4)]
        source = Source("x", [str(i) for i in range(4)], np.arange(4), np.arange(4), lambda i: pictures[i])
        assert same(load(source).take(rows), load(source.take(rows), workers=workers))


class TestFingerprints:
    def changed(self, source: Source, **fields: Any) -> str:
        return load(replace(source, **fields)).fingerprint

    def test_everything_counts(self, root: Path) -> None:
        source = folder_source(root)
        prints = {
            load(source).fingerprint,
            self.changed(source, names=[*source.names[:3], "other"]),
            self.changed(source, names=["a/0.pnga", "/1.png", *source.names[2:]]),
            self.changed(source, ids=source.ids + 1),
            self.changed(source, labels=source.labels[::-1].copy()),
            self.changed(source, read=lambda i: source.read((i + 1) % 4)),
            self.changed(source, read=lambda i: source.read(i).transpose(Image.Transpose.ROTATE_180)),
            load(source, crop=16).fingerprint,
        }
        assert len(prints) == 8
        assert all(len(mark) == 32 and int(mark, 16) >= 0 for mark in prints)

    def test_where_the_pixels_are_does_not(self, root: Path) -> None:
        source = folder_source(root)
        assert load(source).fingerprint == load(source, limit=0, workers=1).fingerprint
        assert load(source).fingerprint == self.changed(source, name="other", stamp=None, note="x")


class TestBlocks:
    """Images of an array file, which no picture is made of, have the pixels that pictures would have."""

    @pytest.fixture(params=[(5, 9, 11, 3), (5, 9, 11), (5, 9, 11, 1), (5, 10, 10, 3)])
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> Source:
        levels = np.random.default_rng(0).integers(0, 256, request.param, dtype=np.uint8)
        np.save(tmp_path / "images.npy", levels)
        np.save(tmp_path / "labels.npy", np.arange(5))
        return array_source(tmp_path / "images.npy", tmp_path / "labels.npy")

    @pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [2, 3], [4, 0, 2], [3]])
    @pytest.mark.parametrize("limit", [None, 0])
    @pytest.mark.parametrize("size", [{}, {"resize": 9}, {"resize": 8}, {"crop": 9}, {"resize": 10, "crop": 10}])
    def test_as_pictures(self, source: Source, rows: list[int], limit: int | None, size: dict[str, int]) -> None:
        chosen = source.take(rows).take(range(len(rows)))
        pictures = replace(chosen, read=lambda i: source.read(rows[i]))
        assert same(load(chosen, limit=limit, **size), load(pictures, workers=1, **size))

    def test_another_reader_counts(self, source: Source) -> None:
        other = replace(source, read=lambda i: source.read((i + 1) % 5))
        assert load(source).fingerprint != load(other).fingerprint

    @pytest.mark.parametrize("limit", [None, 0])
    def test_many_at_a_time(self, tmp_path: Path, limit: int | None) -> None:
        levels = np.random.default_rng(0).integers(0, 256, (18, 8, 9, 3), dtype=np.uint8)
        np.savez(tmp_path / "images.npz", images=levels, labels=np.arange(18))
        told: list[int] = []
        images = load(
            array_source(tmp_path / "images.npz"),
            workers=1,
            limit=limit,
            progress=lambda done, _total, _what: told.append(done),
        )
        np.testing.assert_array_equal(images.batch(range(18)), levels.transpose(0, 3, 1, 2))
        assert told == [4, 8, 12, 16, 18]


class TestFiles:
    def test_small_sets_stay_in_memory(self, root: Path, tmp_path: Path) -> None:
        images = load(folder_source(root), folder=tmp_path / "cache")
        assert not isinstance(images.pixels, np.memmap)
        assert not (tmp_path / "cache").exists()

    def test_what_is_kept_for_others_goes_to_a_file_sooner(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever names a folder wants to find the images there; else memory is used where there is enough."""
        monkeypatch.setattr("blemish.data.cache._LEAST_LIMIT", 1000)
        monkeypatch.setattr("blemish.data.cache.available_memory", lambda: 10**9)
        assert isinstance(load(folder_source(root), folder=tmp_path / "cache").pixels, np.memmap)
        assert not isinstance(load(folder_source(root)).pixels, np.memmap)
        monkeypatch.setattr("blemish.data.cache.available_memory", lambda: 3000)
        assert isinstance(load(folder_source(root)).pixels, np.memmap)

    @pytest.mark.parametrize("limit", [0, 30 * 20 * 3, 30 * 20 * 3 + 1])
    def test_large_sets_are_mapped_and_reused(self, root: Path, tmp_path: Path, limit: int) -> None:
        source = folder_source(root)
        images = load(source, folder=tmp_path / "cache", limit=limit)
        assert isinstance(images.pixels, np.memmap)
        assert same(images, load(source))
        (file,) = (tmp_path / "cache").iterdir()
        assert file.suffix == ".pixels"

        def fail(i: int) -> Image.Image:
            raise AssertionError("decoded again")

        told: list[tuple[int, int]] = []
        again = load(
            replace(source, read=fail),
            folder=tmp_path / "cache",
            progress=lambda done, total, _: told.append((done, total)),
        )
        assert same(again, images)
        assert told == [(4, 4)]

    def test_other_sizes_and_files_are_other_sets(self, root: Path, tmp_path: Path) -> None:
        cache = tmp_path / "cache"
        source = folder_source(root)
        load(source, folder=cache, limit=0)
        load(source, folder=cache, limit=0, crop=16)
        load(source.take([0, 1]), folder=cache, limit=0)
        assert len(list(cache.iterdir())) == 3
        changed = Image.new("RGB", (30, 20))
        changed.save(root / "a" / "0.png")
        os.utime(root / "a" / "0.png", ns=(1, 1))
        assert (load(folder_source(root), folder=cache, limit=0).image(0) == 0).all()

    @pytest.mark.parametrize("place", [0, 100, -1, -20, -30, -60, -70])
    def test_damage_is_found_and_repaired(self, root: Path, tmp_path: Path, place: int) -> None:
        source = folder_source(root)
        images = load(source, folder=tmp_path / "cache", limit=0)
        expected = images.fingerprint
        del images
        (file,) = (tmp_path / "cache").iterdir()
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        file.write_bytes(content)
        assert same(load(source, folder=tmp_path / "cache", limit=0), load(source))
        content[place] ^= 1
        assert file.read_bytes() == content
        assert load(source, folder=tmp_path / "cache").fingerprint == expected

    @pytest.mark.parametrize("length", [0, 10, 100, 5000])
    def test_files_that_are_cut_off(self, root: Path, tmp_path: Path, length: int) -> None:
        source = folder_source(root)
        load(source, folder=tmp_path / "cache", limit=0)
        (file,) = (tmp_path / "cache").iterdir()
        file.write_bytes(file.read_bytes()[:length])
        assert same(load(source, folder=tmp_path / "cache", limit=0), load(source))

    def test_sources_without_stamps_leave_nothing(self, root: Path, tmp_path: Path) -> None:
        source = replace(folder_source(root), stamp=None)
        images = load(source, folder=tmp_path / "cache", limit=0)
        assert isinstance(images.pixels, np.memmap)
        assert list((tmp_path / "cache").iterdir()) == []
        assert same(images, load(source))

    def test_errors_leave_nothing_half_written(self, root: Path, tmp_path: Path) -> None:
        (root / "b" / "3.png").write_bytes(b"nonsense")
        with pytest.raises(InputError, match=r"b/3\.png: not a readable picture"):
            load(folder_source(root), folder=tmp_path / "cache", limit=0)
        assert list((tmp_path / "cache").iterdir()) == []

    def test_left_overs_go_when_nobody_writes_them(self, root: Path, tmp_path: Path) -> None:
        source = folder_source(root)
        cache = tmp_path / "cache"
        load(source, folder=cache, limit=0)
        (file,) = cache.iterdir()
        (cache / f".{file.name}.{16 * 'a'}.part").touch()
        file.unlink()
        with part_file(file) as at_work:
            load(source, folder=cache, limit=0)
            assert sorted(cache.iterdir()) == sorted([file, at_work.path])

    def test_a_folder_that_cannot_be_written(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StorageError, match=r"cannot write decoded images to .*file"):
            load(folder_source(root), folder=tmp_path / "file", limit=0)


def test_progress_and_workers(root: Path) -> None:
    told: list[tuple[int, int]] = []
    load(folder_source(root), workers=2, progress=lambda done, total, _: told.append((done, total)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(InputError, match="0 workers"):
        load(folder_source(root), workers=0)


def test_pictures_too_small_are_named(root: Path) -> None:
    with pytest.raises(InputError, match=r"tree, a/0\.png: 30×20 pixels are too few for a centre crop of 21×21"):
        load(folder_source(root), crop=21)


def test_real_photographs() -> None:
    folder = SHARED / "data" / "natural1000"
    if not folder.is_dir():
        pytest.skip("the photographs (../shared/data/natural1000) are not beside this checkout")
    images = load(folder_source(folder).take(range(20)))
    assert images.by_shape() == [[*range(20)]]
    assert images.batch([0]).shape == (1, 3, 224, 224)
