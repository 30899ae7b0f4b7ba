"""Many models in one table, a row for each: what studies over models read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blemish.core.csv_files import csv_text
from blemish.core.errors import InputError
from blemish.metrics.compare import protocol_differences
from blemish.reports.reading import Reading

_CLEAN = "clean"

# Accuracies are means over images; what dividing percent by a hundred adds lies beyond these digits.
_DIGITS = 12


def models_csv(readings: Sequence[Reading]) -> str:
    """A row per model: accuracies as fractions, by corruption and set, and the means of its benchmarks as shown.

    Columns are ``clean``, the corruptions (means over their severities), ``natural:SET`` and ``clean:SET``, and
    ``BENCHMARK:METRIC`` for each mean over a benchmark, such as ``imagenet-p:mfr``. Runs of one model under several
    benchmarks share a row; cells that nobody measured are empty. Runs that contradict each other are refused.
    """
    _check_alike(readings)
    rows: dict[str, dict[str, float]] = {reading.run.name: {} for reading in readings}
    sources: dict[tuple[str, str], Reading] = {}
    for cells in (_accuracies, _means):
        for reading in readings:
            name = reading.run.name
            for column, value in cells(reading):
                before = sources.setdefault((name, column), reading)
                known = rows[name].setdefault(column, value)
                if known != value:
                    raise InputError(
                        f"{name}: {column} is {known:g} in {before.run.folder} and {value:g} in {reading.run.folder}; "
                        "expected one number, so results on the same images"
                    )
    columns = list(dict.fromkeys(column for _, column in sources))
    lines = [[name, *(repr(row[column]) if column in row else "" for column in columns)] for name, row in rows.items()]
    return csv_text([["model", *columns], *lines])


def _accuracies(reading: Reading) -> Iterator[tuple[str, float]]:
    for score in reading.scores.select(name="accuracy"):
        if score.scope in ("corruption", "natural") or (score.scope, score.of) == ("condition", _CLEAN):
            yield score.of, round(score.estimate.value / 100, _DIGITS)


def _means(reading: Reading) -> Iterator[tuple[str, float]]:
    for score in reading.scores.select(scope="benchmark"):
        yield f"{reading.scores.benchmark}:{score.name}", score.estimate.value


def _check_alike(readings: Sequence[Reading]) -> None:
    """Refuse runs of one benchmark that were not measured alike, and two models of one name."""
    first: dict[str, Reading] = {}
    models: dict[str, Reading] = {}
    for reading in readings:
        run = reading.run
        same = models.setdefault(run.name, reading).run
        if run.info.model.weights != same.info.model.weights:
            raise InputError(f"{run.folder} and {same.folder} are of two models that are both called {run.name}")
        reference = first.setdefault(reading.scores.benchmark, reading).run
        if unlike := protocol_differences(reference, run):
            raise InputError(f"{run.folder} and {reference.folder} were not measured in the same way: {unlike[0]}")
