"""The perceptual axis as a figure: distances by severity, or the errors of models against distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blemish.core.optional import optional_import
from blemish.reports.figure_files import save_figure
from blemish.studies.perceptual.curves import ErrorCurves
from blemish.studies.perceptual.distances import Distances, Measure

_INK, _QUIET, _RULE = "#22252b", "#7a7f89", "#d9d6cf"
_COLOURS = ("#c8102e", "#1c7ed6", "#2b8a3e", "#f08c00", "#7048e8", "#0b7285", "#d6336c", "#5c940d", "#495057")


def distance_figure(distances: Sequence[Distances], measure: Measure, catalogue: Mapping[str, str], path: Path) -> None:
    """Mean distance against severity: a line per corruption, in the colour of its catalogue."""
    figure, (axes,) = _panels(1)
    colours = _colours(catalogue.values())
    groups: dict[str, dict[float, float]] = {}
    for item in distances:
        if item.condition.severity is not None:
            points = groups.setdefault(item.condition.group, {0.0: 0.0})
            points[item.condition.severity] = item.mean(measure.name).value
    for group, points in groups.items():
        places = sorted(points)
        colour = colours[catalogue[group]]
        axes.plot(places, [points[s] for s in places], "-o", color=colour, markersize=3, linewidth=1, alpha=0.8)
    _finish(axes, "severity", f"{measure.title}, mean over images", colours)
    save_figure(figure, path, dpi=150)


def error_figure(models: Sequence[ErrorCurves], measure: Measure, catalogue: Mapping[str, str], path: Path) -> None:
    """Error against distance: a panel per model, a line per corruption, in the colour of its catalogue."""
    figure, panels = _panels(len(models))
    colours = _colours(catalogue.values())
    for axes, curves in zip(panels, models, strict=True):
        for curve in curves.curves:
            errors = [100 * error.value for error in curve.errors]
            colour = colours[catalogue[curve.corruption]]
            axes.plot(curve.distances, errors, "-o", color=colour, markersize=3, linewidth=1, alpha=0.8)
        axes.axvline(curves.common[0].up_to, color=_QUIET, linewidth=0.8, linestyle="--")
        axes.set_title(curves.model, fontsize=10, color=_INK)
        axes.set_ylim(0, 100)
        _finish(axes, f"{measure.title}, mean over images", "error, %", colours if axes is panels[-1] else {})
    save_figure(figure, path, dpi=150)


def _panels(count: int) -> tuple[Any, Any]:
    optional_import("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2 + 4.4 * count, 4.2), layout="constrained", facecolor="white")
    return figure, figure.subplots(1, count, squeeze=False, sharey=True)[0]


def _colours(catalogues: Any) -> dict[str, str]:
    names = list(dict.fromkeys(catalogues))
    return {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}


def _finish(axes: Any, xlabel: str, ylabel: str, colours: Mapping[str, str]) -> None:
    axes.set_xlabel(xlabel, color=_INK)
    axes.set_ylabel(ylabel, color=_INK)
    axes.set_xlim(0, None)
    axes.grid(color=_RULE, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=_QUIET, labelcolor=_INK)
    if len(colours) > 1:
        for name, colour in colours.items():
            axes.plot([], [], color=colour, label=name)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
