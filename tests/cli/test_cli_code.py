"""Models that run code, at every command that takes a model: permission, and ``sys.exit`` in it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typer

from blemish.terminal.commands import exit_on_input_error
from command_line import command as blemish_command

CODE = """
import multiprocessing
import sys
from pathlib import Path
import torch

Path("imported").touch()

class Net(torch.nn.Module):
    leave = False
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(3)
    def forward(self, values):
        if self.leave:
            sys.exit(0)
        return 20 * torch.nn.functional.adaptive_avg_pool2d(self.norm(values), 2).mean(1).flatten(1)

class Leaving(Net):
    leave = True

def net(): return Net()
def leaving(): return Leaving()
def in_workers():
    if multiprocessing.parent_process() is not None:
        sys.exit(0)
    return Net()

class Estimator:
    def fit(self, points, labels): sys.exit(0)
"""

FOG = """
name = "foggy"
metric = "error"
[[conditions]]
corruptions = ["fog"]
severities = [1]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: pictures of which one quarter is the brightest, stored ones, a benchmark, and models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "code_net", raising=False)
    (tmp_path / "code_net.py").write_text(CODE)
    for name in ("net", "leaving"):
        (tmp_path / f"{name}.toml").write_text(f'model = "python:code_net:{name}"\n')
    (tmp_path / "fog.toml").write_text(FOG)
    rng = np.random.default_rng(0)
    images = rng.integers(60, 180, (16, 16, 16, 3)).astype(np.uint8)
    labels = np.arange(16) % 4
    for image, label in zip(images, labels, strict=True):
        image[8 * (label // 2) : 8 * (label // 2) + 8, 8 * (label % 2) : 8 * (label % 2) + 8] += 40
    np.savez(tmp_path / "data.npz", images=images, labels=labels)
    np.savez(tmp_path / "stored.npz", **{"contrast@1": images})
    return tmp_path


# Every command that takes a model, MODEL in its place.
COMMANDS = {
    "run": "run fog.toml -d data.npz -o out -m MODEL",
    "equivalence": "equivalence -d data.npz --stored stored.npz -m MODEL",
    "match-severities": "build match-severities -c contrast -d data.npz -o ranges.csv --tolerance 2 -m MODEL",
    "calibrate": "ccc calibrate -d data.npz -c contrast,pixelate --step 5 -o cal --device cpu -m MODEL",
    "mscr": "mscr -d data.npz --epsilon 0.01 --runs 1 -k 1 -m MODEL",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_permission(folder: Path, name: str) -> None:
    arguments = COMMANDS[name].replace("MODEL", "net.toml").split()
    refused = blemish_command(*arguments)
    assert refused.exit_code == 2, refused.output
    assert "net.toml: names python:code_net:net, which runs code" in refused.stderr
    assert not (folder / "imported").exists()
    allowed = blemish_command(*arguments, "--allow-code")
    assert allowed.exit_code == 0, allowed.output
    assert (folder / "imported").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript(folder: Path) -> None:
    torch.jit.script(torch.nn.Flatten()).save(str(folder / "net.pts"))
    refused = blemish_command(*COMMANDS["run"].replace("MODEL", "net.pts").split())
    assert refused.exit_code == 2
    assert "net.pts: TorchScript, which can run code" in refused.stderr


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_leaving(name: str) -> None:
    result = blemish_command(*COMMANDS[name].replace("MODEL", "python:code_net:leaving").split())
    assert result.exit_code == 2, result.output
    assert "model leaving: its code would end the program (SystemExit: 0) (code_net.py, line 16)" in result.stderr


def test_leaving_while_it_is_adapted(folder: Path) -> None:
    common = "-d data.npz --device cpu -m"
    for made in (
        f"ccc calibrate -c contrast,pixelate --step 5 -o cal {common} python:code_net:net",
        "ccc walk cal --target 0.9 --speed 5 --length 20 -o walk.json",
    ):
        assert blemish_command(*made.split()).exit_code == 0
    run = f"ccc run walk.json --methods none --batch-size 4 {common}"
    left = blemish_command(*f"{run} python:code_net:leaving -o left".split())
    assert left.exit_code == 2
    assert "model leaving: its code would end the program" in left.stderr
    assert "which runs code" in blemish_command(*f"{run} net.toml -o run".split()).stderr
    allowed = blemish_command(*f"{run} net.toml -o run --allow-code".split())
    assert allowed.exit_code == 0, allowed.output
    assert (folder / "run" / "summary.json").is_file()


@pytest.mark.usefixtures("folder")
def test_leaving_in_workers() -> None:
    result = blemish_command(*f"{COMMANDS['run']} --jobs 2".replace("MODEL", "python:code_net:in_workers").split())
    assert result.exit_code == 2, result.output
    assert "model 'python:code_net:in_workers': its code would end the program (SystemExit: 0)" in result.stderr


@pytest.mark.usefixtures("folder")
def test_code_that_no_wrapper_is_around() -> None:
    arguments = "mscr -d data.npz --epsilon 0.01 --runs 1 -k 1 --train python:code_net:Estimator"
    result = blemish_command(*arguments.split())
    assert result.exit_code == 2, result.output
    assert "code that was run would end the program (exit 0) (code_net.py, line 30)" in result.stderr


@pytest.mark.parametrize(("error", "code"), [(SystemExit(0), 2), (typer.Exit(0), 2), (typer.Exit(130), 130)], ids=repr)
def test_no_command_ends_well_before_its_end(error: BaseException, code: int) -> None:
    @exit_on_input_error
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == code
