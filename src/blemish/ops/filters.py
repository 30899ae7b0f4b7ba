"""Linear filters with per-image kernels: separable Gaussians, lines and arbitrary small kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.cache import cached
from blemish.ops.compiled import compiled
from blemish.ops.distinct import distinct
from blemish.ops.fourier import fast_size, transformed
from blemish.ops.fused import fused, kernels_for
from blemish.ops.linear import LinearMap
from blemish.ops.threads import one_thread
from blemish.ops.transfer import to_device

Border = Literal["replicate", "reflect", "reflect101"]
"""Outside values: the edge's; the mirror image, edge included (d c b a | a b c d); the mirror image without it."""

GaussianBorder = Border | Literal["zeros"]
"""Also zeros outside."""

_Numbers = TypeVar("_Numbers", Tensor, NDArray[Any], float)

# Up to this radius kernels are quicker with sums over neighbours than with products of matrices.
_NEAR = 32
_BORDERS = ("replicate", "reflect", "reflect101")


def border_index(start: int, stop: int, size: int, border: Border) -> Tensor:
    """For each position start … stop − 1, outside 0 … size − 1 too, the inside position whose value stands there."""
    positions = torch.arange(start, stop)
    if border == "replicate":
        return positions.clamp(0, size - 1)
    period = 2 * size if border == "reflect" else max(1, 2 * size - 2)
    inside = positions.remainder(period)
    mirror = period - 1 - inside if border == "reflect" else period - inside
    return torch.where(inside < size, inside, mirror)


def pad(images: Tensor, top: int, bottom: int, left: int, right: int, border: Border) -> Tensor:
    """Images with margins; a margin may exceed the image."""
    height, width = images.shape[-2:]
    if border == "replicate":
        return F.pad(images, (left, right, top, bottom), mode="replicate")
    if border == "reflect101" and max(top, bottom) < height and max(left, right) < width:
        return F.pad(images, (left, right, top, bottom), mode="reflect")
    rows = to_device(border_index(-top, height + bottom, height, border), images.device)
    columns = to_device(border_index(-left, width + right, width, border), images.device)
    return images.index_select(-2, rows).index_select(-1, columns)


def gaussian_blur(
    images: Tensor, sigma: Tensor, *, truncate: float = 4.0, border: GaussianBorder = "replicate"
) -> Tensor:
    """Separable Gaussian filter of standard deviation sigma[b], cut at radius int(truncate · sigma + ½).

    SciPy's kernel: sampled, cut and normalised. A radius of 0 leaves the image as it is.
    """
    if int(truncate * float(sigma.max()) + 0.5) == 0:
        return images
    if border != "zeros" and images.dtype == torch.float32 and _has_taps(images.device):
        # Which way an image takes depends on its own radius alone.
        near = near_enough(sigma, *images.shape[-2:], truncate=truncate)
        if bool(near.all()):
            return _by_taps(images, sigma, truncate, border)
        if bool(near.any()):
            out = torch.empty_like(images)
            for part in (near, ~near):
                rows = to_device(part.nonzero().flatten(), images.device)
                out[rows] = gaussian_blur(images[rows], sigma[part], truncate=truncate, border=border)
            return out
    height, width = images.shape[-2:]
    if bool((sigma == sigma[0]).all()):
        settings = (float(sigma[0]), truncate, border, images.device, images.dtype)
        return _gaussian_map(width, *settings).across(_gaussian_map(height, *settings).down(images))
    # Blocks are cut by radius, and rounding depends on the cut: each image must get the cut of its own radius.
    out = torch.empty_like(images)
    for value in set(sigma.tolist()):
        members = sigma == value
        rows = to_device(members.nonzero().flatten(), images.device)
        out[rows] = gaussian_blur(images[rows], sigma[members], truncate=truncate, border=border)
    return out


def _has_taps(device: torch.device) -> bool:
    return device.type == "cpu" or kernels_for(device) is not None


def near_enough(sigma: _Numbers, height: int, width: int, *, truncate: float) -> _Numbers:
    """Which Gaussians are sums over neighbours, rather than products of matrices."""
    return truncate * sigma + 0.5 < min(_NEAR + 1, height, width)


def all_near(sigma: Sequence[float], height: int, width: int, *, truncate: float) -> bool:
    """Whether every Gaussian is."""
    return bool(near_enough(max(sigma, default=0.0), height, width, truncate=truncate))


def gaussian_taps(sigma: Tensor, truncate: float, reach: int) -> tuple[Tensor, Tensor]:
    """Weights (B, reach + 1) from the centre on, float64, and radii (B,)."""
    sigma = sigma.clamp(min=1e-6)[:, None]
    radii = (truncate * sigma + 0.5).floor()
    steps = torch.arange(reach + 1, dtype=torch.float64)
    weights = torch.exp(-0.5 * (steps / sigma) ** 2) * (steps <= radii)
    return weights / (2 * weights.sum(1, keepdim=True) - weights[:, :1]), radii[:, 0].to(torch.int64)


@lru_cache(maxsize=256)
def _one_gaussian(sigma: float, truncate: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    weights, radii = gaussian_taps(torch.tensor([sigma], dtype=torch.float64), truncate, _NEAR)
    return weights.numpy(), radii.numpy()


def gaussian_arrays(sigma: Sequence[float], truncate: float = 4.0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The same as arrays, for compiled kernels, which do not write to them."""
    if len(sigma) == 1:
        return _one_gaussian(sigma[0], truncate)
    known, which = distinct(sigma)
    weights, radii = zip(*[_one_gaussian(value, truncate) for value in known], strict=True)
    return np.concatenate(weights)[which], np.concatenate(radii)[which]


def _by_taps(images: Tensor, sigma: Tensor, truncate: float, border: Border) -> Tensor:
    weights, radii = gaussian_arrays(sigma.tolist(), truncate)
    on_device = fused("blurs", images.device)
    if on_device is not None:
        blurred: Tensor = on_device.gaussian(images, weights, radii, _BORDERS.index(border))
        return blurred
    kernels = compiled("blurs")
    if kernels is None:
        return _sums(images, torch.from_numpy(weights).to(torch.float32), int(radii.max()), border)
    taps = (weights.astype(np.float32), radii, _BORDERS.index(border))
    return torch.from_numpy(kernels.gaussian(images.contiguous().numpy(), *taps))


def _sums(images: Tensor, weights: Tensor, radius: int, border: Border) -> Tensor:
    """Symmetric sums along columns, then rows. A weight of 0, beyond an image's own radius, changes nothing."""
    for dim, margins in ((-2, (radius, radius, 0, 0)), (-1, (0, 0, radius, radius))):
        padded, length = pad(images, *margins, border), images.shape[dim]
        images = padded.narrow(dim, radius, length) * weights[:, 0].view(-1, 1, 1, 1)
        for step in range(1, radius + 1):
            pair = padded.narrow(dim, radius - step, length) + padded.narrow(dim, radius + step, length)
            images.addcmul_(pair, weights[:, step].view(-1, 1, 1, 1))
    return images


@cached()
def _gaussian_map(
    size: int, sigma: float, truncate: float, border: GaussianBorder, device: torch.device, dtype: torch.dtype
) -> LinearMap:
    """The filter along a side of this size, made on the device: on the host it takes longer than filtering."""
    sigma = max(sigma, 1e-6)
    radius = int(truncate * sigma + 0.5)
    steps = torch.arange(size + 2 * radius, dtype=torch.float64, device=device) - radius
    sides = torch.arange(size, dtype=torch.float64, device=device)
    distance = (steps - sides[:, None]).abs()
    band = torch.exp(-0.5 * (distance / sigma) ** 2) * (distance <= radius)
    # Folds in what lies beyond the border.
    if border == "zeros":
        fold = F.pad(torch.eye(size, dtype=torch.float64, device=device), (0, 0, radius, radius))
    else:
        fold = to_device(border_index(-radius, size + radius, size, border), device)[:, None] == sides
    matrix = (band / band.sum(-1, keepdim=True)) @ fold.to(torch.float64)
    return LinearMap.of(matrix[None, None], device, dtype)


def convolve(
    images: Tensor, kernels: Tensor, anchor: tuple[int, int], border: Border, *, which: Tensor | None = None
) -> Tensor:
    """Correlate image b with kernels[b] (B, kh, kw), or all with one: out[y, x] = Σ k[i, j] · in[y + i − a, x + j − b].

    (a, b) is the anchor. Where images share kernels, ``which`` (B,) says which is whose. By FFT: the cost hardly
    depends on the kernel's size.
    """
    height, width = images.shape[-2:]
    tall, wide = kernels.shape[-2:]
    size = (fast_size(height + tall - 1), fast_size(width + wide - 1))
    top, left = anchor
    padded = pad(images, top, size[0] - height - top, left, size[1] - width - left, border)
    with one_thread(images.device):
        spectrum = transformed(padded, torch.fft.rfft2)
        # A correlation is a convolution with the mirrored kernel, whose result lies further down and to the right.
        flipped = to_device(kernels.flip(-2, -1), images.device)
        mirrored = transformed(flipped, partial(torch.fft.rfft2, s=size)).unsqueeze(1)
        if which is not None and len(kernels) > 1:
            mirrored = mirrored.index_select(0, to_device(which, images.device))
        spectrum *= mirrored
        result = transformed(spectrum, partial(torch.fft.irfft2, s=size))
    return result[..., tall - 1 : tall - 1 + height, wide - 1 : wide - 1 + width]


def line_blur(images: Tensor, shifts: Tensor, weights: Tensor, *, reach: int) -> Tensor:
    """Weighted sums of shifted copies, out[y, x] = Σ w[b, i] · in[y + shifts[b, i, 0], x + shifts[b, i, 1]].

    Edges are replicated. `shifts` (B, taps, 2) int64, none beyond `reach`, and `weights` (B, taps) live on the CPU.
    By shift-and-add there, by FFT on a GPU.
    """
    fused = kernels_for(images.device)
    if fused is not None:
        sums: Tensor = fused.line_sums(
            images, to_device(shifts, images.device, torch.int32), to_device(weights, images.device, torch.float32)
        )
        return sums
    if images.device.type != "cpu":
        side = 2 * reach + 1
        flat = to_device((shifts[..., 0] + reach) * side + shifts[..., 1] + reach, images.device)
        kernels = torch.zeros((len(images), side * side), device=images.device, dtype=torch.float32)
        # At most two taps of a line fall on one pixel, and a sum of two does not depend on their order.
        kernels.scatter_add_(1, flat, to_device(weights, images.device, torch.float32))
        return convolve(images, kernels.view(-1, side, side), (reach, reach), "replicate")
    compiled_lines = compiled("lines") if images.dtype == torch.float32 else None
    if compiled_lines is not None:
        moves, shares = shifts.contiguous().numpy(), weights.to(torch.float64).contiguous().numpy()
        return torch.from_numpy(compiled_lines.line_sums(images.contiguous().numpy(), moves, shares))
    height, width = images.shape[-2:]
    padded = pad(images, reach, reach, reach, reach, "replicate")
    out = torch.zeros_like(images)
    for image, source, moves, share in zip(out, padded, shifts.tolist(), weights.tolist(), strict=True):
        # Near a diagonal, neighbouring taps often fall on the same pixel.
        taps: dict[tuple[int, int], float] = {}
        for (dy, dx), weight in zip(moves, share, strict=True):
            taps[dy, dx] = taps.get((dy, dx), 0.0) + weight
        for (dy, dx), weight in taps.items():
            top, left = reach + dy, reach + dx
            image.add_(source[:, top : top + height, left : left + width], alpha=weight)
    return out
