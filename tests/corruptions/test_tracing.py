"""Corruptions inside of what `torch.compile` compiles."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import blemish
from pictures import pictures

WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "corrupt": lambda images: blemish.corrupt(images, "gaussian_noise", severity=3),
    "Corrupt": blemish.Corrupt("fog", severity=2),
    "a corruption": lambda images: blemish.catalog["noc:rain"](images, severity=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_compiled_network_sees_the_same_pixels(way: str) -> None:
    layer = torch.nn.Conv2d(3, 4, 3)

    def seen(images: Tensor) -> Tensor:
        made: Tensor = layer(WAYS[way](images + 1).float() / 255)
        return made

    images = pictures(2, 3, 24, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own
        compiled = torch.compile(seen, backend="eager")
        for batch in (images, images.flip(-1)):
            assert torch.equal(compiled(batch), seen(batch))
