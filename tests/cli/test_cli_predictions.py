"""``blemish template``, and files of predictions where folders of runs are taken."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blemish.cli.main import app


def command(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """A template of two models, filled in."""
    (tmp_path / "names.txt").write_text("a.jpg\nb.jpg\n\n=c.jpg\n")
    lines: list[dict[str, str]] = []
    for model in ("one", "two"):
        path = tmp_path / f"{model}.csv"
        command(
            "template",
            "digits-c",
            "--image-names",
            tmp_path / "names.txt",
            "--only",
            "fog",
            "--name",
            model,
            "-o",
            path,
        )
        with path.open(newline="") as file:
            lines += csv.DictReader(file)
    assert len(lines) == 2 * 3 * 6
    assert lines[0] == {
        "model": "one",
        "image": "a.jpg",
        "condition": "clean",
        "correct": "",
    }
    whole = tmp_path / "predictions.csv"
    with whole.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        for number, line in enumerate(lines):
            writer.writerow({**line, "correct": int(line["condition"] == "clean" or number % 3 > 0)})
    return whole


def test_a_template_that_was_filled_in_is_scored(predictions: Path, tmp_path: Path) -> None:
    scores = json.loads(command("score", predictions, "--baseline", "two", "--json", "--replicates", 20))
    assert [entry["model"] for entry in scores] == ["one", "two"]
    assert scores[1]["headline"]["value"] == pytest.approx(100 * 5 / 15)
    assert [row["value"] for row in scores[1]["rows"] if row["name"] == "mce"] == [pytest.approx(100)]
    assert "=c.jpg" not in command("score", f"{predictions}:two", "--replicates", 20)
    assert "no model 'three'; it has one, two" in command("score", f"{predictions}:three", code=2)
    text = command("compare", f"{predictions}:one", f"{predictions}:two", "--replicates", 20)
    assert "two minus one" in " ".join(text.split())
    assert "predictions of 2 models (one, two)" in command("compare", predictions, predictions, code=2)
    command("report", predictions, "-o", tmp_path / "page.html", "--replicates", 20)
    page = (tmp_path / "page.html").read_text()
    assert "came as a file (predictions.csv)" in page
    assert "Errors by severity" in page
    command("gate", f"{predictions}:one", "--require", "clean accuracy > 0.2", "--point")


def test_an_empty_template_is_no_result(tmp_path: Path) -> None:
    for name, answer in (("a.csv", "score"), ("a.jsonl", "correct"), ("a.parquet", "prediction")):
        assert "76 rows: no images yet" in command("template", "imagenet-c", "--answer", answer, "-o", tmp_path / name)
        assert "row 1: " in command("score", tmp_path / name, code=2)


def test_what_no_template_can_be_of_is_refused(tmp_path: Path) -> None:
    assert "use blemish run" in command("template", "imagenet-p", "-o", tmp_path / "a.csv", code=2)
    assert "expected a file name that ends in .csv" in command(
        "template", "imagenet-c", "-o", tmp_path / "a.txt", code=2
    )
    assert "answer 'all'" in command("template", "imagenet-c", "--answer", "all", "-o", tmp_path / "a.csv", code=2)
    assert "--benchmark is for files of predictions" in command("score", tmp_path, "--benchmark", "imagenet-c", code=2)
    assert list(tmp_path.iterdir()) == []


def test_scores_have_sections_of_their_own(predictions: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(predictions.read_text().replace("correct", "score"))
    command("report", tmp_path / "s.csv", "-o", tmp_path / "page.html", "--replicates", 20)
    page = (tmp_path / "page.html").read_text()
    assert "Score by corruption and severity" in page
    assert "Errors by severity" not in page
