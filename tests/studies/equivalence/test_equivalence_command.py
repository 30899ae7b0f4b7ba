"""``blemish equivalence`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from blemish.benchmarks.condition import parse_condition
from blemish.cli.main import app
from blemish.data.digits import digits_source


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["equivalence", *(str(item) for item in arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 100 digits; contrast as ours, noise of other draws, and fog of another severity."""
    place = tmp_path_factory.mktemp("sets")
    source = digits_source()
    clean = np.stack([np.asarray(source.read(row)) for row in range(100)])
    np.savez(place / "clean.npz", images=clean, labels=source.labels[:100])
    batch = torch.from_numpy(clean.reshape(*clean.shape[:3], -1)).permute(0, 3, 1, 2).contiguous()
    made = {"contrast@2": "contrast@2", "gaussian_noise@1": "gaussian_noise@1", "fog@1": "fog@3"}
    theirs = {}
    for name, used in made.items():
        copies = parse_condition(used).apply(batch.clone(), seed=9, ids=torch.arange(100))
        theirs[name] = copies.permute(0, 2, 3, 1).numpy().reshape(clean.shape)
    np.savez(place / "theirs.npz", **theirs, **{"thunder@1": theirs["fog@1"]})
    return place


def sets(folder: Path) -> list[object]:
    return ["--data", folder / "clean.npz", "--stored", folder / "theirs.npz"]


def row(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split("  ")


def test_tables(folder: Path) -> None:
    code, output, errors = invoke(*sets(folder))
    assert code == 0
    assert "same pixels" in " ".join(row(output, "contrast@2"))
    assert "equivalent" in " ".join(row(output, "gaussian_noise@1"))
    assert "different" in " ".join(row(output, "fog@1"))
    assert "1 same pixels, 1 equivalent, 1 different" in output
    assert "cannot be made here: thunder@1" in errors


def test_numbers(folder: Path) -> None:
    code, output, _ = invoke(*sets(folder), "--only", "fog", "--csv", "-m", "demo:plain", "--limit", 40)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(output)))
    assert {row["cell"] for row in rows} == {"fog@1", "mean"}
    assert {row["storage"] for row in rows} == {"raw", "jpeg85"}
    accuracy = next(row for row in rows if row["quantity"] == "accuracy" and row["cell"] == "fog@1")
    gap = float(accuracy["ours"]) - float(accuracy["theirs"])
    assert float(accuracy["difference"]) == pytest.approx(gap)
    assert float(accuracy["low"]) < gap < float(accuracy["high"])
    mean = next(row for row in rows if row["cell"] == "mean" and row["storage"] == accuracy["storage"])
    assert float(mean["difference"]) == pytest.approx(gap)  # of one cell
    found = json.loads(invoke(*sets(folder), "--json", "--limit", 20)[1])
    assert found["images"] == 20
    assert found["verdicts"]["raw"]["images"] == "undecided"
    assert next(row for row in found["rows"] if row["cell"] == "fog@1")["low"] is None  # too few for an interval


def test_files(folder: Path, tmp_path: Path) -> None:
    code, _, _ = invoke(*sets(folder), "--only", "contrast", "-o", tmp_path / "n.json")
    assert code == 0
    assert json.loads((tmp_path / "n.json").read_text())["verdicts"]["raw"] == {"images": "same pixels"}
    code, output, errors = invoke(*sets(folder), "-m", "demo:plain", "-o", tmp_path / "page.html")
    assert code == 0
    assert "wrote" in errors
    assert "Accuracy of" in output
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(text) < 1_000_000  # no library inside
    assert text.count("<svg") == 3
    assert "cannot be made here: thunder@1" in text
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--margin", "0"], "--margin 0; expected a number above 0"),
        (["--tolerance", "nan"], "--tolerance nan"),
        (["--storage", "png"], "--storage 'png'"),
        (["--preset", "tiny"], "unknown preset 'tiny'"),
        (["--only", "snow"], "nothing in theirs is called 'snow'"),
        (["--weights", "x.pt"], "--weights without --model"),
        (["-o", "page.pdf"], "page.pdf: expected a file name that ends in .html, .csv, .json, .md or .tex"),
        (["--crop", "16"], "expected copies of the same size"),
    ],
)
def test_refusals(folder: Path, arguments: list[str], message: str) -> None:
    code, output, errors = invoke(*sets(folder), *arguments)
    assert code == 2
    assert message in errors
    assert not output


@pytest.mark.parametrize("name", ["page.html", "n.csv", "n.json", "n.md"])
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "is a file; expected a folder"),
        ("/proc/blemish", "no file can be made in /proc"),  # root may write everywhere else
        ("x" * 300, "File name too long"),
    ],
    ids=["a file", "a system folder", "a long name"],
)
def test_places_are_tried_before_any_work(tmp_path: Path, name: str, place: str, reason: str) -> None:
    """The sets are not there either, which would be found next."""
    if place.startswith("/proc") and not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    (tmp_path / "file").write_text("mine")
    target = tmp_path / place / name
    code, output, errors = invoke("--data", "nowhere.npz", "--stored", "nowhere", "-o", target)
    assert (code, output) == (2, "")
    said = " ".join(errors.split())
    assert reason in said
    assert "cannot write" in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["page.html", "new/deep/page.html", "new/n.csv"])
def test_trying_a_place_leaves_nothing_behind(tmp_path: Path, name: str) -> None:
    code, _, errors = invoke("--data", "nowhere.npz", "--stored", "nowhere", "-o", tmp_path / name)
    assert code == 2
    assert "nowhere.npz" in errors
    assert not list(tmp_path.iterdir())


def test_no_model_can_tell_identical_pixels_apart(folder: Path) -> None:
    """Not even few images leave it open; the numbers say 0, with nothing around it."""
    arguments = [*sets(folder), "--only", "contrast", "-m", "demo:plain", "--limit", "12"]
    found = json.loads(invoke(*arguments, "--json")[1])
    assert found["verdicts"]["raw"] == {"images": "same pixels", "accuracy": "same pixels"}
    rows = [row for row in found["rows"] if row["storage"] == "raw"]
    assert [row["quantity"] for row in rows][-3:] == ["distance", "accuracy", "accuracy"]
    for row in rows:
        assert (row["difference"], row["low"], row["high"], row["verdict"]) == (0, 0, 0, "same pixels")
    assert "undecided" not in "".join(line for line in invoke(*arguments)[1].splitlines() if line.startswith("  raw"))


def test_a_set_that_is_not_there(folder: Path) -> None:
    code, _, errors = invoke("--data", folder / "clean.npz", "--stored", folder / "nowhere")
    assert code == 2
    assert "no such file or folder" in errors
