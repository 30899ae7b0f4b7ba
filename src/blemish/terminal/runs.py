"""Results that were named on the command line: folders of runs, and files of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.core.reading import is_file
from blemish.evaluation.runs import Run, find_runs
from blemish.tasks.prediction_files import SUFFIXES
from blemish.tasks.predictions import read_predictions

_SHOWN = 5


def named_runs(
    paths: Sequence[str | Path], *, benchmark: str | None = None, annotations: Path | None = None
) -> list[Run]:
    """The runs in folders, and the models of files of predictions; ``FILE:MODEL`` is one of them.

    ``benchmark`` and ``annotations`` are those of predictions; records know their own.
    """
    files = [path for path in paths if _is_predictions(path)]
    for option, given in (("--benchmark", benchmark), ("--annotations", annotations)):
        if given is not None and not files:
            raise InputError(f"{option} is for files of predictions; runs know their own")
    runs = []
    for path in paths:
        runs += _predicted(str(path), benchmark, annotations) if path in files else find_runs([path])
    folders = dict.fromkeys((run.folder.resolve(), run.name) for run in runs)
    return runs if len(folders) == len(runs) else list({(r.folder.resolve(), r.name): r for r in runs}.values())


def named_run(path: str | Path, *, benchmark: str | None = None, annotations: Path | None = None) -> Run:
    """The only run in a folder, or the only model of a file."""
    runs = named_runs([path], benchmark=benchmark, annotations=annotations)
    if len(runs) > 1 and _is_predictions(path):
        names = first_few([run.name for run in runs], _SHOWN)
        raise InputError(f"{path}: predictions of {len(runs)} models ({names}); expected one of them, {path}:MODEL")
    if len(runs) > 1:
        names = ", ".join(run.folder.name for run in runs)
        raise InputError(f"{path}: holds {len(runs)} runs ({names}); expected the folder of one")
    return runs[0]


def _is_predictions(path: str | Path) -> bool:
    return _split(str(path))[0].lower().endswith(SUFFIXES)


def _split(text: str) -> tuple[str, str | None]:
    """A file, and the model that was named after a colon.

    >>> _split("answers.csv:resnet50"), _split("answers.csv"), _split("results/vit")
    (('answers.csv', 'resnet50'), ('answers.csv', None), ('results/vit', None))
    """
    ends = [text.find(f"{suffix}:") + len(suffix) for suffix in SUFFIXES if f"{suffix}:" in text]
    if is_file(text) or not ends:
        return text, None
    return text[: min(ends)], text[min(ends) + 1 :]


def _predicted(text: str, benchmark: str | None, annotations: Path | None) -> list[Run]:
    file, model = _split(text)
    runs = read_predictions(file, benchmark=benchmark, annotations=annotations)
    if model is None:
        return runs
    chosen = [run for run in runs if run.name == model]
    if not chosen:
        raise InputError(f"{file}: no model {model!r}; it has {first_few([run.name for run in runs], _SHOWN)}")
    return chosen
