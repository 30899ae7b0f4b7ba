"""A stream as WebDataset shards, with the names and fields of the release."""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image

from blemish.core.errors import InputError
from blemish.core.files import part_file
from blemish.core.folders import held_folder
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.reading import open_regular
from blemish.core.settings import keep_settings
from blemish.evaluation.executors.base import Executor, Tell
from blemish.evaluation.executors.in_process import InProcess
from blemish.export.outcome import Outcome
from blemish.export.workers import run_tasks
from blemish.studies.streams.info import ShardsInfo
from blemish.studies.streams.levels import release_name
from blemish.studies.streams.stream import JPEG_QUALITY, Stream
from blemish.version import VERSION

SHARD_IMAGES = 25_000
MANIFEST = "stream.json"

_ARCHIVE_END = bytes(2 * tarfile.BLOCKSIZE)


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
    progress: ProgressReport = tell_nobody,
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
        said = vars(stream.describe())
        _check_manifest(destination, ShardsInfo(**said, images=length, shard_images=shard_images, blemish=VERSION))
        begins = range(part * shard_images, length, parts * shard_images)
        shards = [_Shard(shard_name(i // shard_images), i, min(length, i + shard_images)) for i in begins]
        todo = [shard for shard in shards if not _is_whole(destination / shard.name)]
        share = sum(map(len, shards))
        outcome = Outcome(skipped=share - sum(map(len, todo)))
        # Parts that go on at the same time do not touch each other's tracebacks.
        log = destination if parts == 1 else destination / f"failures-{part}-of-{parts}"
        job = _ShardJob(stream, destination, (destination / MANIFEST).read_bytes())
        results = run_tasks(
            job, todo, executor=executor or InProcess(), folder=log, threads=None if executor is None else 1
        )
        with contextlib.closing(results):
            for written in results:
                outcome.written += written
                progress(outcome.written + outcome.skipped, share)
        if not todo:
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


@dataclass(frozen=True)
class _Shard:
    name: str
    begin: int
    end: int

    def __str__(self) -> str:
        return self.name

    def __len__(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True)
class _ShardJob:
    """Writes shards. ``manifest`` is what stands beside them, by which a worker knows that the folder is the same."""

    stream: Stream
    destination: Path
    manifest: bytes

    def open(self, device: torch.device | None) -> Callable[[_Shard, Tell], int]:  # noqa: ARG002  # the stream has one
        try:
            same = (self.destination / MANIFEST).read_bytes() == self.manifest
        except OSError:
            same = False
        if not same:
            raise InputError(f"{self.destination}: a worker does not see this folder; expected one that machines share")
        return lambda shard, _: self._write(shard)

    def _write(self, shard: _Shard) -> int:
        stream, final = self.stream, self.destination / shard.name
        with part_file(final, destination=final.parent) as part:
            with tarfile.open(fileobj=part.stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for first in range(shard.begin, shard.end, stream.batch):
                    _add_batch(archive, stream, first, min(stream.batch, shard.end - first), shard.begin)
            part.finish()
        return len(shard)


def _check_manifest(destination: Path, settings: ShardsInfo) -> None:
    """Write down what the shards hold; refuse to add to those of another stream."""
    path = destination / MANIFEST
    if not path.exists() and any(destination.glob("serial_*.tar")):
        raise InputError(f"{destination}: holds shards of unknown origin (no {MANIFEST}); choose another folder")
    keep_settings(path, settings, holds="another stream")


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
