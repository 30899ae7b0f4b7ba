"""What goes wrong on real machines, inputs: sources that change, shrink or vanish while they are used."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import blemish
from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.data.cache import load
from blemish.export import Recipe, corrupt_arrays, corrupt_tree
from blemish.export.sequences import SequenceRecipe, corrupt_sequences, make_sequence_recipe
from stored_sets import contents
from toy_runs import evaluate


def benchmark() -> Benchmark:
    return Benchmark("b", "", "error", tuple(map(parse_condition, ("brightness@1", "contrast@1"))))


def model() -> blemish.Classifier:
    class Mean(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return 5 * images.mean((2, 3))

    return blemish.from_module(Mean(), name="mean", preprocessing=blemish.Preprocessing())


def pixels(count: int, seed: int = 0, side: int = 32) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (count, side, side, 3)).astype(np.uint8)


def later(path: Path) -> None:
    """A time of change that differs on every file system."""
    moment = path.stat().st_mtime + 5
    os.utime(path, (moment, moment))


@pytest.fixture
def array(tmp_path: Path) -> Path:
    np.save(tmp_path / "images.npy", pixels(600))
    np.save(tmp_path / "labels.npy", np.arange(600) % 3)
    return tmp_path / "images.npy"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number, image in enumerate(pixels(6)):
        path = tmp_path / "tree" / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    (tmp_path / "tree" / "class2").mkdir()  # the model has three outputs
    return tmp_path / "tree"


def opened(array: Path) -> blemish.Source:
    return blemish.open_source(array, labels=array.with_name("labels.npy"))


# Array files


def _edited(path: Path) -> None:
    mapped = np.load(path, mmap_mode="r+")
    mapped[300:] = 7
    mapped.flush()
    later(path)


def _cut_off(path: Path) -> None:
    os.truncate(path, 5_000)


def _replaced(path: Path) -> None:
    np.save(path.with_name("other.npy"), pixels(600, seed=1))
    path.with_name("other.npy").replace(path)
    later(path)


CHANGES = [_edited, _cut_off, _replaced]


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_changes_after_it_was_opened(array: Path, change: Callable[[Path], None]) -> None:
    """A file that got shorter would otherwise end the process without a word, since it is mapped."""
    source = opened(array)
    change(array)
    with pytest.raises(InputError, match=r"images\.npy: was changed while it was being read"):
        load(source)


def test_an_array_that_is_removed(array: Path) -> None:
    source = opened(array)
    array.unlink()
    with pytest.raises(InputError, match=r"images\.npy: cannot be read"):
        load(source)


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_changes_between_stages(array: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    """The first stage is kept, and the second refused: its labels would be of other images."""

    def enough(run: blemish.Run, look: int) -> bool:
        change(array)
        return False

    with pytest.raises(InputError, match="was changed while it was being read"):
        evaluate(model(), opened(array), benchmark(), out=tmp_path / "out", limit=100, stop_when=enough)
    run = blemish.open_run(tmp_path / "out" / "mean")
    assert run.stages == 1
    assert len(run.records(parse_condition("contrast@1"))) == 100


def test_an_array_that_changes_between_a_run_and_its_continuation(array: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int | None, what: str = "") -> None:
        if what == "contrast@1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(model(), opened(array), benchmark(), out=tmp_path / "out", report=stop)
    _edited(array)
    with pytest.raises(InputError, match=r"holds results of another run \(data\.fingerprint was"):
        evaluate(model(), opened(array), benchmark(), out=tmp_path / "out")


def test_images_in_memory_do_not_change(array: Path, tmp_path: Path) -> None:
    """During a run the images are those that were read at its start, whatever becomes of the file."""

    def change(done: int, total: int | None, what: str = "") -> None:
        if what == "contrast@1":
            _cut_off(array)

    disturbed = evaluate(model(), opened(array), benchmark(), out=tmp_path / "a", report=change)
    np.save(array, pixels(600))
    whole = evaluate(model(), opened(array), benchmark(), out=tmp_path / "b")
    for condition in whole.conditions:
        assert (disturbed.records(condition).confidence == whole.records(condition).confidence).all()


@pytest.mark.parametrize("change", CHANGES)
def test_an_array_that_changes_while_copies_are_made(
    array: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    recipe = Recipe((blemish.catalog["contrast"], blemish.catalog["brightness"]), (1.0,))
    changed = []

    def progress(done: int, total: int) -> None:
        if not changed:
            change(array)
            changed.append(done)

    with pytest.raises(InputError, match="was changed while it was being read"):
        corrupt_arrays(array, tmp_path / "out", recipe, progress=progress)
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert left <= {"blemish.json", "blemish-files.jsonl", "contrast.npy"}  # what was finished before the change
    if change is not _cut_off:
        with pytest.raises(InputError, match=r"holds images made with other settings \(images was"):
            corrupt_arrays(array, tmp_path / "out", recipe)


# Archives


def test_a_shard_that_changes_after_it_was_opened(tmp_path: Path) -> None:
    """An archive of the same layout: every place in it still holds a picture, but not the one of that name."""

    def write(seed: int) -> None:
        with tarfile.open(tmp_path / "x.tar", "w") as archive:
            for number, image in enumerate(pixels(3, seed)):
                buffer = io.BytesIO()
                Image.fromarray(image).save(buffer, "PPM")
                for name, content in ((f"{number}.ppm", buffer.getvalue()), (f"{number}.cls", b"0")):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(content)
                    archive.addfile(entry, io.BytesIO(content))

    write(0)
    source = blemish.open_source(tmp_path / "x.tar")
    before = np.asarray(source.read(1))
    write(1)
    later(tmp_path / "x.tar")
    with pytest.raises(InputError, match=r"x\.tar: was changed while it was being read"):
        source.read(1)
    assert not np.array_equal(before, np.asarray(blemish.open_source(tmp_path / "x.tar").read(1)))


# Folders


def test_a_picture_that_vanishes_during_a_run(tree: Path, tmp_path: Path) -> None:
    source = blemish.open_source(tree)
    (tree / "class1" / "3.png").unlink()
    with pytest.raises(InputError, match=r"3\.png"):
        evaluate(model(), source, benchmark(), out=tmp_path / "out")
    assert not [*(tmp_path / "out").rglob("*.parquet")]


def test_a_picture_that_is_cut_off(tree: Path, tmp_path: Path) -> None:
    path = tree / "class1" / "3.png"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match=r"3\.png"):
        evaluate(model(), tree, benchmark(), out=tmp_path / "out")


@pytest.mark.parametrize("what", ["edited", "removed", "added", "moved"])
def test_a_folder_that_changes_between_a_run_and_its_continuation(tree: Path, tmp_path: Path, what: str) -> None:
    evaluate(model(), tree, benchmark(), out=tmp_path / "out")
    path = tree / "class1" / "3.png"
    if what == "edited":
        Image.fromarray(pixels(1, seed=9)[0]).save(path)
    elif what == "removed":
        path.unlink()
    elif what == "added":
        shutil.copy(path, tree / "class0" / "9.png")
    else:
        path.rename(tree / "class0" / "3.png")
    with pytest.raises(InputError, match="holds results of another run"):
        evaluate(model(), tree, benchmark(), out=tmp_path / "out")


def test_an_edited_picture_beside_a_cache(tree: Path, tmp_path: Path) -> None:
    """Decoded images are kept by the files' size and time: an edited file is decoded again."""
    first = load(blemish.open_source(tree), folder=tmp_path / "cache", limit=0)
    Image.fromarray(pixels(1, seed=9)[0]).save(tree / "class1" / "3.png")
    later(tree / "class1" / "3.png")
    second = load(blemish.open_source(tree), folder=tmp_path / "cache", limit=0)
    assert first.fingerprint != second.fingerprint


def test_a_damaged_cache_is_made_again(tree: Path, tmp_path: Path) -> None:
    first = load(blemish.open_source(tree), folder=tmp_path / "cache", limit=0)
    (path,) = (tmp_path / "cache").glob("*.pixels")
    mark, content = first.fingerprint, bytearray(path.read_bytes())
    for place in (0, len(content) // 2, len(content) - 30):
        damaged = bytearray(content)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        again = load(blemish.open_source(tree), folder=tmp_path / "cache", limit=0)
        assert again.fingerprint == mark
        assert (again.image(2) == np.asarray(blemish.open_source(tree).read(2)).transpose(2, 0, 1)).all()


# Copies of folders


RECIPE = Recipe((blemish.catalog["contrast"],), (1.0, 2.0), file_format="png")


def test_a_picture_that_changes_between_its_copies(tree: Path, tmp_path: Path) -> None:
    """One copy is missing when a run is continued, and the picture is another by now: no mixture is made."""
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    (tmp_path / "out" / "contrast" / "2" / "class1" / "3.png").unlink()
    Image.fromarray(pixels(1, seed=9)[0]).save(tree / "class1" / "3.png")
    later(tree / "class1" / "3.png")
    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE)
    assert (outcome.written, outcome.again, outcome.skipped, outcome.failures) == (2, 1, 10, [])
    corrupt_tree(tree, tmp_path / "fresh", RECIPE)
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")


def test_a_picture_that_vanishes_while_copies_are_made(tree: Path, tmp_path: Path) -> None:
    def progress(done: int, total: int) -> None:
        (tree / "class1" / "5.png").unlink(missing_ok=True)

    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE, progress=progress)
    assert [failure.name for failure in outcome.failures] == ["class1/5.png"]
    assert outcome.written == 10


def sequence_recipe() -> SequenceRecipe:
    return make_sequence_recipe(["p:brightness"])


def test_sequences_of_another_folder_are_refused(tree: Path, tmp_path: Path) -> None:
    """Files of the same names would be taken for finished."""
    corrupt_sequences(tree, tmp_path / "out", sequence_recipe())
    other = tmp_path / "other" / "tree"
    shutil.copytree(tree, other)
    with pytest.raises(InputError, match=r"made with other settings \(source was"):
        corrupt_sequences(other, tmp_path / "out", sequence_recipe())
    Image.fromarray(pixels(1, seed=9)[0]).save(tree / "class0" / "0.png")
    outcome = corrupt_sequences(tree, tmp_path / "out", sequence_recipe())
    assert (outcome.written, outcome.again) == (31, 31)
