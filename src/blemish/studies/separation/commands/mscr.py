"""``blemish mscr``: the accuracy that classifiers lose to noise which cannot move points across classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from blemish.core.errors import InputError, notify
from blemish.core.folders import check_folder, check_links
from blemish.core.marks import MADE_WITH
from blemish.data.folders import class_folders, folder_indices
from blemish.data.labels import check_below, class_indices
from blemish.models.base import Classifier
from blemish.models.torch_module import device_named
from blemish.ops.balls import Norm
from blemish.studies.separation.commands.mscr_output import (
    draw,
    file_name,
    matrix_table,
    name_left_out,
    score_table,
)
from blemish.studies.separation.commands.named_trainers import named_trainer
from blemish.studies.separation.commands.separation import (
    Data,
    JsonFile,
    NormOption,
    check_json_file,
    json_text,
    write_json,
)
from blemish.studies.separation.exact import separation
from blemish.studies.separation.experiment import experiment
from blemish.studies.separation.noise import Draws
from blemish.studies.separation.scores import Matrix, ModelScore, mscr
from blemish.studies.separation.sources import LabelledPoints, LeftOut, leave_out_contradictions, read_points
from blemish.studies.separation.trained import classes_of, from_classifier
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Seed, chosen_catalog
from blemish.terminal.executors import Jobs
from blemish.terminal.images import Crop, Labels, Mapping, Resize
from blemish.terminal.models import ModelSettings, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import complain, emit, show
from blemish.terminal.progress import Report, with_progress

_Trained = tuple[str, Classifier, NDArray[np.int64]]


@exit_on_input_error
@spread_options
def mscr_command(
    *,
    data: Data,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            rich_help_panel="Model",
            help="A trained model, as for blemish run; labels are its class numbers. May be repeated.",
        ),
    ] = None,
    settings: ModelSettings,
    speed: SpeedOptions,
    to_train: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            help="A model to train: forest, forest:50, 1nn, wrn-28-10 …, or python:module:name (see above). "
            "May be repeated.",
        ),
    ] = None,
    eps_train: Annotated[str, typer.Option(help="Training radii, separated by commas; min stands for ε_min.")] = "0",
    eps_test: Annotated[str, typer.Option(help="Further test radii; 0 and ε_min are always there.")] = "",
    epsilon: Annotated[float | None, typer.Option(help="A radius in place of ε_min.")] = None,
    k: Annotated[int, typer.Option("-k", help="Noisy points per point.")] = 10,
    runs: Annotated[int, typer.Option(max=1_000_000, help="Runs, each with a split and noise of its own.")] = 20,
    norm: NormOption = "linf",
    test_share: Annotated[float, typer.Option(help="The share of points to test with.")] = 0.2,
    seed: Seed = 0,
    clip: Annotated[bool, typer.Option("--clip", help="Clip noisy points to 0 … 1. The paper does not.")] = False,
    draws: Annotated[
        str, typer.Option(help="independent, or shared: the same k shifts for all points, as the published 2D code.")
    ] = "independent",
    labels: Labels = None,
    mapping: Mapping = None,
    exclude_duplicates: Annotated[
        bool,
        typer.Option(
            "--exclude-duplicates",
            help="Leave equal points with different labels out of ε_min, training and test; they are named.",
        ),
    ] = False,
    resize: Resize = None,
    crop: Crop = None,
    epochs: Annotated[int, typer.Option(help="Of nets.")] = 30,
    jobs: Jobs = None,
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Keep finished runs there, to continue later.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Draw trade-off and ε matrices.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
    out: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure MSCR = (robust − clean) / clean accuracy under uniform noise of radius ε_min.

    ε_min is half the smallest distance between points of different class, so that any loss could be avoided. Models are
    trained at every ε_train and tested at every ε_test. python:module:name is a scikit-learn estimator, or a function
    that takes a seed and returns one.

    Examples:

      blemish mscr -d points.npz --train forest --train 1nn --eps-train 0,min,0.01 --keep runs/ -o results/mscr.json

      blemish mscr -d cifar10.npz --train wrn-28-10 --eps-train 0,0.05,min -k 1 --device cuda

      blemish mscr -d images.npz -m net.onnx --epsilon 0.1
    """
    if not models and not to_train:
        raise InputError("no models; expected --model with a trained one, or --train, such as forest")
    for folder in (keep, figures):
        if folder is not None:
            check_folder(folder)
    if keep is not None:
        check_links(keep)
    check_json_file(out, overwrite=overwrite)
    if figures is not None:
        names = ["tradeoff", *(f"matrix-{file_name(name)}" for name in to_train or ())]
        check_replaceable(*(figures / f"{name}.png" for name in names), overwrite=overwrite)
    device = device_named(settings.device)
    trainers = {name: named_trainer(name, epochs, device) for name in dict.fromkeys(to_train or ())}
    catalog = chosen_catalog(None)
    opened = [(spec, speed.apply(settings.open_named(spec, catalog=catalog))) for spec in dict.fromkeys(models or ())]

    def prepare(report: Report) -> tuple[LabelledPoints, list[list[LeftOut]], list[_Trained], float, str]:
        points = read_points(data, labels=labels, resize=resize, crop=crop, progress=report)
        points, left_out = leave_out_contradictions(points) if exclude_duplicates else (points, [])
        ready = [(spec, model, _labels_for(model, points, data, mapping)) for spec, model in opened]
        at = _radius(points, epsilon, norm, exclude_duplicates, device, report)
        source = "as asked" if epsilon is not None else f"ε_min of the {'points that are left' if left_out else 'data'}"
        return points, left_out, ready, at, source

    points, left_out, ready, at, source = with_progress(
        "mscr, preparation", prepare, first="reading points", unit=None, kept="nothing is kept."
    )
    if left_out:
        name_left_out(left_out, points)
    complain(
        f"ε = {at:.6g} ({source}), {norm}, k = {k}, {runs} runs, {draws} draws, "
        + ("clipped to 0 … 1" if clip else "not clipped, as in the paper"),
        style="",
    )
    protocol: dict[str, Any] = {"k": k, "runs": runs, "norm": norm, "seed": seed, "clip": clip}

    def work(report: Report) -> tuple[dict[str, Matrix], list[ModelScore]]:
        matrices = {
            name: experiment(
                points.points,
                points.labels,
                train,
                model=f"{name} {epochs} epochs" if name.startswith("wrn") else name,
                epsilon_min=at,
                eps_train=_radii(eps_train, at, "--eps-train"),
                eps_test=_radii(eps_test, at, "--eps-test"),
                test_share=test_share,
                draws=cast(Draws, draws),
                folder=None if keep is None else keep / file_name(name),
                jobs=jobs or 1,
                progress=lambda done, total, name=name: report(done, total, name),  # type: ignore[misc]
                **protocol,
            )
            for name, train in trainers.items()
        }
        return matrices, _trained_scores(ready, points, at, protocol, report)

    kept = "finished runs are kept where --keep was given."
    matrices, scores = with_progress("mscr", work, first="training", unit=None, kept=kept)
    text = json_text(
        {
            "made_with": MADE_WITH,
            "data": data.resolve().name,
            "epsilon": at,
            "radius": source,
            "settings": protocol,
            "left_out": [[vars(point) for point in rows] for rows in left_out],
            "models": {name: matrix.record() for name, matrix in matrices.items()},
            "trained": [score.record() for score in scores],
        }
    )
    write_json(text, out)
    if figures is not None and matrices:
        draw(matrices, figures)
    if as_json:
        emit(f"{text}\n")
        return
    for name, matrix in matrices.items():
        show(matrix_table(name, matrix))
    if scores:
        show(score_table(scores))


def _radii(text: str, at: float, option: str) -> tuple[float, ...]:
    items = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(at if item == "min" else float(item) for item in items)
    except ValueError:
        raise InputError(f"{option} {text!r}; expected radii separated by commas, such as 0,min,0.01") from None


def _radius(
    points: LabelledPoints, epsilon: float | None, norm: str, exclude: bool, device: torch.device, report: Report
) -> float:
    if epsilon is not None:
        if not epsilon > 0:
            raise InputError(f"--epsilon {epsilon}; expected a positive radius")
        return epsilon
    report(0, None, "searching ε_min")
    result = separation(
        points.points,
        points.labels,
        norm=cast(Norm, norm),
        per_pair=False,
        closest=1,
        exclude_duplicates=exclude,
        device=device,
        progress=report,
    )
    if result.distance == 0:
        pair = result.closest[0]
        raise InputError(
            f"points {pair.first} ({pair.classes[0]}) and {pair.second} ({pair.classes[1]}) are equal, so ε_min is 0; "
            "expected --exclude-duplicates, or a radius with --epsilon"
        )
    return result.epsilon_min


def _labels_for(model: Classifier, points: LabelledPoints, data: Path, mapping: str | None) -> NDArray[np.int64]:
    """Class folders are numbered as `blemish run` does it; other labels were given."""
    if model.assumed is not None:
        notify(f"model {model.name}: {model.assumed}")
    outputs = classes_of(model, points.points)
    if points.labels.dtype.kind in "iu":
        names = points.names or tuple(str(number) for number in range(len(points.labels)))
        check_below(points.labels, names, outputs, source=data.name, model=f"model {model.name}")
        return points.labels
    named = [str(label) for label in points.labels.tolist()]
    folders = class_folders(data) if data.is_dir() else [str(label) for label in np.unique(points.labels).tolist()]
    if mapping is None:
        indices = class_indices(folders, outputs, source=data.name, model=model.name)
    else:
        indices = folder_indices(str(data), folders, mapping)
    labels = np.array([indices[name] for name in named], dtype=np.int64)
    check_below(labels, points.names or named, outputs, source=data.name, model=f"model {model.name}")
    return labels


def _trained_scores(
    models: list[_Trained], points: LabelledPoints, at: float, settings: dict[str, Any], report: Report
) -> list[ModelScore]:
    return [
        score
        for spec, model, labels in models
        for score in mscr(
            {spec: from_classifier(model, clip=settings["clip"])},
            points.points,
            labels,
            epsilon=at,
            progress=report,
            **settings,
        )
    ]
