"""Median filters by sorting networks on grey levels: the same few minima and maxima for every pixel at once.

A window's columns are sorted once and shared by all windows that hold them; sorted columns are merged in pairs, pairs
in fours and so on, each again shared. Ranks that cannot be the median are dropped on the way, and so is every minimum
or maximum that nothing needs. A batch lies in one flat array, so that a shifted copy is a contiguous slice.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.filters import pad
from blemish.ops.fused import kernels_for

# Flat values worked on at a time. Some eighty copies of a part should fit in a CPU's cache, or in a GPU's memory.
_CPU_PART = 2**17
_GPU_PART = 2**22

# A larger window slides along a histogram, by a compiled loop, or is counted level by level at the same cost for any.
_LARGEST_NETWORK = 21


class _Wire(NamedTuple):
    """The value of a node, that many rows below and columns right of the place in question."""

    node: int
    down: int
    right: int

    def moved(self, down: int, right: int) -> _Wire:
        return _Wire(self.node, self.down + down, self.right + right)


class _Step(NamedTuple):
    """One minimum or maximum: from two slots, each read at a shift, to a slot; valid up to `reach` before the end."""

    largest: bool
    inputs: tuple[tuple[int, int, int], tuple[int, int, int]]
    slot: int
    reach: tuple[int, int]


class _Network:
    """A directed graph of minima and maxima; node 0 is the image."""

    def __init__(self) -> None:
        self.nodes: list[tuple[bool, _Wire, _Wire]] = [(False, _Wire(0, 0, 0), _Wire(0, 0, 0))]

    def _node(self, largest: bool, first: _Wire, second: _Wire) -> _Wire:
        self.nodes.append((largest, first, second))
        return _Wire(len(self.nodes) - 1, 0, 0)

    def sorted_pair(self, first: _Wire, second: _Wire) -> list[_Wire]:
        return [self._node(False, first, second), self._node(True, first, second)]

    def merged(self, first: list[_Wire], second: list[_Wire]) -> list[_Wire]:
        """Two sorted lists as one: Batcher's odd-even merge."""
        if not first or not second:
            return first or second
        if len(first) == len(second) == 1:
            return self.sorted_pair(first[0], second[0])
        even = self.merged(first[::2], second[::2])
        odd = self.merged(first[1::2], second[1::2])
        out = even[:1]
        for low, high in zip(odd, even[1:], strict=False):
            out += self.sorted_pair(low, high)
        return out + odd[len(even) - 1 :] + even[1 + len(odd) :]

    def row(self, unit: list[_Wire], count: int, down: int, right: int, rank: int | None = None) -> list[_Wire]:
        """`count` neighbouring copies of a sorted list, sorted; given the rank that is wanted of all, only that."""
        size, total = len(unit), len(unit) * count
        power, doubled = 1, unit
        powers = []
        while power <= count:
            powers.append((power, doubled))
            doubled = self.merged(doubled, [wire.moved(power * down, power * right) for wire in doubled])
            power *= 2
        out: list[_Wire] = []
        done = dropped = 0
        for power, wires in reversed(powers):
            if not count & power:
                continue
            out = self.merged(out, [wire.moved(done * down, done * right) for wire in wires])
            done += power
            if rank is not None:
                low = max(dropped, rank - (total - done * size))
                out = out[low - dropped : rank + 1 - dropped]
                dropped = low
        return out


def _needed(network: _Network, output: int) -> list[int]:
    """The nodes that an output needs, in the order they were made, inputs before results."""
    wanted = {output}
    for node in range(output, 0, -1):
        if node in wanted:
            wanted.update(wire.node for wire in network.nodes[node][1:])
    return sorted(wanted - {0})


@lru_cache(maxsize=32)
def _plan(side: int) -> tuple[list[_Step], int]:
    """The steps of a side × side median, and their slots: 0 is the image's, the last step's is the result's."""
    network = _Network()
    column = network.row([_Wire(0, 0, 0)], side, 1, 0)
    (median,) = network.row(column, side, 0, 1, rank=side * side // 2)
    order = _needed(network, median.node)
    last_use = {wire.node: node for node in order for wire in network.nodes[node][1:]}
    slots, reach = {0: 0}, {0: (0, 0)}
    free: list[int] = []
    count = 1
    steps = []
    for node in order:
        largest, first, second = network.nodes[node]
        slot = free.pop() if free else count
        count = max(count, slot + 1)
        slots[node] = slot
        reach[node] = max((reach[w.node][0] + w.down, reach[w.node][1] + w.right) for w in (first, second))
        inputs = ((slots[first.node], first.down, first.right), (slots[second.node], second.down, second.right))
        steps.append(_Step(largest, inputs, slot, reach[node]))
        # Inputs are released only now: a step may read its input at a shift, so it must not write over it.
        free += [slots[n] for n in {first.node, second.node} if last_use[n] == node and n != 0]
    return steps, count


def _by_network(flat: Any, side: int, stride: int, part: int, library: Any) -> Any:
    """The medians of the windows that start at each place of a flat padded batch."""
    steps, count = _plan(side)
    reach = (side - 1) * (stride + 1)
    out = library.empty_like(flat)
    slots: Any = [library.empty_like(flat[: part + reach]) for _ in range(count)]
    calls = [
        (
            library.maximum if step.largest else library.minimum,
            step.slot,
            step.reach[0] * stride + step.reach[1],
            *((slot, down * stride + right) for slot, down, right in step.inputs),
        )
        for step in steps
    ]
    for start in range(0, len(flat) - reach, part):
        slots[0] = flat[start : start + part + reach]
        size = len(slots[0])
        for call, slot, lost, (one, shift), (other, move) in calls:
            n = size - lost
            call(slots[one][shift : shift + n], slots[other][move : move + n], out=slots[slot][:n])
        n = size - reach
        out[start : start + n] = slots[calls[-1][1]][:n]
    return out


def _window_sums(values: Tensor, side: int, dim: int) -> Tensor:
    """Sums of `side` neighbours along a dimension, by doubling."""
    length = values.shape[dim] - side + 1
    total, done, power, sums = None, 0, 1, values
    while power <= side:
        if side & power:
            piece = sums.narrow(dim, done, length)
            total = piece if total is None else total + piece
            done += power
        if 2 * power <= side:
            rest = sums.shape[dim] - power
            sums = sums.narrow(dim, 0, rest) + sums.narrow(dim, power, rest)
        power *= 2
    assert total is not None
    return total


def _by_counting(padded: Tensor, side: int) -> Tensor:
    """The median is the number of levels that more than half of the window exceeds."""
    half = side * side // 2
    shape = (*padded.shape[:-2], padded.shape[-2] - side + 1, padded.shape[-1] - side + 1)
    out = torch.zeros(shape, dtype=torch.uint8, device=padded.device)
    for level in range(255):
        above = (padded > level).to(torch.int32)
        out += _window_sums(_window_sums(above, side, -1), side, -2) > half
    return out


def median_filter(levels: Tensor, radius: int) -> Tensor:
    """The median of each (2 · radius + 1)² window of uint8 images (B, C, H, W), per channel; edges are replicated."""
    if radius == 0:
        return levels
    side = 2 * radius + 1
    fused = kernels_for(levels.device)
    if fused is not None and side <= fused.LARGEST_MEDIAN:
        medians: Tensor = fused.medians(levels, radius)
        return medians
    height, width = levels.shape[-2:]
    padded = pad(levels.to(torch.float32), radius, radius, radius, radius, "replicate").to(torch.uint8)
    if side > _LARGEST_NETWORK:
        kernels = compiled("medians") if padded.device.type == "cpu" else None
        if kernels is None:
            return _by_counting(padded, side)
        out = torch.empty(levels.shape, dtype=torch.uint8, device="cpu")
        shared_out(kernels.medians, [padded.flatten(0, 1), out.flatten(0, 1)], side)
        return out
    flat = padded.flatten()
    stride = padded.shape[-1]
    if levels.device.type == "cpu":
        medians = torch.from_numpy(_by_network(flat.numpy(), side, stride, _CPU_PART, np))
    else:
        medians = _by_network(flat, side, stride, _GPU_PART, torch)
    return medians.view(padded.shape)[..., :height, :width]
