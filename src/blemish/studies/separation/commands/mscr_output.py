"""What ``blemish mscr`` prints and draws."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from rich.table import Table

from blemish.core.statistics import MeanEstimate
from blemish.studies.separation.scores import Matrix, ModelScore
from blemish.studies.separation.sources import LabelledPoints, LeftOut
from blemish.terminal.printing import complain

_SHOWN = 10


def file_name(model: str) -> str:
    """A model's name as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", model)


def name_left_out(left_out: list[list[LeftOut]], kept: LabelledPoints) -> None:
    """Say which points are not used: equal ones together, the first of them by name."""
    count = sum(map(len, left_out))
    complain(
        f"{count} of {count + len(kept.points)} points are left out, from ε_min, training and test: they are equal to "
        "points with other labels"
    )
    for rows in left_out[:_SHOWN]:
        more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        complain(f"  {' = '.join(map(str, rows[:_SHOWN]))}{more}")
    if len(left_out) > _SHOWN:
        complain(f"  … and {len(left_out) - _SHOWN} more such groups, all of them in --json and -o")


def _percent(estimate: MeanEstimate, digits: int = 3) -> str:
    half = "" if np.isnan(estimate.half_width) else f" ± {100 * estimate.half_width:.{digits}f}"
    return f"{100 * estimate.value:.{digits}f}{half}"


def matrix_table(name: str, matrix: Matrix) -> Table:
    """Accuracies and MSCR per ε_train."""
    table = Table(title=f"{name}: accuracy and MSCR in %, ± 95 %", title_justify="left", box=None, pad_edge=False)
    table.add_column("ε_train")
    for eps in matrix.protocol.eps_test:
        table.add_column("clean" if eps == 0 else f"ε_test {eps:.6g}", justify="right")
    table.add_column("MSCR", justify="right")
    rows = [matrix.accuracy(eps) for eps in matrix.protocol.eps_test]
    for row_index, eps in enumerate(matrix.protocol.eps_train):
        values = [_percent(row[row_index]) for row in rows]
        table.add_row(f"{eps:.6g}", *values, _percent(matrix.mscr()[row_index]))
    return table


def score_table(scores: list[ModelScore]) -> Table:
    """Accuracies and MSCR of trained models."""
    table = Table(title="trained models: accuracy and MSCR in %", title_justify="left", box=None, pad_edge=False)
    for heading in ("model", "clean", "robust", "MSCR"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for score in scores:
        table.add_row(score.model, f"{100 * score.clean:.3f}", _percent(score.robust), _percent(score.mscr))
    return table


def draw(matrices: dict[str, Matrix], folder: Path) -> None:
    """Draw the trade-off of all models and the ε matrix of each."""
    from blemish.reports.figure_files import save_figure
    from blemish.studies.separation import figures

    folder.mkdir(parents=True, exist_ok=True)
    save_figure(figures.tradeoff_curve(matrices), folder / "tradeoff.png")
    for name, matrix in matrices.items():
        save_figure(figures.epsilon_matrix(matrix), folder / f"matrix-{file_name(name)}.png")
    complain(f"wrote tradeoff.png and an ε matrix per model to {folder}", style="")
