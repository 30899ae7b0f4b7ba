"""The hash behind all randomness: 32-bit words from an id, the name of a stream and an index.

The hash is a relative of pcg4d (Jarzynski and Olano, JCGT 9(3), 2020): two rounds of multiply-adds over four 32-bit
words, each followed by an xor of the high half into the low half. Every step is a bijection, so that no word is
likelier than another.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.compiled import compiled
from blemish.ops.fused import fused
from blemish.ops.transfer import to_device

FEW = 2**12
"""So few values are not worth importing a compiler for."""

_MULTIPLIER, _INCREMENT = np.int32(1664525), np.int32(1013904223)  # Numerical Recipes' LCG, as in pcg4d


def _fold(words: Any) -> None:
    """Xor high halves into low ones."""
    if isinstance(words, Tensor):
        halves = words.view(torch.int16)  # one pass instead of three
        halves[..., ::2] ^= halves[..., 1::2]
    else:
        words ^= (words >> 16) & 0xFFFF  # the mask makes the arithmetic shift of signed words a logical one


def _mix(words: Any) -> None:
    """One round in place over four rows of words, NumPy or torch: multiply-adds, then high bits into low ones."""
    x, y, z, w = words
    x += y * w
    y += z * x
    z += x * y
    w += y * z
    _fold(words)


@lru_cache(maxsize=1024)
def salt(name: str) -> NDArray[np.int32]:
    """Four words for the full name of a stream."""
    return np.frombuffer(hashlib.blake2b(name.encode(), digest_size=16).digest(), dtype=np.int32)


def stream_keys(ids: NDArray[np.int64], name: str) -> NDArray[np.int32]:
    """Four key words per image, shape (4, B), from a 64-bit id and the full name of the stream (seed included)."""
    kernels = compiled("words", worthwhile=len(ids) > FEW)
    if kernels is not None:
        mixed: NDArray[np.int32] = kernels.mixed_keys(salt(name), ids)
        return mixed
    key = np.repeat(salt(name)[:, None], len(ids), axis=1)
    key[:2] += ids.view(np.int32).reshape(-1, 2).T
    for _ in range(3):
        key *= _MULTIPLIER
        key += _INCREMENT
        _mix(key)
    return key


def expanded(keys: NDArray[np.int32], count: int, device: torch.device) -> Tensor:
    """``count`` int32 words per image, shape (B, count).

    The same operators run in NumPy on the CPU, where they cost half of what torch's do, and in torch elsewhere.
    """
    quarter = -(-count // 4)
    shape = (keys.shape[1], 4, quarter)
    there = fused("words", device)
    if there is not None:
        words: Tensor = there.expanded(on_device(keys, device), quarter)
        return words[:, :count]
    kernels = compiled("words", worthwhile=keys.shape[1] * count > FEW) if device.type == "cpu" else None
    if kernels is not None:
        return torch.from_numpy(kernels.expanded(keys, quarter))[:, :count]
    store: Any
    k: Any
    multiply: Any = np.multiply if device.type == "cpu" else torch.mul
    if device.type == "cpu":
        store, k = np.empty(shape, np.int32), keys[:, :, None]
        store[:, 0] = np.arange(quarter, dtype=np.int32)
    else:
        store, k = (
            torch.empty(shape, dtype=torch.int32, device=device),
            torch.from_numpy(keys)[:, :, None].to(device, non_blocking=True),
        )
        store[:, 0] = torch.arange(quarter, dtype=torch.int32, device=device)
    words = store.swapaxes(0, 1)
    # The first round written out, as only x varies along a row yet. An odd multiplier lets y visit every value.
    x, y, z, w = words
    x += k[0]
    multiply(x, k[2] | 1, out=y)
    y += k[1]
    multiply(x, y, out=z)
    z += k[2]
    multiply(y, z, out=w)
    w += k[3]
    _fold(words)
    _mix(words)
    result: Tensor = torch.as_tensor(store)
    return result.view(keys.shape[1], -1)[:, :count]


def on_device(keys: NDArray[np.int32], device: torch.device) -> Tensor:
    """Keys as fused kernels take them, (B, 4)."""
    return to_device(torch.from_numpy(np.ascontiguousarray(keys.T)), device)
