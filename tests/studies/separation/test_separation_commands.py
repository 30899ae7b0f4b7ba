"""``blemish separation`` and ``blemish mscr`` as a user meets them, their data and their figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from PIL import Image
from typer.testing import CliRunner

from blemish.core.errors import InputError
from blemish.models.open import open_model
from blemish.reports.figure_files import save_figure
from blemish.studies.separation import figures as separation_figures
from blemish.studies.separation.commands.mscr import mscr_command
from blemish.studies.separation.commands.separation import separation_command
from blemish.studies.separation.exact import separation
from blemish.studies.separation.sources import read_points

app = typer.Typer()
app.command("separation")(separation_command)
app.command("mscr")(mscr_command)
runner = CliRunner()


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Two rows of points, 0.2 apart."""
    line = np.linspace(0, 1, 41)
    points = np.concatenate([np.stack([line, 0 * line], 1), np.stack([line, 0 * line + 0.2], 1)])
    np.savez(tmp_path / "points.npz", x=points, y=np.repeat([0, 1], 41))
    return tmp_path / "points.npz"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (24, 32, 32, 3)).astype(np.uint8)
    pictures[1] = pictures[0]
    pictures[1, 3, 3, 1] = pictures[0, 3, 3, 1] ^ 64
    np.savez(tmp_path / "images.npz", images=pictures, labels=np.arange(24) % 3)
    return tmp_path / "images.npz"


def test_separation_of_features(features: Path) -> None:
    code, out, _ = invoke("separation", "-d", features)
    assert code == 0
    assert "82 points, 2 classes, linf" in out
    assert "2r    = 0.2" in out
    assert "ε_min = 0.1" in out


def test_separation_of_images_as_json(images: Path, tmp_path: Path) -> None:
    code, out, _ = invoke(
        "separation", "-d", images, "--json", "--norm", "l1", "--closest", 2, "--figures", tmp_path / "drawn"
    )
    assert code == 0
    record = json.loads(out)
    assert record["distance"] == 64 / 255
    assert (record["closest"][0]["first"], record["closest"][0]["second"], record["closest"][0]["classes"]) == (
        0,
        1,
        [0, 1],
    )
    assert len(record["closest"]) == 2
    assert len(record["pairs"]) == 3
    drawn = sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert drawn == ["class-pairs.png", "closest-pairs.png", "distances.png"]
    code, out, _ = invoke("separation", "-d", images)
    assert "2r    = 0.250980 (64/255)" in out
    assert "closest pair of each two classes" in out


def test_separation_of_class_folders_names_files(tmp_path: Path) -> None:
    for place, (folder, level) in enumerate((("cat", 10), ("cat", 90), ("dog", 90), ("dog", 200))):
        (tmp_path / "set" / folder).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (level,) * 3).save(tmp_path / "set" / folder / f"{place}.png")
    code, out, _ = invoke("separation", "-d", tmp_path / "set")
    assert code == 0
    assert "1 pairs of equal points have different labels, such as cat/1.png (cat) and dog/2.png (dog)" in out
    assert "the classes touch" in out
    code, out, _ = invoke("separation", "-d", tmp_path / "set", "--exclude-duplicates")
    assert "(80/255)" in out
    Image.new("RGB", (20, 12)).save(tmp_path / "set" / "dog" / "9.png")
    code, _, err = invoke("separation", "-d", tmp_path / "set")
    assert code == 2
    assert "dog/9.png: 20×12 pixels, but cat/0.png has 16×12; expected one size" in err
    assert invoke("separation", "-d", tmp_path / "set", "--resize", 8, "--crop", 8)[0] == 0


def test_mscr_trains_and_tests(features: Path, tmp_path: Path) -> None:
    arguments = ["mscr", "-d", features, "--train", "1nn", "--train", "forest:3", "--eps-train", "0,min"]
    arguments += ["--eps-test", "0.15", "-k", 2, "--runs", 3, "--keep", tmp_path / "runs"]
    code, out, err = invoke(*arguments, "--figures", tmp_path / "drawn")
    assert code == 0
    assert "ε = 0.1 (ε_min of the data), linf, k = 2, 3 runs, independent draws, not clipped, as in the paper" in err
    assert "1nn: accuracy and MSCR in %" in out
    assert "ε_test 0.15" in out
    drawn = sorted(path.name for path in (tmp_path / "drawn").iterdir())
    assert drawn == ["matrix-1nn.png", "matrix-forest-3.png", "tradeoff.png"]
    assert (tmp_path / "runs" / "forest-3" / "run-00002.json").is_file()
    code, out, _ = invoke(*arguments, "--json")
    record = json.loads(out)
    assert record["epsilon"] == pytest.approx(0.1)
    assert record["models"]["1nn"]["runs"] == 3
    assert record["models"]["1nn"]["protocol"]["clip"] is False
    code, _, err = invoke(*arguments, "--seed", 1)
    assert code == 2
    assert "holds runs with other settings (seed was 0, now 1)" in err


def test_mscr_of_trained_models(tmp_path: Path) -> None:
    """Labels are the model's own answers, but for one: it is right on 23 of 24."""
    pictures = np.random.default_rng(0).integers(0, 256, (24, 32, 32, 3)).astype(np.uint8)
    labels = open_model("demo:plain")(torch.from_numpy(pictures.transpose(0, 3, 1, 2).copy())).argmax(1).cpu().numpy()
    labels[0] = (labels[0] + 1) % 10
    np.savez(tmp_path / "images.npz", images=pictures, labels=labels)
    settings = ["-m", "demo:plain", "-k", 1, "--runs", 2, "--epsilon", 0.001]
    code, out, _ = invoke("mscr", "-d", tmp_path / "images.npz", *settings, "--json")
    assert code == 0
    (score,) = json.loads(out)["trained"]
    assert score["epsilon"] == 0.001
    assert score["clean"] == 23 / 24
    assert score["robust"]["mean"] > 0.8
    assert "demo:plain" in invoke("mscr", "-d", tmp_path / "images.npz", *settings)[1]


def test_mscr_of_an_estimator_of_ones_own(features: Path) -> None:
    for name in ("sklearn.tree:DecisionTreeClassifier", "sklearn.naive_bayes:GaussianNB"):
        code, out, _ = invoke("mscr", "-d", features, "--train", f"python:{name}", "--runs", 1, "-k", 1)
        assert code == 0
        assert "100.000" in out  # two straight rows are easy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["separation", "-d", "none.npz"], "none.npz: no such file"),
        (["separation", "-d", "one.npz"], "all 5 points are of class 3; expected at least two classes"),
        (["separation", "-d", "nan.npz"], "point 2 holds NaN or infinity"),
        (["separation", "-d", "short.npz"], "labels of shape (4,) for 5 points"),
        (["separation", "-d", "good.npz", "--norm", "l5"], "norm 'l5'; expected one of l1, l2, linf"),
        (["separation", "-d", "good.npz", "--closest", "0"], "closest=0"),
        (["separation", "-d", "good.npz", "--resize", "8"], "resize and crop are for folders"),
        (["separation", "-d", "bare.npz"], "bare.npz: holds z; expected points under one of images, x, data, features"),
        (["separation", "-d", "text.txt"], "expected a folder, a .npy or a .npz file"),
        (["separation", "-d", "x.npy"], "labels of shape"),
        (["mscr", "-d", "good.npz"], "no models; expected --model"),
        (["mscr", "-d", "good.npz", "--train", "oracle"], "--train 'oracle'; expected forest"),
        (["mscr", "-d", "good.npz", "--train", "wrn-9-1"], "WRN-9-1; expected a depth of 10"),
        (["mscr", "-d", "good.npz", "--train", "python:no.such:thing"], "cannot be imported"),
        (
            ["mscr", "-d", "good.npz", "--train", "1nn", "-k", "0"],
            "k = 0; expected at least 1 noisy point per data point",
        ),
        (["mscr", "-d", "good.npz", "--train", "1nn", "--epsilon", "0"], "--epsilon 0.0; expected a positive radius"),
        (["mscr", "-d", "good.npz", "--train", "1nn", "--eps-train", "-1"], "expected a radius of 0 or more"),
        (["mscr", "-d", "good.npz", "--train", "1nn", "--eps-train", "a"], "--eps-train 'a'; expected radii"),
        (["mscr", "-d", "good.npz", "--train", "1nn", "--runs", "0"], "runs=0"),
        (["mscr", "-d", "good.npz", "--train", "1nn", "--draws", "odd"], "draws 'odd'"),
        (["mscr", "-d", "touching.npz", "--train", "1nn"], "points 0 (0) and 1 (1) are equal, so ε_min is 0; expected"),
        (["mscr", "-d", "one.npz", "--train", "1nn"], "expected at least two classes"),
    ],
)
def test_bad_input_is_explained(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    points = np.arange(10.0).reshape(5, 2)
    broken, touching = points.copy(), points.copy()
    broken[2, 1] = np.nan
    touching[1] = touching[0]
    labels = np.array([0, 1, 0, 1, 1])
    np.savez("good.npz", x=points, y=labels)
    np.savez("one.npz", x=points, y=np.full(5, 3))
    np.savez("nan.npz", x=broken, y=labels)
    np.savez("short.npz", x=points, y=labels[:4])
    np.savez("touching.npz", x=touching, y=labels)
    np.savez("bare.npz", z=points)
    np.save("x.npy", points)
    Path("text.txt").write_text("no array")
    code, _, err = invoke(*arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") <= 2


def test_points_from_a_file_with_labels_of_their_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((3, 4)))
    np.save(tmp_path / "y.npy", np.array([[0], [1], [1]]))
    found = read_points(tmp_path / "x.npy", labels=tmp_path / "y.npy")
    assert found.labels.tolist() == [0, 1, 1]
    assert not found.pictures
    np.save(tmp_path / "pictures.npy", np.zeros((3, 32, 32, 3), np.uint8))
    with pytest.raises(InputError, match="no labels"):
        read_points(tmp_path / "pictures.npy")


def test_figures_refuse_what_they_cannot_draw(tmp_path: Path) -> None:
    found = separation(np.arange(6.0).reshape(3, 2), [0, 1, 1])
    with pytest.raises(InputError, match="are no pictures"):
        separation_figures.closest_pairs(np.zeros((3, 2)), found.closest)
    with pytest.raises(InputError, match=r"decision regions expect \(N, 2\)"):
        separation_figures.decision_regions(_zeros, np.zeros((3, 3)), np.zeros(3), epsilon=0.1)
    with pytest.raises(InputError, match=r"ends in \.png, \.svg, \.pdf"):
        save_figure(None, tmp_path / "figure.doc")
    with pytest.raises(InputError, match="no distances"):
        separation_figures.distance_distribution(np.array([np.inf]), norm="linf")


def _zeros(points: Any) -> Any:
    return np.zeros(len(points))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_decision_regions_are_drawn(norm: str, tmp_path: Path) -> None:
    points = np.random.default_rng(0).uniform(size=(30, 2))
    labels = (points[:, 0] > 0.5).astype(int)
    figure = separation_figures.decision_regions(
        lambda asked: (asked[:, 0] > 0.5).astype(int), points, labels, epsilon=0.05, norm=norm, resolution=40
    )
    save_figure(figure, tmp_path / "regions.png")
    shown = np.asarray(Image.open(tmp_path / "regions.png").convert("RGB")).reshape(-1, 3)
    assert len(np.unique(shown, axis=0)) > 20
