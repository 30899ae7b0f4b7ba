"""What is calibrated is what is shown: random crops and JPEG in both, and a word or a refusal where they differ."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import blemish
from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source
from blemish.models.base import Classifier, Preprocessing
from blemish.studies.streams.calibration import Bench
from blemish.studies.streams.images import (
    from_source,
    image_list,
    preparation,
    prepared_source,
    randomly_cropped,
)
from blemish.studies.streams.info import CalibrationInfo, WalkInfo
from blemish.studies.streams.protocols import protocol_differences
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep

SIDE = 24
CROPPED = "mirrored and cropped at random to 24"
STEPS = (WalkStep("contrast", 2.0, "gaussian_noise", 0.0, 20, 0.5, 0),)


@pytest.fixture
def pictures(tmp_path: Path) -> Source:
    """Forty photographs of 48 × 40 pixels in four class folders: bright patches somewhere."""
    rng = np.random.default_rng(0)
    for number in range(40):
        levels = rng.integers(0, 120, (40, 48, 3), dtype=np.uint8)
        levels[10:26, 8 * (number % 4) : 8 * (number % 4) + 20] += 100
        folder = tmp_path / "val" / f"class{number % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(levels).save(folder / f"{number}.png")
    return open_source(str(tmp_path / "val"))


def columns(images: Tensor) -> Tensor:
    """Which quarter of the columns is the brightest."""
    return images.float().mean((1, 2)).unflatten(1, (4, -1)).mean(2)


MODEL = Classifier("columns", "function", columns, "w", preprocessing=Preprocessing(levels=True))


def jpeg(levels: Tensor) -> Tensor:
    """By Pillow, image by image."""
    result = []
    for image in levels:
        buffer = io.BytesIO()
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(buffer, "JPEG", quality=85)
        result.append(torch.from_numpy(np.array(Image.open(buffer))).permute(2, 0, 1))
    return torch.stack(result)


def tensors(shown: list[Image.Image]) -> Tensor:
    return torch.from_numpy(np.stack([np.asarray(picture) for picture in shown])).permute(0, 3, 1, 2).contiguous()


def test_a_calibration_with_random_crops_and_jpeg(pictures: Source) -> None:
    """Cells worked image by image: cropped by the id, corrupted, stored by Pillow; the clean cell is stored, too."""
    grid = (0.0, 2.0, 5.0)
    images = load(prepared_source(pictures, SIDE, seed=3))
    bench = Bench(MODEL, images, seed=3, grid=grid, jpeg=True, preparation=preparation(None, None, SIDE))
    found = bench.surface("contrast", "gaussian_noise")
    shown = [
        randomly_cropped([pictures.read(row)], SIDE, seed=3, positions=pictures.ids[row : row + 1])[0]
        for row in range(len(pictures))
    ]
    clean, ids = tensors(shown), torch.from_numpy(pictures.ids)
    for a, first in enumerate(grid):
        for b, second in enumerate(grid):
            made = clean
            for name, severity in (("contrast", first), ("gaussian_noise", second)):
                if severity:
                    made = blemish.corrupt(made, name, severity=severity, seed=3, ids=ids)
            right = columns(jpeg(made)).argmax(1).numpy() == pictures.labels
            assert found.right((a, b)).tolist() == right.tolist(), (a, b)
    said = bench.describe()
    assert said.preparation == CROPPED
    assert said.jpeg is True
    assert said.image_list == image_list(pictures.names)


def test_crops_are_the_same_in_other_processes(pictures: Source) -> None:
    prepared = prepared_source(pictures, SIDE, seed=1)
    again = pickle.loads(pickle.dumps(prepared.take([5, 7])))
    assert np.array_equal(np.asarray(again.read(1)), np.asarray(prepared.read(7)))
    other = prepared_source(pictures, SIDE, seed=2)
    assert not np.array_equal(np.asarray(other.read(7)), np.asarray(prepared.read(7)))
    assert prepared.stamp is not None
    assert other.stamp is not None
    assert prepared.stamp(7) != other.stamp(7)  # or caches of pixels would be taken for each other's


def test_the_list_of_images_is_known_whatever_their_order() -> None:
    assert image_list(["b", "a"]) == image_list(["a", "b"])
    assert image_list(["a", "b"]) != image_list(["a", "c"])
    assert image_list(["a\nb"]) != image_list(["a", "b"])


class TestDifferences:
    def stream(self, source: Source, calibration: CalibrationInfo | None, **changes: Any) -> Stream:
        settings = {"random": SIDE, "jpeg": True, "preset": None, "subset": None, **changes}
        walk = Walk(STEPS, WalkInfo(calibration=calibration, subset=settings["subset"]))
        images = from_source(source, random=settings["random"], resize=changes.get("resize"))
        return Stream(images, walk, jpeg=settings["jpeg"], preset=settings["preset"])

    def calibration(self, source: Source) -> CalibrationInfo:
        bench = Bench(
            MODEL, load(prepared_source(source, SIDE, seed=0)), jpeg=True, preparation=preparation(None, None, SIDE)
        )
        return bench.describe()

    def test_nothing_differs(self, pictures: Source) -> None:
        known = self.calibration(pictures)
        assert protocol_differences(self.stream(pictures, known)) == []
        # Images of 24 pixels have the preset of CIFAR anyway; and a stream may show more images than were calibrated.
        assert protocol_differences(self.stream(pictures, known, preset="cifar")) == []
        assert protocol_differences(self.stream(pictures.take(range(30)), known)) == []
        assert protocol_differences(self.stream(pictures, None)) == []

    @pytest.mark.parametrize(
        ("changes", "lines"),
        [
            ({"jpeg": False}, ["jpeg was true, now false"]),
            ({"preset": "imagenet"}, ['preset was "cifar", now "imagenet"']),
            (
                {"random": 32},
                [
                    f'preparation was "{CROPPED}", now "{CROPPED.replace("24", "32")}"',
                    "shape was [3, 24, 24], now [3, 32, 32]",
                ],
            ),
            (
                {"random": None, "resize": SIDE},
                [
                    f'preparation was "{CROPPED}", now "resize 24, crop None"',
                    "shape was [3, 24, 24], now [3, 24, 28]",
                ],
            ),
        ],
    )
    def test_each_is_named(self, pictures: Source, changes: dict[str, Any], lines: list[str]) -> None:
        assert protocol_differences(self.stream(pictures, self.calibration(pictures), **changes)) == lines

    def test_sets_that_show_the_images_of_the_calibration(self, pictures: Source) -> None:
        known = self.calibration(pictures.take(range(30)))
        assert protocol_differences(self.stream(pictures.take(range(30)), known, subset=30)) == []
        (line,) = protocol_differences(self.stream(pictures.take(range(10, 40)), known, subset=30))
        assert line.startswith("image_list was ")

    def test_shards_are_jpeg_whatever_the_stream_says(self, pictures: Source) -> None:
        stream = self.stream(pictures, self.calibration(pictures), jpeg=False)
        assert protocol_differences(stream, jpeg=True) == []

    def test_a_calibration_from_before_that_says_nothing(self, pictures: Source) -> None:
        lines = protocol_differences(self.stream(pictures, CalibrationInfo(images=10)))
        assert [line.partition(" now ")[0] for line in lines] == [
            f"{name} was not set," for name in ("preparation", "shape", "jpeg", "preset")
        ]
