"""Shared fixtures: where the reference's recordings lie, if they lie anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from blemish.ops import photographs

# Tests run in parallel processes; more threads than cores would only wait for each other.
torch.set_num_threads(1)


def pytest_configure(config: pytest.Config) -> None:
    """Let `pytest -n 2` keep the tests of a file in one process, or each would start a Ray cluster of its own."""
    if config.getoption("dist", default=None) == "load":
        config.option.dist = "loadfile"


SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder with the reference's own pixels and draws, kept beside the checkout and not part of it."""
    folder = SHARED / "golden"
    if not folder.is_dir():
        pytest.skip("the reference recordings (../shared/golden) are not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def device() -> torch.device:
    """A GPU, for tests that compare it with the CPU."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    return torch.device("cuda")


@pytest.fixture
def no_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the reference's photographs of frost: nothing fetched, nothing installed."""
    monkeypatch.setattr(photographs, "fetched_folder", lambda: tmp_path / "nothing fetched")
    monkeypatch.setattr(photographs, "_installed", tuple)
