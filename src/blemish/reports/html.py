"""The report: the page of one or several runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from blemish.core.errors import InputError, StorageError, storage_errors
from blemish.core.files import part_file, write_bytes
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.catalog import Catalog, catalog
from blemish.evaluation.info import DataInfo
from blemish.evaluation.runs import Run, RunLike, as_runs
from blemish.metrics.baselines import Baseline
from blemish.metrics.published import PublishedModel
from blemish.reports.first_words import first_words
from blemish.reports.material import Material, chosen_reading
from blemish.reports.page import ALL_INSIDE, ExtraSections, Page, render_page
from blemish.reports.picture_sections import picture_sections
from blemish.reports.protocol import run_warnings
from blemish.reports.reading import Reading, benchmark_notes, read_all, titles_of
from blemish.reports.sections import SCORE_SECTIONS, SETTING_SECTIONS, made
from blemish.version import VERSION

_SUFFIXES = (".html", ".htm")


def check_report_path(path: str | os.PathLike[str], *, others: Sequence[str] = ()) -> Path:
    """Refuse a file that is no page, nor of one of the ``others`` (suffixes), or that cannot be made, before any work.

    For that, a file is made where it will stand, or in the nearest folder that is there, and removed again.
    """
    target = Path(path)
    if target.suffix.lower() not in (*_SUFFIXES, *others):
        *first, last = (_SUFFIXES[0], *others)
        accepted = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{target}: expected a file name that ends in {accepted}")
    with storage_errors(f"cannot write {target}"):
        if target.is_dir():
            raise InputError(f"{target} is a folder; expected a file name")
        folder = next(parent for parent in target.absolute().parents if parent.exists())
        if not folder.is_dir():
            raise InputError(f"cannot write {target}: {folder} is a file; expected a folder")
    _try(target, folder)
    return target


def _try(target: Path, folder: Path) -> None:
    """Access rights do not tell all: file systems may be read-only, full, or not for files."""
    try:
        # Under its name, because names can be too long; it is removed at the end.
        with part_file(folder / target.name):
            pass
    except StorageError as error:
        reason = str(error).removeprefix(f"cannot write {folder / target.name}: ")
        raise StorageError(f"cannot write {target}: no file can be made in {folder}: {reason}") from error


def write_report(
    runs: RunLike | Sequence[RunLike],
    path: str | os.PathLike[str],
    *,
    extra: Sequence[ExtraSections] = (),
    published: Sequence[PublishedModel] = (),
    baseline: Baseline | Run | str | None = None,
    against: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    catalog: Catalog = catalog,
    report: ProgressReport = tell_nobody,
) -> Path:
    """Write the report of some runs, or of those in some folders; the file is complete or not there.

    ``extra`` are sections of studies, such as `blemish.studies.separation.section.separation_sections` finds them.
    ``published`` are models that stand beside those of the runs, such as `blemish.metrics.published.published_models`.
    ``against`` names the model that others are compared with, or its folder: by default the run that is the baseline,
    or else the best. Pictures are made again with the corruptions of the ``catalog``. ``report`` is told how far it has
    come.
    """
    target = check_report_path(path)
    content = report_page(
        as_runs(runs),
        extra=extra,
        published=published,
        baseline=baseline,
        against=against,
        level=level,
        replicates=replicates,
        catalog=catalog,
        report=report,
    )
    write_bytes(target, content.encode("utf-8"))
    return target


def report_page(
    runs: Sequence[Run],
    *,
    extra: Sequence[ExtraSections] = (),
    published: Sequence[PublishedModel] = (),
    baseline: Baseline | Run | str | None = None,
    against: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    catalog: Catalog = catalog,
    report: ProgressReport = tell_nobody,
) -> str:
    """The whole page as text; the same runs give the same page. What studies have to add stands before the pictures."""
    if not runs:
        raise InputError("no runs to report; expected at least one")
    readings = read_all(runs, baseline=baseline, level=level, replicates=replicates, report=report)
    chosen = chosen_reading(readings, against) if against is not None else _baseline_among(readings, baseline)
    material = Material(
        readings,
        baseline=baseline,
        level=level,
        replicates=replicates,
        published=published,
        against=chosen,
        catalog=catalog,
        report=report,
    )
    page = Page(
        title=f"Robustness report: {titles_of(readings)}",
        kicker="Robustness report",
        heading=titles_of(readings),
        first=first_words(material.sets),
        lead=" ".join([_lead(runs), *benchmark_notes(readings)]),
        warnings=[*run_warnings(readings), *(text for study in extra for text in study.warnings)],
        sections=[
            *made(SCORE_SECTIONS, material),
            *(section for study in extra for section in study.sections),
            *picture_sections(material),
            *made(SETTING_SECTIONS, material),
        ],
        footer=f"Made by blemish {VERSION} from the records of each run. {ALL_INSIDE}",
        models=material.names,
    )
    return render_page(page)


def _baseline_among(readings: Sequence[Reading], baseline: Baseline | Run | str | None) -> Reading | None:
    """The model that errors are divided by, where it is one of the report's: others are held against it."""
    if not isinstance(baseline, Run):
        return None
    return next((reading for reading in readings if reading.run.folder.samefile(baseline.folder)), None)


def _lead(runs: Sequence[Run]) -> str:
    """What was measured, in one line."""
    data = [run.info.data for run in runs]
    names = ", ".join(dict.fromkeys(f"{entry.name} ({_amount(entry)})" for entry in data))
    return f"{counted_models(runs)} under {max(len(run.conditions) for run in runs)} conditions, on {names}."


def counted_models(runs: Sequence[Run]) -> str:
    """How many models some runs are of; one may have several, of several benchmarks."""
    count = len({(run.info.model.name, run.info.model.weights) for run in runs})
    models = "1 model" if count == 1 else f"{count} models"
    return models if count == len(runs) else f"{models} in {len(runs)} runs"


def _amount(data: DataInfo) -> str:
    return f"{data.images} images" if data.selection == "all" else data.selection
