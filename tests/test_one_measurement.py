"""A model sees pixels in one place: whoever else calls a classifier would have to be trusted as well."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor
from typer.testing import CliRunner

import blemish
from blemish.cli.main import app
from blemish.data.cache import load
from blemish.export import corrupt_arrays, make_recipe
from blemish.models.base import Classifier
from blemish.studies.equivalence.compare_sets import equivalence as compare_sets
from blemish.studies.explore.pictures import pictures_at
from blemish.studies.explore.views import View, Witness
from blemish.studies.separation.scores import mscr
from blemish.studies.separation.trained import from_classifier
from blemish.studies.streams.calibration import Bench, calibrate

ONLY = {"blemish.evaluation.measure", "blemish.evaluation.pixels"}


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The modules that called a classifier."""
    seen: set[str] = set()
    plain = Classifier.__call__

    def noted(self: Classifier, images: Tensor) -> Tensor:
        seen.add(sys._getframe(1).f_globals["__name__"])
        return plain(self, images)

    monkeypatch.setattr(Classifier, "__call__", noted)
    return seen


def command(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output


def evaluation(folder: Path) -> None:
    blemish.evaluate("demo:plain", "demo:digits", "digits-c", out=folder, limit=20)


def calibration(folder: Path) -> None:
    source = blemish.open_source("demo:digits").take(np.arange(20))
    calibrate(Bench(blemish.open_model("demo:plain"), load(source), grid=(0.0, 2.5, 5.0)), ["fog", "contrast"])


def audited(folder: Path) -> None:
    blemish.audit("demo:plain", "demo:digits", ["fog"], images=20)


def severities(folder: Path) -> None:
    data = ("-m", "demo:plain", "-d", "demo:digits", "-n", 20)
    command("build", "match-severities", "-c", "contrast", *data, "-o", folder / "ranges.csv")


def equivalence(folder: Path) -> None:
    source = blemish.open_source("demo:digits")
    pixels = np.stack([np.asarray(source.read(row)) for row in range(20)])
    np.savez(folder / "clean.npz", images=pixels, labels=source.labels[:20])
    corrupt_arrays(folder / "clean.npz", folder / "theirs", make_recipe(["contrast"]))
    clean, theirs = load(blemish.open_source(folder / "clean.npz")), blemish.open_stored(folder / "theirs")
    compare_sets(clean, theirs, [blemish.parse_condition("contrast@3")], model=blemish.open_model("demo:plain"))


def separation(folder: Path) -> None:
    source = blemish.open_source("demo:digits")
    pixels = np.stack([np.asarray(source.read(row)) for row in range(20)])
    model = from_classifier(blemish.open_model("demo:plain"), clip=True)
    mscr({"demo": model}, pixels, source.labels[:20], epsilon=0.05, clip=True, runs=1)


def exploring(folder: Path) -> None:
    [picture], _ = pictures_at(None, 32)
    Witness(blemish.open_model("demo:plain")).told(picture, View.of("fog@2"))


@pytest.mark.parametrize("study", [evaluation, calibration, audited, severities, equivalence, separation, exploring])
def test_only_one_module_shows_pixels_to_models(
    study: Callable[[Path], Any], callers: set[str], tmp_path: Path
) -> None:
    study(tmp_path)
    assert callers
    assert callers <= ONLY
