"""Predictions that were made elsewhere: read, refused, and scored as they would be by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blemish
from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.tasks.prediction_files import read_sheet
from blemish.tasks.predictions import read_predictions

CONDITIONS = ["clean", *(f"{name}@{s}" for name in ("fog", "pixelate") for s in (1, 3))]
Row = dict[str, object]


def rows(value: Callable[[str, int, str], object], column: str, *, images: int = 30) -> list[Row]:
    return [
        {"model": model, "image": f"{i:03}.jpg", "condition": condition, column: value(model, i, condition)}
        for model in ("one", "two")
        for i in range(images)
        for condition in CONDITIONS
    ]


def outcome(model: str, image: int, condition: str) -> int:
    """Right or wrong, anyhow, but the same each time."""
    return int(hash_of(model, image, condition) > (0.1 if condition == "clean" else 0.1 * int(condition[-1]) + 0.2))


def hash_of(*parts: object) -> float:
    return float(np.random.default_rng([sum(map(ord, str(part))) * (k + 7) for k, part in enumerate(parts)]).random())


def write(path: Path, lines: list[Row]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(lines), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        path.write_text(
            "\n".join([mark.join(lines[0]), *(mark.join(map(str, line.values())) for line in lines)]) + "\n"
        )
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_accuracies_are_those_counted_by_hand_in_every_format(tmp_path: Path, suffix: str) -> None:
    lines = rows(outcome, "correct")
    one, two = read_predictions(write(tmp_path / f"answers{suffix}", lines))
    assert (one.name, two.name) == ("one", "two")
    scores = blemish.score(one, baseline=two, replicates=50)
    for condition in CONDITIONS:
        own = [line["correct"] for line in lines if (line["model"], line["condition"]) == ("one", condition)]
        assert scores.find("accuracy", condition).estimate.value == pytest.approx(100 * np.mean(own))  # type: ignore[arg-type]
    by_hand = {
        model: {
            group: np.mean([1 - outcome(model, i, f"{group}@{s}") for s in (1, 3) for i in range(30)])
            for group in ("fog", "pixelate")
        }
        for model in ("one", "two")
    }
    ratios = [by_hand["one"][group] / by_hand["two"][group] for group in ("fog", "pixelate")]
    assert scores.find("mce").estimate.value == pytest.approx(100 * np.mean(ratios))
    assert not [row for row in scores.rows if row.name in ("ece", "confidence")]


def test_scores_keep_their_units_and_resample_as_errors_do(tmp_path: Path) -> None:
    """The same zeros and ones as outcomes and as scores give the same numbers and intervals."""
    (right, _), (scored, other) = (
        read_predictions(write(tmp_path / f"{column}.csv", rows(outcome, column))) for column in ("correct", "score")
    )
    errors, numbers = blemish.score(right, replicates=200), blemish.score(scored, baseline=other, replicates=200)
    for of in ("fog", "pixelate"):
        accuracy, score = errors.find("accuracy", of).estimate, numbers.find("score", of).estimate
        assert (score.value, score.low, score.high) == pytest.approx(
            (accuracy.value / 100, accuracy.low / 100, accuracy.high / 100)
        )
    assert numbers.find("rpc").estimate.value == pytest.approx(100 * errors.find("robustness").estimate.value)
    assert numbers.headline is not None
    assert numbers.headline.name == "score"


def test_two_models_are_compared_on_the_same_images(tmp_path: Path) -> None:
    one, two = read_predictions(write(tmp_path / "s.csv", rows(lambda m, i, c: outcome(m, i, c) / 2 + 0.1, "score")))
    comparison = blemish.compare(one, two, replicates=100)
    difference = comparison.find("score", "fog").difference
    expected = np.mean(
        [(outcome("two", i, f"fog@{s}") - outcome("one", i, f"fog@{s}")) / 2 for i in range(30) for s in (1, 3)]
    )
    assert difference.value == pytest.approx(expected)
    outcomes = read_predictions(write(tmp_path / "o.csv", rows(outcome, "correct")))[0]
    with pytest.raises(InputError, match=r"task is scores \(score\) and outcomes \(correct\)"):
        blemish.compare(one, outcomes)


def test_severity_and_answers_in_columns_of_their_own(tmp_path: Path) -> None:
    text = (
        "image,corruption,severity,label,prediction\n"
        "a,none,0,Cat, cat\nb,none,0,dog,cow\na,fog,2.0,cat,dog\nb,fog,2.0,dog,DOG\n"
    )
    (tmp_path / "vlm.csv").write_text(text)
    (run,) = read_predictions(tmp_path / "vlm.csv")
    assert (run.name, list(map(str, run.conditions))) == ("vlm", ["clean", "fog@2"])
    assert [run.answers(c).numbers("correct").tolist() for c in run.conditions] == [[True, False], [False, True]]  # type: ignore[union-attr]


def test_a_benchmark_names_what_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "part.csv", rows(outcome, "correct"))
    run = read_predictions(path, benchmark="imagenet-c")[0]
    scores = blemish.score(run, replicates=20)
    assert scores.headline is None
    assert scores.metric == "mce"
    assert "no records of gaussian_noise@1" in next(item.why for item in scores.missing if "mce" in item.names)
    with pytest.raises(InputError, match=r"fog@1.* not in digits-c|not in"):
        read_predictions(
            write(tmp_path / "odd.csv", [{"image": "a", "condition": "fog@2.25", "score": 1}]), benchmark="imagenet-c"
        )


def broken() -> Iterator[tuple[str, list[Row], str]]:
    whole = rows(outcome, "correct", images=3)
    yield "image", whole[:-1], r"two has no prediction under pixelate@3 for 1 of 3 images: 002\.jpg"
    yield "twice", [*whole, whole[3]], r"row 31: a second prediction of one under pixelate@1 for the image of row 4"
    yield "value", [*whole[:2], {**whole[2], "correct": "maybe"}], r"row 3: correct is 'maybe'; expected true or false"
    yield "empty", [{**whole[0], "correct": ""}], r"row 1: correct is empty"
    yield "condition", [{**whole[0], "condition": "fog"}], r"row 1: condition 'fog'; expected clean, NAME@SEVERITY"
    yield "sequence", [{**whole[0], "condition": "p:tilt@1"}], r"flips along sequences"
    yield (
        "number",
        [{"image": "a", "condition": "clean", "score": "much"}],
        r"row 1: score is 'much'; expected a number",
    )
    yield "infinite", [{"image": "a", "condition": "clean", "score": "inf"}], r"row 1: score is inf; expected a finite"
    yield "two answers", [{**whole[0], "score": 1}], r"correct and score; expected one of"
    yield "no answer", [{"image": "a", "condition": "clean"}], r"none of them among image, condition"
    yield "no image", [{"condition": "clean", "score": 1}], r"no column 'image' among condition, score"
    yield "no condition", [{"image": "a", "score": 1}], r"no condition among image, score"
    yield "confidence", [{**whole[0], "confidence": 1.5}], r"row 1: confidence is 1\.5; expected a probability"


@pytest.mark.parametrize(("lines", "message"), [entry[1:] for entry in broken()], ids=[entry[0] for entry in broken()])
def test_what_is_wrong_is_named(tmp_path: Path, lines: list[Row], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_predictions(write(tmp_path / "bad.csv", lines))


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name, content in (("a.txt", "x"), ("a.csv", ""), ("a.csv", "image,condition,score\n"), ("a.parquet", "x")):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=name):
            read_predictions(tmp_path / name)


def test_a_run_of_predictions_holds_no_records_of_classes(tmp_path: Path) -> None:
    run: Run = read_predictions(write(tmp_path / "a.csv", rows(outcome, "correct")))[0]
    assert list(run.table()) == ["condition", "corruption", "severity", "images"]
    with pytest.raises(InputError, match="no records"):
        run.records(run.conditions[0])


def held(path: Path, column: str = "correct") -> list[object]:
    [run] = read_predictions(path)
    return list(run.answers(blemish.parse_condition("clean")).numbers(column).tolist())


def test_whole_numbers_with_a_point_are_the_same_labels(tmp_path: Path) -> None:
    """A column of whole numbers with a gap in it is written with points by pandas."""
    path = tmp_path / "answers.csv"
    path.write_text("image,condition,prediction,label\na,clean,3.0,3\nb,clean,30,3\nc,clean,3.5,3\n")
    assert held(path) == [True, False, False]


def test_dates_in_json_are_texts(tmp_path: Path) -> None:
    """One column has a text that is no date: the other is no column of times for that."""
    lines: list[Row] = [
        {"image": "a", "condition": "clean", "prediction": "2020-01-31", "label": "2020-01-31"},
        {"image": "b", "condition": "clean", "prediction": "none", "label": "2020-01-31"},
    ]
    assert held(write(tmp_path / "answers.jsonl", lines)) == [True, False]


def test_numbers_in_texts_may_have_spaces_but_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("image,condition,score\na,clean, 0.5\n")
    assert held(path, "score") == [0.5]
    path.write_text("image,condition,score\na,clean,1\nb,clean,1_0\n")
    with pytest.raises(InputError, match="row 2: score is '1_0'; expected a number"):
        read_predictions(path)


def test_columns_of_one_name_and_severity_0_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("image,condition,score,score\na,clean,1,2\n")
    with pytest.raises(InputError, match="several columns 'score'; expected one of each name"):
        read_predictions(path)
    path.write_text("image,condition,score\na,fog@0,1\n")
    with pytest.raises(InputError, match="row 1: condition 'fog@0'; expected clean"):
        read_predictions(path)


def test_json_lines_may_begin_with_whole_numbers_and_empty_lists(tmp_path: Path) -> None:
    """Files are read in pieces of a megabyte otherwise, and what comes later has to have the types of the first."""
    path, rows = tmp_path / "a.jsonl", 12_000
    with path.open("w") as file:
        for kind, boxes, scores in (
            ("clean", [], []),
            ("fog@1", [[1, 2, 3, 4]], [1]),
            ("fog@2", [[0.5, 1, 2, 3]], [0.5]),
        ):
            for number in range(rows):
                line = {"image": f"{number:06}", "condition": kind, "boxes": boxes, "scores": scores, "score": 1}
                file.write(json.dumps(line) + "\n")
    assert path.stat().st_size > 3 * 2**20
    sheet = read_sheet(path)
    assert sheet.values("boxes")[::rows] == [[], [[1, 2, 3, 4]], [[0.5, 1, 2, 3]]]
    assert sheet.values("scores")[-1] == [0.5]
