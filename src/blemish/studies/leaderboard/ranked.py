"""Rankings out of entries and published tables: who may be compared, in what order, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate
from blemish.metrics.caveats import part_of
from blemish.metrics.effective import why_no_line
from blemish.metrics.imports import AdaptationTable, PublishedRow, PublishedTable
from blemish.metrics.rank_groups import rank_ranges
from blemish.metrics.ranking import comparable, rank_runs
from blemish.metrics.testbed import effective_robustness, published_lines
from blemish.metrics.titles import TITLES, whole_title
from blemish.metrics.unpaired import p_values_of_intervals, pareto
from blemish.models.card import training_card
from blemish.studies.leaderboard.entry import ModelEntry
from blemish.studies.leaderboard.lines import Line, Ranking
from blemish.studies.leaderboard.make import CLEAN_ERROR, Numbers, numbers_of

_WHOLE = 75
_LONGEST = 80
_PAIRED = (
    "Ranks are ranges: two models are told apart where a paired test on the same images says so, corrected for all "
    "pairs (Holm). Models that share a letter are not."
)
_UNPAIRED = (
    "Ranks are ranges: two models are told apart where their intervals are too far from each other, as if they had "
    "answered different images, corrected for all pairs (Holm). Paired tests might tell more apart; nobody can do them."
)
_LINE_IMAGES = 50_000
_OTHER_IMAGES = (
    "Effective robustness is measured from a line on all 50,000 images; these are {:,}, whose choice shifts it."
)
_ORDER_ONLY = "In the order of what is claimed. No intervals are known, so that nobody is told apart."


def rankings_of_entries(
    entries: Sequence[ModelEntry],
    *,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> list[Ranking]:
    """A ranking for each set of entries that were measured alike."""
    if twice := _twice(entry.header.seal for entry in entries):
        raise InputError(
            f"an entry is there twice: {', '.join(str(e.path) for e in entries if e.header.seal == twice)}"
        )
    rankings: list[Ranking] = []
    for members in comparable([entry.run for entry in entries]):
        own = [entries[index] for index in members]
        rankings.append(_of_entries(own, len(rankings), level=level, replicates=replicates, report=report))
    return rankings


def _twice(values: Iterable[str]) -> str | None:
    seen = set[str]()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def _of_entries(
    entries: Sequence[ModelEntry], number: int, *, level: float, replicates: int, report: ProgressReport
) -> Ranking:
    runs = [entry.run for entry in entries]
    ranked = rank_runs(runs, level=level, replicates=replicates, report=report)
    numbers: dict[int, Numbers] = {}
    for index in (place.index for place in ranked.places):
        numbers[index] = numbers_of(runs[index], level=level, replicates=replicates, report=report)
        if ranked.metric not in numbers[index].values:
            raise InputError(f"{entries[index].path}: too few images for an interval of its {ranked.metric}")
    title, first = TITLES[ranked.metric], runs[0].info
    lines = [
        replace(
            _line_of(entries[place.index], numbers[place.index], ranked.metric),
            low=place.low,
            high=place.high,
            letters=place.letters,
        )
        for place in ranked.places
    ]
    data = first.data
    images = f"{data.images:,}" if data.selection == "all" else data.selection.partition(",")[0]
    protocol = {
        "images": images,
        "which": f"{data.name} ({data.selection}), fingerprint {data.fingerprint[:12]}",
        "pixels": "stored by others" if first.protocol.pixels == "stored" else _made(entries[0]),
        "shown": _shown(entries[0]),
        **({"divided by": f"the published {first.benchmark.baseline}"} if "ce" in ranked.metric.split("_")[-1] else {}),
    }
    part = part_of(runs[0])
    return Ranking(
        identity=f"{slug(first.benchmark.name)}-entries-{number + 1}",
        title=f"Entries: {data.name}, {images} images, {protocol['pixels']}",
        benchmark=first.benchmark.name if part is None else part.benchmark,
        tier="recomputable",
        metric=whole_title(ranked.metric, part),
        unit=title.unit,
        higher_is_better=title.higher_is_better,
        protocol={key: text for key, text in protocol.items() if text},
        source="sealed entries",
        how=_PAIRED if len(entries) > 1 else "A single model: there is nothing to rank it against.",
        lines=_finished(lines, higher_is_better=title.higher_is_better),
        notes=tuple(f"{runs[index].name} has no rank: {why}" for index, why in ranked.unranked.items()),
        cells=tuple(str(condition) for condition in runs[0].conditions if condition != CLEAN),
    )


def _made(entry: ModelEntry) -> str:
    protocol = entry.header.protocol
    return f"made here, {'JPEG of quality 85' if protocol.storage == 'jpeg85' else protocol.storage}"


def _shown(entry: ModelEntry) -> str:
    protocol = entry.header.protocol
    parts = [
        f"{name} {value}"
        for name in ("resize", "crop", "square", "centre")
        if (value := getattr(protocol, name)) is not None
    ]
    return ", ".join(parts) or "as they are"


def _line_of(entry: ModelEntry, numbers: Numbers, metric: str) -> Line:
    header, clean = entry.header, numbers.values[CLEAN_ERROR].value
    card = header.model.card
    effective = None
    if why_no_line(entry.run) is None:
        effective = _effective(clean, list(numbers.cells.values()))
    return Line(
        model=entry.name,
        value=numbers.values[metric],
        low=0,
        high=0,
        clean=clean,
        cells=numbers.cells,
        parameters=None if card is None else card.parameters,
        training_data="" if card is None else ", ".join(card.training_data),
        web_scale=None if card is None else card.web_scale,
        speed=header.speed,
        effective=effective,
        trained_on=numbers.trained_on,
        details={key: text for key, text in {"notes": header.notes, "weights": header.model.weights}.items() if text},
        link=header.link,
        seal=header.seal,
    )


def ranking_of_table(table: PublishedTable, *, level: float = 0.95) -> Ranking:
    """The ranking of a published table, whose intervals have this level."""
    info = table.info
    estimates = [row.value for row in table.rows]
    known = all(estimate.width > 0 for estimate in estimates)
    places = rank_ranges([e.value for e in estimates], p_values_of_intervals(estimates, level=level), level=level)
    whole = info.benchmark == "imagenet-c" and len(table.weights) == _WHOLE
    lines = [
        replace(_line_of_row(table.rows[place.index], whole=whole), low=place.low, high=place.high) for place in places
    ]
    title = TITLES[info.metric]
    return Ranking(
        identity=slug(info.name),
        title=info.title,
        benchmark=info.benchmark,
        tier=info.tier,
        metric=whole_title(info.metric) if info.cells is not None else title.title,
        unit=title.unit,
        higher_is_better=False,
        protocol=info.protocol,
        source=", ".join(text for text in (info.source, info.date) if text),
        how=_UNPAIRED if known else _ORDER_ONLY,
        lines=_finished(lines, higher_is_better=False),
        can=info.can,
        cannot=info.cannot,
        notes=(_OTHER_IMAGES.format(info.images),) if whole and info.images != _LINE_IMAGES else (),
        cells=tuple(table.weights),
    )


def _line_of_row(row: PublishedRow, *, whole: bool) -> Line:
    card = training_card([row.model], "its name")
    details = dict(row.details)
    link = details.pop("link", "")
    said = details.pop("data", "")
    return Line(
        model=row.model,
        value=row.value,
        low=0,
        high=0,
        clean=row.clean,
        cells=row.cells,
        parameters=row.parameters,
        training_data=", ".join(card.training_data) or said,
        web_scale=card.web_scale,
        effective=_effective(row.clean, list(row.cells.values())) if whole and row.clean is not None else None,
        details=details,
        link=link,
    )


def ranking_of_adaptation(table: AdaptationTable) -> Ranking:
    """The ranking of a table of test-time adaptation: of methods, with one model under one setting."""
    lines = []
    for rank, (method, error, deviation) in enumerate(sorted(table.rows, key=lambda row: row[1]), start=1):
        spread = {} if deviation is None else {"deviation over seeds": f"{deviation:g}"}
        lines.append(
            Line(model=method, value=Estimate(error, error, error), low=rank, high=len(table.rows), details=spread)
        )
    lines = [replace(line, low=1) for line in lines]
    return Ranking(
        identity=slug(f"adaptation {table.id}"),
        title=f"Test-time adaptation: {table.model}, {table.dataset}, {table.setting}",
        benchmark="adaptation",
        tier="claimed",
        metric="mean error",
        unit="%",
        higher_is_better=False,
        protocol={"data": table.dataset, "setting": table.setting, "model": table.model, "published": table.kind},
        source=table.source,
        how=_ORDER_ONLY,
        lines=_finished(lines, higher_is_better=False),
        can=("be compared within this table: methods with one model, under one setting",),
        cannot=("be compared with other tables: batches, orders, resets and weights differ",),
        notes=(table.note,) if table.note else (),
    )


def _effective(clean: float | None, cells: Sequence[float]) -> float | None:
    """Effective robustness in points, where the testbed's line rests on models of that clean accuracy."""
    if clean is None:
        return None
    line = published_lines()["all"]
    try:
        line.check(1 - clean / 100)
    except InputError:
        return None
    return 100 * float(effective_robustness(1 - float(np.mean(cells)) / 100, 1 - clean / 100, line))


def _finished(lines: Sequence[Line], *, higher_is_better: bool) -> tuple[Line, ...]:
    """Lines with what can only be said of all of them together: names, neighbours within intervals, the front."""
    sign = -1 if higher_is_better else 1
    on_one = len({line.speed.on for line in lines if line.speed is not None}) == 1
    speeds = on_one and all(line.speed is not None for line in lines)
    front = pareto(
        [
            (
                line.clean,
                sign * line.value.value,
                *((-line.speed.images_per_second,) if speeds and line.speed is not None else ()),
            )
            for line in lines
        ]
    )
    names = _identities([line.model for line in lines])
    whole = []
    for position, line in enumerate(lines):
        around = [lines[other] for other in (position - 1, position + 1) if 0 <= other < len(lines)]
        near = [
            other.model for other in around if line.known and line.value.low <= other.value.value <= line.value.high
        ]
        whole.append(
            replace(line, near=tuple(near), on_front=front[position] and len(lines) > 1, identity=names[position])
        )
    return tuple(whole)


def _identities(names: Sequence[str]) -> list[str]:
    """Names as files can have them, each once."""
    identities: dict[str, None] = {}
    for name in names:
        own = slug(name)[:_LONGEST]
        identities[own if own not in identities else f"{own}-{len(identities) + 1}"] = None
    return list(identities)


def slug(name: str) -> str:
    """A name as files and addresses can have it: small letters, digits and hyphens."""
    text = "".join(sign if sign.isalnum() and sign.isascii() else "-" for sign in name.lower())
    return "-".join(part for part in text.split("-") if part) or "model"
