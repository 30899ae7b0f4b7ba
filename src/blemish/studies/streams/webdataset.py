"""A stream as WebDataset shards, with the names and fields of the release."""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from blemish.core.errors import InputError
from blemish.core.files import part_file
from blemish.core.folders import held_folder
from blemish.core.reading import open_regular
from blemish.core.settings import keep_settings
from blemish.evaluation.executors.base import Executor, Tell
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.export.outcome import Outcome, Progress
from blemish.export.workers import stop_at_bad_input
from blemish.studies.streams.levels import release_name
from blemish.studies.streams.stream import JPEG_QUALITY, Stream
from blemish.version import VERSION

__all__ = ["MANIFEST", "SHARD_IMAGES", "materialise", "release_folder", "sample_info", "shard_name"]

SHARD_IMAGES = 25_000
MANIFEST = "stream.json"

_ARCHIVE_END = bytes(2 * tarfile.BLOCKSIZE)


def release_folder(target: float, speed: int, seed: int) -> str:
    """The name the release gives to the folder of a run.

    >>> release_folder(0.2, 1000, 43)
    'baseline_20_transition+speed_1000_seed_43'
    """
    return f"baseline_{100 * target:g}_transition+speed_{speed}_seed_{seed}"


def shard_name(number: int) -> str:
    """The file name of a shard.

    >>> shard_name(7)
    'serial_00007.tar'
    """
    return f"serial_{number:05d}.tar"


def materialise(
    stream: Stream,
    destination: Path,
    *,
    shard_images: int = SHARD_IMAGES,
    part: int = 0,
    parts: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Outcome:
    """Write a bounded stream as tar files of JPEG pictures, ``shard_images`` in each.

    Finished shards are kept, so that the same call goes on where it stopped; a shard is complete or not there. The
    workers of an ``executor`` write a shard each; several calls share the work as ``part`` 0 … ``parts`` − 1. The
    fields are the release's: ``info``, ``input.jpg`` and ``output.cls``.
    """
    if stream.length == float("inf"):
        raise InputError("an infinite stream cannot be written; give it a length")
    if stream.jpeg:
        raise InputError("a stream with jpeg would be compressed twice; shards hold JPEG pictures anyway")
    if stream.start or stream.shards > 1:
        raise InputError("a stream that starts in the middle or is sharded; expected a whole one: use part and parts")
    if not 0 <= part < parts:
        raise InputError(f"part {part} of {parts}; expected 0 … {parts - 1}")
    if shard_images < 1:
        raise InputError(f"shards of {shard_images} images; expected at least 1")
    with held_folder(destination, f"{part}-of-{parts}"):
        length = int(stream.length)
        _check_manifest(
            destination, {**stream.describe(), "images": length, "shard_images": shard_images, "blemish": VERSION}
        )
        outcome = Outcome()
        todo = []
        for number in range(part, -(-length // shard_images), parts):
            begin, end = number * shard_images, min(length, (number + 1) * shard_images)
            if _is_whole(destination / shard_name(number)):
                outcome.skipped += end - begin
            else:
                todo.append(_Shard(shard_name(number), begin, end))
        log = _failures_folder(destination, part, parts)
        share = _share(length, shard_images, part, parts)
        job = _ShardJob(stream, destination, (destination / MANIFEST).read_bytes())
        # Sums are split by thread: with more of them a value could fall on the other side of a grey level.
        outcomes = (executor or InProcess()).run(job, todo, threads=None if executor is None else 1)
        with contextlib.closing(outcomes):
            for shard, _ in completed(stop_at_bad_input(outcomes, log), log):
                outcome.written += shard.end - shard.begin
                if progress is not None:
                    progress(outcome.written + outcome.skipped, share)
        if progress is not None and not todo:
            progress(outcome.skipped, share)
        with contextlib.suppress(OSError):
            if parts > 1:
                log.rmdir()  # of an earlier attempt; empty by now
    return outcome


def _is_whole(path: Path) -> bool:
    """Whether a shard is there, with the end of an archive at its end."""
    try:
        with open_regular(path) as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(max(0, size - len(_ARCHIVE_END)))
            return size % tarfile.RECORDSIZE == 0 and stream.read() == _ARCHIVE_END
    except (OSError, InputError):
        return False


def _failures_folder(destination: Path, part: int, parts: int) -> Path:
    """Where tracebacks go: parts that go on at the same time do not touch each other's."""
    return destination if parts == 1 else destination / f"failures-{part}-of-{parts}"


@dataclass(frozen=True)
class _Shard:
    name: str
    begin: int
    end: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _ShardJob:
    """Writes shards. ``manifest`` is what stands beside them, by which a worker knows that the folder is the same."""

    stream: Stream
    destination: Path
    manifest: bytes

    def open(self, device: torch.device | None) -> Callable[[_Shard, Tell], None]:  # noqa: ARG002  # the stream has one
        try:
            same = (self.destination / MANIFEST).read_bytes() == self.manifest
        except OSError:
            same = False
        if not same:
            raise InputError(f"{self.destination}: a worker does not see this folder; expected one that machines share")
        return self._write

    def _write(self, shard: _Shard, tell: Tell) -> None:  # noqa: ARG002
        _write_shard(self.stream, self.destination / shard.name, shard.begin, shard.end)


def _share(length: int, shard_images: int, part: int, parts: int) -> int:
    shards = range(part, -(-length // shard_images), parts)
    return sum(min(length, (number + 1) * shard_images) - number * shard_images for number in shards)


def _check_manifest(destination: Path, settings: dict[str, Any]) -> None:
    """Write down what the shards hold; refuse to add to those of another stream."""
    path = destination / MANIFEST
    if not path.exists() and any(destination.glob("serial_*.tar")):
        raise InputError(f"{destination}: holds shards of unknown origin (no {MANIFEST}); choose another folder")
    keep_settings(path, settings, holds="another stream")


def _write_shard(stream: Stream, final: Path, begin: int, end: int) -> None:
    with part_file(final, destination=final.parent) as part:
        with tarfile.open(fileobj=part.stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for first in range(begin, end, stream.batch):
                _add_batch(archive, stream, first, min(stream.batch, end - first), begin)
        part.finish()


def _add_batch(archive: tarfile.TarFile, stream: Stream, first: int, count: int, begin: int) -> None:
    batch = stream.at(first, count)
    pixels = batch.images.cpu().permute(0, 2, 3, 1).numpy()
    for i in range(count):
        row, number = int(batch.rows[i]), int(batch.steps[i])
        key = f"sample_{first + i - begin}"
        _add(archive, f"{key}.info", sample_info(stream, row, number).encode())
        _add(archive, f"{key}.input.jpg", _jpeg(Image.fromarray(pixels[i].squeeze())))
        _add(archive, f"{key}.output.cls", str(int(batch.labels[i])).encode())


def sample_info(stream: Stream, row: int, number: int) -> str:
    """The release's line about a picture: its folder and file, and both corruptions with their severities."""
    folder, _, file = str(stream.images.names[row]).rpartition("/")
    step = stream.walk.steps[number]
    values = (
        ("dir", folder.rpartition("/")[2]),
        ("name", file),
        ("n1", release_name(step.first)),
        ("s1", float(step.first_severity)),
        ("n2", release_name(step.second)),
        ("s2", float(step.second_severity)),
    )
    return "".join(f"++{key}++{value}" for key, value in values)


def _jpeg(picture: Image.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # without owner or time, so that equal streams give equal files
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
