"""Running adaptation methods over a stream, with checkpoints from which an interrupted run goes on exactly.

::

    OUT/run.json                        what was run, and how
    OUT/part-<first image>.parquet      position, image, label and step of each image, and each method's prediction
    OUT/checkpoint-<images>.pt          how far the run has come, and the state of every method; the last two
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from blemish.core.errors import InputError, about
from blemish.core.folders import held_folder
from blemish.core.reading import read_json
from blemish.core.settings import keep_settings
from blemish.core.typed import read_typed
from blemish.data.labels import check_below
from blemish.models.base import ModelInfo
from blemish.studies.adaptation.base import Adapts
from blemish.studies.streams.checkpoints import IMAGE_COLUMNS, Checkpoint, Checkpoints, Columns
from blemish.studies.streams.info import MethodSettings, StreamRunInfo
from blemish.studies.streams.stream import Batch, Stream
from blemish.version import VERSION

RUN_FILE = "run.json"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StreamResult:
    """The labels of a stream's images and what each method predicted, in order.

    ``images`` are the ids of the images, and ``steps`` the numbers of the walk's steps they were shown in.
    """

    labels: NDArray[np.int64]
    predictions: dict[str, NDArray[np.int64]]
    info: StreamRunInfo
    images: NDArray[np.int64]
    steps: NDArray[np.int64]

    def correct(self, method: str) -> NDArray[np.bool_]:
        """Whether each image was classified correctly."""
        if method not in self.predictions:
            raise InputError(f"no predictions of {method!r}; this run has {', '.join(self.predictions)}")
        return np.asarray(self.predictions[method] == self.labels)


def run_stream(
    stream: Stream,
    methods: Mapping[str, Adapts],
    *,
    folder: Path | None = None,
    every: int = 500,
    workers: int = 0,
    model: ModelInfo | None = None,
    settings: MethodSettings | None = None,
    progress: Progress | None = None,
) -> StreamResult:
    """Show a bounded stream to all methods at once, batch by batch; each sees every image once, in order.

    With a ``folder`` the run is saved after ``every`` batches, and the same call goes on from there (from the
    checkpoint before, where the last one is damaged): its result is the same, bit for bit, as that of a run that was
    never stopped. ``model`` and ``settings`` describe what is run.
    """
    if not methods:
        raise InputError("no adaptation methods to run; expected at least one")
    if stream.length == float("inf") or stream.start or stream.shards > 1:
        raise InputError("an infinite, sharded or already started stream; expected a whole one to run methods on")
    if every < 1:
        raise InputError(f"a checkpoint every {every} batches; expected at least 1")
    info = run_info(stream, methods, model=model, settings=settings)
    with held_folder(folder) if folder is not None else contextlib.nullcontext():
        checkpoints = None if folder is None else Checkpoints(folder, info)
        before = None if checkpoints is None else _resume(checkpoints, methods)
        done, parts = (0, []) if before is None else (before.done, before.parts)
        fresh: list[Columns] = []
        begin = done
        for number, batch in enumerate(_batches(stream, done, workers), start=1):
            fresh.append(_predicted(batch, stream.images.ids, methods))
            done += len(batch.labels)
            if number % every == 0 or done == stream.length:
                parts.append(_joined(fresh))
                fresh = []
                if checkpoints is not None:
                    checkpoints.save(begin, parts[-1], {name: method.state_dict() for name, method in methods.items()})
                begin = done
            if progress is not None:
                progress(done, int(stream.length))
    return _result(parts, info)


def _batches(stream: Stream, start: int, workers: int) -> Iterator[Batch]:
    rest = stream.resumed(start)
    if workers == 0:
        return iter(rest)
    return iter(DataLoader(rest, batch_size=None, num_workers=workers))


def _predicted(batch: Batch, ids: NDArray[np.int64], methods: Mapping[str, Adapts]) -> Columns:
    scores = {name: method.adapt(batch.images) for name, method in methods.items()}
    shown = ids[batch.rows.numpy()]
    for name, logits in scores.items():
        check_below(batch.labels.numpy(), shown, logits.shape[1], source="the stream", model=f"method {name}")
    classes = {name: logits.argmax(1).cpu().numpy() for name, logits in scores.items()}
    about = (batch.positions.numpy(), shown, batch.labels.numpy(), batch.steps.numpy())
    return dict(zip(IMAGE_COLUMNS, about, strict=True)) | classes


def _joined(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _result(parts: list[Columns], info: StreamRunInfo) -> StreamResult:
    whole = _joined(parts)
    _, images, labels, steps = (whole.pop(name) for name in IMAGE_COLUMNS)
    return StreamResult(labels, whole, info, images, steps)


def run_info(
    stream: Stream,
    methods: Iterable[str],
    *,
    model: ModelInfo | None = None,
    settings: MethodSettings | None = None,
) -> StreamRunInfo:
    """What a run says of itself: all that its predictions depend on."""
    names = tuple(methods)
    if taken := [name for name in names if name in IMAGE_COLUMNS]:
        raise InputError(f"a method named {taken[0]!r}; that name is taken by a column of the results")
    return StreamRunInfo(
        stream=stream.describe(),
        images=int(stream.length),
        batch=stream.batch,
        methods=names,
        model=model,
        settings=settings,
        target=stream.walk.protocol.target,
        blemish=VERSION,
    )


def _resume(checkpoints: Checkpoints, methods: Mapping[str, Adapts]) -> Checkpoint | None:
    """Check that the folder holds this run, or nothing yet, and load the states of the checkpoint to go on from."""
    keep_settings(checkpoints.folder / RUN_FILE, checkpoints.info, holds="another run")
    checkpoint = checkpoints.resume()
    if checkpoint is not None:
        for name, method in methods.items():
            method.load_state_dict(checkpoint.states[name])
    return checkpoint


def read_result(folder: Path) -> StreamResult:
    """The result of a run, as far as it has come."""
    path = folder / RUN_FILE
    try:
        content = read_json(path)
        with about(f"{path}: not a run"):
            info = read_typed(StreamRunInfo, content)
    except InputError as error:
        raise InputError(f"{error}; expected a folder that blemish ccc run made") from error
    checkpoint = Checkpoints(folder, info).newest()
    if checkpoint is None:
        raise InputError(f"{folder}: nothing finished yet; run the same command again to go on")
    return _result(checkpoint.parts, info)
