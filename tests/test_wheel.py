"""What a release uploads: an sdist, and the wheel made from it, installed into an environment of its own and used."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from blemish.version import VERSION
from foreign import foreign

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
# Files beside the sources that belong to an sdist.
TOP = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml")


def run(*command: object, cwd: Path) -> str:
    """What a command prints, away from this checkout's sources."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(kind: str, tree: Path, folder: Path) -> Path:
    """Built as pip and build do it, by the backend that pyproject.toml names, with the setuptools that is here."""
    script = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(folder)!r}))"
    return folder / run(sys.executable, "-c", script, cwd=tree).splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves folders beside the sources, and reads those that are there."""
    pytest.importorskip("setuptools", minversion="77", reason="no setuptools that can build a release")
    pytest.importorskip("pip", reason="no pip that can install the wheel")
    folder = tmp_path_factory.mktemp("release")
    tree = folder / "tree"
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in TOP:
        shutil.copy(ROOT / name, tree)
    (tree / "tests").mkdir()
    shutil.copy(__file__, tree / "tests")  # which setuptools would take along
    return build("sdist", tree, folder)


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """Made from the sdist and nothing else."""
    shutil.unpack_archive(sdist, sdist.parent / "unpacked", filter="data")
    return build("wheel", sdist.parent / "unpacked" / f"blemish-{VERSION}", sdist.parent)


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


def sources() -> set[str]:
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "blemish").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"  # bytecode and compiled kernels
    }


def test_the_wheel_holds_every_file_of_the_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == sources()
    assert "blemish/py.typed" in packed
    assert {Path(name).suffix for name in packed} >= {".j2", ".npz", ".toml", ".json", ".css", ".js"}


def test_the_sdist_holds_the_sources_and_what_they_are_built_with(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in names if ".egg-info/" in name}
    assert names - made == {*TOP, "PKG-INFO", "setup.cfg", *(f"src/{name}" for name in sources())}


def test_the_index_would_take_them(sdist: Path, wheel: Path) -> None:
    foreign("twine")
    foreign("readme_renderer")
    said = run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel, cwd=wheel.parent)
    assert said.count("PASSED") == 2
    # Twine only warns where the README's Markdown cannot be rendered, because a library is missing.
    markdown = importlib.import_module("readme_renderer.markdown")
    page = markdown.render((ROOT / "README.md").read_text(encoding="utf-8"))
    assert page is not None
    assert "<table>" in page


def test_links_lead_somewhere_where_there_is_no_repository() -> None:
    """What RELEASING.md has done to the README before a release is built."""
    readme_renderer = foreign("readme_renderer.markdown")
    spec = importlib.util.spec_from_file_location("release_readme", ROOT / "tools" / "release_readme.py")
    assert spec is not None
    assert spec.loader is not None
    release_readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release_readme)
    text = release_readme.absolute((ROOT / "README.md").read_text(encoding="utf-8"), "https://example.org/b/", "v1")
    targets = re.findall(r"(?:href|src)=\"([^\"]+)", readme_renderer.render(text) or "")
    ours = [target for target in targets if target.startswith("https://example.org/b/")]
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert len(ours) > 10
    for target in ours:
        assert (ROOT / re.sub(r"^https://example.org/b/(blob|raw)/v1/", "", target).partition("#")[0]).exists(), target
    assert any("/raw/v1/docs/pictures/" in target for target in ours)


def test_version(installed: Callable[..., str]) -> None:
    assert VERSION in installed("--version")


def test_list(installed: Callable[..., str]) -> None:
    assert "gaussian_noise" in installed("list")


def test_demo(installed: Callable[..., str], wheel: Path) -> None:
    installed("demo", "--out", "demo")
    page = (wheel.parent / "demo" / "report.html").read_text(encoding="utf-8")
    assert "mCE" in page
    assert "demo-noisy" in page
