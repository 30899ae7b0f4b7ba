"""Corrupted copies of an array file in the layout of CIFAR-10-C: one ``<corruption>.npy`` with a block per severity."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from blemish.data.arrays import ImageArray, read_arrays
from blemish.data.source import check_unchanged, file_stamp
from blemish.execution.base import Executor
from blemish.storage.files import check_folder, place, staged_destination, staging_path, write_bytes
from blemish.storage.manifest import check_manifest, protocol, write_manifest
from blemish.storage.recipe import Recipe
from blemish.storage.results import Outcome, Progress
from blemish.storage.workers import executor_for, run_tasks
from blemish.types import InputError

__all__ = ["corrupt_arrays"]

LABELS = "labels.npy"

# Values per task: enough to be worth sending to another process. Fixed, so that a task never depends on the jobs.
_CHUNK = 2**20


def corrupt_arrays(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    labels: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Outcome:
    """Write ``<corruption>.npy`` for each corruption: the N images at the first severity, then at the second …

    ``labels.npy`` holds the labels once per severity, as CIFAR-10-C does, if the source has any. The id of an image is
    its position. Finished files are skipped; nothing but the recipe and the images decides the result. An ``executor``
    may be given in place of ``jobs``; its machines have to share the destination.
    """
    target = Path(destination)
    if recipe.resize is not None or recipe.crop is not None:
        raise InputError("resize and crop are for pictures; an array file is taken as it is")
    workers = executor_for(jobs, executor)
    stamp = file_stamp(source) if Path(source).is_file() else ""
    data = read_arrays(source, labels=labels)
    check_folder(target)
    outputs = [target / f"{corruption.name}.npy" for corruption in recipe.corruptions]
    _check_apart([source, *([labels] if labels is not None else [])], [*outputs, target / LABELS])
    wanted = protocol(recipe, layout="array", shape=list(data.images.shape), images=_digest(data.images))
    if recipe.preset is None:
        wanted["preset"] = recipe.corruptions[0].table.preset(*data.images.shape[1:3])
    entries = check_manifest(target, wanted, [*outputs, target / LABELS])
    label_bytes = _check_labels(target / LABELS, data.labels, len(recipe.severities))
    with staged_destination(target):
        write_manifest(target, entries)
        if label_bytes is not None:
            write_bytes(target / LABELS, label_bytes, destination=target)
        return _write(data, target, outputs, recipe, workers, progress, _unchanged(source, stamp, data))


def _unchanged(source: str | os.PathLike[str], stamp: str, data: ImageArray) -> Callable[[], None]:
    """Refuses a mapped file that was changed in the meantime: its copies would be of two kinds."""
    mapped = isinstance(data.images, np.memmap)
    return lambda: check_unchanged(source, stamp) if mapped else None


def _check_apart(sources: list[str | os.PathLike[str]], outputs: list[Path]) -> None:
    for source in sources:
        for output in outputs:
            if output.resolve() == Path(source).resolve():
                raise InputError(f"{output} is a source and would be overwritten; choose another destination")


def _check_labels(path: Path, labels: NDArray[Any] | None, blocks: int) -> bytes | None:
    """The labels file to be written, unless there are no labels or it is there already."""
    if labels is None:
        return None
    tiled = np.tile(labels, blocks)
    if not path.exists():
        return _npy_bytes(tiled)
    try:
        present = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); remove it, or choose another destination") from error
    if not np.array_equal(present, tiled):
        raise InputError(f"{path} holds other labels; choose another destination")
    return None


def _npy_bytes(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _digest(images: NDArray[np.uint8]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    step = max(1, 2**24 // images[0].size)
    for start in range(0, len(images), step):
        digest.update(images[start : start + step].tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Chunk:
    """Some neighbouring images, the file their copies go to, and where in it a block of rows begins."""

    corruption: int
    start: int
    images: NDArray[np.uint8]
    file: Path
    header: int
    rows: int


@dataclass(frozen=True)
class _ChunkWork:
    """All copies of a chunk under one corruption, put in their places in the unfinished file."""

    recipe: Recipe

    def __call__(self, chunk: _Chunk) -> tuple[int, int]:
        recipe, images = self.recipe, chunk.images
        corruption = recipe.corruptions[chunk.corruption]
        height, width = images.shape[1:3]
        batch = torch.from_numpy(images.reshape(len(images), height, width, -1)).permute(0, 3, 1, 2).contiguous()
        ids = torch.arange(chunk.start, chunk.start + len(images))
        try:
            with chunk.file.open("r+b") as file:
                for block, severity in enumerate(recipe.severities):
                    copies = corruption(batch, severity=severity, seed=recipe.seed, ids=ids, preset=recipe.preset)
                    file.seek(chunk.header + (block * chunk.rows + chunk.start) * images[0].size)
                    file.write(copies.permute(0, 2, 3, 1).contiguous().numpy().tobytes())
        except OSError as error:
            raise InputError(f"cannot write {corruption.name}.npy: {error.strerror or error}") from error
        return chunk.corruption, len(images)


def _write(
    data: ImageArray,
    target: Path,
    outputs: list[Path],
    recipe: Recipe,
    executor: Executor,
    progress: Progress | None,
    check: Callable[[], None],
) -> Outcome:
    count, blocks = len(data.images), len(recipe.severities)
    todo = [index for index, output in enumerate(outputs) if not output.exists()]
    outcome = Outcome(skipped=(len(outputs) - len(todo)) * count * blocks)
    total = count * recipe.copies
    staged = {index: staging_path(target, outputs[index]) for index in todo}
    left = dict.fromkeys(todo, count)
    tasks = _chunks(data.images, staged, blocks, check)
    outcomes = run_tasks(
        _ChunkWork(recipe),
        tasks,
        executor=executor,
        folder=target,
        name=lambda chunk: recipe.corruptions[chunk.corruption].name,
    )
    with contextlib.closing(outcomes) as results:
        for index, images in results:
            left[index] -= images
            if left[index] == 0:
                check()
                place(staged[index], outputs[index])
            outcome.written += images * blocks
            if progress is not None:
                progress(outcome.written + outcome.skipped, total)
    if todo:
        name = recipe.preset or recipe.corruptions[0].table.preset(*data.images.shape[1:3])
        outcome.presets = Counter({name: count})
    return outcome


def _chunks(
    images: NDArray[np.uint8], staged: dict[int, Path], blocks: int, check: Callable[[], None]
) -> Iterator[_Chunk]:
    step = max(1, _CHUNK // images[0].size)
    for index, file in staged.items():
        header = _begin(file, (blocks * len(images), *images.shape[1:]))
        for start in range(0, len(images), step):
            check()
            part = np.array(images[start : start + step])
            yield _Chunk(index, start, part, file, header, len(images))


def _begin(file: Path, shape: tuple[int, ...]) -> int:
    """An .npy file of the final size with nothing but its header; returns the header's length."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    length = header.tell()
    try:
        with file.open("wb") as stream:
            stream.write(header.getvalue())
            stream.truncate(length + int(np.prod(shape)))
    except OSError as error:
        raise InputError(f"cannot write to {file.parent.parent}: {error.strerror or error}") from error
    return length
