"""Compiled kernels against the plain operations beside them, bit for bit, and how threads share them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

import digests
from blemish.core.rng import CounterRng
from blemish.corruptions.cbar.spectral import Phases, shaped_noise, square_frequencies
from blemish.corruptions.imagenet_c.blur import motion_taps
from blemish.corruptions.laion.pieces import nearest_tiles
from blemish.ops.balls import exact_k_mask
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import Shared, shares, together
from blemish.ops.edges import drop_light
from blemish.ops.filters import Border, gaussian_blur, line_blur
from blemish.ops.jpeg import jpeg_pillow, jpeg_round_trip
from blemish.ops.layout import channels_first, channels_last
from blemish.ops.pillow import Filter, resized
from blemish.ops.resample import mean_zoom, pixelated
from blemish.ops.warp import bilinear, drawn_positions

Both = Callable[[Callable[[], Tensor]], tuple[Tensor, Tensor]]
SIZES = ((8, 9), (33, 47), (70, 41))


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    """Call something with the kernels and without them."""
    if compiled("words") is None:
        pytest.skip("no numba, or no processor with AVX2")

    def call(work: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
        made = work()
        monkeypatch.setenv("BLEMISH_COMPILED", "0")
        plain = work()
        monkeypatch.delenv("BLEMISH_COMPILED")
        return made, plain

    return call


def floats(height: int, width: int, channels: int = 3) -> Tensor:
    return digests.batch(3, height, width)[:, :channels] / 255


@pytest.mark.parametrize("size", [1, 7, 8, 4097, 4100])
def test_random_values(both: Both, size: int) -> None:
    rng = CounterRng(7, torch.tensor([0, -1, 2**62, 5]), "test")
    for kind in ("raw", "uniforms", "coarse_uniforms", "symmetric_uniforms", "normals"):
        made, plain = both(lambda kind=kind: getattr(rng, kind)("stream", size))
        assert torch.equal(made, plain), kind
    made, plain = both(lambda: rng.integers("stream", size, high=1000))
    assert torch.equal(made, plain)


@pytest.mark.parametrize("border", ["replicate", "reflect", "reflect101"])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_gaussians(both: Both, border: Border, height: int, width: int) -> None:
    """Radii of 0, within and beyond the sides in one batch, those of each image alone."""
    images = floats(height, width)
    sigma = torch.tensor([0.05, 1.3, 6.0], dtype=torch.float64)
    made, plain = both(lambda: gaussian_blur(images, sigma, border=border))
    assert torch.equal(made, plain)
    alone, _ = both(lambda: gaussian_blur(images[1:2], sigma[1:2], border=border))
    assert torch.equal(made[1:2], alone)


@pytest.mark.parametrize("kind", [torch.uint8, torch.float32, torch.float64])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_bilinear(both: Both, height: int, width: int, kind: torch.dtype) -> None:
    """Positions inside, at the border, outside, whole ones; and rows and columns that broadcast."""
    images = digests.batch(3, height, width).to(kind)
    rng = torch.Generator().manual_seed(0)
    rows, columns = (torch.rand(3, 20, 21, generator=rng, dtype=torch.float64) * (n + 6) - 3 for n in (height, width))
    rows[0, :10], columns[0, :10] = rows[0, :10].round(), columns[0, :10].round()
    for y, x in ((rows, columns), (rows[:, :, :1], columns[:1])):
        made, plain = both(lambda y=y, x=x: bilinear(images, y, x))
        assert torch.equal(made, plain)


@pytest.mark.parametrize("kind", get_args(Filter))
@pytest.mark.parametrize(("height", "width"), [*SIZES, (1, 1)])
def test_resized(both: Both, height: int, width: int, kind: Filter) -> None:
    """Larger, smaller, as large along one side; black and white pixels, between which bicubic weights overshoot."""
    images = digests.batch(3, height, width)
    images[0] = (images[0] > 127) * 255
    for size in ((5, 4), (height, 12), (64, width), (200, 123)):
        made, plain = both(lambda size=size: resized(images, *size, kind))
        assert torch.equal(made, plain)


def test_nearest_tiles_of_equal_distance(both: Both) -> None:
    """Tiles of one colour occur several times: the first one counts, wherever it lies."""
    tiles = torch.tensor([[9, 0, 0], [0, 9, 0], [9, 0, 0], [5, 5, 5], [0, 9, 0]], dtype=torch.uint8)
    tiles = tiles[:, :, None, None].repeat(1, 1, 2, 2)
    colours = torch.tensor([[9, 1, 0], [0, 9, 0], [6, 2, 0], [4, 5, 4], [255, 255, 255]], dtype=torch.uint8)
    made, plain = both(lambda: nearest_tiles(colours.T.reshape(1, 3, 1, 5), tiles))
    assert made.tolist() == plain.tolist() == [0, 1, 0, 3, 3]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_lines(both: Both, height: int, width: int) -> None:
    radius, sigma = torch.tensor([3.0, 10, 15], dtype=torch.float64), torch.tensor([1.0, 5, 8], dtype=torch.float64)
    taps = motion_taps(radius, sigma, torch.tensor([-44.0, 0.0, 31.5], dtype=torch.float64))
    made, plain = both(lambda: line_blur(floats(height, width, 1), *taps, reach=32))
    assert torch.equal(made, plain)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_drawn_affine_maps(both: Both, height: int, width: int) -> None:
    """In double precision, before they are rounded to whole positions: moves of all sizes, and none."""
    moves = np.random.default_rng(0).uniform(-1, 1, (500, 3, 2)).astype(np.float32)
    strength = np.linspace(0, min(height, width) / 4, 500)
    for part in (0, 1):
        made, plain = both(lambda part=part: torch.from_numpy(drawn_positions(moves, strength, height, width)[part]))
        assert torch.equal(made, plain)
    assert made[0, 0].tolist() == [0] * height
    assert made[0, 1].tolist() == [1024 * y for y in range(height)]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_enlargements(both: Both, height: int, width: int) -> None:
    made, plain = both(lambda: mean_zoom(floats(height, width), [1.0, 1.03, 1.5, 4.7]))
    assert torch.equal(made, plain)


@pytest.mark.parametrize(("height", "width"), SIZES)
@pytest.mark.parametrize("small", [(1, 1), (3, 5), (8, 9)])
def test_boxes(both: Both, height: int, width: int, small: tuple[int, int]) -> None:
    made, plain = both(lambda: pixelated(digests.batch(2, height, width), *small))
    assert torch.equal(made, plain)


@pytest.mark.parametrize(("height", "width"), [*SIZES, (16, 16), (15, 31)])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_is_the_codecs(height: int, width: int, channels: int) -> None:
    """Every quality, with pictures and with noise; the codec is libjpeg-turbo, by way of Pillow."""
    if compiled("jpeg") is None:
        pytest.skip("no numba, or no processor with AVX2")
    quality = torch.arange(1, 101)
    noise = np.random.default_rng(0).integers(0, 256, (100, 3, height, width), dtype=np.uint8)
    for images in (digests.batch(100, height, width), torch.from_numpy(noise)):
        levels = images[:, :channels]
        assert torch.equal(jpeg_round_trip(levels, quality), jpeg_pillow(levels, quality))


@pytest.mark.parametrize(("height", "width"), [*SIZES, (2, 3), (90, 131)])
def test_light_on_drops(both: Both, height: int, width: int) -> None:
    """Noise has edges everywhere, a smooth field has outlines, specks have neither; one after the other in one call."""
    rng = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 256, (1, 1, height, width), generator=rng)
    field = gaussian_blur(torch.randn(2, 1, height, width, generator=rng), torch.tensor([4.0, 1.5]).double())
    specks = 200 * (torch.rand(1, 1, height, width, generator=rng) > 0.98)
    drops = (200 + 400 * field).clamp(0, 255) * (field > 0.05)
    layers = torch.cat([noise, drops, specks, torch.zeros_like(noise), noise]).to(torch.int16)
    made, plain = both(lambda: drop_light(layers))
    assert torch.equal(made, plain)


@pytest.mark.parametrize("fields", [1, 3])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_noise_with_a_spectrum(both: Both, height: int, width: int, fields: int) -> None:
    """The same doubles, not only the same levels; five planes at a time leave some over."""
    phases = Phases(6.3 * torch.rand(5, fields, height, -(-width // 2), generator=torch.Generator().manual_seed(0)))
    weight = square_frequencies(floats(height, width)).sqrt_()
    made, plain = both(lambda: shaped_noise(phases, weight))
    assert torch.equal(made, plain)


def test_few_places(both: Both) -> None:
    rng = CounterRng(3, torch.arange(4), "test")
    count = torch.tensor([0, 1, 700, 2000])
    made, plain = both(lambda: exact_k_mask(rng, count, 40, 50))
    assert torch.equal(made, plain)
    assert made.flatten(1).sum(1).tolist() == count.tolist()


def test_layouts() -> None:
    levels = digests.batch(2, 11, 13).numpy()
    last = channels_last(levels)
    assert np.array_equal(last, levels.transpose(0, 2, 3, 1))
    assert np.array_equal(channels_first(last), levels)
    assert np.array_equal(channels_first(last[:, ::-1]), levels[:, :, ::-1])
    assert np.array_equal(channels_last(levels[:, :1]), levels[:, :1].transpose(0, 2, 3, 1))


def test_shares_of_a_batch() -> None:
    torch.set_num_threads(3)
    try:
        assert [(part.start, part.stop) for part in shares(8)] == [(0, 2), (2, 5), (5, 8)]
        assert len([*shares(2)]) == 2
        assert [(part.start, part.stop) for part in shares(8, 2)] == [(0, 2), (2, 4), (4, 6), (6, 8)]
        assert [part.stop for part in shares(8, 100)] == [part.stop for part in shares(8)]
        done: list[int] = []
        together([lambda number=number: done.append(number) for number in range(7)])
        assert sorted(done) == [*range(7)]
        with pytest.raises(ZeroDivisionError):
            together([lambda: None, lambda: 1 // 0])  # type: ignore[list-item]
    finally:
        torch.set_num_threads(1)


def test_a_thread_that_is_busy_is_not_waited_for() -> None:
    torch.set_num_threads(2)
    begun, end = threading.Semaphore(0), threading.Event()

    def slow() -> None:
        begun.release()
        assert end.wait(60)

    other = threading.Thread(target=together, args=([slow, slow],))
    other.start()
    try:
        assert begun.acquire(timeout=60)
        assert begun.acquire(timeout=60)  # the other caller and the thread that helps it
        done: list[int] = []
        together([lambda number=number: done.append(number) for number in range(3)])
        assert done == [0, 1, 2]
        assert other.is_alive()
    finally:
        torch.set_num_threads(1)
        end.set()
        other.join()


def test_what_a_helping_thread_raises_is_raised() -> None:
    torch.set_num_threads(2)
    begun, here = threading.Event(), threading.current_thread()

    def work() -> None:
        if threading.current_thread() is not here:
            begun.set()
            raise KeyError("helper")
        assert begun.wait(60)

    try:
        with pytest.raises(KeyError, match="helper"):
            together([work, work])
        together([lambda: None] * 5)  # and it still waits for calls
    finally:
        torch.set_num_threads(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import os, threading, torch\n"
        "from blemish.ops.compiled.threads import together\n"
        "torch.set_num_threads(2)\n"
        "def both():\n"
        "    meeting = threading.Barrier(2, timeout=60)\n"
        "    together([meeting.wait, meeting.wait])\n"
        "both()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    both()\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_threads_share_a_kernel() -> None:
    """Each image is worked on once, with its own row of every argument, or its column of keys."""
    if compiled("words") is None:
        pytest.skip("no numba, or no processor with AVX2")
    from blemish.ops.compiled.jit import kernel, shareable

    @shareable("table")
    def pick(levels, out, keys, table):  # type: ignore[no-untyped-def]
        for image in range(len(levels)):
            out[image] += table[keys[1, image]] * levels[image]

    kernels = SimpleNamespace(pick=pick, alone=kernel(lambda levels: levels))
    levels, table = np.arange(37), np.arange(10, 20)
    keys = np.stack([np.zeros(37, np.int32), np.arange(37, dtype=np.int32) % 10])
    out = np.zeros(37, np.int64)
    torch.set_num_threads(3)
    try:
        Shared(kernels).pick(levels, out, keys, table)
        with pytest.raises(AssertionError, match="cannot be shared"):
            Shared(kernels).alone(levels)
    finally:
        torch.set_num_threads(1)
    assert out.tolist() == [(10 + number % 10) * number for number in range(37)]
    with pytest.raises(AssertionError, match="tables"):
        shareable("tables")(lambda levels: levels)
