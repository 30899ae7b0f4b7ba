"""A baseline JPEG round trip: what encoding with 4:2:0 chroma and decoding does to 8-bit pictures.

Entropy coding is lossless, so the loss is all in colour conversion, chroma resampling, the DCT and quantisation. The
torch path performs the integer arithmetic of the codec (the JFIF colour equations, the IJG quality scale and the
"accurate integer" DCT, the defaults of libjpeg 6 and libjpeg-turbo) in float32 without ever rounding: every partial sum
is a whole number below 2²⁴ in some power-of-two unit. Its result therefore depends neither on the order of summation
nor on the device, and equals the codec's bit for bit.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shares, together
from blemish.ops.distinct import distinct
from blemish.ops.fused import fused
from blemish.ops.levels import empty_like
from blemish.ops.transfer import to_device

# The example tables of ITU-T T.81, annex K.1 and K.2, which the IJG quality scale multiplies.
_LUMA = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
_CHROMA = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)

# Left half of √8 · (orthonormal DCT matrix) · 2¹³, rows by frequency; the right half mirrors it with alternating sign.
# Entries of equal size differ by a unit here and there because the codec's flow graph (Loeffler, Ligtenberg and
# Moschytz, 1989) adds up rounded constants; its inverse transform sums to exactly the transpose.
_HALF_BASIS = (
    (8192, 8192, 8192, 8192),
    (11363, 9633, 6437, 2260),
    (10703, 4433, -4433, -10703),
    (9633, -2259, -11362, -6436),
    (8192, -8192, -8192, 8192),
    (6437, -11362, 2261, 9633),
    (4433, -10704, 10704, -4433),
    (2260, -6436, 9633, -11363),
)

# 2¹⁶ · (RGB to YCbCr). Offsets: half a unit to round; chroma is centred at 128 and the codec rounds it one unit lower.
_TO_YCC = ((19595, 38470, 7471), (-11059, -21709, 32768), (32768, -27439, -5329))
_TO_YCC_OFFSET = (32768, (128 << 16) + 32767, (128 << 16) + 32767)

# 2¹⁵ · (YCbCr to RGB). The codec has 16 bits, of which the last never decides a rounding; float32 has no room for it.
_TO_RGB = ((32768, 0, 45941), (32768, -11277, -23401), (32768, 58065, 0))

# Matrices are applied in two parts, 2⁷ · high + low, because their sums need up to 28 bits.
_SPLIT = 7

# Enough to push a quotient off the tie between two whole numbers, too little to carry any other across (values < 2¹⁴).
_AWAY_FROM_ZERO = 1 + 2.0**-16


class _Pass(NamedTuple):
    """⌊(x · matrix + offset) / 2ˢʰⁱᶠᵗ⌋ for flattened 8×8 blocks, in parts that float32 holds exactly."""

    low: Tensor
    high: Tensor
    offset: Tensor
    scale: float

    def __call__(self, blocks: Tensor) -> Tensor:
        carry = torch.addmm(self.offset, blocks, self.low).floor_()
        return carry.addmm_(blocks, self.high, beta=self.scale).floor_()


class _Constants(NamedTuple):
    forward: tuple[_Pass, _Pass]
    inverse: tuple[_Pass, _Pass]
    base_tables: Tensor
    to_ycc: Tensor
    to_ycc_offset: Tensor
    to_rgb: Tensor
    halving_offset: Tensor
    doubling_offset: Tensor


def _float32(whole: object, device: torch.device) -> Tensor:
    return torch.as_tensor(whole, dtype=torch.float32, device=device)


def _pass(matrix: Tensor, shift: int, offset: Tensor, device: torch.device) -> _Pass:
    high = (matrix + 2 ** (_SPLIT - 1)) >> _SPLIT
    low = matrix - (high << _SPLIT)
    scale = 2.0 ** (_SPLIT - shift)
    return _Pass(
        low=_float32(low, device) * 2.0**-_SPLIT,
        high=_float32(high, device) * scale,
        offset=_float32(offset + 2 ** (shift - 1), device) * 2.0**-_SPLIT,
        scale=scale,
    )


@lru_cache(maxsize=16)
def _constants(device: torch.device) -> _Constants:
    half = torch.tensor(_HALF_BASIS)
    sign = torch.tensor((1, -1) * 4)[:, None]
    basis = torch.cat((half, sign * half.flip(1)), 1)
    one = torch.eye(8, dtype=torch.int64)
    # Levels are shifted by 128, which only the lowest frequency of each row sees: 128 · 8 · 2¹³.
    shift = torch.zeros(8, 8, dtype=torch.int64)
    shift[:, 0] = 2**23
    level, none = shift.flatten(), torch.zeros(64, dtype=torch.int64)
    # Shifts are the codec's: it keeps two fractional bits between the passes and three on its coefficients.
    return _Constants(
        forward=(
            _pass(torch.kron(one, basis.T.contiguous()), 11, -level, device),
            _pass(torch.kron(basis.T.contiguous(), one), 15, none, device),
        ),
        inverse=(
            _pass(torch.kron(basis, one), 11, level, device),
            _pass(torch.kron(one, basis), 18, none, device),
        ),
        base_tables=torch.tensor((_LUMA, _CHROMA), device=device).view(2, 64),
        to_ycc=_float32(_TO_YCC, device) * 2.0**-16,
        to_ycc_offset=_float32(_TO_YCC_OFFSET, device).view(1, 3, 1) * 2.0**-16,
        to_rgb=_float32(_TO_RGB, device) * 2.0**-15,
        halving_offset=_float32((1, 2), device) / 4,
        doubling_offset=_float32((8, 7), device) / 16 - 128,
    )


def quantisation_tables(quality: Tensor) -> Tensor:
    """The luma and chroma tables (B, 2, 64) for whole qualities of 1 … 100, row by row, as int64."""
    quality = quality.to(torch.int64).clamp(1, 100).view(-1, 1, 1)
    percent = torch.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    return ((_constants(quality.device).base_tables * percent + 50) // 100).clamp_(1, 255)


@lru_cache(maxsize=128)
def _table(quality: int) -> NDArray[np.int32]:
    return quantisation_tables(torch.tensor([quality], device="cpu"))[0].to(torch.int32).numpy()


def _extend(images: Tensor, height: int, width: int) -> Tensor:
    """Repeat the last row and column up to the given size."""
    for dim, size in ((-2, height), (-1, width)):
        if images.shape[dim] < size:
            index = torch.arange(size, device=images.device).clamp_(max=images.shape[dim] - 1)
            images = images.index_select(dim, index)
    return images


def _ceil(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _code(planes: Tensor, table: Tensor) -> Tensor:
    """Planes (B, C, H, W) of whole numbers through DCT, quantisation and back, with one (B, 64) table per image."""
    batch, channels, height, width = planes.shape
    grid = _extend(planes, _ceil(height, 8), _ceil(width, 8))
    grid = grid.view(batch, channels, grid.shape[2] // 8, 8, grid.shape[3] // 8, 8).transpose(3, 4)
    constants = _constants(planes.device)
    coefficients = constants.forward[1](constants.forward[0](grid.reshape(-1, 64))).view(batch, -1, 64)
    steps = table.view(batch, 1, 64).to(torch.float32)
    coefficients.mul_(_AWAY_FROM_ZERO / (8 * steps)).round_().mul_(steps)
    levels = constants.inverse[1](constants.inverse[0](coefficients.view(-1, 64))).clamp_(0, 255)
    tiles = levels.view(grid.shape).transpose(3, 4)
    return tiles.reshape(batch, channels, tiles.shape[2] * 8, -1)[..., :height, :width]


def _halve(chroma: Tensor) -> Tensor:
    """Means of 2×2 samples; halves are rounded down and up in alternate columns, so that no bias builds up."""
    offset = _constants(chroma.device).halving_offset.repeat(chroma.shape[-1] // 4)
    return functional.avg_pool2d(chroma, 2).add_(offset).floor_()


def _double_centred(chroma: Tensor) -> Tensor:
    """Chroma at twice the size by the triangle filter (weights 9, 3, 3, 1 of 16), and centred for the colour matrix."""
    offset = _constants(chroma.device).doubling_offset.repeat(chroma.shape[-1])
    return functional.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False).add_(offset).floor_()


def _code_colour(levels: Tensor, tables: Tensor) -> Tensor:
    batch, _, height, width = levels.shape
    rows, columns = _ceil(height, 2), _ceil(width, 2)
    constants = _constants(levels.device)
    # Columns are repeated before chroma is halved, rows after: the codec works in strips of rows.
    padded = _extend(levels, rows, _ceil(width, 16)).to(torch.float32)
    ycc = (constants.to_ycc @ padded.flatten(2)).add_(constants.to_ycc_offset).floor_().view(padded.shape)
    chroma = _code(_halve(ycc[:, 1:]), tables[:, 1])[..., : columns // 2]
    out = ycc.new_empty(batch, 3, rows, columns)
    # The half rounds all three colours.
    torch.add(_code(ycc[:, :1], tables[:, 0])[..., :columns], 0.5, out=out[:, :1])
    out[:, 1:] = _double_centred(chroma)
    return (constants.to_rgb @ out.flatten(2)).clamp_(0, 255).view(out.shape)[..., :height, :width]


def jpeg_torch(levels: Tensor, quality: Tensor) -> Tensor:
    """Uint8 images (B, C, H, W) after a JPEG round trip at one whole quality (1 … 100) per image, on any device."""
    kernels = fused("jpeg", levels.device)
    if kernels is not None:
        levels, out = levels.contiguous(), torch.empty(levels.shape, dtype=torch.uint8, device=levels.device)
        jpeg_levels(kernels, levels, out, quality.tolist())
        return out
    tables = quantisation_tables(to_device(quality, levels.device, torch.int64))
    if levels.shape[1] == 1:
        return _code(levels.to(torch.float32), tables[:, 0]).to(torch.uint8)
    return _code_colour(levels, tables).to(torch.uint8)


def jpeg_pillow(levels: Tensor, quality: Tensor) -> Tensor:
    """What `jpeg_torch` computes, by encoding and decoding each image with Pillow; for images on the CPU."""
    images = levels.contiguous().numpy()
    out = np.empty_like(images)
    for planes, whole, result in zip(images, quality.tolist(), out, strict=True):
        decoded = _through_pillow(planes, int(whole))
        # Fetching one plane at a time spares an interleaved copy.
        for band, plane in zip(decoded.mode, result, strict=True):
            plane.reshape(-1)[:] = np.frombuffer(decoded.tobytes("raw", band), np.uint8)
    return torch.from_numpy(out)


def _through_pillow(planes: NDArray[np.uint8], quality: int) -> Image.Image:
    height, width = planes.shape[1:]
    bands = [Image.frombuffer("L", (width, height), plane, "raw", "L", 0, 1) for plane in planes]
    mode = "L" if len(bands) == 1 else "RGB"
    file = io.BytesIO()
    Image.merge(mode, bands).save(file, "JPEG", quality=quality)
    # Opening the file would decode the same, but first parses it in Python, for a third of the decoding time.
    return Image.frombytes(mode, (width, height), file.getvalue(), "jpeg", mode, "")


def jpeg_levels(kernels: Any, levels: Any, out: Any, quality: Sequence[float]) -> None:
    """The same by the kernels of `blemish.ops.compiled.jpeg`, which take less time than Pillow, or by fused ones."""
    known, kinds = distinct(quality)
    kernels.jpeg(levels, out, np.array([_table(int(whole)) for whole in known]), kinds)


def jpeg_round_trip(levels: Tensor, quality: Tensor) -> Tensor:
    """Uint8 images (B, C, H, W) after a JPEG round trip at one whole quality (1 … 100) per image.

    All ways give the same pixels; this takes the fastest there is.
    """
    if levels.device.type != "cpu":
        return jpeg_torch(levels, quality)
    kernels = compiled("jpeg")
    if kernels is None:
        return jpeg_pillow(levels, quality)
    images, wholes = levels.contiguous(), quality.tolist()
    out = empty_like(images)
    source, target = images.numpy(), out.numpy()
    together([partial(jpeg_levels, kernels, source[own], target[own], wholes[own]) for own in shares(len(levels))])
    return out
