"""What the commands of ``blemish ccc`` share, besides the options that all commands do."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.models.base import Classifier
from blemish.reports.figure_files import check_figure_name
from blemish.studies.streams.levels import SETS, find_set
from blemish.studies.streams.paths import OBJECTIVES, Objective
from blemish.studies.streams.walks import Walk, read_walk
from blemish.terminal.corruptions import check_files, chosen_names
from blemish.terminal.images import ImageOptions
from blemish.terminal.lists import numbers
from blemish.terminal.printing import say

__all__ = [
    "Length",
    "PathRule",
    "PublishedSet",
    "RandomCrop",
    "WalkFile",
    "check_figures",
    "chosen_corruptions",
    "chosen_images",
    "grid_of",
    "path_rule",
    "read_chosen_walk",
    "shares",
]

WalkFile = Annotated[Path, typer.Argument(metavar="WALK", help="A file that blemish ccc walk wrote.")]
Length = Annotated[int | None, typer.Option("--length", min=1, help="Images to show. Default: the walk, once.")]
PublishedSet = Annotated[
    str | None, typer.Option("--set", help=f"A published set, for its corruptions: {', '.join(SETS)}.")
]

RandomCrop = Annotated[
    int | None,
    typer.Option(
        "--random-crop",
        rich_help_panel="Images",
        help="Instead, mirror and crop at random and resize to this: 224 for the release.",
    ),
]
PathRule = Annotated[
    str,
    typer.Option(
        "--objective", help=f"How walks choose paths: {', '.join(OBJECTIVES)} (the release's rule is reference)."
    ),
]


def chosen_corruptions(texts: list[str] | None, published: str | None, catalog: Catalog) -> tuple[str, ...]:
    """The corruptions that were named, or those of a published set; none where nothing was said."""
    if texts and published is not None:
        raise InputError("--corruption and --set; expected one or the other")
    if published is not None:
        return find_set(published).corruptions
    return tuple(chosen_names(texts, catalog)) if texts else ()


def read_chosen_walk(path: Path, catalog: Catalog) -> Walk:
    """A walk whose corruptions are at hand, with their files; other photographs than calibrated with are noted."""
    walk = read_walk(path, catalog=catalog)
    check_files(catalog[name] for name in walk.corruptions)
    before = (walk.protocol.get("calibration") or {}).get("frost")
    if "frost" in walk.corruptions and before not in (None, catalog.frost_kind):
        say(f"the walk was calibrated with {before} photographs of frost; these are {catalog.frost_kind}", "yellow")
    return walk


def chosen_images(
    images: ImageOptions,
    *,
    limit: int | None,
    model: Classifier | None = None,
    resize: int | None = None,
    crop: int | None = None,
) -> Source:
    """The images that the options name; the first ``limit`` of an order in which all beginnings are balanced.

    Their labels are the model's class numbers, where there is a model, which sees images of this size.
    """
    source = images.open()
    if model is not None:
        source = fit(model, source, resize=resize, crop=crop).source
    return source if limit is None else source.take(stratified_order(source.labels, source.ids)[:limit])


def check_figures(*paths: Path | None) -> None:
    """Refuse figures of a kind that cannot be drawn, before any work."""
    for path in paths:
        if path is not None:
            check_figure_name(path)


def path_rule(name: str) -> Objective:
    """The rule that chooses paths, by name."""
    if name not in OBJECTIVES:
        raise InputError(f"--objective {name}; expected one of {', '.join(OBJECTIVES)}")
    return cast(Objective, name)


def shares(text: str | None, option: str) -> tuple[float, ...]:
    """Accuracies separated by commas, as shares of 1."""
    values = numbers(text, option, such_as="0.5,0.25") if text else []
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"{option} {text}; expected shares in 0 … 1, such as 0.4 for 40 %")
    return tuple(values)


_LEAST_STEP = 0.01


def grid_of(step: float) -> tuple[float, ...]:
    """Severities from 0 to 5.

    >>> grid_of(1.25)
    (0.0, 1.25, 2.5, 3.75, 5.0)
    """
    count = round(MAX_SEVERITY / step) if step >= _LEAST_STEP else 0
    if count < 1 or not math.isclose(count * step, MAX_SEVERITY):
        raise InputError(f"--step {step:g}; expected a number that divides {MAX_SEVERITY}, such as 0.25 or 0.5")
    return tuple(MAX_SEVERITY * number / count for number in range(count + 1))
