"""Showing the page: a server until Ctrl-C, and a browser where there is a desktop."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blemish.core.errors import InputError, StorageError
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import severity_text
from blemish.studies.explore.explorer import Explorer
from blemish.studies.explore.film import film_walk
from blemish.studies.explore.pictures import SIDE, Picture, Shelf
from blemish.studies.explore.server import LOOPBACK, ExplorerServer
from blemish.studies.explore.views import View, Witness
from blemish.terminal.printing import say

__all__ = ["Subject", "beginning", "explore", "has_desktop"]


_BEGIN = 3.0


@dataclass(frozen=True)
class Subject:
    """What is looked at: pictures, models, corruptions, and the view to begin with.

    ``shown`` are the corruptions that can be chosen; a walk may go through others of the catalog.
    """

    pictures: Sequence[Picture]
    witnesses: Sequence[Witness]
    catalog: Catalog
    begin: View
    side: int = SIDE
    note: str = ""
    shown: Catalog | None = None


def server_for(subject: Subject, *, walk: Path | None = None, port: int = 0) -> ExplorerServer:
    """A server of the page, which listens but does not answer yet."""
    chosen, walk_note = film_walk(walk, subject.catalog if walk is not None or subject.shown is None else subject.shown)
    explorer = Explorer(
        Shelf(subject.pictures, subject.side),
        subject.witnesses,
        subject.catalog,
        shown=subject.shown,
        begin=subject.begin,
        walk=chosen,
        walk_note=walk_note,
        note=subject.note,
    )
    try:
        return ExplorerServer(explorer, port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"cannot listen on {LOOPBACK}, port {port}: {reason}; expected a free port") from error


def explore(subject: Subject, *, walk: Path | None = None, port: int = 0, show: bool | None = None) -> None:
    """Serve the page until Ctrl-C; ``show`` says whether to open a browser, by default where there is a desktop."""
    with server_for(subject, walk=walk, port=port) as server:
        say(f"explorer: {server.address}", style="bold")
        say("Only this machine reaches it, and only by this address. Ctrl-C ends it.", style="dim")
        if has_desktop() if show is None else show:
            webbrowser.open(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("ended", style="dim")


def beginning(catalog: Catalog, seed: int = 0) -> View:
    """What a page begins with unless it is told: fog, or the first corruption that can be made here."""
    for name in (name for name in ("fog", *catalog) if name in catalog):
        with contextlib.suppress(InputError):
            return View.of(f"{name}@{severity_text(catalog[name].only_severity or _BEGIN)}", seed, catalog)
    raise InputError(f"none of {len(catalog)} corruptions can be made here; expected one whose files are there")


def has_desktop() -> bool:
    """Whether somebody sits at a desktop: elsewhere a browser may open in the terminal itself."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
