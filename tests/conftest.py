"""Shared fixtures: where the reference's recordings lie, if they lie anywhere."""

from __future__ import annotations

import multiprocessing
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from blemish.evaluation.executors import processes
from blemish.ops import photographs, textures
from foreign import let_torchvision_be_imported
from generated import set_up_hypothesis
from quick_workers import QuickContext

set_up_hypothesis()

# Tests run in parallel processes; more threads than cores would only wait for each other.
torch.set_num_threads(1)

let_torchvision_be_imported()


def pytest_configure(config: pytest.Config) -> None:
    """Let `pytest -n 2` keep the tests of a file in one process, or each would start a Ray cluster of its own."""
    if config.getoption("dist", default=None) == "load":
        config.option.dist = "loadfile"


@pytest.hookimpl(tryfirst=True)  # before -m selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a GPU by the fixture `device`."""
    for item in items:
        if "device" in getattr(item, "fixturenames", ()) and "device" not in _parameters(item):
            item.add_marker(pytest.mark.gpu)


def _parameters(item: pytest.Item) -> dict[str, object]:
    call = getattr(item, "callspec", None)
    return {} if call is None else dict(call.params)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is marked with `gpu` where there is none."""
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use here")


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder with all of the reference's own pixels and draws, kept beside the checkout and not part of it."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip("the reference recordings (../shared/golden) are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder with all of the recordings, or else with the small part of them that is committed."""
    return SHARED / "golden" if (SHARED / "golden").is_dir() else Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def device() -> torch.device:
    """A GPU; a test that asks for it is marked with `gpu`, and skipped where there is none."""
    return torch.device("cuda")


@pytest.fixture(scope="session", autouse=True)
def quick_workers() -> Iterator[None]:
    """Fork workers where users' are spawned; `spawned_workers` is for tests of the start itself."""
    with pytest.MonkeyPatch.context() as patch:
        if "forkserver" in multiprocessing.get_all_start_methods():
            patch.setattr(processes, "_context", QuickContext())
        yield


@pytest.fixture
def spawned_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are started as users' are."""
    monkeypatch.setattr(processes, "_context", multiprocessing.get_context("spawn"))


@pytest.fixture
def no_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the reference's photographs of frost: nothing fetched, nothing installed."""
    monkeypatch.setattr(photographs, "fetched_folder", lambda: tmp_path / "nothing fetched")
    monkeypatch.setattr(photographs, "_installed", tuple)
    textures._scaled.clear()  # nor has this process read them before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 48 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no right to mount a small disk here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
