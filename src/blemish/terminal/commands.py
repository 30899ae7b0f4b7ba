"""What the commands share: one way to report errors, and the same words for the same options."""

from __future__ import annotations

import contextlib
import errno
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from blemish.core.errors import InputError, Notice, StorageError, WorkerError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import SeverityTable
from blemish.corruptions.transform import preset_rule
from blemish.models.code import raised_by_a_signal, where_raised
from blemish.ops.photographs import REFERENCE
from blemish.terminal.printing import complain, say, stderr, unwrapped

__all__ = [
    "BAD_INPUT",
    "DEFAULT_SEVERITIES",
    "LOST_WORKERS",
    "AllowCode",
    "Frost",
    "check_frost",
    "chosen_catalog",
    "chosen_names",
    "complain",
    "exit_on_input_error",
    "parsed_severities",
    "preset_choice",
    "say",
    "stderr",
]

BAD_INPUT = 2
LOST_WORKERS = 1
DEFAULT_SEVERITIES = "1,2,3,4,5"

# A name that is too long, a place without permission, a full disk: no traceback would say more.
_OF_THE_PLACE = (
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
)

P = ParamSpec("P")
R = TypeVar("R")


def exit_on_input_error(command: Callable[P, R]) -> Callable[P, R]:
    """Turn bad input and storage that fails into one line on stderr and exit code 2; and notices into lines.

    Lost workers give exit code 1. No command leaves by itself with code 0 before its end, so whatever does is someone
    else's code.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _notices_printed():
                return command(*args, **kwargs)
        except (InputError, StorageError) as error:
            raise _failed(str(error)) from None
        except WorkerError as error:
            raise _failed(str(error), LOST_WORKERS) from None
        except OSError as error:
            if error.errno not in _OF_THE_PLACE:
                raise
            raise _failed(f"{error.filename}: {error.strerror}") from None
        except SystemExit as error:
            if raised_by_a_signal(error):
                raise
            raise _failed(f"code that was run would end the program (exit {error.code}){where_raised(error)}") from None
        except typer.Exit as error:
            if error.exit_code == 0:
                raise _failed(f"code that was run would end the program{where_raised(error)}") from None
            raise

    guarded.__doc__ = unwrapped(command.__doc__)
    return guarded


def _failed(message: str, code: int = BAD_INPUT) -> typer.Exit:
    complain(f"error: {message}", style="red")
    return typer.Exit(code)


AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        rich_help_panel="Model",
        help="Let the model run code: TorchScript, pickles, .pt2, a .toml that names python:…. Only if you trust it.",
    ),
]


@contextlib.contextmanager
def _notices_printed() -> Iterator[None]:
    """Print notices as lines on stderr, each once, so that what is printed for other programs stays as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        others, told = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *args: Any) -> None:
            if not issubclass(category, Notice):
                others(message, category, *args)
            elif str(message) not in told:
                told.add(str(message))
                complain(f"note: {message}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield


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


Frost = Annotated[
    Path | None,
    typer.Option(
        "--frost",
        metavar="DIR",
        help='Folder with other photographs for frost. Default: the reference\'s, which "blemish fetch-frost" gets.',
    ),
]


def chosen_catalog(frost: Path | None) -> Catalog:
    """The corruptions, with frost from the photographs in a folder where one was named."""
    return catalog if frost is None else catalog.with_frost(frost)


def check_frost(corruptions: Iterable[Corruption]) -> None:
    """Refuse corruptions whose files are missing, before any work; say so where frost is not the reference's."""
    for corruption in corruptions:
        corruption.check_files()
        if corruption.files is not None and corruption.files.kind != REFERENCE:
            kind = corruption.files.kind
            say(f"{corruption.name}: {kind} photographs, not comparable with published numbers of frost", style="dim")


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
