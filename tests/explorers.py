"""An explorer that is being served, and pictures for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import blemish
from blemish.corruptions.catalog import Catalog
from blemish.data.digits import digits_source
from blemish.studies.explore.pictures import pictures_at
from blemish.studies.explore.server import ExplorerServer
from blemish.studies.explore.show import server_for
from blemish.studies.explore.subject import Subject
from blemish.studies.explore.views import View, Witness

# A few of ImageNet-C's: what a page does is the same for all.
CATALOG = Catalog(*(blemish.catalog[name] for name in ("fog", "contrast", "gaussian_noise", "cbar:sparkles")))


def subject(
    place: Path | None = None, models: Sequence[str] = ("demo:plain",), begin: str = "contrast@3", **named: int
) -> Subject:
    """What is looked at, with the demo's networks."""
    pictures, note = pictures_at(place, **named)
    witnesses = [Witness(blemish.open_model(name), [*map(str, range(10))]) for name in models]
    return Subject(pictures, witnesses, CATALOG, View.of(begin, 7, CATALOG), note=note, **named)


@contextlib.contextmanager
def served(what: Subject, walk: Path | None = None) -> Iterator[ExplorerServer]:
    """The explorer, answering at its address."""
    with server_for(what, walk=walk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def digit_files(folder: Path, count: int = 3) -> Path:
    """A folder of the demo's digits as pictures."""
    source = digits_source()
    folder.mkdir(exist_ok=True)
    for row in range(count):
        source.read(row).save(folder / f"digit {row}.png")
    return folder
