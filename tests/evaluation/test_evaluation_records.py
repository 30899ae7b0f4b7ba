"""Records with empty places, or of other types, under a seal that fits: refused, never read as numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blemish.core.errors import InputError
from blemish.core.typed import as_json
from blemish.evaluation.records import parquet_bytes, read_correct, read_header, read_records
from blemish.evaluation.runs import Run
from synthetic_runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path, "m", {"clean": 0.8, "p:tilt@1": 0.1}, images=6, zipf=True)


def change(path: Path, **columns: Any) -> None:
    """Other columns under the same header, sealed anew; None leaves one out."""
    table = pq.read_table(path)
    header = read_header(path)
    for name, values in columns.items():
        place = table.column_names.index(name)
        table = table.remove_column(place) if values is None else table.set_column(place, name, values)
    path.write_bytes(parquet_bytes(table, header))


def with_nulls(path: Path, name: str) -> Any:
    values = pq.read_table(path)[name].combine_chunks()
    mask = np.zeros(len(values), bool)
    mask[2] = True
    return pa.array(values.to_pylist(), values.type, mask=mask)


@pytest.mark.parametrize("name", ["image", "label", "top5", "confidence", "label_confidence"])
def test_empty_places(run: Run, name: str) -> None:
    path = run.folder / "records" / "clean.parquet"
    try:
        change(path, **{name: with_nulls(path, name)})
    except pa.ArrowNotImplementedError:  # of lists
        pytest.skip("this pyarrow cannot write empty lists of a fixed size")
    with pytest.raises(InputError, match=f"clean.parquet: {name} is empty in 1 of 6 records"):
        read_records(path)
    if name in ("label", "top5"):
        with pytest.raises(InputError, match=f"{name} is empty in 1 of 6"):
            read_correct(path)
        with pytest.raises(InputError, match=f"{name} is empty in 1 of 6"):
            run.correct(run.conditions[0])


@pytest.mark.parametrize("name", ["frame", "zipf"])
def test_empty_places_of_sequences(run: Run, name: str) -> None:
    path = next(path for path in (run.folder / "records").iterdir() if "tilt" in path.name)
    change(path, **{name: with_nulls(path, name)})
    with pytest.raises(InputError, match=f"{name} is empty in 1 of"):
        read_records(path)


def test_empty_classes(run: Run) -> None:
    path = run.folder / "records" / "clean.parquet"
    classes = pa.array([1, None, 2, 3, 4] * 6, pa.int32())
    change(path, top5=pa.FixedSizeListArray.from_arrays(classes, 5))
    with pytest.raises(InputError, match="top5 is empty in 6 of 6"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", pa.array([0.5] * 6)),
        ("label", pa.array([2**40] * 6)),
        ("label", pa.array(["0"] * 6)),
        ("confidence", pa.array(["1"] * 6)),
        ("confidence", pa.array([1] * 6)),
        ("image", pa.array(range(6))),
        ("top5", pa.array([[1, 2]] * 6)),
        ("top5", pa.array([1] * 6)),
        ("top5", pa.array([[0.5] * 5] * 6, pa.list_(pa.float32(), 5))),
    ],
)
def test_other_types(run: Run, name: str, values: Any) -> None:
    path = run.folder / "records" / "clean.parquet"
    change(path, **{name: values})
    with pytest.raises(InputError, match=f"{name} of type .* in records; expected"):
        read_records(path)


def test_negative_labels(run: Run) -> None:
    path = run.folder / "records" / "clean.parquet"
    change(path, label=pa.array([-1] * 6, pa.int32()))
    with pytest.raises(InputError, match="label is negative"):
        read_records(path)


def test_no_rows(run: Run) -> None:
    path = run.folder / "records" / "clean.parquet"
    path.write_bytes(parquet_bytes(pq.read_table(path).slice(0, 0), read_header(path)))
    for read in (read_records, read_correct):
        with pytest.raises(InputError, match="records of no images"):
            read(path)


def test_missing_columns(run: Run) -> None:
    path = run.folder / "records" / "clean.parquet"
    change(path, confidence=None)
    with pytest.raises(InputError, match="records without confidence"):
        read_records(path)
    change(path, label=None)
    with pytest.raises(InputError, match="records without label"):
        read_correct(path)


def test_several_row_groups(run: Run) -> None:
    """A file in pieces reads as a whole one."""
    path = run.folder / "records" / "clean.parquet"
    before, correct = read_records(path), read_correct(path)[1]
    header = json.dumps({"format": 1, **as_json(read_header(path))}).encode()
    table = pq.read_table(path).replace_schema_metadata({b"blemish": header})
    pq.write_table(table, path, row_group_size=2)
    after = read_records(path)
    for name in ("images", "labels", "top5", "confidence", "label_confidence"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    np.testing.assert_array_equal(read_correct(path)[1], correct)


_READ = """
import os, sys
import torch, pyarrow.parquet
from blemish.evaluation.records import read_records

before = len(os.listdir("/proc/self/task"))
read_records(sys.argv[1])
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux shows them")
def test_reading_leaves_no_threads(run: Run) -> None:
    """pyarrow's threads, beside torch, aborted every third short program when it exited (pyarrow 26, torch 2.13)."""
    path = run.folder / "records" / "clean.parquet"
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
