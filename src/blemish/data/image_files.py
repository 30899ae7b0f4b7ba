"""Files that images lie in: on this machine, or elsewhere and fetched when they are needed."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from blemish.core.ahead import ahead
from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there
from blemish.data.source import check_unchanged, file_stamp

Result = TypeVar("Result")

PARQUET_SUFFIX = ".parquet"

_TOGETHER = 8
_MOST_FILES = 100_000
_BRACES = re.compile(r"\{([^{}]*)\}")

# The names that Hugging Face gives to the files of a split.
_SHARD = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?:-[0-9a-f]+)?\.parquet")


class ImageFile(Protocol):
    """A file that images are read from."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def stamp(self) -> str:
        """What tells it from other files, and from later versions of it."""
        ...

    def held(self) -> contextlib.AbstractContextManager[Path]:
        """The file on this machine, as it was when its stamp was taken, and there for as long as it is held."""
        ...


class LocalFile:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.stamp = path, str(path), file_stamp(path)

    @contextlib.contextmanager
    def held(self) -> Iterator[Path]:
        """The file; one that was changed since it was opened is refused: another image may lie in its place."""
        check_unchanged(self.path, self.stamp)
        yield self.path


def each_file(work: Callable[[ImageFile], Result], files: Sequence[ImageFile]) -> list[Result]:
    """What work gives for each file, in order; several files are worked on, and fetched, at a time."""
    with contextlib.closing(ahead(lambda i: work(files[i]), len(files), min(_TOGETHER, len(files)))) as results:
        return list(results)


def local_files(path: str | os.PathLike[str], suffix: str) -> list[Path]:
    """The files with a suffix that a path, a folder or a pattern means, in order; a missing one is an error.

    A pattern holds ranges or lists in braces, as ``train-{000..146}.tar``.
    """
    text = os.fspath(path)
    if is_folder(text):
        entries = sorted(entry for entry in Path(text).iterdir() if is_visible(entry.name, suffix))
        if not entries:
            raise InputError(f"{text}: no {suffix} files in this folder")
        return entries
    paths = [Path(name) for name in ([text] if is_there(text) else expand_braces(text))]
    missing = [path for path in paths if not is_there(path)]
    if missing:
        raise InputError(
            f"{missing[0]}: no such file" + (f" ({len(missing)} of {len(paths)})" if len(paths) > 1 else "")
        )
    return paths


def is_visible(name: str, suffix: str | tuple[str, ...]) -> bool:
    """Whether a file is of a kind, and not hidden."""
    return name.lower().endswith(suffix) and not name.startswith(".")


def expand_braces(pattern: str) -> list[str]:
    """A pattern with ranges or lists in braces, written out.

    >>> expand_braces("train-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar']
    >>> expand_braces("{a,b}.tar")
    ['a.tar', 'b.tar']
    """
    parts = _BRACES.split(pattern)
    choices = [_choices(pattern, part) if index % 2 else [part] for index, part in enumerate(parts)]
    if (count := math.prod(map(len, choices))) > _MOST_FILES:
        raise InputError(f"{pattern}: means {count:,} files; expected at most {_MOST_FILES:,}")
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _choices(pattern: str, inside: str) -> Sequence[str]:
    limits = re.fullmatch(r"(\d{1,12})\.\.(\d{1,12})", inside)
    if limits is None:
        if "," not in inside:
            raise InputError(f"{pattern}: {{{inside}}} is no range; expected {{000..146}} or {{a,b}}")
        return inside.split(",")
    low, high = int(limits[1]), int(limits[2])
    if not low <= high < low + _MOST_FILES:
        raise InputError(f"{pattern}: {{{inside}}}; expected an ascending range of at most {_MOST_FILES:,} files")
    width = len(limits[1]) if limits[1].startswith("0") or len(limits[1]) == len(limits[2]) else 0
    return [str(number).zfill(width) for number in range(low, high + 1)]


def check_shards(name: str, files: Sequence[str]) -> None:
    """Refuse a folder with the files of several splits, or of a split of which some files are missing."""
    shards = [match for match in map(_SHARD.fullmatch, files) if match]
    splits = Counter(shard["split"] for shard in shards)
    if len(splits) > 1:
        raise InputError(
            f"{name}: files of several splits ({', '.join(splits)}); expected those of one, such as "
            f"{shards[0]['split']}-{{00000..{int(shards[0]['count']) - 1:05}}}-of-{shards[0]['count']}.parquet"
        )
    for shard in shards[:1]:
        if len(files) == len(shards) != int(shard["count"]):
            raise InputError(
                f"{name}: {len(shards)} of {int(shard['count'])} files of {shard['split']}; some are missing"
            )


def refuse_given(data: str, **settings: object) -> None:
    """Refuse settings that mean nothing to some data, rather than leave them unused."""
    for name, value in settings.items():
        if value is not None:
            raise InputError(f"{name} given for {data}; expected none")
