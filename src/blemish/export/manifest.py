"""The manifest: a file in the destination that states how its images were made, and guards against mixing protocols."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import check_folder, held_folder
from blemish.core.printable import as_text
from blemish.core.reading import read_json
from blemish.core.settings import differences, listed
from blemish.corruptions.base import Corruption
from blemish.corruptions.plugins import own_code_digest
from blemish.evaluation.executors.failures import FAILURES_FILE
from blemish.evaluation.header import made_with
from blemish.export.journal import JOURNAL, Journal
from blemish.export.recipe import Recipe

MANIFEST = "blemish.json"


def protocol(recipe: Recipe, *, layout: str, **source: Any) -> dict[str, Any]:
    """Everything that decides the pixels, in the words of the manifest."""
    return {
        "layout": layout,
        "seed": recipe.seed,
        "preset": recipe.preset or "nearest to the shorter side",
        **source,
        "corruptions": {corruption.name: _identity(corruption) for corruption in recipe.corruptions},
        "severities": [int(level) if level.is_integer() else level for level in recipe.severities],
    }


def folder_mark(root: Path) -> str:
    """A folder's name and a digest of its path: another folder's pictures of the same name are not these."""
    digest = hashlib.blake2b(os.fsencode(root.resolve().as_posix()), digest_size=4).hexdigest()
    return f"{as_text(root.resolve().name)} ({digest})"


def _identity(corruption: Corruption) -> dict[str, Any]:
    identity: dict[str, Any] = {"version": corruption.version}
    if corruption.files is not None:
        identity["textures"] = corruption.files.kind
    if (code := own_code_digest(corruption)) is not None:
        identity["code"] = code
    return identity


def check_manifest(destination: Path, wanted: dict[str, Any], outputs: list[Path]) -> dict[str, Any]:
    """The protocol of a destination after this run: the wanted one, joined with the one that is there.

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
        present = dict(read_json(path)["protocol"])
        _check_protocol(present)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a readable manifest ({error}); choose another destination") from error
    if lines := _differences(present, wanted):
        raise InputError(
            f"{destination} holds images made with other settings ({listed(lines)}); "
            "repeat those settings, or choose another destination"
        )
    return _joined(present, wanted)


def _check_protocol(present: dict[str, Any]) -> None:
    """Refuse what cannot be compared with the protocol of a run."""
    corruptions, severities = present["corruptions"], present["severities"]
    if not isinstance(corruptions, dict) or not all(isinstance(entry, dict) for entry in corruptions.values()):
        raise InputError(f"corruptions is {reprlib.repr(corruptions)}; expected an object for each")
    if not isinstance(severities, list) or not all(type(level) in (int, float) for level in severities):
        raise InputError(f"severities is {reprlib.repr(severities)}; expected a list of numbers")


def _differences(present: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs besides what may be added: corruptions, and severities where each has a file of its own."""
    growing = ("corruptions",) if wanted["layout"] == "array" else ("corruptions", "severities")
    both = present["corruptions"].keys() & wanted["corruptions"].keys()
    before, after = (
        {key: value for key, value in entry.items() if key not in growing}
        | {name: entry["corruptions"][name] for name in sorted(both)}
        for entry in (present, wanted)
    )
    return differences(before, after)


def _joined(present: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    severities = wanted["severities"]
    if wanted["layout"] != "array":
        severities = sorted({*present["severities"], *severities})
    return {**wanted, "corruptions": {**present["corruptions"], **wanted["corruptions"]}, "severities": severities}


def write_manifest(destination: Path, entries: dict[str, Any]) -> None:
    """Write the manifest, with the versions of the libraries for the record; those are not compared."""
    text = json.dumps({"protocol": entries, "made_with": made_with()}, indent=2, ensure_ascii=False)
    write_bytes(destination / MANIFEST, f"{text}\n".encode(), destination=destination)


@contextlib.contextmanager
def opened_set(
    target: Path, wanted: dict[str, Any], outputs: list[Path], names: Iterable[str] = ()
) -> Iterator[tuple[dict[str, Any], Journal]]:
    """Hold the folder of a set for a run: its protocol after the run (see `check_manifest`), and its sorted journal.

    ``names`` are the entries of the folder that belong to the set besides its corruptions.
    """
    check_folder(target)
    entries = check_manifest(target, wanted, outputs)
    own = {MANIFEST, JOURNAL, FAILURES_FILE, *entries["corruptions"], *names}
    with held_folder(target, names=own):
        # Once more, because another run may have begun the folder in between.
        entries = check_manifest(target, wanted, outputs)
        with Journal(target) as journal:
            yield entries, journal
            journal.sort()
