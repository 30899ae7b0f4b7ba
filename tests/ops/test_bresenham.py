"""Anti-aliased lines without walking, against the walk."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from blemish.ops.bresenham import line_pixels

SIDE = 24


def walked(start: tuple[int, int], end: tuple[int, int]) -> dict[tuple[int, int], float]:
    """Opacities by Zingl's algorithm (The Beauty of Bresenham's Algorithm), one step after the other."""
    (row, column), (last_row, last_column) = start, end
    across, down = abs(last_column - column), abs(last_row - row)
    right, below = (1 if column < last_column else -1), (1 if row < last_row else -1)
    length = math.hypot(across, down) or 1.0
    error = across - down
    painted: dict[tuple[int, int], float] = {}

    def paint(y: int, x: int, opacity: float) -> None:
        assert (y, x) not in painted
        painted[y, x] = opacity

    while True:
        paint(row, column, 1 - abs(error - across + down) / length)
        before, left = error, column
        if 2 * before >= -across:
            if column == last_column:
                return painted
            if before + down < length:
                paint(row + below, column, 1 - (before + down) / length)
            error -= down
            column += right
        if 2 * before <= down:
            if row == last_row:
                return painted
            if across - before < length:
                paint(row, left + right, 1 - (across - before) / length)
            error += across
            row += below


ENDS = [
    *((tuple(pair[:2]), tuple(pair[2:])) for pair in np.random.default_rng(0).integers(-15, 40, (300, 4)).tolist()),
    ((3, 3), (3, 3)),
    ((0, 0), (23, 23)),
    ((23, 0), (0, 23)),
    ((5, -9), (5, 60)),
    ((-9, 5), (60, 5)),
    ((0, 0), (1, 20)),
    ((2, 1), (20, 0)),
]


@pytest.mark.parametrize(("start", "end"), ENDS)
def test_pixels_and_opacities(start: tuple[int, int], end: tuple[int, int]) -> None:
    ends = (torch.tensor([start]), torch.tensor([end]))
    places, opacity = line_pixels(*ends, SIDE, SIDE, longest=80)
    expected = {at: o for at, o in walked(start, end).items() if all(0 <= i < SIDE for i in at)}
    seen = places[0] < SIDE * SIDE
    found = dict(zip([divmod(p, SIDE) for p in places[0][seen].tolist()], opacity[0][seen].tolist(), strict=True))
    assert len(found) == int(seen.sum())
    assert found.keys() == expected.keys()
    assert all(found[at] == pytest.approx(expected[at], abs=1e-12) for at in found)


def test_lines_of_several_images_are_those_of_each() -> None:
    start, end = torch.tensor([[1, 2], [20, 3]]), torch.tensor([[9, 22], [-5, 7]])
    together = line_pixels(start, end, SIDE, SIDE, longest=30)
    for i in range(2):
        alone = line_pixels(start[i : i + 1], end[i : i + 1], SIDE, SIDE, longest=30)
        assert all(torch.equal(a[i], b[0]) for a, b in zip(together, alone, strict=True))
