"""Files of many pictures beside other things: tables and archives, written again with corrupted pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.reading import is_folder
from blemish.data.folders import folder_entries
from blemish.data.hugging_face import PREFIX, is_saved
from blemish.data.image_files import PARQUET_SUFFIX, is_visible
from blemish.export.containers.base import Container

__all__ = ["Container", "find_container"]


def find_container(source: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Container | None:
    """What a path or an address holds, if it is a container: Parquet, a Hugging Face dataset, TSV, or tar shards."""
    opened = os.fspath(source)
    chosen = None if columns is None else tuple(columns)
    kind = _kind(opened)
    if chosen is not None and kind not in ("hugging face", PARQUET_SUFFIX):
        raise InputError(f"columns given for {opened}; expected them for Parquet files and Hugging Face datasets")
    if kind == "hugging face":
        from blemish.export.containers.hugging_face import HuggingFaceRows

        return HuggingFaceRows(opened, chosen)
    if kind == PARQUET_SUFFIX:
        from blemish.export.containers.parquet import ParquetFiles

        return ParquetFiles(opened, chosen)
    if kind == ".tar":
        from blemish.export.containers.webdataset import TarShards

        return TarShards.of(opened)
    if kind == ".tsv":
        from blemish.export.containers.tsv import TsvFile

        return TsvFile(opened)
    return None


def _kind(source: str) -> str | None:
    """How the files are called, or ``hugging face``."""
    if source.startswith(PREFIX):
        return "hugging face"
    path = Path(source)
    if not is_folder(path):
        return path.suffix.lower()
    if is_saved(path):
        return "hugging face"
    names = [entry.name for entry in folder_entries(path)]
    held = {suffix for suffix in (PARQUET_SUFFIX, ".tar") if any(is_visible(name, suffix) for name in names)}
    if len(held) > 1:
        raise InputError(f"{source}: holds both .tar and .parquet files; expected one of the two kinds")
    return next(iter(held), None)
