"""Samples of FiftyOne, which are objects of their own before a dataset has them; its datasets need MongoDB.

Where it is not installed, which nothing here does, the functions are tried with what they use of it, by its shape.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.data.pictures import picture_id
from blemish.integrations.fiftyone import add_answers, corrupted_samples
from foreign import foreign
from pictures import pictures
from synthetic_runs import write_run


class Fields:
    """An object with fields that are named as attributes or in brackets, as FiftyOne's are."""

    in_dataset = False

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= {"tags": [], "metadata": None, **fields}

    def copy(self) -> Fields:
        return Fields(**vars(self))

    def has_field(self, name: str) -> bool:
        return name in vars(self)

    __getitem__ = object.__getattribute__
    __setitem__ = object.__setattr__


@pytest.fixture(autouse=True)
def fo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """FiftyOne, or what has its shape."""
    if importlib.util.find_spec("fiftyone") is not None:
        return foreign("fiftyone")
    library: Any = ModuleType("fiftyone")
    library.Sample = library.Classification = Fields
    monkeypatch.setitem(sys.modules, "fiftyone", library)
    return library


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "val"
    for row in range(3):
        (folder / "cat").mkdir(parents=True, exist_ok=True)
        levels = pictures(1, 3, 24, 32, first=row)[0].permute(1, 2, 0).numpy()
        Image.fromarray(levels).save(folder / "cat" / f"{row}.bmp")
    return folder


def samples(root: Path) -> list[Any]:
    import fiftyone as fo

    paths = sorted((root / "cat").iterdir())
    return [fo.Sample(filepath=str(path), tags=["val"], truth=fo.Classification(label="cat")) for path in paths]


def test_corrupted_copies(root: Path, tmp_path: Path) -> None:
    copies = list(corrupted_samples(samples(root), "fog", 3, root=root, out=tmp_path / "out", seed=1))
    assert [copy.tags for copy in copies] == [["val", "fog@3"]] * 3
    assert [copy.truth.label for copy in copies] == ["cat"] * 3
    for row, copy in enumerate(copies):
        original = root / "cat" / f"{row}.bmp"
        assert copy.corrupted_from == str(original)
        assert Path(copy.filepath) == tmp_path / "out" / "fog@3" / "cat" / f"{row}.bmp.png"
        with Image.open(original) as before, Image.open(copy.filepath) as after:
            expected = blemish.Corrupt("fog", 3, seed=1)(before.copy(), id=picture_id(f"cat/{row}.bmp"))
            np.testing.assert_array_equal(np.asarray(after), np.asarray(expected))
    with pytest.raises(InputError, match="is there already"):
        list(corrupted_samples(samples(root), "fog", 3, root=root, out=tmp_path / "out"))


def test_answers(root: Path, tmp_path: Path) -> None:
    names = [f"cat/{row}.bmp" for row in range(2)]
    run = write_run(tmp_path, "net", {"clean": [True, False], "fog@3": [False, True]}, images=2, names=names)
    shown = samples(root)
    assert add_answers(shown, run, "fog@3", root=root) == 2
    records = run.records(blemish.parse_condition("fog@3"))
    for row in range(2):
        answer = shown[row]["net_fog_3"]
        at = list(records.images).index(names[row])
        assert answer.label == str(records.top5[at, 0])
        assert answer.confidence == pytest.approx(float(records.confidence[at]))
    assert not shown[2].has_field("net_fog_3")
    add_answers(shown, run, "clean", root=root, field="said")
    assert shown[0]["said"].label == str(run.records(CLEAN).labels[0])


def test_refusals(root: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path, "net", {"clean": 0.5, "fog@3": 0.5}, images=4)
    with pytest.raises(InputError, match="none of the samples is among the images"):
        add_answers(samples(root), run, "clean", root=root)
    with pytest.raises(InputError, match="no answers to single images under snow@1"):
        add_answers(samples(root), run, "snow@1", root=root)
    with pytest.raises(InputError, match="not below"):
        add_answers(samples(root), run, "clean", root=tmp_path / "elsewhere")
