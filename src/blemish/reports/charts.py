"""The charts of the page as Plotly's own descriptions; colours are named by role and filled in by the page.

Labels come from data and are escaped, because Plotly reads them as a kind of HTML.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blemish.core.statistics import Estimate
from blemish.metrics.calibration import Reliability
from blemish.reports.page import Chart, visible

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


@dataclass(frozen=True)
class Point:
    """A model in a plane: two numbers with their intervals; ``series`` gives its colour and mark.

    ``label`` is what stands beside the mark, a number or a letter: names would lie over each other.
    """

    name: str
    label: str
    series: int
    x: Estimate
    y: Estimate


def chart_text(text: str) -> str:
    """A text for a chart: Plotly reads labels as a small subset of HTML.

    >>> chart_text("<b>cat</b>")
    '&lt;b&gt;cat&lt;/b&gt;'
    """
    return html.escape(visible(text), quote=False)


def _line(name: str, series: int, x: Sequence[float], y: Sequence[float], **more: Any) -> dict[str, Any]:
    colour = f"$series-{series % 8}"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": chart_text(name),
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 2, "dash": _DASHES[series % 8]},
        "marker": {"color": colour, "size": 6, "symbol": _SYMBOLS[series % 8]},
        **more,
    }


def _errors(estimates: Sequence[Estimate], colour: str) -> dict[str, Any]:
    """Whiskers from the low to the high end of each interval."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, estimate.high - estimate.value) for estimate in estimates],
        "arrayminus": [max(0.0, estimate.value - estimate.low) for estimate in estimates],
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def curve(
    identity: str, title: str, lines: Sequence[tuple[str, int, Mapping[float, Estimate]]], *, top: float = 100
) -> Chart:
    """Error against severity, one line per model; severity 0 is the clean images."""
    data = []
    for name, series, points in lines:
        x = sorted(points)
        estimates = [points[level] for level in x]
        values = [estimate.value for estimate in estimates]
        hover = "%{fullData.name}: %{y:.1f} % at severity %{x}<extra></extra>"
        data.append(
            _line(name, series, x, values, error_y=_errors(estimates, f"$series-{series % 8}"), hovertemplate=hover)
        )
    words = "; ".join(
        f"{name}: " + ", ".join(f"{points[level].value:.0f}" for level in sorted(points)) for name, _, points in lines
    )
    layout = {
        "xaxis": {"tickmode": "linear", "dtick": 1, "range": [-0.3, 5.3]},
        "yaxis": {"range": [0, 1.03 * top], "dtick": top / 2},
        "margin": {"l": 30, "r": 6, "t": 6, "b": 24},
    }
    return Chart(identity, title, f"Error in per cent from clean to the highest severity. {words}.", data, layout)


def bars(identity: str, title: str, groups: Sequence[str], models: Mapping[str, Sequence[Estimate | None]]) -> Chart:
    """Groups of horizontal bars with intervals, one bar per model in each group."""
    data = []
    for series, (name, estimates) in enumerate(models.items()):
        present = [
            (chart_text(group), value) for group, value in zip(groups, estimates, strict=True) if value is not None
        ]
        colour = f"$series-{series % 8}"
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": chart_text(name),
                "y": [group for group, _ in present],
                "x": [value.value for _, value in present],
                "error_x": _errors([value for _, value in present], "$ink"),
                "marker": {"color": colour},
                "hovertemplate": "%{fullData.name}, %{y}: %{x:.1f} %<extra></extra>",
            }
        )
    layout = {
        "barmode": "group",
        "bargap": 0.35,
        "xaxis": {"rangemode": "tozero", "ticksuffix": " %"},
        "yaxis": {"autorange": "reversed", "type": "category", "gridcolor": "rgba(0,0,0,0)"},
        "margin": {"l": 90, "r": 16, "t": 6, "b": 30},
    }
    height = 60 + len(groups) * (24 + 16 * len(models))
    return Chart(identity, title, "The numbers are in the table below.", data, layout, height)


def reliability_chart(identity: str, title: str, lines: Sequence[tuple[str, int, Reliability]]) -> Chart:
    """Accuracy against confidence in bins; on the diagonal, confidence can be taken at its word."""
    diagonal: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [0, 100],
        "y": [0, 100],
        "line": {"color": "$quiet", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
    }
    data: list[dict[str, Any]] = [diagonal]
    for name, series, bins in lines:
        full = bins.counts > 0
        sizes = 4 + 7 * np.sqrt(bins.counts[full] / bins.counts.max())
        line = _line(
            name,
            series,
            (100 * bins.confidence[full]).tolist(),
            (100 * bins.accuracy[full]).tolist(),
            customdata=bins.counts[full].tolist(),
            hovertemplate="%{fullData.name}: %{x:.0f} % sure, %{y:.0f} % right (%{customdata} answers)<extra></extra>",
        )
        line["marker"]["size"] = sizes.round(1).tolist()
        data.append(line)
    layout = {
        "xaxis": {"range": [0, 102], "title": {"text": "confidence, %"}, "nticks": 6},
        "yaxis": {"range": [0, 102], "title": {"text": "accuracy, %"}, "nticks": 6},
        "margin": {"l": 50, "r": 10, "t": 8, "b": 44},
    }
    return Chart(identity, title, "Accuracy against confidence; the numbers are in the table below.", data, layout, 300)


def scatter(
    identity: str,
    title: str,
    points: Sequence[Point],
    quiet: Sequence[tuple[str, str, float, float]] = (),
    *,
    titles: tuple[str, str],
    lines: Sequence[dict[str, Any]] = (),
) -> Chart:
    """Models as marks in a plane, and others, given as name, label and two numbers, as small gray ones."""
    others: dict[str, Any] = {
        "type": "scatter",
        "x": [x for _, _, x, _ in quiet],
        "y": [y for _, _, _, y in quiet],
        "marker": {"color": "$quiet", "size": 5, "opacity": 0.55},
        **_labels([(name, label) for name, label, _, _ in quiet]),
    }
    data = [*([others] if quiet else []), *lines]
    for point in points:
        colour = f"$series-{point.series % 8}"
        data.append(
            {
                "type": "scatter",
                "x": [point.x.value],
                "y": [point.y.value],
                "error_x": _errors([point.x], colour),
                "error_y": _errors([point.y], colour),
                "marker": {"color": colour, "size": 10, "symbol": _SYMBOLS[point.series % 8]},
                **_labels([(point.name, point.label)]),
                "textfont": {"color": "$ink", "size": 13},
            }
        )
    layout = {
        "xaxis": {"title": {"text": titles[0]}},
        "yaxis": {"title": {"text": titles[1]}},
        "margin": {"l": 56, "r": 16, "t": 12, "b": 46},
    }
    words = "; ".join(f"{point.name}: {point.x.value:.1f} and {point.y.value:.1f}" for point in points)
    return Chart(identity, title, f"{titles[0]} and {titles[1]}. {words}.", data, layout, 320)


def _labels(names: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Labels beside marks, and the names that they stand for when they are pointed at."""
    return {
        "mode": "markers+text" if any(label for _, label in names) else "markers",
        "text": [chart_text(label) for _, label in names],
        "textposition": "top right",
        "cliponaxis": False,
        "hovertext": [chart_text(name) for name, _ in names],
        "hovertemplate": "%{hovertext}: %{x:.1f}, %{y:.1f}<extra></extra>",
    }
