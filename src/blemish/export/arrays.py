"""Corrupted copies of an array file in the layout of CIFAR-10-C: one ``<corruption>.npy`` with a block per severity."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from blemish.core.errors import InputError, StorageError
from blemish.core.files import PartFile, digest_of, file_digest, part_file, unwritable, write_bytes
from blemish.core.folders import check_folder
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.data.arrays import ImageArray, read_arrays, read_npy
from blemish.data.source import check_unchanged, file_stamp
from blemish.evaluation.executors.base import Calls, Executor
from blemish.export.journal import Entry, Journal
from blemish.export.manifest import opened_set, set_info, write_manifest
from blemish.export.outcome import Outcome
from blemish.export.recipe import Recipe
from blemish.export.resume import is_intact
from blemish.export.workers import executor_for, run_tasks

_log = logging.getLogger(__name__)

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
    progress: ProgressReport = tell_nobody,
    executor: Executor | None = None,
    quick: bool = False,
) -> Outcome:
    """Write ``<corruption>.npy`` for each corruption: the N images at the first severity, then at the second …

    ``labels.npy`` holds the labels once per severity, as CIFAR-10-C does, if the source has any. The id of an image is
    its position. Finished files are skipped, if they have the digest (``quick``: the size) that the manifest knows;
    nothing but the recipe and the images decides the result. An ``executor`` may be given in place of ``jobs``; its
    machines have to share the destination.
    """
    target = Path(destination)
    if recipe.resize is not None or recipe.crop is not None:
        raise InputError("resize and crop are for pictures; an array file is taken as it is")
    workers = executor_for(jobs, executor)
    stamp = file_stamp(source) if Path(source).is_file() else ""
    data = read_arrays(source, labels=labels)
    check_folder(target)
    outputs = [target / f"{corruption.name}.npy" for corruption in recipe.corruptions]
    files = [*outputs, target / LABELS]
    sources = {Path(path).resolve() for path in (source, labels) if path is not None}
    for file in files:
        if file.resolve() in sources:
            raise InputError(f"{file} is a source and would be overwritten; choose another destination")
    wanted = set_info(recipe, layout="array", shape=data.images.shape, images=_digest(data.images))
    if recipe.preset is None:
        wanted = replace(wanted, preset=recipe.corruptions[0].table.preset(*data.images.shape[1:3]))
    with contextlib.ExitStack() as stack:
        info, journal = stack.enter_context(opened_set(target, wanted, files, [file.name for file in files]))
        label_bytes = None if data.labels is None else _npy_bytes(np.tile(data.labels, len(recipe.severities)))
        if label_bytes is not None:
            _check_labels(target / LABELS, label_bytes, journal)
        write_manifest(target, info)
        if label_bytes is not None and not _is_there(target / LABELS, journal, quick=False):
            write_bytes(target / LABELS, label_bytes, destination=target)
            journal.add(Entry(LABELS, None, {LABELS: digest_of(label_bytes)}))
        todo = {
            index: stack.enter_context(part_file(output, destination=target))
            for index, output in enumerate(outputs)
            if not _is_there(output, journal, quick=quick)
        }
        _log.info("%s: %d of %d files of copies are missing", target, len(todo), len(outputs))
        # The copies of a mapped file that is changed in the meantime would be of two kinds.
        check = partial(check_unchanged, source, stamp) if isinstance(data.images, np.memmap) else lambda: None
        return _write(data, target, todo, recipe, workers, progress, check, journal)


def _is_there(path: Path, journal: Journal, *, quick: bool) -> bool:
    entry = journal.entry(path.name)
    return entry is not None and path.name in entry.copies and is_intact(path, entry.copies[path.name], quick=quick)


def _check_labels(path: Path, content: bytes, journal: Journal) -> None:
    """Refuse a file of other labels; a damaged one is written again."""
    entry = journal.entry(LABELS)
    if entry is not None and entry.copies.get(LABELS) == digest_of(content):
        return
    if path.exists():
        try:
            same = np.array_equal(read_npy(path), np.load(io.BytesIO(content), allow_pickle=False))
        except InputError as error:
            raise InputError(f"{error}; remove it, or choose another destination") from error
        if not same:
            raise InputError(f"{path} holds other labels; choose another destination")


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


def _write_chunk(recipe: Recipe, chunk: _Chunk) -> tuple[int, int]:
    """Put all copies of a chunk under one corruption where they belong in the unfinished file."""
    images, corruption = chunk.images, recipe.corruptions[chunk.corruption]
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
        raise unwritable(chunk.file.parent.parent / f"{corruption.name}.npy", error) from None
    return chunk.corruption, len(images)


def _write(
    data: ImageArray,
    target: Path,
    todo: dict[int, PartFile],
    recipe: Recipe,
    executor: Executor,
    progress: ProgressReport,
    check: Callable[[], None],
    journal: Journal,
) -> Outcome:
    count, blocks = len(data.images), len(recipe.severities)
    outcome = Outcome(skipped=(len(recipe.corruptions) - len(todo)) * count * blocks)
    outcome.again = sum(part.final.exists() for part in todo.values()) * count * blocks
    total = count * recipe.copies
    left = dict.fromkeys(todo, count)
    outcomes = run_tasks(
        Calls(partial(_write_chunk, recipe)),
        _chunks(data.images, todo, blocks, check),
        executor=executor,
        folder=target,
        name=lambda chunk: recipe.corruptions[chunk.corruption].name,
    )
    with contextlib.closing(outcomes) as results:
        for index, images in results:
            left[index] -= images
            if left[index] == 0:
                check()
                _finish(todo[index], journal)
            outcome.written += images * blocks
            progress(outcome.written + outcome.skipped, total)
    if todo:
        name = recipe.preset or recipe.corruptions[0].table.preset(*data.images.shape[1:3])
        outcome.presets = Counter({name: count})
    return outcome


def _finish(part: PartFile, journal: Journal) -> None:
    digest = file_digest(part.path)
    if digest is None:
        raise StorageError(f"cannot write {part.final}: what was written cannot be read again")
    part.finish()
    journal.add(Entry(part.final.name, None, {part.final.name: digest}))


def _chunks(
    images: NDArray[np.uint8], todo: dict[int, PartFile], blocks: int, check: Callable[[], None]
) -> Iterator[_Chunk]:
    step = max(1, _CHUNK // images[0].size)
    for index, part in todo.items():
        header = _begin(part, (blocks * len(images), *images.shape[1:]))
        for start in range(0, len(images), step):
            check()
            some = np.array(images[start : start + step])
            yield _Chunk(index, start, some, part.path, header, len(images))


def _begin(part: PartFile, shape: tuple[int, ...]) -> int:
    """An .npy file of the final size with nothing but its header; returns the header's length."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    length = header.tell()
    part.write(header.getvalue())
    try:
        part.stream.truncate(length + int(np.prod(shape)))
    except OSError as error:
        raise unwritable(part.final, error) from error
    return length
