"""Detections in a file of predictions: lists of boxes, scores and labels in every row, and the truth from COCO's file.

::

    {"image": "000000000139.jpg", "condition": "fog@3", "boxes": [[10, 20, 110, 90]], "scores": [0.9], "labels": [1]}

Boxes are (left, top, right, bottom) in pixels; labels are numbers of categories. An image without any has empty lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blemish.core.errors import InputError, brief
from blemish.core.printable import first_few
from blemish.data.truth import BoxTruth
from blemish.evaluation.answers import Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.tasks.detection import IN_PIXELS, Detection, are_shares, true_columns
from blemish.tasks.prediction_files import Sheet

_SHOWN = 3


def box_columns(sheet: Sheet, truth: BoxTruth, images: Sequence[str]) -> tuple[TaskInfo, dict[str, Column]]:
    """What is held of every row, whose ``images`` these are: its boxes, and those of the truth."""
    if missing := [name for name in dict.fromkeys(images) if name not in truth.images]:
        raise InputError(f"{sheet.name}: no annotations of {first_few(missing, _SHOWN)}; expected COCO's file names")
    if left := sorted(set(truth.images) - set(images)):
        raise InputError(
            f"{sheet.name}: no predictions for {len(left)} of {len(truth.images)} annotated images: "
            f"{first_few(left, _SHOWN)}; an image in which nothing was found has empty lists"
        )
    if lacking := [name for name in ("boxes", "scores", "labels") if name not in sheet]:
        raise InputError(f"{sheet.name}: annotations, but no column {lacking[0]}; expected boxes, scores and labels")
    lists, counts = sheet.lists(("boxes", "scores", "labels"))
    for row, boxes in enumerate(lists["boxes"]):
        if any(not isinstance(box, list) or len(box) != 4 for box in boxes):
            raise InputError(f"{sheet.row(row)}: boxes {brief(boxes)}; expected four numbers for each")
    corners = sheet.flat("boxes", [[edge for box in boxes for edge in box] for boxes in lists["boxes"]]).reshape(-1, 4)
    if len(turned := np.flatnonzero((corners[:, 2:] < corners[:, :2]).any(axis=1))):
        row = int(np.repeat(np.arange(len(sheet)), counts)[turned[0]])
        raise InputError(
            f"{sheet.row(row)}: box {corners[turned[0]].tolist()} ends before it begins; expected left, top, right, "
            "bottom (COCO's results have width and height instead)"
        )
    labels = sheet.flat("labels", lists["labels"])
    known = np.isin(labels, list(truth.categories))
    if not known.all():
        row = int(np.repeat(np.arange(len(sheet)), counts)[np.flatnonzero(~known)[0]])
        raise InputError(
            f"{sheet.row(row)}: label {labels[~known][0]:g}; expected the number of a category, "
            f"{first_few([str(number) for number in truth.categories], _SHOWN)}"
        )
    sides = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    if are_shares(sides):
        raise InputError(f"{sheet.name}: all boxes end within the first pixel; {IN_PIXELS}")
    columns: dict[str, Column] = {
        "boxes": Lists(sides.reshape(-1).astype(np.float32), 4 * counts),
        "scores": Lists(sheet.flat("scores", lists["scores"]).astype(np.float32), counts),
        "labels": Lists(labels.astype(np.int32), counts),
        **true_columns(truth, images),
    }
    return Detection(truth).info, columns
