"""Figures of benchmark construction: overlap matrices, sweeps, balance, agreement, natural correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.studies.construction.categories import Categories
from blemish.studies.construction.compare import Agreement
from blemish.studies.construction.coverage import Balance
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.natural import GroupCorrelation
from blemish.studies.construction.selection import Swept
from blemish.studies.construction.severities import SeverityRange

_INK, _QUIET, _ACCENT, _SECOND, _PAPER = "#22252b", "#7a7f89", "#b5451f", "#2f6f8f", "#ffffff"
SAVING = {"dpi": 160, "bbox_inches": "tight"}
"""How these figures are saved."""

_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "svg.hashsalt": "blemish",
}


def _figure(width: float, height: float, columns: int = 1, **settings: Any) -> tuple[Any, Any]:
    """A figure with axes, outside any display and without touching the user's own plotting."""
    matplotlib = optional_import("matplotlib")
    module = optional_import("matplotlib.figure")
    with matplotlib.rc_context(_STYLE):
        figure = module.Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(1, columns, **settings)


def overlap_figure(
    matrix: OverlapMatrix,
    *,
    categories: Categories | None = None,
    chosen: Sequence[str] = (),
    title: str = "Overlapping scores",
) -> Any:
    """The matrix as a heat map; with ``categories`` ordered by them, each framed; names in ``chosen`` stand out."""
    if categories is not None:
        matrix = matrix.only(categories.corruptions)
    side = max(3.2, _cell(len(matrix.names)) * len(matrix.names) + 1.4)
    figure, axes = _figure(side + 1.2, side)
    _heat(figure, axes, matrix)
    if categories is not None:
        _frames(axes, categories)
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        for label in labels:
            if label.get_text() in chosen:
                label.set(color=_ACCENT, fontweight="bold")
    axes.set_title(title, loc="left")
    return figure


_WITH_NUMBERS = 45  # corruptions; the cells of more have no numbers and are smaller, with names that still can be read


def _cell(count: int) -> float:
    """The side of a cell, inches."""
    return 0.36 if count <= _WITH_NUMBERS else 0.11


def _heat(figure: Any, axes: Any, matrix: OverlapMatrix) -> None:
    count = len(matrix.names)
    axes.set_facecolor("#e9e6e0")  # shows through where a score is undefined
    picture = axes.imshow(np.ma.masked_invalid(matrix.scores), vmin=0, vmax=1, cmap="YlGnBu")
    axes.set_xticks(range(count), matrix.names, rotation=90)
    axes.set_yticks(range(count), matrix.names)
    axes.tick_params(length=0, **({} if count <= _WITH_NUMBERS else {"labelsize": 6}))
    for i in range(count if count <= _WITH_NUMBERS else 0):
        for j in range(count):
            value = matrix.scores[i, j]
            text = "?" if math.isnan(value) else _short(value)
            colour = _PAPER if value > 0.55 else _INK
            axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color=colour)
    figure.colorbar(picture, ax=axes, shrink=0.6, label="overlapping score")


def _short(value: float) -> str:
    """Two digits without the leading zero, which is all that fits in a cell."""
    return f"{value:.2f}".removeprefix("0") if value >= 0.005 else "·"


def _frames(axes: Any, categories: Categories) -> None:
    patches = optional_import("matplotlib.patches")
    start = 0
    for members in categories.members.values():
        size = len(members)
        corner = (start - 0.5, start - 0.5)
        axes.add_patch(
            patches.Rectangle(corner, size, size, fill=False, edgecolor=_ACCENT, linewidth=1.6, clip_on=False)
        )
        start += size


def tree_figure(matrix: OverlapMatrix, *, categories: Categories | None = None) -> Any:
    """A dendrogram of the corruptions: average linkage of 1 − correlation of their overlap vectors."""
    if matrix.undefined:
        raise InputError("some scores are undefined; expected a matrix without such, for example its part .defined()")
    hierarchy = optional_import("scipy.cluster.hierarchy")
    distances = 1 - np.atleast_2d(np.corrcoef(matrix.scores))
    upper = distances[np.triu_indices(len(matrix.names), k=1)]
    links = hierarchy.linkage(np.maximum(upper, 0), method="average")
    figure, axes = _figure(6.5, max(2.5, 0.24 * len(matrix.names) + 1))
    with optional_import("matplotlib").rc_context(_STYLE):
        hierarchy.dendrogram(
            links,
            labels=list(matrix.names),
            orientation="left",
            ax=axes,
            color_threshold=0,
            above_threshold_color=_QUIET,
        )
    axes.tick_params(axis="y", labelsize=8)
    if categories is not None:
        palette = optional_import("matplotlib").colormaps["Dark2"]
        for label in axes.get_yticklabels():
            number = list(categories.members).index(categories.of(label.get_text()))
            label.set_color(palette(number % palette.N))
    axes.set_xlabel("1 − correlation of overlap vectors")
    axes.set_title("Corruptions that overlap alike", loc="left")
    axes.spines["left"].set_visible(False)
    return figure


def sweep_figure(swept: Sequence[Swept]) -> Any:
    """Size and mean overlap of the selected benchmark against the threshold."""
    selected = [(item.threshold, item.selection) for item in swept if item.selection is not None]
    if not selected:
        raise InputError("no threshold gave a benchmark; expected at least one to draw")
    figure, (left, right) = _figure(8, 3.2, columns=2)
    thresholds = [threshold for threshold, _ in selected]
    left.step(thresholds, [s.size for _, s in selected], where="post", color=_SECOND)
    left.plot(thresholds, [s.size for _, s in selected], "o", color=_SECOND)
    for threshold, selection in selected:
        left.annotate(str(selection.size), (threshold, selection.size), (0, 6), textcoords="offset points", ha="center")
    left.set(xlabel="overlapping threshold", ylabel="corruptions", title="Size of the benchmark")
    left.set_ylim(0, 1.15 * max(s.size for _, s in selected))
    right.step(thresholds, [s.mean for _, s in selected], where="post", color=_ACCENT)
    right.plot(thresholds, [s.mean for _, s in selected], "o", color=_ACCENT, clip_on=False)
    right.set(xlabel="overlapping threshold", ylabel="mean score", title="Overlap within it")
    right.set_ylim(bottom=0)
    return figure


def balance_figure(balance: Balance, *, title: str = "Balance") -> Any:
    """The mCE of each one-corruption model, with the mean and the standard deviation around it."""
    names = sorted(balance.scores, key=lambda name: balance.scores[name])
    values = [balance.scores[name] for name in names]
    figure, axes = _figure(6.5, max(2.2, 0.26 * len(names) + 1))
    mean = float(np.mean(values))
    axes.axvspan(mean - balance.std, mean + balance.std, color=_SECOND, alpha=0.15, linewidth=0)
    axes.axvline(mean, color=_SECOND, linewidth=1)
    axes.plot(values, range(len(names)), "o", color=_ACCENT)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("mCE in percent of the model trained on that corruption alone")
    axes.set_title(f"{title}: standard deviation {balance.std:.1f}, range {balance.range:.1f}", loc="left")
    return figure


def agreement_figure(agreement: Agreement, scores: Sequence[tuple[float, float]], *, names: tuple[str, str]) -> Any:
    """Scores of one matrix against those of another; the pairs that differ most are named."""
    figure, axes = _figure(5.2, 5)
    first, second = zip(*scores, strict=True)
    top = 1.05 * max(1.0, *first, *second)
    axes.plot([0, top], [0, top], color=_QUIET, linewidth=0.8)
    axes.plot(first, second, "o", color=_SECOND, alpha=0.6, markersize=4)
    for number, item in enumerate(agreement.largest[:3], start=1):
        axes.plot(item.first, item.second, "o", color=_ACCENT, markersize=5)
        axes.annotate(
            str(number),
            (item.first, item.second),
            (5, -3),
            textcoords="offset points",
            color=_ACCENT,
            fontweight="bold",
        )
    named = [f"{number}  {' – '.join(item.pair)}" for number, item in enumerate(agreement.largest[:3], start=1)]
    axes.text(0.02, 0.98, "\n".join(["differ most:", *named]), transform=axes.transAxes, va="top", fontsize=7.5)
    axes.set(xlim=(-0.02, top), ylim=(-0.02, top), xlabel=f"score in {names[0]}", ylabel=f"score in {names[1]}")
    axes.set_aspect("equal")
    axes.set_title(f"Pearson correlation {agreement.pearson:.3f} over {agreement.pairs} pairs", loc="left")
    return figure


def correlation_figure(
    groups: Mapping[str, Sequence[GroupCorrelation]], *, title: str = "Correlation over models"
) -> Any:
    """Algorithm 2's mean correlation of each group of benchmarks with each natural set, with intervals where known."""
    natural = [result.natural for result in next(iter(groups.values()))]
    figure, axes = _figure(7, max(2.6, 0.22 * len(natural) * (len(groups) + 1) + 1.2))
    palette = optional_import("matplotlib").colormaps["Dark2"]
    height = 0.8 / len(groups)
    for number, (name, group) in enumerate(groups.items()):
        heights = [row + (number - (len(groups) - 1) / 2) * height for row in range(len(natural))]
        colour = palette(number % palette.N)
        for y, result in zip(heights, group, strict=True):
            if result.low is not None:
                axes.plot([result.low, result.high], [y, y], color=colour, linewidth=1.2, alpha=0.7)
        axes.plot([result.mean for result in group], heights, "o", color=colour, markersize=5, label=name)
    axes.set_yticks(range(len(natural)), natural)
    axes.invert_yaxis()
    axes.axvline(0, color=_QUIET, linewidth=0.8)
    axes.set_xlabel("mean Pearson correlation with the natural set")
    axes.set_title(title, loc="left")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def severity_figure(ranges: Sequence[SeverityRange]) -> Any:
    """Where each corruption's range begins and ends on the scale of severities, with the intervals of both ends."""
    figure, axes = _figure(6.5, max(2.2, 0.3 * len(ranges) + 1))
    for row, item in enumerate(ranges):
        axes.plot([item.lower.severity, item.upper.severity], [row, row], color=_QUIET, linewidth=5, alpha=0.4)
        for end, colour in ((item.lower, _SECOND), (item.upper, _ACCENT)):
            axes.plot([end.low, end.high], [row, row], color=colour, linewidth=1.5)
            filled = colour if end.reached else _PAPER
            axes.plot(end.severity, row, "o", color=colour, markerfacecolor=filled, clip_on=False)
    axes.set_yticks(range(len(ranges)), [item.corruption for item in ranges])
    axes.invert_yaxis()
    axes.set_xlim(0, 5)
    targets = (ranges[0].lower.target, ranges[0].upper.target) if ranges else (0.95, 0.5)
    axes.set_xlabel(
        f"severity at which R falls to {targets[0]:g} (left) and {targets[1]:g} (right); hollow: not reached"
    )
    axes.set_title("Calibrated severities", loc="left")
    return figure
