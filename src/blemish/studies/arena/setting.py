"""Settings: what stream adaptation methods are shown, and when they start afresh, written as small TOML texts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from blemish.core.errors import InputError, UnknownNameError, about
from blemish.core.reading import is_folder, is_there, parse_toml, read_text
from blemish.core.typed import optional_field, read_typed
from blemish.corruptions.severity import check_severity

Labels = Literal["shuffled", "sorted", "dirichlet", "slots", "shift"]
"""The order of labels: at random, class by class, Dirichlet chunks (NOTE, Döbler et al.), Dirichlet slots (RoTTA), or
drawn with a class that is in favour at a time (SAR)."""

_SUFFIX = ".toml"
_TEN = "ten"
_PLACE = "blemish.studies.arena"

Domain = tuple[str, tuple[float, ...]]
"""A corruption and the severities that it passes through, in order."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. Whatever it says of a stream is a pure function of the images' labels, a seed and the position.

    ``order`` is ``standard``, ``benchmark``, ``order-0`` … ``order-9``, or ``ten`` for these ten, a stream each.
    Corruptions pass through ``severities``, the first of an order through ``first`` if that is given. ``mixed`` puts
    all of them into one stream, at random. ``labels`` says in which order classes come, ``concentration`` how strongly
    Dirichlet's law binds them (small: strongly), and ``favour`` how much more often one class is drawn than each other
    one. The whole comes ``rounds`` times. Methods start afresh before every corruption where ``reset`` is ``shift``.

    ``batch`` is the batch size where it belongs to the setting. With a ``speed`` η above 0 the stream does not wait: a
    method whose step costs as much as c plain passes misses max(0, ⌈η c⌉ − 1) batches after each that it adapts to,
    and predicts them as it is; a backward pass costs ``backward`` plain ones. With ``walk`` the stream is that of a
    walk over corruptions that change continuously, which is given beside the setting.
    """

    name: str
    title: str
    source: str = ""
    order: str = "standard"
    severities: tuple[float, ...] = (5.0,)
    first: tuple[float, ...] = ()
    mixed: bool = False
    labels: Labels = "shuffled"
    concentration: float = 0.1
    favour: float = 500_000.0
    rounds: int = 1
    reset: Literal["never", "shift"] = "never"
    batch: int | None = optional_field()
    speed: float = 0.0
    backward: float = 2.0
    walk: bool = False

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if not self.severities:
            raise InputError("no severities; expected at least one, such as severities = [5]")
        for severity in (*self.severities, *self.first):
            if check_severity(severity) == 0:
                raise InputError("severity 0; expected severities above 0")
        known = ("standard", "benchmark", _TEN, *(f"order-{i}" for i in range(10)))
        if self.order not in known:
            raise InputError(f"order {self.order!r}; expected one of {', '.join(known)}")
        if not (self.concentration > 0 and self.favour >= 1 and self.rounds >= 1):
            given = f"concentration {self.concentration:g}, favour {self.favour:g} and rounds {self.rounds}"
            raise InputError(f"{given}; expected a concentration above 0, and at least 1 for the others")
        if self.batch is not None and self.batch < 1:
            raise InputError(f"batch {self.batch}; expected at least 1")
        if not (0 <= self.speed <= 1 and self.backward >= 0):
            raise InputError(f"speed {self.speed:g} and backward {self.backward:g}; expected 0 … 1, and 0 or more")
        if self.mixed and (self.reset == "shift" or self.labels in ("slots", "shift") or self.rounds > 1):
            raise InputError("a mixed stream with resets, rounds, slots or label shift; expected one that is not mixed")
        if self.walk and (self.mixed or self.reset == "shift" or self.labels != "shuffled" or self.rounds > 1):
            raise InputError("a walk with labels, resets or rounds; expected nothing but speed and batch beside it")

    @property
    def variants(self) -> tuple[str, ...]:
        """The orders of its streams: one, or ten."""
        return tuple(f"order-{i}" for i in range(10)) if self.order == _TEN else (self.order,)

    def at(self, severity: float | None) -> Setting:
        """The setting at another severity; one that passes through several keeps them."""
        if severity is None or self.walk or len(self.severities) > 1 or self.first:
            return self
        return replace(self, severities=(severity,))

    def domains(self, corruptions: Sequence[str], variant: str) -> tuple[Domain, ...]:
        """The corruptions in the order of a variant, with their severities.

        The published orders are of fifteen corruptions; those that a benchmark lacks are left out, and others come in
        its own order after them.
        """
        listed = () if variant == "benchmark" else tuple(orders()[variant])
        known = [name for name in listed if name in corruptions]
        names = [*known, *(name for name in corruptions if name not in known)]
        if not names:
            raise InputError("no corruptions for a setting; expected at least one")
        rest = tuple((name, self.severities) for name in names[1:])
        return ((names[0], self.first or self.severities), *rest)


@cache
def orders() -> dict[str, tuple[str, ...]]:
    """The standard order of the fifteen corruptions, and CoTTA's ten (Wang et al., CVPR 2022, released settings)."""
    text = resources.files(_PLACE).joinpath("orders.json").read_text(encoding="utf-8")
    data = json.loads(text)
    return {"standard": tuple(data["standard"])} | {f"order-{i}": tuple(n) for i, n in enumerate(data["ten_orders"])}


@cache
def built_in() -> tuple[str, ...]:
    """The names of the settings that come with the library."""
    folder = resources.files(_PLACE).joinpath("settings")
    return tuple(sorted(e.name.removesuffix(_SUFFIX) for e in folder.iterdir() if e.name.endswith(_SUFFIX)))


def load_setting(name: str | os.PathLike[str]) -> Setting:
    """A built-in setting by name, or one from a file."""
    text = os.fspath(name)
    if text in built_in():
        return parse_setting(setting_text(text), where=text)
    if is_there(text) and not is_folder(text):
        return parse_setting(read_text(text), where=text)
    raise UnknownNameError(f"unknown setting {text!r}; expected a .toml file, or one of {', '.join(built_in())}")


def setting_text(name: str) -> str:
    """The text of a built-in setting."""
    return resources.files(_PLACE).joinpath("settings", name + _SUFFIX).read_text(encoding="utf-8")


def parse_setting(content: str, *, where: str) -> Setting:
    """The setting that a TOML text describes; ``where`` is named in errors."""
    try:
        entries: dict[str, Any] = parse_toml(content)
    except ValueError as error:
        raise InputError(f"{where}: not readable as TOML ({error})") from error
    known = Setting.__dataclass_fields__
    if unknown := [key for key in entries if key not in known]:
        raise InputError(f"{where}: unknown entry {unknown[0]!r}; expected {', '.join(known)}")
    with about(where):
        return read_typed(Setting, entries)
