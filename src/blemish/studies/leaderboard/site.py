"""A leaderboard as a site of plain files: a page for each benchmark, model and corruption. It needs no server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from blemish.core.errors import InputError
from blemish.core.files import write_files
from blemish.core.folders import held_folder
from blemish.core.marks import is_ours
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.reports.page import page_environment
from blemish.reports.tables import number, signed
from blemish.studies.leaderboard.lines import TIERS, Board, Line, Ranking, group_of
from blemish.studies.leaderboard.ranked import slug
from blemish.studies.leaderboard.scatter import scatter
from blemish.studies.leaderboard.tables import board_csv, board_json, front_text
from blemish.version import VERSION

_TEMPLATES = "studies/leaderboard/templates"
_ADAPTATION = "adaptation"


@dataclass
class _Model:
    """A name, and all lines that have it."""

    name: str
    slug: str
    places: list[tuple[Board, Ranking, Line]] = field(default_factory=list)


def write_site(
    boards: Sequence[Board],
    folder: Path,
    *,
    title: str = "Leaderboard",
    level: float = 0.95,
    report: ProgressReport = tell_nobody,
) -> int:
    """Write the site of some boards into a folder, and say how many pages it has.

    Pages are written one by one, the first page last; a folder that holds the files of others is refused.
    """
    if not boards:
        raise InputError("no boards to show; expected at least one")
    index = folder / "index.html"
    if index.exists() and not is_ours(index):
        raise InputError(f"{index} is there already and was not made by blemish; choose another folder")
    site = _Site(boards, title, level)
    with held_folder(folder):
        pages = 0
        for path, _ in write_files(site.contents(folder, report), destination=folder):
            pages += path.suffix == ".html"
    return pages


class _Site:
    """The pages of some boards, one after the other."""

    def __init__(self, boards: Sequence[Board], title: str, level: float) -> None:
        self.boards, self.title, self.level = boards, title, level
        self.models = _models(boards)
        self.environment = page_environment()
        self.environment.globals["number"] = number
        self.environment.globals["signed"] = signed

    def contents(self, folder: Path, report: ProgressReport) -> Iterator[tuple[Path, bytes]]:
        """Files and what is in them; the first page comes last."""
        yield folder / "style.css", _file("reports", "page.css") + _file("studies.leaderboard", "leaderboard.css")
        yield folder / "script.js", _file("studies.leaderboard", "leaderboard.js")
        yield folder / "leaderboard.csv", board_csv(self.boards, level=self.level).encode("utf-8", "replace")
        yield folder / "leaderboard.json", board_json(self.boards, level=self.level).encode("utf-8", "replace")
        pages = [*self._board_pages(), *self._corruption_pages(), *self._model_pages()]
        for done, (name, template, data) in enumerate(pages):
            report(done, len(pages), "writing pages")
            yield folder / name, self._page(template, depth=name.count("/"), **data)
        names = _embedded([[model.name, model.slug] for model in self.models.values()])
        first = {"boards": self.boards, "heading": self.title, "names": names}
        yield folder / "index.html", self._page("index", depth=0, **first)

    def _page(self, template: str, *, depth: int, **data: Any) -> bytes:
        text = self.environment.get_template(f"{_TEMPLATES}/{template}.html.j2").render(
            root="../" * depth,
            site=self.title,
            version=VERSION,
            tiers=TIERS,
            percent=round(100 * self.level),
            pages=self.models,
            group_of=group_of,
            slug=slug,
            **data,
        )
        return text.encode("utf-8", "replace")

    def _board_pages(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for board in self.boards:
            charts = {ranking.identity: scatter(ranking) for ranking in board.rankings}
            fronts = {ranking.identity: front_text(ranking) for ranking in board.rankings}
            data = {"board": board, "heading": board.title, "charts": charts, "fronts": fronts}
            yield f"boards/{slug(board.benchmark)}.html", "board", data

    def _corruption_pages(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for board in self.boards:
            for corruption in _corruptions(board):
                parts = [part for ranking in board.rankings if (part := _of_corruption(ranking, corruption))]
                data = {"board": board, "heading": f"{corruption.replace('_', ' ')}", "parts": parts}
                yield f"corruptions/{slug(board.benchmark)}/{slug(corruption)}.html", "corruption", data

    def _model_pages(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for model in self.models.values():
            parts = [
                {"board": board, "ranking": ranking, "line": line, "grid": _grid(ranking, line), "worst": _worst(line)}
                for board, ranking, line in model.places
            ]
            yield f"models/{model.slug}.html", "model", {"heading": model.name, "parts": parts}


def _models(boards: Sequence[Board]) -> dict[str, _Model]:
    """The models of all boards by their names; methods of adaptation are none."""
    models: dict[str, _Model] = {}
    slugs = set[str]()
    for board in boards:
        for ranking in board.rankings if board.benchmark != _ADAPTATION else ():
            for line in ranking.lines:
                if line.model not in models:
                    name = slug(line.model)[:80]
                    name = name if name not in slugs else f"{name}-{len(slugs) + 1}"
                    slugs.add(name)
                    models[line.model] = _Model(line.model, name)
                models[line.model].places.append((board, ranking, line))
    return models


def _corruptions(board: Board) -> list[str]:
    return list(dict.fromkeys(name for ranking in board.rankings for name in ranking.corruptions))


def _of_corruption(ranking: Ranking, corruption: str) -> dict[str, Any] | None:
    """The lines of a ranking by their mean error under one corruption, with the cells of its severities."""
    texts = [text for text in ranking.cells if group_of(text) == corruption]
    if not texts:
        return None
    rows = [(sum(line.cells[text] for text in texts) / len(texts), line) for line in ranking.lines]
    rows.sort(key=lambda row: row[0])
    return {"ranking": ranking, "texts": texts, "rows": rows}


def _grid(ranking: Ranking, line: Line) -> Mapping[str, list[tuple[str, float]]]:
    """Errors by corruption: severities as texts, and errors in percent."""
    grid: dict[str, list[tuple[str, float]]] = {}
    for text in ranking.cells if line.cells else ():
        severity = text.rpartition("@")[2] if "+" not in text else text
        grid.setdefault(group_of(text), []).append((severity, line.cells[text]))
    return grid


def _worst(line: Line) -> tuple[str, float] | None:
    """The corruption with the largest mean error."""
    groups: dict[str, list[float]] = {}
    for text, error in line.cells.items():
        groups.setdefault(group_of(text), []).append(error)
    means = {name: sum(errors) / len(errors) for name, errors in groups.items()}
    worst = max(means, key=lambda name: means[name], default=None)
    return None if worst is None else (worst, means[worst])


def _embedded(value: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _file(package: str, name: str) -> bytes:
    return (resources.files(f"blemish.{package}") / "templates" / name).read_bytes()
