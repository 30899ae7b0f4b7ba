"""On what no corruption's pixels depend: company, kind of input, layout in memory, the caller's settings."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from PIL import Image
from torch import Tensor

import blemish
import heavy_units
from blemish.corruptions import base
from frost_files import draw_pictures, skip_without_files
from pictures import kinds, pictures
from pixel_digests import severities, units

SIZES = [(27, 27), (67, 67), (33, 40), (64, 64), (31, 57), (48, 130), (96, 27), (8, 8), (96, 96), (9, 100)]
LEVELS = [0.0, 0.01, 0.3, 1.0, 1.7, 2.5, 3.0, 4.2, 5.0]


@pytest.fixture(scope="module")
def all_units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, blemish.Corruption]:
    return units(draw_pictures(tmp_path_factory.mktemp("frost")))


@pytest.fixture(params=heavy_units.units([*blemish.catalog, "chain", "random severity"]))
def corruption(request: pytest.FixtureRequest, all_units: dict[str, blemish.Corruption]) -> blemish.Corruption:
    last = {"chain": -2, "random severity": -1}.get(request.param)
    return skip_without_files(all_units[request.param] if last is None else list(all_units.values())[last])


# The fixture only names the unit, which all examples share.
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_company_does_not_matter(corruption: blemish.Corruption, data: st.DataObject) -> None:
    """Any size, any order, any severities beside it: the same pixels as alone."""
    channels, size = data.draw(st.sampled_from([1, 3, 3])), data.draw(st.sampled_from(SIZES))
    count = data.draw(st.sampled_from([2, 3, 5]))
    preset = data.draw(st.sampled_from([None, "imagenet", "imagenet64", "cifar", "inception"]))
    known = st.sampled_from([level for level in LEVELS if corruption.supports(level)])
    levels = torch.tensor(data.draw(st.lists(known, min_size=count, max_size=count)), dtype=torch.float64)
    order = torch.tensor(data.draw(st.permutations(range(count))))
    images = pictures(count, channels, *size)
    alone = [
        corruption(images[i : i + 1], severity=levels[i : i + 1], seed=3, ids=[i], preset=preset) for i in range(count)
    ]
    together = corruption(images[order], severity=levels[order], seed=3, ids=order, preset=preset)
    assert torch.equal(together, torch.cat(alone)[order])


def test_weak_beside_strong(corruption: blemish.Corruption) -> None:
    """The first severity beside the others, in every size: where a batch is most uneven."""
    weak, middle, strong = severities(corruption)
    levels = [weak, middle, middle, middle, weak, strong]
    for size in [(27, 92), (67, 67), (96, 96), (31, 57)]:
        images = pictures(len(levels), 3, *size)
        together = corruption(images, severity=levels)
        for i, level in enumerate(levels):
            assert torch.equal(corruption(images[i : i + 1], severity=level, ids=[i])[0], together[i])


def test_chunks_do_not_matter(corruption: blemish.Corruption, monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(7, 3, 32, 32)
    levels = torch.tensor(severities(corruption), dtype=torch.float64).repeat(3)[:7]
    whole = corruption(images, severity=levels)
    monkeypatch.setattr(base, "_CPU_CHUNK", 3 * 32 * 32 * 3)
    assert torch.equal(corruption(images, severity=levels), whole)


def as_levels(result: Tensor) -> Tensor:
    return result if result.dtype == torch.uint8 else result.detach().to(torch.float64).mul(255).round().to(torch.uint8)


@pytest.mark.parametrize("channels", [1, 3])
def test_kind_and_layout_of_tensors_do_not_matter(corruption: blemish.Corruption, channels: int) -> None:
    images = pictures(3, channels, 40, 33)
    levels = severities(corruption)
    expected = corruption(images, severity=levels)
    for kind, tensors in kinds(images).items():
        result = corruption(tensors, severity=levels)
        assert result.dtype == tensors.dtype
        assert torch.equal(as_levels(result), expected), kind


def test_arrays_and_pictures_are_tensors_in_other_clothes(corruption: blemish.Corruption) -> None:
    for channels in (1, 3):
        images = pictures(3, channels, 27, 36)
        levels = severities(corruption)
        expected = corruption(images, severity=levels)
        array = images.permute(0, 2, 3, 1).contiguous().numpy()
        arrays: list[Any] = [array, np.asfortranarray(array), array[:, ::-1].copy()[:, ::-1]]
        arrays += [(array / 255).astype(kind) for kind in (np.float16, np.float32, ">f4", np.float64)]
        for one in arrays:
            result = torch.from_numpy(
                np.ascontiguousarray(blemish.corrupt(one, corruption, severity=levels)).astype(float)
            )
            unit = 1 if one.dtype == np.uint8 else 255
            assert torch.equal(result.mul(unit).round().to(torch.uint8).permute(0, 3, 1, 2), expected)
        portraits = [Image.fromarray(one[:, :, 0] if channels == 1 else one) for one in array]
        found = blemish.corrupt(portraits, corruption, severity=levels)
        assert all(
            np.array_equal(np.array(picture).reshape(one.shape), one)
            for picture, one in zip(found, expected.permute(0, 2, 3, 1).numpy(), strict=True)
        )


def test_severity_zero_keeps_floats_bit_for_bit(corruption: blemish.Corruption) -> None:
    floats = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mixed = corruption(floats, severity=[0, severities(corruption)[-1]])
    assert torch.equal(mixed[0], floats[0])


def test_the_callers_settings_do_not_matter(corruption: blemish.Corruption) -> None:
    images = pictures(2, 3, 64, 64)
    levels = severities(corruption)[1:]
    expected = corruption(images, severity=levels)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(corruption(images, severity=levels), expected)
    assert torch.equal(torch.get_rng_state(), state)
    with torch.inference_mode(), torch.device("meta"):
        assert torch.equal(corruption(images, severity=levels), expected)
        assert torch.equal(blemish.corrupt(images, corruption, severity=levels), expected)
