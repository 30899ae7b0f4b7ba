"""What the commands of ``blemish ccc`` share: options for the model and the images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.core.errors import InputError
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.reports.figure_files import check_figure_name
from blemish.studies.streams.paths import OBJECTIVES, Objective

__all__ = [
    "ClassMapping",
    "Crop",
    "Data",
    "Device",
    "Labels",
    "Limit",
    "Mean",
    "Model",
    "PathRule",
    "Preset",
    "RandomCrop",
    "Resize",
    "Size",
    "Std",
    "Weights",
    "check_figures",
    "chosen_images",
    "grid_of",
    "model_of",
    "names_of",
    "path_rule",
    "shares",
]

_MODEL = "Model"
_IMAGES = "Images"

Model = Annotated[
    str,
    typer.Option("--model", "-m", rich_help_panel=_MODEL, help="As for blemish run: timm:NAME, a file, python:… …"),
]
Weights = Annotated[Path | None, typer.Option(rich_help_panel=_MODEL, help="A file of weights for python:….")]
Size = Annotated[int | None, typer.Option(rich_help_panel=_MODEL, help="Side of the model's input.")]
Mean = Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="Subtracted: one number or three.")]
Std = Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="Divided by: one number or three.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 … or auto.")]
Data = Annotated[
    str, typer.Option("--data", "-d", rich_help_panel=_IMAGES, help="Class folders, .npy or .npz, or .tar shards.")
]
Labels = Annotated[Path | None, typer.Option(rich_help_panel=_IMAGES, help="Labels, for an array file without them.")]
ClassMapping = Annotated[str | None, typer.Option(rich_help_panel=_IMAGES, help="Class order, as for blemish run.")]
Resize = Annotated[int | None, typer.Option(rich_help_panel=_IMAGES, help="First bring the shorter side to this.")]
Crop = Annotated[int | None, typer.Option(rich_help_panel=_IMAGES, help="Then cut a centre square of this side.")]
RandomCrop = Annotated[
    int | None,
    typer.Option(
        "--random-crop",
        rich_help_panel=_IMAGES,
        help="Instead, mirror and crop at random and resize to this: 224 for the release.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        "-n",
        min=1,
        rich_help_panel=_IMAGES,
        help="Use so many, from all classes in proportion; for ccc-5k: 5000.",
    ),
]
Preset = Annotated[str | None, typer.Option(help="Severity table: cifar, imagenet, … Default: by image size.")]
PathRule = Annotated[
    str,
    typer.Option(
        "--objective", help=f"How walks choose paths: {', '.join(OBJECTIVES)} (the release's rule is reference)."
    ),
]


def _numbers(text: str | None, option: str) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(float(item) for item in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text!r}; expected numbers separated by commas, such as 0.5,0.25") from None


def model_of(
    model: str,
    weights: Path | None,
    size: int | None,
    mean: str | None,
    std: str | None,
    device: str,
    *,
    allow_code: bool,
) -> Classifier:
    """The model that the options name."""
    return open_model(
        model,
        weights=weights,
        size=size,
        mean=_numbers(mean, "--mean"),
        std=_numbers(std, "--std"),
        device=device,
        allow_code=allow_code,
    )


def chosen_images(
    data: str,
    labels: Path | None,
    mapping: str | None,
    *,
    limit: int | None,
    model: Classifier | None = None,
    resize: int | None = None,
    crop: int | None = None,
) -> Source:
    """The images that the options name; the first ``limit`` of an order in which all beginnings are balanced.

    Their labels are the model's class numbers, where there is a model, which sees images of this size.
    """
    source = open_source(data, labels=labels, mapping=mapping)
    if model is not None:
        source = fit(model, source, resize=resize, crop=crop).source
    return source if limit is None else source.take(stratified_order(source.labels, source.ids)[:limit])


def check_figures(*paths: Path | None) -> None:
    """Refuse figures of a kind that cannot be drawn, before any work."""
    for path in paths:
        if path is not None:
            check_figure_name(path)


def names_of(text: str | None) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def path_rule(name: str) -> Objective:
    """The rule that chooses paths, by name."""
    if name not in OBJECTIVES:
        raise InputError(f"--objective {name}; expected one of {', '.join(OBJECTIVES)}")
    return cast(Objective, name)


def shares(text: str | None, option: str) -> tuple[float, ...]:
    """Accuracies separated by commas, as shares of 1."""
    found = _numbers(text or None, option)
    for value in found or ():
        if not 0 <= value <= 1:
            raise InputError(f"{option} {text}; expected shares in 0 … 1, such as 0.4 for 40 %")
    return tuple(found or ())


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
