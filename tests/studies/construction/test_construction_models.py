"""From results to correlations with natural sets: ``blemish score --by-model``, then ``blemish build natural``."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from blemish.cli.score import score_command
from blemish.core.errors import InputError
from blemish.evaluation.runs import Run, find_runs
from blemish.reports.model_table import models_csv
from blemish.reports.reading import read_all
from blemish.studies.construction.commands.natural import natural_command
from blemish.studies.construction.tables import read_numbers
from synthetic_runs import write_run

app = typer.Typer(pretty_exceptions_enable=False)
app.command("score")(score_command)
app.command("natural")(natural_command)

MODELS = [f"net{number}" for number in range(8)]
IMAGES = 200


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def results_of(folder: Path, number: int, **changes: Any) -> None:
    """A model under three benchmarks. The clean images, and so the answers to them, are the same in all."""
    strength = number / len(MODELS)
    clean = np.arange(IMAGES) % 10 < 8
    common: dict[str, Any] = {"images": IMAGES, "seed": number, **changes}
    corrupted = {f"{name}@{level}": 0.3 + 0.4 * strength for name in ("fog", "snow") for level in (1, 3)}
    write_run(
        folder / "candidates", MODELS[number], {"clean": clean, **corrupted}, benchmark={"name": "candidates"}, **common
    )
    natural = {"clean:imagenet-a": 0.9, "natural:imagenet-a": 0.1 + 0.5 * strength, "natural:imagenet-v2": 0.7}
    write_run(folder / "natural", MODELS[number], {"clean": clean, **natural}, benchmark={"name": "natural"}, **common)
    films = {"p:tilt@1": 0.3 - 0.2 * strength, "p:brightness@1": 0.2 - 0.1 * strength}
    write_run(
        folder / "p", MODELS[number], films, benchmark={"name": "p", "metric": "mfr", "baseline": "alexnet"}, **common
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for number in range(len(MODELS)):
        results_of(folder, number)
    return folder


@pytest.fixture(scope="module")
def table(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "models.csv"
    code, _, errors = invoke(
        "score", results / "candidates", results / "natural", results / "p", "--by-model", "-o", path
    )
    assert (code, errors) == (0, "")
    return path


def correct(run: Run, group: str) -> float:
    """Accuracy straight from the records."""
    return float(np.mean([run.correct(condition).mean() for condition in run.conditions if condition.group == group]))


def test_a_row_per_model_and_a_column_per_corruption_and_set(results: Path, table: Path) -> None:
    models, columns, values = read_numbers(table)
    assert models == tuple(MODELS)
    accuracies = ("clean", "fog", "snow", "clean:imagenet-a", "natural:imagenet-a", "natural:imagenet-v2")
    assert columns[: len(accuracies)] == accuracies
    assert {"candidates:error", "p:flips", "p:mfr"} <= {*columns[len(accuracies) :]}
    runs = find_runs([results / "candidates", results / "natural"])
    expected = [
        [
            *(correct(run, name) for name in accuracies[:3]),
            *(correct(other, name) for name in accuracies[3:]),
        ]
        for run, other in zip(runs[: len(MODELS)], runs[len(MODELS) :], strict=True)
    ]
    assert values[:, : len(accuracies)] == pytest.approx(np.array(expected))


def test_losses_and_flips_are_correlated_with_natural_sets(table: Path, tmp_path: Path) -> None:
    benchmark = tmp_path / "mine.toml"
    benchmark.write_text('name = "mine"\n[[conditions]]\ncorruptions = ["fog", "snow"]\nseverities = [1]\n')
    out = tmp_path / "result.csv"
    code, _, errors = invoke(
        "natural", table, benchmark, "--score", "p:mfr", "--natural", "imagenet-a", "-o", out, "--replicates", 100
    )
    assert (code, errors) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(row["group"], row["natural"], row["scored_by"]) for row in rows] == [
        ("mine", "imagenet-a", "mean loss of accuracy"),
        ("p:mfr", "imagenet-a", "the column as it is"),
    ]
    _, columns, values = read_numbers(table)
    by_name = dict(zip(columns, values.T, strict=True))
    lost = by_name["clean:imagenet-a"] - by_name["natural:imagenet-a"]
    residual = by_name["clean"] - (by_name["fog"] + by_name["snow"]) / 2
    for row, scores in zip(rows, (residual, by_name["p:mfr"]), strict=True):
        assert float(row["correlation"]) == pytest.approx(np.corrcoef(scores, lost)[0, 1], abs=1e-6)
        assert float(row["correlation"]) > 0.8  # more flips, and more loss, where more is lost on the natural set


def test_all_natural_sets_are_the_default(table: Path, tmp_path: Path) -> None:
    code, output, _ = invoke("natural", table, "--score", "p:flips", "-o", tmp_path / "r.csv", "--replicates", 0)
    assert code == 0
    assert "imagenet-a" in output
    assert "imagenet-v2" in output


def test_what_is_refused(results: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    for arguments, said in (
        (("natural", table, "-o", out), "nothing to compare"),
        (("natural", table, "imagenet-p", "-o", out), "expected --score imagenet-p:mfr instead"),
        (("natural", table, "--score", "p:mfd", "-o", out), "did you mean p:mfr"),
        (("score", results / "p", "--by-model", "--latex"), "--by-model and latex; expected CSV"),
    ):
        code, _, errors = invoke(*arguments)
        assert code == 2
        assert said in errors
    assert not out.exists()


def test_runs_that_contradict_each_other_are_refused(results: Path, tmp_path: Path) -> None:
    clean = np.arange(IMAGES) % 10 < 7
    write_run(tmp_path / "a", MODELS[0], {"clean": clean, "frost_drawn@1": 0.5}, images=IMAGES)
    with pytest.raises(InputError, match=r"net0: clean is 0\.8 in .* and 0\.7 in .*; expected one number"):
        models_csv(read_all(find_runs([results / "candidates", tmp_path / "a"]), replicates=1))
    write_run(tmp_path / "b", "other", {"clean": clean, "frost_drawn@1": 0.5}, images=IMAGES, protocol={"seed": 1})
    with pytest.raises(InputError, match=r"were not measured in the same way: protocol\.seed"):
        models_csv(read_all(find_runs([tmp_path / "a", tmp_path / "b"]), replicates=1))
    write_run(
        tmp_path / "c",
        MODELS[0],
        {"clean": clean, "fog@1": 0.5},
        images=IMAGES,
        benchmark={"name": "c"},
        model={"weights": "others"},
    )
    with pytest.raises(InputError, match="two models that are both called net0"):
        models_csv(read_all(find_runs([tmp_path / "a", tmp_path / "c"]), replicates=1))


def test_cells_that_nobody_measured_are_empty(results: Path, tmp_path: Path) -> None:
    results_of(tmp_path, 0)
    write_run(tmp_path / "candidates", "late", {"clean": 0.8, "fog@1": 0.5}, benchmark={"name": "c2"})
    lines = models_csv(read_all(find_runs([tmp_path / "candidates"]), replicates=1)).splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert {row["model"]: row["snow"] == "" for row in rows} == {"net0": False, "late": True}
