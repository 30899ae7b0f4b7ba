"""Parquet files of images: columns, labels, row groups, and what is refused."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blemish.data.parquet as parquet
from blemish.core.errors import InputError, Notice
from blemish.data.cache import load
from blemish.data.classes import imagenet_wnids
from blemish.data.labels import fit_labels, labels_entry
from blemish.data.open import open_source
from blemish.data.source import Source
from command_line import command
from image_tables import encoded, image_table, write_table


def levels(source: Source) -> list[int]:
    return [int(np.asarray(source.read(i))[0, 0, 0]) for i in range(len(source))]


class TestReading:
    def test_a_file(self, tmp_path: Path) -> None:
        path = write_table(tmp_path / "val.parquet", image_table(range(10, 18), [0, 1] * 4))
        source = open_source(path)
        assert source.name == "val"
        assert source.names == tuple("01234567")
        assert source.ids.tolist() == list(range(8))
        assert source.labels.tolist() == [0, 1] * 4
        assert source.labelling == "given"
        assert levels(source) == list(range(10, 18))
        assert levels(source.take([7, 0])) == [17, 10]

    def test_plain_bytes(self, tmp_path: Path) -> None:
        table = pa.table({"img": [encoded(5), encoded(6)], "y": pa.array([3, 4], pa.int8())})
        source = open_source(write_table(tmp_path / "x.parquet", table))
        assert levels(source) == [5, 6]
        assert source.labels.tolist() == [3, 4]

    def test_a_folder_and_a_pattern_count_rows_on(self, tmp_path: Path) -> None:
        for number in range(3):
            write_table(tmp_path / "val" / f"v-{number}.parquet", image_table([2 * number, 2 * number + 1], [0, 1]))
        for source in (open_source(tmp_path / "val"), open_source(tmp_path / "val" / "v-{0..2}.parquet")):
            assert source.names == tuple("012345")
            assert levels(source) == list(range(6))
        assert levels(open_source(tmp_path / "val" / "v-{1..2}.parquet")) == [2, 3, 4, 5]

    def test_a_group_is_read_once_by_many_threads(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write_table(tmp_path / "val.parquet", image_table(range(40), [0] * 40), rows=10)
        source = open_source(path)
        read: list[int] = []
        whole = parquet._read_group
        monkeypatch.setattr(parquet, "_read_group", lambda table, group: read.append(group) or whole(table, group))
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda i: int(np.asarray(source.read(i))[0, 0, 0]), range(40)))
        assert found == list(range(40))
        assert sorted(read) == [0, 1, 2, 3]

    def test_little_memory_keeps_few_groups(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet, "_SHARE", 10**15)
        path = write_table(tmp_path / "val.parquet", image_table(range(6), [0] * 6), rows=2)
        source = open_source(path)
        read: list[int] = []
        whole = parquet._read_group
        monkeypatch.setattr(parquet, "_read_group", lambda table, group: read.append(group) or whole(table, group))
        assert levels(source) == list(range(6))
        assert read == [0, 1, 2]
        assert levels(source) == list(range(6))
        assert read == [0, 1, 2, 0, 1, 2]

    def test_processes_reopen_it(self, tmp_path: Path) -> None:
        source = open_source(write_table(tmp_path / "val.parquet", image_table(range(4), [0, 1, 0, 1])))
        again = pickle.loads(pickle.dumps(source.take([3, 1])))
        assert levels(again) == [3, 1]
        assert load(again).fingerprint == load(source.take([3, 1])).fingerprint

    def test_stamps_let_decoded_images_be_used_again(self, tmp_path: Path) -> None:
        path = write_table(tmp_path / "val.parquet", image_table(range(4), [0, 1, 0, 1]))
        first = load(open_source(path), folder=tmp_path / "cache", limit=0)
        assert load(open_source(path), folder=tmp_path / "cache", limit=0).fingerprint == first.fingerprint
        assert len(list((tmp_path / "cache").iterdir())) == 1
        write_table(path, image_table([9, 8, 7, 6], [0, 1, 0, 1]))
        assert load(open_source(path), folder=tmp_path / "cache", limit=0).fingerprint != first.fingerprint

    def test_the_command_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Labels that nobody can tell apart are stopped as those of folders are, and class names are the table's."""
        monkeypatch.chdir(tmp_path)
        write_table(Path("val.parquet"), image_table(range(4), [0, 1, 0, 1], ["cat", "dog"]))
        options = ("run", "digits-c", "-m", "demo:plain", "-o", "out", "--device", "cpu")
        refused = command(*options, "-d", "val.parquet")
        assert refused.exit_code == 2
        assert "val: 2 classes (cat, dog), but model demo-plain has 10 outputs" in refused.stderr
        missing = command(*options, "-d", "val.parquet", "--columns", "img,label")
        assert "no column 'img' among id (int64), image" in missing.stderr


class TestLabels:
    def test_names_that_the_table_states(self, tmp_path: Path) -> None:
        """Numbers with names are numbered as class folders are: right for as many outputs, refused for others."""
        source = open_source(write_table(tmp_path / "x.parquet", image_table([1, 2], [1, 0], ["dog", "cat"])))
        assert source.classes == ("dog", "cat")
        assert fit_labels(source, 2, model="net").labels.tolist() == [1, 0]
        assert labels_entry(source) == "class names in order"
        with pytest.raises(InputError, match=r"x: 2 classes \(dog, cat\), but model net has 1,000 outputs"):
            fit_labels(source, 1000, model="net")

    def test_wordnet_ids(self, tmp_path: Path) -> None:
        """English springer and church of Imagenette: 217 and 497 are their places among the sorted ids."""
        names = ["n02102040", "n03028079"]
        source = open_source(write_table(tmp_path / "x.parquet", image_table([1, 2], [1, 0], names)))
        with pytest.warns(Notice, match="2 classes named by WordNet ids"):
            fitted = fit_labels(source, 1000, model="net")
        assert fitted.labels.tolist() == [497, 217]
        assert [imagenet_wnids()[label] for label in fitted.labels] == names[::-1]

    def test_a_mapping_for_names(self, tmp_path: Path) -> None:
        path = write_table(tmp_path / "x.parquet", image_table([1, 2], [1, 0], ["dog", "cat"]))
        source = open_source(path, mapping={"dog": 5, "cat": 3})
        assert source.labels.tolist() == [3, 5]
        assert source.labelling == "mapping"
        assert fit_labels(source, 1000, model="net").labels.tolist() == [3, 5]
        with pytest.raises(InputError, match="class folder 'cat' is not in the mapping"):
            open_source(path, mapping={"dog": 5})

    def test_texts(self, tmp_path: Path) -> None:
        for labels in (["b", "a", "b"], pa.array(["b", "a", "b"]).dictionary_encode()):
            source = open_source(write_table(tmp_path / "x.parquet", image_table([1, 2, 3], labels)))
            assert source.labels.tolist() == [1, 0, 1]
            assert source.classes == ("a", "b")
        numbers = open_source(write_table(tmp_path / "x.parquet", image_table([1, 2, 3], ["10", "9", "10"])))
        assert numbers.labels.tolist() == [1, 0, 1]

    def test_chosen_columns(self, tmp_path: Path) -> None:
        table = image_table([1, 2], [0, 1]).append_column("fine_label", pa.array([5, 6]))
        table = table.append_column("thumbnail", pa.array([encoded(90), encoded(91)]))
        path = write_table(tmp_path / "x.parquet", table)
        assert open_source(path).labels.tolist() == [0, 1]
        assert levels(open_source(path)) == [1, 2]
        chosen = open_source(path, columns=("thumbnail", "fine_label"))
        assert chosen.labels.tolist() == [5, 6]
        assert levels(chosen) == [90, 91]


def refused_table(change: str) -> pa.Table:
    table = image_table([1, 2], [0, 1])
    if change == "no images":
        return table.drop_columns(["image"])
    if change == "no labels":
        return table.drop_columns(["label"])
    if change == "two images":
        return table.rename_columns(["id", "left", "label"]).append_column("right", pa.array([encoded(1)] * 2))
    if change == "two labels":
        return table.rename_columns(["y", "image", "label"])
    if change == "null":
        return image_table([1, 2], [0, None])
    if change == "negative":
        return image_table([1, 2], [0, -1])
    if change == "unnamed":
        return image_table([1, 2], [0, 2], ["a", "b"])
    if change == "float":
        return image_table([1, 2], [0.0, 1.0]).rename_columns(["id", "image", "label"])
    raise AssertionError(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no images", r"x\.parquet: no images among id \(int64\), label \(int64\); name the columns: --columns"),
        ("no labels", r"x\.parquet: no labels among id \(int64\), image"),
        ("two images", r"2 columns that may be the images \(left, right\)"),
        ("two labels", r"2 columns that may be the labels \(y, label\)"),
        ("null", r"row 1 of .*x\.parquet: no label"),
        ("negative", r"row 1 of .*x\.parquet: label -1; expected 0 … 999999; -1 stands for no label"),
        ("unnamed", r"row 1 of .*x\.parquet: label 2; expected 0 … 1"),
        ("float", r"x\.parquet: no labels among .*label \(double\)"),
    ],
)
def test_refused_tables(tmp_path: Path, change: str, message: str) -> None:
    path = write_table(tmp_path / "x.parquet", refused_table(change))
    with pytest.raises(InputError, match=message):
        open_source(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"bytes": None, "path": "/etc/passwd"}, "no picture in it"),
        ({"bytes": None, "path": None}, "no picture in it"),
        ({"bytes": b"GIF89a nonsense", "path": None}, "not a readable picture"),
        ({"bytes": b"", "path": None}, "not a readable picture"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, value: Any, message: str) -> None:
    rows = [{"bytes": encoded(1), "path": "a"}, {"bytes": encoded(1), "path": "a"}, value]
    pictures = pa.array(rows, type=pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    path = write_table(tmp_path / "x.parquet", pa.table({"image": pictures, "label": [0, 1, 0]}), rows=2)
    source = open_source(path)
    assert source.read(1).size == (9, 8)
    with pytest.raises(InputError, match=rf"row 2 of .*x\.parquet: ({message})"):
        source.read(2)


def test_a_row_of_a_second_file_is_counted_in_that_file(tmp_path: Path) -> None:
    write_table(tmp_path / "v" / "a.parquet", image_table([1, 2], [0, 1]))
    write_table(tmp_path / "v" / "b.parquet", image_table([1], [0], ["zero"]))
    with pytest.raises(InputError, match=r"b\.parquet: other columns or classes than in .*a\.parquet"):
        open_source(tmp_path / "v")
    write_table(tmp_path / "v" / "b.parquet", image_table([1, 2], [0, None]))
    with pytest.raises(InputError, match=r"row 1 of .*b\.parquet: no label"):
        open_source(tmp_path / "v")


def test_damaged_files(tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.parquet", image_table(range(9), [0] * 9))
    content = path.read_bytes()
    for broken in (content[:-9], b"PAR1" + content[50:], b"nothing", content[:400]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"x\.parquet: not a readable Parquet file"):
            open_source(path)
    with pytest.raises(InputError, match="no such file"):
        open_source(tmp_path / "nowhere.parquet")
    with pytest.raises(InputError, match="labels given for"):
        open_source(path, labels="labels.npy")


def test_a_file_that_is_changed_while_it_is_read(tmp_path: Path) -> None:
    path = write_table(tmp_path / "x.parquet", image_table(range(6), [0] * 6), rows=2)
    source = open_source(path)
    assert source.read(0).size == (9, 8)
    write_table(path, image_table(range(60, 66), [0] * 6), rows=2)
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="was changed while it was being read"):
        source.read(5)


def test_splits_are_not_mixed_and_none_is_partial(tmp_path: Path) -> None:
    """The names that Hugging Face gives to files tell how many there are."""
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"):
        write_table(tmp_path / "data" / f"{name}.parquet", image_table([1, 2], [0, 1]))
    with pytest.raises(InputError, match=r"files of several splits \(test, train\)"):
        open_source(tmp_path / "data")
    assert len(open_source(tmp_path / "data" / "train-{00000..00001}-of-00002.parquet")) == 4
    (tmp_path / "data" / "test-00000-of-00001.parquet").unlink()
    assert len(open_source(tmp_path / "data")) == 4
    (tmp_path / "data" / "train-00000-of-00002.parquet").unlink()
    with pytest.raises(InputError, match="1 of 2 files of train; some are missing"):
        open_source(tmp_path / "data")


def test_an_empty_table(tmp_path: Path) -> None:
    pq.write_table(image_table([], pa.array([], pa.int64())), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="x: no images in it"):
        open_source(tmp_path / "x.parquet")


def test_columns_are_for_tables(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match=r"columns given for .* which is no table"):
        open_source(tmp_path, columns=("image", "label"))
