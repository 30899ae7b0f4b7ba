"""Corruptions by fused kernels on a GPU against the plain operations on a CPU: the same bits, where promised."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import blemish
import digests
from blemish.ops.fused import fused, kernels_for
from frost_files import skip_without_files

SIZES = ((8, 9), (33, 47), (131, 90), (224, 224))
IDS = [3, 2**40, 5, -1]

# Sums whose order or functions whose last bit a GPU's own library decides. All others below are promised.
# Torch multiplies by the reciprocal on a GPU where it divides on a CPU.
APPROXIMATE = {
    "syn2nat:random_gamma",
    "syn2nat:random_snow",
    "syn2nat:optical_distortion",
    "syn2nat:rgb_shift",
    "syn2nat:hue_saturation_value",
}

NAMES = [
    *(name for name, corruption in blemish.catalog.items() if corruption.at_once),
    *["noc:gray_scale", "noc:hue", "noc:translation", "noc:rotation", "noc:elastic"],
    *["syn2nat:hue_saturation_value", "syn2nat:to_sepia", "syn2nat:random_snow", "syn2nat:affine", "syn2nat:rotate"],
    *["syn2nat:elastic_transform", "syn2nat:grid_distortion", "syn2nat:optical_distortion", "syn2nat:blur"],
    "spatter",
]


def inputs(corruption: blemish.Corruption) -> Iterator[tuple[Tensor, list[float]]]:
    """Odd and oblong sizes, colour and gray, one severity and a different one for each image, none included."""
    only = corruption.only_severity
    severities = [[3.0] * 4, [0.7, 5.0, 0.0, 2.4]] if only is None else [[only] * 4]
    for height, width in SIZES:
        images = digests.batch(4, height, width)
        for levels in severities:
            yield images, levels
        yield images[:, :1], severities[-1]


def is_promised(corruption: blemish.Corruption, images: Tensor, levels: list[float]) -> bool:
    """Wide Gaussians are products of matrices, whose rounding a library decides."""
    if corruption.name in APPROXIMATE:
        return False
    if corruption.at_once is None:
        return True
    known = corruption.table.at([level for level in levels if level], corruption.table.preset(*images.shape[-2:]))
    return corruption.at_once.suits({name: values.numpy() for name, values in known.items()}, *images.shape[-2:])


@pytest.mark.parametrize("name", NAMES)
def test_same_pixels(name: str, device: torch.device) -> None:
    if kernels_for(device) is None:
        pytest.skip("no Triton that works here")
    corruption = blemish.catalog[name]
    skip_without_files(corruption)
    for images, levels in inputs(corruption):
        made = corruption(images.to(device), severity=levels, seed=1, ids=IDS).cpu()
        plain = corruption(images, severity=levels, seed=1, ids=IDS)
        share = float((made != plain).float().mean())
        what = f"{share:.2e} of values differ: {tuple(images.shape)}, severities {levels}"
        assert share < (1e-9 if is_promised(corruption, images, levels) else 2e-4), what


def test_kinds_of_input(device: torch.device) -> None:
    if kernels_for(device) is None:
        pytest.skip("no Triton that works here")
    images = digests.batch(3, 40, 52)
    last = images.to(memory_format=torch.channels_last)
    for kind in (images / 255, (images / 255).half(), last, images.flip(-1), images[:, :, ::2]):
        for name in ("gaussian_noise", "fog", "noc:brightness", "noc:hue"):
            made = blemish.catalog[name](kind.to(device), severity=[2, 0, 4])
            plain = blemish.catalog[name](kind, severity=[2, 0, 4])
            assert torch.equal(made.cpu(), plain)
            assert made.dtype == kind.dtype


def test_families_are_those_of_corruptions() -> None:
    """A name that neither a CPU nor a GPU has kernels for would never be noticed: everything works without."""
    import importlib.util

    for corruption in blemish.catalog.values():
        if corruption.at_once is not None:
            places = [f"blemish.ops.{kind}.{corruption.at_once.kernels}" for kind in ("compiled", "fused")]
            assert any(importlib.util.find_spec(place) for place in places)


def test_what_a_cpu_has_is_not_fused() -> None:
    assert fused("noise", torch.device("cpu")) is None
