"""WebDataset shards of small pictures."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable

from image_tables import encoded


def tar_bytes(levels: Iterable[int]) -> bytes:
    """A shard with a picture for each level, whose label is the level's remainder by ten."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for level in levels:
            for name, content in ((f"{level:04}.png", encoded(level)), (f"{level:04}.cls", str(level % 10).encode())):
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
