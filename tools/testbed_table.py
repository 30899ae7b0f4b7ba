"""Makes the testbed's table that comes with the library: python tools/testbed_table.py imagenet_testbed_top1.csv.

The file is the ImageNet testbed's table of top-1 accuracies in percent (Taori et al. 2020): a row per model, columns
such as val, imagenet-c.fog.3_on-disk, imagenet-a and val-on-imagenet-a-classes. Kept are the models that have all of
ImageNet-C, the four extra corruptions included, and the five natural sets; of each corruption the mean over its five
severities, as published on disk. It is written to src/blemish/studies/construction/testbed.json, as fractions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import blemish
from blemish.studies.construction.tables import read_table

TARGET = Path(blemish.__file__).parent / "studies" / "construction" / "testbed.json"

OTHERS = {
    "clean": "val",
    "natural:imagenet-a": "imagenet-a",
    "clean:imagenet-a": "val-on-imagenet-a-classes",
    "natural:imagenet-r": "imagenet-r",
    "clean:imagenet-r": "val-on-imagenet-r-classes",
    "natural:imagenet-v2": "imagenetv2-matched-frequency",
    "natural:imagenet-sketch": "imagenet-sketch",
    "natural:objectnet": "objectnet-1.0-beta",
    "clean:objectnet": "val-on-objectnet-classes",
}

ABOUT = (
    "Top-1 accuracies of models on ImageNet, on the published ImageNet-C (means over severities 1 to 5) and on natural "
    "sets, from the ImageNet testbed: Taori, Dave, Shankar, Carlini, Recht and Schmidt, Measuring Robustness to "
    "Natural Distribution Shifts in Image Classification, NeurIPS 2020, github.com/modestyachts/imagenet-testbed. "
    "Columns named clean:SET hold accuracies on the clean images of a set's classes. imagenet-v2 is its "
    "matched-frequency part."
)

LICENCE = """MIT License

Copyright (c) 2020 Rohan Taori, Achal Dave, Vaishaal Shankar, Nicholas Carlini, Benjamin Recht, Ludwig Schmidt

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated \
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the \
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit \
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the \
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE \
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR \
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR \
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def main() -> None:
    """Read the table and write the part of it that the library ships."""
    names = [n for bench in ("imagenet-c", "imagenet-c-extra") for n in blemish.load_benchmark(bench).groups]
    levels = [f"imagenet-c.{name}.{level}_on-disk" for name in names for level in range(1, 6)]
    table = read_table(Path(sys.argv[1]), unit="percent", columns=[*OTHERS.values(), *levels], complete_only=True)
    means = table.columns(levels).reshape(len(table.models), len(names), 5).mean(axis=2)
    others = table.columns(list(OTHERS.values()))
    columns = ["clean", *names, *list(OTHERS)[1:]]
    rows = [[other[0], *mean, *other[1:]] for other, mean in zip(others.tolist(), means.tolist(), strict=True)]
    lines = [
        f"{json.dumps(model)}: {json.dumps([round(value, 6) for value in row], separators=(',', ':'))}"
        for model, row in zip(table.models, rows, strict=True)
    ]
    head = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n"
        for key, value in (("about", ABOUT), ("licence", LICENCE), ("columns", columns))
    )
    TARGET.write_text("{\n" + head + '"models": {\n' + ",\n".join(lines) + "\n}\n}\n", encoding="utf-8")
    print(f"wrote {TARGET}: {len(rows)} models, {len(columns)} columns")


if __name__ == "__main__":
    main()
