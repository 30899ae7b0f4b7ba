"""An empty file of predictions: every row that a benchmark asks for, with a place for the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from blemish.benchmarks.benchmark import Benchmark
from blemish.core.csv_files import csv_text
from blemish.core.errors import InputError
from blemish.core.files import write_bytes

Answer = Literal["correct", "score", "prediction", "boxes", "pixels"]
"""What is to be filled in: right or wrong, a number, the answer beside the label, boxes, or pixels of each class."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "correct": ("correct",),
    "score": ("score",),
    "prediction": ("label", "prediction"),
    "boxes": ("boxes", "scores", "labels"),
    "pixels": ("truth", "prediction", "pixels"),
}
_LISTS = ("boxes", "pixels")
_FORMATS = (".csv", ".jsonl", ".parquet")
_OF_LISTS = (".jsonl", ".parquet")


def default_name(answer: str) -> Path:
    """The file where none is named; CSV holds no lists."""
    return Path("predictions.jsonl" if answer in _LISTS else "predictions.csv")


def check_template(path: Path, answer: str, benchmark: Benchmark) -> None:
    """Refuse a file that cannot be written as one of predictions, an answer that nobody reads, and sequences."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"{path}: expected a file name that ends in {', '.join(_FORMATS)}")
    if answer not in get_args(Answer):
        raise InputError(f"answer {answer!r}; expected one of {', '.join(get_args(Answer))}")
    if answer in _LISTS and path.suffix.lower() not in _OF_LISTS:
        raise InputError(f"{path}: {answer} are lists; expected a file name that ends in {', '.join(_OF_LISTS)}")
    if any(condition.is_sequence for condition in benchmark.conditions):
        raise InputError(f"{benchmark.name} has sequences, whose flips need the answers to all frames: use blemish run")


def write_template(
    benchmark: Benchmark, path: Path, *, images: Sequence[str] = (), answer: Answer = "correct", model: str = "model"
) -> int:
    """Write a row for each condition and image, and say how many there are; without images, a row per condition."""
    check_template(path, answer, benchmark)
    fields = ("model", "image", "condition", *_FIELDS[answer])
    empty = (None,) * (len(fields) - 3)

    def rows() -> Iterator[tuple[str | None, ...]]:
        for condition in benchmark.conditions:
            for image in images or (None,):
                yield model, image, str(condition), *empty

    if path.suffix.lower() == ".csv":
        content = csv_text([fields, *rows()]).encode("utf-8", "surrogateescape")
    elif path.suffix.lower() == ".jsonl":
        lines = (json.dumps(dict(zip(fields, row, strict=True)), ensure_ascii=False) for row in rows())
        content = "".join(f"{line}\n" for line in lines).encode()
    else:
        content = _parquet(fields, list(rows()))
    write_bytes(path, content)
    return len(benchmark.conditions) * max(1, len(images))


def _parquet(fields: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = pa.list_(pa.float64())
    kinds = {"correct": pa.bool_(), "score": pa.float64(), "boxes": pa.list_(numbers), "scores": numbers}
    whole = ("truth", "prediction", "pixels") if "pixels" in fields else ("labels",)
    kinds |= dict.fromkeys(whole, pa.list_(pa.int64()))
    columns = {
        field: pa.array([row[column] for row in rows], kinds.get(field, pa.string()))
        for column, field in enumerate(fields)
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())
