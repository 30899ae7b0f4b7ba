"""``blemish equivalence``: images made on the fly against a set that somebody else made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.benchmarks.benchmark import STORAGES, Protocol
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.models.base import Classifier
from blemish.models.open import open_model
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
from blemish.terminal.commands import AllowCode, Frost, chosen_catalog, complain, exit_on_input_error
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import AsCsv, AsJson, AsMarkdown, Format, Level, chosen_format, deliver, numbers

__all__ = ["equivalence_command"]

_MODEL = "Model"
_IMAGES = "Images"
_NUMBERS = (".csv", ".json", ".md")


@exit_on_input_error
def equivalence_command(
    data: Annotated[
        str,
        typer.Option(
            "--data", "-d", rich_help_panel=_IMAGES, help="Clean images: class folders, .npy or .npz, or .tar shards."
        ),
    ],
    stored: Annotated[
        Path,
        typer.Option(
            rich_help_panel=_IMAGES,
            help="Theirs: an ImageNet-C or CIFAR-10-C folder, or an .npz with an array for each cell, called fog@3.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", rich_help_panel=_MODEL, help="Also compare accuracies; as for blemish run."),
    ] = None,
    patterns: Annotated[
        str | None, typer.Option("--only", help="Only these cells: fog,snow@3,*_noise. Separated by commas.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Use so many images, taken from all classes in proportion."),
    ] = None,
    margin: Annotated[float, typer.Option(help="How far accuracies may lie apart, in points.")] = 1.0,
    tolerance: Annotated[
        float, typer.Option(help="How far image statistics may, as a share of the change from clean.")
    ] = 0.05,
    level: Level = 0.95,
    page: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A page to write (.html), or the numbers (.csv, .json, .md)."),
    ] = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    storage: Annotated[
        str | None,
        typer.Option(help="How theirs were stored, raw or jpeg85. Default: jpeg85 where their files are JPEG."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of ours.")] = 0,
    preset: Annotated[
        str | None, typer.Option(help="Severity table of ours: that of theirs. Default: by the size of the images.")
    ] = None,
    resize: Annotated[int | None, typer.Option(rich_help_panel=_IMAGES, help="Shorter side of clean images.")] = None,
    crop: Annotated[int | None, typer.Option(rich_help_panel=_IMAGES, help="Centre square of clean images.")] = None,
    labels: Annotated[
        Path | None, typer.Option(rich_help_panel=_IMAGES, help="Labels, for an array file without them.")
    ] = None,
    mapping: Annotated[
        str | None, typer.Option(rich_help_panel=_IMAGES, help="Class order, as for blemish run.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(rich_help_panel=_MODEL, help="A file of weights for python:… (never unpickled).")
    ] = None,
    name: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="What to call the model.")] = None,
    size: Annotated[int | None, typer.Option(rich_help_panel=_MODEL, help="Side of the model's input.")] = None,
    mean: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="Subtracted from values in 0 … 1.")] = None,
    std: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="Divided by.")] = None,
    device: Annotated[str, typer.Option(rich_help_panel=_MODEL, help="cpu, cuda, cuda:1 … or auto.")] = "auto",
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images at a time. Default: by the device.")] = None,
    allow_code: AllowCode = False,
    frost: Frost = None,
    overwrite: Overwrite = False,
) -> None:
    """Can images made on the fly stand in for a set that somebody else made from the same clean images?

    Compares image statistics and, with a model, accuracies, cell by cell, with intervals over images, for ours stored
    raw and as JPEG of quality 85. Models with more settings than there are here come in a .toml file.

    Examples:

      blemish equivalence -d imagenet/val --resize 256 --crop 224 --stored imagenet-c -m timm:resnet50 -o page.html

      blemish equivalence -d cifar10_test.npz --stored CIFAR-10-C --only "fog,*_noise" --limit 2000

      blemish equivalence -d clean.npz --stored other_generator.npz --preset imagenet --csv
    """
    if page is not None:
        check_report_path(page, others=_NUMBERS)
        check_replaceable(page, overwrite=overwrite)
    html = page if page is not None and page.suffix.lower() not in _NUMBERS else None
    output = page if html is None else None
    format_ = chosen_format(output, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, as_latex=False)
    _check(margin, tolerance, storage)
    protocol = Protocol(preset=preset, seed=seed, resize=resize, crop=crop)
    whole = open_source(data, labels=labels, mapping=mapping)
    other = open_other(stored, whole, mapping=mapping)
    wanted = [item.strip() for item in (patterns or "").split(",") if item.strip()]
    catalog = chosen_catalog(frost)
    cells, skipped = chosen_cells(other, wanted, catalog=catalog)
    for cell in cells:
        cell.check_files()
    names = {name for cell in cells for name in cell.names()}
    fair = storage or fair_storage(other, cells[0])
    classifier = None
    if model is not None:
        classifier = open_model(
            model,
            weights=weights,
            name=name,
            size=size,
            mean=numbers(mean, "--mean"),
            std=numbers(std, "--std"),
            device=device,
            allow_code=allow_code,
        )
    elif unused := [
        text for text, value in _model_options(weights, name, size, mean, std).items() if value is not None
    ]:
        raise InputError(f"{unused[0]} without --model; expected a model that it is for")
    if classifier is not None:
        whole = fit(classifier, whole, resize=resize, crop=crop).source
        other = open_other(stored, whole, mapping=mapping)  # again, because labels are the model's now
    warnings = _warnings(names, catalog, classifier)
    for text in warnings:
        complain(text)
    source = _part(whole, limit)

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

    found = with_progress("equivalence", work, first="reading images", kept="nothing is kept.")
    _print(found, format_, output)
    if html is not None:
        written = write_equivalence(found, html, warnings=warnings)
        complain(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)", style="")


def _check(margin: float, tolerance: float, storage: str | None) -> None:
    """Refuse settings that mean nothing, before any work."""
    for option, value in (("--margin", margin), ("--tolerance", tolerance)):
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{option} {value:g}; expected a number above 0")
    if storage is not None and storage not in STORAGES:
        raise InputError(f"--storage {storage!r}; expected {' or '.join(STORAGES)}")


def _model_options(
    weights: Path | None, name: str | None, size: int | None, mean: str | None, std: str | None
) -> dict[str, object]:
    return {"--weights": weights, "--name": name, "--size": size, "--mean": mean, "--std": std}


def _part(source: Source, limit: int | None) -> Source:
    if limit is None or limit >= len(source):
        return source
    return source.take(np.sort(stratified_order(source.labels, source.ids)[:limit]))


def _warnings(names: set[str], catalog: Catalog, model: Classifier | None) -> list[str]:
    """What has to be known before a cell is believed."""
    found = []
    if "frost" in names and (kind := catalog.frost_kind) != REFERENCE:
        found.append(f"frost: ours has {kind} photographs here, not those of the reference")
    seen = sorted(
        names & {kin for name in (() if model is None else model.training.corruptions) for kin in catalog.kin(name)}
    )
    if model is not None and seen:
        found.append(f"{model.name} was trained on {', '.join(seen)}")
    return found


def _print(found: Equivalence, format_: Format, output: Path | None) -> None:
    if format_ is Format.JSON:
        deliver(equivalence_json(found), output)
    elif format_ is Format.CSV:
        deliver(equivalence_csv(found), output)
    else:
        tables = [cell_table(found), accuracy_table(found), summary_table(found)]
        deliver([table for table in tables if table is not None], output, format_)
    if found.skipped:
        text = f"not compared, as they cannot be made here: {', '.join(found.skipped)}"
        complain(text)
