"""Rows in groups of one size."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import blemish
from blemish.ops import fourier, plasma
from blemish.ops.groups import in_groups
from pictures import pictures


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 11])
def test_every_group_has_the_same_size(count: int) -> None:
    sizes: list[int] = []

    def doubled(rows: Tensor) -> Tensor:
        sizes.append(len(rows))
        return rows * 2

    rows = torch.arange(count * 6.0).view(count, 2, 3)
    assert torch.equal(in_groups(rows, 4, doubled), rows * 2)
    assert sizes == [4] * -(-count // 4)


def test_groups_depend_on_the_size_of_images_alone() -> None:
    """One image needs no more memory than many; a plane of 4,096 pixels is transformed alone."""
    assert fourier._PLANE_VALUES // 4096**2 == 1
    assert fourier._PLANES * 256**2 <= fourier._PLANE_VALUES
    assert plasma._ROWS > 1


def test_pixels_on_a_gpu_do_not_depend_on_the_batch(device: torch.device) -> None:
    levels = [0.3, 1.0, 2.5, 5.0] * 12
    for name in ("defocus_blur", "fog", "gaussian_blur", "elastic_transform", "noc:blur", "noc:pixelate"):
        corruption = blemish.catalog[name]
        for size in ((224, 224), (67, 96)):
            images = pictures(48, 3, *size).to(device)
            together = corruption(images, severity=levels)
            for i in range(5):
                assert torch.equal(corruption(images[i : i + 1], severity=levels[i], ids=[i])[0], together[i]), name
