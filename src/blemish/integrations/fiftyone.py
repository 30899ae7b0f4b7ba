"""Corrupted copies of samples, and what a model said of images, in FiftyOne."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from blemish.benchmarks.condition import read_condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.optional import optional_import
from blemish.corruptions.base import Corruption
from blemish.corruptions.severity import severity_text
from blemish.corruptions.transform import Corrupt
from blemish.data.pictures import encode_picture, picture_id, read_picture
from blemish.evaluation.runs import Run


def corrupted_samples(
    samples: Iterable[Any],
    name: str | Corruption,
    severity: float,
    *,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    seed: int = 0,
    preset: str | None = None,
) -> Iterator[Any]:
    """Corrupted copies of samples, one by one, for ``add_samples``; their pictures are written below ``out``, as PNG.

    ``root`` is the folder that the samples' files are in; the names below it decide the draws, as in ``blemish run``
    and ``blemish corrupt``. A copy has the labels of its sample, a tag such as "fog@3", and the original's path as
    ``corrupted_from``. Boxes and masks stay where they are.
    """
    transform = Corrupt(name, severity, seed=seed, preset=preset)
    tag = f"{transform.corruption.name}@{severity_text(transform.severity)}"
    folder = Path(out) / read_condition(tag).slug
    for sample in samples:
        image = _name(sample, root)
        target = folder / (image if image.lower().endswith(".png") else f"{image}.png")
        if target.exists():
            raise InputError(f"{target}: is there already; name another folder (out=…) or remove it")
        picture = transform(read_picture(sample.filepath), id=picture_id(image))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, encode_picture(picture, "png"))
        copy = sample.copy()
        copy.filepath, copy.metadata, copy.tags = str(target.resolve()), None, [*sample.tags, tag]
        copy["corrupted_from"] = sample.filepath
        yield copy


def add_answers(
    samples: Iterable[Any], run: Run, condition: str, *, root: str | os.PathLike[str], field: str | None = None
) -> int:
    """Write what a model said under a condition ("clean", "fog@3") into a field of the samples that it was shown.

    The field, by default the model's and the condition's names, holds a ``Classification`` with the class and its
    confidence. ``root`` is the folder that was measured (``--data``), in which the samples' files are. Returns how many
    samples are among the images of the run; where there is none, that is an error.
    """
    classification = optional_import("fiftyone").Classification
    asked = read_condition(condition)
    if asked.is_sequence or asked not in run.conditions:
        raise InputError(f"{run.folder}: no answers to single images under {condition} in it")
    records, classes = run.records(asked), run.info.classes
    rows = {str(image): row for row, image in enumerate(records.images)}
    kept = field or f"{run.name}_{asked.slug}".replace("@", "_").replace(":", "_").replace("-", "_")
    labelled = 0
    for sample in samples:
        row = rows.get(_name(sample, root))
        if row is None:
            continue
        number = int(records.top5[row, 0])
        label = classes[number] if classes is not None and number < len(classes) else str(number)
        sample[kept] = classification(label=label, confidence=float(records.confidence[row]))
        if sample.in_dataset:
            sample.save()
        labelled += 1
    if not labelled:
        raise InputError(f"none of the samples is among the images of {run.folder}; is {Path(root)} what was measured?")
    return labelled


def _name(sample: Any, root: str | os.PathLike[str]) -> str:
    """The name of a sample's file below the root."""
    path, folder = Path(sample.filepath).resolve(), Path(root).resolve()
    if not path.is_relative_to(folder):
        raise InputError(f"{path}: not below {folder}; expected the folder that the samples' files are in (root=…)")
    return path.relative_to(folder).as_posix()
