"""The page: one HTML file with its style and script inside, and the state that it begins with."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from markupsafe import Markup
from PIL import Image

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalogue_of
from blemish.reports.page import page_environment
from blemish.reports.visible import visible
from blemish.studies.explore.pictures import Picture
from blemish.version import VERSION

_SCRIPTS = ("source.js", "curve.js", "panes.js", "film.js", "explore.js")
_THUMBNAIL = 112

# What keys do; those of the second list need the server.
_KEYS = (
    ("← →", "less, more severity"),
    ("0 5", "severity 0 to 5"),
    ("[ ]", "the corruption before, behind"),
    ("x", "the other picture"),
    ("h", "held down: the clean picture in its place"),
    ("p", "play or pause the walk"),
    ("c", "copy the text"),
    ("d", "light or dark"),
)
_LIVE_KEYS = (("r", "another seed"),)


class Page:
    """The page of a server, or of an export; it may load nothing but what stands beside it."""

    def __init__(self, *, live: bool, side: int, film: str | None) -> None:
        self._live, self._side, self._film = live, side, film

    @property
    def policy(self) -> str:
        """What the browser is to allow: our script and no other, and no address but ours."""
        digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
        connect = "connect-src 'self'; " if self._live else ""
        images = "img-src data:" if self._live else "img-src 'self' file: data:"
        return (
            f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; {images}; {connect}"
            "base-uri 'none'; form-action 'none'"
        )

    def render(self, state: Mapping[str, Any]) -> str:
        """The page with this state."""
        footer = (
            "Pictures stay on this machine."
            if self._live
            else "A read-only export: pictures were made beforehand and are stored as JPEG."
        )
        return (
            page_environment()
            .get_template("studies/explore/templates/explore.html.j2")
            .render(
                policy=self.policy,
                version=VERSION,
                style=Markup(_file("explore.css")),
                script=Markup(_script()),
                state=_embedded(_visible(state)),
                live=self._live,
                side=self._side,
                film=self._film,
                keys=(*_KEYS, *(_LIVE_KEYS if self._live else ())),
                footer=footer,
            )
        )


@lru_cache(maxsize=1)
def _script() -> str:
    return '"use strict";\n' + "\n".join(map(_file, _SCRIPTS))


def _file(name: str) -> str:
    return resources.files("blemish.studies.explore").joinpath("templates", name).read_text(encoding="utf-8")


def _embedded(value: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _visible(value: Any) -> Any:
    """Texts that can be written and seen, in everything that the page is given."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _visible(each) for key, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list | tuple) else value


def catalogues_of(catalog: Catalog | Iterable[Corruption]) -> list[dict[str, Any]]:
    """All corruptions by catalogue, with what the page shows of them; and why some cannot be made here."""
    catalogues: dict[str, list[dict[str, Any]]] = {}
    for unit in catalog.values() if isinstance(catalog, Catalog) else catalog:
        entry = {
            "name": unit.name,
            "title": unit.name.rpartition(":")[2],
            "family": unit.family,
            "description": unit.description,
            "only": unit.only_severity,
            "missing": _missing(unit),
        }
        catalogues.setdefault(catalogue_of(unit), []).append(entry)
    return [{"name": name, "units": members} for name, members in catalogues.items()]


def _missing(unit: Corruption) -> str | None:
    try:
        unit.check_files()
    except InputError as error:
        return str(error)
    return None


def picture_entry(key: str, picture: Picture) -> dict[str, Any]:
    """What the page is told of a picture."""
    small = picture.image.copy()
    small.thumbnail((_THUMBNAIL, _THUMBNAIL), Image.Resampling.LANCZOS)
    content = io.BytesIO()
    small.save(content, "JPEG", quality=85)
    return {
        "key": key,
        "name": picture.name,
        "width": picture.image.width,
        "height": picture.image.height,
        "note": picture.note,
        "thumbnail": f"data:image/jpeg;base64,{base64.b64encode(content.getvalue()).decode()}",
    }
