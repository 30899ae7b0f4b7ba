"""Equal points with different labels, and what ``blemish mscr --exclude-duplicates`` does with them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

from blemish.core.errors import InputError
from blemish.models.open import open_model
from blemish.studies.separation import without_contradictions
from blemish.studies.separation.commands.mscr import mscr_command
from blemish.studies.separation.exact import separation
from blemish.studies.separation.sources import read_points

app = typer.Typer()
app.command("mscr")(mscr_command)
seen: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []


class Recorder:
    """An estimator that keeps what it is shown, and always answers 0."""

    def fit(self, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Recorder:
        seen.append((points, labels))
        return self

    def predict(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        seen.append((points, np.zeros(len(points), np.int64)))
        return np.zeros(len(points), np.int64)


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def rows(tmp_path: Path) -> tuple[Path, Path]:
    """Two rows of points, 0.2 apart, as they are and with two contradictions; one more point would be close to them."""
    line = np.linspace(0, 1, 41)
    points = np.concatenate([np.stack([line, 0 * line], 1), np.stack([line, 0 * line + 0.2], 1)])
    labels = np.repeat([0, 1], 41)
    np.savez(tmp_path / "clean.npz", x=points, y=labels)
    # 5 is written again with the other label, 0.05 from its neighbours 4 and 6; (3, 3) has three labels in all.
    extra = np.array([points[5], [3, 3], [3, 3], [3, 3], [3, 3]])
    np.savez(tmp_path / "dirty.npz", x=np.concatenate([points, extra]), y=np.append(labels, [1, 0, 1, 2, 0]))
    return tmp_path / "clean.npz", tmp_path / "dirty.npz"


def test_positions_to_keep_and_to_leave_out() -> None:
    points = np.array([[0.0, 1], [2, 2], [-0.0, 1], [2, 2], [5, 5], [2, 2]])
    kept, left_out = without_contradictions(points, ["a", "b", "b", "b", "c", "a"])
    assert kept.tolist() == [4]
    assert left_out == [[0, 2], [1, 3, 5]]  # −0 equals 0, and a third point with a label that occurs before
    images = np.zeros((3, 2, 2), np.uint8)
    assert without_contradictions(images, [1, 1, 1])[1] == []
    with pytest.raises(InputError, match=r"labels of shape \(2,\)"):
        without_contradictions(points, [0, 1])


def test_the_points_are_named_and_left_out(rows: tuple[Path, Path]) -> None:
    clean, dirty = rows
    module = f"python:{__name__}:Recorder"
    settings = ["--train", module, "-k", 1, "--runs", 1, "--test-share", 0.5, "--json"]
    code, _, err = invoke("-d", dirty, *settings)
    assert code == 2
    assert "points 5 (0) and 82 (1) are equal, so ε_min is 0; expected --exclude-duplicates" in err
    seen.clear()
    code, out, err = invoke("-d", dirty, *settings, "--exclude-duplicates")
    assert code == 0
    assert "6 of 87 points are left out, from ε_min, training and test: they are equal to points with other" in err
    assert "5 (0) = 82 (1)\n" in err
    assert "83 (0) = 84 (1) = 85 (2) = 86 (0)\n" in err
    assert "ε = 0.1 (ε_min of the points that are left)" in err
    record = json.loads(out)
    # The two rows are 0.2 apart; a point of class 1 in the row of class 0 would have made it 0.025.
    assert record["epsilon"] == pytest.approx(0.1)
    assert [[point["point"] for point in group] for group in record["left_out"]] == [[5, 82], [83, 84, 85, 86]]
    assert record["left_out"][0] == [
        {"point": 5, "label": 0, "name": None},
        {"point": 82, "label": 1, "name": None},
    ]
    (trained, labels), (tested, _), *_ = seen
    with np.load(clean) as file:
        expected = {tuple(point) for point in np.delete(file["x"], 5, axis=0).tolist()}
    assert {tuple(point) for point in [*trained.tolist(), *tested.tolist()]} == expected
    assert len(trained) + len(tested) == 81
    assert set(labels.tolist()) == {0, 1}


def test_nothing_changes_without_contradictions(rows: tuple[Path, Path]) -> None:
    settings = ["--train", "1nn", "-k", 2, "--runs", 2, "--json"]
    plain, without = (invoke("-d", rows[0], *settings, *flag) for flag in ((), ("--exclude-duplicates",)))
    assert plain == without
    assert json.loads(plain[1])["left_out"] == []


def test_trained_models_do_not_see_them(tmp_path: Path) -> None:
    """A wrong second copy of a picture costs the model its perfect accuracy, until both are left out."""
    pictures = np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3)).astype(np.uint8)
    labels = open_model("demo:plain")(torch.from_numpy(pictures.transpose(0, 3, 1, 2).copy())).argmax(1).cpu().numpy()
    pictures, labels = np.concatenate([pictures, pictures[7:8]]), np.append(labels, (labels[7] + 1) % 10)
    np.savez(tmp_path / "images.npz", images=pictures, labels=labels)
    settings = ["-m", "demo:plain", "-k", 1, "--runs", 1, "--epsilon", 0.001, "--json"]
    answers = [invoke("-d", tmp_path / "images.npz", *settings, *f) for f in ((), ("--exclude-duplicates",))]
    assert [json.loads(out)["trained"][0]["clean"] for _, out, _ in answers] == [24 / 25, 1.0]
    assert f"7 ({labels[7]}) = 24 ({labels[24]})" in answers[1][2]
    assert json.loads(answers[1][1])["radius"] == "as asked"


def test_files_are_named_and_long_lists_are_cut(tmp_path: Path) -> None:
    for number in range(13):
        for folder in ("cat", "dog"):
            (tmp_path / "set" / folder).mkdir(parents=True, exist_ok=True)
            level = 10 * number if number < 12 else 200 + 40 * (folder == "dog")
            Image.new("RGB", (8, 8), (level,) * 3).save(tmp_path / "set" / folder / f"{number:02d}.png")
    (tmp_path / "set" / "cat" / "99.png").write_bytes((tmp_path / "set" / "cat" / "12.png").read_bytes())
    arguments = ["-d", tmp_path / "set", "--train", "1nn", "--runs", 1, "-k", 1, "--exclude-duplicates"]
    code, _, err = invoke(*arguments, "--test-share", 0.3, "-o", tmp_path / "mscr.json")
    assert code == 0
    assert "24 of 27 points are left out" in err
    assert "cat/00.png (cat) = dog/00.png (dog)" in err
    assert "… and 2 more such groups, all of them in --json and -o" in err
    left_out = json.loads((tmp_path / "mscr.json").read_text())["left_out"]
    assert left_out[11][1] == {"point": left_out[11][1]["point"], "label": "dog", "name": "dog/11.png"}
    found = read_points(tmp_path / "set")
    kept, _ = without_contradictions(found.points, found.labels)
    assert separation(found.points[kept], found.labels[kept]).distance == 40 / 255


def test_too_little_left_is_explained(tmp_path: Path) -> None:
    np.savez(tmp_path / "points.npz", x=np.array([[0.0], [0.0], [1.0], [2.0]]), y=[0, 1, 1, 1])
    code, _, err = invoke("-d", tmp_path / "points.npz", "--train", "1nn", "--exclude-duplicates")
    assert code == 2
    assert "such as 0 (0) and 1 (1), fewer than two classes are left; expected points of at least two" in err
