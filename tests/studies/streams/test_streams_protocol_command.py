"""``blemish ccc protocol``: all runs of the sets, stopped and continued, shared out, and what it writes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import blemish
from blemish.studies.streams import set_runs
from blemish.studies.streams.commands.ccc import ccc_app
from blemish.studies.streams.walks import read_walk
from quarter_nets import write_quarters

COMMON = ("-d", "data.npz", "--device", "cpu")
MODEL = ("-m", "python:quarter_net:build", *COMMON)
THREE = (
    *("protocol", "cal", *MODEL, "--set", "hard", "--length", 60, "--speeds", 4, "--methods", "none,tent"),
    *("--batch-size", 10, "--checkpoint", 2),
)
RUNS = ("--set", "hard,hard-smooth", "--length", 60, "--speeds", "4,8", "--batch-size", 10, "--checkpoint", 2)


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(ccc_app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit | KeyboardInterrupt):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of which one quarter is the brightest, networks that find it, and surfaces of one of them."""
    place = tmp_path_factory.mktemp("protocol")
    write_quarters(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(str(place))
        code, said = invoke("calibrate", *MODEL, "--set", "hard", "--step", 2.5, "-n", 20, "-o", "cal")
        assert code == 0, said
    return place


@pytest.fixture
def place(calibrated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(calibrated)
    monkeypatch.syspath_prepend(str(calibrated))
    return calibrated


def contents(folder: Path) -> dict[str, bytes]:
    """All that does not depend on when it was written: checkpoints are pickles with marks of their own."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pt"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_all_runs_their_means_and_a_page(place: Path) -> None:
    command = ("protocol", "cal", *MODEL, *RUNS, "--methods", "none,bn,tent", "-o", "nine")
    code, said = invoke(*command)
    assert code == 0, said
    folders = [f"seed-{seed}-speed-{speed}" for seed in (43, 44, 45) for speed in (4, 8)]
    assert sorted(path.name for path in (place / "nine" / "hard").iterdir()) == folders
    numbers = json.loads((place / "nine" / "scores.json").read_text())["sets"]
    assert list(numbers) == ["hard", "hard-smooth"]
    for name, column in numbers.items():
        assert [(run["seed"], run["speed"]) for run in column["runs"]] == [(s, v) for s in (43, 44, 45) for v in (4, 8)]
        for method in ("none", "bn", "tent"):
            each = [run["methods"][method]["accuracy"] for run in column["runs"]]
            assert column["methods"][method]["accuracy"]["value"] == pytest.approx(np.mean(each))
            kept = json.loads((place / "nine" / name / folders[0] / "summary.json").read_text())
            assert kept["methods"][method]["accuracy"] == each[0]
    walk = read_walk(place / "nine" / "hard-smooth" / folders[0] / "walk.json")
    assert (walk.protocol.objective, walk.protocol.ends, walk.protocol.set) == (
        "pointwise",
        "joint",
        "hard-smooth",
    )
    assert "mean of 6 runs" in said
    changed = "images 60 instead of 7500000; speed 4 instead of 1000, 2000, 5000; speed 8 instead of 1000, 2000, 5000"
    assert f"not hard as it is defined: {changed}\n" in said
    page = (place / "nine" / "report.html").read_text()
    assert "12 runs over hard; hard-smooth, on data" in page
    assert "not hard-smooth as it is defined" in page
    assert len(re.findall(r'<svg class="plot(?: wide)?"', page)) == 2 + 12
    # Once more: nothing is run, and the page is the same.
    before = contents(place / "nine")
    code, again = invoke(*command)
    assert (code, again) == (0, said)
    assert contents(place / "nine") == before


def test_a_run_equals_that_of_the_other_commands(place: Path) -> None:
    """The stream's seed is the walk's."""
    assert invoke("protocol", "cal", *MODEL, *RUNS, "--methods", "none,tent", "--seeds", 43, "-o", "one")[0] == 0
    walk = ("--set", "hard", "--length", 60, "--speed", 8, "--seed", 43, "-o", "walk.json")
    assert invoke("walk", "cal", *walk)[0] == 0
    run = ("run", "walk.json", *MODEL, "--methods", "none,tent", "--batch-size", 10, "--seed", 43, "-o", "run")
    assert invoke(*run)[0] == 0
    kept, same = (
        json.loads((place / folder / "summary.json").read_text()) for folder in ("one/hard/seed-43-speed-8", "run")
    )
    assert kept["run"] == same["run"]
    assert kept["methods"]["tent"]["accuracy"] == same["methods"]["tent"]["accuracy"]
    code, said = invoke("protocol", "cal", *MODEL, *RUNS, "--methods", "none", "--seeds", 43, "-o", "one")
    assert code == 2
    assert 'holds another run (methods was ["none", "tent"], now ["none"])' in said


def test_parts_share_the_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("protocol", "cal", *MODEL, *RUNS, "--methods", "none", "-o", "shared")
    code, said = invoke(*command, "--part", "0/2")
    assert code == 0
    assert "6 of 12 runs are over" in said
    assert not (place / "shared" / "report.html").exists()
    code, said = invoke(*command, "--part", "1/2")
    assert code == 0
    assert "wrote shared/report.html" in said.replace("\\", "/")
    # All are over: whoever asks gets the page.
    monkeypatch.setattr(set_runs, "run_stream", None)
    assert invoke(*command, "--part", "0/2")[0] == 0
    code, said = invoke(*command, "--part", "2/2")
    assert (code, "--part 2/2; expected a share" in said) == (2, True)


@pytest.fixture(scope="module")
def whole(calibrated: Path) -> dict[str, bytes]:
    """What three runs write that nobody stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(calibrated)
        patch.syspath_prepend(str(calibrated))
        code, said = invoke(*THREE, "-o", "whole")
    assert code == 0, said
    return contents(calibrated / "whole")


def test_stopped_and_continued(place: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = set_runs.run_stream, iter(range(100))

    def second_stops(*arguments: object, **settings: object) -> object:
        if next(calls) == 1:
            settings["progress"] = _raise
        return plain(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(set_runs, "run_stream", second_stops)
    code, said = invoke(*THREE, "-o", "stopped")
    assert (code, "Run the same command again to continue" in said) == (130, True)
    assert len(list((place / "stopped").rglob("summary.json"))) == 1
    assert invoke(*THREE, "-o", "stopped")[0] == 0
    assert contents(place / "stopped") == whole


def _raise(done: int, total: int) -> None:
    if done == 30:
        raise KeyboardInterrupt


@pytest.mark.skipif(os.name == "nt", reason="processes are killed otherwise there")
def test_killed_and_continued(place: Path, whole: dict[str, bytes]) -> None:
    """Killed by itself in the second run, with a checkpoint behind it and no time to tidy anything."""
    arguments = [str(each) for each in (*THREE, "-o", "killed")]
    code = (
        "import os, signal\n"
        "from blemish.studies.streams import set_runs\n"
        "from blemish.studies.streams.commands.ccc import ccc_app\n"
        "plain, calls = set_runs.run_stream, iter(range(9))\n"
        "def run(*arguments, progress, **settings):\n"
        "    second = next(calls) == 1\n"
        "    def tell(done, total):\n"
        "        if second and done == 30:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return plain(*arguments, progress=tell, **settings)\n"
        "set_runs.run_stream = run\n"
        f"ccc_app({arguments!r})\n"
    )
    paths = os.pathsep.join([str(Path(blemish.__file__).parents[1]), str(place)])
    process = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, cwd=place)
    assert process.returncode == -signal.SIGKILL
    second = place / "killed" / "hard" / "seed-44-speed-4"
    assert [path.name for path in sorted(second.glob("checkpoint-*"))] == ["checkpoint-0000000020.pt"]
    assert len(list((place / "killed").rglob("summary.json"))) == 1
    assert invoke(*THREE, "-o", "killed")[0] == 0
    assert contents(place / "killed") == whole


def test_a_network_without_batch_norm(place: Path) -> None:
    """Left out with a word, which stands on the page, too; a method that was named is refused."""
    model = ("-m", "python:quarter_net:grouped", *COMMON)
    few = ("--set", "hard", "--length", 20, "--speeds", 8, "--seeds", 43, "-o", "grouped")
    code, said = invoke("protocol", "cal", *model, *few)
    assert code == 0, said
    lack = "left out, because Sequential has no batch norm layers: bn"
    assert lack in said
    assert "calibrated with another model" in said
    page = (place / "grouped" / "report.html").read_text()
    assert lack in page
    assert "1 run over hard" in page
    code, said = invoke("protocol", "cal", *model, *few, "--methods", "none,bn")
    assert code == 2
    assert "bn needs batch norm layers, and Sequential has none" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "hard,harder"), "unknown set 'harder'"),
        (("--set", ","), "--set ,; expected names such as easy,hard"),
        (("--seeds", "a"), "--seeds 'a'; expected whole numbers such as 43,44,45"),
        (("--seeds", "43,43"), "seeds 43, 43; expected each once"),
        (("--set", "easy"), "no calibration surface for"),
        (("--set", "hard", "--jpeg"), "not shown as the walk was calibrated (jpeg was false, now true)"),
        (("--set", "hard", "--rdumb-margin", "old"), "margin 'old'; expected a number, or one of release, first-"),
    ],
)
def test_refusals_come_before_any_work(place: Path, options: tuple[str, ...], message: str) -> None:
    code, said = invoke("protocol", "cal", *MODEL, *options, "-o", "refused")
    assert code == 2
    assert message in said
    assert not (place / "refused").exists()


def test_a_damaged_summary_is_named(place: Path) -> None:
    few = ("--set", "hard", "--length", 20, "--speeds", 8, "--seeds", 43, "--methods", "none", "-o", "damaged")
    assert invoke("protocol", "cal", *MODEL, *few)[0] == 0
    path = place / "damaged" / "hard" / "seed-43-speed-8" / "summary.json"
    whole = path.read_text()
    for damage in (whole.replace('"accuracy": 0', '"accuracy": 1', 1), "{}", "[]"):
        path.write_text(damage)
        code, said = invoke("protocol", "cal", *MODEL, *few)
        assert code == 2
        assert "summary.json: damaged, or not what blemish ccc wrote; remove it, and it is made again" in said
    path.unlink()
    assert invoke("protocol", "cal", *MODEL, *few)[0] == 0
    assert path.read_text() == whole


def test_cells_that_were_not_measured_are_told(place: Path) -> None:
    calibrate = ("calibrate", *MODEL, "--set", "hard", "-n", 20, "--targets", 0.9, "--margin", 0.01, "-o", "few-cells")
    assert invoke(*calibrate)[0] == 0
    few = ("--set", "hard", "--length", 20, "--speeds", 8, "--seeds", 43, "--methods", "none", "-o", "guessed")
    code, said = invoke("protocol", "few-cells", *MODEL, *few)
    assert code == 0, said
    assert " steps of hard have an accuracy that was interpolated, not measured" in said
    assert "interpolated, not measured" in (place / "guessed" / "report.html").read_text()
