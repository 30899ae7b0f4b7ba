"""What the page asks for, without how it asks: pictures, pixels, answers, texts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.pictures import encode_picture
from blemish.studies.explore.copies import Origin, texts_of
from blemish.studies.explore.film import frames_of
from blemish.studies.explore.page import Page, catalogues_of, picture_entry
from blemish.studies.explore.pictures import Picture, Shelf
from blemish.studies.explore.views import View, Witness
from blemish.studies.streams.walks import Walk

MOST_BYTES = 64_000_000
"""The largest file that is taken from the page."""


@dataclass(frozen=True)
class Pixels:
    """A picture as a browser's canvas takes it: red, green, blue and opacity of each pixel, row by row."""

    width: int
    height: int
    content: bytes
    milliseconds: float


class Explorer:
    """All that a page can be told. Threads may share it: models are asked one question at a time."""

    def __init__(
        self,
        shelf: Shelf,
        witnesses: Sequence[Witness],
        catalog: Catalog,
        *,
        begin: View,
        shown: Catalog | None = None,
        walk: Walk | None = None,
        walk_note: str = "",
        note: str = "",
        origin: Origin | None = None,
    ) -> None:
        self.shelf, self.witnesses, self.catalog = shelf, witnesses, catalog
        self._origin = origin or Origin()
        self._page = Page(live=True, side=shelf.side, film=walk_note if walk is not None else None)
        self._state = {
            "models": [witness.model.name for witness in witnesses],
            "catalogues": catalogues_of(catalog if shown is None else shown),
            "begin": {
                "seed": begin.seed,
                "steps": [{"name": step.name, "severity": step.low} for step in begin.condition.steps],
            },
            "film": [] if walk is None else frames_of(walk),
            "most": MOST_BYTES,
            "note": note,
        }
        self._entries = [picture_entry(key, picture) for key, picture in shelf.given().items()]

    @property
    def policy(self) -> str:
        """The content security policy of the page."""
        return self._page.policy

    def page(self) -> str:
        """The page as HTML."""
        return self._page.render({**self._state, "pictures": self._entries})

    def pixels(self, query: Mapping[str, str]) -> Pixels:
        """A view's pixels, and how long they took to make."""
        picture, view = self._view(query)
        start = time.perf_counter()
        levels: NDArray[np.uint8] = view.pixels(picture).permute(1, 2, 0).numpy()
        took = 1000 * (time.perf_counter() - start)
        height, width, _ = levels.shape
        canvas = np.full((height, width, 4), 255, dtype=np.uint8)
        canvas[..., :3] = levels
        return Pixels(width, height, canvas.tobytes(), took)

    def answers(self, query: Mapping[str, str]) -> dict[str, Any]:
        """What a model says of a view."""
        number = _whole(query, "model")
        if not 0 <= number < len(self.witnesses):
            raise InputError(f"model {number} of {len(self.witnesses)}; expected one of them, counted from 0")
        picture, view = self._view(query)
        return self.witnesses[number].told(picture, view)

    def copies(self, query: Mapping[str, str]) -> dict[str, str]:
        """Texts that make a view again."""
        return texts_of(*self._view(query), self._origin)

    def saved(self, query: Mapping[str, str]) -> tuple[str, bytes]:
        """A view as a PNG file, with its name."""
        picture, view = self._view(query)
        return f"{view.condition.slug}.png", encode_picture(view.image(picture), "png")

    def add(self, content: bytes, name: str) -> dict[str, Any]:
        """A picture that was dropped onto the page."""
        return picture_entry(*self.shelf.add(content, name))

    def _view(self, query: Mapping[str, str]) -> tuple[Picture, View]:
        return self.shelf[_text(query, "picture")], View.of(_text(query, "c"), _whole(query, "seed"), self.catalog)


def _text(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise InputError(f"no {name}; expected it in the address")
    return query[name]


def _whole(query: Mapping[str, str], name: str) -> int:
    text = _text(query, name)
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise InputError(f"{name} {text[:30]!r}; expected a whole number")
    return int(text)
