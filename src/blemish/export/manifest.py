"""The manifest: a file in the destination that states how its images were made, and guards against mixing protocols."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import check_folder, held_folder
from blemish.core.printable import as_text
from blemish.core.settings import differences, listed
from blemish.core.typed import as_json
from blemish.corruptions.base import Corruption
from blemish.corruptions.labels import how_it_moves
from blemish.corruptions.plugins import own_code_digest
from blemish.data.manifest import MANIFEST, CopiesInfo, Manifest, SetInfo, read_manifest
from blemish.evaluation.executors.failures import FAILURES_FILE
from blemish.evaluation.header import made_with
from blemish.export.journal import JOURNAL, Journal
from blemish.export.recipe import Recipe

NEAREST = "nearest to the shorter side"
"""The preset where none was chosen."""


def set_info(recipe: Recipe, *, layout: str, labelled: bool = False, **source: Any) -> SetInfo:
    """Everything that decides the pixels of corrupted copies; ``source`` says what they are copies of.

    Copies beside labels of places (``labelled``) say whether their pixels have moved.
    """
    return SetInfo(
        layout=layout,
        seed=recipe.seed,
        preset=recipe.preset or NEAREST,
        **source,
        corruptions={unit.name: _copies_info(unit, labelled=labelled) for unit in recipe.corruptions},
        severities=tuple(int(level) if level.is_integer() else level for level in recipe.severities),
    )


def folder_mark(root: Path) -> str:
    """A folder's name and a digest of its path: another folder's pictures of the same name are not these."""
    digest = hashlib.blake2b(os.fsencode(root.resolve().as_posix()), digest_size=4).hexdigest()
    return f"{as_text(root.resolve().name)} ({digest})"


def _copies_info(corruption: Corruption, *, labelled: bool) -> CopiesInfo:
    textures = None if corruption.files is None else corruption.files.kind
    moves = how_it_moves(corruption.moves) if labelled else None
    return CopiesInfo(corruption.version, textures, own_code_digest(corruption), moves=moves)


def check_manifest(destination: Path, wanted: SetInfo, outputs: list[Path]) -> SetInfo:
    """What a destination says after this run: what is wanted, joined with what is there.

    Refused with what differs when the two cannot share a folder. ``outputs`` are the paths this run would make; some
    of them without a manifest were made by something else.
    """
    path = destination / MANIFEST
    if not path.exists():
        for output in outputs:
            if output.exists():
                raise InputError(f"{output} exists, but no {MANIFEST} says how it was made; choose another destination")
        return wanted
    try:
        present = read_manifest(path).protocol
    except InputError as error:
        raise InputError(f"{error}; choose another destination") from error
    if lines := _differences(present, wanted):
        raise InputError(
            f"{destination} holds images made with other settings ({listed(lines)}); "
            "repeat those settings, or choose another destination"
        )
    return _joined(present, wanted)


def _differences(present: SetInfo, wanted: SetInfo) -> list[str]:
    """What differs besides what may be added: corruptions, and severities where each has a file of its own."""
    both = present.corruptions.keys() & wanted.corruptions.keys()
    growing: dict[str, Any] = {"corruptions": {}}
    if wanted.layout != "array":
        growing["severities"] = ()
    lines = differences(replace(present, **growing), replace(wanted, **growing))
    for name in sorted(both):
        lines += differences(present.corruptions[name], wanted.corruptions[name], name)
    return lines


def _joined(present: SetInfo, wanted: SetInfo) -> SetInfo:
    severities = wanted.severities
    if wanted.layout != "array":
        severities = tuple(sorted({*present.severities, *severities}))
    return replace(wanted, corruptions={**present.corruptions, **wanted.corruptions}, severities=severities)


def write_manifest(destination: Path, info: SetInfo) -> None:
    """Write the manifest, with the versions of the libraries."""
    text = json.dumps(as_json(Manifest(info, made_with())), indent=2, ensure_ascii=False)
    write_bytes(destination / MANIFEST, f"{text}\n".encode(), destination=destination)


@contextlib.contextmanager
def opened_set(
    target: Path, wanted: SetInfo, outputs: list[Path], names: Iterable[str] = ()
) -> Iterator[tuple[SetInfo, Journal]]:
    """Hold the folder of a set for a run: what it says after the run (see `check_manifest`), and its sorted journal.

    ``names`` are the entries of the folder that belong to the set besides its corruptions.
    """
    check_folder(target)
    info = check_manifest(target, wanted, outputs)
    own = {MANIFEST, JOURNAL, FAILURES_FILE, *info.corruptions, *names}
    with held_folder(target, names=own):
        # Once more, because another run may have begun the folder in between.
        info = check_manifest(target, wanted, outputs)
        with Journal(target) as journal:
            yield info, journal
            journal.sort()
