"""What zero-shot models are asked: the names of the classes, each in a number of sentences."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from blemish.core.class_names import imagenet_names, read_class_names
from blemish.core.errors import InputError, brief, refused
from blemish.core.reading import is_there, parse_json, read_text
from blemish.core.typed import optional_field

PLACE = "{}"
"""Where the name of a class goes in a template."""

_EXPECTED = f"expected a text with a template per line, {PLACE} for the name of a class, a .json list, openai or simple"

Names = str | os.PathLike[str] | Sequence[str]


@dataclass(frozen=True)
class PromptsInfo:
    """What files say of a zero-shot model's prompts: how many, and a digest that tells them from others.

    ``scale`` and ``bias`` are what the model learnt to turn cosines into logits with.
    """

    templates: int
    templates_digest: str
    class_names: int
    class_names_digest: str
    scale: float | None = optional_field(compare=False)
    bias: float | None = optional_field(compare=False)


@dataclass(frozen=True)
class Prompts:
    """Templates, and the names of the classes in class order; two classes may have the same name."""

    templates: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def different_names(self) -> tuple[str, ...]:
        """Each name once, in the order of the classes."""
        return tuple(dict.fromkeys(self.names))

    def texts(self, name: str) -> list[str]:
        """All sentences about a class."""
        return [template.replace(PLACE, name) for template in self.templates]

    def describe(self, scale: float | None = None, bias: float | None = None) -> PromptsInfo:
        """What files say of them."""
        digests = [text_digest(texts) for texts in (self.templates, self.names)]
        return PromptsInfo(len(self.templates), digests[0], len(self.names), digests[1], scale, bias)


def text_digest(texts: Sequence[str]) -> str:
    """A short digest of texts in their order."""
    return hashlib.blake2b(json.dumps(list(texts)).encode(), digest_size=8).hexdigest()


def read_prompts(templates: Names | None, class_names: Names | None) -> Prompts:
    """Prompts as they were asked for; by default OpenAI's 80 templates, and the names of ImageNet's classes."""
    names = imagenet_names() if class_names is None else read_class_names(class_names)
    return Prompts(read_templates("openai" if templates is None else templates), names)


def read_templates(templates: Names) -> tuple[str, ...]:
    """Templates by the name of a set (``openai``, ``simple``), from a file, or as they are given.

    >>> len(read_templates("openai")), read_templates("simple")[0]
    (80, 'itap of a {}.')
    """
    if not isinstance(templates, str | os.PathLike):
        return _checked("templates", list(templates))
    path = os.fspath(templates)
    if not is_there(path):
        known = _sets()
        if path in known:
            return known[path]
        raise InputError(f"{path}: no such file of templates; {_EXPECTED}")
    text = read_text(path)
    if text.lstrip().startswith("["):
        with refused(f"{path}: not readable as JSON", ValueError):
            return _checked(path, parse_json(text))
    return _checked(path, text.rstrip().splitlines())


@lru_cache(maxsize=1)
def _sets() -> dict[str, tuple[str, ...]]:
    content = json.loads(files("blemish.models").joinpath("prompts.json").read_text(encoding="utf-8"))
    return {name: tuple(content[name]) for name in ("openai", "simple")}


def _checked(origin: str, templates: Sequence[object]) -> tuple[str, ...]:
    if not templates:
        raise InputError(f"{origin}: no templates in it; {_EXPECTED}")
    checked = []
    for number, template in enumerate(templates, 1):
        if not isinstance(template, str) or PLACE not in template:
            raise InputError(
                f"{origin}: template {number} is {brief(template)}; expected {PLACE} for the name of a class"
            )
        checked.append(template)
    return tuple(checked)
