"""``blemish leaderboard card``: numbers for a model's page on the Hugging Face Hub."""

from __future__ import annotations

from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.reading import is_there
from blemish.evaluation.runs import Run, as_run
from blemish.studies.leaderboard.entry import ENTRY_FILE, ModelEntry, read_entry
from blemish.studies.leaderboard.hub import Source, eval_results_yaml, model_index_yaml
from blemish.studies.leaderboard.make import CLEAN_ERROR, Numbers, numbers_of, plain_part
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import emit, say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import Level, Replicates

_HUB = "Ids on the Hub"


class Form(Enum):
    """The forms of results on the Hub."""

    EVAL_RESULTS = "eval-results"
    MODEL_INDEX = "model-index"


@exit_on_input_error
def card_command(
    folder: Annotated[Path, typer.Argument(metavar="ENTRY", help="An entry, or the folder of a run.")],
    form: Annotated[
        Form, typer.Option("--form", help="A file for .eval_results/, or the older head of README.md.")
    ] = Form.MODEL_INDEX,
    dataset: Annotated[
        str,
        typer.Option(
            rich_help_panel=_HUB, help="The dataset where the benchmark is registered; of model-index, its type."
        ),
    ] = "",
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--task", rich_help_panel=_HUB, metavar="METRIC=ID", help="The id of a metric's task. May be repeated."
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Of model-index: which numbers. Default: the headline and the clean error."),
    ] = None,
    revision: Annotated[str, typer.Option(rich_help_panel=_HUB, help="The commit of the dataset.")] = "",
    date: Annotated[str, typer.Option(help="When it was measured, such as 2026-03-31.")] = "",
    source_url: Annotated[str, typer.Option(help="Where the result comes from.")] = "",
    source_name: Annotated[str, typer.Option(help="What that is called.")] = "",
    source_user: Annotated[str, typer.Option(help="A user of the Hub.")] = "",
    source_org: Annotated[str, typer.Option(help="An organisation of the Hub.")] = "",
    level: Level = 0.95,
    replicates: Replicates = 1000,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file to write to.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write numbers in the forms of the Hugging Face Hub, with metric, protocol and interval in the notes.

    Examples:

      blemish leaderboard card board/resnet50

      blemish leaderboard card board/resnet50 --form eval-results --dataset me/imagenet-c --task mce=mce -o mce.yaml
    """
    check_replaceable(out, overwrite=overwrite)
    source = Source(url=source_url, name=source_name, user=source_user, org=source_org)
    run, seal = _opened(folder)
    named = _tasks(tasks or [])
    if form is Form.MODEL_INDEX and named:
        raise InputError("--task with model-index, which has no tasks; expected --metric, or --form eval-results")
    if form is Form.EVAL_RESULTS and metrics:
        raise InputError("--metric with eval-results; expected --task METRIC=ID, for each has the id of its task")
    if form is Form.EVAL_RESULTS and not (dataset and named):
        raise InputError("--form eval-results without --dataset ORG/NAME and --task METRIC=ID, the ids on the Hub")
    work = partial(_numbers, run, level, replicates)
    numbers = with_progress("card", work, first="reading records", unit=None, kept="nothing is changed.")
    if form is Form.EVAL_RESULTS:
        text = eval_results_yaml(
            numbers, run, named, dataset=dataset, revision=revision, date=date, source=source, level=level, seal=seal
        )
    else:
        names = metrics or list(dict.fromkeys([numbers.headline, CLEAN_ERROR]))
        text = model_index_yaml(numbers, run, names, dataset=dataset, source=source, level=level, seal=seal)
    if out is None:
        emit(text)
    else:
        write_bytes(out, text.encode("utf-8"))
        say(f"wrote {out}")


def _opened(folder: Path) -> tuple[Run, str]:
    """The run of an entry, with its seal, or a run."""
    if folder.is_file() or is_there(folder / ENTRY_FILE):
        entry = read_entry(folder)
        if not isinstance(entry, ModelEntry):
            raise InputError(f"{folder}: published numbers of several models; expected the entry of one")
        return entry.run, entry.header.seal
    return plain_part(as_run(folder)), ""


def _tasks(texts: list[str]) -> dict[str, str]:
    tasks = {}
    for text in texts:
        metric, separator, task = text.partition("=")
        if not separator or not metric or not task:
            raise InputError(f"--task {text!r}; expected METRIC=ID, such as mce=imagenet-c-mce")
        tasks[metric] = task
    return tasks


def _numbers(run: Run, level: float, replicates: int, report: Report) -> Numbers:
    return numbers_of(run, level=level, replicates=replicates, report=report)
