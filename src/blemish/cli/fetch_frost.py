"""``blemish fetch-frost``: the photographs that frost is made from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.data.frost_download import fetch_frost
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.printing import say


@exit_on_input_error
def fetch_frost_command(
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Not from PyPI, but from a wheel of imagecorruptions that is here."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Another folder than your own; name it with --frost afterwards."
        ),
    ] = None,
) -> None:
    """Fetch the five photographs that the frost of ImageNet-C is made from: 2 MB, once for all environments.

    They come out of the package imagecorruptions on PyPI, which is not installed, and are checked byte by byte.

    Examples:

      blemish fetch-frost

      blemish fetch-frost --from imagecorruptions-1.1.2-py3-none-any.whl
    """
    target, fetched = fetch_frost(wheel=wheel, folder=out)
    say(f"the photographs of frost are {'now' if fetched else 'already'} in {target}")
    if out is not None:
        say(f"name them with: --frost {target}", style="dim")
