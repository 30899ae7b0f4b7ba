"""A corruption of a plugin joins every command that takes corruptions, conditions or benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.cli.main import app
from blemish.data.demo import demo_picture
from blemish.data.digits import digits_source
from blemish.studies.construction.matrices import OverlapMatrix, write_matrix

PLUGIN = ("--plugin", "own_corruptions")
NET = ("-m", "demo:plain", "-d", "digits.npz")
MINE = 'name = "mine"\nmetric = "error"\n[[conditions]]\ncorruptions = ["mine:shaded", "fog"]\nseverities = [2]\n'


def blemish_command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    demo_picture(48).save("cat.png")
    source = digits_source().take(range(24))
    images = np.stack([np.asarray(source.read(row)) for row in range(24)])
    np.savez("digits.npz", images=images, labels=source.labels)
    np.savez("theirs.npz", **{"mine:shaded@2": images})
    Path("mine.toml").write_text(MINE)
    scores = np.array([[1.0, 0.1], [0.1, 1.0]])
    write_matrix(OverlapMatrix(("mine:shaded", "fog"), scores), Path("overlap.csv"))
    return tmp_path


COMMANDS = {
    "list": ("list", "--family", "mine"),
    "show": ("show", "cat.png", "-c", "mine", "-s", "1,3", "-o", "sheet.png"),
    "corrupt": ("corrupt", "digits.npz", "-c", "mine:shaded,fog", "-s", "1", "-o", "copies"),
    "benchmarks": ("benchmarks", "mine.toml"),
    "run": ("run", "mine.toml", *NET, "-o", "results", "--trained-on", "mine"),
    "equivalence": ("equivalence", "-d", "digits.npz", "--stored", "theirs.npz"),
    "select": ("build", "select", "overlap.csv", "--threshold", 0.5, "-o", "selected.toml"),
    "match-severities": ("build", "match-severities", "-c", "mine", *NET, "--tolerance", 2, "-o", "ranges.toml"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", COMMANDS)
def test_joins(name: str) -> None:
    if name in ("select", "match-severities"):
        pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    words = [str(word) for word in COMMANDS[name]]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert blemish_command(*words, *PLUGIN)


def test_joins_overlap(folder: Path) -> None:
    data = ("-d", "digits.npz", "-t", "digits.npz", "--device", "cpu")
    train = ("train-overlap", *data, "--arch", "small_net", "--epochs", 1, "--batch-size", 8)
    blemish_command(*train, "-c", "mine,fog", "-j", 2, "-o", "overlap", *PLUGIN)
    assert (folder / "overlap" / "overlap.csv").read_text().startswith("corruption,mine:shaded,fog")


def test_joins_streams(folder: Path) -> None:
    blemish_command("ccc", "calibrate", *NET, "-c", "mine,fog", "--step", 5, "-j", 2, "-o", "surfaces", *PLUGIN)
    walk = ("ccc", "walk", "surfaces", "--target", 0.8, "--length", 20, "--speed", 10, "-o", "walk.json")
    blemish_command(*walk, "-c", "mine:shaded,fog", *PLUGIN)
    blemish_command("ccc", "run", "walk.json", *NET, "--methods", "none", "-j", 1, "-o", "run", *PLUGIN)
    blemish_command("ccc", "materialise", "walk.json", "-d", "digits.npz", "-o", "shards", "--anyway", *PLUGIN)
    assert "mine:shaded" in (folder / "walk.json").read_text()
    assert (folder / "shards" / "serial_00000.tar").is_file()


@pytest.mark.usefixtures("folder")
def test_what_was_constructed_can_be_run() -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    blemish_command("build", "select", "overlap.csv", "--threshold", 0.5, "-o", "selected.toml", *PLUGIN)
    shown = blemish_command("benchmarks", "selected.toml", *PLUGIN)
    assert "mine:shaded" in shown


def test_installed_packages_need_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shades-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shades\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[blemish.corruptions]\nshades = own_corruptions:shaded\n")
    assert "mine:shaded" not in blemish_command("list")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine:shaded" in blemish_command("list")


def test_a_plugin_that_is_not_there() -> None:
    result = CliRunner().invoke(app, ["list", "--plugin", "no_such_module"])
    assert result.exit_code == 2
    assert "plugin no_such_module" in result.stderr
