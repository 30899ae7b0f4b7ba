"""Files that commands write by name: what is there already is kept, unless blemish made it or may replace it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.core.marks import is_ours

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace files that are there already, even those that blemish did not make."),
]


def check_replaceable(*paths: Path | None, overwrite: bool) -> None:
    """Refuse to replace a file, before any work; those that say that blemish made them may be made again."""
    for path in paths:
        if path is not None and not overwrite and path.is_file() and not is_ours(path):
            raise InputError(f"{path} is there already; choose another name, or replace it with --overwrite")
