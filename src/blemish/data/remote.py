"""Images that lie elsewhere: shards, Parquet and array files at ``s3://``, ``gs://``, ``hf://`` and ``https://``."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from blemish.core.ahead import ahead
from blemish.core.errors import InputError
from blemish.data.array_source import array_source
from blemish.data.arrays import ARRAY_SUFFIXES
from blemish.data.fetching import RemoteFile, file_system, is_address, patiently, shown_address
from blemish.data.folders import ClassMapping
from blemish.data.image_files import PARQUET_SUFFIX, check_shards, expand_braces, is_visible, refuse_given
from blemish.data.source import Source
from blemish.data.webdataset import shards_source

_SUFFIXES = (".tar", PARQUET_SUFFIX, *ARRAY_SUFFIXES)
_EXPECTED = (
    f"expected {', '.join(_SUFFIXES)}, a pattern such as val-{{00..13}}.tar, or a folder of .tar or .parquet files"
)

# Servers are asked about so many files at a time.
_TOGETHER = 8


def remote_source(
    address: str,
    *,
    labels: str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    mapping: ClassMapping | None = None,
) -> Source:
    """The images at an address: a file, a pattern of several, or a folder of shards or Parquet files.

    Files are fetched whole when they are needed, several at a time, and kept in a cache (see `blemish.data.fetching`).
    ``labels`` is the address or path of the labels of an ``.npy`` file.
    """
    shown = shown_address(address)
    files = _files(address)
    kinds = {_suffix(file.name) for file in files}
    if len(kinds) > 1:
        raise InputError(f"{shown}: files of several kinds ({', '.join(sorted(kinds))}); expected one")
    (kind,) = kinds
    last = PurePosixPath(urlsplit(shown).path)
    name = (last.name if kind == ".tar" else last.stem) or shown  # as that of the same files here
    if kind == ".tar":
        refuse_given(f"{shown}, which has labels of its own", labels=labels)
        refuse_given(f"{shown}, which is no table", columns=columns, mapping=mapping)
        return shards_source(name, files)
    if kind == PARQUET_SUFFIX:
        from blemish.data.parquet import table_files_source  # pyarrow takes its time

        refuse_given(f"{shown}, which has labels of its own", labels=labels)
        return table_files_source(name, files, columns=columns, mapping=mapping)
    refuse_given(f"{shown}, an array file", columns=columns, mapping=mapping)
    if len(files) > 1:
        raise InputError(f"{shown}: {len(files)} array files; expected one")
    return _array_source(name, files[0], labels)


def _array_source(name: str, file: RemoteFile, labels: str | os.PathLike[str] | None) -> Source:
    """An array file, which is mapped: it is held for as long as the source is in use."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(file.held())
        with contextlib.ExitStack() as beside:
            if labels is not None and is_address(labels):
                labels = beside.enter_context(RemoteFile(str(labels)).held())
            source = array_source(path, labels)
        held = _Held()
        weakref.finalize(held, stack.pop_all().close)
    return replace(source, name=name, stamp=partial(_stamp, file.stamp, held))


class _Held:
    """What a source refers to for as long as it is in use."""


def _stamp(file: str, held: _Held, row: int) -> str:
    return f"{file}{row}"


def _files(address: str) -> list[RemoteFile]:
    patterns = expand_braces(address)
    file_system(patterns[0])[0].invalidate_cache()  # once for all of them
    addresses = [each for pattern in patterns for each in _listed(pattern)]
    asked = ahead(lambda i: RemoteFile(addresses[i], fresh=False), len(addresses), _TOGETHER)
    with contextlib.closing(asked) as files:
        return list(files)


def _listed(address: str) -> list[str]:
    """The addresses that one stands for: itself, what a pattern with stars matches, or the files in a folder."""
    shown = shown_address(address)
    if "*" not in address and _suffix(shown) in _SUFFIXES:
        return [address]
    if address.startswith(("https:", "http:")):
        raise InputError(f"{shown}: folders and stars cannot be looked up on a web server; {_EXPECTED}")
    system, path = file_system(address)
    if "*" in address:
        files = [str(each) for each in patiently(shown, lambda: system.glob(path))]
    else:
        entries = patiently(shown, lambda: system.ls(path, detail=True))
        files = [str(entry["name"]) for entry in entries if entry["type"] == "file"]
        files = [each for each in files if is_visible(PurePosixPath(each).name, (".tar", PARQUET_SUFFIX))]
    if not files:
        raise InputError(f"{shown}: no such files; {_EXPECTED}")
    names = [PurePosixPath(each).name for each in files]
    if "*" not in address and names[0].lower().endswith(PARQUET_SUFFIX):
        check_shards(shown, names)
    return [str(system.unstrip_protocol(each)) for each in sorted(files)]


def _suffix(address: str) -> str:
    return PurePosixPath(urlsplit(address).path).suffix.lower()
