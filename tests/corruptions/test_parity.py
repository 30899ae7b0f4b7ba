"""Pixel by pixel against the reference generators, with the reference's own random draws injected.

One tolerance for all: at most one grey level of difference on at least 99.5 % of values. The recordings hold float32
fields where the reference used float64, and results that are whole levels may be truncated either way.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import blemish
from frost_files import skip_without_files
from recorded import inject

FILES = {"imagenet_c_224": "imagenet", "cifar_c_32": "cifar", "ccc_224": "imagenet"}
SEVERITIES = {"imagenet_c_224": [1, 3, 5], "cifar_c_32": [1, 2, 3, 4, 5], "ccc_224": [0.25, 1.5, 3.75]}
CASES = [
    (file, name, severity)
    for file, severities in SEVERITIES.items()
    for name in list(blemish.catalog)[: 15 if file == "ccc_224" else 19]
    for severity in severities
]


NOT_COMMITTED = "not in the small part of the recordings (tests/golden), and the others are not beside this checkout"


@lru_cache(maxsize=3)
def load(path: Path) -> dict[str, NDArray[Any]]:
    if not path.exists():
        pytest.skip(NOT_COMMITTED)
    with np.load(path) as arrays:
        return dict(arrays)


def rendered(file: str, name: str, severity: float, image: str, arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Our pixels from the recorded draws."""
    prefix = f"{name}|{severity}|{image}|"
    recording = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
    clean = arrays[f"image|{image}"]
    corruption = blemish.catalog[name]
    params = corruption.table.at([float(severity)], FILES[file])
    batch = torch.from_numpy(clean).permute(2, 0, 1)[None].contiguous()
    result = corruption.render(batch, params, inject(name, recording, params, clean))
    return result[0].permute(1, 2, 0).numpy()


@pytest.mark.parametrize(("file", "name", "severity"), CASES)
def test_pixels_agree_with_the_reference(recordings: Path, file: str, name: str, severity: float) -> None:
    arrays = load(recordings / f"{file}.npz")
    if f"{name}|{severity}|0|out" not in arrays:
        pytest.skip(NOT_COMMITTED)
    skip_without_files(blemish.catalog[name])
    if file == "ccc_224" and name == "glass_blur" and severity >= 1:
        pytest.skip("this recording has no glass draws; test_glass_without_draws compares distributions instead")
    images = [key.removeprefix("image|") for key in arrays if key.startswith("image|")]
    for image in images:
        expected = arrays[f"{name}|{severity}|{image}|out"].astype(int)
        difference = np.abs(rendered(file, name, severity, image, arrays) - expected)
        assert (difference <= 1).mean() >= 0.995
        assert difference.max() <= 2


@pytest.mark.parametrize("severity", [1.5, 3.75])
def test_glass_without_draws(golden: Path, severity: float) -> None:
    """The CCC recording lacks glass blur's offsets: its distance from the clean image must be typical of ours."""
    arrays = load(golden / "ccc_224.npz")
    clean = torch.from_numpy(arrays["image|0"]).permute(2, 0, 1).contiguous()
    reference = torch.from_numpy(arrays[f"glass_blur|{severity}|0|out"]).permute(2, 0, 1)
    ours = blemish.corrupt(clean.expand(16, -1, -1, -1), "glass_blur", severity=severity, preset="imagenet")

    def statistics(images: torch.Tensor) -> torch.Tensor:
        floats = images.double()
        change = (floats - clean).abs().mean((-3, -2, -1))
        steps = floats.diff(dim=-1).abs().mean((-3, -2, -1))
        return torch.stack([change, steps, floats.mean((-3, -2, -1)), floats.std((-3, -2, -1))], dim=-1)

    spread = statistics(ours)
    score = (statistics(reference) - spread.mean(0)).abs() / spread.std(0)
    assert score.max() < 4


def test_the_tolerance_can_fail(recordings: Path) -> None:
    arrays = load(recordings / "imagenet_c_224.npz")
    expected = arrays["motion_blur|3|0|out"].astype(int)
    arrays = {**arrays, "motion_blur|3|0|draw0_uniform": arrays["motion_blur|3|0|draw0_uniform"] + 3}
    difference = np.abs(rendered("imagenet_c_224", "motion_blur", 3, "0", arrays) - expected)
    assert (difference <= 1).mean() < 0.9


def test_the_committed_part_is_of_the_full_recordings(golden: Path) -> None:
    """Of one picture, the public-domain one, and nothing with pixels of frost photographs."""
    part = Path(__file__).parents[1] / "golden"
    assert sum(path.stat().st_size for path in part.iterdir()) < 3_000_000
    for path in part.glob("*.npz"):
        full = load(golden / path.name)
        for key, array in load(path).items():
            assert np.array_equal(array, full[key])
            assert key == "image|0" or key.split("|")[2] == "0"
            assert not key.startswith("frost")
