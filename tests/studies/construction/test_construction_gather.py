"""From records to the tables that construction reads, and the whole way of ``blemish train-overlap`` on a toy."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.cli.main import app
from blemish.core.errors import InputError
from blemish.evaluation.runs import open_run
from blemish.studies.construction.gather import gather_accuracies, gather_correct
from blemish.studies.construction.matrices import read_matrix
from synthetic_runs import write_run


def test_correctness_image_by_image(tmp_path: Path) -> None:
    right = np.arange(20) % 2 == 0
    runs = [
        write_run(tmp_path / name, name, {"clean": 1.0, "fog@1-5": right, "snow@1-5": ~right}, images=20)
        for name in ("standard", "fog")
    ]
    found = gather_correct(runs)
    assert found.models == ("standard", "fog")
    assert found.settings == ("clean", "fog", "snow")
    np.testing.assert_array_equal(found.correct[1], [np.ones(20, dtype=bool), right, ~right])


def test_accuracies_are_means_over_severities(tmp_path: Path) -> None:
    half, all_right = np.arange(20) % 2 == 0, np.ones(20, dtype=bool)
    run = write_run(tmp_path, "m", {"clean": 1.0, "fog@1": all_right, "fog@2": half}, images=20)
    table = gather_accuracies([run])
    assert table.settings == ("clean", "fog")
    assert table.accuracy("m", "fog") == pytest.approx(0.75)
    with pytest.raises(InputError, match="fog at several severities"):
        gather_correct([run])


def test_runs_that_cannot_be_put_together(tmp_path: Path) -> None:
    one = write_run(tmp_path / "a", "a", {"clean": 1.0, "fog@1": 0.5}, images=20)
    other = write_run(tmp_path / "b", "b", {"clean": 1.0, "snow@1": 0.5}, images=20)
    with pytest.raises(InputError, match=r"differ in|other conditions"):
        gather_correct([one, other])
    with pytest.raises(InputError, match="several runs of a"):
        gather_correct([one, one])
    with pytest.raises(InputError, match="no runs"):
        gather_correct([])


def test_the_command(tmp_path: Path) -> None:
    for name in ("standard", "fog"):
        write_run(tmp_path / "runs", name, {"clean": 1.0, "fog@1-5": 0.5}, images=20)
    for name in ("t.csv", "c.npz"):
        result = CliRunner().invoke(app, ["build", "gather", str(tmp_path / "runs"), "-o", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).is_file()
    wrong = CliRunner().invoke(app, ["build", "gather", str(tmp_path / "runs"), "-o", str(tmp_path / "t.txt")])
    assert wrong.exit_code == 2


def test_overlap_from_pictures_to_matrix(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    base = generator.integers(0, 256, (3, 16, 16, 3))
    for name in ("train", "test"):
        images = np.clip(base[labels] + generator.integers(-60, 61, (60, 16, 16, 3)), 0, 255).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)
    out = tmp_path / "out"
    arguments = [
        "train-overlap", "-c", "gaussian_noise,contrast", "-d", str(tmp_path / "train.npz"),
        "-t", str(tmp_path / "test.npz"), "--arch", "small_net", "--epochs", "1", "--batch-size", "20", "--with-all",
        "-o", str(out),
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    with (out / "accuracies.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert [row[0] for row in rows[1:]] == ["standard", "gaussian_noise", "contrast", "all"]
    assert rows[0][1:] == ["clean", "gaussian_noise", "contrast"]
    with np.load(out / "correct.npz") as found:
        assert found["correct"].shape == (4, 3, 60)
        assert [f"{value:.4f}" for value in found["correct"][1].mean(1)] == [f"{float(v):.4f}" for v in rows[2][1:]]
    assert (out / "overlap.csv").is_file()
    with (out / "intervals.csv").open() as stream:
        pairs = list(csv.reader(stream))
    assert [row[:2] for row in pairs[1:]] == [["gaussian_noise", "contrast"]]
    # After one epoch nothing is known.
    assert "1 of 1 pairs have an interval wider than 0.5, or none" in " ".join(result.output.split())
    remembered = CliRunner().invoke(app, [arguments[4] if i == 6 else text for i, text in enumerate(arguments)])
    assert "is trained on and tested on" in " ".join(remembered.output.split())
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0, again.output
    other = CliRunner().invoke(app, [*arguments, "--rate", "0.5"])
    assert other.exit_code == 2
    assert "schedule.rate" in other.output
    further = CliRunner().invoke(app, [*arguments, "--under", "contrast,noc:border,syn2nat:invert"])
    assert further.exit_code == 0, further.output
    assert "training" not in further.output  # all networks are there; only records are added
    with (out / "accuracies.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0][1:] == ["clean", "gaussian_noise", "contrast", "noc:border", "syn2nat:invert"]
    assert read_matrix(out / "overlap.csv").names == ("gaussian_noise", "contrast")
    with (out / "coverage.csv").open() as stream:
        covered = list(csv.reader(stream))
    assert [row[0] for row in covered] == ["corruption", "gaussian_noise", "contrast", "noc:border", "syn2nat:invert"]
    assert covered[0] == ["corruption", "standard", "all", "gain", "covered"]
    accuracies = {row[0]: dict(zip(rows[0][1:], map(float, row[1:]), strict=True)) for row in rows[1:]}
    for name, _, trained, gain, yes in covered[1:]:
        scores = [accuracies[model][name] / accuracies[model]["clean"] for model in ("standard", "all")]
        assert float(trained) == pytest.approx(scores[1], abs=1e-4)
        assert float(gain) == pytest.approx(scores[1] - scores[0], abs=1e-4)
        assert yes == ("yes" if scores[1] - scores[0] >= 0.01 else "no")
    assert "of 3 corruptions" in " ".join(further.output.split())
    single = CliRunner().invoke(app, ["train-overlap", "-c", "fog", *arguments[3:]])
    assert single.exit_code == 2
    assert "at least two" in single.output


def test_overlap_of_some_classes(tmp_path: Path) -> None:
    """Every second of six classes: three outputs, and test images with the same numbers as training images."""
    generator = np.random.default_rng(1)
    for name in ("train", "test"):
        labels = generator.permutation(np.arange(60) % 6)
        images = generator.integers(0, 256, (60, 16, 16, 3)).astype(np.uint8)
        np.savez(tmp_path / f"{name}.npz", images=images, labels=labels)
    out = tmp_path / "out"
    result = CliRunner().invoke(app, [
        "train-overlap", "-c", "gaussian_noise,contrast", "-d", str(tmp_path / "train.npz"),
        "-t", str(tmp_path / "test.npz"), "--classes", "every:2", "--arch", "small_net", "--epochs", "1",
        "--batch-size", "20", "-o", str(out),
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    run = open_run(out / "results" / "standard")
    records = run.records(run.conditions[0])
    assert len(records) == 30
    assert run.info.model.outputs == 3
    with np.load(tmp_path / "test.npz") as test:
        kept = test["labels"][test["labels"] % 2 == 0]
    assert sorted(records.labels.tolist()) == sorted((kept // 2).tolist())
