"""Tasks by name: the images, what is in them, and the model that is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from blemish.core.errors import InputError
from blemish.data.label_sets import labelled_arrays
from blemish.data.maps import map_images
from blemish.data.shapes import SHAPES, shapes_maps, shapes_source, shapes_truth
from blemish.data.source import Source
from blemish.data.truth import coco_images
from blemish.evaluation.task import Task
from blemish.models.answering import AnsweringModel
from blemish.models.detectors import open_detector
from blemish.models.segmenters import open_segmenter
from blemish.tasks.detection import Detection
from blemish.tasks.labellers import open_labeller
from blemish.tasks.segmentation import Segmentation
from blemish.tasks.several_labels import SeveralLabels


class Opened(NamedTuple):
    """A task with its images, and how its models are opened: a text, and what `open_detector` takes besides."""

    task: Task
    source: Source
    model: Callable[..., AnsweringModel]


def _detection(data: str, annotations: Path | None) -> Opened:
    if data == SHAPES:
        return Opened(Detection(shapes_truth()), shapes_source(), open_detector)
    if annotations is None:
        raise InputError(f"detection on {data} without --annotations; expected COCO's, such as instances_val2017.json")
    source, truth = coco_images(data, annotations)
    return Opened(Detection(truth), source, open_detector)


def _segmentation(data: str, annotations: Path | None) -> Opened:
    if data == SHAPES:
        return Opened(Segmentation(shapes_maps()), shapes_source(), open_segmenter)
    if annotations is None:
        raise InputError(f"segmentation on {data} without --annotations; expected a folder of maps, such as gtFine/val")
    source, truth = map_images(data, annotations)
    return Opened(Segmentation(truth), source, open_segmenter)


def _multilabel(data: str, annotations: Path | None) -> Opened:
    source, truth = labelled_arrays(data, annotations)
    return Opened(SeveralLabels(truth), source, open_labeller)


TASKS: dict[str, Callable[[str, Path | None], Opened]] = {
    "detection": _detection,
    "segmentation": _segmentation,
    "multilabel": _multilabel,
}
"""What a model can be asked for besides the class of an image."""


def open_task(name: str, data: str, annotations: Path | None = None) -> Opened:
    """A task by name, on the images of a folder with their annotations, or on ``demo:shapes``."""
    if name not in TASKS:
        raise InputError(f"unknown task {name!r}; expected {', '.join(TASKS)}")
    return TASKS[name](data, annotations)
