"""Files of labels beside corrupted copies: linked, copied, or left out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.files import file_digest, unwritable, write_bytes
from blemish.core.reading import read_bytes
from blemish.corruptions.base import Corruption
from blemish.data.formats import picture_format, stored_name
from blemish.export.layouts.base import Layout

LABEL_WAYS = ("link", "copy", "none")


def place_labels(
    layout: Layout,
    root: Path,
    folders: Sequence[Path],
    file_format: str,
    *,
    way: str,
    pictures: Sequence[str],
) -> list[str]:
    """Put the files of labels into the folder of every condition; what is there already stays. Returns notes.

    A link is a second name of the same file (a hard link), which takes no room.
    """
    names = [] if way == "none" else layout.label_files(root)
    renamed = any(stored_name(name, file_format) != name for name in pictures)
    stored = partial(stored_name, file_format=file_format)
    copied = rewritten = 0
    for name in names:
        source = root / name
        content = layout.renamed(name, read_bytes(source), stored) if renamed and name.endswith(".json") else None
        rewritten += content is not None
        for folder in folders:
            target = folder / name
            if content is not None:
                if not target.is_file() or read_bytes(target) != content:
                    write_bytes(target, content)
            elif way == "copy" or not _linked(source, target):
                copied += way == "link"
                _copy(source, target)
    notes = []
    if copied:
        notes.append("labels are copied, not linked: the file system knows no links of that kind")
    if rewritten:
        notes.append(f"{rewritten} files of labels name the copies, whose suffix is another than the pictures'")
    return notes


def _linked(source: Path, target: Path) -> bool:
    """Make a link, unless it is there; false where the system cannot."""
    try:
        if target.exists():
            if target.samefile(source):
                return True
            target.unlink()  # of an earlier file of that name
        target.parent.mkdir(parents=True, exist_ok=True)
        os.link(source, target)
    except FileNotFoundError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror})") from error
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    try:
        there = target.is_file() and target.stat().st_size == source.stat().st_size
    except OSError as error:
        raise unwritable(target, error) from error
    if not there or target.samefile(source) or file_digest(target) != file_digest(source):
        target.unlink(missing_ok=True)
        write_bytes(target, read_bytes(source))


def check_layout(layout: Layout, file_format: str, labels: str) -> None:
    """Refuse a format whose files the readers of a layout would not find, and unknown ways for labels."""
    if labels not in LABEL_WAYS:
        raise InputError(f"labels {labels!r}; expected {', '.join(LABEL_WAYS)}")
    if layout.formats is not None and picture_format(file_format).kind not in layout.formats:
        raise InputError(
            f"format {file_format} for a {layout.title}, whose readers open {layout.formats[0]} files by their names; "
            f"expected {layout.formats[0]}"
        )


def check_linkable(root: Path, target: Path, labels: str) -> None:
    """Refuse links from one disk to another before any work: copies for every condition may need much room."""
    there = next(path for path in (target, *target.absolute().parents) if path.exists())
    if labels == "link" and root.stat().st_dev != there.stat().st_dev:
        raise InputError(
            f"{target} is on another disk than {root}, where files of labels cannot be linked; expected --label-files "
            "copy, which takes room for every condition, or none"
        )


def moving_notes(corruptions: Sequence[Corruption], what: str = "labels beside the copies") -> list[str]:
    """What is to be said of labels beside copies whose pixels have moved."""
    moving = [unit.name for unit in corruptions if unit.moves is not None and unit.moves.maps is not None]
    unknown = [unit.name for unit in corruptions if unit.moves is None]
    if not moving and not unknown:
        return []
    told = [f"pixels are moved, by a map, by {', '.join(moving)}"] if moving else []
    told += [f"whether pixels are moved is not stated by {', '.join(unknown)}"] if unknown else []
    rest = f"{what} are those of the clean pictures; blemish.corrupt(…, boxes=…) moves labels"
    return [f"{'; '.join(told)}: {rest}"]
