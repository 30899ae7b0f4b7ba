"""Compiled kernels against the plain operations: the same bits, for every corruption, and everything without numba."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import blemish
import digests
import heavy_units
from blemish.ops import levels as memory
from blemish.ops.compiled import compiled
from frost_files import skip_without_files

SIZES = ((8, 9), (33, 47), (131, 90), (256, 224))
IDS = [3, 2**40, 5, -1]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Tensor]], tuple[Tensor, Tensor]]:
    """Call something with the kernels and without them."""
    if compiled("noise") is None:
        pytest.skip("no numba, or no processor with AVX2")

    def call(work: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        made = work()
        monkeypatch.setenv("BLEMISH_COMPILED", "0")
        plain = work()
        monkeypatch.delenv("BLEMISH_COMPILED")
        return made, plain

    return call


def inputs(corruption: blemish.Corruption) -> Iterator[tuple[Tensor, list[float]]]:
    """Odd and oblong sizes, colour and gray, one severity and a different one for each image, none included."""
    severities = [[3.0] * 4, [0.7, 5.0, 0.0, 2.4]]
    if corruption.only_severity is not None:
        severities = [[corruption.only_severity] * 4]
    for height, width in SIZES:
        images = digests.batch(4, height, width)
        for levels in severities:
            yield images, levels
        yield images[:, :1], severities[-1]


@pytest.mark.parametrize("name", heavy_units.units(blemish.catalog))
def test_same_pixels(name: str, both: Callable[[Callable[[], Tensor]], tuple[Tensor, Tensor]]) -> None:
    corruption = blemish.catalog[name]
    skip_without_files(corruption)
    for images, levels in inputs(corruption):
        made, plain = both(lambda images=images, levels=levels: corruption(images, severity=levels, seed=1, ids=IDS))
        assert torch.equal(made, plain), f"{tuple(images.shape)}, severities {levels}"


@pytest.mark.parametrize("name", ["gaussian_noise", "brightness", "fog"])
def test_kinds_of_input(name: str, both: Callable[[Callable[[], Tensor]], tuple[Tensor, Tensor]]) -> None:
    corruption = blemish.catalog[name]
    images = digests.batch(3, 40, 52)
    last = images.to(memory_format=torch.channels_last)
    for kind in (images / 255, (images / 255).half(), last, images.flip(-1), images[:, :, ::2]):
        made, plain = both(lambda kind=kind: corruption(kind, severity=[2, 0, 4]))
        assert torch.equal(made, plain)
        assert made.dtype == kind.dtype
        assert made.stride() == plain.stride()


SHARED = [name for name, unit in blemish.catalog.items() if unit.at_once is not None and unit.at_once.draws_little]


@pytest.mark.parametrize(
    "name",
    [
        *SHARED,
        "elastic_transform",
        "spatter",
        "cbar:circular_motion_blur",
        "cbar:fish_eye",
        "cbar:brownish_noise",
        "cbar:plasma_noise",
        "cbar:lines",
        "laion:mosaic",
        "laion:vertical_lines",
    ],
)
def test_threads_change_nothing(name: str) -> None:
    """Neither do torch's modes, of which each thread has its own."""
    skip_without_files(blemish.catalog[name])
    images = digests.batch(5, 50, 41)
    one = blemish.corrupt(images, name, [1, 2, 3, 4, 5])
    same = blemish.corrupt(images, name, 2)
    torch.set_num_threads(3)
    try:
        assert torch.equal(blemish.corrupt(images, name, [1, 2, 3, 4, 5]), one)
        assert torch.equal(blemish.corrupt(images, name, 2), same)
        with torch.inference_mode():
            assert torch.equal(blemish.corrupt(images, name, 2), same)
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("name", ["fog", "snow", "elastic_transform", "spatter"])
def test_fields_of_some_images_at_a_time_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.randint(0, 256, (7, 3, 40, 33), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    whole = blemish.corrupt(images, name, severity=3)
    monkeypatch.setattr("blemish.corruptions.base._FIELDS", 2 * 40 * 33)
    assert torch.equal(blemish.corrupt(images, name, severity=3), whole)


@pytest.mark.parametrize("kind", [torch.uint8, torch.float16, torch.float32])
def test_memory_of_large_batches_changes_nothing(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    images = digests.batch(4, 33, 47)
    images = images if kind == torch.uint8 else (images / 255).to(kind)
    for given in (images, images.contiguous(memory_format=torch.channels_last)):
        for severity in (2, [0.0, 1, 2.5, 5]):
            monkeypatch.undo()
            usual = blemish.corrupt(given, "fog", severity)
            monkeypatch.setattr(memory, "_LARGE", 0)
            large = blemish.corrupt(given, "fog", severity)
            assert torch.equal(large, usual)
            assert (large.dtype, large.shape, large.stride()) == (usual.dtype, usual.shape, usual.stride())
            assert large.data_ptr() != given.data_ptr()


class Operations(TorchDispatchMode):
    """Counts torch's operations."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", blemish.catalog.plain())
def test_a_call_makes_few_tensors(name: str) -> None:
    """Each costs a microsecond or two beside the pixels; most of these are views and the ends of random streams."""
    if compiled("noise") is None:
        pytest.skip("no numba, or no processor with AVX2")
    skip_without_files(blemish.catalog[name])
    image = digests.batch(1, 8, 8)[0]
    blemish.corrupt(image, name, 3, ids=7)  # tables are made the first time
    with Operations() as operations:
        blemish.corrupt(image, name, 3, ids=7)
    assert operations.count <= 16


def test_kernels_leave_with_the_function_they_stand_for() -> None:
    fog = blemish.catalog["fog"]
    assert fog.at_once is not None
    assert replace(fog, version=7).at_once == fog.at_once
    assert replace(fog, apply=blemish.catalog["snow"].apply).at_once is None
    assert replace(fog, draw=blemish.catalog["snow"].draw).at_once is None
    assert blemish.random_severity(fog).at_once == fog.at_once
    assert pickle.loads(pickle.dumps(fog)) == fog


def test_they_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLEMISH_COMPILED", "0")
    assert compiled("noise") is None


def test_everything_works_without_numba() -> None:
    """Numba cannot be imported; every corruption still runs, with the digests of those that have it."""
    code = (
        "import sys\n"
        "sys.modules['numba'] = None\n"
        "sys.path.insert(0, 'tests')\n"
        "import json, torch, blemish, digests\n"
        "torch.set_num_threads(1)\n"
        "for name in ('gaussian_noise', 'shot_noise', 'motion_blur', 'fog', 'pixelate', 'jpeg_compression'):\n"
        "    print(name, digests.of_unit(name))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line in result.stdout.splitlines():
        name, digest = line.split()
        assert digests.of_unit(name) == digest


def test_numba_is_not_imported_for_a_few_numbers() -> None:
    """Reading, scoring and small draws do not wait for a compiler."""
    code = (
        "import sys, torch, blemish\n"
        "from blemish.core.rng import CounterRng\n"
        "CounterRng(0, torch.arange(3)).normals('few', 5)\n"
        "blemish.catalog, blemish.load_benchmark('imagenet-c')\n"
        "print('numba' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
