"""A leaderboard: entries of a folder and published tables, by benchmark, with filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from blemish.benchmarks.files import built_in, load_benchmark
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.catalog import hint
from blemish.metrics.imports import adaptation_tables, import_infos, imported_table
from blemish.studies.leaderboard.entry import Entry, ModelEntry, TableEntry
from blemish.studies.leaderboard.lines import TIERS, Board, Line, Ranking, Tier
from blemish.studies.leaderboard.ranked import (
    ranking_of_adaptation,
    ranking_of_table,
    rankings_of_entries,
)

ADAPTATION = "adaptation"
"""The board, and the import, of tables of test-time adaptation."""


def import_names() -> tuple[str, ...]:
    """The published tables that come with the library."""
    return (*import_infos(), ADAPTATION)


def named_imports(name: str) -> list[str]:
    """The tables that a name means: one of them, or all of a source such as ``robustbench``."""
    return [known for known in import_names() if known == name or known.startswith(f"{name}/")] or [name]


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which rankings and models are shown; ranks stay those among all models of a ranking."""

    benchmark: str | None = None
    tier: Tier | None = None
    protocol: str | None = None
    model: str | None = None
    max_parameters: int | None = None
    training_data: str | None = None
    web_scale: bool | None = None

    def ranking(self, ranking: Ranking) -> bool:
        """Whether a ranking is shown."""
        said = " ".join([ranking.title, ranking.source, *ranking.protocol.values()]).lower()
        return (
            self.benchmark in (None, ranking.benchmark)
            and self.tier in (None, ranking.tier)
            and (self.protocol is None or self.protocol.lower() in said)
        )

    def line(self, line: Line) -> bool:
        """Whether a model is shown; one of which a number is not known is not, where that is asked for."""
        return (
            (self.model is None or self.model.lower() in line.model.lower())
            and (self.max_parameters is None or (line.parameters or self.max_parameters + 1) <= self.max_parameters)
            and (self.training_data is None or self.training_data.lower() in line.training_data.lower())
            and (self.web_scale is None or line.web_scale is self.web_scale)
        )


def boards_of(
    entries: Sequence[Entry],
    *,
    imports: Iterable[str] = (),
    filters: Filters = Filters(),  # noqa: B008  # frozen
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> list[Board]:
    """The boards of some entries and of published tables by name (`import_names`), those of entries first."""
    tables = [entry.table(level) for entry in entries if isinstance(entry, TableEntry)]
    names = list(imports)
    if strange := [name for name in names if name not in import_names()]:
        raise InputError(f"published table {strange[0]!r}; {hint(strange[0], list(import_names()))}")
    _check_benchmark(filters.benchmark, entries)
    infos = {name: import_infos()[name] for name in names if name != ADAPTATION}
    named = [name for name, info in infos.items() if filters.benchmark in (None, info.benchmark)]
    tables += [imported_table(name, level=level) for name in named]
    models = [entry for entry in entries if isinstance(entry, ModelEntry)]
    rankings = rankings_of_entries(models, level=level, replicates=replicates, report=report)
    rankings += [ranking_of_table(table, level=level) for table in tables]
    if ADAPTATION in names and filters.benchmark in (None, ADAPTATION):
        rankings += [ranking_of_adaptation(table) for table in adaptation_tables()]
    rankings = _with_own_names([ranking for ranking in rankings if filters.ranking(ranking)])
    return _by_benchmark(rankings, filters)


def benchmark_of(entry: Entry) -> str:
    """The benchmark of an entry: of a part of one, the whole."""
    if isinstance(entry, TableEntry):
        return entry.header.table.benchmark
    whole = entry.header.benchmark.part_of
    return entry.header.benchmark.name if whole is None else whole.name


def _check_benchmark(name: str | None, entries: Sequence[Entry]) -> None:
    known = {
        *(benchmark_of(entry) for entry in entries),
        *(info.benchmark for info in import_infos().values()),
        ADAPTATION,
    }
    if name is not None and name not in known:
        raise InputError(f"no entries or tables of benchmark {name!r}; {hint(name, sorted(known))}")


def _with_own_names(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Rankings whose identities differ, which names of tables that anyone may give need not."""
    seen: dict[str, int] = {}
    renamed = []
    for ranking in rankings:
        count = seen[ranking.identity] = seen.get(ranking.identity, 0) + 1
        renamed.append(ranking if count == 1 else replace(ranking, identity=f"{ranking.identity}-{count}"))
    return renamed


def _by_benchmark(rankings: Sequence[Ranking], filters: Filters) -> list[Board]:
    order = list(TIERS)
    boards: dict[str, list[Ranking]] = {}
    for ranking in rankings:
        lines = tuple(line for line in ranking.lines if filters.line(line))
        if lines or (not ranking.lines and ranking.notes):
            boards.setdefault(ranking.benchmark, []).append(replace(ranking, lines=lines))
    return [
        Board(name, title_of(name), sorted(members, key=lambda ranking: order.index(ranking.tier)))
        for name, members in boards.items()
    ]


def title_of(benchmark: str) -> str:
    """What a benchmark is called, where it is one of ours; else its name."""
    others = {
        "imagenet-3dcc": "ImageNet-3DCC: common corruptions in three dimensions",
        "imagenet-a": "ImageNet-A: photographs that a ResNet-50 got wrong",
        "imagenet-r": "ImageNet-R: renditions",
        "imagenet-sketch": "ImageNet-Sketch: drawings",
        "imagenet-v2": "ImageNet-V2: new photographs",
        "adaptation": "Test-time adaptation",
    }
    return load_benchmark(benchmark).title if benchmark in built_in() else others.get(benchmark, benchmark)
