"""Entries: bits come back exactly, seals break, false claims are found, and models are asked again."""

from __future__ import annotations

import json
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError, Notice
from blemish.metrics.imports import TableInfo
from blemish.metrics.scores import score_run
from blemish.studies.leaderboard.bits import Bits, packed, unpacked
from blemish.studies.leaderboard.entry import (
    BITS_FILE,
    ENTRY_FILE,
    ModelEntry,
    TableEntry,
    digest,
    find_entries,
    read_entry,
    seal_of,
    write_model_entry,
)
from blemish.studies.leaderboard.make import import_table, make_entry, numbers_of
from blemish.studies.leaderboard.ranked import rankings_of_entries
from blemish.studies.leaderboard.verify import failed, rerun, verify
from synthetic_runs import severities, write_run
from toy_runs import benchmark, evaluate, model, source


def bits(images: int, conditions: int, seed: int = 0) -> Bits:
    rng = np.random.default_rng(seed)
    names = np.array(sorted(f"n{i:05d}/ü {i}.png" for i in range(images)))
    labels = rng.integers(-1, 2**31 - 1, images).astype(np.int32)
    return Bits(names, labels, rng.random((images, conditions)) < rng.random(conditions))


@pytest.mark.parametrize(("images", "conditions"), [(1, 1), (7, 8), (8, 9), (101, 76), (3, 16)])
def test_bits_come_back_exactly(images: int, conditions: int) -> None:
    own = bits(images, conditions)
    again = unpacked(packed(own))
    assert again.names.tolist() == own.names.tolist()
    assert again.labels.tolist() == own.labels.tolist()
    assert np.array_equal(again.correct, own.correct)
    assert packed(own) == packed(again)


def test_bits_of_a_whole_imagenet_c_are_less_than_a_megabyte_even_at_random() -> None:
    """Nothing can be saved on random bits; real ones are smaller (perf/entry_size.py)."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(50_000) + 1
    names = sorted(f"n{1_440_764 + i // 50:08d}/ILSVRC2012_val_{number:08d}.JPEG" for i, number in enumerate(numbers))
    labels = np.repeat(np.arange(1000), 50).astype(np.int32)
    own = Bits(np.array(names), labels, rng.random((50_000, 76)) < 0.5)
    assert len(packed(own)) < 1_000_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bits"),
        (b"this is no xz at all, but long enough", "not readable as xz"),
        (lzma.compress(b"other"), "not a file of bits"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 0, 1, 0)), "0 images"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 2**31, 2**31, 0)), "2147483648 images"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 1, 1, 1) + b"a"), "bytes of names, labels and bits"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 1, 1, 1) + b"a" + bytes(5) + b"more"), "expected 6"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 1, 1, 1) + b"\xff" + bytes(5)), "UTF-8"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 2, 1, 3) + b"b\0a" + bytes(10)), "sorted"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 2, 1, 3) + b"abc" + bytes(10)), "1 names for 2"),
        (lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 2**20, 2000, 2**30)), "1048576 images and 2000"),
        (
            lzma.compress(b"blemish bits 1\n" + struct.pack("<III", 2, 1, 5002) + b"a\0" + b"b" * 5000 + bytes(10)),
            "one of them of 5000 characters",
        ),
    ],
)
def test_damaged_bits_are_refused(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        unpacked(content)


def test_a_bomb_is_not_unpacked() -> None:
    """It says that it holds one image, and would be millions of bytes."""
    start = b"blemish bits 1\n" + struct.pack("<III", 1, 1, 1)
    with pytest.raises(InputError, match="expected 6"):
        unpacked(lzma.compress(start + bytes(2**23)))


def entry(folder: Path, name: str = "net", **settings: object) -> ModelEntry:
    run = write_run(folder / "runs", name, severities(("fog", "snow")), images=60, **settings)  # type: ignore[arg-type]
    return make_entry(run, folder / "board")


def test_an_entry_says_what_its_run_says(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs", "net", severities(("fog", "snow")), images=60)
    found = read_entry(make_entry(run, tmp_path / "board", link="https://example.org", notes="mine").path)
    assert isinstance(found, ModelEntry)
    assert found.header.model == run.info.model
    assert found.header.protocol == run.info.protocol
    assert (found.header.link, found.header.notes) == ("https://example.org", "mine")
    for condition in run.conditions:
        records = run.records(condition)
        own = dict(zip(records.images.tolist(), records.correct.tolist(), strict=True))
        column = found.bits.correct[:, run.conditions.index(condition)]
        assert dict(zip(found.bits.names.tolist(), column.tolist(), strict=True)) == own
    scores = score_run(run, replicates=50)
    assert found.header.claims["error"] == pytest.approx(scores.find("error").estimate.value, abs=1e-12)
    numbers = numbers_of(found.run, replicates=50)
    assert numbers.value == scores.find("error").estimate, "with the intervals of its records"
    assert numbers.cells["fog@3"] == pytest.approx(scores.find("error", "fog@3").estimate.value)
    assert not failed(verify(found))


def test_equal_runs_have_equal_seals(tmp_path: Path) -> None:
    one, other = (entry(tmp_path / name).header.seal for name in ("a", "b"))
    assert one == other
    assert one != entry(tmp_path / "c", seed=1).header.seal


def changed(path: Path, *, sealed: bool, **changes: object) -> None:
    content = json.loads((path / ENTRY_FILE).read_text())
    content |= changes
    if sealed:
        content["seal"] = seal_of(content)
    (path / ENTRY_FILE).write_text(json.dumps(content))


@pytest.mark.parametrize(
    "changes", [{"claims": {"error": 1.0}}, {"notes": "better"}, {"format": 1.0}, {"unknown": 1}, {"stages": 2}]
)
def test_a_change_of_a_single_word_breaks_the_seal(tmp_path: Path, changes: dict[str, object]) -> None:
    found = entry(tmp_path)
    changed(found.path, sealed=False, **changes)
    with pytest.raises(InputError, match=r"entry\.json: was changed after it was sealed"):
        read_entry(found.path)


def test_order_and_spaces_do_not_break_the_seal(tmp_path: Path) -> None:
    found = entry(tmp_path)
    content = json.loads((found.path / ENTRY_FILE).read_text())
    (found.path / ENTRY_FILE).write_text(json.dumps(dict(reversed(content.items())), indent=7))
    assert read_entry(found.path).header.seal == found.header.seal


def test_other_bits_break_the_seal(tmp_path: Path) -> None:
    found = entry(tmp_path)
    better = Bits(found.bits.names, found.bits.labels, np.ones_like(found.bits.correct))
    (found.path / BITS_FILE).write_bytes(packed(better))
    with pytest.raises(InputError, match=r"bits\.xz: was changed after it was sealed"):
        read_entry(found.path)
    # Sealed anew, the claims do not fit the bits.
    changed(found.path, sealed=True, bits=digest(packed(better)))
    checks = verify(read_entry(found.path))
    assert failed(checks)
    (error,) = (check for check in checks if check.name == "error")
    assert not error.holds
    assert error.seen.endswith("its bits give 0 %")


def test_false_claims_are_found(tmp_path: Path) -> None:
    found = entry(tmp_path)
    changed(found.path, sealed=True, claims={**found.header.claims, "error": found.header.claims["error"] - 0.01})
    assert [check.name for check in verify(read_entry(found.path)) if not check.holds] == ["error"]
    changed(found.path, sealed=True, claims={"error": found.header.claims["error"], "mce": 1.0})
    assert {check.name for check in verify(read_entry(found.path)) if not check.holds} >= {"mce", "clean_error"}


def test_bits_of_other_images_than_stated_are_refused(tmp_path: Path) -> None:
    found = entry(tmp_path)
    data = json.loads((found.path / ENTRY_FILE).read_text())["data"] | {"images": 61}
    changed(found.path, sealed=True, data=data)
    with pytest.raises(InputError, match=r"bits of shape \(60, 11\); expected \(61, 11\)"):
        read_entry(found.path)


def test_more_stages_than_images_are_refused(tmp_path: Path) -> None:
    found = entry(tmp_path)
    changed(found.path, sealed=True, stages=10**12)  # as many as would fill any memory
    with pytest.raises(InputError, match="stages is 1000000000000; expected 1 or more, and no more than"):
        read_entry(found.path)


@pytest.mark.parametrize(
    ("benchmark", "message"),
    [
        ({"conditions": [*["fog@1"] * 11]}, "expected clean images"),
        ({"conditions": ["clean", *["fog@1"] * 10]}, "a condition twice"),
        ({"conditions": ["clean", "p:tilt@1", *(f"fog@1.{i}" for i in range(9))]}, "p:tilt@1 in benchmark"),
        ({"conditions": ["clean", "&@1", *(f"fog@1.{i}" for i in range(9))]}, "&"),
        ({"families": {}}, "no family of fog"),
        ({"baseline": "nobody"}, "unknown baseline 'nobody'"),
        ({"conditions": 5}, "conditions is 5"),
    ],
)
def test_benchmarks_that_make_no_sense_are_refused_with_the_file(
    tmp_path: Path, benchmark: dict[str, object], message: str
) -> None:
    """Whoever wrote them sealed them all the same."""
    found = entry(tmp_path)
    old = json.loads((found.path / ENTRY_FILE).read_text())["benchmark"]
    changed(found.path, sealed=True, benchmark={**old, **benchmark})
    with pytest.raises(InputError, match=rf"entry\.json.*{message}"):
        read_entry(found.path)


def test_a_forged_entry_near_chance_has_no_rank(tmp_path: Path) -> None:
    found = entry(tmp_path)
    rng = np.random.default_rng(0)
    own = Bits(found.bits.names, found.bits.labels, rng.random(found.bits.correct.shape) < 0.1)
    near = write_model_entry(tmp_path / "near", found.header, own)
    (ranking,) = rankings_of_entries([found, near], replicates=50)
    assert [line.model for line in ranking.lines] == ["net"]
    assert "near is" in ranking.notes[0] or "above chance" in ranking.notes[0]


def test_what_is_no_entry_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.entry.json").write_text("{}")
    with pytest.raises(InputError, match="not an entry of a leaderboard"):
        find_entries(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        find_entries(tmp_path / "absent")
    (tmp_path / "a.entry.json").unlink()
    with pytest.raises(InputError, match="no entries in it"):
        find_entries(tmp_path)


def test_runs_that_cannot_be_entered(tmp_path: Path) -> None:
    chance = write_run(tmp_path, "chance", {"clean": 0.1, "fog@3": 0.1}, images=200)
    with pytest.raises(InputError, match="nothing that is measured of it means anything"):
        make_entry(chance, tmp_path / "board")
    half = write_run(tmp_path, "half", {"clean": 0.9, "fog@3": None}, images=50)
    with pytest.raises(InputError, match="fog@3 is not finished"):
        make_entry(half, tmp_path / "board")
    flips = write_run(tmp_path, "flips", {"clean": 0.9, "p:tilt@1": 0.2}, images=20, benchmark={"metric": "flips"})
    with pytest.raises(InputError, match="flip probability is no mean"):
        make_entry(flips, tmp_path / "board")
    assert not (tmp_path / "board").exists()


def test_an_entry_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    run = write_run(tmp_path, "net", {"clean": 0.9, "fog@3": 0.5}, images=50)
    first = make_entry(run, tmp_path / "board")
    with pytest.raises(InputError, match="--overwrite"):
        make_entry(run, tmp_path / "board", notes="again")
    assert make_entry(run, tmp_path / "board", notes="again", overwrite=True).header.seal != first.header.seal


def test_sequences_are_left_out_with_a_word(tmp_path: Path) -> None:
    run = write_run(tmp_path, "net", {"clean": 0.9, "fog@3": 0.5, "p:tilt@1": 0.2}, images=40)
    with pytest.warns(Notice, match="1 sequences"):
        found = make_entry(run, tmp_path / "board")
    assert found.header.benchmark.conditions == ["clean", "fog@3"]


def test_a_model_is_asked_again(tmp_path: Path) -> None:
    conditions = benchmark("fog@2", "gaussian_noise@3", preset="cifar")
    run = evaluate(model(), source(30), conditions, out=tmp_path / "runs")
    # The function answers at random; an entry of it is refused, so its labels are made to fit.
    own = Bits(*_sorted(run))
    found = make_entry_of(run, own, tmp_path / "board")
    result = rerun(found, model(), source(30), images=12)
    assert (result.images, result.conditions, result.different) == (12, 3, 0)
    assert result.check(0).holds
    lie = own.correct.copy()
    lie[:, 1] = ~lie[:, 1]
    false = make_entry_of(run, Bits(own.names, own.labels, lie), tmp_path / "lie")
    assert not failed(verify(false)), "its claims are those of its bits"
    caught = rerun(false, model(), source(30), images=12)
    assert (caught.different, caught.worst, caught.worst_share) == (12, "fog@2", 1.0)
    check = caught.check(0.01)
    assert not check.holds
    assert "12 of 36 answers differ" in check.seen
    with pytest.raises(InputError, match="its weights are w1"):
        rerun(found, model(weights="w2"), source(30), images=3)
    with pytest.raises(InputError, match="no image"):
        rerun(found, model(), source(10), images=30)


def _sorted(run: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    each = [run.records(condition) for condition in run.conditions]  # type: ignore[attr-defined]
    order = np.argsort(each[0].images)
    return each[0].images[order], each[0].labels[order], np.stack([records.correct[order] for records in each], axis=1)


def make_entry_of(run: object, own: Bits, folder: Path) -> ModelEntry:
    from dataclasses import replace

    from blemish.studies.leaderboard.entry import ModelHeader, write_model_entry
    from blemish.studies.leaderboard.make import claims_of

    info = run.info  # type: ignore[attr-defined]
    header = ModelHeader(
        1, "model", info.model, info.benchmark, info.protocol, info.data, 1, False, "", {}, info.made_with
    )
    header = replace(header, claims=claims_of(ModelEntry(folder, header, own)))
    return write_model_entry(folder, header, own)


def test_published_numbers_are_entries_too(tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("model,clean,x@1,x@2\na,5,10,20\nb,5,12,30\n")
    info = TableInfo("mine", "Mine", "other", "per-cell", "error", "here", 1000, cells="error")
    found = read_entry(import_table(file, tmp_path / "board", info).path)
    assert isinstance(found, TableEntry)
    assert [row.value.value for row in found.table().rows] == [15, 21]
    assert not failed(verify(found))
    assert find_entries(tmp_path / "board")[0].header.seal == found.header.seal
    found.path.write_text(found.path.read_text().replace('"12"', '"10"'))
    with pytest.raises(InputError, match=r"mine\.entry\.json: was changed"):
        read_entry(found.path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,x@1\na,3\n", "expected model"),
        ("model,x@1\na\n", "line 2: 1 cells"),
        ("model,x@1\na,200\n", "in percent"),
    ],
)
def test_bad_csv_leaves_nothing(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cells.csv"
    file.write_text(text)
    info = TableInfo("mine", "Mine", "other", "per-cell", "error", "here", 1000, cells="error")
    with pytest.raises(InputError, match=message):
        import_table(file, tmp_path / "board", info)
    assert not (tmp_path / "board").exists()
