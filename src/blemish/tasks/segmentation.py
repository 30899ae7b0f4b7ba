"""Segmentation: the class of every pixel. Records keep how many pixels of a class were taken for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from blemish.core.errors import InputError, notify
from blemish.core.printable import first_few
from blemish.data.maps import VOID, MapTruth
from blemish.evaluation.answers import Answers, Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.models.answering import AnsweringModel

COLUMNS = {"truth": "list<int32>", "prediction": "list<int32>", "pixels": "list<int32>"}
_SHOWN = 3
MOST_CLASSES = 2**16
_OTHER = 0.01


@dataclass(frozen=True)
class Segmentation:
    """The task of telling the class of every pixel. Only pairs of classes that occur in an image are kept."""

    truth: MapTruth
    metric: str = "miou"
    in_places: bool = True

    @cached_property
    def info(self) -> TaskInfo:
        """What records say: the columns, the classes, and which truth it was."""
        return TaskInfo("segmentation", COLUMNS, {"truth": self.truth.digest, "classes": list(self.truth.classes)})

    def check(self, model: Any, names: Sequence[str]) -> None:
        """Refuse a model that is none of pixels, and images without a map."""
        if not isinstance(model, AnsweringModel):
            raise InputError(f"a {type(model).__name__}; expected a model of pixels (blemish.models.segmenters)")
        model.tell_assumed()
        if missing := [name for name in names if name not in self.truth.names]:
            raise InputError(f"no maps of {first_few(missing, _SHOWN)}; expected one for every image")

    def answers(self, model: AnsweringModel, pixels: Tensor, names: Sequence[str]) -> Mapping[str, Column]:
        """Ask a model; scores of another size are brought to that of the images first."""
        output = model(pixels)
        classes = _classes(model, output, pixels).cpu().numpy()
        if output.ndim == 4 and (last := max(self.truth.classes)) >= output.shape[1]:
            notify(
                f"model {model.name}: scores of classes 0 … {output.shape[1] - 1}, and maps that hold class {last}; "
                "expected maps with the model's numbers (those of ADE20K begin with 1)"
            )
        columns: dict[str, list[NDArray[np.int32]]] = {name: [] for name in COLUMNS}
        for name, predicted in zip(names, classes, strict=True):
            true = self.truth.read(name)
            if true.shape != predicted.shape:
                shown = "×".join(map(str, true.shape))
                raise InputError(
                    f"{name}: a map of {shown} pixels for an image of {'×'.join(map(str, predicted.shape))}"
                )
            counted = true != VOID
            pairs, counts = np.unique(
                true[counted].astype(np.int64) * MOST_CLASSES + predicted[counted], return_counts=True
            )
            for column, values in zip(COLUMNS, (pairs // MOST_CLASSES, pairs % MOST_CLASSES, counts), strict=True):
                columns[column].append(values.astype(np.int32))
        lengths = np.array([len(part) for part in columns["pixels"]], dtype=np.int64)
        return {name: Lists(np.concatenate(parts), lengths) for name, parts in columns.items()}

    def changed(self, before: Answers, now: Answers) -> str | None:
        """The image with most pixels of another class than before, where they are more than 1 % of its pixels.

        What is kept are numbers of pixels, so that they are at least as many. Other batches and devices round
        otherwise, and a pixel between two classes may change sides.
        """
        shares = [_other_pixels(*pair) for pair in zip(_pixels_of(before), _pixels_of(now), strict=True)]
        return str(now.images[int(np.argmax(shares))]) if max(shares) > _OTHER else None


def _classes(model: AnsweringModel, output: Any, pixels: Tensor) -> Tensor:
    """The class of every pixel of a batch, (B, H, W)."""
    size = (pixels.shape[0], *pixels.shape[-2:])
    if not isinstance(output, Tensor) or output.ndim not in (3, 4) or len(output) != len(pixels):
        shown = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"model {model.name}: {shown} for images of shape {tuple(pixels.shape)}; expected class scores "
            "(B, classes, h, w) or classes (B, H, W)"
        )
    if output.ndim == 4:
        scores = output.to(torch.float32)
        if not bool(scores.isfinite().all()):
            raise InputError(f"model {model.name}: scores that are not finite")
        if scores.shape[-2:] != pixels.shape[-2:]:
            scores = functional.interpolate(scores, size=size[1:], mode="bilinear", align_corners=False)
        output = scores.argmax(1)
    if tuple(output.shape) != size or output.is_floating_point():
        raise InputError(
            f"model {model.name}: classes of shape {tuple(output.shape)} and type {output.dtype} for images of "
            f"{size[1]}×{size[2]} pixels; expected whole numbers, one for each pixel"
        )
    if bool((output < 0).any()) or bool((output >= MOST_CLASSES).any()):
        raise InputError(f"model {model.name}: a class below 0 or above {MOST_CLASSES - 1}")
    classes: Tensor = output
    return classes


def _pixels_of(answers: Answers) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each image, the pairs of classes as numbers, and how many pixels are of each."""
    truth, prediction, pixels = (answers.lists(name) for name in COLUMNS)
    ends = np.cumsum(pixels.counts)[:-1]
    pairs = truth.values.astype(np.int64) * MOST_CLASSES + prediction.values
    return list(zip(np.split(pairs, ends), np.split(pixels.values.astype(np.int64), ends), strict=True))


def _other_pixels(
    before: tuple[NDArray[np.int64], NDArray[np.int64]], now: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> float:
    """The least share of an image's pixels that are of another class now."""
    _, group = np.unique(np.concatenate([before[0], now[0]]), return_inverse=True)
    differences = np.bincount(group, weights=np.concatenate([before[1], -now[1]]))
    return float(np.abs(differences).sum() / max(1, before[1].sum() + now[1].sum()))
