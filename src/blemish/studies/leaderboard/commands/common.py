"""What the commands of leaderboards share: which entries, which published tables, and which models are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport
from blemish.metrics.imports import import_infos
from blemish.studies.leaderboard.board import Filters, benchmark_of, boards_of, import_names, named_imports
from blemish.studies.leaderboard.entry import Entry, find_entries
from blemish.studies.leaderboard.lines import Board
from blemish.terminal.progress import with_progress
from blemish.terminal.results import Level, Replicates

_FILTERS = "Filters"
_ALL, _NONE = "all", "none"

BoardFolder = Annotated[
    Path | None, typer.Argument(metavar="BOARD", help="A folder of entries. Without one, published tables alone.")
]


class TierName(Enum):
    """The tiers, as options take them."""

    RECOMPUTABLE = "recomputable"
    PER_CELL = "per-cell"
    CLAIMED = "claimed"


class YesNo(Enum):
    """An answer."""

    YES = "yes"
    NO = "no"


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """Which tables and models are shown, and how numbers are computed."""

    published: Annotated[
        list[str] | None,
        typer.Option(
            "--published",
            metavar="NAME",
            help="A published table to show (blemish leaderboard tables lists them), a source such as timm, all, or "
            "none. May be repeated. Default: those of the benchmarks that there are entries of; without entries, all.",
        ),
    ] = None
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", "-b", rich_help_panel=_FILTERS, help="Only this benchmark.")
    ] = None
    tier: Annotated[TierName | None, typer.Option(rich_help_panel=_FILTERS, help="Only this tier.")] = None
    protocol: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_FILTERS, help="Only rankings whose protocol, title or source says this: stored, 5,000 …"
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option("--name", metavar="TEXT", rich_help_panel=_FILTERS, help="Only models with this in the name."),
    ] = None
    max_parameters: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=_FILTERS, metavar="MILLIONS", help="Only models known to have no more parameters."
        ),
    ] = None
    training_data: Annotated[
        str | None, typer.Option(rich_help_panel=_FILTERS, help="Only models trained on this: ImageNet-21k, LAION …")
    ] = None
    web_scale: Annotated[
        YesNo | None,
        typer.Option(rich_help_panel=_FILTERS, help="Only models known to be trained on web-scale data, or not to be."),
    ] = None
    level: Level = 0.95
    replicates: Replicates = 1000

    @property
    def filters(self) -> Filters:
        """What is shown."""
        return Filters(
            benchmark=self.benchmark,
            tier=None if self.tier is None else self.tier.value,
            protocol=self.protocol,
            model=self.model,
            max_parameters=None if self.max_parameters is None else round(1e6 * self.max_parameters),
            training_data=self.training_data,
            web_scale=None if self.web_scale is None else self.web_scale is YesNo.YES,
        )

    def boards(self, board: Path | None, title: str) -> list[Board]:
        """The boards that were asked for, with progress shown."""
        entries = [] if board is None else find_entries(board)
        imports = self._imports(entries)

        def work(report: ProgressReport) -> list[Board]:
            return boards_of(
                entries,
                imports=imports,
                filters=self.filters,
                level=self.level,
                replicates=self.replicates,
                report=report,
            )

        boards = with_progress(title, work, first="reading entries", unit=None, kept="nothing is changed.")
        if not boards:
            raise InputError("no model fits the filters; expected at least one")
        return boards

    def _imports(self, entries: list[Entry]) -> list[str]:
        asked = self.published or []
        if _NONE in asked and len(asked) > 1:
            raise InputError("--published none together with others; expected the one or the others")
        if _ALL in asked or (not asked and not entries):
            return list(import_names())
        if asked:
            named = [each for name in asked for each in named_imports(name)]
            return [] if asked == [_NONE] else list(dict.fromkeys(named))
        own = {benchmark_of(entry) for entry in entries}
        return [name for name, info in import_infos().items() if info.benchmark in own]
