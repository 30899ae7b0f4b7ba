"""WebDataset shards: tar archives in which the files of one sample share a name and differ in their suffix."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from blemish.core.errors import InputError, refused
from blemish.core.reading import is_folder, is_there, parse_json
from blemish.data.pictures import decode_picture, picture_id
from blemish.data.source import Source, check_unchanged, file_stamp
from blemish.data.tar import Member, list_members, read_member

IMAGE_FIELDS = ("jpg", "jpeg", "png", "webp", "ppm")

_LABEL_FIELDS = ("cls", "json")
_MAX_SHARDS = 100_000
_MAX_LABEL_BYTES = 2**20

# A sample's key is the path up to the first dot of the file name; what follows it names the field.
_FIELD = re.compile(r"((?:.*/|)[^./]+)\.([^/]+)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")


class _Sample(NamedTuple):
    shard: Path
    key: str
    image: Member
    label: int


def shard_source(path: str | os.PathLike[str]) -> Source:
    """The images of a ``.tar`` file, of all in a folder, or of a pattern such as ``train-{000..146}.tar``.

    A sample has an image (``jpg``, ``jpeg``, ``png``, ``webp`` or ``ppm``) and a label: a number in ``cls``, or
    ``label`` in ``json``. Its name is the image's in the archive, after the shard's where shards repeat each other's,
    and its id the hash of the name. The archives are indexed once; images are then read in place, in any order.
    """
    shards = shard_paths(path)
    stamps = {shard: file_stamp(shard) for shard in shards}
    samples = [sample for shard in shards for sample in _samples(shard)]
    names = _names(samples)
    return Source(
        name=Path(path).name or str(path),
        names=names,
        ids=np.array([picture_id(name) for name in names], dtype=np.int64),
        labels=np.array([sample.label for sample in samples], dtype=np.int64),
        read=lambda i: _read(samples[i], stamps),
        stamp=lambda i: f"{stamps[samples[i].shard]}{samples[i].image.start}",
    )


def _read(sample: _Sample, stamps: Mapping[Path, str]) -> Image.Image:
    check_unchanged(sample.shard, stamps[sample.shard])  # another image may lie in its place
    content = read_member(sample.shard, sample.image)
    return decode_picture(content, f"{sample.shard}: {sample.image.name}").convert("RGB")


def _names(samples: Sequence[_Sample]) -> tuple[str, ...]:
    plain = [sample.image.name.removeprefix("./") for sample in samples]
    if len({sample.key for sample in samples}) == len(samples):
        return tuple(plain)
    names = [f"{sample.shard.name}/{name}" for sample, name in zip(samples, plain, strict=True)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{twice}: two shards of the same name hold this sample; rename one of them")
    return tuple(names)


def _samples(shard: Path) -> Iterator[_Sample]:
    samples: dict[str, dict[str, Member]] = {}
    for member in list_members(shard):
        match = _FIELD.fullmatch(member.name.removeprefix("./"))
        if match is None:
            continue  # hidden files and files without a suffix belong to no sample
        fields = samples.setdefault(match[1], {})
        if fields.setdefault(match[2].lower(), member) is not member:
            raise InputError(f"{shard}: {member.name!r} occurs twice")
    for key, fields in samples.items():
        images = [field for field in IMAGE_FIELDS if field in fields]
        if len(images) > 1:
            raise InputError(f"{shard}: sample {key!r} has {len(images)} images ({', '.join(images)}); expected one")
        if images:
            yield _Sample(shard, key, fields[images[0]], _label(shard, key, fields))
        elif any(field in fields for field in _LABEL_FIELDS):
            held, known = ", ".join(fields), ", ".join(IMAGE_FIELDS)
            raise InputError(f"{shard}: sample {key!r} holds {held}, but no image; expected one of {known}")


def _label(shard: Path, key: str, fields: dict[str, Member]) -> int:
    field = next((name for name in _LABEL_FIELDS if name in fields), None)
    if field is None:
        raise InputError(f"{shard}: sample {key!r} has no label; expected {key}.cls, or {key}.json with 'label'")
    member = fields[field]
    if member.size > _MAX_LABEL_BYTES:
        raise InputError(f"{shard}: {member.name!r} is {member.size:,} bytes long; expected a label")
    content = read_member(shard, member)
    with refused(f"{shard}: {member.name!r} holds no label", ValueError, KeyError, TypeError):
        label = int(content.decode("ascii").strip()) if field == "cls" else parse_json(content)["label"]
    if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < 2**31:
        raise InputError(f"{shard}: {member.name!r} holds the label {label!r}; expected a whole number from 0")
    return label


def shard_paths(path: str | os.PathLike[str]) -> list[Path]:
    """The archives that a path or pattern means, in order; a missing one is an error."""
    text = os.fspath(path)
    if is_folder(text):
        shards = sorted(entry for entry in Path(text).iterdir() if entry.suffix == ".tar")
        if not shards:
            raise InputError(f"{text}: no .tar files in this folder")
        return shards
    paths = [Path(name) for name in ([text] if is_there(text) else expand_braces(text))]
    missing = [path for path in paths if not is_there(path)]
    if missing:
        raise InputError(
            f"{missing[0]}: no such file" + (f" ({len(missing)} of {len(paths)})" if len(paths) > 1 else "")
        )
    return paths


def expand_braces(pattern: str) -> list[str]:
    """A pattern with ranges or lists in braces, written out.

    >>> expand_braces("train-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar']
    >>> expand_braces("{a,b}.tar")
    ['a.tar', 'b.tar']
    """
    parts = _BRACES.split(pattern)
    choices = [_choices(pattern, part) if index % 2 else [part] for index, part in enumerate(parts)]
    if (count := math.prod(map(len, choices))) > _MAX_SHARDS:
        raise InputError(f"{pattern}: means {count:,} files; expected at most {_MAX_SHARDS:,}")
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _choices(pattern: str, inside: str) -> Sequence[str]:
    limits = re.fullmatch(r"(\d{1,12})\.\.(\d{1,12})", inside)
    if limits is None:
        if "," not in inside:
            raise InputError(f"{pattern}: {{{inside}}} is no range; expected {{000..146}} or {{a,b}}")
        return inside.split(",")
    low, high = int(limits[1]), int(limits[2])
    if not low <= high < low + _MAX_SHARDS:
        raise InputError(f"{pattern}: {{{inside}}}; expected an ascending range of at most {_MAX_SHARDS:,} files")
    width = len(limits[1]) if limits[1].startswith("0") or len(limits[1]) == len(limits[2]) else 0
    return [str(number).zfill(width) for number in range(low, high + 1)]
