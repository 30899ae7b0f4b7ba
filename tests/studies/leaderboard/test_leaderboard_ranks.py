"""Rankings: of entries by paired tests, of tables by intervals; tiers and protocols are never mixed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.typed import as_json
from blemish.metrics.compare import compare
from blemish.metrics.imports import TableInfo, import_infos, make_table
from blemish.models.card import ModelCard
from blemish.reports.tables import latex, markdown
from blemish.studies.leaderboard.board import Filters, boards_of, import_names, named_imports
from blemish.studies.leaderboard.entry import Entry, Speed, find_entries
from blemish.studies.leaderboard.lines import Ranking
from blemish.studies.leaderboard.make import import_table, make_entry
from blemish.studies.leaderboard.ranked import ranking_of_table
from blemish.studies.leaderboard.tables import board_csv, board_json, board_tables
from synthetic_runs import severities, write_run

NAMES = ("fog", "snow", "gaussian_noise")
NETS = {"good": (0.9, 0.72), "twin": (0.9, 0.71), "bad": (0.8, 0.5), "worse": (0.75, 0.3)}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    folder = tmp_path_factory.mktemp("leaderboard")
    for seed, (name, (clean, worst)) in enumerate(NETS.items()):
        card = ModelCard(parameters=10 ** (6 + seed), training_data=("LAION-2B",), web_scale=seed == 0)
        model = {"card": json.loads(json.dumps(as_json(card)))}
        conditions = severities(NAMES, clean=clean, worst=worst)
        run = write_run(folder / "runs", name, conditions, seed=seed, images=150, model=model)
        make_entry(run, folder / "board", speed=Speed(1000.0 * (seed + 1), "a machine"))
    other = write_run(folder / "runs", "other", severities(NAMES), images=150, protocol={"storage": "jpeg85"})
    make_entry(other, folder / "board")
    return find_entries(folder / "board")


def rankings(entries: list[Entry], **settings: object) -> list[Ranking]:
    return [r for b in boards_of(entries, replicates=200, **settings) for r in b.rankings]  # type: ignore[arg-type]


def test_protocols_are_never_mixed_in_one_rank(entries: list[Entry]) -> None:
    found = rankings(entries)
    assert sorted(sorted(line.model for line in ranking.lines) for ranking in found) == [
        ["bad", "good", "twin", "worse"],
        ["other"],
    ]
    assert {ranking.protocol["pixels"] for ranking in found} == {"made here, raw", "made here, JPEG of quality 85"}


def test_ranks_of_entries_are_those_of_plain_paired_tests(entries: list[Entry]) -> None:
    """Each pair compared on its own, Holm's steps written out, and ranks by counting."""
    runs = [entry.run for entry in entries if entry.name in NETS]  # type: ignore[union-attr]
    means = {run.name: 100 * (1 - np.mean([run.correct(c).mean() for c in run.conditions[1:]])) for run in runs}
    tests = {
        (one.name, two.name): compare(one, two, replicates=240).find("error").p_value
        for one, two in combinations(runs, 2)
    }
    told = set[tuple[str, str]]()
    for step, pair in enumerate(sorted(tests, key=lambda pair: tests[pair])):
        if tests[pair] > 0.05 / (len(tests) - step):
            break
        told |= {pair, pair[::-1]}
    (ranking,) = (r for r in rankings(entries) if len(r.lines) > 1)
    for line in ranking.lines:
        assert line.value.value == pytest.approx(means[line.model])
        assert line.low == 1 + sum((line.model, m) in told and means[m] < means[line.model] for m in means)
        assert line.high == len(means) - sum((line.model, m) in told and means[m] > means[line.model] for m in means)
    first, second = ranking.lines[:2]
    assert {first.model, second.model} == {"good", "twin"}
    assert first.rank == second.rank == "1–2"
    assert set(first.letters.split()) & set(second.letters.split())
    assert not set(first.letters.split()) & set(ranking.lines[2].letters.split())


def test_a_claim_whose_interval_contains_its_neighbour_says_so() -> None:
    info = TableInfo("mine", "Mine", "other", "claimed", "error", "here", 1000, column="error", holds="error")
    rows = [{"model": name, "error": text} for name, text in (("a", "20"), ("b", "21"), ("c", "40"))]
    lines = {line.model: line for line in ranking_of_table(make_table(info, rows)).lines}
    # 1.96 · √(0.2 · 0.8 / 1000) is 2.5 points.
    assert lines["a"].near == ("b",)
    assert lines["b"].near == ("a",)
    assert lines["c"].near == ()
    assert [lines[name].rank for name in "abc"] == ["1–2", "1–2", "3"]
    unknown = ranking_of_table(make_table(replace(info, images=None), rows))
    assert [(line.rank, line.near, line.known) for line in unknown.lines] == [("1–3", (), False)] * 3


def test_filters(entries: list[Entry]) -> None:
    def models(**filters: object) -> set[str]:
        return {line.model for r in rankings(entries, filters=Filters(**filters)) for line in r.lines}  # type: ignore[arg-type]

    assert models(model="OO") == {"good"}
    assert models(web_scale=True) == {"good"}
    assert models(web_scale=False) == {"twin", "bad", "worse"}
    assert models(max_parameters=10**7) == {"good", "twin"}
    assert models(training_data="laion") == set(NETS)
    assert models(protocol="jpeg") == {"other"}
    assert models(tier="claimed") == set()
    assert models(benchmark="imagenet-r") == set()
    (ranking,) = (r for r in rankings(entries, filters=Filters(model="worse")))
    assert ranking.lines[0].low > 1, "ranks are those among all models"


def test_the_front_knows_speed(entries: list[Entry]) -> None:
    (ranking,) = (r for r in rankings(entries) if len(r.lines) > 1)
    front = {line.model for line in ranking.lines if line.on_front}
    assert "worse" in front, "the fastest is on the front"
    alone = [replace(line, speed=None) for line in ranking.lines]
    from blemish.studies.leaderboard.ranked import _finished

    assert "worse" not in {line.model for line in _finished(alone, higher_is_better=False) if line.on_front}


def test_effective_robustness_of_published_models() -> None:
    (ranking,) = rankings([], imports=["testbed/stored"])
    lines = {line.model: line for line in ranking.lines}
    # Taori et al. 2020 name it among the models above the line.
    assert lines["resnext101_32x8d_deepaugment_augmix"].effective == pytest.approx(16.2, abs=0.1)
    assert np.mean([line.effective for line in ranking.lines if line.effective is not None]) == pytest.approx(0, abs=2)


def test_effective_robustness_on_other_images_says_so() -> None:
    stored, fewer = (rankings([], imports=[name])[0] for name in ("testbed/stored", "robustbench/imagenet-c"))
    assert stored.notes == ()
    assert "these are 5,000" in fewer.notes[0]


def test_every_import_makes_a_ranking() -> None:
    """Those of timm are many; one of them is enough."""
    names = [name for name in import_names() if not name.startswith("timm/") or name == "timm/imagenet-a"]
    found = {ranking.identity: ranking for ranking in rankings([], imports=names)}
    assert len(found) == len(names) - 1 + 54
    for ranking in found.values():
        assert ranking.lines
        assert ranking.source
        assert ranking.cannot
        values = [line.value.value for line in ranking.lines]
        assert values == sorted(values)
        assert all(1 <= line.low <= line.high <= len(values) for line in ranking.lines)
        assert len({line.identity for line in ranking.lines}) == len(values)
    tent = found["adaptation-tent-cifar10c-wideresnet-28-10"]
    assert all(line.rank == f"1–{len(tent.lines)}" for line in tent.lines), "no intervals, so nobody is told apart"


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match="robustbench/imagenet-c"):
        boards_of([], imports=["robustbench/imagenetc"])


def test_an_unknown_benchmark_is_refused_with_what_is_near() -> None:
    with pytest.raises(InputError, match="did you mean imagenet-c"):
        boards_of([], imports=[], filters=Filters(benchmark="imagenetc"))


def test_a_source_stands_for_its_tables() -> None:
    assert named_imports("timm") == ["timm/imagenet-a", "timm/imagenet-r", "timm/imagenet-sketch", "timm/imagenet-v2"]
    assert named_imports("testbed/stored") == ["testbed/stored"]
    assert named_imports("nothing") == ["nothing"], "which is refused by name later"


def test_csv_and_json_hold_everything(entries: list[Entry]) -> None:
    boards = boards_of(entries, imports=["robustbench/cifar10-c"], replicates=100)
    rows = list(csv.DictReader(io.StringIO(board_csv(boards, level=0.95))))
    lines = [line for board in boards for ranking in board.rankings for line in ranking.lines]
    assert len(rows) == len(lines) == 5 + 23
    for row, line in zip(rows, lines, strict=True):
        assert float(row["value"]) == line.value.value
        assert (row["model"], int(row["rank_low"]), int(row["rank_high"])) == (line.model, line.low, line.high)
    content = json.loads(board_json(boards, level=0.95))
    again = [line for board in content["boards"] for ranking in board["rankings"] for line in ranking["lines"]]
    assert [line["cells"] for line in again] == [dict(line.cells) for line in lines]


def test_tables_for_papers(entries: list[Entry]) -> None:
    boards = boards_of(entries, imports=["robustbench/cifar10-c"], replicates=100)
    tables = board_tables(boards, top=3)
    text = latex(tables)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == text.count(r"\toprule") == 3
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    for table in tables:
        assert sum(row.count(" & ") == len(table.columns) - 1 for row in rows) >= len(table.rows)
    depth = 0
    for sign in text.replace(r"\{", "").replace(r"\}", ""):
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0
    assert depth == 0
    assert not [sign for sign in text if ord(sign) > 0x2000], "signs that LaTeX does not know"
    shown = markdown(tables)
    assert "The first 3 of 23 models" in shown
    assert "lower is better" in shown


def test_training_on_a_corruption_is_marked(tmp_path: Path) -> None:
    training = {"training": {"corruptions": ["fog"], "augmentations": []}}
    run = write_run(tmp_path, "net", severities(("fog", "snow")), images=60, model=training)
    make_entry(run, tmp_path / "board")
    (ranking,) = rankings(find_entries(tmp_path / "board"))
    assert ranking.lines[0].trained_on == tuple(f"fog@{level}" for level in range(1, 6))
    assert "†" in markdown(board_tables(boards_of(find_entries(tmp_path / "board"), replicates=50)))


def test_tables_of_users_stand_beside_those_that_come_along(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("model,mce\nours,40\n")
    info = TableInfo(
        "robustbench/imagenet-c", "Mine", "imagenet-c", "claimed", "mce", "here", 50_000, column="mce", holds="value"
    )
    import_table(file, tmp_path / "board", info)
    found = rankings(find_entries(tmp_path / "board"), imports=["robustbench/imagenet-c"])
    assert [ranking.identity for ranking in found] == ["robustbench-imagenet-c-2", "robustbench-imagenet-c"]
    assert [ranking.tier for ranking in found] == ["per-cell", "claimed"]
    # Σ weights · √(q (1 − q) / 50,000), with the published AlexNet's mean error of 78.9 %.
    assert found[1].lines[0].value.width / 2 == pytest.approx(0.52, abs=0.02)


def test_infos_have_names_of_their_own() -> None:
    assert len(import_infos()) == len({info.title for info in import_infos().values()})


def test_fractions_are_not_taken_for_percent(tmp_path: Path) -> None:
    file, board = tmp_path / "cells.csv", tmp_path / "board"
    file.write_text("model,fog@1,fog@2\nA,0.8,0.7\nB,0.7,0.6\n")
    info = TableInfo("t", "t", "mine", "per-cell", "error", "a page", images=1000, cells="accuracy")
    with pytest.raises(InputError, match=r"no number above 1; expected percent, such as 76\.1"):
        import_table(file, board, info)
    assert not board.exists()
    with pytest.warns(UserWarning, match="no error above 1; taken as percent"):
        import_table(file, board, replace(info, cells="error"))
