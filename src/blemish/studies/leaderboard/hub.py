"""Numbers for a model's page on the Hugging Face Hub: ``.eval_results`` files, and the older ``model-index``.

Both are YAML. Texts are written as JSON texts, which YAML reads as they are.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.metrics.caveats import part_of
from blemish.metrics.titles import TITLES, whole_title
from blemish.reports.tables import number
from blemish.studies.leaderboard.make import CLEAN_ERROR, Numbers
from blemish.version import VERSION

_DIGITS = 4


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a result comes from; a name, a user or an organisation needs an address."""

    url: str = ""
    name: str = ""
    user: str = ""
    org: str = ""

    def __post_init__(self) -> None:
        """Refuse what the Hub refuses."""
        if not self.url and (self.name or self.user or self.org):
            raise InputError("a source with a name but without an address; expected its URL too")


def metric_title(name: str, run: Run) -> str:
    """What a number is called."""
    return "clean error" if name == CLEAN_ERROR else whole_title(name, part_of(run))


def unit_of(name: str) -> str:
    """The unit of a number."""
    return "%" if name == CLEAN_ERROR else TITLES[name].unit


def notes_on(name: str, number_: Estimate, run: Run, *, level: float, seal: str = "") -> str:
    """What has to be known of a number, since the form has no place for it: metric, protocol, interval."""
    info, unit = run.info, unit_of(name)
    digits = 1 if unit else 3
    better = name in TITLES and TITLES[name].higher_is_better
    corruptions = "published images" if info.protocol.pixels == "stored" else f"generated, {info.protocol.storage}"
    divided = (
        [f"divided by {info.benchmark.baseline}"] if name.endswith(("ce", "be")) and info.benchmark.baseline else []
    )
    parts = [
        metric_title(name, run) + (f" in {unit}" if unit else ""),
        "higher is better" if better else "lower is better",
        info.benchmark.name,
        *divided,
        f"{info.data.images:,} images of {info.data.name}"
        + ("" if info.data.selection == "all" else f" ({info.data.selection.replace(',', ';')})"),
        corruptions,
        f"{100 * level:g} % interval {number(number_.low, digits)} to {number(number_.high, digits)}",
        f"blemish {VERSION}",
        *([seal] if seal else []),
    ]
    return ", ".join(parts)


def chosen_numbers(numbers: Numbers, names: Sequence[str]) -> dict[str, Estimate]:
    """The numbers that were asked for."""
    if missing := [name for name in names if name not in numbers.values]:
        raise InputError(f"no number {missing[0]!r}; expected some of {', '.join(numbers.values)}")
    return {name: numbers.values[name] for name in names}


def eval_results_yaml(
    numbers: Numbers,
    run: Run,
    tasks: Mapping[str, str],
    *,
    dataset: str,
    revision: str = "",
    date: str = "",
    source: Source = Source(),  # noqa: B008  # frozen
    level: float = 0.95,
    seal: str = "",
) -> str:
    """A file for ``.eval_results``: an entry for each number, under the id of its task in the benchmark ``dataset``."""
    if not dataset or not tasks:
        raise InputError("no id of a dataset or of a task; expected both, as the benchmark on the Hub has them")
    if date:
        try:
            datetime.datetime.fromisoformat(date)
        except ValueError:
            raise InputError(f"date {date!r}; expected one such as 2026-03-31") from None
    lines = []
    for name, estimate in chosen_numbers(numbers, list(tasks)).items():
        lines += [
            "- dataset:",
            f"    id: {_text(dataset)}",
            f"    task_id: {_text(tasks[name])}",
            *([f"    revision: {_text(revision)}"] if revision else []),
            f"  value: {_number(estimate.value)}",
            *([f"  date: {_text(date)}"] if date else []),
            *_source(source, "  "),
            f"  notes: {_text(notes_on(name, estimate, run, level=level, seal=seal))}",
        ]
    return "\n".join(lines) + "\n"


def model_index_yaml(
    numbers: Numbers,
    run: Run,
    names: Sequence[str],
    *,
    dataset: str = "",
    source: Source = Source(),  # noqa: B008  # frozen
    level: float = 0.95,
    seal: str = "",
) -> str:
    """The head of a model's README.md with a ``model-index``: all numbers beside each other, no benchmark needed."""
    info = run.info
    lines = [
        "---",
        "model-index:",
        f"- name: {_text(run.name)}",
        "  results:",
        "  - task:",
        '      type: "image-classification"',
        '      name: "Image classification under corruption"',
        "    dataset:",
        f"      type: {_text(dataset or info.benchmark.name)}",
        f"      name: {_text(info.benchmark.title or info.benchmark.name)}",
        "    metrics:",
    ]
    for name, estimate in chosen_numbers(numbers, names).items():
        lines += [
            f"    - type: {_text(name)}",
            f"      value: {_number(estimate.value)}",
            f"      name: {_text(notes_on(name, estimate, run, level=level, seal=seal))}",
        ]
    return "\n".join([*lines, *_source(source, "    ", name_and_url=True), "---"]) + "\n"


def _source(source: Source, indent: str, *, name_and_url: bool = False) -> list[str]:
    """The older form knows a name and an address alone."""
    keys = ("url", "name") if name_and_url else ("url", "name", "user", "org")
    given = [(key, text) for key in keys if (text := getattr(source, key))]
    return [f"{indent}source:", *(f"{indent}  {key}: {_text(text)}" for key, text in given)] if given else []


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    return repr(round(value, _DIGITS))
