"""Fingerprints of every corruption's pixels: block means, so that they hold on every processor.

Run this file to record those that are missing. A recorded one is never overwritten: pixels that change on purpose need
a new corruption version and a line in CHANGELOG.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn import functional as F

import blemish
from codec_units import by_codec
from pictures import pictures

PATH = Path(__file__).with_suffix(".json")
SETTINGS = [(1.0, "cifar"), (2.5, "imagenet"), (5.0, "imagenet64")]


def key(corruption: blemish.Corruption) -> str:
    """Name and version."""
    return f"{corruption.name}/{corruption.version}"


def fingerprint(corruption: blemish.Corruption) -> list[float]:
    """Means of the 12 × 12 blocks of three corrupted pictures, in levels."""
    images = pictures(3, 3, 48, 48)
    rows = [
        corruption(
            images[i : i + 1],
            severity=severity if corruption.supports(severity) else corruption.only_severity or 0,
            seed=11,
            ids=[i],
            preset=preset,
        )
        for i, (severity, preset) in enumerate(SETTINGS)
    ]
    means = F.avg_pool2d(torch.cat(rows).double(), 12)
    return [round(v, 3) for v in means.flatten().tolist()]


def main() -> None:
    """Record what is missing; of frost, with the reference's photographs."""
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    for corruption in blemish.catalog.values():
        if key(corruption) not in known and not by_codec(corruption):
            known[key(corruption)] = fingerprint(corruption)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in sorted(known.items()))
    PATH.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
