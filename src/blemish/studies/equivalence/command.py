"""``blemish equivalence``: images made on the fly against a set that somebody else made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.benchmark import STORAGES, Protocol
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.cache import load
from blemish.evaluation.fitting import fit
from blemish.models.base import Classifier
from blemish.ops.photographs import REFERENCE
from blemish.reports.html import check_report_path
from blemish.studies.equivalence.compare_sets import Equivalence, equivalence
from blemish.studies.equivalence.page import write_equivalence
from blemish.studies.equivalence.sets import chosen_cells, fair_storage, open_other
from blemish.studies.equivalence.tables import (
    accuracy_table,
    cell_table,
    equivalence_csv,
    equivalence_json,
    summary_table,
)
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Only, Plugins, Preset, Seed, Tiles, chosen_catalog, chosen_conditions
from blemish.terminal.images import Crop, ImageOptions, Limit, Resize, balanced_part
from blemish.terminal.models import BatchSize, OptionalModelOptions, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import complain
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import Level, TableOptions

_NUMBERS = (".csv", ".json", ".md", ".tex")


@dataclass(frozen=True, kw_only=True)
class _ResultOptions(TableOptions):
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A page to write (.html), or the numbers (.csv, .json, .md, .tex)."),
    ] = None


@exit_on_input_error
@spread_options
def equivalence_command(
    images: ImageOptions,
    stored: Annotated[
        Path,
        typer.Option(
            rich_help_panel="Images",
            help="Theirs: an ImageNet-C or CIFAR-10-C folder, or an .npz with an array for each cell, called fog@3.",
        ),
    ],
    model: OptionalModelOptions,
    speed: SpeedOptions,
    results: _ResultOptions,
    patterns: Only = None,
    limit: Limit = None,
    margin: Annotated[float, typer.Option(help="How far accuracies may lie apart, in points.")] = 1.0,
    tolerance: Annotated[
        float, typer.Option(help="How far image statistics may, as a share of the change from clean.")
    ] = 0.05,
    level: Level = 0.95,
    storage: Annotated[
        str | None,
        typer.Option(help="How theirs were stored, raw or jpeg85. Default: jpeg85 where their files are JPEG."),
    ] = None,
    seed: Seed = 0,
    preset: Preset = None,
    resize: Resize = None,
    crop: Crop = None,
    batch_size: BatchSize = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
) -> None:
    """Can images made on the fly stand in for a set that somebody else made from the same clean images?

    Compares image statistics and, with a model, accuracies, cell by cell, with intervals over images, for ours stored
    raw and as JPEG of quality 85.

    Examples:

      blemish equivalence -d imagenet/val --resize 256 --crop 224 --stored imagenet-c -m timm:resnet50 -o page.html

      blemish equivalence -d cifar10_test.npz --stored CIFAR-10-C --only "fog,*_noise" --limit 2000

      blemish equivalence -d clean.npz --stored other_generator.npz --preset imagenet --csv
    """
    page = results.out if results.out is not None and results.out.suffix.lower() not in _NUMBERS else None
    if results.out is not None:
        check_report_path(results.out, others=_NUMBERS)
    results.check()
    _check(margin, tolerance, storage)
    protocol = Protocol(preset=preset, seed=seed, resize=resize, crop=crop)
    whole = images.open()
    other = open_other(stored, whole, mapping=images.mapping)
    catalog = chosen_catalog(plugins, frost, tiles)
    cells, skipped = chosen_cells(other, chosen_conditions(patterns), catalog=catalog)
    for cell in cells:
        cell.check_files()
    names = {name for cell in cells for name in cell.names()}
    fair = storage or fair_storage(other, cells[0])
    classifier = model.open(catalog=catalog, class_names=images.class_names)
    if classifier is not None:
        classifier = speed.apply(classifier)
        whole = fit(classifier, whole, resize=resize, crop=crop).source
        other = open_other(stored, whole, mapping=images.mapping)  # again, because labels are the model's now
    warnings = _warnings(names, catalog, classifier)
    for text in warnings:
        complain(text)
    source = balanced_part(whole, limit)

    def work(report: Report) -> Equivalence:
        clean = load(source, resize=protocol.resize, crop=protocol.crop, progress=report)
        return equivalence(
            clean,
            other,
            cells,
            storage=fair,
            model=classifier,
            margin=margin,
            tolerance=tolerance,
            level=level,
            seed=protocol.seed,
            preset=protocol.preset,
            batch_size=batch_size,
            skipped=skipped,
            report=lambda cell, done: report(done * len(source), len(cells) * len(source), cell),
        )

    comparison = with_progress("equivalence", work, first="reading images", kept="nothing is kept.")
    numbers = replace(results, out=None) if page is not None else results
    numbers.deliver(
        json=lambda: equivalence_json(comparison),
        csv=lambda: equivalence_csv(comparison),
        tables=lambda: [
            table
            for table in (cell_table(comparison), accuracy_table(comparison), summary_table(comparison))
            if table is not None
        ],
    )
    if comparison.skipped:
        complain(f"not compared, as they cannot be made here: {', '.join(comparison.skipped)}")
    if page is not None:
        written = write_equivalence(comparison, page, warnings=warnings)
        complain(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)", style="")


def _check(margin: float, tolerance: float, storage: str | None) -> None:
    """Refuse settings that mean nothing, before any work."""
    for option, value in (("--margin", margin), ("--tolerance", tolerance)):
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{option} {value:g}; expected a number above 0")
    if storage is not None and storage not in STORAGES:
        raise InputError(f"--storage {storage!r}; expected {' or '.join(STORAGES)}")


def _warnings(names: set[str], catalog: Catalog, model: Classifier | None) -> list[str]:
    """What has to be known before a cell is believed."""
    warnings = []
    if "frost" in names and (kind := catalog.frost_kind) != REFERENCE:
        warnings.append(f"frost: ours has {kind} photographs here, not those of the reference")
    seen = sorted(
        names & {kin for name in (() if model is None else model.training.corruptions) for kin in catalog.kin(name)}
    )
    if model is not None and seen:
        warnings.append(f"{model.name} was trained on {', '.join(seen)}")
    return warnings
