"""Folders of results: one per model, with a file that says how everything in it was measured, and the records.

::

    OUT/<model>/run.json                  the protocol, the data, the model, and the conditions of the benchmark
    OUT/<model>/records/<condition>.parquet
    OUT/<model>/records/<condition>.1.parquet    further images, where a run went on until it was precise enough
    OUT/<model>/pictures.npz              a few of the images, for the report
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import CLEAN, Condition, read_condition
from blemish.core.errors import InputError
from blemish.core.frames import Columns, Curve, Plotted
from blemish.core.printable import first_few
from blemish.core.reading import is_file, is_folder, is_there, read_json
from blemish.core.typed import read_typed
from blemish.corruptions.catalog import hint
from blemish.evaluation.answers import Answers, join_answers, read_answers
from blemish.evaluation.info import RecordsHeader, RunInfo
from blemish.evaluation.records import Records, join, read_correct, read_header, read_records

RUN_FILE = "run.json"

_OF_STREAMS = ("stream", "methods")
RECORDS = "records"
NOT_HERE = "made elsewhere"
"""What a run says of pixels that nobody here has seen: those of predictions that came as a file."""

PICTURES = "pictures.npz"


_SHOWN = 5

# File systems end names at 255 bytes, and a letter may take four.
_LONGEST_NAME = 60


def model_folder(out: Path, name: str) -> Path:
    """The folder of a model's results, by its name as every system takes it."""
    return out / (re.sub(r"[^\w.@+-]", "_", name)[:_LONGEST_NAME].strip(".") or "model")


def record_path(folder: Path, condition: Condition, stage: int = 0) -> Path:
    """Where the records of a condition stand; later stages hold further images."""
    return folder / RECORDS / (f"{condition.slug}.parquet" if stage == 0 else f"{condition.slug}.{stage}.parquet")


@dataclass(frozen=True, repr=False)
class Run(Plotted):
    """The results of one model on one benchmark. ``info`` is the content of its run file.

    ``run["fog@3"]`` are the records of a condition, ``for name in run`` gives the names of those that are finished, and
    ``run.to_pandas()`` has a row for each of them.
    """

    folder: Path
    info: RunInfo

    @property
    def name(self) -> str:
        """The model's name."""
        return self.info.model.name

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions of the benchmark, measured or not, in its order; clean images come first."""
        return tuple(read_condition(text) for text in self.info.benchmark.conditions)

    def family(self, condition: Condition) -> str:
        """The family of a condition's corruption; several one after the other are chains."""
        names = condition.names()
        if len(names) != 1:
            return "chains"
        families = self.info.benchmark.families
        if names[0] not in families:
            raise InputError(f"no family of {names[0]} in benchmark.families")
        return str(families[names[0]])

    def finished(self, condition: Condition) -> bool:
        """Whether all records of a condition are there."""
        return all(is_file(record_path(self.folder, condition, stage)) for stage in range(self.stages))

    @property
    def stages(self) -> int:
        """How many files each condition has."""
        return len(self.info.stages)

    def records(self, condition: Condition) -> Records:
        """The records of a condition; an error that names it where they are missing or are another run's."""
        return join([self.part(condition, stage) for stage in range(self.stages)])

    def part(self, condition: Condition, stage: int) -> Records:
        """The records of a condition in one stage."""
        path = self._path(condition, stage)
        records = read_records(path)
        self._check(path, records.header, condition, stage)
        return records

    def answers(self, condition: Condition) -> Answers:
        """The records of a condition of a run of another task than classification."""
        return join_answers([self.answers_part(condition, stage) for stage in range(self.stages)])

    def answers_part(self, condition: Condition, stage: int) -> Answers:
        """The records of a condition of another task, in one stage."""
        path = self._path(condition, stage)
        answers = read_answers(path)
        self._check(path, answers.header, condition, stage)
        return answers

    def correct(self, condition: Condition) -> NDArray[np.bool_]:
        """Whether the first class is the label, row by row: `records` without the rest of them."""
        parts = []
        for stage in range(self.stages):
            path = self._path(condition, stage)
            header, correct = read_correct(path)
            self._check(path, header, condition, stage)
            parts.append(correct)
        return np.concatenate(parts)

    def __getitem__(self, text: str) -> Records:
        names = {str(condition): condition for condition in self.conditions}
        if text not in names:
            raise InputError(f"{self.folder}: no condition {text!r}; {hint(str(text), [*names])}")
        return self.records(names[text])

    def __iter__(self) -> Iterator[str]:
        return (str(condition) for condition in self.conditions if self.finished(condition))

    def __contains__(self, text: object) -> bool:
        return text in list(self)

    def caption(self) -> str:
        """The model, the benchmark and the number of images."""
        return f"{self.name} on {self.info.benchmark.name}: {self.info.data.images} images"

    def table(self) -> Columns:
        """A row for every condition that is finished: how many images (or frames), and the share of right answers.

        Of tasks besides classification it holds no shares: `blemish.score` has their numbers.
        """
        finished = [condition for condition in self.conditions if self.finished(condition)]
        if self.info.task is not None:
            return {
                "condition": [str(condition) for condition in finished],
                "corruption": [condition.group for condition in finished],
                "severity": [condition.severity for condition in finished],
                "images": [len(self.answers(condition)) for condition in finished],
            }
        correct = [self.correct(condition) for condition in finished]
        accuracies = [float(values.mean()) for values in correct]
        return {
            "condition": [str(condition) for condition in finished],
            "corruption": [condition.group for condition in finished],
            "severity": [condition.severity for condition in finished],
            "images": [len(values) for values in correct],
            "accuracy": accuracies,
            "error": [1 - value for value in accuracies],
        }

    def curves(self) -> dict[str, Curve]:
        """Errors over severity, by corruption."""
        return {} if self.info.task is not None else curves_of(self.table(), scale=100)

    def axis(self) -> str:
        """What the curves show."""
        return "error [%]"

    def _path(self, condition: Condition, stage: int) -> Path:
        path = record_path(self.folder, condition, stage)
        if not is_file(path):
            raise InputError(f"{self.folder}: no records of {condition} yet; run the same command again to finish")
        return path

    def check(self, path: Path, condition: Condition, stage: int) -> None:
        """Refuse a file that is not of this condition, or was not measured in the way of this run."""
        self._check(path, read_header(path), condition, stage)

    def _check(self, path: Path, header: RecordsHeader, condition: Condition, stage: int) -> None:
        if header.condition != str(condition):
            raise InputError(f"{path}: records of {header.condition or 'no condition'}; expected {condition}")
        if unlike := self.info.unlike(header, stage, condition):
            raise InputError(f"{path}: its {unlike} is not that of {self.folder / RUN_FILE}; was it copied here?")


def curves_of(columns: Columns, *, scale: float = 1, quantity: str = "error") -> dict[str, Curve]:
    """The values of a table over severity, by corruption, from the clean images on; with intervals where it has any."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    clean = [{**row, "severity": 0.0} for row in rows if row["condition"] == str(CLEAN)]
    curves = {}
    for name in dict.fromkeys(row["corruption"] for row in rows if row["severity"] is not None):
        own = sorted((row for row in rows if row["corruption"] == name), key=lambda row: float(row["severity"]))
        columns_of = {key: [row[key] for row in [*clean, *own]] for key in columns}
        values, *ends = (
            [scale * value for value in columns_of[key]] for key in (quantity, "low", "high") if key in columns
        )
        curves[name] = Curve(columns_of["severity"], values, *ends)
    return curves


RunLike = Run | str | os.PathLike[str]
"""A run, or the folder that holds it."""


def as_run(run: RunLike) -> Run:
    """The run, or the only one in a folder."""
    if isinstance(run, Run):
        return run
    runs = find_runs([run])
    if len(runs) > 1:
        names = ", ".join(one.folder.name for one in runs)
        raise InputError(
            f"{os.fspath(run)}: holds {len(runs)} runs ({names}); expected one, or a list to take them all"
        )
    return runs[0]


def as_runs(runs: RunLike | Sequence[RunLike]) -> list[Run]:
    """The runs of a list of runs and folders, in its order, or of one of them; a folder may hold several."""
    each = runs if isinstance(runs, Iterable) and not isinstance(runs, (Run, str)) else [runs]
    return [run for one in each for run in ([one] if isinstance(one, Run) else find_runs([one]))]


def as_pair(first: RunLike | Sequence[RunLike], second: RunLike | None) -> tuple[Run, Run]:
    """Two runs: one by one, or a list or a folder of two."""
    runs = as_runs(first) if second is None else [as_run(one) for one in (first, second)]  # type: ignore[arg-type]
    if len(runs) != 2:
        raise InputError(f"{len(runs)} runs ({first_few([run.name for run in runs], _SHOWN)}); expected two to compare")
    return runs[0], runs[1]


def open_run(folder: str | os.PathLike[str]) -> Run:
    """The run in a folder."""
    path = Path(folder) / RUN_FILE
    if not is_there(path):
        files = sorted(Path(folder).glob(f"*/{RUN_FILE}")) if is_folder(folder) else []
        below = [file.parent.name for file in files]
        hold = f" itself, but in its folders {first_few(below, _SHOWN)}; open one of them" if below else ""
        raise InputError(f"{Path(folder)}: no {RUN_FILE} in it{hold or '; expected a folder that blemish run made'}")
    try:
        content = read_json(path)
        if isinstance(content, dict) and all(key in content for key in _OF_STREAMS) and "benchmark" not in content:
            raise _StreamError(
                f"{Path(folder)}: made by blemish ccc run, whose numbers are in its summary.json; expected a "
                "folder that blemish run made"
            )
        run = Run(Path(folder), read_typed(RunInfo, content))
        if not run.stages:
            raise InputError("stages is empty; expected the data of at least one")
        if not run.conditions:
            raise InputError("no conditions in it")
        for condition in run.conditions:
            if len(condition.steps) == 1 and not condition.is_sequence:
                run.family(condition)
    except _StreamError:
        raise
    except InputError as error:
        raise InputError(f"{path}: not a readable run file ({error})") from error
    return run


class _StreamError(InputError):
    """A folder of results, but of a stream."""


def find_runs(folders: Iterable[str | os.PathLike[str]]) -> list[Run]:
    """The runs in folders, or in the folders directly below them, in the order given; each once.

    Streams (blemish ccc run) beside runs are passed over.
    """
    runs: dict[Path, Run] = {}
    for folder in folders:
        if not isinstance(folder, (str, os.PathLike)):
            raise InputError(f"results of type {type(folder).__name__}; expected a run, or the folder that holds it")
        root = Path(folder)
        if not is_folder(root):
            raise InputError(f"{root}: no such folder; expected one that blemish run made")
        files = [root / RUN_FILE] if is_there(root / RUN_FILE) else sorted(root.glob(f"*/{RUN_FILE}"))
        if not files:
            raise InputError(f"{root}: no results in it; expected a folder that blemish run made")
        streams = []
        for file in files:
            try:
                runs.setdefault(file.parent.resolve(), open_run(file.parent))
            except _StreamError as error:
                streams.append(error)
        if len(streams) == len(files):
            raise streams[0]
    return list(runs.values())
