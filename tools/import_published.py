"""The published tables that come with the library, out of the files that they were collected in.

    python tools/import_published.py PUBLISHED

PUBLISHED is a folder with robustbench/ (one CSV of accuracies per data set, and models.json),
imagenet_testbed_top1.csv, openclip_results.csv, leaderboard.json and tta_tables.json. Values are kept; those in percent
are rounded to the digits that so many images have. Writes src/blemish/metrics/imported/*.csv; what is to be known of
each table stands in tables.json there, which is written by hand.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import blemish
from blemish.core.csv_files import csv_text

TARGET = Path(blemish.__file__).parent / "metrics" / "imported"
ROBUSTBENCH = {
    "cifar10_corruptions": ("cifar10", "robustbench_cifar10_c"),
    "cifar100_corruptions": ("cifar100", "robustbench_cifar100_c"),
    "imagenet_corruptions": ("imagenet", "robustbench_imagenet_c"),
    "imagenet_corruptions_3d": ("imagenet", "robustbench_imagenet_3dcc"),
}
SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "imagenet": "ImageNet-1k"}
# The row that RobustBench divides by; its clean accuracy is not in the metadata.
DIVISOR = "AlexNet"
NATURAL = {
    "imagenet-a": "imagenet-a",
    "imagenet-r": "imagenet-r",
    "imagenet-sketch": "imagenet-sketch",
    "imagenet-v2": "imagenetv2-matched-frequency-format-val",
}
OPEN_CLIP = {name: name.replace("-", "_") for name in NATURAL}


def rows_of(path: Path) -> list[dict[str, str]]:
    """A CSV as a dictionary per row."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def percent(share: str, *, digits: int = 3) -> float | None:
    """A share as percent."""
    return round(100 * float(share), digits) if share else None


def rounded(text: str) -> float | None:
    """A number in percent; of 50,000 images three digits are all that there are."""
    return round(float(text), 3) if text else None


def write(name: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """One table."""
    TARGET.mkdir(exist_ok=True)
    (TARGET / f"{name}.csv").write_text(csv_text([header, *rows]), encoding="utf-8")
    print(f"{name}: {len(rows)} rows of {len(header)}")


def robustbench(folder: Path) -> None:
    """Accuracies per cell, with what the metadata say of each model."""
    about = json.loads((folder / "models.json").read_text(encoding="utf-8"))["datasets"]
    for file, (data, name) in ROBUSTBENCH.items():
        entries = {entry["model"]: entry for entry in about[data]}
        table = rows_of(folder / f"{file}.csv")
        cells = [key for key in table[0] if key != "model"]
        rows = []
        for row in table:
            entry = entries.get(row["model"], {})
            extra = "" if not entry else f"{SETS[data]} and more" if entry["additional_data"] else f"{SETS[data]} alone"
            known = [entry.get(key, "") for key in ("clean_acc", "architecture", "paper", "venue", "link")]
            rows.append([row["model"], *known, extra, *(percent(row[cell], digits=2) for cell in cells)])
        header = ["model", "clean", "architecture", "paper", "venue", "link", "data"]
        write(name, [*header, *(cell.replace(":", "@") for cell in cells)], rows)


def testbed(path: Path) -> None:
    """The testbed: natural sets, and ImageNet-C as published on disk and as made in memory."""
    table = rows_of(path)
    clean = [row for row in table if row["val"]]
    header = ["model", "clean", *NATURAL]
    write(
        "testbed_natural",
        header,
        [[row["model"], rounded(row["val"]), *(rounded(row[key]) for key in NATURAL.values())] for row in clean],
    )
    for name, kind in (("testbed_stored", "on-disk"), ("testbed_in_memory", "in-memory")):
        pattern = re.compile(rf"imagenet-c\.(\w+)\.(\d)_{kind}")
        cells = {f"{match[1]}@{match[2]}": key for key in table[0] if (match := pattern.fullmatch(key))}
        whole = [row for row in clean if all(row[key] for key in cells.values())]
        write(
            name,
            ["model", "clean", *cells],
            [[row["model"], rounded(row["val"]), *(rounded(row[key]) for key in cells.values())] for row in whole],
        )


def open_clip(path: Path) -> None:
    """open_clip's zero-shot table."""
    rows = [
        [
            f"{row['model']}/{row['pretrained']}",
            row["params_m"],
            percent(row["imagenet"], digits=2),
            *(percent(row[key], digits=2) for key in OPEN_CLIP.values()),
        ]
        for row in rows_of(path)
    ]
    write("open_clip", ["model", "parameters_m", "clean", *OPEN_CLIP], rows)


def reference(path: Path) -> None:
    """The leaderboard in the README of ImageNet-C, of ResNet-50."""
    models = json.loads(path.read_text(encoding="utf-8"))["imagenet_c_mce"]
    rows = [[name, round(100 - clean, 2), mce] for name, (mce, clean) in models.items()]
    write("imagenet_c_readme", ["model", "clean", "mce"], sorted(rows, key=lambda row: row[2]))


def _single(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A table of one network as it is, one of several networks on one setting as many tables; others are left out."""
    models, columns = table["model"], table["columns"]
    if isinstance(models, str):
        if columns[0] == "mean":
            yield table
    elif len(models) == len(columns) and isinstance(table["setting"], str) and "," not in table["dataset"]:
        for number, model in enumerate(models):
            rows = {name: [row[number]] for name, row in table["rows"].items() if row[number] is not None}
            yield {**table, "id": f"{table['id']}/{model}", "model": model, "columns": ["mean"], "rows": rows}


def adaptation(path: Path) -> None:
    """Tables of test-time adaptation of means: the first column of a table, or each that is one of several networks."""
    tables: list[dict[str, Any]] = []
    for table in chain.from_iterable(map(_single, json.loads(path.read_text(encoding="utf-8"))["tables"])):
        columns = table["columns"]
        has_spread = columns[1:2] == ["sd"]
        rows = []
        for method, values in table["rows"].items():
            error = values[0] if table["metric"] == "error" else round(100 - values[0], 3)
            rows.append([method, error, values[1] if has_spread and len(values) > 1 else None])
        about = {key: table[key] for key in ("id", "dataset", "setting", "model", "kind")}
        source = re.sub(r"stored text \d+ \((.*)\)", r"\1", table["source"])
        note = table.get("note", "") if table.get("note") != "as above" else tables[-1]["note"]
        note = note.replace("in the stored copy, cells", "in the copy that was read, cells")
        tables.append({**about, "source": source, "note": note.replace("stored copies", "copies"), "rows": rows})
    lines = ",\n".join(f"  {json.dumps(table, ensure_ascii=False)}" for table in tables)
    (TARGET / "adaptation.json").write_text(f'{{\n "tables": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    print(f"adaptation: {len(tables)} tables")


def main() -> None:
    """Write all of them."""
    root = Path(sys.argv[1])
    robustbench(root / "robustbench")
    testbed(root / "imagenet_testbed_top1.csv")
    open_clip(root / "openclip_results.csv")
    reference(root / "leaderboard.json")
    adaptation(root / "tta_tables.json")


if __name__ == "__main__":
    main()
