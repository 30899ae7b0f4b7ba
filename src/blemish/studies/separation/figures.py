"""Figures of class separation and MSCR: trade-off curve, ε matrix, decision regions, distances, closest pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.studies.separation.exact import Pair, Separation
from blemish.studies.separation.sample_size import KEffect
from blemish.studies.separation.scores import Matrix

_NORM_SIGNS = {"l1": "L₁", "l2": "L₂", "linf": "L∞"}
_COLOURS = ("#2f6db3", "#d1602b", "#3d8f5a", "#8a5ab0", "#b3863a", "#5b6770", "#c24b7a", "#4aa3a8", "#7a7f2a")


def _figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """A figure of its own, without the global state of pyplot."""
    figure = optional_import("matplotlib.figure").Figure(figsize=(width, height), layout="constrained", dpi=120)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)


def tradeoff_curve(matrices: Mapping[str, Matrix]) -> Any:
    """Clean accuracy against MSCR, one point per ε_train; up and to the right of the first, both are better."""
    figure, ((axes,),) = _figure(6.4, 4.6)
    for (name, matrix), colour in zip(matrices.items(), _COLOURS, strict=False):
        clean, scores = matrix.accuracy(0.0), matrix.mscr()
        x, y = [100 * value.value for value in scores], [100 * value.value for value in clean]
        axes.plot(x, y, color=colour, linewidth=1, alpha=0.7)
        axes.errorbar(
            x,
            y,
            xerr=[100 * value.half_width for value in scores],
            yerr=[100 * value.half_width for value in clean],
            fmt="o",
            markersize=4,
            color=colour,
            elinewidth=0.8,
            label=name,
        )
        for k, eps in enumerate(matrix.protocol.eps_train):
            beside = (5, 4 if k % 2 else -10)
            axes.annotate(f"{eps:.4g}", (x[k], y[k]), beside, textcoords="offset points", fontsize=8, color=colour)
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.set_xlabel("MSCR [%] at ε_min")
    axes.set_ylabel("clean accuracy [%]")
    axes.set_title("Accuracy and robustness per ε_train (± 95 %)", fontsize=11)
    axes.legend(frameon=False)
    _plain(axes)
    return figure


def epsilon_matrix(matrix: Matrix) -> Any:
    """Mean accuracy per ε_train and ε_test; the best of each row is framed, ε_train = ε_test is underlined."""
    train, test = matrix.protocol.eps_train, matrix.protocol.eps_test
    means = 100 * matrix.accuracies.mean(0)
    figure, ((axes,),) = _figure(1.6 + 0.78 * len(train), 1.6 + 0.46 * len(test))
    image = axes.imshow(means, cmap="viridis", aspect="auto")
    middle = (means.min() + means.max()) / 2
    for row, column in np.ndindex(means.shape):
        same = train[column] == test[row]
        axes.text(
            column,
            row,
            f"{means[row, column]:.2f}" + ("\n‾‾‾‾" if same else ""),
            ha="center",
            va="center" if not same else "center_baseline",
            fontsize=8,
            linespacing=0.6,
            color="white" if means[row, column] < middle else "black",
        )
    patches = optional_import("matplotlib.patches")
    for row, best in enumerate(means.argmax(1)):
        frame = patches.Rectangle((best - 0.47, row - 0.45), 0.94, 0.9, fill=False, edgecolor="#d1302b", linewidth=1.6)
        axes.add_patch(frame)
    axes.set_xticks(range(len(train)), [f"{eps:.4g}" for eps in train])
    axes.set_yticks(range(len(test)), [f"{eps:.4g}" for eps in test])
    axes.set_xlabel("ε_train")
    axes.set_ylabel("ε_test")
    axes.set_title(f"Accuracy [%], {len(matrix.accuracies)} runs", fontsize=11)
    figure.colorbar(image, ax=axes, shrink=0.9)
    return figure


def decision_regions(
    predict: Callable[[NDArray[Any]], NDArray[Any]],
    points: NDArray[Any],
    labels: NDArray[Any],
    *,
    epsilon: float,
    norm: str = "linf",
    window: tuple[float, float, float, float] | None = None,
    resolution: int = 300,
) -> Any:
    """Where a classifier of 2D points decides for which class, with the ε-ball of each point.

    ``window`` is (left, right, bottom, top). Without one, all points are shown.
    """
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError(f"points of shape {points.shape}; decision regions expect (N, 2)")
    low, high = points.min(0), points.max(0)
    edge = 0.03 * (high - low) + epsilon
    left, right, bottom, top = window or (low[0] - edge[0], high[0] + edge[0], low[1] - edge[1], high[1] + edge[1])
    x, y = np.linspace(left, right, resolution), np.linspace(bottom, top, resolution)
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2).astype(points.dtype)
    classes, codes = np.unique(labels, return_inverse=True)
    regions = np.searchsorted(classes, predict(grid)).reshape(resolution, resolution)
    colours = [_COLOURS[k % len(_COLOURS)] for k in range(len(classes))]
    figure, ((axes,),) = _figure(6.2, 5.8)
    maps = optional_import("matplotlib.colors").ListedColormap(colours)
    axes.imshow(
        regions,
        origin="lower",
        extent=(left, right, bottom, top),
        cmap=maps,
        vmin=-0.5,
        vmax=len(classes) - 0.5,
        alpha=0.25,
        aspect="auto",
        interpolation="nearest",
    )
    inside = (points >= (left - epsilon, bottom - epsilon)).all(1) & (points <= (right + epsilon, top + epsilon)).all(1)
    _balls(axes, points[inside], [colours[code] for code in codes[inside]], epsilon, norm)
    size = float(np.clip(3000 / max(1, inside.sum()), 1.5, 25))
    axes.scatter(*points[inside].T, s=size, c=[colours[code] for code in codes[inside]], linewidths=0)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_aspect("equal")
    axes.set_title(f"Decision regions and {_NORM_SIGNS[norm]}-balls of radius {epsilon:.4g}", fontsize=11)
    return figure


def _balls(axes: Any, points: NDArray[Any], colours: Sequence[str], epsilon: float, norm: str) -> None:
    corners = {
        "linf": np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]),
        "l1": np.array([(-1, 0), (0, -1), (1, 0), (0, 1)]),
        "l2": np.stack([np.cos(np.linspace(0, 2 * np.pi, 40)), np.sin(np.linspace(0, 2 * np.pi, 40))], 1),
    }[norm]
    shapes = optional_import("matplotlib.collections").PolyCollection(
        [point + epsilon * corners for point in points], facecolors="none", edgecolors=colours, linewidths=0.7
    )
    axes.add_collection(shapes)


def distance_distribution(distances: NDArray[Any], *, norm: str, epsilon_min: float | None = None) -> Any:
    """How far points lie from their nearest point of another class, with 2r = 2 ε_min marked."""
    finite = distances[np.isfinite(distances)]
    if not len(finite):
        raise InputError("no distances; expected at least one point with a point of another class")
    figure, ((axes,),) = _figure(6.4, 4.0)
    axes.hist(finite, bins=min(80, max(10, int(np.sqrt(len(finite))))), color=_COLOURS[0], alpha=0.85)
    if epsilon_min is not None:
        axes.axvline(2 * epsilon_min, color="#d1302b", linewidth=1.4, label=f"2r = {2 * epsilon_min:.6g}")
    median = float(np.median(finite))
    axes.axvline(median, color="#555555", linestyle="--", linewidth=1, label=f"median {median:.4g}")
    axes.set_xlabel(f"{_NORM_SIGNS[norm]} distance to the nearest point of another class")
    axes.set_ylabel("points")
    axes.set_xlim(left=0)
    axes.legend(frameon=False)
    axes.set_title(f"Distances of {len(finite):,} points", fontsize=11)
    _plain(axes)
    return figure


def class_pairs(separation: Separation) -> Any:
    """The smallest distance per two classes."""
    table = separation.matrix()
    count = len(separation.classes)
    figure, ((axes,),) = _figure(1.8 + 0.62 * count, 1.6 + 0.5 * count)
    image = axes.imshow(table, cmap="viridis")
    middle = (np.nanmin(table) + np.nanmax(table)) / 2
    for row, column in np.argwhere(np.isfinite(table)) if count <= 25 else ():
        colour = "white" if table[row, column] < middle else "black"
        axes.text(column, row, f"{table[row, column]:.3g}", ha="center", va="center", fontsize=7, color=colour)
    names = [str(label) for label in separation.classes]
    axes.set_xticks(range(count), names, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(count), names, fontsize=8)
    axes.set_title(f"Smallest {_NORM_SIGNS[separation.norm]} distance, 2r = {separation.distance:.6g}", fontsize=11)
    figure.colorbar(image, ax=axes, shrink=0.85)
    return figure


def closest_pairs(images: Any, pairs: Sequence[Pair], *, names: Mapping[Any, str] | None = None) -> Any:
    """Pairs of pictures side by side, with their difference around gray."""
    if not pairs:
        raise InputError("no pairs to show")
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[-1] not in (1, 3)):
        raise InputError(f"points of shape {images.shape} are no pictures; expected (N, H, W) or (N, H, W, 3)")
    columns = min(2, len(pairs))
    rows = -(-len(pairs) // columns)
    figure, grid = _figure(4.6 * columns, 1.75 * rows + 0.2, rows, 3 * columns)
    for axes in grid.flat:
        axes.axis("off")
    for k, pair in enumerate(pairs):
        row, column = divmod(k, columns)
        first, second = (np.squeeze(np.asarray(images[index])) for index in (pair.first, pair.second))
        top = 255.0 if images.dtype == np.uint8 else 1.0
        shown = [values.astype(np.float64) / top for values in (first, second)]
        shown.append(0.5 + (shown[0] - shown[1]) / 2)
        titles = [str((names or {}).get(label, label)) for label in pair.classes]
        titles = [f"{title} · {index}" for title, index in zip(titles, (pair.first, pair.second), strict=True)]
        for axes, picture, title in zip(
            grid[row, 3 * column : 3 * column + 3], shown, [*titles, f"apart {pair.distance:.4g}"], strict=True
        ):
            axes.imshow(picture.clip(0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(title, fontsize=8)
    return figure


def effect_of_k(effects: Sequence[KEffect]) -> Any:
    """Robust accuracy and the deviation of a run per k (Figure 4 of the paper)."""
    figure, grid = _figure(6.0, 5.0, 2, 1)
    ks = [effect.k for effect in effects]
    upper, lower = grid[:, 0]
    upper.errorbar(
        ks,
        [100 * effect.robust.value for effect in effects],
        yerr=[100 * effect.robust.half_width for effect in effects],
        fmt="o-",
        markersize=4,
        color=_COLOURS[0],
    )
    upper.set_ylabel("robust accuracy [%]")
    deviation = np.array([100 * effect.robust.deviation for effect in effects])
    lower.plot(ks, deviation, "o-", markersize=4, color=_COLOURS[0], label="of a run")
    shares = np.sqrt([effect.share_of_draws for effect in effects])
    lower.plot(ks, deviation * shares, "s--", markersize=4, color=_COLOURS[1], label="of that, from the draws")
    lower.set_ylabel("standard deviation [%]")
    lower.set_xlabel("noisy points per point, k")
    lower.set_ylim(bottom=0)
    lower.legend(frameon=False)
    for axes in (upper, lower):
        _plain(axes)
    return figure
