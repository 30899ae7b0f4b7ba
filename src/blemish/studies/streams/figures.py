"""Figures of continuously changing corruptions: surfaces with paths, walks, and runs of adaptation methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.reports.figure_files import save_figure
from blemish.studies.streams.paths import SeverityPath
from blemish.studies.streams.scores import default_window, find_collapse, running_mean, step_accuracies
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk, WalkStep

_INK, _QUIET, _RULE = "#22252b", "#7a7f89", "#d9d6cf"
_PATHS = ("#c8102e", "#f08c00", "#ffd43b", "#ffffff")
_POINTS = 4000
"""As many points of a curve as a figure can show."""

# One colour per method in every figure, so that figures can be compared.
_METHODS = {
    "none": "#22252b",
    "bn": "#7a7f89",
    "norm_alpha": "#adb5bd",
    "norm_ema": "#a07855",
    "t3a": "#f59f00",
    "lame": "#846500",
    "tent": "#c8102e",
    "rpl": "#e8590c",
    "cpl": "#d6336c",
    "eta": "#1c7ed6",
    "eata": "#0b7285",
    "cotta": "#7048e8",
    "rdumb": "#2b8a3e",
    "sar": "#66a80f",
    "deyo": "#15aabf",
}


def _figure(width: float, height: float) -> Any:
    optional_import("matplotlib")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _tidy(axes: Any, xlabel: str, ylabel: str) -> None:
    axes.set_xlabel(xlabel, color=_INK)
    axes.set_ylabel(ylabel, color=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=_QUIET, labelcolor=_INK)


def surface_figure(planes: Sequence[tuple[Surface, Sequence[SeverityPath]]], path: Path) -> None:
    """Accuracy over both severities, with paths over each surface: Figure 3 of the workshop paper."""
    figure = _figure(4.4 * len(planes) + 0.6, 4.0)
    rows = figure.subplots(1, len(planes), squeeze=False)[0]
    for axes, (surface, paths) in zip(rows, planes, strict=True):
        grid = np.array(surface.grid)
        edges = np.concatenate([grid[:1] - 0.5 * (grid[1] - grid[0]), (grid[1:] + grid[:-1]) / 2, grid[-1:]])
        edges[-1] += (grid[-1] - grid[-2]) / 2
        image = axes.pcolormesh(edges, edges, 100 * surface.accuracy, cmap="viridis", vmin=0, vmax=100)
        for number, held in enumerate(paths):
            first, second = zip(*held.severities, strict=True)
            label = f"{100 * held.target:g} % (mean {100 * held.mean:.1f})"
            axes.plot(second, first, color=_PATHS[number % len(_PATHS)], linewidth=2.5, label=label)
        axes.legend(fontsize=7, loc="upper right", facecolor="#333a44", labelcolor="white", framealpha=0.85)
        axes.set_aspect("equal")
        _tidy(axes, f"{surface.second}, severity", f"{surface.first}, severity")
    figure.colorbar(image, ax=list(rows), label="accuracy, %", shrink=0.85)
    save_figure(figure, path, dpi=150)


def walk_figure(walk: Walk, path: Path, *, images: int | None = None, correct: NDArray[np.bool_] | None = None) -> None:
    """Severities and accuracy along a walk: Figure 2 of the workshop paper.

    The accuracy is the calibrated one, and that of each step where the unadapted model's results are given.
    """
    shown = min(len(walk), images or len(walk))
    figure = _figure(11, 4.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    ends = walk.ends
    starts = np.concatenate([[0], ends[:-1]])
    colours = _corruption_colours(walk.steps[: walk.step_at(shown - 1) + 1])
    for name, colour in colours.items():
        level = [
            max(s.first_severity if s.first == name else 0, s.second_severity if s.second == name else 0)
            for s in walk.steps
        ]
        top.fill_between(
            np.stack([starts, ends], 1).ravel(), np.repeat(level, 2), color=colour, alpha=0.55, linewidth=0, label=name
        )
    top.set_xlim(0, shown)
    top.set_ylim(0, 5)
    top.legend(ncols=1, fontsize=7, loc="center left", bbox_to_anchor=(1.005, 0.3), frameon=False)
    _tidy(top, "", "severity")
    bottom.step(starts, [100 * s.accuracy for s in walk.steps], where="post", color=_QUIET, label="calibrated")
    if correct is not None:
        _, counts, values, _ = zip(*step_accuracies(correct[:shown], walk), strict=True)
        middle = np.cumsum(counts) - np.array(counts) / 2
        bottom.plot(middle, 100 * np.array(values), ".", markersize=3, color=_INK, label="unadapted, on the stream")
    target = walk.protocol.target
    if target is not None:
        bottom.axhline(100 * target, color="#c8102e", linewidth=1, linestyle="--", label=f"target {100 * target:g} %")
    bottom.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.005, 0.5), frameon=False)
    bottom.set_ylim(0, None)
    _tidy(bottom, "images", "accuracy, %")
    save_figure(figure, path, dpi=150)


def _corruption_colours(steps: Sequence[WalkStep]) -> dict[str, Any]:
    import matplotlib

    names = sorted({name for step in steps for name in (step.first, step.second)})
    shades = matplotlib.colormaps["tab20"]
    palette = [shades(i) for i in (*range(0, 20, 2), *range(1, 20, 2))]
    return {name: palette[i % len(palette)] for i, name in enumerate(names)}


def run_figure(runs: Mapping[str, Mapping[str, NDArray[np.bool_]]], path: Path, *, window: int | None = None) -> None:
    """Running means of all methods on one stream or several, a panel for each; × marks where a method collapses.

    ``runs`` maps the title of a stream to the correctness of each method's predictions; ``none`` was not adapted.
    """
    if not runs or not all(runs.values()):
        raise InputError("no runs to draw; expected at least one stream with at least one method")
    figure = _figure(4 + 5 * len(runs), 4.2)
    panels = figure.subplots(1, len(runs), squeeze=False, sharey=True)[0]
    for axes, (title, methods) in zip(panels, runs.items(), strict=True):
        for name, correct in methods.items():
            size = default_window(len(correct)) if window is None else window
            means = 100 * running_mean(correct, size)
            every = max(1, len(means) // _POINTS)
            shown = np.arange(size, size + len(means))
            colour = _METHODS.get(name)
            style = "--" if name == "none" else "-"
            (line,) = axes.plot(shown[::every], means[::every], style, color=colour, linewidth=1.6, label=name)
            if "none" in methods and name != "none":
                fall = find_collapse(correct, methods["none"], size)
                if fall is not None:
                    axes.plot(fall.at + 1, means[fall.at - size + 1], "x", color=line.get_color(), markersize=9)
        axes.set_title(title, fontsize=10, color=_INK)
        axes.grid(axis="y", color=_RULE, linewidth=0.6)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        _tidy(axes, "images", f"accuracy over the last {size:,} images, %" if axes is panels[0] else "")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    save_figure(figure, path, dpi=150)
