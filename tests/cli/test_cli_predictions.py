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
    for name, answer in (
        ("a.csv", "score"),
        ("a.jsonl", "correct"),
        ("a.parquet", "prediction"),
        ("b.parquet", "pixels"),
    ):
        assert "76 rows: no images yet" in command("template", "imagenet-c", "--answer", answer, "-o", tmp_path / name)
        assert "row 1: " in command("score", tmp_path / name, code=2)


def test_a_template_of_boxes_that_was_filled_in_is_scored(tmp_path: Path) -> None:
    kind = {"category_id": 1, "bbox": [10, 10, 40, 40], "area": 1600, "iscrowd": 0}
    boxes = [{"id": number, "image_id": number, **kind} for number in (1, 2)]
    images = [{"id": number, "file_name": f"{number}.jpg"} for number in (1, 2)]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    (tmp_path / "truth.json").write_text(json.dumps(content))
    asked = ("coco-c", "--annotations", tmp_path / "truth.json", "--answer", "boxes", "--only", "fog@1")
    assert "4 rows: 2 images under 2 conditions" in command("template", *asked, "-o", tmp_path / "a.parquet")
    text = command("template", *asked, "-o", tmp_path / "a.jsonl")
    assert "--annotations" in text
    assert "--benchmark" not in text  # of a part
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [line["image"] for line in lines] == ["1.jpg", "2.jpg"] * 2
    for name in ("a.jsonl", "a.parquet"):
        assert "row 1: boxes is empty" in command("score", tmp_path / name, *asked[1:3], code=2)
    for line in lines:
        there = line["condition"] == "clean"
        line |= {"boxes": [[10, 10, 50, 50]] * there, "scores": [0.5] * there, "labels": [1] * there}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (scores,) = json.loads(command("score", tmp_path / "a.jsonl", *asked[1:3], "--json", "--replicates", 5))
    values = {row["of"]: row["value"] for row in scores["rows"] if row["name"] == "ap50"}
    assert (values["clean"], values["fog@1"]) == (pytest.approx(100), 0)


def test_names_of_a_template_are_those_of_pictures_without_labels(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    for name in ("b.png", "a.JPG"):
        (tmp_path / "flat" / name).write_bytes(b"any")
    command("template", "coco-c", "--data", tmp_path / "flat", "--only", "fog@1", "-o", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [line["image"] for line in csv.DictReader(file)] == ["a.JPG", "b.png"] * 2


def test_what_no_template_can_be_of_is_refused(tmp_path: Path) -> None:
    assert "use blemish run" in command("template", "imagenet-p", "-o", tmp_path / "a.csv", code=2)
    assert "expected a file name that ends in .csv" in command(
        "template", "imagenet-c", "-o", tmp_path / "a.txt", code=2
    )
    assert "answer 'all'" in command("template", "imagenet-c", "--answer", "all", "-o", tmp_path / "a.csv", code=2)
    assert "pixels are lists" in command("template", "coco-c", "--answer", "pixels", "-o", tmp_path / "a.csv", code=2)
    boxes = ("template", "coco-c", "--answer", "boxes", "-o")
    assert "boxes are lists; expected a file name that ends in .jsonl" in command(*boxes, tmp_path / "a.csv", code=2)
    both = ("--data", tmp_path, "--annotations", tmp_path / "x")
    assert "--data and --annotations" in command(*boxes, tmp_path / "a.jsonl", *both, code=2)
    asked = ("template", "coco-c", "--annotations", tmp_path / "x", "-o", tmp_path / "a.csv")
    assert "expected them with --answer boxes" in command(*asked, code=2)
    assert "--benchmark is for files of predictions" in command("score", tmp_path, "--benchmark", "imagenet-c", code=2)
    assert list(tmp_path.iterdir()) == []


def test_scores_have_sections_of_their_own(predictions: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(predictions.read_text().replace("correct", "score"))
    command("report", tmp_path / "s.csv", "-o", tmp_path / "page.html", "--replicates", 20)
    page = (tmp_path / "page.html").read_text()
    assert "Score by corruption and severity" in page
    assert "Errors by severity" not in page
