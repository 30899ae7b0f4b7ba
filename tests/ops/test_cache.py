"""Caches hold bytes, not entries."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from blemish.corruptions.imagenet_p import warps as sequences_warps
from blemish.corruptions.noc import texture as noc_texture
from blemish.ops import filters, resample, textures
from blemish.ops.cache import Cached, cached

MEBIBYTE = 2**20


class Pair(NamedTuple):
    first: Tensor
    sizes: list[tuple[int, int]]


@dataclass(frozen=True)
class Map:
    matrix: Tensor
    blocks: tuple[slice, ...]


def counting(mebibytes: int) -> tuple[Cached[[int], Tensor], list[int]]:
    calls: list[int] = []

    @cached(mebibytes=mebibytes)
    def zeros(count: int) -> Tensor:
        """So many mebibytes."""
        calls.append(count)
        return torch.zeros(count * MEBIBYTE, dtype=torch.uint8)

    return zeros, calls


def test_what_fits_is_kept() -> None:
    zeros, calls = counting(6)
    assert zeros(2) is zeros(2)
    assert zeros(3) is zeros(3)
    assert zeros(2) is zeros(2)
    assert calls == [2, 3]
    assert 5 * MEBIBYTE <= zeros.bytes <= 6 * MEBIBYTE


def test_what_was_used_longest_ago_goes_first() -> None:
    zeros, calls = counting(6)
    for count in (2, 3, 2, 1, 2, 3):
        zeros(count)
    assert calls == [2, 3, 1, 3]
    assert zeros.bytes <= 6 * MEBIBYTE


def test_a_result_that_fills_it_stays_until_the_next() -> None:
    zeros, calls = counting(4)
    for count in (1, 9, 9, 1, 9):
        zeros(count)
    assert calls == [1, 9, 1, 9]
    assert zeros.bytes >= 9 * MEBIBYTE
    zeros(1)
    assert zeros.bytes < 2 * MEBIBYTE
    zeros.clear()
    assert zeros.bytes == 0


@pytest.mark.parametrize(
    "result",
    [
        (torch.zeros(MEBIBYTE // 4), None, (torch.zeros(2, MEBIBYTE // 8),)),
        Pair(torch.zeros(MEBIBYTE // 2), [(1, 2)]),
        Map(torch.zeros(MEBIBYTE // 2), (slice(0, 3),)),
    ],
)
def test_tensors_are_found_wherever_they_are(result: object) -> None:
    @cached()
    def function(number: int) -> object:
        return result

    function(1)
    function(number=2)
    assert 4 * MEBIBYTE <= function.bytes < 5 * MEBIBYTE


def test_results_without_tensors_are_bounded_too() -> None:
    @cached(mebibytes=1)
    def function(number: int) -> str:
        return "text"

    for number in range(5000):
        function(number)
    assert function.bytes <= MEBIBYTE


def test_errors_are_not_kept_and_threads_share() -> None:
    @cached()
    def function(number: int) -> Tensor:
        if number < 0:
            raise ValueError("negative")
        return torch.zeros(number)

    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            function(-1)
    found: list[Tensor] = []
    threads = [threading.Thread(target=lambda: found.append(function(1000))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert function.bytes < 2 * 4000 + 2 * 1024


@pytest.mark.parametrize(
    "function",
    [
        filters._gaussian_map,
        noc_texture._blur_map,
        resample._box_taps,
        resample._zoom_sources,
        sequences_warps._positions,
        textures._scaled,
    ],
    ids=lambda function: function.__name__,
)
def test_whatever_grows_with_the_images_is_bounded(function: object) -> None:
    assert isinstance(function, Cached)


def test_large_images_do_not_fill_the_memory() -> None:
    """64 filters for sides of 4,000 pixels would be four gigabytes."""
    function = filters._gaussian_map
    sides = range(1200, 1230)
    for side in sides:
        function(side, 1.5, 4.0, "replicate", torch.device("cpu"), torch.float32)
    assert function.bytes <= 64 * MEBIBYTE < 4 * sum(side**2 for side in sides)
