"""Corruptions that take so long that what every corruption promises is tried on them among the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# Lenses that lie on each other are worked on one after the other, some hundreds for a batch of any size.
HEAVY = {"cbar:fish_eye"}


def units(names: Iterable[str]) -> list[Any]:
    """The names as parameters of tests, with heavy ones marked `slow`."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in HEAVY else name for name in names]
