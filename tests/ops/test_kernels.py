"""Fused kernels against the plain operations, on a GPU that has both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from blemish.corruptions.blur import motion_taps
from blemish.kernels import kernels_for
from blemish.models.base import Preprocessing
from blemish.ops.filters import gaussian_blur, line_blur
from blemish.ops.jpeg import jpeg_pillow, jpeg_torch
from blemish.ops.poisson import poisson_quantile
from blemish.ops.resample import mean_zoom
from blemish.ops.shuffle import shuffle_sources
from blemish.rng import Words


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


def test_without_triton_the_plain_operations_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLEMISH_FUSED", raising=False)
    if not torch.cuda.is_available():
        assert kernels_for(torch.device("cuda", 7)) is None


@pytest.mark.parametrize("side", [(16, 16), (33, 47), (31, 18), (224, 224), (9, 8)])
def test_jpeg(both, device: torch.device, side: tuple[int, int]) -> None:
    images = torch.randint(0, 256, (4, 3, *side), dtype=torch.uint8)
    quality = torch.tensor([7.0, 40.0, 85.0, 100.0], dtype=torch.float64)
    fused, plain = both(lambda: jpeg_torch(images.to(device), quality))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), jpeg_pillow(images, quality))


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 224, 224), (5001,)])
def test_random_words(both, device: torch.device, shape: tuple[int, ...]) -> None:
    fused, plain = both(lambda: Words(3, torch.arange(5), "x", device).raw("y", *shape))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), Words(3, torch.arange(5), "x").raw("y", *shape))


def test_many_images_are_no_trouble(both, device: torch.device) -> None:
    """More images than the second dimension of a grid of blocks can have."""
    fused, plain = both(lambda: Words(3, torch.arange(70_000), "x", device).raw("y", 4))
    assert torch.equal(fused, plain)


def test_glass(both, device: torch.device) -> None:
    moves = [torch.randint(-2, 2, (3, 2, 40, 31), dtype=torch.int8) for _ in range(2)]
    delta = torch.tensor([2, 2, 3])
    fused, plain = both(lambda: shuffle_sources(moves[0].to(device), moves[1].to(device), delta))
    assert torch.equal(fused, plain)
    assert torch.equal(fused.cpu(), shuffle_sources(moves[0], moves[1], delta))


def test_poisson(both, device: torch.device) -> None:
    """The same counts but for ranks within rounding of where one becomes the next."""
    rank = Words(0, torch.arange(2), "x").normals("rank", 3, 256, 256).to(device)
    mean = Words(0, torch.arange(2), "x").uniforms("mean", 3, 256, 256).to(device) * 20
    fused, plain = both(lambda: poisson_quantile(rank, mean, limit=20.0))
    assert (fused != plain).float().mean() < 1e-5
    assert (fused - plain).abs().max() <= 1


def test_zoom(both, device: torch.device) -> None:
    images = torch.rand(2, 3, 65, 50)
    factors = np.arange(1, 1.31, 0.02).tolist()
    fused, plain = both(lambda: mean_zoom(images.to(device), factors))
    assert (fused - plain).abs().max() < 2e-5
    assert (fused.cpu() - mean_zoom(images, factors)).abs().max() < 1e-6


def test_lines(both, device: torch.device) -> None:
    images = torch.rand(3, 3, 40, 33)
    taps = motion_taps(torch.tensor([5.0, 10.0, 3.0]), torch.tensor([3.0, 2.0, 3.0]), torch.tensor([10.0, -40.0, 30.0]))
    fused, plain = both(lambda: line_blur(images.to(device), *taps, reach=44))
    assert (fused - plain).abs().max() < 1e-5
    assert (fused.cpu() - line_blur(images, *taps, reach=44)).abs().max() < 1e-6


@pytest.mark.parametrize("border", ["replicate", "reflect"])
def test_gaussians(both, device: torch.device, border: str) -> None:
    images = torch.rand(3, 3, 40, 33)
    sigma = torch.tensor([0.7, 12.0, 1.5], dtype=torch.float64)
    fused, plain = both(lambda: gaussian_blur(images.to(device), sigma, border=border))
    assert (fused - plain).abs().max() < 1e-6
    alone = gaussian_blur(images[:1].to(device), sigma[:1], border=border)
    assert torch.equal(fused[:1], alone)


def test_normalising(both, device: torch.device) -> None:
    images = torch.randint(0, 256, (2, 3, 9, 10), dtype=torch.uint8)
    prepare = Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
    fused, plain = both(lambda: prepare(images.to(device)))
    assert (fused - plain).abs().max() < 1e-6
    assert (fused.cpu() - prepare(images)).abs().max() < 1e-6
