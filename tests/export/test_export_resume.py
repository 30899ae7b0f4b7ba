"""Corrupted sets that are continued: sources and copies are compared with the digests in the manifest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.export import corrupt_arrays, corrupt_picture, corrupt_tree, make_recipe
from blemish.export.journal import JOURNAL
from blemish.export.sequences import corrupt_sequences, make_sequence_recipe
from fault_runs import invoke
from stored_sets import contents, noise

RECIPE = make_recipe(["contrast", "fog"], [1, 2], file_format="png")


def picture(path: Path, seed: int, side: int = 24) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise(side, side, 3, seed=seed)).save(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(4):
        picture(tmp_path / "src" / f"class{number % 2}" / f"{number}.png", number)
    return tmp_path / "src"


def replace_keeping_time(path: Path, content: bytes) -> None:
    """As cp -p, rsync -a and tar do."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def other_picture(path: Path) -> bytes:
    """Another picture in a file of the same size, so that neither size nor time tells."""
    size = path.stat().st_size
    picture(path.with_name("other.png"), 99)
    content = path.with_name("other.png").read_bytes()
    path.with_name("other.png").unlink()
    assert len(content) <= size + 64
    return content + bytes(max(0, size - len(content)))


def is_fresh(source: Path, out: Path, tmp_path: Path) -> bool:
    corrupt_tree(source, tmp_path / "fresh", RECIPE)
    return contents(out) == contents(tmp_path / "fresh")


# Sources


def test_a_replaced_picture_that_kept_its_time(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    replaced = tree / "class1" / "3.png"
    replace_keeping_time(replaced, other_picture(replaced))
    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE)
    assert (outcome.written, outcome.again, outcome.skipped) == (4, 4, 12)
    assert is_fresh(tree, tmp_path / "out", tmp_path)


def test_a_replaced_picture_is_no_mixture_with_copies_that_were_not_asked_for(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    before = contents(tmp_path / "out")
    replace_keeping_time(tree / "class1" / "3.png", other_picture(tree / "class1" / "3.png"))
    outcome = corrupt_tree(tree, tmp_path / "out", make_recipe(["fog"], [1, 2], file_format="png"))
    (failure,) = outcome.failures
    assert failure.name == "class1/3.png"
    assert failure.reason.startswith("changed after its copies in contrast/1, contrast/2 were made")
    assert contents(tmp_path / "out") == before


def test_quick_goes_by_sizes_and_times(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    replaced = tree / "class1" / "3.png"
    replace_keeping_time(replaced, other_picture(replaced))
    assert corrupt_tree(tree, tmp_path / "out", RECIPE, quick=True).skipped == 16
    replaced.touch()
    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE, quick=True)
    assert (outcome.written, outcome.skipped) == (4, 12)
    assert is_fresh(tree, tmp_path / "out", tmp_path)


def test_quick_makes_no_mixture_where_a_copy_is_missing(tree: Path, tmp_path: Path) -> None:
    """The picture is read for the missing copy, and turns out to be another."""
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    replace_keeping_time(tree / "class1" / "3.png", other_picture(tree / "class1" / "3.png"))
    (tmp_path / "out" / "fog" / "1" / "class1" / "3.png").unlink()
    assert corrupt_tree(tree, tmp_path / "out", RECIPE, quick=True).written == 4
    assert is_fresh(tree, tmp_path / "out", tmp_path)


def test_a_picture_that_was_only_touched(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    for path in tree.rglob("*.png"):
        os.utime(path, (10**9, 10**9))
    assert corrupt_tree(tree, tmp_path / "out", RECIPE).skipped == 16
    assert is_fresh(tree, tmp_path / "out", tmp_path)  # with the new times, so that --quick trusts them


def test_removed_pictures_are_named_or_pruned(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    before = contents(tmp_path / "out")
    for name in ("class0/0.png", "class1/1.png", "class1/3.png"):
        (tree / name).unlink()
    with pytest.raises(InputError, match=r"3 pictures that are not in the source any more \(class0/0\.png, class1/1"):
        corrupt_tree(tree, tmp_path / "out", make_recipe(["fog", "snow"], [1, 2], file_format="png"))
    assert contents(tmp_path / "out") == before
    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE, prune=True)
    assert (outcome.removed, outcome.skipped) == (12, 4)
    assert is_fresh(tree, tmp_path / "out", tmp_path)
    assert not (tmp_path / "out" / "fog" / "1" / "class1").exists()


def test_added_pictures_are_told_where_conditions_differ(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", make_recipe(["contrast"], [1], file_format="png"))
    picture(tree / "class0" / "new.png", 7)
    outcome = corrupt_tree(tree, tmp_path / "out", make_recipe(["fog"], [1], file_format="png"))
    assert outcome.notes == [
        "not all conditions have the same 5 pictures (contrast/1 has 4); name all of them to make them equal"
    ]
    both = make_recipe(["contrast", "fog"], [1], file_format="png")
    assert (corrupt_tree(tree, tmp_path / "out", both).written, corrupt_tree(tree, tmp_path / "out", both).notes) == (
        1,
        [],
    )


def test_single_pictures_join_a_folder(tree: Path, tmp_path: Path) -> None:
    """They are not taken for the whole source."""
    for name in ("class0/0.png", "class0/2.png"):
        assert corrupt_picture(tree / name, tmp_path / "out", RECIPE).written == 4
        assert corrupt_picture(tree / name, tmp_path / "out", RECIPE).skipped == 4


# Copies


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    replace_keeping_time(path, bytes(content))


def _missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [_emptied, _truncated, _flipped, _missing])
@pytest.mark.parametrize("jobs", [1, 2])
def test_damaged_copies_are_made_again(tree: Path, tmp_path: Path, damage: Callable[[Path], None], jobs: int) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    before = contents(tmp_path / "out")
    damage(tmp_path / "out" / "fog" / "2" / "class0" / "2.png")
    outcome = corrupt_tree(tree, tmp_path / "out", RECIPE, jobs=jobs, quick=damage in (_emptied, _truncated))
    assert (outcome.written, outcome.skipped, outcome.again) == (1, 15, int(damage is not _missing))
    assert contents(tmp_path / "out") == before


def test_copies_that_no_line_knows_are_made_again(tree: Path, tmp_path: Path) -> None:
    """As after kill -9: the copies are there, the line is not, or half of it."""
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    before = contents(tmp_path / "out")
    journal = tmp_path / "out" / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    for left, written in ((b"".join(lines[:2]) + lines[2][:40], 8), (b"".join(lines[1:]), 4), (b"", 16)):
        journal.write_bytes(left)
        outcome = corrupt_tree(tree, tmp_path / "out", RECIPE)
        assert (outcome.written, outcome.again) == (written, written)
        assert contents(tmp_path / "out") == before


def test_a_damaged_journal_costs_time_only(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    before = contents(tmp_path / "out")
    journal = tmp_path / "out" / JOURNAL
    content = journal.read_bytes()
    for place in range(0, len(content), 97):
        damaged = bytearray(content)
        damaged[place] ^= 2
        journal.write_bytes(damaged)
        assert corrupt_tree(tree, tmp_path / "out", RECIPE).written <= 8
        assert contents(tmp_path / "out") == before


def test_a_journal_cannot_name_files_elsewhere(tree: Path, tmp_path: Path) -> None:
    """Pruning removes copies of the pictures that it names."""
    corrupt_tree(tree, tmp_path / "out", RECIPE)
    victim = tmp_path / "thesis" / "x.png"
    picture(victim, 0)
    from blemish.core.files import Digest
    from blemish.export.journal import Entry, Journal, SourceFile

    with Journal(tmp_path / "out") as journal:
        for name, key in (("../thesis/x.png", "."), ("x.png", "../thesis"), ("x.png", str(tmp_path / "thesis"))):
            journal.add(Entry(name, SourceFile(1, 1, "0"), {key: Digest(1, "0")}))
    corrupt_tree(tree, tmp_path / "out", RECIPE, prune=True)
    assert victim.exists()


def test_the_journal(tree: Path, tmp_path: Path) -> None:
    corrupt_tree(tree, tmp_path / "out", RECIPE, jobs=2)
    lines = [json.loads(line) for line in (tmp_path / "out" / JOURNAL).read_text().splitlines()]
    assert [line["name"] for line in lines] == ["class0/0.png", "class0/2.png", "class1/1.png", "class1/3.png"]
    assert [*lines[0]["copies"]] == ["contrast/1", "contrast/2", "fog/1", "fog/2"]
    source = (tree / "class0" / "0.png").stat()
    assert lines[0]["source"][:2] == [source.st_size, source.st_mtime_ns]
    assert lines[0]["copies"]["fog/1"][0] == (tmp_path / "out" / "fog" / "1" / "class0" / "0.png").stat().st_size


# Sequences and arrays


def test_sequences(tree: Path, tmp_path: Path) -> None:
    recipe = make_sequence_recipe(["p:brightness", "p:tilt"])
    corrupt_sequences(tree, tmp_path / "out", recipe)
    before = contents(tmp_path / "out")
    _emptied(tmp_path / "out" / "tilt" / "class0" / "2" / "07.png")
    outcome = corrupt_sequences(tree, tmp_path / "out", recipe)
    assert (outcome.written, outcome.again) == (1, 1)
    assert contents(tmp_path / "out") == before
    replace_keeping_time(tree / "class1" / "3.png", other_picture(tree / "class1" / "3.png"))
    assert corrupt_sequences(tree, tmp_path / "out", recipe, quick=True).written == 0
    assert corrupt_sequences(tree, tmp_path / "out", recipe).written == 62
    (tree / "class1" / "3.png").unlink()
    with pytest.raises(InputError, match=r"1 pictures that are not in the source any more \(class1/3\.png\)"):
        corrupt_sequences(tree, tmp_path / "out", recipe)
    assert corrupt_sequences(tree, tmp_path / "out", recipe, prune=True).removed == 62
    corrupt_sequences(tree, tmp_path / "fresh", recipe)
    assert contents(tmp_path / "out") == contents(tmp_path / "fresh")


@pytest.mark.parametrize("damage", [_emptied, _truncated, _flipped, _missing])
@pytest.mark.parametrize("name", ["fog.npy", "labels.npy"])
def test_arrays(tmp_path: Path, damage: Callable[[Path], None], name: str) -> None:
    np.savez(tmp_path / "x.npz", x=noise(5, 16, 16, 3), y=np.arange(5))
    recipe = make_recipe(["fog", "contrast"], [1, 2])
    corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", recipe)
    before = contents(tmp_path / "out")
    damage(tmp_path / "out" / name)
    outcome = corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", recipe, quick=damage in (_emptied, _truncated))
    assert outcome.written == (10 if name == "fog.npy" else 0)
    assert contents(tmp_path / "out") == before


def test_arrays_that_no_line_knows_are_made_again(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=noise(5, 16, 16, 3), y=np.arange(5))
    recipe = make_recipe(["fog", "contrast"], [1, 2])
    corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", recipe)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / JOURNAL).unlink()
    assert corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", recipe).again == 20
    assert contents(tmp_path / "out") == before


# The command


def test_the_command_says_what_it_did(tree: Path, tmp_path: Path) -> None:
    command = ["corrupt", tree, "-o", tmp_path / "out", "-c", "fog,contrast", "-s", "1"]
    assert invoke(*command)[0] == 0
    replaced = tree / "class1" / "3.png"
    replace_keeping_time(replaced, other_picture(replaced))
    assert "8 were there already" in invoke(*command, "--quick")[1]
    _, said = invoke(*command)
    assert "wrote 2 images" in said
    assert "2 of them again: damaged, or of pictures that have changed" in said
    replaced.unlink()
    code, said = invoke(*command)
    assert code == 2
    assert "class1/3.png" in said
    assert "--prune" in said
    assert "removed 2 copies of pictures that are gone" in invoke(*command, "--prune")[1]
    picture(tree / "class0" / "new.png", 7)
    assert "not all conditions have the same 4 pictures" in invoke(*command[:5], "fog", *command[6:])[1]


def test_files_are_on_the_disk_before_they_have_their_name(tree: Path, tmp_path: Path) -> None:
    """In a process of its own, whose calls of the system are written down."""
    code = (
        "import os, sys, pathlib\n"
        "log = []\n"
        "sync, replace = os.fsync, pathlib.Path.replace\n"
        "os.fsync = lambda fd: (log.append(os.readlink(f'/proc/self/fd/{fd}')), sync(fd))[1]\n"
        "pathlib.Path.replace = lambda self, to: (log.append((str(self), str(to))), replace(self, to))[1]\n"
        "from blemish.export import corrupt_tree, make_recipe\n"
        "corrupt_tree(sys.argv[1], sys.argv[2], make_recipe(['fog'], [1]))\n"
        "renamed = [entry for entry in log if isinstance(entry, tuple)]\n"
        "assert len(renamed) >= 6, renamed\n"
        "assert all(log.index(part) < log.index((part, to)) for part, to in renamed)\n"
    )
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    subprocess.run([sys.executable, "-c", code, str(tree), str((tmp_path / "out").resolve())], check=True)
