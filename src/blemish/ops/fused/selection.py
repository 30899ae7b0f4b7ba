"""The places of an image's smallest words, without sorting them."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 4096


@triton.jit
def _below(words, bound, size, lanes: tl.constexpr):
    """How many words lie below a bound."""
    total = tl.zeros((lanes,), tl.int32)
    for start in range(0, size, lanes):
        index = start + tl.arange(0, lanes)
        word = tl.load(words + index, index < size, other=2147483647)
        total += ((word.to(tl.int64) < bound) & (index < size)).to(tl.int32)
    return tl.sum(total, axis=0)


@triton.jit
def _smallest_kernel(words, counts, out, size, lanes: tl.constexpr):
    """Of an image's words, which are distinct but for rare chance, the bound by guesses; of equal ones the first.

    Words are uniform, so that a straight line between two known counts leads to the bound in a few steps; every other
    step halves what is left, whatever the words are.
    """
    image = tl.program_id(0)
    words += image.to(tl.int64) * size
    out += image.to(tl.int64) * size
    wanted = tl.load(counts + image)
    # The last of the wanted words lies in low … high − 1; so many lie below low, and below high.
    low, high = tl.full((), -2147483648, tl.int64), tl.full((), 2147483648, tl.int64)
    before, upto = wanted * 0, wanted * 0 + size
    straight = wanted * 0 + 1
    while high - low > 1:
        middle = low + (high - low) // 2
        share = (wanted - before).to(tl.float32) / tl.maximum(upto - before, 1).to(tl.float32)
        guess = low + ((high - low).to(tl.float32) * share).to(tl.int64)
        guess = tl.minimum(tl.maximum(guess, low + 1), high - 1)
        bound = tl.where(straight == 1, guess, middle)
        straight = 1 - straight
        below = _below(words, bound, size, lanes)
        less = below < wanted
        low, before = tl.where(less, bound, low), tl.where(less, below, before)
        high, upto = tl.where(less, high, bound), tl.where(less, upto, below)
    # Equal words are taken from the first on, until there are enough.
    last = wanted * 0 - 1
    for _ in range(wanted - before):
        nearest = tl.full((lanes,), 2147483647, tl.int32)
        for start in range(0, size, lanes):
            index = start + tl.arange(0, lanes)
            word = tl.load(words + index, index < size, other=0).to(tl.int64)
            nearest = tl.minimum(nearest, tl.where((index < size) & (word == low) & (index > last), index, 2147483647))
        last = tl.min(nearest, axis=0)
    for start in range(0, size, lanes):
        index = start + tl.arange(0, lanes)
        word = tl.load(words + index, index < size, other=0).to(tl.int64)
        kept = (wanted > 0) & ((word < low) | ((word == low) & (index <= last)))
        tl.store(out + index, kept.to(tl.uint8), index < size)


@on_its_device
def smallest(words: Tensor, counts: NDArray[Any]) -> Tensor:
    """Which of an image's int32 words (B, size) are its counts[b] smallest, the first of equal ones; bool."""
    words = words.contiguous()
    out = torch.empty(words.shape, dtype=torch.uint8, device=words.device)
    _smallest_kernel[(len(words),)](words, *sent(words, counts), out, words.shape[1], lanes=_LANES, num_warps=8)
    return out.view(torch.bool)
