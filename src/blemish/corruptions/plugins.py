"""Corruptions of one's own: found in a module or an installed package, and known again by a digest of their code."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from blemish.core.errors import InputError
from blemish.core.typed import optional_field
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog

GROUP = "blemish.corruptions"
"""The entry point group in which packages name their corruptions: a corruption, a list of them, or a module."""


def load_catalog(modules: Iterable[str] = (), *, installed: bool = True) -> Catalog:
    """The built-in catalog with the corruptions of installed packages and of the named modules.

    A module gives every `Corruption` among its public names. The current folder can be imported from.
    """
    own: dict[str, Corruption] = {}
    for origin, thing in (*(_installed() if installed else ()), *((name, _module(name)) for name in modules)):
        members = _corruptions(thing)
        if not members:
            raise InputError(f"plugin {origin}: no corruption in it; expected at least one blemish.Corruption")
        for corruption in members:
            if own.setdefault(corruption.name, corruption) != corruption:
                raise InputError(f"plugin {origin}: another plugin has a corruption named {corruption.name!r}")
    return catalog.extended(*own.values()) if own else catalog


def _installed() -> Iterable[tuple[str, Any]]:
    for entry in metadata.entry_points(group=GROUP):
        try:
            yield f"{entry.name} ({entry.value})", entry.load()
        except Exception as error:
            raise InputError(f"plugin {entry.name} ({entry.value}) raised {type(error).__name__}: {error}") from error


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(f"plugin {name}: {type(error).__name__}: {error}; expected a module to import") from error


def _corruptions(thing: Any) -> list[Corruption]:
    if isinstance(thing, Corruption):
        return [thing]
    values = [v for k, v in vars(thing).items() if not k.startswith("_")] if isinstance(thing, ModuleType) else thing
    # Our own units may be imported into a user's module.
    ours = catalog.values()
    members = [value for value in values if isinstance(value, Corruption) and value not in ours]
    return list({member.name: member for member in members}.values())


def code_digest(corruption: Corruption) -> str:
    """A digest of what a corruption does: its table, and the source of the modules of its two functions.

    What those modules import is not part of it.
    """
    digest = hashlib.blake2b(digest_size=8)
    settings = (corruption.table, corruption.shared, corruption.only_severity, corruption.uint8_io, corruption.stream)
    digest.update(repr((*settings, corruption.version)).encode())
    for function in (corruption.draw, corruption.apply):
        digest.update(_source(function))
    return digest.hexdigest()


def own_code_digest(corruption: Corruption) -> str | None:
    """The digest of the code of a user's own corruption; None for one of ours, also with other photographs."""
    known = catalog.get(corruption.name)
    if known == corruption:
        return None
    digest = code_digest(corruption)
    with_other_files = known is not None and None not in (known.files, corruption.files)
    return None if known is not None and with_other_files and code_digest(known) == digest else digest


@dataclass(frozen=True)
class OwnVersion:
    """The version of a corruption that is not wholly ours: with a digest of its code, and the kind of its files."""

    version: int
    code: str | None = optional_field()
    files: str | None = optional_field()


def stated_version(corruption: Corruption) -> int | OwnVersion:
    """What protocols say of a corruption: its version; of a user's own also a digest of its code.

    So also which files it is made of, but for frost's photographs, which protocols state apart.
    """
    code = own_code_digest(corruption)
    files = None if corruption.files is None or corruption.name == "frost" else corruption.files.kind
    own = OwnVersion(corruption.version, code, files)
    return corruption.version if own == OwnVersion(corruption.version) else own


def own_code(corruptions: Iterable[Corruption]) -> dict[str, str]:
    """The digests of the code of users' own corruptions among these, by name."""
    digests = {corruption.name: own_code_digest(corruption) for corruption in corruptions}
    return {name: digest for name, digest in digests.items() if digest is not None}


def _source(function: Any) -> bytes:
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):  # an object with __call__
        function = type(function).__call__
    module = inspect.getmodule(function)
    try:
        if module is not None and module.__name__ != "__main__":
            return inspect.getsource(module).encode()
        return inspect.getsource(function).encode()
    except (OSError, TypeError):
        return _code(function.__code__)


def _code(code: CodeType) -> bytes:
    """The instructions and constants of a function whose source is not at hand."""
    constants = [_code(item) if isinstance(item, CodeType) else repr(item).encode() for item in code.co_consts]
    return b"\0".join([code.co_code, *constants, repr(code.co_names).encode()])
