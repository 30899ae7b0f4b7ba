"""Edges, chamfer distances, equalisation and relief: against OpenCV's recorded results, and against plain loops."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops import edges, grid
from blemish.ops.edges import canny, chamfer_distance, depth, equalise, relief

Levels = NDArray[np.int64]

Y, X = np.mgrid[0:16, 0:16]

# cv2.Canny(image, 50, 150) of opencv-python-headless 4.14.0, the same with and without its Intel primitives.
CANNY = {
    "a disc": (
        np.where((Y - 7) ** 2 + (X - 8) ** 2 <= 22, 200, 0),
        """
        ................
        ................
        .......###......
        .....##...##....
        ....##.....##...
        ....#.......#...
        ...#........#...
        ...#........#...
        ...#........#...
        ....#.......#...
        ....##.....##...
        .....#######....
        ................
        ................
        ................
        ................
        """,
    ),
    "all directions": (
        (X * X + 3 * Y * Y + 5 * X * Y) // 2 % 256,
        """
        ................
        ..............#.
        ............#...
        ..........#....#
        .........#...##.
        .......#...##...
        .....#....##..#.
        ....#...##...##.
        ..#...##...#...#
        .#...##..#...##.
        ...##...#..##..#
        #.##..#...#..#..
        .##..#..##..#..#
        ##.....#..#..#..
        ...#.##..#..#..#
        #.#..#..##.#.###
        """,
    ),
    "a weak edge that hangs on a strong one": (
        np.where(X >= 8, np.where(Y == 0, 60, 20), 5),
        "........########\n........#.......\n" + ".......#........\n" * 14,
    ),
    "the same without the strong one": (np.where(X >= 8, 20, 5), "................\n" * 16),
}


def batch(*images: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(np.stack(images).astype(np.uint8))[:, None]


def picture(seed: int, height: int, width: int) -> Levels:
    """Smooth shapes with hard outlines, weak and strong edges, and some noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = sum(np.sin(x * a + y * b + c) for a, b, c in rng.uniform(-1, 1, (4, 3)))
    levels = 40 * waves * (waves > rng.uniform(-1, 1)) + rng.integers(0, 1 + seed % 40, (height, width)) + 60
    return np.asarray(levels.clip(0, 255), np.int64)


def looped_canny(levels: Levels, low: int = 50, high: int = 150) -> NDArray[np.bool_]:
    """The rule pixel by pixel, with 15 fractional bits for the tangent of 22.5°."""
    height, width = levels.shape
    p = np.pad(levels, 1, mode="edge")
    dx = p[:-2, 2:] - p[:-2, :-2] + 2 * (p[1:-1, 2:] - p[1:-1, :-2]) + p[2:, 2:] - p[2:, :-2]
    dy = p[2:, :-2] - p[:-2, :-2] + 2 * (p[2:, 1:-1] - p[:-2, 1:-1]) + p[2:, 2:] - p[:-2, 2:]
    norm = np.pad(abs(dx) + abs(dy), 1)
    ridge = np.zeros((height, width), bool)
    for y, x in itertools.product(range(height), range(width)):
        around, here = norm[y : y + 3, x : x + 3], norm[y + 1, x + 1]
        wide, tall = abs(dx[y, x]), abs(dy[y, x]) << 15
        if tall < wide * 13573:
            ridge[y, x] = here > around[1, 0] and here >= around[1, 2]
        elif tall > wide * (13573 + (2 << 15)):
            ridge[y, x] = here > around[0, 1] and here >= around[2, 1]
        else:
            side = -1 if (dx[y, x] < 0) != (dy[y, x] < 0) else 1
            ridge[y, x] = here > around[0, 1 - side] and here > around[2, 1 + side]
    norm = norm[1:-1, 1:-1]
    edges = np.zeros((height, width), bool)
    waiting = list(zip(*np.nonzero(ridge & (norm > high)), strict=True))
    while waiting:
        y, x = waiting.pop()
        if 0 <= y < height and 0 <= x < width and ridge[y, x] and norm[y, x] > low and not edges[y, x]:
            edges[y, x] = True
            waiting += itertools.product((y - 1, y, y + 1), (x - 1, x, x + 1))
    return edges


def shortest_chains(edges: NDArray[np.bool_]) -> Levels:
    """Dijkstra over straight, diagonal and knight's steps that stay inside; lengths in 1/10000 pixel, at most 20."""
    height, width = edges.shape
    lengths = {1: 10000, 2: 14000, 5: 21969}
    moves = [(y, x, lengths[y * y + x * x]) for y in range(-2, 3) for x in range(-2, 3) if y * y + x * x in lengths]
    best = np.full(edges.shape, 200000)
    waiting = [(0, int(y), int(x)) for y, x in zip(*np.nonzero(edges), strict=True)]
    while waiting:
        length, y, x = heapq.heappop(waiting)
        if not (0 <= y < height and 0 <= x < width) or length >= best[y, x]:
            continue
        best[y, x] = length
        for down, right, cost in moves:
            heapq.heappush(waiting, (length + cost, y + down, x + right))
    return best


def block_sums(values: Levels) -> Levels:
    p = np.pad(values, 1, mode="reflect")
    height, width = values.shape
    return sum((p[y : y + height, x : x + width] for y in range(3) for x in range(3)), np.zeros_like(values))


def looped_equalise(levels: Levels) -> Levels:
    counts = np.bincount(levels.ravel(), minlength=256)
    darkest = int(np.nonzero(counts)[0][0])
    rest = levels.size - counts[darkest]
    if rest == 0:
        return levels
    scale, table, total = np.float32(255) / np.float32(rest), np.zeros(256, np.int64), 0
    for level in range(darkest + 1, 256):
        total += counts[level]
        table[level] = np.rint(np.float32(total) * scale)
    return table[levels]


sizes = st.tuples(st.integers(8, 30), st.integers(8, 30))


@pytest.mark.parametrize("name", CANNY)
def test_canny_gives_the_edges_opencv_recorded(name: str) -> None:
    levels, drawn = CANNY[name]
    expected = np.array([[c == "#" for c in row] for row in drawn.split()])
    np.testing.assert_array_equal(canny(batch(levels))[0, 0].numpy(), expected)
    np.testing.assert_array_equal(looped_canny(levels), expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), sizes)
def test_canny_follows_the_rule_on_any_picture(seed: int, size: tuple[int, int]) -> None:
    levels = picture(seed, *size)
    np.testing.assert_array_equal(canny(batch(levels))[0, 0].numpy(), looped_canny(levels))


def test_canny_takes_extreme_gradients() -> None:
    noise = np.random.default_rng(0).choice([0, 255], (40, 25))
    np.testing.assert_array_equal(canny(batch(noise))[0, 0].numpy(), looped_canny(noise))


def test_canny_follows_a_long_weak_chain_to_its_end() -> None:
    levels = np.full((64, 64), 5)
    levels[:, 32:] = 20
    levels[0, 32:] = 60
    edges = canny(batch(levels))[0, 0]
    assert edges[1:].any(dim=1).all()
    assert not canny(batch(levels[::-1][:63]))[0, 0].any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), sizes, st.sampled_from([0.0005, 0.005, 0.05, 0.3]))
def test_distances_are_the_shortest_chains(seed: int, size: tuple[int, int], density: float) -> None:
    edges = np.random.default_rng(seed).random(size) < density
    chains, flags = shortest_chains(edges), torch.from_numpy(edges)[None, None]
    # The knight's move is 2.5e-5 pixels short, and there are at most nine of them.
    np.testing.assert_allclose(chamfer_distance(flags)[0, 0].numpy(), chains / 10000, rtol=0, atol=2.5e-4)
    np.testing.assert_array_equal(depth(flags)[0, 0].numpy(), block_sums(chains) // 90000)


def test_distances_from_one_point_reach_exactly_as_far_as_the_limit() -> None:
    edges = np.zeros((60, 70), bool)
    edges[29, 33] = True
    found = chamfer_distance(torch.from_numpy(edges)[None, None])[0, 0].numpy()
    np.testing.assert_allclose(found, shortest_chains(edges) / 10000, rtol=0, atol=2.5e-4)
    assert (found.max(), found[29, 33 + 19], found[29 - 20, 33]) == (20, 19, 20)


def test_without_edges_every_distance_is_the_limit() -> None:
    none = torch.zeros(2, 1, 9, 12, dtype=torch.bool)
    assert (chamfer_distance(none) == 20).all()
    assert (depth(none) == 20).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), sizes, st.integers(1, 256))
def test_equalise_follows_the_rule(seed: int, size: tuple[int, int], levels: int) -> None:
    values = np.random.default_rng(seed).integers(0, levels, size)
    np.testing.assert_array_equal(equalise(batch(values))[0, 0].numpy(), looped_equalise(values))


def test_equalise_keeps_an_image_of_one_level() -> None:
    assert (equalise(batch(np.full((8, 8), 7), np.zeros((8, 8))))[:, 0, 0, 0] == torch.tensor([7, 0])).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), sizes)
def test_relief_is_the_embossed_image_smoothed(seed: int, size: tuple[int, int]) -> None:
    values = np.random.default_rng(seed).integers(0, 256, size)
    p, (height, width) = np.pad(values, 1, mode="reflect"), size
    lit = np.zeros_like(values)
    for y, row in enumerate([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]):
        for x, weight in enumerate(row):
            lit += weight * p[y : y + height, x : x + width]
    expected = np.rint(block_sums(lit.clip(0, 255)) / 9)
    np.testing.assert_array_equal(relief(batch(values))[0, 0].numpy(), expected)


def a_batch_for_each() -> dict[Callable[[Tensor], Tensor], Tensor]:
    levels = batch(*(picture(seed, 21, 34) for seed in range(5)))
    edges = canny(levels)
    edges[1:4] &= torch.rand(3, 1, 21, 34, generator=torch.Generator().manual_seed(0)) < 0.02
    return {canny: levels, chamfer_distance: edges, depth: edges, equalise: levels, relief: levels}


def test_images_of_a_batch_do_not_touch() -> None:
    for function, images in a_batch_for_each().items():
        alone = torch.cat([function(image[None]) for image in images])
        assert torch.equal(function(images), alone), function


def test_torch_and_numpy_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = a_batch_for_each()
    by_numpy = [function(images) for function, images in batches.items()]
    for module in (edges, grid):
        monkeypatch.setattr(module, "in_numpy", lambda _: False)
    for (function, images), expected in zip(batches.items(), by_numpy, strict=True):
        found = function(images)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), function
        assert torch.equal(found, expected), function
