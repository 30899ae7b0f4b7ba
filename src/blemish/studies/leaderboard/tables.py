"""Boards as tables for people and papers, and as CSV and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from blemish.core.csv_files import csv_text
from blemish.core.marks import MADE_WITH
from blemish.reports.tables import Cell, Table, number, signed
from blemish.studies.leaderboard.lines import TIERS, Board, Line, Ranking

_NEAR = "≈: its interval contains the number of the model above, or below."


def ranking_table(ranking: Ranking, *, top: int | None = None) -> Table:
    """A ranking as a table; columns that say nothing of anybody are left out."""
    shown = ranking.lines if top is None else ranking.lines[:top]
    columns = [column for column in _columns(ranking) if any(str(cell) for cell in column[1:])]
    cells = [column[1 : len(shown) + 1] for column in columns]
    notes = [
        f"{TIERS[ranking.tier]} {ranking.how}",
        *([_NEAR] if any(line.near for line in shown) else []),
        *([front_text(ranking)] if any(line.on_front for line in shown) else []),
        *ranking.notes,
        *([f"It can {'; '.join(ranking.can)}."] if ranking.can else []),
        *([f"It cannot {'; '.join(ranking.cannot)}."] if ranking.cannot else []),
        f"Source: {ranking.source}.",
        "; ".join(f"{name}: {text}" for name, text in ranking.protocol.items()) + ".",
    ]
    if len(shown) < len(ranking.lines):
        notes.insert(0, f"The first {len(shown)} of {len(ranking.lines)} models (--top 0 shows all).")
    heads = tuple(str(column[0]) for column in columns)
    return Table(f"{ranking.title} ({ranking.tier})", heads, tuple(zip(*cells, strict=True)), notes=tuple(notes))


def front_text(ranking: Ranking) -> str:
    """What the mark of models on the front means."""
    timed = all(line.speed is not None for line in ranking.lines)
    return f"•: no other model here is better in clean error{', in speed' if timed else ''} and in this number at once."


def _columns(ranking: Ranking) -> list[list[Any]]:
    lines = ranking.lines
    unit = f", {ranking.unit}" if ranking.unit else ""
    return [
        ["model", *(Cell(f"{line.model}{' •' if line.on_front else ''}") for line in lines)],
        ["rank", *(Cell(line.rank) for line in lines)],
        ["alike", *(Cell(line.letters) for line in lines)],
        [f"{ranking.metric}{unit} ({ranking.direction})", *(_value(line) for line in lines)],
        ["≈", *(Cell("≈" if line.near else "") for line in lines)],
        ["clean error, %", *(_number(line.clean) for line in lines)],
        ["effective robustness, points", *(Cell("" if e is None else signed(e)) for e in _effective(lines))],
        ["parameters, M", *(_number(None if p is None else p / 1e6) for p in (line.parameters for line in lines))],
        ["images/s", *(_number(None if line.speed is None else line.speed.images_per_second, 0) for line in lines)],
        ["web-scale", *(Cell({True: "yes", False: "no", None: ""}[line.web_scale]) for line in lines)],
    ]


def _effective(lines: Sequence[Line]) -> Iterator[float | None]:
    return (line.effective for line in lines)


def _value(line: Line) -> Cell:
    interval = f"{number(line.value.low)}, {number(line.value.high)}" if line.known else ""
    return Cell(number(line.value.value), marked=bool(line.trained_on), interval=interval)


def _number(value: float | None, digits: int = 1) -> Cell:
    return Cell("" if value is None else number(value, digits))


def board_tables(boards: Sequence[Board], *, top: int | None = None) -> list[Table]:
    """All rankings of all boards."""
    return [ranking_table(ranking, top=top) for board in boards for ranking in board.rankings]


def board_csv(boards: Sequence[Board], *, level: float, top: int | None = None) -> str:
    """A row for each model of each ranking, with all digits."""
    rows = [
        {
            "benchmark": board.benchmark,
            "ranking": ranking.identity,
            "tier": ranking.tier,
            "model": line.model,
            "rank_low": line.low,
            "rank_high": line.high,
            "alike": line.letters,
            "metric": ranking.metric,
            "unit": ranking.unit,
            "value": line.value.value,
            "low": line.value.low if line.known else None,
            "high": line.value.high if line.known else None,
            "level": level if line.known else None,
            "clean_error": line.clean,
            "effective_robustness": line.effective,
            "parameters": line.parameters,
            "training_data": line.training_data,
            "web_scale": {True: "yes", False: "no", None: None}[line.web_scale],
            "images_per_second": None if line.speed is None else line.speed.images_per_second,
            "speed_on": None if line.speed is None else line.speed.on,
            "on_front": "yes" if line.on_front else None,
            "interval_contains": "; ".join(line.near),
            "trained_on": "; ".join(line.trained_on),
            "source": ranking.source,
            "seal": line.seal,
        }
        for board in boards
        for ranking in board.rankings
        for line in ranking.lines[:top]
    ]
    return csv_text([rows[0].keys(), *(row.values() for row in rows)]) if rows else ""


def board_json(boards: Sequence[Board], *, level: float) -> str:
    """Everything, for other programs."""
    content = {
        "made_with": MADE_WITH,
        "level": level,
        "boards": [
            {
                "benchmark": board.benchmark,
                "title": board.title,
                "rankings": [_plain(asdict(ranking)) for ranking in board.rankings],
            }
            for board in boards
        ],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
