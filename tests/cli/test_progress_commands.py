"""Every long command tells how far it has come where there is no terminal; time is made up."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.benchmarks.benchmark import only
from blemish.benchmarks.files import load_benchmark
from blemish.cli import demo
from blemish.cli.main import app
from blemish.core import live
from blemish.data.digits import digits_source

NET = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        return nn.functional.adaptive_avg_pool2d(self.norm(x).mean(1, keepdim=True), (2, 5)).flatten(1)


def build(classes=10):
    return Net().eval()
"""


def invoke(*arguments: object) -> tuple[str, list[str]]:
    """What was printed, and the lines on stderr."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr.splitlines()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty digits, a network, and results of two models on them."""
    folder = tmp_path_factory.mktemp("place")
    source = digits_source().take(range(30))
    images = np.stack([np.asarray(source.read(row)) for row in range(30)])
    np.savez(folder / "digits.npz", images=images, labels=source.labels)
    np.savez(folder / "theirs.npz", **{"contrast@2": images, "brightness@1": images})
    points = np.random.default_rng(0).uniform(0, 1, (40, 2)) + np.arange(40)[:, None] % 2 * 2
    np.savez(folder / "points.npz", x=points, y=np.arange(40) % 2)
    (folder / "progress_net.py").write_text(NET)
    for model in ("demo:plain", "demo:noisy"):
        invoke(*RUN, "-m", model, "-d", folder / "digits.npz", "-o", folder / "results")
    return folder


RUN = ("run", "digits-c", "--only", "contrast@1,brightness@2")
COMMANDS = {
    "run": ([*RUN, "-m", "demo:plain", "-d", "digits.npz", "-o", "OUT"], "contrast@1"),
    "score": (["score", "results"], "reading demo-plain"),
    "compare": (["compare", "results/demo-plain", "results/demo-noisy"], "swapping answers"),
    "report": (["report", "results", "-o", "OUT.html"], "making pictures"),
    "corrupt": (["corrupt", "digits.npz", "-o", "OUT", "-c", "contrast", "-s", "1,2"], "corrupting"),
    "corrupt, sequences": (
        ["corrupt", "pictures", "-o", "OUT", "--sequence", "p:brightness", "--resize", "32", "--crop", "32"],
        "corrupting",
    ),
    "equivalence": (["equivalence", "-d", "digits.npz", "--stored", "theirs.npz"], "brightness@1"),
    "separation": (["separation", "-d", "digits.npz"], "comparing points"),
    "mscr": (["mscr", "-d", "points.npz", "--train", "1nn", "--runs", "2"], "1nn"),
    "mscr, of trained models": (["mscr", "-d", "digits.npz", "-m", "demo:plain", "--runs", "2"], "demo:plain"),
    "build match-severities": (
        ["build", "match-severities", "-c", "contrast", "-m", "demo:plain", "-d", "digits.npz", "-o", "OUT.csv"],
        "contrast",
    ),
    "train-overlap": (
        [
            "train-overlap",
            "-c",
            "contrast,brightness",
            "-d",
            "digits.npz",
            "-t",
            "digits.npz",
            "--arch",
            "progress_net:build",
            "--epochs",
            "1",
            "-o",
            "OUT",
        ],
        "training",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_lines(name: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, expected = COMMANDS[name]
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    (place / "pictures" / "a").mkdir(parents=True, exist_ok=True)
    digits_source().read(0).save(place / "pictures" / "a" / "1.png")
    now = iter(range(0, 10**9, 31))
    monkeypatch.setattr(live, "_clock", lambda: float(next(now)))
    output, lines = invoke(*(item.replace("OUT", str(tmp_path / "out")) for item in arguments))
    title = name.partition(",")[0]
    assert output.count("\n") > 0
    assert not re.search(r"\d of \d.*left", output)
    told = [line for line in lines if line.startswith(f"{title}:")]
    assert any(expected in line and re.search(r", \d+:\d\d:\d\d", line) for line in told), lines
    assert any(re.search(r"\d of [\d,]+ \(\d+ %\)", line) for line in told), lines
    assert re.fullmatch(rf"{title}: done in \d+:\d\d:\d\d", told[-1])


def test_a_run_tells_how_many_images_are_read(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 31))
    monkeypatch.setattr(live, "_clock", lambda: float(next(now)))
    _, lines = invoke(*RUN, "-m", "demo:plain", "-d", place / "digits.npz", "-o", tmp_path)
    assert any(line.startswith("run: reading images, 30 of 30 (100 %)") for line in lines)


def test_streams(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**9, 31))
    monkeypatch.setattr(live, "_clock", lambda: float(next(now)))
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    net = ["-m", "python:progress_net:build", "-d", "digits.npz"]
    _, lines = invoke(
        "ccc", "calibrate", *net, "-c", "contrast,brightness", "--step", "2.5", "-o", tmp_path / "surfaces"
    )
    assert any(line.startswith("ccc calibrate: calibrating, ") for line in lines)
    invoke("ccc", "walk", tmp_path / "surfaces", "--target", "0.1", "--length", "40", "-o", tmp_path / "walk.json")
    _, lines = invoke("ccc", "run", tmp_path / "walk.json", *net, "--methods", "none,bn", "-o", tmp_path / "run")
    assert any(line.startswith("ccc run: adapting, ") for line in lines)
    shards = ("ccc", "materialise", tmp_path / "walk.json", "-d", "digits.npz", "-o", tmp_path / "shards", "--anyway")
    _, lines = invoke(*shards)
    assert any(line.startswith("ccc materialise: writing shards, ") for line in lines)
    assert lines[-1].startswith("ccc materialise: done in")


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, few = digits_source().take(range(20)), only(load_benchmark("digits-c"), ["fog@3", "p:tilt"])
    monkeypatch.setattr(demo, "digits_source", lambda: source)
    monkeypatch.setattr(demo, "load_benchmark", lambda _: few)
    now = iter(range(0, 10**9, 31))
    monkeypatch.setattr(live, "_clock", lambda: float(next(now)))
    _, lines = invoke("demo", "--out", tmp_path / "demo")
    for title, what in (("plain", "fog@3"), ("noisy", "fog@3"), ("report", "making pictures")):
        assert any(line.startswith(f"{title}: {what}, ") for line in lines), title
        assert any(line.startswith(f"{title}: done in ") for line in lines), title
