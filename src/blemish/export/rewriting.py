"""Corrupted copies of containers: of each file one for every corruption and severity."""

from __future__ import annotations

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blemish.core.errors import InputError, StorageError, about, storage_errors
from blemish.core.files import file_digest, part_file
from blemish.core.printable import first_few
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.data.formats import check_size, stored_name
from blemish.data.images import as_picture, picture_batch
from blemish.data.manifest import SetInfo
from blemish.data.pictures import ORIENTATION, decode_picture, encode_picture, resize_and_crop
from blemish.data.source import check_unchanged, file_stamp
from blemish.evaluation.executors.base import Calls, Executor
from blemish.export.containers.base import Container, Shard
from blemish.export.journal import Entry, Journal, SourceFile
from blemish.export.labels import moving_notes
from blemish.export.manifest import opened_set, set_info, write_manifest
from blemish.export.outcome import Failure, Outcome
from blemish.export.recipe import Recipe
from blemish.export.resume import intact_copies
from blemish.export.sets import check_apart, check_distinct, check_side, without_source
from blemish.export.workers import executor_for, run_tasks

_SHOWN = 5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Task:
    """A file to be written: of which shard, and under which corruption and severity."""

    shard: Shard
    source: SourceFile
    corruption: int
    severity: float

    def __str__(self) -> str:
        return self.shard.name


@dataclass
class _Made:
    """What came of a task."""

    shard: Shard
    entry: Entry | None = None
    presets: Counter[str] = field(default_factory=Counter)
    again: bool = False
    failure: Failure | None = None


@dataclass(frozen=True)
class _Work:
    """Writes one file. The copy of a picture depends on nothing but the picture, its id and the recipe."""

    container: Container
    target: Path
    recipe: Recipe

    def keys(self, shard: Shard) -> dict[str, Path]:
        """The names of all copies of a shard, which are their keys in the journal."""
        recipe = self.recipe
        names = [
            self.container.copy_name(shard, unit.name, severity)
            for unit in recipe.corruptions
            for severity in recipe.severities
        ]
        return {name: self.target / name for name in names}

    def info(self) -> SetInfo:
        origin = {"format": self.recipe.file_format, "source": self.container.mark(), **self.recipe.sizes}
        return set_info(self.recipe, layout=self.container.name, **origin)

    def __call__(self, task: _Task) -> _Made:
        shard, made = task.shard, _Made(task.shard)
        key = self.container.copy_name(shard, self.recipe.corruptions[task.corruption].name, task.severity)
        target = self.target / key
        made.again = target.exists()
        is_file = self.container.source() is None
        stamp = file_stamp(shard.path) if is_file else ""
        try:
            with part_file(target, destination=self.target) as part:
                with storage_errors(f"cannot write {target}"):
                    change = _Change(self.recipe, task, made.presets)
                    self.container.rewrite(shard, part.stream, change)
                    part.stream.flush()
                if is_file:
                    check_unchanged(shard.path, stamp)
                digest = file_digest(part.path)
                if digest is None:
                    raise StorageError(f"cannot write {target}: what was written cannot be read again")
                part.finish()
        except StorageError:
            raise
        except InputError as error:
            made.failure = Failure(shard.name, str(error))
            return made
        made.entry = Entry(shard.name, task.source, {key: digest})
        return made


@dataclass(frozen=True)
class _Change:
    """From a picture to its copy: in colour, as containers are read when a model is measured."""

    recipe: Recipe
    task: _Task
    presets: Counter[str]

    def __call__(self, content: bytes, where: str, number: int) -> bytes:
        recipe = self.recipe
        picture = decode_picture(content, where)
        orientation = picture.getexif().get(ORIENTATION)
        with about(where):
            picture = resize_and_crop(picture.convert("RGB"), resize=recipe.resize, crop=recipe.crop)
            check_side(picture.height, picture.width)
            check_size(recipe.file_format, picture.height, picture.width)
        levels, unit = picture_batch(picture), recipe.corruptions[self.task.corruption]
        self.presets[recipe.preset or unit.table.preset(levels.shape[-2], levels.shape[-1])] += 1
        out = unit(levels, severity=self.task.severity, seed=recipe.seed, ids=[number], preset=recipe.preset)
        return encode_picture(as_picture(out[0]), recipe.file_format, orientation=orientation)

    def stored(self, name: str) -> str:
        """With the suffix of the format."""
        return stored_name(name, self.recipe.file_format)


def corrupt_container(
    container: Container,
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    jobs: int = 1,
    progress: ProgressReport = tell_nobody,
    executor: Executor | None = None,
    quick: bool = False,
    prune: bool = False,
) -> Outcome:
    """Write every file of a container once for each corruption and severity, with corrupted pictures.

    A file is made as a whole, or not at all: where a picture cannot be used the file is reported, and others are made.
    Finished files are skipped, if they have the digest (``quick``: the size) that the journal knows. ``prune`` removes
    copies of files that are gone from the source. The outcome counts rows, or the pictures of archives.
    """
    target = Path(destination)
    work = _Work(container, target, recipe)
    shards = container.shards()
    check_distinct(
        [str(shard.path / shard.name) for shard in shards], lambda name: Path(name).name, "both be stored as"
    )
    outputs = [path for shard in shards for path in work.keys(shard).values()]
    for shard in shards:
        if shard.path.is_dir():
            check_apart(shard.path, target)
        elif any(path.resolve() == shard.path.resolve() for path in outputs):
            raise InputError(f"{shard.path} is a source and would be overwritten; choose another destination")
    outcome, counted, wanted = Outcome(), set[str](), work.info()
    total = sum(shard.count for shard in shards) * recipe.copies
    with opened_set(target, wanted, outputs, {path.relative_to(target).parts[0] for path in outputs}) as (
        info,
        journal,
    ):
        outcome.removed = without_source(
            target, lambda _, key: target / key, journal, {shard.name for shard in shards}, prune=prune
        )
        write_manifest(target, info)
        tasks = _Tasks(work, shards, journal, quick, outcome)
        lost = 0
        results = run_tasks(Calls(work), tasks, executor=executor_for(jobs, executor), folder=target)
        with contextlib.closing(results):
            for made in results:
                if made.entry is None:
                    lost += made.shard.count
                else:
                    journal.add(made.entry)
                    outcome.written += made.shard.count
                    outcome.again += made.shard.count if made.again else 0
                if made.failure is not None:
                    outcome.failures.append(made.failure)
                if made.shard.name not in counted:  # a picture counts once, however many copies it has
                    counted.add(made.shard.name)
                    outcome.presets.update(made.presets)
                progress(outcome.written + outcome.skipped + lost, total)
    if others := container.untouched():
        outcome.notes.append(f"pictures in {first_few(others, _SHOWN)} stay as they are")
    outcome.notes += moving_notes(recipe.corruptions, "all other columns and files")
    outcome.failures = sorted({*outcome.failures}, key=lambda failure: failure.name)
    _log.info("%s: %d written, %d skipped", target, outcome.written, outcome.skipped)
    return outcome


@dataclass
class _Tasks:
    """Tasks that are made when they are needed: whether a file is as the journal knows it takes reading it."""

    work: _Work
    shards: Sequence[Shard]
    journal: Journal
    quick: bool
    outcome: Outcome

    def __iter__(self) -> Iterator[_Task]:
        recipe, copy_name = self.work.recipe, self.work.container.copy_name
        for shard in self.shards:
            known = self.journal.entry(shard.name)
            source = self._source(shard, known)
            intact = intact_copies(shard.path, source, self.work.keys(shard), known, quick=self.quick)
            self.outcome.skipped += len(intact) * shard.count
            for number, unit in enumerate(recipe.corruptions):
                for severity in recipe.severities:
                    if copy_name(shard, unit.name, severity) not in intact:
                        yield _Task(shard, source, number, severity)

    def _source(self, shard: Shard, known: Entry | None) -> SourceFile:
        own = self.work.container.source()
        if own is not None:
            return own
        status = shard.path.stat()
        before = None if known is None else known.source
        if self.quick and before is not None and (status.st_size, status.st_mtime_ns) == (before.size, before.time):
            return before
        digest = file_digest(shard.path)
        if digest is None:
            raise InputError(f"{shard.path}: cannot be read")
        return SourceFile(digest.size, status.st_mtime_ns, digest.hash)
