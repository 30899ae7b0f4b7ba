"""Files that are there already: what blemish made is made again, anything else is kept unless --overwrite is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.cli import demo
from blemish.cli.main import app
from blemish.core.marks import is_ours
from blemish.data.demo import demo_picture
from blemish.data.digits import digits_source
from command_line import invoke
from report_runs import pictured_run

MINE = b"my only copy"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a picture, points, and an overlap matrix."""
    folder = tmp_path_factory.mktemp("place")
    pictured_run(folder / "results", "one")
    pictured_run(folder / "results", "two", seed=1)
    demo_picture(48).save(folder / "cat.png")
    source = digits_source().take(range(40))
    images = np.stack([np.asarray(source.read(row)) for row in range(40)])
    np.savez(folder / "digits.npz", images=images, labels=source.labels)
    np.savez(folder / "theirs.npz", **{"contrast@2": images})
    points = np.random.default_rng(0).uniform(0, 1, (40, 2)) + np.arange(40)[:, None] % 2 * 2
    np.savez(folder / "points.npz", x=points, y=np.arange(40) % 2)
    for arguments in (["table", "imagenet-c", "-o", "t.csv"], ["overlap-scores", "t.csv", "-o", "overlap.csv"]):
        assert invoke("build", *(folder / item if "." in item else item for item in arguments))[0] == 0
    calibrate = ["calibrate", "-m", "demo:plain", "-d", "demo:digits", "-n", "10", "-c", "contrast,brightness"]
    assert invoke("ccc", *calibrate, "--step", "2.5", "-o", folder / "surfaces")[0] == 0
    return folder


SCORE = ["score", "results", "--replicates", "5"]
COMPARE = ["compare", "results/one", "results/two", "--replicates", "5"]
SHOW = ["show", "cat.png", "-c", "contrast", "-s", "1"]
SEPARATION = ["separation", "-d", "digits.npz"]
EQUIVALENCE = ["equivalence", "-d", "digits.npz", "--stored", "theirs.npz"]
WALK = ["ccc", "walk", "surfaces", "--target", "0.8", "--length", "40"]
SELECT = ["build", "select", "overlap.csv"]

# The last argument is the file.
AGAIN = {
    "report.html": ["report", "results", "--replicates", "5", "-o"],
    "scores.json": [*SCORE, "-o"],
    "scores.csv": [*SCORE, "-o"],
    "scores.md": [*SCORE, "-o"],
    "scores.tex": [*SCORE, "-o"],
    "scores.txt": [*SCORE, "-o"],
    "scores": [*SCORE, "-o"],
    "csv.txt": [*SCORE, "--csv", "-o"],
    "compare.json": [*COMPARE, "-o"],
    "compare.csv": [*COMPARE, "-o"],
    "sheet.png": [*SHOW, "-o"],
    "sheet.jpg": [*SHOW, "-o"],
    "sheet.webp": [*SHOW, "-o"],
    "tilt.gif": ["show", "cat.png", "--sequence", "p:brightness", "-o"],
    "equivalence.html": [*EQUIVALENCE, "-o"],
    "equivalence.csv": [*EQUIVALENCE, "-o"],
    "separation.json": [*SEPARATION, "-o"],
    "mscr.json": ["mscr", "-d", "points.npz", "--train", "1nn", "--runs", "2", "-o"],
    "walk.json": [*WALK, "-o"],
    "walk.svg": [*WALK, "--overwrite", "-o", "w.json", "--figure"],
    "walk.pdf": [*WALK, "--overwrite", "-o", "w.json", "--figure"],
    "blocks.png": [*SELECT, "--overwrite", "-o", "b.toml", "--figure"],
    "optima.json": [*SELECT, "--overwrite", "-o", "c.toml", "--optima"],
    "sweep.csv": ["build", "sweep", "overlap.csv", "--thresholds", "0.2", "-o"],
    "covered.csv": ["build", "coverage", "t.csv", "--row", "fog", "-o"],
    "balance.csv": ["build", "balance", "t.csv", "-o"],
    "pairs.csv": ["build", "compare", "overlap.csv", "overlap.csv", "-o"],
    "ranges.csv": ["build", "match-severities", "-c", "contrast", "-m", "demo:plain", "-d", "digits.npz", "-o"],
}

KEPT = {
    "foggy.png": ["corrupt", "cat.png", "-c", "fog", "-s", "3", "-o"],
    "table.csv": ["build", "table", "imagenet-c", "-o"],
    "matrix.csv": ["build", "overlap-scores", "t.csv", "-o"],
    "select.toml": [*SELECT, "-o"],
    "categories.json": ["build", "categories", "overlap.csv", "--restarts", "2", "-o"],
    "gathered.csv": ["build", "gather", "results", "-o"],
}


@pytest.mark.parametrize("name", [*AGAIN, *KEPT])
def test_files_that_are_there(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Of tables and benchmark files nobody knows who made or changed them, and corrupted pictures are pixels alone."""
    if (AGAIN | KEPT)[name][:2] == SELECT[:2]:
        pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    monkeypatch.chdir(place)
    target = tmp_path / name
    target.write_bytes(MINE)
    arguments = {**AGAIN, **KEPT}[name]
    plain = [item for item in arguments if item != "--overwrite"]  # of a file beside it
    code, output, errors = invoke(*plain, target)
    assert (code, output) == (2, "")
    assert f"{target} is there already; choose another name, or replace it with --overwrite" in errors
    assert target.read_bytes() == MINE
    code, _, errors = invoke(*plain, target, "--overwrite")
    assert code == 0, errors
    made = target.read_bytes()
    assert made != MINE
    assert is_ours(target) == (name in AGAIN)
    code, _, errors = invoke(*arguments, target)
    assert code == (0 if name in AGAIN else 2), errors
    assert name in AGAIN or target.read_bytes() == made


def test_a_default_name(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheet.png").write_bytes(MINE)
    assert invoke("show", "-c", "contrast", "-s", "1")[0] == 2
    (tmp_path / "report.html").write_text("<html>my page, which names blemish 0.1.0</html>")
    assert invoke("report", place / "results", "--replicates", 5)[0] == 2


def test_other_texts_are_not_ours(tmp_path: Path) -> None:
    for name, text in {
        "notes.md": "This table was made by blemish 0.1.0 and edited by me.\n\nMore of my own.\n",
        "a.csv": "model,clean,fog\nstandard,0.9,0.5\n",
        "b.json": '{"name": "x", "made_with": "blemish 0.1.0"}',
        "c.tex": "\\section{Mine}\n% made by blemish 0.1.0\nwords",
        "d.html": "<p>generator blemish 1</p>",
        "e.toml": "# made by me\nname = 'x'\n",
    }.items():
        (tmp_path / name).write_text(text)
        assert not is_ours(tmp_path / name), name
    assert not is_ours(tmp_path / "gone.png")


def test_figures_in_a_folder(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    (tmp_path / "distances.png").write_bytes(MINE)
    code, output, errors = invoke(*SEPARATION, "--figures", tmp_path)
    assert (code, output) == (2, "")
    assert "distances.png is there already" in errors
    assert invoke(*SEPARATION, "--figures", tmp_path / "new")[0] == 0
    assert all(is_ours(path) for path in (tmp_path / "new").iterdir())


def test_the_demo_keeps_a_page_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "evaluate", None)
    (tmp_path / "report.html").write_bytes(MINE)
    code, _, errors = invoke("demo", "--out", tmp_path)
    assert code == 2
    assert "choose another --out" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["corrupt", "cat.png", "-o", "o.xyz", "-c", "fog", "-s", "1"],
            "o.xyz: cannot write .xyz files; expected a name that",
        ),
        (["corrupt", "digits.npz", "-o", "out.npz", "-c", "fog"], "out.npz: copies of many images go to a folder"),
        (["corrupt", "results", "-o", "out.zip", "-c", "fog"], "out.zip: copies of many images go to a folder"),
        (
            ["corrupt", "cat.png", "-o", "tilt.gif", "--sequence", "p:tilt"],
            "tilt.gif: frames go to a folder",
        ),
        (["ccc", "run", "w.json", "-m", "x", "-d", "y", "-o", "z", "--figure", "f.gif"], "f.gif: expected a name that"),
        ([*WALK, "-o", "w2.json", "--surface", "f.gif"], "f.gif: expected a name that"),
    ],
)
def test_names_that_promise_something_else(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    code, output, errors = invoke(*arguments)
    assert code == 2
    assert "wrote" not in output
    assert message in errors
    assert sorted(place.iterdir()) == before


def test_a_sheet_that_is_made_again_is_said_to_be(tmp_path: Path) -> None:
    words = ["show", "-c", "fog", "-s", "1", "-o", str(tmp_path / "sheet.png")]
    first, second = (CliRunner().invoke(app, words) for _ in range(2))
    assert "\nwrote " in first.stdout
    assert "\nreplaced " in second.stdout
