"""Showing the page: a server until Ctrl-C, and a browser where there is a desktop; or a folder to open later."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

from blemish.core.errors import StorageError
from blemish.studies.explore.explorer import Explorer
from blemish.studies.explore.export import write_export
from blemish.studies.explore.film import film_walk
from blemish.studies.explore.pictures import Shelf
from blemish.studies.explore.server import LOOPBACK, ExplorerServer
from blemish.studies.explore.subject import Subject
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress


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
        origin=subject.origin,
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


def has_desktop() -> bool:
    """Whether somebody sits at a desktop: elsewhere a browser may open in the terminal itself."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def write_page(folder: Path, subject: Subject, *, walk: Path | None = None) -> Path:
    """Write the export with its progress on stderr, and say where it is."""
    page = with_progress(
        "explore",
        lambda report: write_export(folder, subject, walk=walk, report=report),
        first="making pictures",
        unit=None,
        kept="the page is not written.",
    )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    say(f"wrote {page} ({size / 1e6:.1f} MB in {folder}); it opens in any browser", style="bold")
    return page
