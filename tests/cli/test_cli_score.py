"""``blemish score`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from blemish.evaluation.runs import find_runs, open_run
from blemish.metrics.scores import score
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.terminal.results import _rich
from command_line import invoke
from report_runs import HOSTILE
from synthetic_runs import FIFTEEN, severities, write_run

MCE = {"metric": "mce", "baseline": "alexnet"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_run(folder, "plain", severities(), images=60, benchmark=MCE)
    model = {"training": {"corruptions": ["fog"], "augmentations": []}}
    write_run(folder, "hardened", severities(worst=0.5), images=60, benchmark=MCE, model=model)
    return folder


def test_text(results: Path) -> None:
    code, output, _ = invoke("score", results, "--replicates", 20)
    assert code == 0
    for word in ("plain", "hardened", "mCE, %", "clean error, %", *FIFTEEN, "noise", "weather", "Calibration"):
        assert word in output
    assert "† The model was trained on a corruption" in output


@pytest.mark.parametrize("columns", [40, 80, 120, 300])
def test_no_digit_is_ever_cut(results: Path, columns: int) -> None:
    _, output, _ = invoke("score", results / "plain", "--replicates", 20, columns=columns)
    assert "…" not in output
    _, wide, _ = invoke("score", results / "plain", "--replicates", 20, columns=1000)
    numbers = re.compile(r"\d+\.\d+")
    assert sorted(numbers.findall(output)) == sorted(numbers.findall(wide))


def test_json_has_all_digits(results: Path) -> None:
    code, output, _ = invoke("score", results / "plain", "--json", "--replicates", 20)
    assert code == 0
    (entry,) = json.loads(output)
    expected = score(open_run(results / "plain"), replicates=20)
    assert expected.headline is not None
    assert entry["headline"]["value"] == expected.headline.estimate.value
    assert entry["model"] == "plain"
    assert len(entry["rows"]) == len(expected.rows)
    assert "trained_on_note" not in entry


def test_csv_has_all_digits(results: Path) -> None:
    _, output, _ = invoke("score", results, "--csv", "--replicates", 20)
    lines = output.splitlines()
    assert lines[-1].startswith("# † The model was trained")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[:-1]))))
    expected = {
        (name, row.name, row.scope, row.of): row
        for name in ("plain", "hardened")
        for row in score(open_run(results / name), replicates=20).rows
    }
    assert len(rows) == len(expected)
    for row in rows:
        found = expected[row["model"], row["metric"], row["scope"], row["of"]]
        assert float(row["value"]) == found.estimate.value
        assert float(row["high"]) == found.estimate.high
        assert (row["trained_on"] == "†") == found.trained_on
    assert {row["of"] for row in rows if row["trained_on"] and row["scope"] == "corruption"} == {"fog"}


@pytest.mark.parametrize(("flag", "sign"), [("--markdown", "†"), ("--latex", r"$^\dagger$")])
def test_marks_in_every_format(results: Path, flag: str, sign: str) -> None:
    _, output, _ = invoke("score", results, flag, "--replicates", 20)
    assert f"{sign} The model was trained on a corruption" in output
    assert re.search(rf"fog.*\d{re.escape(sign)}", output)
    assert not re.search(rf"snow.*\d{re.escape(sign)}", output)
    _, plain, _ = invoke("score", results / "plain", flag, "--replicates", 20)
    assert sign not in plain


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.json", "["), ("a.csv", "model,"), ("a.md", "### "), ("a.tex", "% made by blemish"), ("a.txt", "A ")],
)
def test_files(results: Path, tmp_path: Path, name: str, start: str) -> None:
    code, output, _ = invoke("score", results, "-o", tmp_path / name, "--replicates", 20)
    assert code == 0
    assert output == f"wrote {tmp_path / name}\n"
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)


def test_baselines(results: Path, tmp_path: Path) -> None:
    _, output, _ = invoke("score", results / "plain", "--json", "--baseline", results / "plain", "--replicates", 5)
    assert json.loads(output)[0]["headline"]["value"] == pytest.approx(100)
    code, _, errors = invoke("score", results / "plain", "--baseline", "alexnot")
    assert code == 2
    assert (
        "unknown baseline 'alexnot'; expected alexnet, alexnet/ and a data set of MedMNIST-C, or a folder with a run"
        in errors
    )


@pytest.mark.parametrize("flag", ["", "--markdown", "--latex", "--json"])
def test_protocols_that_differ_are_named(results: Path, tmp_path: Path, flag: str) -> None:
    write_run(tmp_path, "other", severities(), images=60, benchmark=MCE, protocol={"seed": 1})
    flags = ("--replicates", 5, *([flag] if flag else []))
    _, output, _ = invoke("score", results / "plain", tmp_path / "other", *flags, columns=200)
    _, alone, _ = invoke("score", results / "plain", results / "hardened", *flags, columns=200)
    if flag == "--json":
        assert [entry["protocol_differences"] for entry in json.loads(output)] == [[], ["protocol.seed is 0 and 1"]]
        assert [entry["protocol_differences"] for entry in json.loads(alone)] == [[], []]
    else:
        assert "plain and other were not measured in the same way: protocol.seed is 0 and 1." in output
        assert "same way" not in alone


def test_reasons_are_whole_at_80_columns(tmp_path: Path) -> None:
    """Long names beside long reasons: every sign of every cell is there, in its column."""
    name = "a_model_with_a_name_that_is_longer_than_most_columns_of_a_terminal"
    write_run(tmp_path, name, {**severities(("fog", "snow")), "p:tilt@1": 0.1}, images=20)
    tables = score_tables(read_all(find_runs([tmp_path]), replicates=5))
    (table,) = [table for table in tables if table.title == "What could not be computed"]
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        console.print(_rich(table))
    lines = capture.get().splitlines()
    assert max(len(line) for line in lines) <= 80
    drawn = Counter("".join(lines).replace(" ", "").replace("─", ""))
    cells = [*table.columns, *(cell.value for row in table.rows for cell in row)]
    assert drawn == Counter("".join(cells).replace(" ", ""))


def test_bad_input(results: Path, tmp_path: Path) -> None:
    assert invoke("score", tmp_path / "gone")[0] == 2
    assert "expected one format" in invoke("score", results, "--json", "--csv")[2]
    assert "level 1.5" in invoke("score", results, "--level", 1.5, "--replicates", 5)[2]
    assert invoke("score", results, "--replicates", 0)[0] == 2
    code, _, errors = invoke("score", results, "-o", results / "plain" / "run.json" / "x.csv", "--replicates", 5)
    assert code == 2
    assert "cannot write" in errors


def test_hostile_names_stay_in_their_cells(tmp_path: Path) -> None:
    name = f"\x1b[31m{HOSTILE}[bold]\n"
    write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5}, images=10, model={"name": name})
    _, output, _ = invoke("score", tmp_path, "--replicates", 5)
    assert "\x1b" not in output
    assert "[bold]" in output
    _, text, _ = invoke("score", tmp_path, "--csv", "--replicates", 5)
    shown = name.replace("\x1b", "\\u001b").replace("\u202e", "\\u202e")
    assert {row["model"] for row in csv.DictReader(io.StringIO(text, newline=""))} == {shown}
    _, text, _ = invoke("score", tmp_path, "--json", "--replicates", 5)
    assert "\x1b" not in text
    assert [entry["model"] for entry in json.loads(text)] == [name]
    invoke("score", tmp_path, "-o", tmp_path / "all.csv", "--replicates", 5)
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        assert {row["model"] for row in csv.DictReader(file)} == {name}


def test_models_stand_beside_each_other_and_published_ones(results: Path, tmp_path: Path) -> None:
    code, out, _ = invoke("score", results, "--published", "leaderboard", "--replicates", 20)
    assert code == 0
    for text in ("Models beside each other", "alexnet (baseline)", "resnet50 (published)", "relative mCE"):
        assert text in out
    # The runs are of raw pixels of ten classes, so that no line applies to them, and the reason is given.
    assert "No effective robustness of hardened, plain: the images are not those of ImageNet-C" in " ".join(out.split())
    code, _, err = invoke("score", results, "--published", tmp_path / "none.csv")
    assert code == 2
    assert "expected" in err or "known" in err
