"""What a page is of, served or exported."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import severity_text
from blemish.studies.explore.copies import Origin
from blemish.studies.explore.pictures import SIDE, Picture
from blemish.studies.explore.views import View, Witness

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
    origin: Origin = field(default_factory=Origin)


def beginning(catalog: Catalog, seed: int = 0) -> View:
    """What a page begins with unless it is told: fog, or the first corruption that can be made here."""
    for name in (name for name in ("fog", *catalog) if name in catalog):
        with contextlib.suppress(InputError):
            return View.of(f"{name}@{severity_text(catalog[name].only_severity or _BEGIN)}", seed, catalog)
    raise InputError(f"none of {len(catalog)} corruptions can be made here; expected one whose files are there")
