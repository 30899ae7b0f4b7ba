"""Streams: a pure function of the position, however they are cut up; crops; shards."""

from __future__ import annotations

import io
import itertools
import math
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import DataLoader

import blemish
from blemish.core.errors import InputError, StorageError
from blemish.data.source import Source
from blemish.evaluation.executors import Processes
from blemish.studies.streams.images import ImageSet, crop_box, from_source, from_tensor, randomly_cropped
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.stream import Batch, Stream
from blemish.studies.streams.walks import Walk, WalkStep
from blemish.studies.streams.webdataset import MANIFEST, materialise
from stored_sets import contents


def tensor_set(count: int = 12) -> ImageSet:
    images = torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return from_tensor(images, np.arange(count) % 5)


STEPS = (
    WalkStep("contrast", 2.0, "gaussian_noise", 0.0, 20, 0.5, 0),
    WalkStep("contrast", 1.0, "gaussian_noise", 0.5, 20, 0.5, 0),
    WalkStep("contrast", 0.0, "gaussian_noise", 1.0, 20, 0.5, 0),
    WalkStep("gaussian_noise", 1.0, "contrast", 0.0, 20, 0.5, 1),
)
WALK = Walk(STEPS, WalkInfo(target=0.5), closed=True)
IMAGES = tensor_set()


def pixels(stream: Stream) -> torch.Tensor:
    return torch.cat([batch.images for batch in stream])


WHOLE = pixels(Stream(IMAGES, WALK, batch=len(WALK)))


class TestPurity:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 50), st.integers(0, 79))
    def test_batches_and_beginnings_do_not_matter(self, batch: int, start: int) -> None:
        stream = Stream(IMAGES, WALK, batch=batch, start=start)
        assert torch.equal(pixels(stream), WHOLE[start:])
        assert len(list(stream)) == len(stream)

    @pytest.mark.parametrize("shards", [2, 3, 5])
    def test_shards_share_the_batches(self, shards: int) -> None:
        streams = [Stream(IMAGES, WALK, batch=7, shard=i, shards=shards) for i in range(shards)]
        assert sum(len(stream) for stream in streams) == -(-80 // 7)
        found = sorted(itertools.chain(*streams), key=lambda batch: int(batch.positions[0]))
        assert torch.equal(torch.cat([batch.images for batch in found]), WHOLE)

    def test_workers_keep_the_order(self) -> None:
        loader = DataLoader(Stream(IMAGES, WALK, batch=9), batch_size=None, num_workers=2)
        assert torch.equal(torch.cat([batch.images for batch in loader]), WHOLE)

    def test_laps(self) -> None:
        """A closed walk repeats its corruptions, with other noise and another order of images."""
        endless = iter(Stream(IMAGES, WALK, batch=80, length=math.inf))
        first, second = next(endless), next(endless)
        assert torch.equal(first.images, WHOLE)
        assert torch.equal(first.steps, second.steps)
        assert not torch.equal(first.rows, second.rows)
        assert second.positions[0] == 80
        longer = Stream(IMAGES, WALK, batch=33, length=160)
        assert torch.equal(pixels(longer)[80:], second.images)
        with pytest.raises(TypeError, match="no length"):
            len(Stream(IMAGES, WALK, length=math.inf))


def test_what_is_shown() -> None:
    """Every step shows all images before one comes again; pixels are those of the two corruptions in a row."""
    batch = Stream(IMAGES, WALK, seed=3).at(0, 80)
    for step in range(4):
        rows = batch.rows[20 * step : 20 * step + 20]
        assert sorted(rows[:12].tolist()) == list(range(12))
        assert len(set(rows[12:].tolist())) == 8
    assert torch.equal(batch.labels, batch.rows % 5)
    assert batch.steps.tolist() == [i // 20 for i in range(80)]
    clean = IMAGES.load(batch.rows.numpy(), batch.positions.numpy(), 0)
    both = blemish.chain((blemish.catalog["contrast"], 1.0), (blemish.catalog["gaussian_noise"], 0.5))
    expected = both(clean[20:40], severity=5, seed=3, ids=batch.positions[20:40])
    assert torch.equal(batch.images[20:40], expected)
    alone = blemish.corrupt(clean[:20], "contrast", severity=2.0, seed=3, ids=range(20))
    assert torch.equal(batch.images[:20], alone)


def test_jpeg_at_the_end() -> None:
    plain, coded = (Stream(IMAGES, WALK, jpeg=jpeg).at(0, 2).images for jpeg in (False, True))
    buffer = io.BytesIO()
    Image.fromarray(plain[1].permute(1, 2, 0).numpy()).save(buffer, "JPEG", quality=85)
    assert np.array_equal(np.asarray(Image.open(buffer)), coded[1].permute(1, 2, 0).numpy())


def test_refusals() -> None:
    open_walk = Walk(STEPS, WalkInfo())
    with pytest.raises(InputError, match="open walk of 80"):
        Stream(IMAGES, open_walk, length=81)
    with pytest.raises(InputError, match="starts at image 90"):
        Stream(IMAGES, WALK, start=90)
    with pytest.raises(InputError, match="shard 2 of 2"):
        Stream(IMAGES, WALK, shard=2, shards=2)
    with pytest.raises(InputError, match="batches of 0"):
        Stream(IMAGES, WALK, batch=0)
    with pytest.raises(InputError, match=r"a stream of 1\.5 images"):
        Stream(IMAGES, WALK, length=1.5)
    with pytest.raises(InputError, match="expected uint8"):
        from_tensor(torch.zeros(2, 3, 16, 16), [0, 1])
    with pytest.raises(InputError, match="labels of shape"):
        from_tensor(torch.zeros(2, 3, 16, 16, dtype=torch.uint8), [0])


def picture_set(sizes: tuple[tuple[int, int], ...]) -> Source:
    rng = np.random.default_rng(0)
    pictures = [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in sizes]
    return Source(
        "photos",
        [f"n{i}/{i}.jpg" for i in range(len(sizes))],
        np.arange(len(sizes)),
        np.arange(len(sizes)),
        lambda i: pictures[i],
    )


class TestCrops:
    @settings(max_examples=200, deadline=None)
    @given(st.integers(8, 400), st.integers(8, 400), st.integers(0, 2**32))
    def test_boxes_lie_inside_and_have_the_asked_shape(self, width: int, height: int, seed: int) -> None:
        draw = np.random.default_rng(seed).uniform(size=(4, 10))
        left, top, right, bottom = crop_box(width, height, draw)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        w, h = right - left, bottom - top
        # Rounding to whole pixels moves the ratio a little; asked in whole numbers, which have no last bit.
        assert 3 * h - 4 <= 4 * w
        assert 3 * w <= 4 * h + 3

    def test_the_law_of_areas(self) -> None:
        """In a square a try of area A fits with probability min(1, −ln A / ln 4/3), A uniform in 0.08 … 1.

        The mean of those that fit is 0.3770 / 0.7890, by integration.
        """
        rng = np.random.default_rng(1)
        boxes = [crop_box(1000, 1000, rng.uniform(size=(4, 10))) for _ in range(4000)]
        areas = np.array([(r - x) * (b - y) for x, y, r, b in boxes]) / 1e6
        assert 0.08 <= areas.min() < 0.09
        assert areas.mean() == pytest.approx(0.4778, abs=0.012)

    def test_when_nothing_fits_the_centre_is_taken(self) -> None:
        """Ten tries at full area and a ratio of 4:3 do not fit into 100 × 400; torchvision then takes 100 × 133."""
        assert crop_box(100, 400, np.full((4, 10), 0.999)) == (0, 133, 100, 266)

    def test_positions_decide(self) -> None:
        source = picture_set(((40, 30), (30, 40)))
        images = from_source(source, random=24)
        rows = np.array([0, 1, 0])
        first = images.load(rows, np.array([5, 6, 7]), 0)
        assert first.shape == (3, 3, 24, 24)
        assert torch.equal(images.load(rows[1:], np.array([6, 7]), 0), first[1:])
        assert not torch.equal(first[0], first[2])
        mirrored = randomly_cropped([source.read(0)] * 64, 24, seed=0, positions=np.arange(64))
        assert len({picture.tobytes() for picture in mirrored}) == 64

    def test_centre_crops_and_refusals(self) -> None:
        source = picture_set(((40, 30), (30, 40)))
        assert from_source(source, resize=28, crop=24).load(np.arange(2), np.arange(2), 0).shape == (2, 3, 24, 24)
        with pytest.raises(InputError, match=r"n0/0\.jpg has 40×30 pixels and n1/1\.jpg 30×40"):
            from_source(source).load(np.arange(2), np.arange(2), 0)
        with pytest.raises(InputError, match="one or the other"):
            from_source(source, resize=28, random=24)


class TestShards:
    def members(self, path: Path) -> dict[str, bytes]:
        with tarfile.open(path) as archive:
            return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]

    def test_fields_and_pixels(self, tmp_path: Path) -> None:
        source = picture_set(((20, 16),) * 6)
        stream = Stream(from_source(source, random=16), WALK, batch=8, length=50, seed=2)
        outcome = materialise(stream, tmp_path / "out", shard_images=30)
        assert outcome.written == 50
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            "serial_00000.tar",
            "serial_00001.tar",
            MANIFEST,
        ]
        second = self.members(tmp_path / "out" / "serial_00001.tar")
        assert len(second) == 60
        batch = Stream(from_source(source, random=16), WALK, batch=8, length=50, seed=2, jpeg=True).at(30, 1)
        row = int(batch.rows[0])
        # The release's line: folder, file, both corruptions by its own short names, severities as Python's str.
        assert second["sample_0.info"].decode() == (
            f"++dir++n{row}++name++{row}.jpg++n1++contrast++s1++1.0++n2++gaussian_noise++s2++0.5"
        )
        assert second["sample_0.output.cls"] == str(row).encode()
        decoded = np.asarray(Image.open(io.BytesIO(second["sample_0.input.jpg"])))
        assert np.array_equal(decoded, batch.images[0].permute(1, 2, 0).numpy())

    def test_resumed_and_shared(self, tmp_path: Path) -> None:
        stream = Stream(IMAGES, WALK, batch=8)
        whole, parts = tmp_path / "whole", tmp_path / "parts"
        materialise(stream, whole, shard_images=20)
        assert materialise(stream, parts, shard_images=20, part=1, parts=2).written == 40
        assert not (parts / "serial_00000.tar").exists()
        for name in (".serial_00000.tar.0123456789abcdef.part", ".blemish-unfinished/0123456789abcdef.part"):
            (parts / name).parent.mkdir(exist_ok=True)
            (parts / name).write_bytes(b"left over by a killed run")
        resumed = materialise(stream, parts, shard_images=20)
        assert (resumed.written, resumed.skipped) == (40, 40)
        assert not list(parts.glob(".*"))
        for number in range(4):
            name = f"serial_0000{number}.tar"
            assert (whole / name).read_bytes() == (parts / name).read_bytes()

    def test_another_division_of_the_work_at_the_same_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both write the first shard: neither takes the other's file for one that a killed run left."""
        stream, parts, at = Stream(IMAGES, WALK, batch=8), tmp_path / "parts", Stream.at

        def in_the_middle(self: Stream, first: int, count: int) -> Batch:
            if first == 8:
                monkeypatch.setattr(Stream, "at", at)
                materialise(stream, parts, shard_images=20, part=0, parts=3)
            return at(self, first, count)

        monkeypatch.setattr(Stream, "at", in_the_middle)
        assert materialise(stream, parts, shard_images=20, part=0, parts=2).written == 40
        materialise(stream, parts, shard_images=20)
        materialise(stream, tmp_path / "whole", shard_images=20)
        assert contents(parts) == contents(tmp_path / "whole")

    @pytest.mark.parametrize("length", [0, 512, 10_240, 20_481])
    def test_shards_that_were_cut_off_are_made_again(self, tmp_path: Path, length: int) -> None:
        stream = Stream(IMAGES, WALK, batch=8)
        materialise(stream, tmp_path / "out", shard_images=40)
        before = contents(tmp_path / "out")
        os.truncate(tmp_path / "out" / "serial_00001.tar", length)
        outcome = materialise(stream, tmp_path / "out", shard_images=40)
        assert (outcome.written, outcome.skipped) == (40, 40)
        assert contents(tmp_path / "out") == before

    @pytest.mark.parametrize("executor", [None, Processes(2)], ids=["here", "processes"])
    def test_a_full_disk_ends_it(
        self, tmp_path: Path, small_disk: Path, executor: Processes | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not one shard after the other is made, only to find that there is no room for it."""
        begun: list[int] = []
        at = Stream.at
        monkeypatch.setattr(Stream, "at", lambda self, *where: (begun.append(where[0]), at(self, *where))[1])
        said = rf"cannot write {small_disk}/out/serial_.*: No space left on device \(the disk at {small_disk} has"
        with pytest.raises(StorageError, match=said):
            materialise(Stream(IMAGES, WALK, batch=8), small_disk / "out", shard_images=20, executor=executor)
        assert not [path for path in (small_disk / "out").rglob("*") if path.suffix == ".part" or path.is_dir()]
        if executor is None:
            assert max(begun) < 60
        for path in (small_disk / "out").glob("*.tar"):
            self.members(path)  # what is there is whole
        subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
        materialise(Stream(IMAGES, WALK, batch=8), small_disk / "out", shard_images=20, executor=executor)
        materialise(Stream(IMAGES, WALK, batch=8), tmp_path / "whole", shard_images=20)
        assert contents(small_disk / "out") == contents(tmp_path / "whole")

    def test_parts_leave_each_others_tracebacks_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stream, at = Stream(IMAGES, WALK, batch=8), Stream.at

        def broken(self: Stream, first: int, count: int) -> Batch:
            raise RuntimeError("broken")

        monkeypatch.setattr(Stream, "at", broken)
        with pytest.raises(InputError, match=r"tracebacks in .*failures-1-of-2/failures\.txt"):
            materialise(stream, tmp_path, shard_images=20, part=1, parts=2)
        monkeypatch.setattr(Stream, "at", at)
        materialise(stream, tmp_path, shard_images=20, part=0, parts=2)
        assert (tmp_path / "failures-1-of-2" / "failures.txt").exists()
        materialise(stream, tmp_path, shard_images=20, part=1, parts=2)
        assert not (tmp_path / "failures-1-of-2").exists()

    def test_refusals(self, tmp_path: Path) -> None:
        stream = Stream(IMAGES, WALK, batch=8)
        materialise(stream, tmp_path / "out", shard_images=40)
        with pytest.raises(InputError, match="another stream"):
            materialise(Stream(IMAGES, WALK, batch=8, seed=1), tmp_path / "out", shard_images=40)
        with pytest.raises(InputError, match=r"another stream \(shard_images was \d+, now \d+\); choose"):
            materialise(stream, tmp_path / "out", shard_images=30)
        with pytest.raises(InputError, match="infinite"):
            materialise(Stream(IMAGES, WALK, length=math.inf), tmp_path / "new")
        with pytest.raises(InputError, match="compressed twice"):
            materialise(Stream(IMAGES, WALK, jpeg=True), tmp_path / "new")
        with pytest.raises(InputError, match="part 2 of 2"):
            materialise(stream, tmp_path / "new", part=2, parts=2)
        (tmp_path / "foreign").mkdir()
        (tmp_path / "foreign" / "serial_00000.tar").write_bytes(b"")
        with pytest.raises(InputError, match="unknown origin"):
            materialise(stream, tmp_path / "foreign")
        assert not (tmp_path / "new").exists()
