"""Copies of all pictures of a folder: the run that trees and sequences share."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from blemish.core.errors import InputError, StorageError
from blemish.core.folders import check_folder, held_folder
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.failures import FAILURES_FILE
from blemish.export.journal import JOURNAL, Entry, Journal
from blemish.export.manifest import MANIFEST, check_manifest, write_manifest
from blemish.export.outcome import Outcome
from blemish.export.workers import run_tasks

__all__ = ["PictureResult", "PictureTask", "PictureWork", "Writing", "write_set"]

_log = logging.getLogger(__name__)

_SHOWN = 5

Advance = Callable[[Outcome, int], None]
"""Called after each picture with what is done, and how many pictures are left."""


@dataclass(frozen=True)
class PictureTask:
    """A picture, and what the journal knows of its copies."""

    name: str
    known: Entry | None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PictureResult:
    """What was done for a picture, and the line for the journal, unless everything was there."""

    outcome: Outcome
    entry: Entry | None = None


class PictureWork(Protocol):
    """Makes the copies of one picture in a worker."""

    def __call__(self, task: PictureTask) -> PictureResult:
        """Make what is not there yet."""
        ...

    def path(self, name: str, key: str) -> Path:
        """The file of a copy; ``key`` is its place in the journal."""
        ...

    def condition(self, key: str) -> str | None:
        """What a copy is an example of, for counting; None for a further file of the same one."""
        ...


@dataclass(frozen=True)
class Writing:
    """How a set is written: by whom, and what is done about pictures that are gone.

    ``whole`` says that the names are all pictures of the folder. Where copies of others are there, the run is refused,
    or with ``prune`` they are removed.
    """

    executor: Executor
    whole: bool = True
    prune: bool = False
    advance: Advance = lambda *_: None


def write_set(
    work: PictureWork, target: Path, names: Sequence[str], wanted: Mapping[str, Any], writing: Writing
) -> Outcome:
    """Make the copies of all pictures. ``wanted`` is the protocol for the manifest; its corruptions are folders."""
    outputs = [target / folder for folder in wanted["corruptions"]]
    check_folder(target)
    entries = check_manifest(target, dict(wanted), outputs)
    outcome, start = Outcome(), time.perf_counter()
    _log.info("copies of %d pictures go to %s, by %d at a time", len(names), target, writing.executor.workers)
    with contextlib.ExitStack() as stack:
        stack.enter_context(held_folder(target, names={MANIFEST, JOURNAL, FAILURES_FILE, *entries["corruptions"]}))
        # Once more, because another run may have begun the folder in between.
        entries = check_manifest(target, dict(wanted), outputs)
        journal = stack.enter_context(Journal(target))
        if writing.whole:
            outcome.removed = _without_source(work, target, journal, {*names}, prune=writing.prune)
        write_manifest(target, entries)
        results = run_tasks(work, _Tasks(names, journal), executor=writing.executor, folder=target)
        with contextlib.closing(results):
            for done, result in enumerate(results, start=1):
                outcome.add(result.outcome)
                if result.entry is not None:
                    journal.add(result.entry)
                writing.advance(outcome, len(names) - done)
        journal.sort()
        if writing.whole and entries != wanted:
            outcome.notes += _unequal(journal.counts(work.condition))
    outcome.failures.sort(key=lambda failure: failure.name)
    _log.info("%s: %d written, %d skipped, %d failed", target, outcome.written, outcome.skipped, len(outcome.failures))
    _log.debug("%s took %.2f s", target, time.perf_counter() - start)
    return outcome


@dataclass(frozen=True)
class _Tasks:
    """Tasks that are made when they are needed: each holds the digests of all copies of a picture."""

    names: Sequence[str]
    journal: Journal

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[PictureTask]:
        for name in self.names:
            yield PictureTask(name, self.journal.entry(name))


def _without_source(work: PictureWork, target: Path, journal: Journal, names: set[str], *, prune: bool) -> int:
    """Refuse copies of pictures that are not in the source any more, or remove them; returns how many were removed."""
    gone = [name for name in journal.names() if name not in names]
    if gone and not prune:
        shown = ", ".join(gone[:_SHOWN]) + (f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else "")
        raise InputError(
            f"{target} holds copies of {len(gone)} pictures that are not in the source any more ({shown}); "
            "put them back, remove the copies with --prune, or choose another destination"
        )
    count = 0
    for name in gone:
        entry = journal.entry(name)
        for key in entry.copies if entry is not None else ():
            count += _removed(work.path(name, key), target)
        journal.forget(name)
    journal.sort()
    return count


def _removed(path: Path, target: Path) -> bool:
    """Remove a file, and the folders that are empty without it, but for the destination itself."""
    if not path.parent.resolve().is_relative_to(target.resolve()):  # through a link that somebody has put there
        return False
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"cannot remove {path}: {error.strerror or error}") from error
    with contextlib.suppress(OSError):
        for folder in path.parents:
            if folder.samefile(target):
                break
            folder.rmdir()
    return True


def _unequal(counts: Mapping[str, int]) -> list[str]:
    """A note where some conditions have fewer pictures than others, which were made when there were fewer."""
    most = max(counts.values(), default=0)
    fewer = [f"{condition} has {count}" for condition, count in sorted(counts.items()) if count < most]
    if not fewer:
        return []
    shown = ", ".join(fewer[:_SHOWN]) + (f" and {len(fewer) - _SHOWN} more" if len(fewer) > _SHOWN else "")
    return [f"not all conditions have the same {most} pictures ({shown}); name all of them to make them equal"]
