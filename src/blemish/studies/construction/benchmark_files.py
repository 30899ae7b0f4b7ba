"""Constructed benchmarks as the benchmark files that everything else reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.benchmarks.files import benchmark_toml, load_benchmark
from blemish.core.errors import InputError, StorageError
from blemish.core.files import STAGING, sync_folder, write_bytes, write_files
from blemish.core.folders import part_folder
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import check_severity, severity_text


def make_benchmark(
    name: str,
    corruptions: Sequence[str],
    *,
    title: str = "",
    metric: str = "residual",
    severities: Sequence[float] | None = None,
    protocol: Protocol | None = None,
    catalog: Catalog = catalog,
) -> Benchmark:
    """A benchmark of these corruptions, at the severities with which each was published; ``severities`` overrides them.

    That is 1 to 5 for ImageNet-C, a severity drawn from 1 to 5 for every image for ``noc:``, and 5 for ``syn2nat:``.
    """
    conditions = [
        parse_condition(f"{corruption}@{level}", catalog=catalog)
        for corruption in corruptions
        for level in _levels(catalog[corruption], severities)
    ]
    return Benchmark(
        name=name, title=title, metric=metric, conditions=tuple(conditions), protocol=protocol or Protocol()
    )


def _levels(corruption: Corruption, severities: Sequence[float] | None) -> list[str]:
    """The severities as conditions write them: those given, the only one there is, or those it was published with."""
    chosen: Sequence[float] | str = corruption.severities if severities is None else severities
    if severities is None and corruption.only_severity is not None:
        chosen = [corruption.only_severity]
    return [chosen] if isinstance(chosen, str) else [severity_text(check_severity(level)) for level in chosen]


def write_benchmark(benchmark: Benchmark, path: Path) -> None:
    """Write a benchmark file."""
    if path.suffix.lower() != ".toml":
        raise InputError(f"{path}: expected a name that ends in .toml")
    write_bytes(path, benchmark_toml(benchmark).encode())


def write_groups(groups: Mapping[str, Sequence[Benchmark]], folder: Path) -> None:
    """Write groups of benchmarks, each to ``folder/group/name.toml`` (to ``folder`` itself for the group "").

    The folder must not exist or be empty; it appears only when all files are written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} is not an empty folder; expected a new one, so that no other benchmarks get mixed in"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(folder) as unfinished:
            whole = unfinished / "whole"
            for entry in (STAGING, *(f"whole/{group}" for group in groups)):
                (unfinished / entry).mkdir(parents=True, exist_ok=True)
            files = (
                (whole / group / f"{benchmark.name}.toml", benchmark_toml(benchmark).encode())
                for group, benchmarks in groups.items()
                for benchmark in benchmarks
            )
            for _ in write_files(files, destination=unfinished):
                pass
            if folder.exists():
                folder.rmdir()
            whole.rename(folder)
            sync_folder(folder.parent)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror or error}") from error


def read_group(path: Path, *, catalog: Catalog = catalog) -> list[tuple[str, ...]]:
    """The corruptions of a benchmark file, or of every benchmark file directly in a folder, by name."""
    if not path.is_dir():
        return [load_benchmark(path, catalog=catalog).groups]
    files = sorted(path.glob("*.toml"))
    if not files:
        inside = sorted(entry.name for entry in path.iterdir() if entry.is_dir())
        hint = f"; did you mean one of its folders {', '.join(inside[:3])}?" if inside else ""
        raise InputError(f"{path}: no .toml files; expected benchmark files{hint}")
    return [load_benchmark(file, catalog=catalog).groups for file in files]
