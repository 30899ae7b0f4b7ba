"""HTML that is safe by construction: every text is escaped, and only what this module made counts as markup."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

__all__ = ["Markup", "chart_text", "element", "embedded_json", "joined", "raw_element"]

_VOID = frozenset({"img", "meta", "br", "hr", "col"})

# Direction marks in a file's name could make a page read differently from what it says.
_INVISIBLE = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}
_CONTROL = dict.fromkeys((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F), "\ufffd")

Child = Any


class Markup(str):
    """A piece of HTML; a plain `str` is text and is escaped where it is used."""

    __slots__ = ()


def element(tag: str, *children: Child, **attributes: Any) -> Markup:
    """An element with escaped children and attributes.

    A trailing underscore of an attribute's name is dropped and others become hyphens; None and False leave it out.

    >>> element("p", "a < b", element("b", "!"), class_="note", hidden=True)
    '<p class="note" hidden>a &lt; b<b>!</b></p>'
    """
    start = "".join([f"<{tag}", *(_attribute(name, value) for name, value in attributes.items()), ">"])
    return Markup(start if tag in _VOID else f"{start}{joined(children)}</{tag}>")


def raw_element(tag: str, content: str, **attributes: Any) -> Markup:
    """A script or style of our own: its content is not text, and must not hold the end of its element."""
    if f"</{tag}" in content.lower():
        raise ValueError(f"a {tag} that holds its own end")
    return Markup(element(tag, **attributes).removesuffix(f"</{tag}>") + f"{content}</{tag}>")


def joined(children: Iterable[Child]) -> Markup:
    """Children one after the other; sequences are unfolded, None is nothing, everything else but markup is escaped."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return joined(child)
    return html.escape(_visible(str(child)))


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(_visible(str(value)))}"'


def _visible(text: str) -> str:
    # Lone surrogates stand for the bytes of file names that are not UTF-8, and cannot be written.
    return text.encode("utf-8", "replace").decode("utf-8").translate(_INVISIBLE).translate(_CONTROL)


def chart_text(text: str) -> str:
    """A text for a chart: Plotly reads labels as a small subset of HTML.

    >>> chart_text("<b>cat</b>")
    '&lt;b&gt;cat&lt;/b&gt;'
    """
    return html.escape(_visible(text), quote=False)


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
