"""Immutable mappings from name to unit, which answer unknown names with the nearest known ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar

from blemish.core.errors import InputError, UnknownNameError

Unit = TypeVar("Unit", bound=Any)


def hint(name: str, known: list[str], *, see: str = "blemish list") -> str:
    """The known names nearest to one that is not known; where there are none and many are known, what lists them."""
    plain = name.lower().replace(" ", "_")
    near = [item for item in known if len(plain) > 2 and plain in item][:3]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    near = near or difflib.get_close_matches(plain, known, n=3, cutoff=0.7)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"known: {', '.join(known)}" if len(known) < 30 else f"there are {len(known)}; see {see}"


class ByName(Mapping[str, Unit]):
    """An immutable mapping from name to corruption or sequence; unknown names are answered with the nearest ones."""

    kind: str

    def __init__(self, *units: Unit) -> None:
        entries: dict[str, Unit] = {}
        for unit in units:
            if unit.name in entries:
                raise InputError(f"two {self.kind}s are named {unit.name!r}; names must be unique")
            entries[unit.name] = unit
        self._entries: Mapping[str, Unit] = MappingProxyType(entries)

    def __getitem__(self, name: str) -> Unit:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            raise UnknownNameError(f"unknown {self.kind} {name!r}; {hint(str(name), list(self._entries))}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"

    def __reduce__(self) -> tuple[type[Self], tuple[Unit, ...]]:
        return type(self), tuple(self._entries.values())
