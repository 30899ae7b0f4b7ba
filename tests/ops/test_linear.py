"""Linear maps along rows and columns: against plain matrix products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.linear import LinearMap

CPU = torch.device("cpu")

# Outputs and inputs: one block of 32 outputs, exactly one, one and a single row, three.
SIZES = [(5, 12), (32, 32), (33, 20), (70, 90)]


def matrix_of(outputs: int, inputs: int, *, width: int | None = None) -> Tensor:
    """Random (1, 1, outputs, inputs); with a width, zero outside a band around the diagonal."""
    values = np.random.default_rng(outputs).normal(size=(1, 1, outputs, inputs))
    if width is not None:
        middle = np.arange(outputs)[:, None] * inputs / outputs
        values[..., abs(np.arange(inputs) - middle) > width] = 0
    return torch.from_numpy(values)


def images(*shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(7).normal(size=shape))


def product(matrix: Tensor, columns: Tensor) -> NDArray[np.float64]:
    """Image by image and channel by channel, NumPy's matrix product over the columns."""
    return np.stack([[matrix[0, 0].numpy() @ plane for plane in image] for image in columns.numpy()])


@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize(("outputs", "inputs"), SIZES)
def test_maps_are_matrix_products(outputs: int, inputs: int, width: int | None) -> None:
    matrix = matrix_of(outputs, inputs, width=width)
    mapping = LinearMap.of(matrix, CPU, torch.float64)
    tall = images(4, 3, inputs, 11)
    np.testing.assert_allclose(mapping.down(tall).numpy(), product(matrix, tall), rtol=0, atol=1e-12)
    wide = images(4, 3, 11, inputs)
    expected = product(matrix, wide.transpose(-1, -2)).swapaxes(-1, -2)
    np.testing.assert_allclose(mapping.across(wide).numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [8, 9, 11, 33, 35, 37, 39, 41, 43, 67])
def test_company_does_not_change_a_bit(size: int) -> None:
    """Of narrow products, as the last block of these sizes would be, a library rounds one image otherwise."""
    mapping = LinearMap.of(matrix_of(size, size), CPU, torch.float32)
    many = images(5, 3, size, size).float()
    for apply in (mapping.down, mapping.across):
        together = apply(many)
        for i in range(5):
            assert torch.equal(apply(many[i : i + 1])[0], together[i])


def test_blocks_cover_every_output_once_and_only_the_inputs_in_use() -> None:
    """A band of 3 around the diagonal: outputs 0 … 31 need inputs up to 34, then 29 … 66, then from 61 on."""
    matrix = matrix_of(70, 70, width=3)
    mapping = LinearMap.of(matrix, CPU, torch.float64)
    assert mapping.blocks == (
        (slice(0, 32), slice(0, 35)),
        (slice(32, 64), slice(29, 67)),
        (slice(64, 70), slice(61, 70)),
    )


def test_the_type_is_that_of_the_images() -> None:
    matrix = matrix_of(40, 30)
    mapping = LinearMap.of(matrix, CPU, torch.float32)
    batch = images(2, 3, 30, 8)
    found = mapping.down(batch.to(torch.float32))
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), product(matrix, batch), rtol=0, atol=2e-5)


@pytest.mark.parametrize("size", [(8, 8), (40, 33), (96, 64)])
def test_rounding_does_not_depend_on_the_company(size: tuple[int, int]) -> None:
    """Bit for bit in float32: an image alone, in a pair, and among nine."""
    height, width = size
    batch = images(9, 3, height, width).to(torch.float32)
    down, across = (LinearMap.of(matrix_of(n, n, width=6), CPU, torch.float32) for n in size)
    together = across.across(down.down(batch))
    for members in ([4], [8, 0]):
        assert torch.equal(across.across(down.down(batch[members])), together[members])
