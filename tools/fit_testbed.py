"""The data of effective robustness, from the table of the ImageNet testbed (Taori et al. 2020, MIT licence).

    python tools/fit_testbed.py imagenet_testbed_top1.csv

A row per model, top-1 accuracies in percent, columns such as val and imagenet-c.fog.3_on-disk. Models with all of
ImageNet-C are kept, and two lines are fitted to their logit-transformed accuracies: to all of them, and to those that
the authors fit theirs to, which were trained in the standard way. Writes src/blemish/metrics/testbed.json.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import blemish
from blemish.benchmarks.files import load_benchmark
from blemish.metrics.baselines import published_baseline
from blemish.metrics.formulas import mean_corruption_error, mean_relative_corruption_error
from blemish.metrics.testbed import fit_line

PACKAGE = Path(blemish.__file__).parent
TARGET = PACKAGE / "metrics" / "testbed.json"
LICENSED = PACKAGE / "studies" / "construction" / "testbed.json"

# Those of type "standard training" in plotting/model_types.py of the testbed's repository, without the authors' own
# retrainings of ResNet-50, which they leave out of their fits as well.
STANDARD = frozenset(
    [
        "alexnet",
        "bninception",
        "cafferesnet101",
        "densenet121",
        "densenet161",
        "densenet169",
        "densenet201",
        "dpn131",
        "dpn68",
        "dpn98",
        "efficientnet-b0",
        "efficientnet-b0-autoaug",
        "efficientnet-b1",
        "efficientnet-b1-autoaug",
        "efficientnet-b2",
        "efficientnet-b2-autoaug",
        "efficientnet-b3",
        "efficientnet-b3-autoaug",
        "efficientnet-b4",
        "efficientnet-b4-autoaug",
        "efficientnet-b5",
        "efficientnet-b5-autoaug",
        "efficientnet-b5-randaug",
        "efficientnet-b6-autoaug",
        "efficientnet-b7-autoaug",
        "efficientnet-b7-randaug",
        "fbresnet152",
        "FixPNASNet",
        "FixResNet50",
        "FixResNet50_no_adaptation",
        "FixResNet50_v2",
        "googlenet/inceptionv1",
        "inceptionresnetv2",
        "inceptionv3",
        "inceptionv4",
        "mnasnet0_5",
        "mnasnet1_0",
        "mobilenet_v2",
        "nasnetalarge",
        "nasnetamobile",
        "pnasnet5large",
        "polynet",
        "resnet101",
        "resnet152",
        "resnet18",
        "resnet34",
        "resnet50",
        "resnet50-randomized_smoothing_noise_0.00",
        "resnet50-vtab",
        "resnet50-vtab-exemplar",
        "resnet50-vtab-rotation",
        "resnet50-vtab-semi-exemplar",
        "resnet50-vtab-semi-rotation",
        "resnext101_32x4d",
        "resnext101_32x8d",
        "resnext101_64x4d",
        "resnext50_32x4d",
        "se_resnet101",
        "se_resnet152",
        "se_resnet50",
        "se_resnext101_32x4d",
        "se_resnext50_32x4d",
        "senet154",
        "shufflenet_v2_x0_5",
        "shufflenet_v2_x1_0",
        "squeezenet1_0",
        "squeezenet1_1",
        "vgg11",
        "vgg11_bn",
        "vgg13",
        "vgg13_bn",
        "vgg16",
        "vgg16_bn",
        "vgg19",
        "vgg19_bn",
        "wide_resnet101_2",
        "wide_resnet50_2",
        "xception",
    ]
)

ABOUT = (
    "Top-1 accuracies of the ImageNet testbed (Taori et al. 2020, MIT licence) in percent, of the models that are "
    "complete on ImageNet-C as published on disk: clean, mean over 15 corruptions at 5 severities, then mCE and "
    "relative mCE against the published AlexNet. lines: least squares in logit-transformed accuracy. Made by "
    "tools/fit_testbed.py."
)


def entry(row: Mapping[str, str]) -> list[Any] | None:
    """Name, accuracies, mCE, relative mCE and training of a model; None where something was not measured."""
    groups = load_benchmark("imagenet-c").groups
    cells = {name: [row[f"imagenet-c.{name}.{level}_on-disk"] for level in range(1, 6)] for name in groups}
    if not row["val"] or not all(cell for levels in cells.values() for cell in levels):
        return None
    clean = float(row["val"])
    errors = {name: 1 - np.array(levels, dtype=float) / 100 for name, levels in cells.items()}
    alexnet = published_baseline("alexnet")
    base = {name: [alexnet.errors[f"{name}@{level}"] for level in range(1, 6)] for name in groups}
    mce = mean_corruption_error(errors, base)
    relative = mean_relative_corruption_error(errors, 1 - clean / 100, base, baseline_clean=alexnet.clean_error())
    corrupted = 100 * (1 - np.mean(list(errors.values())))
    numbers = [round(float(value), 4) for value in (clean, corrupted, 100 * mce, 100 * relative)]
    return [row["model"], *numbers, "standard" if row["model"] in STANDARD else "other"]


def main(path: Path) -> None:
    """Read the table, fit, and write."""
    with path.open(newline="", encoding="utf-8") as stream:
        models = [found for row in csv.DictReader(stream) if (found := entry(row)) is not None]
    if missing := STANDARD - {model[0] for model in models}:
        raise SystemExit(f"{path}: nothing of {', '.join(sorted(missing))}; expected all standard models")
    chosen = {"all": models, "standard": [model for model in models if model[-1] == "standard"]}
    lines = {
        name: fit_line(np.array([model[1:3] for model in group]) / 100, name=name).as_dict()
        for name, group in chosen.items()
    }
    licence = json.loads(LICENSED.read_text(encoding="utf-8"))[
        "licence"
    ]  # of the same table, by tools/testbed_table.py
    head = "".join(
        f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in (("about", ABOUT), ("licence", licence))
    )
    shown = ",\n  ".join(json.dumps(model) for model in models)
    fits = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in lines.items())
    TARGET.write_text(
        f'{{\n{head} "lines": {{\n  {fits}\n }},\n "models": [\n  {shown}\n ]\n}}\n',
        encoding="utf-8",
    )
    for name, line in lines.items():
        print(name, line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
