"""Pixels of every corruption and sequence in fresh processes: with other threads, settings and instruction sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import blemish
from codec_units import by_codec
from pixel_digests import digests, digests_with, pixels_with

pytestmark = pytest.mark.slow

CAPABILITY = torch.backends.cpu.get_cpu_capability()

# Without AVX2 a processor rounds a product and then the sum, instead of both at once. A value at the edge of a level
# then falls on the other side: one level, rarely two, on few values; or it decides about a photon, a flake or a drop.
WITHOUT_AVX2 = 1e-3
JUMPS = {
    *("shot_noise", "snow", "spatter", "p:shot_noise", "p:snow", "p:spatter"),
    *("sensor:low_light", "sensor:iso_noise", "med:shot_noise"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def one_thread(folder: Path) -> dict[str, str]:
    return digests_with(1, folder)


@pytest.fixture(scope="module")
def avx2(folder: Path) -> dict[str, NDArray[np.uint8]]:
    if CAPABILITY not in ("AVX2", "AVX512"):
        pytest.skip(f"this machine has {CAPABILITY}; expected AVX2 to compare with")
    return pixels_with("avx2", folder)


def test_every_unit_is_there(one_thread: dict[str, str]) -> None:
    found = {case.split()[0] for case in one_thread}
    expected = {name for name, corruption in blemish.catalog.items() if not by_codec(corruption)}
    assert {*expected, *blemish.sequences} <= found


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter(folder: Path, one_thread: dict[str, str], threads: int) -> None:
    found = digests_with(threads, folder)
    assert [case for case in one_thread if found[case] != one_thread[case]] == []


def test_the_callers_settings_do_not_matter(folder: Path, one_thread: dict[str, str]) -> None:
    found = digests_with(1, folder, "changed")
    assert [case for case in one_thread if found[case] != one_thread[case]] == []


def test_avx2_and_avx512_agree(one_thread: dict[str, str], avx2: dict[str, NDArray[np.uint8]]) -> None:
    if CAPABILITY != "AVX512":
        pytest.skip("no AVX-512 on this machine")
    found = digests(avx2)
    assert [case for case in one_thread if found[case] != one_thread[case]] == []


def test_without_avx2_few_values_differ(folder: Path, avx2: dict[str, NDArray[np.uint8]]) -> None:
    found = pixels_with("default", folder)
    differ, all_values = Counter[str](), Counter[str]()
    for case, pixels in avx2.items():
        unit = case.split()[0]
        difference = np.abs(pixels.astype(np.int16) - found[case])
        assert difference.max() <= 2 or unit in JUMPS, case
        differ[unit] += int((difference > 0).sum())
        all_values[unit] += difference.size
    assert differ.total() > 0, "nothing differs: were the instructions switched off at all?"
    assert {unit: count for unit, count in differ.items() if count > WITHOUT_AVX2 * all_values[unit]} == {}
