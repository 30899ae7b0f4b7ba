"""WebDataset shards: tar archives in which the files of one sample share a name and differ in their suffix."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from PIL import Image

from blemish.core.errors import InputError, refused
from blemish.core.reading import parse_json
from blemish.data.image_files import ImageFile, LocalFile, each_file, local_files
from blemish.data.pictures import decode_picture, picture_id
from blemish.data.source import Source
from blemish.data.tar import Member, list_members, read_member

IMAGE_FIELDS = ("jpg", "jpeg", "png", "webp", "ppm")

_LABEL_FIELDS = ("cls", "json")
_MAX_LABEL_BYTES = 2**20

# A sample's key is the path up to the first dot of the file name; what follows it names the field.
_FIELD = re.compile(r"((?:.*/|)[^./]+)\.([^/]+)", re.DOTALL)


class _Sample(NamedTuple):
    shard: ImageFile
    key: str
    image: Member
    label: int


def shard_source(path: str | os.PathLike[str]) -> Source:
    """The images of a ``.tar`` file, of all in a folder, or of a pattern such as ``train-{000..146}.tar``."""
    return shards_source(Path(path).name or str(path), [LocalFile(shard) for shard in local_files(path, ".tar")])


def shards_source(name: str, shards: Sequence[ImageFile]) -> Source:
    """The images of tar archives, wherever they lie.

    A sample has an image (``jpg``, ``jpeg``, ``png``, ``webp`` or ``ppm``) and a label: a number in ``cls``, or
    ``label`` in ``json``. Its name is the image's in the archive, after the shard's where shards repeat each other's,
    and its id the hash of the name. The archives are indexed once; images are then read in place, in any order.
    """
    samples = list(chain.from_iterable(each_file(_samples, shards)))
    names = _names(samples)
    return Source(
        name=name,
        names=names,
        ids=np.array([picture_id(name) for name in names], dtype=np.int64),
        labels=np.array([sample.label for sample in samples], dtype=np.int64),
        read=lambda i: _read(samples[i]),
        stamp=lambda i: f"{samples[i].shard.stamp}{samples[i].image.start}",
    )


def _read(sample: _Sample) -> Image.Image:
    with sample.shard.held() as path:
        content = read_member(path, sample.image)
    return decode_picture(content, f"{sample.shard.name}: {sample.image.name}").convert("RGB")


def _names(samples: Sequence[_Sample]) -> tuple[str, ...]:
    plain = [sample.image.name.removeprefix("./") for sample in samples]
    if len({sample.key for sample in samples}) == len(samples):
        return tuple(plain)
    names = [f"{PurePath(sample.shard.name).name}/{name}" for sample, name in zip(samples, plain, strict=True)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{twice}: two shards of the same name hold this sample; rename one of them")
    return tuple(names)


def _samples(shard: ImageFile) -> list[_Sample]:
    with shard.held() as path:
        return [_Sample(shard, key, image, label) for key, image, label in _labelled(path)]


def sample_field(name: str) -> tuple[str, str]:
    """The sample that a member of an archive belongs to, and what it is of it; nothing where it belongs to none.

    >>> sample_field("./val/a.b.seg.png"), sample_field("README")
    (('val/a', 'b.seg.png'), ('', ''))
    """
    match = _FIELD.fullmatch(name.removeprefix("./"))
    return (match[1], match[2].lower()) if match else ("", "")


def _labelled(shard: Path) -> Iterator[tuple[str, Member, int]]:
    samples: dict[str, dict[str, Member]] = {}
    for member in list_members(shard):
        key, field = sample_field(member.name)
        if not field:
            continue  # hidden files and files without a suffix belong to no sample
        if samples.setdefault(key, {}).setdefault(field, member) is not member:
            raise InputError(f"{shard}: {member.name!r} occurs twice")
    for key, fields in samples.items():
        images = [field for field in IMAGE_FIELDS if field in fields]
        if len(images) > 1:
            raise InputError(f"{shard}: sample {key!r} has {len(images)} images ({', '.join(images)}); expected one")
        if images:
            yield key, fields[images[0]], _label(shard, key, fields)
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
