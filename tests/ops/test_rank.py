"""Median filters against SciPy's."""

from __future__ import annotations

import pytest
import torch
from scipy import ndimage

from blemish.ops import rank
from pictures import pictures


def check(images: torch.Tensor, radius: int) -> None:
    side = 2 * radius + 1
    expected = ndimage.median_filter(images.numpy(), size=(1, 1, side, side), mode="nearest")
    assert torch.equal(rank.median_filter(images, radius), torch.from_numpy(expected))


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 4, 5, 7, 10, 11])
def test_median_of_every_window(radius: int) -> None:
    check(pictures(2, 3, 37, 29), radius)


def test_windows_may_exceed_the_image() -> None:
    check(pictures(1, 1, 8, 9), 7)
    check(pictures(1, 1, 8, 9), 12)


def test_parts_do_not_change_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "_CPU_PART", 1000)
    check(pictures(2, 3, 37, 29), 3)


@pytest.mark.parametrize("images", [pictures(3, 3, 30, 41), pictures(2, 1, 30, 8) // 100 * 51], ids=["many", "few"])
def test_all_ways_agree(images: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network, the histogram that slides, and counting; with many levels and with few."""
    network = rank.median_filter(images, 4)
    monkeypatch.setattr(rank, "_LARGEST_NETWORK", 1)
    assert torch.equal(rank.median_filter(images, 4), network)
    assert torch.equal(rank.median_filter(images.to(memory_format=torch.channels_last), 4), network)
    monkeypatch.setenv("BLEMISH_COMPILED", "0")
    assert torch.equal(rank.median_filter(images, 4), network)
    for radius in (11, 14):
        check(images, radius)


def test_nothing_superfluous_is_computed() -> None:
    """Minima and maxima per pixel for medians of 3², 5² … 11², as the networks stand."""
    assert [len(rank._plan(side)[0]) for side in (3, 5, 7, 9, 11)] == [22, 88, 260, 394, 762]
