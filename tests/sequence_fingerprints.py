"""Fingerprints of every sequence's frames: block means, so that they hold on every processor.

Run this file to record those that are missing. A recorded one is never overwritten: frames that change on purpose need
a new version of the sequence and a line in CHANGELOG.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch.nn import functional as F

from blemish.corruptions.imagenet_p import PerturbationSequence, sequences
from pictures import pictures

PATH = Path(__file__).with_suffix(".json")
SETTINGS = [(3, 1, "imagenet"), (12, 2, "imagenet64"), (30, 3, "imagenet")]


def key(sequence: PerturbationSequence) -> str:
    """Name and version."""
    return f"{sequence.name}/{sequence.version}"


def fingerprint(sequence: PerturbationSequence) -> list[float]:
    """Means of the 12 × 12 blocks of three frames of three pictures, in levels."""
    images = pictures(3, 3, 56, 56)
    frames = [
        sequence.frame(images[i : i + 1], index, seed=11, ids=[i], difficulty=difficulty, preset=preset, crop=48)
        for i, (index, difficulty, preset) in enumerate(SETTINGS)
    ]
    means = F.avg_pool2d(torch.cat(frames).double(), 12)
    return [round(v, 3) for v in means.flatten().tolist()]


def main() -> None:
    """Record what is missing."""
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    for sequence in sequences.values():
        known.setdefault(key(sequence), fingerprint(sequence))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in sorted(known.items()))
    PATH.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
