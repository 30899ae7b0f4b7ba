"""Random words of `blemish.core.rng`, and the values made of them."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part

BLOCK = 512
"""Words of each quarter that are made at a time; they and what comes of them stay in the nearest cache."""

_U = np.uint32
_HIGH = np.uint32(16)


@part
def _folded(word):
    return _U(word ^ (word >> _HIGH))


@part
def _mixed(salt, ids):
    keys = np.empty((4, len(ids)), np.int32)
    for image in range(len(ids)):
        number = np.uint64(ids[image])
        x = _U(_U(salt[0]) + _U(number))
        y = _U(_U(salt[1]) + _U(number >> np.uint64(32)))
        z, w = _U(salt[2]), _U(salt[3])
        for _ in range(3):
            x = _U(x * _U(1664525) + _U(1013904223))
            y = _U(y * _U(1664525) + _U(1013904223))
            z = _U(z * _U(1664525) + _U(1013904223))
            w = _U(w * _U(1664525) + _U(1013904223))
            x = _U(x + y * w)
            y = _U(y + z * x)
            z = _U(z + x * y)
            w = _U(w + y * z)
            x, y, z, w = _folded(x), _folded(y), _folded(z), _folded(w)
        keys[0, image] = np.int32(x)
        keys[1, image] = np.int32(y)
        keys[2, image] = np.int32(z)
        keys[3, image] = np.int32(w)
    return keys


@kernel
def mixed_keys(salt, ids):
    """Four key words per image, (4, B) int32, from four of the stream, int32, and 64-bit ids."""
    return _mixed(salt, ids)


@part
def fill(keys, image, start, count, first, second, third, fourth):
    """Words start … start + count − 1 of each of an image's four quarters."""
    k0, k1, k2, k3 = _U(keys[0, image]), _U(keys[1, image]), _U(keys[2, image]), _U(keys[3, image])
    odd = _U(k2 | _U(1))
    for i in range(count):
        x = _U(_U(start + i) + k0)
        y = _U(x * odd + k1)
        z = _U(x * y + k2)
        w = _U(y * z + k3)
        x, y, z, w = _folded(x), _folded(y), _folded(z), _folded(w)
        x = _U(x + y * w)
        y = _U(y + z * x)
        z = _U(z + x * y)
        w = _U(w + y * z)
        first[i] = _folded(x)
        second[i] = _folded(y)
        third[i] = _folded(z)
        fourth[i] = _folded(w)


@kernel
def expanded(keys, quarter):
    """The words (B, 4 · quarter), int32."""
    out = np.empty((keys.shape[1], 4, quarter), np.uint32)
    for image in range(keys.shape[1]):
        own = out[image]
        fill(keys, image, 0, quarter, own[0], own[1], own[2], own[3])
    return out.reshape(keys.shape[1], 4 * quarter).view(np.int32)


@kernel
def uniforms(salt, ids, count):
    """Values (B, count) strictly inside (0, 1), float32 of 23 random bits."""
    keys, batch, quarter = _mixed(salt, ids), len(ids), (count + 3) // 4
    out = np.empty((batch, count), np.float32)
    words = np.empty((4, BLOCK), np.uint32)
    scale, middle = np.float32(2.0**-23), np.float32(0.5 + 2.0**-24)
    for image in range(batch):
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = share * quarter + start
                own, drawn = out[image, first : first + size], words[share]
                for i in range(len(own)):
                    own[i] = np.float32(np.int32(drawn[i]) >> np.int32(9)) * scale + middle
    return out


@kernel
def integers(salt, ids, count, high):
    """Whole numbers (B, count) of 0 … high − 1, int64."""
    keys, batch, quarter = _mixed(salt, ids), len(ids), (count + 3) // 4
    out = np.empty((batch, count), np.int64)
    words = np.empty((4, BLOCK), np.uint32)
    for image in range(batch):
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = share * quarter + start
                own, drawn = out[image, first : first + size], words[share]
                for i in range(len(own)):
                    own[i] = (np.int64(drawn[i]) * np.int64(high)) >> np.int64(32)
    return out


@kernel
def normals(salt, ids, count, table):
    """Standard normal values (B, count) from the table of 2¹⁶, float32."""
    keys, batch, quarter = _mixed(salt, ids), len(ids), ((count + 1) // 2 + 3) // 4
    out = np.empty((batch, count), np.float32)
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    for image in range(batch):
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = 2 * (share * quarter + start)
                index = halves[share]
                own = out[image, first : first + 2 * size]
                for i in range(len(own)):
                    own[i] = table[index[i]]
    return out


@kernel
def coarse_uniforms(salt, ids, count, symmetric):
    """Values (B, count) strictly inside (0, 1), float32 of 16 random bits; inside (−1, 1) where ``symmetric``."""
    keys, batch, quarter = _mixed(salt, ids), len(ids), ((count + 1) // 2 + 3) // 4
    out = np.empty((batch, count), np.float32)
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    scale = np.float32(2.0**-15 if symmetric else 2.0**-16)
    low = np.float32(1.0 if symmetric else 0.0)
    for image in range(batch):
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = 2 * (share * quarter + start)
                index = halves[share]
                own = out[image, first : first + 2 * size]
                for i in range(len(own)):
                    own[i] = (np.float32(index[i]) + np.float32(0.5)) * scale - low
    return out
