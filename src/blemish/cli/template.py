"""``blemish template``: an empty file of predictions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.benchmarks.benchmark import only
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.reading import read_text
from blemish.data.open import open_source
from blemish.data.pictures import PICTURE_SUFFIXES, list_pictures
from blemish.data.truth import coco_truth
from blemish.tasks.template import Answer, check_template, default_name, write_template
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Only, Plugins, chosen_catalog
from blemish.terminal.lists import listed
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say


@exit_on_input_error
def template_command(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help='A name from "blemish benchmarks", or a file.')],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file to write: .csv, .jsonl or .parquet. Default: predictions.csv, or .jsonl for boxes.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "-d", help="The images, as blemish run takes them, or any folder of pictures: a row for each."
        ),
    ] = None,
    names: Annotated[
        Path | None, typer.Option("--image-names", help="Or a text with the name of an image per line.")
    ] = None,
    annotations: Annotated[
        Path | None, typer.Option("--annotations", help="Or COCO's annotations, for --answer boxes: their images.")
    ] = None,
    answer: Annotated[
        str,
        typer.Option(
            help="What is to be filled in: correct, score (any number), prediction beside label, boxes, scores and "
            "labels of a detector (boxes), or pixels of each class (pixels)."
        ),
    ] = "correct",
    model: Annotated[str, typer.Option("--name", help="What to call the model.")] = "model",
    only_some: Only = None,
    plugins: Plugins = None,
    overwrite: Overwrite = False,
) -> None:
    """Write an empty file of predictions for a benchmark: fill it in elsewhere, and let blemish score read it.

    With --data, --image-names or --annotations there is a row for every image under every condition, otherwise one for
    each condition.

    Examples:

      blemish template imagenet-c -d imagenet/val -o predictions.parquet

      blemish template imagenet-c --image-names images.txt --answer score --only fog,snow --name my-reader

      blemish template coco-c --annotations instances_val2017.json --answer boxes -o detections.jsonl
    """
    chosen = load_benchmark(benchmark, catalog=chosen_catalog(plugins))
    if patterns := listed(only_some):
        chosen = only(chosen, patterns)
    path = default_name(answer) if out is None else out
    check_template(path, answer, chosen)
    check_replaceable(path, overwrite=overwrite)
    if annotations is not None and answer != "boxes":
        raise InputError(f"--annotations for the answer {answer}; expected them with --answer boxes")
    images = _names(data, names, annotations)
    rows = write_template(chosen, path, images=images, answer=cast(Answer, answer), model=model)
    what = f"{len(images):,} images under {len(chosen.conditions)} conditions" if images else "no images yet"
    say(f"wrote {path} ({rows:,} rows: {what})")
    # A part has no number of the whole benchmark: it is a benchmark of its own.
    further = "" if patterns else f" --benchmark {benchmark}"
    further += f" --annotations {annotations or 'FILE'}" if answer == "boxes" else ""
    say(f"next: fill in {answer}, then: blemish score {path}{further}")


def _names(data: str | None, names: Path | None, annotations: Path | None) -> list[str]:
    """The names of the images; none where nobody says which they are."""
    given = {"--data": data, "--image-names": names, "--annotations": annotations}
    if len(chosen := [option for option, value in given.items() if value is not None]) > 1:
        raise InputError(f"{' and '.join(chosen)}; expected one of them")
    if annotations is not None:
        return list(coco_truth(annotations).images)
    if data is not None:
        return list_pictures(data) if _is_of_pictures_alone(Path(data)) else list(open_source(data).names)
    if names is None:
        return []
    images = [line.strip() for line in read_text(names).splitlines() if line.strip()]
    if twice := next((name for name, count in Counter(images).items() if count > 1), None):
        raise InputError(f"{names}: {twice} twice; expected each image once")
    return images


def _is_of_pictures_alone(path: Path) -> bool:
    """Whether a folder holds nothing but pictures, which need no labels here."""
    return path.is_dir() and all(
        entry.is_file() and entry.name.lower().endswith(PICTURE_SUFFIXES)
        for entry in path.iterdir()
        if not entry.name.startswith(".")
    )
