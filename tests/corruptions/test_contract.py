"""What every corruption in the catalog promises, whatever it does; test_contract_*.py hold what does not matter."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import blemish
import fingerprints
import heavy_units
from blemish.corruptions import base
from blemish.corruptions.human.published import SEVERITIES
from codec_units import skip_by_codec
from frost_files import skip_without_files
from pictures import pictures

NAMES = list(blemish.catalog)
SIZES = [(8, 8), (31, 57), (224, 160)]

# A float32 sum may round differently on another device, and a value at the edge of a level then falls on the other
# side: one level on few values. Counts of photons and the blobs of spatter turn such a value into a visible one.
SAME_ON_GPU = 0.999
GPU_JUMPS = {"shot_noise", "spatter", "snow", "sensor:low_light", "sensor:iso_noise", "med:shot_noise"}


def existing(corruption: blemish.Corruption, *severities: float) -> list[float]:
    """Those at which the corruption exists."""
    return [severity for severity in severities if corruption.supports(severity)]


def usual(corruption: blemish.Corruption) -> float:
    """A middling severity."""
    return 3.0 if corruption.only_severity is None else corruption.only_severity


@pytest.fixture(params=heavy_units.units(NAMES))
def corruption(request: pytest.FixtureRequest) -> blemish.Corruption:
    return skip_without_files(blemish.catalog[request.param])


@pytest.mark.parametrize("name", NAMES)
def test_the_source_and_the_published_severities_are_stated(name: str) -> None:
    corruption = blemish.catalog[name]
    assert corruption.source
    if corruption.family == "human":  # two to eight levels, the unchanged image among them
        assert corruption.severities in SEVERITIES.values()
        return
    published = {"noc": "1-5", "syn2nat": (5,)}.get(corruption.family, (1, 2, 3, 4, 5))
    assert corruption.severities == published


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
def test_shape_type_and_input(corruption: blemish.Corruption, channels: int, size: tuple[int, int]) -> None:
    images = pictures(2, channels, *size)
    before = images.clone()
    for severity in existing(corruption, 0.1, 2.6, 5.0):
        out = corruption(images, severity=severity)
        assert out.dtype == torch.uint8
        assert out.shape == images.shape
        assert torch.equal(images, before)
        again = corruption(images, severity=severity)
        assert torch.equal(out, again)


def test_black_and_white_images_survive(corruption: blemish.Corruption) -> None:
    images = torch.stack([torch.zeros(3, 32, 32), torch.full((3, 32, 32), 255)]).to(torch.uint8)
    out = corruption(images, severity=[5.0, 5.0])
    assert out.shape == images.shape


def test_severity_zero_is_the_identity_bit_for_bit(corruption: blemish.Corruption) -> None:
    images = pictures(2, 3, 32, 32)
    assert torch.equal(corruption(images, severity=0), images)
    floats = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert torch.equal(corruption(floats, severity=0), floats)
    mixed = corruption(images, severity=[0, usual(corruption)])
    assert torch.equal(mixed[0], images[0])


def test_severity_matters_and_grows(corruption: blemish.Corruption) -> None:
    """Severity 5 changes the picture more than a trace of it; saturate's published rows reverse direction."""
    images = pictures(4, 3, 64, 64)
    strong = (corruption(images, severity=5).double() - images.double()).abs().mean()
    assert strong > 0.5
    for severity in existing(corruption, 0.05):
        assert (corruption(images, severity=severity).double() - images.double()).abs().mean() < strong


def test_seeds_and_ids_decide(corruption: blemish.Corruption) -> None:
    """Over many images, and at high severity, as some corruptions only choose between a few outcomes."""
    images = pictures(1, 3, 96, 96).expand(24, -1, -1, -1)
    severity = corruption.only_severity or 4.0
    ones = corruption(images, severity=severity, seed=0, ids=range(24))
    random = corruption.draw is not base.no_draw
    assert torch.equal(corruption(images, severity=severity, seed=1, ids=range(24)), ones) != random
    assert torch.equal(corruption(images, severity=severity, seed=0, ids=range(24, 48)), ones) != random


def test_pixels_never_change_silently(corruption: blemish.Corruption) -> None:
    """Block means recorded when this version of the corruption was fixed (tests/fingerprints.py)."""
    skip_by_codec(corruption, "whose version decides about pixels")
    recorded = json.loads(fingerprints.PATH.read_text())
    key = fingerprints.key(corruption)
    assert key in recorded, f"{key} has no fingerprint: run tests/fingerprints.py and add a line to CHANGELOG.md"
    now = torch.tensor(fingerprints.fingerprint(corruption))
    assert (now - torch.tensor(recorded[key])).abs().max() < 0.1


def test_gpu_agrees(corruption: blemish.Corruption, device: torch.device) -> None:
    images = pictures(4, 3, 224, 224)
    for severity in existing(corruption, 1.0, 2.5, 5.0):
        here = corruption(images, severity=severity).int()
        there = corruption(images.to(device), severity=severity).cpu().int()
        difference = (here - there).abs()
        assert (difference == 0).double().mean() >= SAME_ON_GPU
        if corruption.name not in GPU_JUMPS:
            assert difference.max() <= 1


def mirrored(images: Tensor, params: object, draw: object) -> Tensor:
    """A user's own corruption."""
    return images.flip(-1)


def test_users_add_their_own_without_touching_ours() -> None:
    mine = replace(blemish.catalog["contrast"], name="mirror", apply=mirrored, description="Flips.")
    larger = blemish.catalog.extended(mine)
    assert "mirror" in larger
    assert "mirror" not in blemish.catalog
    images = pictures(1, 3, 16, 16)
    assert torch.equal(blemish.corrupt(images, "mirror", severity=1, catalog=larger), images.flip(-1))
    with pytest.raises(blemish.InputError, match="contrast"):
        blemish.catalog.extended(blemish.catalog["contrast"])
    with pytest.raises(TypeError):
        blemish.catalog["mirror"] = mine  # type: ignore[index]
