"""A picture of a ranking: clean error against the number that models are ranked by, and the front, as plain SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from blemish.reports.tables import number
from blemish.studies.leaderboard.lines import Line, Ranking

_WIDTH, _HEIGHT = 640, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 14, 12, 40
_FEWEST = 3
_LABELLED = 12


def scatter(ranking: Ranking) -> Markup | None:
    """The picture, or None where there is too little to see."""
    lines = [line for line in ranking.lines if line.clean is not None]
    if len(lines) < _FEWEST:
        return None
    horizontal = _axis([line.clean for line in lines if line.clean is not None])
    vertical = _axis([line.value.value for line in lines])

    def point_of(line: Line) -> tuple[float, float]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(line.clean or 0.0, horizontal)
        return x, _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * _share(line.value.value, vertical)

    front = sorted((line for line in lines if line.on_front), key=lambda line: line.clean or 0.0)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(point_of, front))
    title, middle = f"{ranking.metric} [{ranking.unit}]" if ranking.unit else ranking.metric, _HEIGHT / 2
    label = f"Clean error against {ranking.metric} of {len(lines)} models"
    parts = [
        f'<svg class="plot wide scatter" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">',
        *_grid(horizontal, vertical),
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">clean error [%]</text>',
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(title)}</text>',
        f'<polyline class="front" points="{path}"/>' if len(front) > 1 else "",
        *(_mark(line, *point_of(line), labelled=line.on_front and len(front) <= _LABELLED) for line in lines),
        "</svg>",
    ]
    return Markup("\n".join(part for part in parts if part))


def _mark(line: Line, x: float, y: float, *, labelled: bool) -> str:
    said = f"{line.model}: {number(line.value.value)}, clean {number(line.clean or 0.0)}, rank {line.rank}"
    kind = "dot on" if line.on_front else "dot"
    title = f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(said)}</title></circle>'
    if not labelled:
        return title
    left = x > _WIDTH * 0.7
    anchor, shift = ("end", -7) if left else ("start", 7)
    short = line.model if len(line.model) <= 28 else f"{line.model[:26]}…"
    return (
        f'{title}<text class="name" x="{x + shift:.1f}" y="{y - 6:.1f}" text-anchor="{anchor}">{escape(short)}</text>'
    )


def _grid(horizontal: Sequence[float], vertical: Sequence[float]) -> list[str]:
    parts = []
    for tick in horizontal:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * _share(tick, horizontal)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    for tick in vertical:
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * _share(tick, vertical)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    return parts


def _share(value: float, axis: Sequence[float]) -> float:
    return (value - axis[0]) / (axis[-1] - axis[0])


def _axis(values: Sequence[float]) -> list[float]:
    """Round numbers around the values, about five."""
    low, high = min(values), max(values)
    wide = max(high - low, 1e-6)
    size = 10.0 ** math.floor(math.log10(wide / 4))
    step = next(s for s in (size, 2 * size, 5 * size, 10 * size) if wide / s <= 6)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(step * k, 10) for k in range(first, max(last, first + 1) + 1)]
