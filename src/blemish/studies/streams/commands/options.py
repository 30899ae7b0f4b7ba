"""What the commands of ``blemish ccc`` share, besides the options that all commands do."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.core.errors import InputError
from blemish.core.settings import differing
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.models.base import Classifier, ModelInfo
from blemish.reports.figure_files import check_figure_name
from blemish.studies.streams.images import ImageSet, from_source, image_list
from blemish.studies.streams.levels import SETS, WalkSet
from blemish.studies.streams.paths import OBJECTIVES, Objective
from blemish.studies.streams.planning import WalkCell
from blemish.studies.streams.protocols import protocol_differences
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, read_walk
from blemish.terminal.corruptions import Frost, Plugins, Preset, Tiles, check_files, chosen_catalog, chosen_names
from blemish.terminal.images import Crop, ImageOptions, Limit, Resize
from blemish.terminal.lists import numbers
from blemish.terminal.printing import say

WalkFile = Annotated[Path, typer.Argument(metavar="WALK", help="A file that blemish ccc walk wrote.")]
Surfaces = Annotated[Path, typer.Argument(metavar="SURFACES", help="A folder that blemish ccc calibrate made.")]
Length = Annotated[int | None, typer.Option("--length", min=1, help="Images to show. Default: the walk, once.")]
SetName = Annotated[str | None, typer.Option("--set", help=f"A set of walks: {', '.join(SETS)}.")]

RandomCrop = Annotated[
    int | None,
    typer.Option(
        "--random-crop",
        rich_help_panel="Images",
        help="Instead, mirror and crop at random and resize to this: 224 for the release.",
    ),
]
Jpeg = Annotated[bool, typer.Option("--jpeg", help="JPEG of quality 85 at the end, as in the release.")]
ObjectiveName = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="How paths are chosen: pointwise, mean, or reference (the release's). Default: the set's, or pointwise.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ShownOptions:
    """How images become those of a stream."""

    preset: Preset = None
    limit: Limit = None
    resize: Resize = None
    crop: Crop = None
    random_crop: RandomCrop = None
    plugins: Plugins = None
    frost: Frost = None
    tiles: Tiles = None
    allow_mismatch: Annotated[
        bool,
        typer.Option("--anyway", help="Go on, with a warning, where images are not shown as they were calibrated."),
    ] = False

    def catalog(self) -> Catalog:
        """The corruptions at hand."""
        return chosen_catalog(self.plugins, self.frost, self.tiles)

    def image_set(
        self, images: ImageOptions, *, subset: int | None, named: str, model: Classifier | None = None
    ) -> ImageSet:
        """The images that a stream shows, of the model's classes where there is a model.

        Where the walk is of a set (``named``) that shows a ``subset`` of so many images again and again, so many are
        taken, and it is said which they are, or that there are not as many.
        """
        source = chosen_images(
            images,
            limit=subset if self.limit is None else self.limit,
            model=model,
            resize=self.resize if self.random_crop is None else self.random_crop,
            crop=self.crop if self.random_crop is None else self.random_crop,
        )
        if subset is not None and len(source) != subset:
            say(f"{named} shows {subset:,} images again and again; here there are {len(source):,}", "yellow")
        elif subset is not None:
            say(
                f"{named} shows {subset:,} images again and again; the authors' list is not public, ours is "
                f"{image_list(source.names)}",
                "dim",
            )
        return from_source(source, resize=self.resize, crop=self.crop, random=self.random_crop)


def protocol_text(stream: Stream, *, allow_mismatch: bool, jpeg: bool | None = None) -> str | None:
    """That a stream shows images otherwise than its walk was calibrated with, if it does.

    Without ``allow_mismatch`` it is refused.
    """
    different = protocol_differences(stream, jpeg=jpeg)
    if not different:
        return None
    message = f"images are not shown as the walk was calibrated ({'; '.join(different)})"
    if not allow_mismatch:
        raise InputError(f"{message}; expected the same: calibrate as you will run, or go on with --anyway")
    return f"{message}: its target accuracy need not be held"


def warn(*texts: str | None) -> list[str]:
    """Say each text that there is, once; they are returned."""
    there = list(dict.fromkeys(text for text in texts if text is not None))
    for text in there:
        say(text, "yellow")
    return there


def changes_text(walks: Sequence[Walk]) -> list[str]:
    """In what walks are not of their sets, a text for each set that has such ones."""
    changed: dict[str, dict[str, None]] = {}
    for walk in walks:
        changed.setdefault(str(walk.protocol.set), {}).update(dict.fromkeys(walk.protocol.changed or ()))
    return [f"not {name} as it is defined: {'; '.join(texts)}" for name, texts in changed.items() if texts]


def guesses_text(cells: Sequence[WalkCell], what: str = "steps") -> str | None:
    """How many of some steps rely on cells that were not measured, if any do.

    Cells were chosen for other targets, another objective or a surface without repair: the accuracy may be off.
    """
    guessed = sum(not plane.known[cell] for plane, cell in cells)
    if not guessed:
        return None
    return (
        f"{guessed} of {len(cells)} {what} have an accuracy that was interpolated, not measured: calibrate with "
        "--targets and --objective as here, or without --targets"
    )


def other_model_text(walk: Walk, model: ModelInfo) -> str | None:
    """That a walk was calibrated with another model, if it was.

    Other models may follow a walk, as published ones do; a forgotten option should not go unnoticed.
    """
    calibration = walk.protocol.calibration
    if calibration is None or (before := calibration.model) is None:
        return None
    # Its name and training do not decide what a model says.
    lines = differing(before, replace(model, name=before.name, training=before.training))
    different = dict.fromkeys(name.partition(".")[0] for name, _, _ in lines)
    if not different:
        return None
    return (
        f"the walk was calibrated with another model ({before.name}; other {', '.join(different)}), so the "
        "unadapted accuracy need not be the target"
    )


def chosen_corruptions(texts: list[str] | None, chosen: WalkSet | None, catalog: Catalog) -> tuple[str, ...]:
    """The corruptions that were named, or those of a set; none where nothing was said."""
    if texts:
        return tuple(chosen_names(texts, catalog))
    return () if chosen is None else chosen.corruptions


def read_chosen_walk(path: Path, catalog: Catalog) -> Walk:
    """A walk whose corruptions are at hand, with their files."""
    walk = read_walk(path, catalog=catalog)
    check_files(catalog[name] for name in walk.corruptions)
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


def path_rule(name: str | None, chosen: WalkSet | None) -> Objective:
    """The rule that chooses paths: the one that was named, or the set's, or pointwise; a set keeps its own."""
    if name is not None and name not in OBJECTIVES:
        raise InputError(f"--objective {name}; expected one of {', '.join(OBJECTIVES)}")
    if name is not None and chosen is not None and name != chosen.objective:
        other = SETS.get(f"{chosen.name}-smooth")
        hint = f"; {other.name} has the same corruptions and {name}" if other and other.objective == name else ""
        raise InputError(f"--objective {name} with --set {chosen.name}, whose rule is {chosen.objective}{hint}")
    return cast(Objective, name) if name is not None else "pointwise" if chosen is None else chosen.objective


def shares(text: str | None, option: str) -> tuple[float, ...]:
    """Accuracies separated by commas, as shares of 1."""
    values = numbers(text, option, such_as="0.5,0.25") if text else []
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"{option} {text}; expected shares in 0 … 1, such as 0.4 for 40 %")
    return tuple(values)


def share_of(text: str) -> tuple[int, int]:
    """The number of a share of some work, and how many shares there are.

    >>> share_of("0/4")
    (0, 4)
    """
    number, _, parts = text.partition("/")
    if not all(re.fullmatch("[0-9]{1,9}", each) for each in (number, parts)) or int(number) >= int(parts):
        raise InputError(f"--part {text}; expected a share such as 0/4")
    return int(number), int(parts)


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
