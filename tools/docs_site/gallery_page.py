"""The gallery: a picture under every corruption, as a page of the site with a search of its own.

It is made anew at each build, and nothing of it is kept in the repository: frost is made from photographs of others.
"""

from __future__ import annotations

import io
from html import escape

from PIL import Image

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog, catalogue_of
from blemish.data.demo import demo_picture
from blemish.reports.gallery import GALLERY_SEVERITIES, Shown, shown

PAGE = "gallery.md"
SIDE = 224
HEAD = """\
{corruptions} corruptions of {catalogues} catalogues; {side} × {side} pixels, seed 0.

<div data-gallery class="gallery">
<div class="gallery-bar">
<input type="search" aria-label="Find corruptions" placeholder="Find: blur, weather, imagenet-c, lens …">
<output aria-live="polite"></output>
</div>"""


def pages() -> dict[str, str | bytes]:
    """The page and its pictures."""
    picture = demo_picture(SIDE)
    files: dict[str, str | bytes] = {"gallery/clean.webp": encoded(picture)}
    groups: dict[str, list[str]] = {}
    left_out = []
    for name in catalog:
        corruption = catalog[name]
        try:
            corruption.check_files()
        except InputError as error:
            left_out.append(f"`{name}` ({error})")
            continue
        entry = shown(picture, corruption, GALLERY_SEVERITIES)
        for level, copy in entry.copies:
            files[picture_file(corruption, level)] = encoded(copy)
        groups.setdefault(catalogue_of(corruption), []).append(card(entry))
    count = sum(map(len, groups.values()))
    lines = [HEAD.format(corruptions=count, catalogues=len(groups), side=SIDE)]
    for name, cards in groups.items():
        lines += ["<section>", f'<h2 id="{name}">{name} ({len(cards)})</h2>', *cards, "</section>"]
    lines += ["</div>", ""]
    if left_out:
        lines += [f"Not made here: {'; '.join(left_out)}.", ""]
    files[PAGE] = "\n".join(lines)
    return files


def card(entry: Shown) -> str:
    """One corruption: its names, what it does, and its pictures."""
    corruption = entry.corruption
    tiles = [tile("gallery/clean.webp", "clean", "clean")]
    for level, _ in entry.copies:
        title = f"severity {level:g}"
        tiles.append(tile(picture_file(corruption, level), f"{corruption.name}, {title}", title))
    family = escape(" · ".join(filter(None, (catalogue_of(corruption), entry.family))))
    note = f" ({escape(entry.note)})" if entry.note else ""
    return (
        f'<div class="gallery-card"><code>{escape(corruption.name)}</code> <small>{family}</small>'
        f"<p>{escape(corruption.description)}{note}</p>"
        f'<div class="gallery-strip">{"".join(tiles)}</div></div>'
    )


def tile(source: str, alternative: str, caption: str) -> str:
    """A picture and what is written below it."""
    return (
        f'<figure><img src="{source}" alt="{escape(alternative)}" width="{SIDE}" height="{SIDE}" loading="lazy">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def picture_file(corruption: Corruption, level: float) -> str:
    """Where the picture of a corruption at a severity stands in the site."""
    return f"gallery/{corruption.name.replace(':', '-')}-{level:g}.webp"


def encoded(picture: Image.Image) -> bytes:
    """A picture as the site has it."""
    content = io.BytesIO()
    picture.save(content, "WEBP", quality=82)
    return content.getvalue()
