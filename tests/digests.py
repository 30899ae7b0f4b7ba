"""SHA-256 digests of pixels, record columns and scores: a change of the code's shape may change none of them.

They are exact, so they are recorded with the versions of constraints.txt on a processor with AVX2. Run this file to
record those that are missing; a recorded one is overwritten only by removing its line, with a line in CHANGELOG.md
that says why. `fingerprints.py` is the looser guard that holds on every processor.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import blemish
from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.core.types import Square
from blemish.data.source import Source
from blemish.models.base import Classifier
from codec_units import by_codec

PATH = Path(__file__).with_suffix(".json")
SIZES = ((33, 47), (64, 64))
SEVERITIES = (0.7, 1.0, 2.5, 3.0, 5.0)
CLASSES = 7
CONDITIONS = (
    *(f"{name}@{level}" for name in ("gaussian_noise", "fog", "motion_blur", "jpeg_compression") for level in (1, 3)),
    "noc:border@1-5",
    "fog@2+pixelate@1",
    "p:tilt@1",
    "p:gaussian_noise@2",
)


def photo(number: int, height: int, width: int) -> NDArray[np.uint8]:
    """A picture made of integers alone, the same on every machine: ramps, blocks and grain."""
    y, x, c = np.ogrid[:height, :width, :3]
    ramp = (x * (3 + number % 5) + y * (2 + c)) % 256
    blocks = ((x // 9 + y // 7 + number) % 3) * 70
    grain = ((x * 7919 + y * 104729 + c * 1299709 + number * 15485863) % 31) - 15
    return np.clip(ramp // 2 + blocks + grain, 0, 255).astype(np.uint8)


def batch(count: int, height: int, width: int) -> Tensor:
    """Pictures as (B, 3, H, W)."""
    return torch.from_numpy(np.stack([photo(i, height, width) for i in range(count)])).permute(0, 3, 1, 2).contiguous()


def unit_digest(corruption: blemish.Corruption) -> str:
    """The pixels of a corruption at several sizes and severities."""
    digest = hashlib.sha256()
    for height, width in SIZES:
        for severity in SEVERITIES:
            if corruption.supports(severity):
                pixels = corruption(batch(2, height, width), severity=severity, seed=5, ids=[3, 2**40])
                digest.update(pixels.numpy().tobytes())
    return digest.hexdigest()


def sequence_digest(name: str, **settings: Any) -> str:
    """Some frames of a perturbation sequence; without settings, with those of 64 pixels."""
    digest = hashlib.sha256()
    for index in (0, 1, 7):
        frame = blemish.sequences[name].frame(
            batch(2, 56, 61), index, seed=5, ids=[3, 4], difficulty=2, **{"crop": 48, **settings}
        )
        digest.update(frame.numpy().tobytes())
    return digest.hexdigest()


def size_digests() -> Iterator[tuple[str, str]]:
    """Some frames of every sequence with the settings of the other sizes; at 299 pixels frames are squares."""
    sizes = {"cifar": 32, "imagenet": 48, "inception": Square(40, 0.875)}
    for name, sequence in blemish.sequences.items():
        for preset, crop in sizes.items():
            yield f"{name}/{sequence.version} {preset}", sequence_digest(name, preset=preset, crop=crop)


def tinted(number: int) -> Image.Image:
    """A picture whose class shows in its tint: more red and less blue."""
    height, width = ((48, 48), (40, 56))[number % 2]
    tint = np.array([12, 0, -12]) * (number % CLASSES)
    return Image.fromarray(np.clip(photo(number, height, width) // 3 + 80 + tint, 0, 255).astype(np.uint8))


def forward(values: Tensor) -> Tensor:
    """Probabilities from the tint, by exact sums and divisions, so that no processor rounds them otherwise."""
    levels = (values.double() * 255).round().flatten(2).sum(2)
    tint = (levels[:, 0] - levels[:, 2]) / values[0, 0].numel()
    nearness = 1 / (1 + (tint[:, None] - 24 * torch.arange(CLASSES)).abs())
    return nearness / nearness.sum(1, keepdim=True)


def small_run(folder: Path) -> blemish.Run:
    """A model on twenty-three pictures of two sizes under every kind of condition."""
    source = Source(
        name="pictures",
        names=tuple(f"{i % CLASSES}/{i}.png" for i in range(23)),
        ids=np.arange(23, dtype=np.int64),
        labels=np.arange(23, dtype=np.int64) % CLASSES,
        read=tinted,
        classes=tuple("abcdefg"),
    )
    model = Classifier("exact", "function", forward, "w1", output="probabilities")
    benchmark = Benchmark(
        "digests", "", "error", tuple(parse_condition(text) for text in CONDITIONS), Protocol(storage="jpeg85", crop=32)
    )
    return blemish.evaluate(model, source, benchmark, out=folder, zipf=True)


def run_digests(folder: Path) -> Iterator[tuple[str, str]]:
    """The columns of every file of records, and all scores to twelve digits."""
    run = small_run(folder)
    for condition in run.conditions:
        records = run.records(condition)
        digest = hashlib.sha256()
        for column in ("labels", "top5", "confidence", "label_confidence", "frames", "zipf"):
            values = getattr(records, column)
            digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
        digest.update("\n".join(records.images.tolist()).encode())
        yield f"records {condition}", digest.hexdigest()
    lines = []
    for score in blemish.score(run).rows:
        numbers = (score.estimate.value, score.estimate.low, score.estimate.high)
        lines.append(" ".join([score.name, score.scope, score.of, *(f"{n:.12g}" for n in numbers)]))
    yield "scores", hashlib.sha256("\n".join(lines).encode()).hexdigest()


def unit_keys() -> dict[str, str]:
    """What each line of a unit is called, with its version."""
    units = {name: unit for name, unit in blemish.catalog.items() if not by_codec(unit)}
    corruptions = {name: f"{name}/{unit.version}" for name, unit in units.items()}
    return corruptions | {name: f"{name}/{sequence.version}" for name, sequence in blemish.sequences.items()}


def of_unit(name: str) -> str:
    """The digest of a corruption or sequence."""
    return sequence_digest(name) if name in blemish.sequences else unit_digest(blemish.catalog[name])


def main() -> None:
    """Record what is missing."""
    torch.set_num_threads(1)
    known: dict[str, str] = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name, key in unit_keys().items():
        if key not in known:
            known[key] = of_unit(name)
    for key, digest in size_digests():
        known.setdefault(key, digest)
    with tempfile.TemporaryDirectory() as folder:
        for key, digest in run_digests(Path(folder)):
            known.setdefault(key, digest)
    PATH.write_text(json.dumps(known, indent=0, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
