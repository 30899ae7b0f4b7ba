"""The study over all catalogues: its counts, the core that follows from them, and the page that tells of both."""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.studies.construction.categories import find_categories
from blemish.studies.construction.compare import compare_matrices
from blemish.studies.construction.core import Core, mutual_coverage, select_core
from blemish.studies.construction.coverage import balance_by
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.measured import MEASURED, about_measured, measured_table
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.published import PRINTED, PUBLISHED
from blemish.studies.construction.selection import select_non_overlapping
from blemish.studies.construction.tables import STANDARD, AccuracyTable

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "core.md"
CORE = (
    "elastic_transform",
    "noc:salt_pepper",
    "noc:obstruction",
    "noc:brightness",
    "noc:hue",
    "syn2nat:flip",
    "cbar:caustic_noise",
)


@cache
def matrix(name: str = "catalogues-32", least_gain: float = 0.02) -> OverlapMatrix:
    return overlap_matrix(measured_table(name), least_gain=least_gain)


@lru_cache(maxsize=1)
def core() -> Core:
    return select_core(matrix(), balance=balance_by(measured_table(), baseline=STANDARD))


@lru_cache(maxsize=1)
def page() -> str:
    if not PAGE.is_file():
        pytest.skip("docs/ is not beside this package")
    return PAGE.read_text(encoding="utf-8")


def test_tables_are_there_by_name() -> None:
    assert not set(MEASURED) & {*PUBLISHED, *PRINTED}
    tables = [measured_table(name) for name in MEASURED]
    assert len({(table.models, table.settings) for table in tables}) == 1
    assert tables[0].settings == ("clean", *tables[0].models[1:])
    assert tables[0].models[0] == STANDARD
    assert np.allclose(tables[0].values, np.mean([table.values for table in tables[1:]], axis=0))
    assert "fine-tuned for 2 epochs" in about_measured()
    with pytest.raises(InputError, match="no measured table 'catalogues-64'; expected one of catalogues-32, "):
        measured_table("catalogues-64")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_counts_are_those_of_the_kept_networks(seed: int) -> None:
    """Two files that different scripts made of the same records agree."""
    file = ROOT / "perf" / f"overlap_all-tuned-seed{seed}.json"
    if not file.is_file():
        pytest.skip("perf/ is not beside this package")
    from perf_scripts import module

    records = module("network_records").Records.read(file)
    table = measured_table(f"catalogues-32-seed{seed}")
    for row, name in zip(table.values, table.models, strict=True):
        found = records.accuracies(name, "corrupted")
        assert [found[text] for text in records.protocol["sets"]["corrupted"]] == pytest.approx(row.tolist())


def test_the_core_is_proven_and_is_the_benchmark() -> None:
    found = core()
    assert set(found.members) == set(CORE)
    assert found.proven
    assert (found.coverage, found.count, len(found.uncovered)) == (107, 6, 21)
    assert matrix().only(found.members).scores[np.triu_indices(7, 1)].max() <= 0.1
    for name in ("blemish-core", "blemish-core-32"):
        assert set(load_benchmark(name).groups) == set(CORE)


def test_at_224_pixels_severities_are_the_published_ones() -> None:
    """Each as in the benchmark that it comes from, or all of its range where that is drawn from."""
    sources = {"elastic_transform": "imagenet-c", "cbar:caustic_noise": "c-bar-candidates"}
    sources |= {"syn2nat:flip": "syn2nat-candidates"}
    ours = load_benchmark("blemish-core").conditions
    for name in CORE:
        source = load_benchmark(sources.get(name, "noc-candidates")).conditions
        assert [str(c) for c in ours if c.group == name] == [str(c) for c in source if c.group == name]


def test_the_page_has_the_numbers() -> None:
    text = page()
    for name in CORE:
        count = sum(by == name for by in core().covered.values())
        assert re.search(rf"^\| `{name}` \| {count}: ", text, re.MULTILINE), name
    uncovered = text[text.index("Not covered are 21") : text.index("Make it yourself")]
    assert set(re.findall(r"`([\w:]+)`", uncovered)) == set(core().uncovered)
    names = [
        "imagenet-c",
        "imagenet-c-extra",
        "imagenet-noc",
        "imagenet-syn2nat",
        "imagenet-c-bar",
        "cifar10-c-bar",
        "opticsbench",
        "laion-c",
    ]
    sets = {name: load_benchmark(name).groups for name in names} | {"blemish-core": core().members}
    shares = mutual_coverage(matrix(), {**sets, "all": matrix().names})
    for first in sets:
        cells = [
            c.strip()
            for c in re.search(rf"^\| `{first}` \| \d.* \|$", text[text.index("| covers |") :], re.MULTILINE)[0].split(
                "|"
            )[2:-1]
        ]  # type: ignore[index]
        expected = [shares[first, second] for second in ("all", *names)]
        assert [int(cell) for cell in cells] == [covered for covered, _ in expected], first
    head = re.search(r"^\| covers \|.*$", text, re.MULTILINE)[0]  # type: ignore[index]
    assert [int(count) for count in re.findall(r"\((\d+)\)", head)] == [total for _, total in expected]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        found = compare_matrices(*(matrix(f"catalogues-32-seed{seed}") for seed in (one, other)))
        digits = [f"{value:.3f}"[1:] for value in (found.pearson, found.spearman)]
        assert (
            f"| {one} and {other} | {digits[0]} | {digits[1]} | {found.mean_difference:+.3f}".replace(
                "0.", "."
            ).replace("-", "−")
            in text
        )


def test_the_largest_set_is_the_one_on_the_page() -> None:
    found = select_non_overlapping(matrix(), threshold=0.1)
    quoted = next(line for line in page().splitlines() if line.startswith("> "))
    assert re.findall(r"`([\w:]+)`", quoted) == list(found.members)
    assert "takes twelve at 0.1" in page()
    assert found.size == 12


def test_what_the_page_says_of_single_seeds() -> None:
    found = []
    for seed in range(3):
        one = matrix(f"catalogues-32-seed{seed}")
        covered = mutual_coverage(one, {"core": CORE, "all": one.names})["core", "all"][0]
        inside = one.only(CORE).scores[np.triu_indices(7, 1)]
        found.append((covered, int((inside > 0.1).sum()), f"{inside.max():.2f}"))
    assert [(covered, above) for covered, above, _ in found] == [(105, 0), (110, 5), (97, 0)]
    assert max(highest for *_, highest in found) == "0.18"
    assert "covers 105, 110 and 97; none, 5 and none of its 21 pairs lie above 0.1 (.18 at most)" in page()


@pytest.mark.slow
def test_the_page_has_the_categories() -> None:
    found, _ = find_categories(matrix().defined())  # fewer restarts do not find the best split
    rows = re.findall(r"^\| ([^`|]+) \| (\d+) \| (`.*`) \|$", page(), re.MULTILINE)
    members = list(found.members.values())
    assert [int(count) for _, count, _ in rows] == [len(names) for names in members]
    for (_, _, examples), names in zip(rows, members, strict=True):
        assert set(re.findall(r"`([\w:]+)`", examples)) <= set(names)


def test_the_page_has_the_comparison_with_training_from_scratch() -> None:
    """The least gain is that of the rest of the page; with the usual one there are more pairs, and they agree less."""
    records = [ROOT / "perf" / f"overlap_all-{way}-seed0.json" for way in ("scratch", "tuned")]
    if not all(file.is_file() for file in records):
        pytest.skip("perf/ is not beside this package")
    from perf_scripts import module

    scratch, tuned = (module("network_records").Records.read(file) for file in records)
    names = scratch.protocol["trained"]
    texts = {text.partition("@")[0]: text for text in scratch.protocol["sets"]["corrupted"]}
    settings = ("clean", *names)
    tables = []
    for kept in (scratch, tuned):
        rows = [kept.accuracies(model, "corrupted") for model in (STANDARD, *names)]
        values = np.array([[row[texts[name]] for name in settings] for row in rows])
        tables.append(AccuracyTable((STANDARD, *names), settings, values))
    agreed = []
    for least in (0.02, 0.01):
        long, short = (overlap_matrix(table, least_gain=least) for table in tables)
        found = compare_matrices(long, short, largest=len(long.pairs()))
        weak = [pair for pair in found.largest if 0.1 <= pair.first < 0.5]
        lost = sum(pair.second < 0.1 for pair in weak)
        numbers = (round(found.pearson, 3), round(found.spearman, 3), round(found.mean_difference, 3))
        agreed.append((found.pairs, *numbers, len(weak), lost))
    assert agreed == [(21, 0.835, 0.696, -0.007, 7, 1), (28, 0.737, 0.597, -0.035, 14, 4)]
    text = " ".join(page().split())
    assert "over the 21 pairs of the other seven" in text
    assert "at .83 (Pearson; .70 Spearman), and are no higher on average (+.007). Of the seven" in text
    assert "over 28 pairs the correlation is .74 (.60), scores from scratch are .035 higher, and 4 of 14 weak" in text


def test_usual_scores_of_small_gains_agree_less() -> None:
    """What the page says of the other limit."""
    tables = [matrix(f"catalogues-32-seed{seed}", 0.01) for seed in range(3)]
    pearsons = [compare_matrices(tables[a], tables[b]).pearson for a, b in ((0, 1), (0, 2), (1, 2))]
    assert (f"{min(pearsons):.3f}", f"{max(pearsons):.3f}") == ("0.907", "0.929")
    assert "agree less (.907 to .929)" in page()


def test_the_published_text_of_the_records_names_the_schedule() -> None:
    protocol = json.loads((ROOT / "perf" / "overlap_all-tuned-seed0.json").read_text())["protocol"]
    assert protocol["fine_tune"]["epochs"] == 2
    assert (protocol["train_images"], protocol["test_images"]) == (25_000, 2_000)
