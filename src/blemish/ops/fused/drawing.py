"""Pixels in discs and polygons, counted without a plane for each of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import absolute, here
from blemish.ops.fused.on_device import on_its_device

_LANES = 512


@triton.jit
def _discs_kernel(centres, halves, out, discs, height, width, parts, lanes: tl.constexpr):
    image, pixel, inside = here(height * width, parts, lanes)
    y = pixel // width
    x = (pixel - y * width).to(tl.float32)
    count = tl.zeros((lanes,), tl.int32)
    for disc in range(discs):
        number = image * discs + disc
        half = tl.load(halves + number * height + y, inside, other=-1.0)
        count += (absolute(x - tl.load(centres + number)) <= half).to(tl.int32)
    tl.store(out + image.to(tl.int64) * height * width + pixel, count.to(tl.uint8), inside)


@on_its_device
def disc_counts(centres: Tensor, halves: Tensor, width: int) -> Tensor:
    """How many discs cover each pixel, uint8 (B, 1, H, W).

    Their middles lie in columns (B, N); half their width in each row is (B, N, H), negative where there is none.
    """
    batch, discs, height = halves.shape
    out = torch.empty((batch, 1, height, width), dtype=torch.uint8, device=halves.device)
    parts = triton.cdiv(height * width, _LANES)
    shape = (discs, height, width, parts)
    _discs_kernel[(batch * parts,)](centres.contiguous(), halves.contiguous(), out, *shape, lanes=_LANES)
    return out


@triton.jit
def _odd_kernel(edges, out, polygons, sides, height, width, parts, lanes: tl.constexpr):
    image, pixel, inside = here(height * width, parts, lanes)
    y = pixel // width
    x = pixel - y * width
    covered = tl.zeros((lanes,), tl.int32)
    for polygon in range(polygons):
        odd = tl.zeros((lanes,), tl.int32)
        for side in range(sides):
            crossing = ((image * polygons + polygon) * sides + side) * height + y
            odd ^= (tl.load(edges + crossing, inside, other=0).to(tl.int32) <= x).to(tl.int32)
        covered |= odd
    tl.store(out + image.to(tl.int64) * height * width + pixel, covered.to(tl.uint8), inside)


@on_its_device
def odd_union(edges: Tensor, width: int) -> Tensor:
    """The pixels with an odd number of a polygon's edges to their left, of any, bool (B, 1, H, W).

    ``edges`` (B, polygons, sides, H) are the first columns behind the edges, in whole numbers.
    """
    batch, polygons, sides, height = edges.shape
    out = torch.empty((batch, 1, height, width), dtype=torch.uint8, device=edges.device)
    parts = triton.cdiv(height * width, _LANES)
    shape = (polygons, sides, height, width, parts)
    _odd_kernel[(batch * parts,)](edges.contiguous(), out, *shape, lanes=_LANES)
    return out.view(torch.bool)
