"""The letters that are drawn on images: as much ink, and as large, as MedMNIST-C's."""

from __future__ import annotations

import pytest

from blemish.ops.letters import ADVANCES, PHASES, letter_table

# Measured of MedMNIST-C's letters (OpenCV's Hershey Duplex) at font scales .14 and .18: in the mean 8.2 and 11.7 pixels
# of ink on 15 to 20 touched pixels, and 2.9 to 3.6 pixels from one letter to the next.
INK = {0.14: 8.2, 0.18: 11.7}


@pytest.mark.parametrize("size", INK)
def test_as_much_ink_as_the_references(size: float) -> None:
    table = letter_table((size,), "cpu")
    ink = table.ink.view(26, PHASES, -1)
    assert float(ink.sum(2).mean()) == pytest.approx(INK[size], rel=0.15)
    assert 14 < float((ink > 0.02).double().sum(2).mean()) < 21
    assert 2.4 < size * sum(ADVANCES) / 26 < 3.7


def test_letters_stand_on_the_baseline() -> None:
    """But for g, j, p, q and y, which reach below it; b, d, f, h, k and l reach higher than a."""
    table = letter_table((1.0,), "cpu")
    ink = table.ink.view(26, PHASES, -1)[:, 0] > 0.5
    lowest = {chr(97 + i): int(table.down[own].max()) for i, own in enumerate(ink)}
    highest = {chr(97 + i): int(table.down[own].min()) for i, own in enumerate(ink)}
    assert {letter for letter, row in lowest.items() if row > 3} == set("gjpqy")
    assert all(highest[letter] < highest["a"] for letter in "bdfhkl")


def test_phases_move_letters_by_fractions_of_a_pixel() -> None:
    table = letter_table((0.5,), "cpu")
    ink = table.ink.view(26, PHASES, -1)
    middle = (ink * table.right).sum(2) / ink.sum(2)
    assert (middle.diff(dim=1) > 0.1).all()
    assert float((middle[:, -1] - middle[:, 0]).mean()) == pytest.approx(1 - 1 / PHASES, abs=0.06)
