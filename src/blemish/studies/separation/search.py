"""The exact search: tiles of points, filtered by bounds, and measured in full where no bound decides."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.balls import Norm
from blemish.studies.separation.bounds import Bound, short_vectors
from blemish.studies.separation.goals import Goal, View

Progress = Callable[[int, int], None]
Rows = NDArray[np.int64]
_Tile = tuple[float, Rows, slice, bool]
"""A lower bound, the places of the first points, the leaf of the others, and whether both are the same leaf."""

_LEAF = 512
_MOST_LEAVES = 4096
_AHEAD = 4  # tiles in flight; fixed, so that results do not depend on the number of threads
_CHUNK_VALUES = 1 << 22


class Search:
    """Points in an order that keeps neighbours together, cut into leaves: of one class where classes are large."""

    def __init__(self, points: NDArray[Any], codes: Rows, *, norm: Norm, device: torch.device) -> None:
        self.norm, self.device = norm, device
        self.flat = points.reshape(len(points), -1)
        vectors = short_vectors(points, norm)
        self.leaves, self.order = _leaves(vectors[0], codes)
        self.codes = codes[self.order]
        self.coarse, *self.finer = (Bound.of(short[self.order], norm, device) for short in vectors)
        values = self.coarse.values
        self.lows = torch.stack([values[leaf].amin(0) for leaf in self.leaves])
        self.highs = torch.stack([values[leaf].amax(0) for leaf in self.leaves])
        self.on_device = self._copy_to_device()

    def _copy_to_device(self) -> Tensor | None:
        if self.device.type == "cpu" or self.flat.nbytes > torch.cuda.mem_get_info(self.device)[0] // 2:
            return None
        return torch.from_numpy(np.array(self.flat)).to(self.device)

    def all_pairs(self, goal: Goal, progress: Progress | None = None) -> None:
        """Look at every pair of points that the goal's limits do not rule out."""
        count = len(self.leaves)
        bounds = np.concatenate(
            [self.coarse.gaps(self.lows[k], self.highs[k], self.lows[k:], self.highs[k:]) for k in range(count)]
        )
        first, second = (index.astype(np.int16) for index in np.triu_indices(count))
        ranked = np.argsort(bounds, kind="stable")
        sizes = np.array([leaf.stop - leaf.start for leaf in self.leaves])
        total = int((sizes.sum() ** 2 + (sizes**2).sum()) // 2)

        def tiles() -> Iterator[_Tile]:
            for number, pair in enumerate(ranked):
                # Every so often: what follows is farther away than this, and may be of no use to anyone.
                if number % 256 == 0 and bounds[pair] >= goal.farthest():
                    return
                a, b = self.leaves[first[pair]], self.leaves[second[pair]]
                if not self._one_class(a, b):
                    yield float(bounds[pair]), np.arange(a.start, a.stop), b, a is b

        self._run(goal, tiles(), total, progress)

    def from_points(self, chosen: Rows, goal: Goal, progress: Progress | None = None) -> None:
        """Look from each of the chosen points (positions in the data) at all others."""
        positions = np.sort(np.argsort(self.order)[chosen])

        def tiles() -> Iterator[_Tile]:
            for start in range(0, len(positions), _LEAF):
                rows = positions[start : start + _LEAF]
                values = self.coarse.values[self._tensor(rows)]
                bounds = self.coarse.gaps(values.amin(0), values.amax(0), self.lows, self.highs)
                for leaf in np.argsort(bounds, kind="stable"):
                    yield float(bounds[leaf]), rows, self.leaves[leaf], False

        self._run(goal, tiles(), len(positions) * len(self.order), progress)

    def _one_class(self, *leaves: slice) -> bool:
        """Whether all leaves hold one and the same class; classes are in order within a leaf."""
        return len({int(self.codes[end]) for leaf in leaves for end in (leaf.start, leaf.stop - 1)}) == 1

    def _run(self, goal: Goal, tiles: Iterator[_Tile], total: int, progress: Progress | None) -> None:
        """Tiles in order, the nearest boxes first; each starts from what all but the last few before it have found."""
        done = 0
        waiting: deque[tuple[Future[Any], int]] = deque()
        with _workers(self.device) as pool:
            for bound, rows, leaf, own in tiles:
                if len(waiting) == _AHEAD:
                    done += self._settle(waiting, goal)
                size = len(rows) * (leaf.stop - leaf.start)
                view = goal.open(self.codes[rows], self.codes[leaf], self.order[rows])
                if bound < view.limits().max(initial=-np.inf):
                    waiting.append((pool.submit(self._tile, view, rows, leaf, own), size))
                else:
                    done += size
                if progress is not None:
                    progress(done, total)
            while waiting:
                done += self._settle(waiting, goal)
        if progress is not None:
            progress(total, total)

    def _settle(self, waiting: deque[tuple[Future[Any], int]], goal: Goal) -> int:
        future, size = waiting.popleft()
        goal.merge(future.result())
        return size

    def _tile(self, view: View, rows: Rows, leaf: slice, own: bool) -> View:
        contiguous = len(rows) == rows[-1] - rows[0] + 1
        first = slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else torch.from_numpy(rows).to(self.device)
        bound = self.coarse.dense(first, leaf)
        below = _below(bound, self._spread(view))
        kept = _nonzero(below.triu_(1) if own else below)
        i, j = kept // bound.shape[1], kept % bound.shape[1]
        bounds = bound.flatten()[self._tensor(kept)].cpu().numpy()
        for finer in self.finer:
            i, j, bounds = self._filtered(finer, view, rows, leaf.start, i, j)
        self._measure(view, rows, leaf.start, i, j, bounds)
        return view

    def _filtered(
        self, finer: Bound, view: View, rows: Rows, start: int, i: Rows, j: Rows
    ) -> tuple[Rows, Rows, NDArray[Any]]:
        """The pairs that a finer bound leaves, and their bounds."""
        limits = view.limits()
        kept = [(i[:0], j[:0], np.empty(0, np.float32))]
        step = max(1, _CHUNK_VALUES // (4 * finer.values.shape[1]))
        for k in range(0, len(i), step):
            p, q = i[k : k + step], j[k : k + step]
            bounds = finer.paired(self._tensor(rows[p]), self._tensor(q + start)).cpu().numpy()
            keep = bounds < limits[view.rows[p], view.columns[q]]
            kept.append((p[keep], q[keep], bounds[keep]))
        first, second, bounds = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return first, second, bounds

    def _tensor(self, index: Rows) -> Tensor:
        return torch.from_numpy(index).to(self.device)

    def _spread(self, view: View) -> float | Tensor:
        """The limit of each pair of a tile: one number where all share it."""
        limits = view.limits()
        if limits.size == 1:
            return float(limits[0, 0])
        # Rounding to float32 must not lower a limit.
        rounded = np.nextafter(limits.astype(np.float32), np.float32(np.inf))
        return torch.from_numpy(rounded[view.rows[:, None], view.columns[None]]).to(self.device)

    def _measure(self, view: View, rows: Rows, start: int, i: Rows, j: Rows, bounds: NDArray[Any]) -> None:
        """Exact distances, the most promising pair of each group first, then the others while they can still matter."""
        ranked = np.argsort(bounds, kind="stable")
        i, j, bounds = i[ranked], j[ranked], bounds[ranked]
        groups = view.rows[i] * (view.columns.max(initial=0) + 1) + view.columns[j]
        rest = np.ones(len(i), dtype=bool)
        take = np.unique(groups, return_index=True)[1]
        size = 64
        while len(take):
            rest[take] = False
            p, q = rows[i[take]], j[take] + start
            measured = self.between(self.order[p], self.order[q])
            view.add(self.order[p], self.order[q], view.rows[i[take]], view.columns[j[take]], measured)
            rest &= bounds < view.limits()[view.rows[i], view.columns[j]]
            take = np.flatnonzero(rest)[:size]
            size = min(2 * size, 4096)

    def between(self, i: Rows, j: Rows) -> NDArray[np.float64]:
        """Exact distances of the pairs (i[n], j[n]), positions in the data."""
        step = max(1, _CHUNK_VALUES // self.flat.shape[1])
        parts = [
            distances(self._points(i[k : k + step]), self._points(j[k : k + step]), norm=self.norm)
            for k in range(0, len(i), step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _points(self, index: Rows) -> Tensor:
        if self.on_device is not None:
            return self.on_device[self._tensor(index)]
        return torch.from_numpy(self.flat[index]).to(self.device)


def distances(first: Tensor, second: Tensor, *, norm: Norm) -> NDArray[np.float64]:
    """Distances of rows: in integers for uint8, whose root is then the nearest float64; in float64 otherwise."""
    if first.dtype == torch.uint8:
        apart = torch.maximum(first, second) - torch.minimum(first, second)
        if norm == "linf":
            exact = apart.amax(1)
        elif norm == "l1":
            exact = apart.sum(1, dtype=torch.int64)
        else:
            exact = apart.to(torch.int32).square_().sum(1, dtype=torch.int64)
        result = exact.cpu().numpy().astype(np.float64)
        return np.asarray(np.sqrt(result)) if norm == "l2" else result
    apart = first.to(torch.float64).sub_(second.to(torch.float64)).abs_()
    if norm == "l1":
        return np.asarray(apart.sum(1).cpu().numpy())
    largest = apart.amax(1)
    if norm == "linf":
        return np.asarray(largest.cpu().numpy())
    scale = torch.where(largest > 0, largest, 1.0)  # squares of tiny differences would vanish
    return np.asarray((largest * apart.div_(scale[:, None]).square_().sum(1).sqrt_()).cpu().numpy())


def _below(bound: Tensor, limit: float | Tensor) -> Tensor:
    if isinstance(limit, float) and bound.dtype == torch.uint8:
        return bound <= int(np.clip(np.ceil(limit) - 1, -1, 255)) if limit > 0 else torch.zeros_like(bound).bool()
    return bound < limit


def _nonzero(mask: Tensor) -> Rows:
    if mask.device.type == "cpu":  # ten times as fast as torch's
        return np.flatnonzero(mask.numpy())
    return np.asarray(mask.flatten().nonzero()[:, 0].cpu().numpy())


@contextlib.contextmanager
def _workers(device: torch.device) -> Iterator[ThreadPoolExecutor]:
    """One thread per tile, instead of many threads within one."""
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads if device.type == "cpu" else 1) as pool:
            yield pool
    finally:
        torch.set_num_threads(threads)


def _leaves(coarse: NDArray[Any], codes: Rows) -> tuple[list[slice], Rows]:
    """Classes one after the other: large ones split until they fit a leaf, small ones packed together."""
    leaf = max(_LEAF, -(-len(codes) // _MOST_LEAVES))
    groups: list[Rows] = []
    small: list[Rows] = []
    by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    for members in by_class:
        if len(members) > leaf // 2:
            groups += _split(coarse, members, -(-len(members) // leaf))
            continue
        if sum(map(len, small)) + len(members) > leaf:
            groups.append(np.concatenate(small))
            small = []
        small.append(members)
    if small:
        groups.append(np.concatenate(small))
    groups = [group for group in groups if len(group)]
    ends = np.cumsum([len(group) for group in groups])
    return [slice(int(e) - len(g), int(e)) for e, g in zip(ends, groups, strict=True)], np.concatenate(groups)


def _split(coarse: NDArray[Any], members: Rows, parts: int) -> list[Rows]:
    """So many parts of nearly equal size, cut again and again across the widest coordinate."""
    if parts == 1:
        return [members]
    values = coarse[members]
    widest = int(np.argmax(values.max(0).astype(np.float64) - values.min(0)))
    ranked = members[np.argsort(values[:, widest], kind="stable")]
    left = parts // 2
    cut = len(ranked) * left // parts
    return _split(coarse, ranked[:cut], left) + _split(coarse, ranked[cut:], parts - left)
