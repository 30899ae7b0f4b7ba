"""What a run over a stream came to, as numbers: ``summary.json`` in its folder, written when the run is over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.core.files import digest_of, write_bytes
from blemish.core.reading import is_there, read_json
from blemish.studies.streams.checkpoints import run_mark
from blemish.studies.streams.info import StreamRunInfo
from blemish.studies.streams.run import StreamResult
from blemish.studies.streams.scores import (
    default_window,
    find_collapse,
    held_accuracy,
    running_mean,
    segment_accuracies,
    summary,
)
from blemish.studies.streams.walks import Walk

SUMMARY = "summary.json"

_DIGEST = "digest"

_POINTS = 240
"""Of a curve of running means: as many as a page can show."""


def run_summary(result: StreamResult, walk: Walk, window: int | None = None) -> dict[str, Any]:
    """The scores of all methods, their running means at some images, and whether the walk held its target.

    ``run`` is a digest of what was run, and ``running`` says after how many images (``at``) the means are.
    """
    images = len(result.labels)
    size = min(window or default_window(images), images)
    places = np.unique(np.linspace(0, images - size, _POINTS).astype(np.int64))
    scores: dict[str, Any] = {
        "run": run_mark(result.info),
        "images": images,
        "window": size,
        "seams": vars(walk.seams),
        "running": {"at": (places + size).tolist()},
        "methods": {},
    }
    target = walk.protocol.target
    base = result.correct("none") if "none" in result.predictions else None
    if base is not None and target is not None:
        scores["held"] = {"target": target, **held_accuracy(base, walk, float(target))._asdict()}
    for name in result.predictions:
        correct = result.correct(name)
        fall = None if base is None or name == "none" else find_collapse(correct, base, size)
        step = None if fall is None else str(walk.steps[walk.step_at(fall.at % len(walk))])
        scores["running"][name] = running_mean(correct, size)[places].tolist()
        scores["methods"][name] = {
            **summary(correct, size)._asdict(),
            "collapse": None if fall is None else {**fall._asdict(), "step": step},
            "segments": [vars(segment) for segment in segment_accuracies(correct, walk)],
        }
    return scores


def save_summary(folder: Path, scores: Mapping[str, Any]) -> None:
    """Write the scores of a run that is over, with a digest of them."""
    sealed = {**scores, _DIGEST: _digest(scores)}
    write_bytes(folder / SUMMARY, (json.dumps(sealed, indent=1) + "\n").encode())


def read_summary(folder: Path, info: StreamRunInfo, window: int | None = None) -> dict[str, Any] | None:
    """The scores of the run that ``info`` describes, with this window; None where it is not over yet.

    A folder that holds another run is refused when that run is continued, and a summary of it is none of this one.
    """
    path = folder / SUMMARY
    if not is_there(path):
        return None
    scores = read_json(path)
    if not isinstance(scores, dict) or scores.pop(_DIGEST, None) != _digest(scores):
        raise InputError(f"{path}: damaged, or not what blemish ccc wrote; remove it, and it is made again")
    size = min(window or default_window(info.images), info.images)
    complete = scores.get("run") == run_mark(info) and scores.get("window") == size
    return scores if complete else None


def _digest(scores: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(scores, sort_keys=True).encode()).hash
