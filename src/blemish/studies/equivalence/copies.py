"""Corrupted copies of the same images, measured beside each other: made on the fly, and by somebody else.

Every number is of one image, so that sets can be compared image by image.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.benchmarks.benchmark import STORAGES, Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.data.images import Images
from blemish.evaluation.measure import measure
from blemish.evaluation.pixels import as_stored
from blemish.evaluation.plan import fitting_batch_size, plan_for
from blemish.evaluation.predict import Batcher
from blemish.metrics.formulas import Array
from blemish.models.base import Classifier

STATISTICS = ("level", "contrast", "sharpness", "change")
"""What is measured of a copy, in grey levels.

Its mean, the standard deviation of its values, the mean difference of neighbours, and the mean distance from the clean
image.
"""


@dataclass(frozen=True)
class Copies:
    """One set's copies of all images in one cell: a value per image for each statistic, and whether it was known."""

    statistics: dict[str, Array]
    correct: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Pixels:
    """One image of a cell to look at: (H, W, C) of uint8 each; ``ours`` by storage."""

    name: str
    clean: NDArray[np.uint8]
    theirs: NDArray[np.uint8]
    ours: dict[str, NDArray[np.uint8]]


@dataclass(frozen=True)
class Measured:
    """A cell: their copies, and ours by storage.

    ``distance`` is the mean difference between their copy and ours, pixel by pixel, and ``spread`` that between ours
    and another draw of ours; ``close`` is the share of values at most one grey level apart, and ``identical`` says that
    no value of any image differs. All by storage.
    """

    condition: Condition
    theirs: Copies
    ours: dict[str, Copies]
    distance: dict[str, Array]
    spread: dict[str, Array]
    close: dict[str, float]
    identical: dict[str, bool]
    example: Pixels


def statistics(images: Tensor, clean: Tensor) -> dict[str, Tensor]:
    """The statistics of each image of a batch (B, C, H, W) of uint8.

    >>> flat = torch.full((1, 3, 8, 8), 10, dtype=torch.uint8)
    >>> {name: float(value) for name, value in statistics(flat, torch.zeros_like(flat)).items()}
    {'level': 10.0, 'contrast': 0.0, 'sharpness': 0.0, 'change': 10.0}
    """
    values = images.to(torch.float32)
    steps = [values.diff(dim=dim).abs().flatten(1).mean(1, dtype=torch.float64) for dim in (-1, -2)]
    return {
        "level": values.flatten(1).mean(1, dtype=torch.float64),
        "contrast": values.flatten(1).to(torch.float64).std(1, correction=0),
        "sharpness": (steps[0] + steps[1]) / 2,
        "change": _distance(images, clean),
    }


def _distance(first: Tensor, second: Tensor) -> Tensor:
    return (first.to(torch.int16) - second).abs().flatten(1).mean(1, dtype=torch.float64)


def measure_cell(
    condition: Condition,
    clean: Images,
    theirs: Images,
    *,
    seed: int = 0,
    preset: str | None = None,
    model: Classifier | None = None,
    batch_size: int | None = None,
    shown: int = 0,
) -> Measured:
    """Both sets' copies of the same clean images, in the order of ``clean``; ``shown`` is kept as an example."""
    _check_alike(condition, clean, theirs)
    device = torch.device("cpu") if model is None else model.device

    def work(rows: list[int]) -> dict[tuple[str, str], Tensor]:
        before, other = (images.batch(rows).to(device) for images in (clean, theirs))
        ids = torch.from_numpy(clean.ids[rows])
        draws = [condition.apply(before.clone(), seed=number, ids=ids, preset=preset) for number in (seed, seed + 1)]
        columns = {("theirs", key): value for key, value in statistics(other, before).items()}
        for storage in STORAGES:
            mine, again = (as_stored(draw, storage) for draw in draws)
            own = statistics(mine, before)
            own["distance"], own["spread"] = _distance(other, mine), _distance(again, mine)
            apart = (other.to(torch.int16) - mine).abs().flatten(1)
            own["close"] = (apart <= 1).to(torch.float32).mean(1, dtype=torch.float64)
            columns |= {(storage, key): value for key, value in own.items()}
        return columns

    order: list[int] = []
    parts: list[dict[tuple[str, str], Tensor]] = []
    for shape_rows in clean.by_shape():
        for rows, columns in Batcher(batch_size or fitting_batch_size(clean, device)).map(work, shape_rows):
            order += rows
            parts.append({key: value.cpu() for key, value in columns.items()})
    back = np.argsort(np.array(order))
    joined = {key: torch.cat([part[key] for part in parts]).numpy()[back] for key in parts[0]}
    correct = {} if model is None else _correct(model, condition, clean, theirs, seed, preset, batch_size)
    copies = {
        whose: Copies({name: joined[whose, name] for name in STATISTICS}, correct.get(whose))
        for whose in ("theirs", *STORAGES)
    }
    return Measured(
        condition=condition,
        theirs=copies["theirs"],
        ours={storage: copies[storage] for storage in STORAGES},
        distance={storage: joined[storage, "distance"] for storage in STORAGES},
        spread={storage: joined[storage, "spread"] for storage in STORAGES},
        close={storage: float(joined[storage, "close"].mean()) for storage in STORAGES},
        identical={storage: not joined[storage, "distance"].any() for storage in STORAGES},
        example=_example(condition, clean, theirs, shown, seed=seed, preset=preset),
    )


def _correct(
    model: Classifier,
    condition: Condition,
    clean: Images,
    theirs: Images,
    seed: int,
    preset: str | None,
    batch_size: int | None,
) -> dict[str, NDArray[np.bool_]]:
    """Which images the model knows: of their copies, and of ours by storage."""
    plans = {"theirs": plan_for(model, theirs, batch_size=batch_size)}
    for storage in STORAGES:
        protocol = Protocol(preset=preset, seed=seed, storage=storage)
        plans[storage] = plan_for(model, clean, [condition], protocol=protocol, batch_size=batch_size)
    return {whose: records.correct for whose, plan in plans.items() for _, records in measure(plan)}


def _check_alike(condition: Condition, clean: Images, theirs: Images) -> None:
    different = np.flatnonzero((clean.shapes != theirs.shapes).any(axis=1))
    if len(different):
        row = int(different[0])
        shapes = ["×".join(map(str, images.shapes[row].tolist()[1:])) for images in (theirs, clean)]
        kinds = ["gray" if images.shapes[row][0] == 1 else "colour" for images in (theirs, clean)]
        raise InputError(
            f"{theirs.name}: {clean.names[row]} has {shapes[0]} pixels ({kinds[0]}) under {condition}, but "
            f"{shapes[1]} ({kinds[1]}) in {clean.name}; expected copies of the same size (resize and crop the clean "
            "images as theirs were)"
        )


def _example(condition: Condition, clean: Images, theirs: Images, row: int, *, seed: int, preset: str | None) -> Pixels:
    before = clean.batch([row])
    ids = torch.from_numpy(clean.ids[[row]])
    mine = condition.apply(before.clone(), seed=seed, ids=ids, preset=preset)
    return Pixels(
        name=clean.names[row],
        clean=_picture(before),
        theirs=_picture(theirs.batch([row])),
        ours={storage: _picture(as_stored(mine, storage)) for storage in STORAGES},
    )


def _picture(images: Tensor) -> NDArray[np.uint8]:
    picture: NDArray[np.uint8] = images[0].permute(1, 2, 0).contiguous().numpy()
    return picture
