"""The wheel holds all that the package needs: built, installed into an environment of its own, and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from blemish.version import VERSION

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


def run(*command: object, cwd: Path) -> str:
    """What a command prints, away from this checkout's sources."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves folders beside the sources, and reads those that are there."""
    pytest.importorskip("setuptools", minversion="77", reason="no setuptools that can build the wheel")
    pytest.importorskip("pip", reason="no pip that can install the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "tree" / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *options, "-w", folder, folder / "tree", cwd=folder)
    (found,) = folder.glob("blemish-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Callable[..., str]:
    """The command in an environment that has the wheel, and lends this one's other packages."""
    venv = wheel.parent / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=wheel.parent)
    python = venv / "bin" / "python"
    install = ("-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet")
    run(sys.executable, *install, wheel, cwd=wheel.parent)
    (packages,) = venv.glob("lib/python*/site-packages")
    # Of a folder named here, the .pth files are not followed, such as that of an editable install.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import blemish; print(blemish.__file__)", cwd=wheel.parent)
    assert Path(where.strip()).is_relative_to(packages)
    return lambda *words: run(venv / "bin" / "blemish", *words, cwd=wheel.parent)


def test_it_holds_every_file_of_the_sources(wheel: Path) -> None:
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "blemish").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"  # bytecode and compiled kernels
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == sources
    assert {Path(name).suffix for name in packed} >= {".j2", ".npz", ".toml", ".json", ".css", ".js", ".typed"}


def test_version(installed: Callable[..., str]) -> None:
    assert VERSION in installed("--version")


def test_list(installed: Callable[..., str]) -> None:
    assert "gaussian_noise" in installed("list")


def test_demo(installed: Callable[..., str], wheel: Path) -> None:
    installed("demo", "--out", "demo")
    page = (wheel.parent / "demo" / "report.html").read_text(encoding="utf-8")
    assert "mCE" in page
    assert "demo-noisy" in page
