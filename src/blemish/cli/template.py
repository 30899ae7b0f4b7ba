"""``blemish template``: an empty file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.benchmarks.benchmark import only
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.reading import read_text
from blemish.data.open import open_source
from blemish.tasks.template import Answer, check_template, write_template
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Only, Plugins, chosen_catalog
from blemish.terminal.lists import listed
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say


@exit_on_input_error
def template_command(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help='A name from "blemish benchmarks", or a file.')],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: .csv, .jsonl or .parquet.")] = Path(
        "predictions.csv"
    ),
    data: Annotated[
        str | None, typer.Option("--data", "-d", help="The images, as blemish run takes them: a row for each of them.")
    ] = None,
    names: Annotated[
        Path | None, typer.Option("--image-names", help="Or a text with the name of an image per line.")
    ] = None,
    answer: Annotated[
        str, typer.Option(help="What is to be filled in: correct, score (any number), or prediction beside label.")
    ] = "correct",
    model: Annotated[str, typer.Option("--name", help="What to call the model.")] = "model",
    only_some: Only = None,
    plugins: Plugins = None,
    overwrite: Overwrite = False,
) -> None:
    """Write an empty file of predictions for a benchmark: fill it in elsewhere, and let blemish score read it.

    With --data or --image-names there is a row for every image under every condition, otherwise one for each condition.

    Examples:

      blemish template imagenet-c -d imagenet/val -o predictions.parquet

      blemish template imagenet-c --image-names images.txt --answer score --only fog,snow --name my-reader
    """
    chosen = load_benchmark(benchmark, catalog=chosen_catalog(plugins))
    if patterns := listed(only_some):
        chosen = only(chosen, patterns)
    check_template(out, answer, chosen)
    check_replaceable(out, overwrite=overwrite)
    if data is not None and names is not None:
        raise InputError("--data and --image-names; expected one of them")
    images: list[str] = []
    if data is not None:
        images = list(open_source(data).names)
    elif names is not None:
        images = [line.strip() for line in read_text(names).splitlines() if line.strip()]
        if twice := [name for name in dict.fromkeys(images) if images.count(name) > 1][:1]:
            raise InputError(f"{names}: {twice[0]} twice; expected each image once")
    rows = write_template(chosen, out, images=images, answer=cast(Answer, answer), model=model)
    what = f"{len(images):,} images under {len(chosen.conditions)} conditions" if images else "no images yet"
    say(f"wrote {out} ({rows:,} rows: {what})")
    say(f"next: fill in {answer}, then: blemish score {out} --benchmark {benchmark}")
