"""Figures of streams: files of the asked kind, and refusals before anything is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.studies.streams.figures import run_figure, surface_figure, walk_figure
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.paths import find_path
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk, WalkStep

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

STEPS = tuple(WalkStep("fog", 2 - i / 4, "snow", i / 4, 20, 0.4, 0) for i in range(9))
WALK = Walk(STEPS, WalkInfo(target=0.4))


def test_kinds_of_files(tmp_path: Path) -> None:
    ramp = np.linspace(0, 1, 21)
    plane = Surface("fog", "snow", 0.8 * np.exp(-ramp[:, None] - ramp[None, :]), 100)
    paths = [find_path(plane, target) for target in (0.5, 0.3, 0.2)]
    surface_figure([(plane, paths), (plane, paths[:1])], tmp_path / "two.png")
    hits = np.random.default_rng(0).uniform(size=150) < 0.4
    walk_figure(WALK, tmp_path / "walk.svg", images=150, correct=hits)
    run_figure({"easy": {"none": hits, "tent": ~hits}, "hard": {"none": hits}}, tmp_path / "run.pdf", window=20)
    with Image.open(tmp_path / "two.png") as picture:
        assert picture.width > 2 * 600
    assert (tmp_path / "walk.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"walk\.gif: expected a name that ends in \.png"):
        walk_figure(WALK, tmp_path / "walk.gif")
    with pytest.raises(InputError, match="no runs to draw"):
        run_figure({}, tmp_path / "run.png")
    assert not list(tmp_path.iterdir())
