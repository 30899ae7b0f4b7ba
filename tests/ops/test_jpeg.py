"""The JPEG round trip: both paths against Pillow's own files, and against the reference's recorded pictures.

The torch path claims the codec's integers bit for bit, so every comparison here is for equality. Expected values come
from the Pillow that is installed (libjpeg-turbo in its wheels) or from the recordings, of which ``tests/golden`` has a
part and a README that says how the reference's pixels were recorded; nothing is stored in this file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin
from torch import Tensor

import blemish
from blemish.ops import jpeg
from blemish.ops.jpeg import jpeg_pillow, jpeg_round_trip, jpeg_torch, quantisation_tables

RoundTrip = Callable[[Tensor, Tensor], Tensor]
QUALITIES = (1, 5, 7, 10, 15, 18, 25, 40, 49, 50, 51, 65, 75, 80, 85, 90, 95, 100)
SIZES = ((8, 8), (31, 57), (224, 160), (17, 9), (9, 17), (10, 26), (33, 18))


def photo(height: int, width: int, seed: int = 0) -> Tensor:
    """A procedural picture (3, H, W) with what photographs have: shading, soft texture, hard edges, noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / max(height, width)
    picture = 90 + 120 * (x * rng.uniform(-1, 1, (3, 1, 1)) + y * rng.uniform(-1, 1, (3, 1, 1)))
    for channel in range(3):
        for frequency in (3, 8, 21, 55):
            angle, phase = rng.uniform(0, 2 * np.pi, 2)
            picture[channel] += (
                60 / frequency**0.5 * np.sin(frequency * (x * np.cos(angle) + y * np.sin(angle)) * 6 + phase)
            )
    for _ in range(6):
        inside = (x - rng.uniform()) ** 2 + (y - rng.uniform()) ** 2 < rng.uniform(0.05, 0.3) ** 2
        picture[:, inside] = 0.4 * picture[:, inside] + rng.uniform(0, 160, (3, 1))
    picture += rng.normal(0, 6, picture.shape)
    return torch.from_numpy(picture.clip(0, 255).astype(np.uint8))


def harsh(height: int, width: int) -> Tensor:
    """Independent black or white samples: coefficients of every size, and values far outside 0 … 255 after decoding."""
    bits = np.random.default_rng(7).integers(0, 2, (3, height, width), dtype=np.uint8)
    return torch.from_numpy(bits * np.uint8(255))


def pillow_file(image: Tensor, quality: int) -> JpegImagePlugin.JpegImageFile:
    """The plain way through Pillow, as the reference goes: an interleaved array, save, open."""
    array = image[0].numpy() if len(image) == 1 else np.ascontiguousarray(image.permute(1, 2, 0).numpy())
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "JPEG", quality=quality)
    file = Image.open(buffer)
    assert isinstance(file, JpegImagePlugin.JpegImageFile)
    return file


def by_pillow(image: Tensor, quality: int) -> Tensor:
    pixels = torch.from_numpy(np.array(pillow_file(image, quality)))
    return pixels[None] if len(image) == 1 else pixels.permute(2, 0, 1)


def constant(images: Tensor, quality: int) -> Tensor:
    return torch.full((len(images),), quality)


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("channels", [1, 3])
def test_torch_equals_pillow(quality: int, channels: int) -> None:
    images = torch.stack((photo(112, 144), photo(112, 144, seed=1), harsh(112, 144)))[:, :channels]
    expected = torch.stack([by_pillow(image, quality) for image in images])
    assert torch.equal(jpeg_torch(images, constant(images, quality)), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("path", [jpeg_torch, jpeg_pillow, jpeg_round_trip])
def test_sizes_that_do_not_fill_blocks(path: RoundTrip, size: tuple[int, int], channels: int) -> None:
    image = photo(*size)[:channels]
    for quality in (5, 30, 90):
        out = path(image[None], torch.tensor([quality]))
        assert out.dtype == torch.uint8
        assert out.is_contiguous()
        assert torch.equal(out[0], by_pillow(image, quality))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(8, 40), st.integers(8, 40), st.integers(1, 100), st.integers(0, 2**20))
def test_torch_equals_pillow_anywhere(height: int, width: int, quality: int, seed: int) -> None:
    image = photo(height, width, seed)
    assert torch.equal(jpeg_torch(image[None], torch.tensor([quality]))[0], by_pillow(image, quality))


@pytest.mark.parametrize("path", [jpeg_torch, jpeg_pillow])
@pytest.mark.parametrize("channels", [1, 3])
def test_one_quality_per_image(path: RoundTrip, channels: int) -> None:
    images = torch.stack([photo(50, 42, seed)[:channels] for seed in range(5)])
    quality = torch.tensor([90.0, 7.0, 49.0, 7.0, 100.0], dtype=torch.float64)
    together = path(images, quality)
    apart = torch.cat([path(images[i : i + 1], quality[i : i + 1]) for i in range(len(images))])
    assert torch.equal(together, apart)


@pytest.mark.parametrize("path", [jpeg_torch, jpeg_pillow])
def test_memory_layout_does_not_matter_and_input_is_kept(path: RoundTrip) -> None:
    images = torch.stack((photo(32, 48), photo(32, 48, seed=1)))
    before, quality = images.clone(), torch.tensor([20, 60])
    expected = path(images, quality)
    assert torch.equal(images, before)
    assert torch.equal(path(images.to(memory_format=torch.channels_last), quality), expected)


def test_quantisation_tables_are_those_in_the_file() -> None:
    tables = quantisation_tables(torch.arange(1, 101))
    for quality in range(1, 101):
        written = pillow_file(photo(16, 16), quality).quantization
        assert tables[quality - 1].tolist() == [list(written[0]), list(written[1])]


def test_every_sum_fits_float32() -> None:
    """Worst cases by the triangle inequality, in the unit of each sum; 2²⁴ is where float32 stops being exact.

    Inputs of the four passes: levels; rows of eight levels of ±128, times 4; coefficients of at most 1024 plus half a
    step of 255; and columns of those, bounded by Parseval's identity for the coefficients (4 · √8 · 1024) and entry by
    entry for the steps (4 · 7.5 · 127.5), plus the level shift of 4096.
    """
    constants = jpeg._constants(torch.device("cpu"))
    largest_inputs = (255, 4097, 1152, 19510)
    for largest, step in zip(largest_inputs, (*constants.forward, *constants.inverse), strict=True):
        carry = (step.low.abs().sum(0) * largest + step.offset.abs()).max().item()
        total = (step.high.abs().sum(0) * largest).max().item() + carry * step.scale
        assert carry / 2.0**-7 < 2**24
        assert total / step.scale < 2**24


def test_fifteen_bits_round_red_as_sixteen_do() -> None:
    """The one colour constant of the decoder that is odd at 16 bits: round(1.402 · 2¹⁶) = 91881."""
    chroma = np.arange(-128, 128)
    narrow = int(jpeg._TO_RGB[0][2])
    assert np.array_equal((narrow * chroma + 2**14) >> 15, (91881 * chroma + 2**15) >> 16)


def published_quality(preset: str, severity: float) -> int:
    """Between severities as in CCC: linear from quality 85 at severity 0, then rounded to the nearest whole number."""
    rows = [row[0] for row in blemish.catalog["jpeg_compression"].table.rows[preset]]
    return round(float(np.interp(severity, range(6), rows)))


@pytest.mark.parametrize(
    ("name", "preset"), [("imagenet_c_224", "imagenet"), ("cifar_c_32", "cifar"), ("ccc_224", "imagenet")]
)
def test_golden_pictures(recordings: Path, name: str, preset: str) -> None:
    file = recordings / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"all recordings are not beside this checkout, and the small part of them has no {file.name}")
    checked = 0
    with np.load(file) as arrays:
        for key in arrays.files:
            corruption, *rest = key.split("|")
            if corruption == "jpeg_compression":
                severity, number, _ = rest
                clean, expected = (planar(arrays[k]) for k in (f"image|{number}", key))
                quality = torch.tensor([published_quality(preset, float(severity))])
                assert torch.equal(jpeg_torch(clean, quality), expected), key
                assert torch.equal(jpeg_pillow(clean, quality), expected), key
                checked += 1
    assert checked >= 1


def planar(image: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(image).permute(2, 0, 1)[None].contiguous()
