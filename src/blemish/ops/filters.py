"""Linear filters with per-image kernels: separable Gaussians, lines and arbitrary small kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

__all__ = ["Border", "border_index", "convolve", "gaussian_blur", "line_blur", "pad"]

Border = Literal["replicate", "reflect", "reflect101"]
"""Outside values: the edge's; the mirror image, edge included (d c b a | a b c d); the mirror image without it."""

# From about this many taps on, a dense matrix product is faster on a CPU than shifting and adding.
_MAX_TAPS = 27


def border_index(start: int, stop: int, size: int, border: Border) -> Tensor:
    """For each position start … stop − 1, outside 0 … size − 1 too, the inside position whose value stands there."""
    positions = torch.arange(start, stop)
    if border == "replicate":
        return positions.clamp(0, size - 1)
    period = 2 * size if border == "reflect" else max(1, 2 * size - 2)
    inside = positions.remainder(period)
    mirror = period - 1 - inside if border == "reflect" else period - inside
    return torch.where(inside < size, inside, mirror)


def pad(images: Tensor, rows: int, columns: int, border: Border) -> Tensor:
    """Images with `rows` more above and below and `columns` more on either side; a margin may exceed the image."""
    height, width = images.shape[-2:]
    if rows:
        images = images.index_select(-2, border_index(-rows, height + rows, height, border).to(images.device))
    if columns:
        images = images.index_select(-1, border_index(-columns, width + columns, width, border).to(images.device))
    return images


def gaussian_blur(images: Tensor, sigma: Tensor, *, truncate: float = 4.0, border: Border = "replicate") -> Tensor:
    """Separable Gaussian filter of standard deviation sigma[b], cut at radius int(truncate · sigma + ½).

    SciPy's kernel: sampled, cut and normalised. A radius of 0 leaves the image as it is.
    """
    radius = int(truncate * float(sigma.max()) + 0.5)
    if radius == 0:
        return images
    taps = 2 * radius + 1
    if images.device.type == "cpu" and taps <= _MAX_TAPS:
        kernels = _gaussian_kernels(sigma, radius, truncate).to(images.dtype)
        return _shift_and_add(_shift_and_add(images, kernels, -2, border), kernels, -1, border)
    settings = (tuple(sigma.tolist()), truncate, border, images.device)
    down, across = (_blur_matrices(size, *settings).to(images.dtype) for size in images.shape[-2:])
    return down @ images @ across.transpose(-1, -2)


def _gaussian_kernels(sigma: Tensor, radius: int, truncate: float) -> Tensor:
    """Normalised kernels (B, 2·radius + 1) in float64; each is cut at its own radius."""
    distance = torch.arange(-radius, radius + 1, dtype=torch.float64).abs()
    sigma = sigma.clamp(min=1e-6)[:, None]
    kernels = torch.exp(-0.5 * (distance / sigma) ** 2) * (distance <= (truncate * sigma + 0.5).floor())
    return kernels / kernels.sum(1, keepdim=True)


def _shift_and_add(images: Tensor, kernels: Tensor, dim: int, border: Border) -> Tensor:
    """Correlate along one dimension with a kernel per image."""
    radius, size = kernels.shape[1] // 2, images.shape[dim]
    padded = pad(images, radius if dim == -2 else 0, radius if dim == -1 else 0, border)
    if len(kernels) == 1:
        weights: list[Tensor | float] = kernels[0].tolist()
    else:
        weights = list(kernels.T[:, :, None, None, None])
    out = padded.narrow(dim, radius, size) * weights[radius]
    for tap in range(radius):
        # The kernel is symmetric.
        pair = padded.narrow(dim, tap, size) + padded.narrow(dim, 2 * radius - tap, size)
        weight = weights[tap]
        out = out.add_(pair, alpha=weight) if isinstance(weight, float) else out.addcmul_(pair, weight)
    return out


@lru_cache(maxsize=64)
def _blur_matrices(
    size: int, sigma: tuple[float, ...], truncate: float, border: Border, device: torch.device
) -> Tensor:
    """The filter as matrices (B, 1, size, size), or (1, 1, size, size) when all sigmas are equal, border folded in."""
    distinct = torch.tensor(sigma[:1] if len(set(sigma)) == 1 else sigma, dtype=torch.float64)
    radius = int(truncate * float(distinct.max()) + 0.5)
    kernels = _gaussian_kernels(distinct, radius, truncate).to(device)
    step = torch.arange(size + 2 * radius, device=device) - torch.arange(size, device=device)[:, None]
    inside = (step >= 0) & (step <= 2 * radius)
    bands = kernels[:, step.clamp(0, 2 * radius)] * inside
    fold = torch.nn.functional.one_hot(border_index(-radius, size + radius, size, border), size)
    return (bands @ fold.to(device, torch.float64)).unsqueeze(1)


def _fast_size(size: int) -> int:
    """The next even size whose only prime factors are 2, 3 and 5."""
    size += size % 2
    while True:
        rest = size
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return size
        size += 2


def convolve(images: Tensor, kernels: Tensor, anchor: tuple[int, int], border: Border) -> Tensor:
    """Correlate image b with kernels[b] (B, kh, kw): out[y, x] = Σ k[i, j] · in[y + i − anchor, x + j − anchor].

    By FFT: the cost hardly depends on the kernel's size.
    """
    height, width = images.shape[-2:]
    tall, wide = kernels.shape[-2:]
    rows = border_index(-anchor[0], height + tall - 1 - anchor[0], height, border)
    columns = border_index(-anchor[1], width + wide - 1 - anchor[1], width, border)
    padded = images.index_select(-2, rows.to(images.device)).index_select(-1, columns.to(images.device))
    size = (_fast_size(len(rows)), _fast_size(len(columns)))
    spectrum = torch.fft.rfft2(padded, s=size)
    spectrum *= torch.fft.rfft2(kernels.to(images.device), s=size).conj().unsqueeze(1)
    return torch.fft.irfft2(spectrum, s=size)[..., :height, :width]


def line_blur(images: Tensor, shifts: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums of shifted copies, out[y, x] = Σ w[b, i] · in[y + shifts[b, i, 0], x + shifts[b, i, 1]], edges replicated.

    `shifts` (B, taps, 2) int64 and `weights` (B, taps) live on the CPU. By shift-and-add there, by FFT on a GPU.
    """
    reach = int(shifts.abs().max())
    if images.device.type != "cpu":
        side = 2 * reach + 1
        flat = (shifts[..., 0] + reach) * side + shifts[..., 1] + reach
        kernels = weights.new_zeros((len(images), side * side)).scatter_add_(1, flat, weights)
        return convolve(images, kernels.view(-1, side, side).to(torch.float32), (reach, reach), "replicate")
    height, width = images.shape[-2:]
    padded = pad(images, reach, reach, "replicate")
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
