"""``blemish separation``: how far apart the classes of a data set lie."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import torch
import typer
from rich.table import Table

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import check_folder
from blemish.core.marks import MADE_WITH
from blemish.models.torch_module import device_named
from blemish.ops.balls import Norm
from blemish.studies.separation.exact import Pair, Separation, nearest_other_class, separation
from blemish.studies.separation.sources import LabelledPoints, read_points
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.images import Crop, Labels, Resize
from blemish.terminal.models import Device
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import complain, emit, say, show
from blemish.terminal.progress import Report, with_progress

Data = Annotated[
    Path,
    typer.Option(
        "--data",
        "-d",
        rich_help_panel="Images",
        help="Points with classes: a .npz or .npy of images or feature vectors, or class folders.",
    ),
]
NormOption = Annotated[str, typer.Option("--norm", help="l1, l2 or linf.")]
Duplicates = Annotated[
    bool, typer.Option("--exclude-duplicates", help="Leave out equal points with different labels; they are named.")
]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE.json",
        help="Also write the results as JSON; blemish report shows separation.json and mscr.json beside its runs.",
    ),
]

_SHOWN = 10
_QUERIES = 1000
_FIGURES = ("distances", "class-pairs", "closest-pairs")


@exit_on_input_error
def separation_command(
    data: Data,
    labels: Labels = None,
    norm: NormOption = "linf",
    closest: Annotated[int, typer.Option(help="How many of the closest pairs to list.")] = _SHOWN,
    per_pair: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="The smallest distance of each two classes.")
    ] = True,
    exclude_duplicates: Duplicates = False,
    resize: Resize = None,
    crop: Crop = None,
    device: Device = "auto",
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Draw distances, class pairs and closest pairs there."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
    out: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the smallest distance between points of different class: exactly, over all pairs.

    Half of it is ε_min: the largest noise that cannot move a point closer to another class than to its own place.
    Distances of 8-bit images are on the scale where white is 1. A distance of 0 means equal points with contradictory
    labels.

    Examples:

      blemish separation -d cifar10.npz

      blemish separation -d features.npz --norm l2 --json

      blemish separation -d cifar10.npz -o results/separation.json

      blemish separation -d photos/ --resize 64 --crop 64 --figures figures/
    """
    if figures is not None:
        check_folder(figures)
        check_replaceable(*(figures / f"{name}.png" for name in _FIGURES), overwrite=overwrite)
    check_json_file(out, overwrite=overwrite)
    on_device = device_named(device)

    def work(report: Report) -> tuple[LabelledPoints, Separation]:
        points = read_points(data, labels=labels, resize=resize, crop=crop, progress=report)
        report(0, None, "comparing points")
        return points, separation(
            points.points,
            points.labels,
            norm=cast(Norm, norm),
            per_pair=per_pair,
            closest=closest,
            exclude_duplicates=exclude_duplicates,
            device=on_device,
            progress=report,
        )

    points, result = with_progress("separation", work, first="reading points", unit=None, kept="nothing is kept.")
    text = json_text({"made_with": MADE_WITH, "data": data.resolve().name, **result.record()})
    write_json(text, out)
    if figures is not None:
        _draw(points, result, figures, on_device)
    if as_json:
        emit(f"{text}\n")
        return
    _print(points, result)


def check_json_file(path: Path | None, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written or is to be kept, before any work."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a file name, such as {path / 'result.json'}")
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: expected a name that ends in .json")
    check_folder(path.parent)
    check_replaceable(path, overwrite=overwrite)


def json_text(record: dict[str, Any]) -> str:
    """JSON that every program reads: what is not a number is null, and bytes of names that are no text are escaped."""
    text = json.dumps(_without_nan(record), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def write_json(text: str, path: Path | None) -> None:
    """Write the file, where one is asked for; it is complete or not there."""
    if path is not None:
        write_bytes(path, f"{text}\n".encode())
        complain(f"wrote {path}", style="")


def _amount(value: float, scale: float) -> str:
    return f"{value:.6g}" if scale == 1 else f"{value:.6f} ({value * scale:g}/{scale:g})"


def _print(points: LabelledPoints, result: Separation) -> None:
    say(f"{result.points} points, {len(result.classes)} classes, {result.norm}")
    if result.contradiction_count:
        pair = result.contradictions[0]
        named = zip((pair.first, pair.second), pair.classes, strict=True)
        example = " and ".join(f"{_name(points, index)} ({label})" for index, label in named)
        left = "; left out" if result.duplicates_excluded else ""
        count = result.contradiction_count
        say(f"{count} pairs of equal points have different labels, such as {example}{left}", style="yellow")
    say(f"2r    = {_amount(result.distance, result.scale)}")
    say(f"ε_min = {_amount(result.epsilon_min, result.scale)}")
    if result.distance == 0:
        say("the classes touch, so no noise can be avoided; --exclude-duplicates leaves such pairs out", style="yellow")
    show(_table("closest pairs", points, result.closest, result.scale))
    if result.pairs and len(result.pairs) > 1:
        ranked = sorted(result.pairs, key=lambda pair: pair.distance)
        title = "closest pair of each two classes"
        show(_table(title, points, ranked[:_SHOWN], result.scale))
        if len(ranked) > _SHOWN:
            say(f"… and {len(ranked) - _SHOWN} more in --json", style="dim")


def _name(points: LabelledPoints, index: int) -> str:
    return str(index) if points.names is None else points.names[index]


def _table(title: str, points: LabelledPoints, pairs: list[Pair], scale: float) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("distance", "classes", "first", "second"):
        table.add_column(heading)
    for pair in pairs:
        names = " – ".join(str(label) for label in pair.classes)
        table.add_row(_amount(pair.distance, scale), names, _name(points, pair.first), _name(points, pair.second))
    return table


def _draw(points: LabelledPoints, result: Separation, folder: Path, device: torch.device) -> None:
    from blemish.reports.figure_files import save_figure
    from blemish.studies.separation import figures as draw

    count = len(points.points)
    chosen = np.arange(count) if count <= 10 * _QUERIES else np.linspace(0, count - 1, _QUERIES).astype(np.int64)
    distances, _ = nearest_other_class(
        points.points,
        points.labels,
        norm=result.norm,
        chosen=chosen,
        exclude_duplicates=result.duplicates_excluded,
        device=device,
    )
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {_FIGURES[0]: draw.distance_distribution(distances, norm=result.norm, epsilon_min=result.epsilon_min)}
    if result.pairs and len(result.classes) <= 100:
        drawn[_FIGURES[1]] = draw.class_pairs(result)
    if points.pictures:
        drawn[_FIGURES[2]] = draw.closest_pairs(points.points, result.closest)
    for name, figure in drawn.items():
        save_figure(figure, folder / f"{name}.png")
    complain(f"wrote {', '.join(f'{name}.png' for name in drawn)} to {folder}", style="")
