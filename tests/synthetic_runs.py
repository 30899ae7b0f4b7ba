"""Runs without a model: real run files and records with outcomes that a test chooses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import Condition, parse_condition
from blemish.core.typed import read_typed
from blemish.corruptions.catalog import catalog
from blemish.evaluation.info import RecordsHeader
from blemish.evaluation.records import TOP, Records, records_bytes
from blemish.evaluation.runs import RECORDS, RUN_FILE, Run, open_run, record_path

FIFTEEN = tuple(catalog)[:15]
"""The corruptions of ImageNet-C."""

Outcome = float | Sequence[bool] | NDArray[Any]


def severities(names: Sequence[str] = FIFTEEN, *, clean: float = 0.8, worst: float = 0.3) -> dict[str, float]:
    """Clean images and corruptions at severities 1–5, with accuracies that fall evenly."""
    steps = np.linspace(clean, worst, 6)
    return {"clean": clean, **{f"{name}@{level}": float(steps[level]) for name in names for level in range(1, 6)}}


def write_run(
    folder: Path,
    model_name: str,
    conditions: Mapping[str, Any],
    *,
    images: int = 100,
    seed: int = 0,
    classes: int = 10,
    benchmark: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    zipf: bool = False,
    names: Sequence[str] | None = None,
) -> Run:
    """A finished run in ``folder / model_name``: each condition with its probability of a correct answer.

    An array in place of a probability says which images are answered correctly; for a sequence the number is the
    probability that the answer changes from one frame to the next, and an array (images, frames, 5) holds the top
    five. ``None`` leaves a condition without records. Difficult images are difficult under all conditions and for all
    models, so that outcomes are correlated as real ones are. Mappings replace single entries of the run file. Images of
    ``natural:NAME`` are another set; ``clean:NAME`` holds the images of the first half of the classes.
    """
    info = _info(model_name, conditions, images, classes)
    for part, changes in (("benchmark", benchmark), ("protocol", protocol), ("data", data), ("model", model)):
        info[part] |= changes or {}
    info["stages"] = [info["data"]]
    root = folder / model_name
    (root / RECORDS).mkdir(parents=True)
    (root / RUN_FILE).write_text(json.dumps(info), encoding="utf-8")
    own = list(names) if names is not None else [f"c{i % classes}/{i:06d}.png" for i in range(images)]
    labels = np.arange(len(own)) % classes
    difficulty = np.random.default_rng(12345).random(len(own))
    for index, (text, outcome) in enumerate(conditions.items()):
        condition = parse_condition(text)
        if outcome is None:
            continue
        rng = np.random.default_rng([seed, index])
        rows, prefix = np.arange(len(own)), ""
        if text.startswith("natural:"):
            prefix = text.removeprefix("natural:") + "/"
        elif text.startswith("clean:"):
            rows = np.flatnonzero(labels < max(1, classes // 2))
        picked = np.array([prefix + own[row] for row in rows], dtype=np.str_)
        header = read_typed(RecordsHeader, {**info, "benchmark": "synthetic", "condition": text})
        make = _film if condition.is_sequence else _answers
        records = make(header, picked, labels[rows], difficulty[rows], outcome, rng, classes, condition, zipf)
        record_path(root, condition).write_bytes(records_bytes(records))
    return open_run(root)


def _info(name: str, conditions: Mapping[str, Any], images: int, classes: int) -> dict[str, Any]:
    used = {name for text in conditions for name in parse_condition(text).names()}
    return {
        "benchmark": {
            "name": "synthetic",
            "title": "A synthetic benchmark",
            "metric": "error",
            "baseline": None,
            "conditions": list(conditions),
            "families": {unit: catalog[unit].family for unit in sorted(used) if unit in catalog},
        },
        "protocol": {
            "seed": 0,
            "preset": None,
            "storage": "raw",
            "resize": None,
            "crop": None,
            "pixels": "generated",
            "corruptions": dict.fromkeys(sorted(used), 1),
            "frost": "custom-0123456789abcdef" if "frost" in used else None,
        },
        "data": {
            "name": "synthetic",
            "images": images,
            "classes": classes,
            "fingerprint": "0123456789abcdef",
            "selection": "all",
            "others": {},
        },
        "model": {
            "name": name,
            "kind": "synthetic",
            "weights": "none",
            "preprocessing": {},
            "output": "probabilities",
            "skip_classes": 0,
            "training": {"corruptions": [], "augmentations": []},
        },
        "made_with": {"blemish": "0", "torch": "0", "numpy": "0", "pillow": "0"},
    }


def _ranked(first: NDArray[Any], classes: int) -> NDArray[np.int32]:
    """Top fives that begin with these classes and go on with the next ones."""
    kept = min(TOP, classes)
    top5 = np.full((*first.shape, TOP), -1, dtype=np.int32)
    top5[..., :kept] = (first[..., None] + np.arange(kept)) % classes
    return top5


def _answers(
    header: RecordsHeader,
    names: NDArray[np.str_],
    labels: NDArray[Any],
    difficulty: NDArray[Any],
    outcome: Outcome,
    rng: np.random.Generator,
    classes: int,
    condition: Condition,
    zipf: bool,
) -> Records:
    if np.ndim(outcome) == 0:
        # Marginally uniform for each image, and alike for all conditions.
        mixed = np.where(rng.random(len(names)) < 0.9, difficulty, rng.random(len(names)))
        correct = mixed < float(np.asarray(outcome))
    else:
        correct = np.asarray(outcome, dtype=bool)
    first = np.where(correct, labels, (labels + 1 + rng.integers(0, classes - 1, len(names))) % classes)
    confidence = np.clip(0.35 + 0.4 * correct + 0.25 * rng.random(len(names)), 0, 1).astype(np.float32)
    own = np.where(correct, confidence, (1 - confidence) / 2).astype(np.float32)
    return Records(header, names, labels.astype(np.int32), _ranked(first, classes), confidence, own)


def _film(
    header: RecordsHeader,
    names: NDArray[np.str_],
    labels: NDArray[Any],
    difficulty: NDArray[Any],
    outcome: Outcome,
    rng: np.random.Generator,
    classes: int,
    condition: Condition,
    zipf: bool,
) -> Records:
    count, length = len(names), condition.sequence().length()
    if np.ndim(outcome) == 0:
        flips = rng.random((count, length)) < float(np.asarray(outcome))
        flips[:, 0] = False
        # In a noise sequence a frame is compared with the first one, so that a flip does not last.
        steps = flips if condition.sequence().noise else np.cumsum(flips, axis=1)
        top5 = _ranked((labels[:, None] + steps) % classes, classes)
    else:
        top5 = np.asarray(outcome, dtype=np.int32)
        length = top5.shape[1]
    rows = count * length
    return Records(
        header,
        np.repeat(names, length),
        np.repeat(labels, length).astype(np.int32),
        top5.reshape(rows, TOP),
        rng.uniform(0.4, 1, rows).astype(np.float32),
        rng.uniform(0, 0.4, rows).astype(np.float32),
        frames=np.tile(np.arange(length), count).astype(np.int16),
        zipf=rng.random(rows).astype(np.float32) if zipf else None,
    )
