"""What the commands share: one way to report errors, and the same words for the same options."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import SeverityTable
from blemish.ops.textures import FROST_VARIABLE, frost_kind
from blemish.transform import preset_rule
from blemish.types import InputError, WorkerError

__all__ = [
    "BAD_INPUT",
    "DEFAULT_SEVERITIES",
    "LOST_WORKERS",
    "Frost",
    "chosen_names",
    "friendly",
    "note_frost",
    "parsed_severities",
    "preset_choice",
    "say",
    "stderr",
]

BAD_INPUT = 2
LOST_WORKERS = 1
DEFAULT_SEVERITIES = "1,2,3,4,5"

P = ParamSpec("P")
R = TypeVar("R")


def stderr() -> Console:
    """A console for messages; made on demand, so that a redirected stream is honoured."""
    return Console(stderr=True, highlight=False)


def say(message: str, style: str = "") -> None:
    """A line of text, never wrapped: file names stay whole and can be copied."""
    Console(highlight=False).print(Text(message, style=style), soft_wrap=True)


def friendly(command: Callable[P, R]) -> Callable[P, R]:
    """Turn bad input into one line on stderr and exit code 2, without a traceback; lost workers into exit code 1."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (InputError, WorkerError) as error:
            stderr().print(Text(f"error: {error}", style="red"), soft_wrap=True)
            raise typer.Exit(BAD_INPUT if isinstance(error, InputError) else LOST_WORKERS) from None

    return guarded


def chosen_names(text: str | None, catalog: Catalog) -> list[str]:
    """Names separated by commas; a family stands for its members, ``all`` for the catalog, nothing for ImageNet-C."""
    if text is None:
        return catalog.plain()
    names: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        members = [name for name, corruption in catalog.items() if item in (corruption.family, "all")]
        names += members or [catalog[item].name]
    if not names:
        raise InputError("no corruptions named; expected names such as fog,snow")
    return list(dict.fromkeys(names))


def _remember_frost(folder: Path | None) -> Path | None:
    # Through the environment, because worker processes inherit it.
    if folder is not None:
        os.environ[FROST_VARIABLE] = str(folder)
    return folder


Frost = Annotated[
    Path | None,
    typer.Option(
        "--frost",
        metavar="DIR",
        callback=_remember_frost,
        help=f"Folder of the reference's frost photographs. Default: ${FROST_VARIABLE}, then the installed package "
        "imagecorruptions, then a procedural texture.",
    ),
]


def note_frost(corruptions: Sequence[Corruption]) -> None:
    """Say so where frost is not the reference's."""
    if any(corruption.name == "frost" for corruption in corruptions) and (kind := frost_kind()) != "reference":
        say(f"frost: {kind} texture, not comparable with published frost numbers", style="dim")


def parsed_severities(text: str) -> list[float]:
    """Numbers separated by commas; their range is checked where they are used."""
    items = [part.strip() for part in text.split(",") if part.strip()]
    if not items:
        raise InputError("no severities; expected numbers such as 1,2,3")
    try:
        return [float(item) for item in items]
    except ValueError:
        raise InputError(f"severities {text!r}; expected numbers such as 1,2,3 or 2.5") from None


def preset_choice(table: SeverityTable, preset: str | None, side: int | None) -> str:
    """Which severity table is used and why; ``side`` is the images' shorter side, unless they differ."""
    if len(table.rows) == 1:
        return "severities: one table for all image sizes"
    if preset is not None:
        return f"preset: {preset} (as asked)"
    if side is None:
        return f"preset: for each picture the one {preset_rule(table)}"
    return f"preset: {table.preset(side, side)} ({preset_rule(table)}; here {side} px)"
