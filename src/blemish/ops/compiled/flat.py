"""Planes with margins in one flat array, where a shifted copy is a slice: sums over slices, some rows at a time."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, part
from blemish.ops.compiled.levels import level

_F = np.float32

# Values of a sum that are worked on at a time; they and what is added to them stay in the nearest cache.
_AT_ONCE = 2048


@part
def rows_at_once(stride):
    """How many rows of that length are worked on at a time."""
    return max(1, _AT_ONCE // stride)


@part
def copy(source, target):
    """Copy values. An assignment to a slice does so one by one, several at a time it is ten times as fast."""
    for i in range(len(target)):
        target[i] = source[i]


@part
def clear(target):
    """Set values to 0."""
    for i in range(len(target)):
        target[i] = 0


@part
def widen(padded, top, left, height, width):
    """Repeat the edges of what lies in a padded plane (rows, stride), at (top, left), up to all borders."""
    for y in range(top, top + height):
        row = padded[y]
        for x in range(left):
            row[x] = row[left]
        for x in range(left + width, len(row)):
            row[x] = row[left + width - 1]
    for y in range(top):
        copy(padded[top], padded[y])
    for y in range(top + height, len(padded)):
        copy(padded[top + height - 1], padded[y])


@part
def add_products(total, flat, places, shares, count):
    """Add shares[i] · flat[places[i] …] for each i in turn, rounded once each."""
    size, tap = len(total), 0
    # Four at a time, so that sums are written and read again less often.
    while tap + 4 <= count:
        a, b = flat[places[tap] :][:size], flat[places[tap + 1] :][:size]
        c, d = flat[places[tap + 2] :][:size], flat[places[tap + 3] :][:size]
        p, q, r, s = shares[tap], shares[tap + 1], shares[tap + 2], shares[tap + 3]
        for i in range(size):
            total[i] = fma(d[i], s, fma(c[i], r, fma(b[i], q, fma(a[i], p, total[i]))))
        tap += 4
    while tap < count:
        a, p = flat[places[tap] :][:size], shares[tap]
        for i in range(size):
            total[i] = fma(a[i], p, total[i])
        tap += 1


@part
def to_level_rows(total, stride, target):
    """The beginnings of rows of that length as rows of levels."""
    for y in range(len(target)):
        row, values = target[y], total[y * stride :][: target.shape[1]]
        for x in range(len(row)):
            row[x] = level(values[x])
