"""C̄'s pixels against the reference generator's, with its own recorded draws injected.

Recordings hold all draws as they were drawn. At sizes for which a corruption has no published severities, recordings
are at two magnitudes; parameters are linear in the magnitude, so two rows of the table give those of any other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import blemish
from blemish.corruptions.cbar import CBAR
from conftest import SHARED
from corruptions.test_parity import load
from pictures import pictures
from recorded_cbar import INJECT

FILES = {"c_bar_224": "imagenet", "c_bar_32": "cifar"}

SEVERITIES = {"c_bar_224": (1, 3, 5), "c_bar_32": (1, 2, 3, 4, 5)}
# The magnitudes of the recordings without severities.
MAGNITUDES = {
    "c_bar_224": {
        "circular_motion_blur": (4.05, 8.3),
        "lines": (2.4, 6.4),
        "pinch_and_twirl": (5.45, 8.7),
        "ripple": (4.75, 8.5),
        "transverse_chromatic_abberation": (3, 8),
    },
    "c_bar_32": {
        "caustic_refraction": (2.2, 4.2),
        "cocentric_sine_waves": (1.5, 4),
        "perlin_noise": (5.8, 8.8),
        "plasma_noise": (2.1, 5.6),
        "single_frequency_greyscale": (0.9, 2.4),
    },
}
CASES = [
    (file, name, level)
    for file in FILES
    for name in INJECT
    for level in ([f"m{m}" for m in MAGNITUDES[file].get(name, ())] or map(str, SEVERITIES[file]))
]


def parameters(file: str, name: str, level: str) -> dict[str, Tensor]:
    """Ours for a severity, or those at a magnitude.

    At sizes without published severities, our rows 1 and 5 stand for the first and the last of the steps chosen at the
    other size, of the ten steps low + (high − low) · k / 10 that the authors scanned at this one.
    """
    table = blemish.catalog[f"cbar:{name}"].table
    if not level.startswith("m"):
        return dict(table.at([float(level)], FILES[file]))
    facts = json.loads((SHARED / "facts" / "c_bar_candidates.json").read_text())["candidates"]
    (candidate,) = (entry for entry in facts if entry["name"].removesuffix("_v2") == name)
    (steps,) = candidate["levels"].values()
    low, high = candidate[FILES[file]]
    first, last = (low + (high - low) * step / 10 for step in (steps[0], steps[-1]))
    share = (float(level[1:]) - first) / (last - first)
    weak, strong = (table.at([float(severity)], FILES[file]) for severity in (1, 5))
    return {key: weak[key] + share * (strong[key] - weak[key]) for key in weak}


def rendered(file: str, name: str, level: str, arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Our pixels from the recorded draws."""
    prefix = f"{name}|{level}|0|"
    recording = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
    clean = arrays["image|0"]
    batch = torch.from_numpy(clean).permute(2, 0, 1)[None].contiguous()
    draw = INJECT[name](recording, len(clean))
    result = blemish.catalog[f"cbar:{name}"].render(batch, parameters(file, name, level), draw)
    return result[0].permute(1, 2, 0).numpy()


def difference(file: str, name: str, level: str) -> NDArray[np.int64]:
    """Between our pixels and the reference's, in levels."""
    arrays = load(SHARED / "golden" / f"{file}.npz")
    return np.abs(rendered(file, name, level, arrays).astype(int) - arrays[f"{name}|{level}|0|out"].astype(int))


def test_everything_is_compared(golden: Path) -> None:
    assert {*INJECT} == {corruption.name.removeprefix("cbar:") for corruption in CBAR}
    for file in FILES:
        recorded = {key.removesuffix("|0|out") for key in load(golden / f"{file}.npz") if key.endswith("|out")}
        assert recorded == {f"{name}|{level}" for known, name, level in CASES if known == file}


@pytest.mark.parametrize(("file", "name", "level"), CASES)
def test_pixels_agree_with_the_reference(golden: Path, file: str, name: str, level: str) -> None:
    found = difference(file, name, level)
    assert (found == 0).mean() >= 0.999
    assert found.max() <= 1


@pytest.mark.parametrize("name", [name for name in INJECT if name != "circular_motion_blur"])
def test_the_tolerance_can_fail(golden: Path, name: str) -> None:
    """With the draws of another severity."""
    file, level = ("c_bar_32", "5") if name not in MAGNITUDES["c_bar_32"] else ("c_bar_224", "5")
    arrays = load(golden / f"{file}.npz")
    other = {key.replace(f"{name}|3|", f"{name}|5|"): value for key, value in arrays.items() if f"{name}|3|" in key}
    if name == "lines":
        other = {key: np.tile(value, (2, 1))[:8] if value.ndim == 2 else value for key, value in other.items()}
    found = np.abs(rendered(file, name, level, {**arrays, **other}).astype(int) - arrays[f"{name}|{level}|0|out"])
    assert (found <= 1).mean() < 0.995


@pytest.mark.parametrize("name", sorted(INJECT))
def test_weak_severities_lead_to_the_clean_image(name: str) -> None:
    """Also where a magnitude of zero would change the image, by black from outside or the shortest rays."""
    images = pictures(2, 3, 32, 32)
    weak = blemish.catalog[f"cbar:{name}"](images, severity=0.01)
    assert float((weak.float() - images.float()).abs().mean()) < 1
