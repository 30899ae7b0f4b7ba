"""Fused kernels against the plain operations, on a GPU that has both."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

from blemish.core.rng import CounterRng
from blemish.corruptions.imagenet_c.blur import motion_taps
from blemish.models.base import Preprocessing
from blemish.ops.edges import _connected, canny
from blemish.ops.filters import gaussian_blur, line_blur
from blemish.ops.fused import _say_plain, kernels_for
from blemish.ops.fused.on_device import kept, on_its_device, sent
from blemish.ops.grid import Grid
from blemish.ops.jpeg import jpeg_pillow, jpeg_torch
from blemish.ops.poisson import poisson_quantile
from blemish.ops.rank import median_filter


@pytest.fixture
def both(device: torch.device, monkeypatch: pytest.MonkeyPatch):
    """Call something with the kernels and without them."""
    if kernels_for(device) is None:
        pytest.skip("no Triton that works here")

    def call(work):
        fused = work()
        monkeypatch.setenv("BLEMISH_FUSED", "0")
        plain = work()
        monkeypatch.delenv("BLEMISH_FUSED")
        return fused, plain

    return call


def test_a_cpu_has_no_kernels() -> None:
    assert kernels_for(torch.device("cpu")) is None


def test_they_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLEMISH_FUSED", "0")
    assert kernels_for(torch.device("cuda")) is None


def test_they_run_where_their_first_tensor_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton launches on the current device, which with several GPUs may be another."""
    entered: list[torch.Tensor] = []

    def device_of(tensor: torch.Tensor) -> contextlib.AbstractContextManager[None]:
        entered.append(tensor)
        return contextlib.nullcontext()

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    images = torch.ones(2)
    assert on_its_device(lambda first, second, third=0: first + second + third)(images, 2, third=3).tolist() == [6, 6]
    assert entered[0] is images


def test_without_triton_the_plain_operations_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLEMISH_FUSED", raising=False)
    if not torch.cuda.is_available():
        assert kernels_for(torch.device("cuda", 7)) is None


def test_what_is_not_fused_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """On GPUs of other vendors, and without a word on a CPU, where nobody expects it."""
    _say_plain.cache_clear()
    with caplog.at_level("WARNING", logger="blemish.ops.fused"):
        assert [kernels_for(torch.device(kind)) for kind in ("mps", "xpu", "mps", "cpu")] == [None] * 4
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("no fused kernels on mps")
    assert said[1].startswith("no fused kernels on xpu")


def test_arrays_are_sent_in_one_copy() -> None:
    """Shapes and values stay, in four bytes each, and every array begins at a multiple of 16 bytes."""
    arrays = [np.arange(6).reshape(2, 3).T, np.array([0.1, 2.5]), np.array([True, False]), np.zeros((0, 4))]
    there = sent(torch.zeros(1), *arrays)
    assert [tensor.dtype for tensor in there] == [torch.int32, torch.float32, torch.int32, torch.float32]
    for tensor, array in zip(there, arrays, strict=True):
        assert tensor.shape == array.shape
        assert tensor.storage_offset() % 4 == 0
        assert np.allclose(tensor.numpy(), array.astype(np.float32))


def test_constants_stay_on_a_device() -> None:
    table, like = np.arange(5.0), torch.zeros(1)
    assert kept(like, table) is kept(like, table)
    assert kept(like, table.copy()) is not kept(like, table)
    assert kept(like, table).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("side", [(16, 16), (33, 47), (31, 18), (224, 224), (9, 8)])
def test_jpeg(both, device: torch.device, side: tuple[int, int]) -> None:
    images = torch.randint(0, 256, (4, 3, *side), dtype=torch.uint8)
    quality = torch.tensor([7.0, 40.0, 85.0, 100.0], dtype=torch.float64)
    fused, plain = both(lambda: jpeg_torch(images.to(device), quality))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), jpeg_pillow(images, quality))


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 224, 224), (5001,)])
def test_random_words(both, device: torch.device, shape: tuple[int, ...]) -> None:
    fused, plain = both(lambda: CounterRng(3, torch.arange(5), "x", device).raw("y", *shape))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), CounterRng(3, torch.arange(5), "x").raw("y", *shape))


def test_many_images_are_no_trouble(both, device: torch.device) -> None:
    """More images than the second dimension of a grid of blocks can have."""
    fused, plain = both(lambda: CounterRng(3, torch.arange(70_000), "x", device).raw("y", 4))
    assert torch.equal(fused, plain)


def test_poisson(both, device: torch.device) -> None:
    """The same counts but for ranks within rounding of where one becomes the next."""
    rank = CounterRng(0, torch.arange(2), "x").normals("rank", 3, 256, 256).to(device)
    mean = CounterRng(0, torch.arange(2), "x").uniforms("mean", 3, 256, 256).to(device) * 20
    fused, plain = both(lambda: poisson_quantile(rank, mean, limit=20.0))
    assert (fused != plain).float().mean() < 1e-5
    assert (fused - plain).abs().max() <= 1


def test_lines(both, device: torch.device) -> None:
    images = torch.rand(3, 3, 40, 33)
    taps = motion_taps(torch.tensor([5.0, 10.0, 3.0]), torch.tensor([3.0, 2.0, 3.0]), torch.tensor([10.0, -40.0, 30.0]))
    fused, plain = both(lambda: line_blur(images.to(device), *taps, reach=44))
    assert (fused - plain).abs().max() < 1e-5
    assert (fused.cpu() - line_blur(images, *taps, reach=44)).abs().max() < 1e-6


@pytest.mark.parametrize("border", ["replicate", "reflect", "reflect101"])
def test_gaussians(both, device: torch.device, border: str) -> None:
    images = torch.rand(3, 3, 40, 33)
    sigma = torch.tensor([0.7, 8.0, 1.5], dtype=torch.float64)
    fused, plain = both(lambda: gaussian_blur(images.to(device), sigma, border=border))
    assert (fused - plain).abs().max() < 1e-6
    assert torch.equal(fused.cpu(), gaussian_blur(images, sigma, border=border))
    alone = gaussian_blur(images[:1].to(device), sigma[:1], border=border)
    assert torch.equal(fused[:1], alone)


def test_normalising(both, device: torch.device) -> None:
    images = torch.randint(0, 256, (2, 3, 9, 10), dtype=torch.uint8)
    prepare = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
    fused, plain = both(lambda: prepare(images.to(device)))
    assert (fused - plain).abs().max() < 1e-6
    assert (fused.cpu() - prepare(images)).abs().max() < 1e-6


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 10, 11])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (11, 3, 31, 18), (2, 1, 9, 300), (43, 3, 8, 8), (5, 3, 224, 224)])
def test_medians(both, device: torch.device, shape: tuple[int, ...], radius: int) -> None:
    """Fewer planes than a word has bits, and more; windows larger than the image."""
    images = torch.randint(0, 256, shape, dtype=torch.uint8)
    images[..., ::2] //= 64
    fused, plain = both(lambda: median_filter(images.to(device), radius))
    assert torch.equal(fused, plain)
    if images.numel() < 10**5:
        assert torch.equal(fused.cpu(), median_filter(images, radius))


@pytest.mark.parametrize("radius", [16, 44, 45])
def test_large_medians(both, device: torch.device, radius: int) -> None:
    """Up to the largest window the kernel takes, and one beyond."""
    images = torch.randint(0, 256, (2, 3, 50, 33), dtype=torch.uint8)
    fused, plain = both(lambda: median_filter(images.to(device), radius))
    assert torch.equal(fused, plain)


def test_medians_worked_by_hand(both, device: torch.device) -> None:
    """Of 0 … 24 the middle one is 12; with edges repeated, the corner has 0 four times, 1 and 5 twice, and 6."""
    images = torch.arange(25, dtype=torch.uint8, device=device).view(1, 1, 5, 5)
    fused, _ = both(lambda: [median_filter(images, radius)[0, 0] for radius in (1, 2)])
    assert fused[0][0, 0] == 1
    assert fused[1][2, 2] == 12


def spiral(side: int) -> tuple[torch.Tensor, tuple[int, int]]:
    """A path one pixel wide from the upper left corner inwards, a pixel between its turns, and where it ends."""
    taken = np.zeros((side + 4, side + 4), bool)
    taken[[0, -1]] = taken[:, [0, -1]] = taken[2, 2] = True
    row, column, down, right, turns = 2, 2, 0, 1, 0
    while turns < 2:
        if taken[row + down, column + right] or taken[row + 2 * down, column + 2 * right]:
            down, right, turns = right, -down, turns + 1
        else:
            row, column, turns = row + down, column + right, 0
            taken[row, column] = True
    return torch.from_numpy(taken[2:-2, 2:-2].copy()), (row - 2, column - 2)


def joined(strong: torch.Tensor, weak: torch.Tensor) -> torch.Tensor:
    """The weak pixels of (B, H, W) masks that hang on strong ones."""
    grid = Grid(weak[:, None])
    planes = [grid.at(grid.load(grid.plane(0, "bool"), mask[:, None])) for mask in (strong, weak)]
    return grid.images(_connected(grid, *planes))[:, 0]


def test_a_spiral_hangs_on_either_end(both, device: torch.device) -> None:
    path, end = spiral(224)
    weak = torch.stack([path, path, path, path.flip(0), path.T]).to(device)
    strong = torch.zeros_like(weak)
    strong[0, 0, 0] = strong[3, -1, 0] = True
    strong[1][end] = strong[4][end[::-1]] = True
    fused, plain = both(lambda: joined(strong, weak))
    assert torch.equal(fused, plain)
    weak[2] = False
    assert torch.equal(fused, weak)


@pytest.mark.parametrize("side", [(1, 1), (8, 8), (31, 57), (1, 300), (300, 1), (224, 224)])
@pytest.mark.parametrize("share", [0, 0.2, 0.4, 0.5, 0.7, 1])
def test_regions(both, device: torch.device, side: tuple[int, int], share: float) -> None:
    """Chance masks around the share at which regions first cross an image, which makes them long and winding."""
    weak = torch.rand(6, *side) < share
    strong = weak & (torch.rand(6, *side) < torch.tensor([0, 0.001, 0.01, 0.05, 0.3, 1]).view(-1, 1, 1))
    fused, plain = both(lambda: joined(strong.to(device), weak.to(device)))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), joined(strong, weak))


def test_edges(both, device: torch.device) -> None:
    levels = torch.randint(0, 256, (20, 1, 14, 14), dtype=torch.uint8).repeat_interleave(16, 2).repeat_interleave(16, 3)
    levels += torch.randint(0, 30, levels.shape, dtype=torch.uint8)
    fused, plain = both(lambda: canny(levels.to(device)))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), canny(levels))
    assert fused.any()
