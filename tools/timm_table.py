"""The accuracies of timm's models on ImageNet and on natural shifts, from the tables in timm's repository.

    python tools/timm_table.py folder/with/results-imagenet.csv

The tables are those of the folder ``results`` of huggingface/pytorch-image-models (Apache-2.0). Writes
src/blemish/metrics/timm.json: a row for each model and input, with its top-1 accuracies in percent.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import blemish
from blemish.metrics.timm_table import SETS

TARGET = Path(blemish.__file__).parent / "metrics" / "timm.json"

_FILES = {
    "imagenet": "results-imagenet.csv",
    "imagenet-real": "results-imagenet-real.csv",
    "imagenet-v2": "results-imagenetv2-matched-frequency.csv",
    "imagenet-sketch": "results-sketch.csv",
    "imagenet-a": "results-imagenet-a.csv",
    "imagenet-a-clean": "results-imagenet-a-clean.csv",
    "imagenet-r": "results-imagenet-r.csv",
    "imagenet-r-clean": "results-imagenet-r-clean.csv",
}


def main(folder: Path) -> None:
    """Read the tables, and write what is kept of them."""
    tables = {name: _rows(folder / _FILES[name]) for name in SETS}
    rows = [
        [
            *(row["model"], int(row["img_size"]), float(row["crop_pct"]), row["interpolation"]),
            float(row["param_count"].replace(",", "")),
            *(_accuracy(tables[which].get(key)) for which in SETS),
        ]
        for key, row in tables["imagenet"].items()
    ]
    about = (
        "Top-1 accuracies in percent of timm's pretrained models on ImageNet's validation images, its ReaL labels, "
        "ImageNet-V2 (matched frequency), Sketch, A and R, and on the classes of A and R in ImageNet: the tables in "
        "the folder results of huggingface/pytorch-image-models. Made by tools/timm_table.py."
    )
    columns = ["name", "size", "crop", "interpolation", "parameters", *SETS]
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    TARGET.write_text(
        "{\n"
        f' "about": {json.dumps(about)},\n'
        ' "licence": "Apache-2.0, Copyright 2019 Ross Wightman",\n'
        f' "columns": {json.dumps(columns)},\n'
        f' "rows": [\n{lines}\n ]\n}}\n',
        encoding="utf-8",
    )
    print(f"{len(rows)} rows in {TARGET.name}, {TARGET.stat().st_size / 1e3:.0f} kB")


def _rows(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows of a table by what makes each its own: a model may be there at several sizes."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    known = {tuple(row[key] for key in ("model", "img_size", "crop_pct", "interpolation")): row for row in rows}
    if len(known) < len(rows):
        raise SystemExit(f"{path}: {len(rows) - len(known)} rows are there twice")
    return known


def _accuracy(row: dict[str, str] | None) -> float | None:
    return None if row is None else float(row["top1"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
