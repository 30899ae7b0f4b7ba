"""Corruptions that take so long that what every corruption promises is tried on them among the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import blemish
from blemish.ops.codecs import FFMPEG

# Lenses that lie on each other are worked on one after the other, some hundreds for a batch of any size.
HEAVY = {"cbar:fish_eye"}


def units(names: Iterable[str]) -> list[Any]:
    """The names as parameters of tests; heavy ones, and those that start a program for each image, are `slow`."""
    return [pytest.param(name, marks=pytest.mark.slow) if _is_heavy(name) else name for name in names]


def _is_heavy(name: str) -> bool:
    unit = blemish.catalog.get(name)
    return name in HEAVY or (unit is not None and unit.files == FFMPEG)
