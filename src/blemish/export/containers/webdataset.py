"""WebDataset shards: the picture of every sample is replaced, all other files of the archive stay, in their order."""

from __future__ import annotations

import io
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

from blemish.core.errors import InputError
from blemish.core.reading import is_folder, open_regular
from blemish.data.image_files import local_files
from blemish.data.pictures import PICTURE_SUFFIXES, picture_id
from blemish.data.tar import Member, list_members, read_member
from blemish.data.webdataset import IMAGE_FIELDS, sample_field
from blemish.export.containers.base import Change, Container, Shard
from blemish.export.manifest import folder_mark


@dataclass(frozen=True)
class TarShards(Container):
    """A tar archive, all in a folder, or those of a pattern.

    A picture's id is the hash of its name in the archive, after the shard's (``prefixed``) where shards repeat each
    other's, as when the shards are read to be corrupted while a model is measured.
    """

    path: str
    prefixed: bool = False
    others: tuple[str, ...] = ()

    name: ClassVar[str] = "webdataset"
    noun: ClassVar[str] = "pictures"

    @classmethod
    def of(cls, path: str) -> TarShards:
        """The shards at a path, after a look at all of their names."""
        keys: Counter[str] = Counter()
        others: set[str] = set()
        for shard in local_files(path, ".tar"):
            members = list_members(shard)
            keys.update({key for key, _ in _pictures(shard, members)})
            fields = {sample_field(member.name)[1] for member in members}
            others |= {field for field in fields - {*IMAGE_FIELDS} if f".{field.lower()}".endswith(PICTURE_SUFFIXES)}
        return cls(path, prefixed=any(count > 1 for count in keys.values()), others=tuple(sorted(others)))

    def untouched(self) -> Sequence[str]:
        """Fields such as ``left.jpg``: what stands before the first dot is the sample's name."""
        return self.others

    def shards(self) -> Sequence[Shard]:
        """The archives, in their order."""
        shards: list[Shard] = []
        first = 0
        for path in local_files(self.path, ".tar"):
            shards.append(Shard(path.name, path, first, len(_pictures(path))))
            first += shards[-1].count
        if first == 0:
            raise InputError(f"{self.path}: no pictures in it; looked for {', '.join(IMAGE_FIELDS)}")
        return shards

    def mark(self) -> str:
        """The folder that they are in."""
        return folder_mark(Path(self.path) if is_folder(self.path) else Path(self.path).parent)

    def rewrite(self, shard: Shard, sink: IO[bytes], change: Change) -> None:
        """Member by member; headers keep everything but the size, and the suffix of another format."""
        pictures = {member.start: member for _, member in _pictures(shard.path)}
        with (
            tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as out,
            open_regular(shard.path) as stream,
            tarfile.open(fileobj=stream, mode="r:") as entries,  # which has been found to be readable
        ):
            for entry in entries:
                if not entry.isreg():
                    out.addfile(entry)
                    continue
                content = read_member(shard.path, Member(entry.name, entry.offset_data, entry.size))
                if entry.offset_data in pictures:
                    name = entry.name.removeprefix("./")
                    number = picture_id(f"{shard.name}/{name}" if self.prefixed else name)
                    content = change(content, f"{shard.path}: {entry.name}", number)
                    entry.name = change.stored(entry.name)
                    entry.pax_headers = {key: value for key, value in entry.pax_headers.items() if key != "path"}
                entry.size = len(content)
                entry.pax_headers = {key: value for key, value in entry.pax_headers.items() if key != "size"}
                out.addfile(entry, io.BytesIO(content))


def _pictures(shard: Path, members: Sequence[Member] | None = None) -> list[tuple[str, Member]]:
    """The key of every sample with a picture, and that; in the order of the archive."""
    pictures: dict[str, Member] = {}
    for member in list_members(shard) if members is None else members:
        key, field = sample_field(member.name)
        if field not in IMAGE_FIELDS:
            continue
        if key in pictures:
            raise InputError(f"{shard}: sample {key!r} has several images; expected one")
        pictures[key] = member
    return list(pictures.items())
