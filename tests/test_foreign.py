"""Machines on which packages are missing, or are built for another machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import foreign
from generated import REASON

TESTS = Path(__file__).resolve().parent

_WITHOUT = """
import importlib.util, sys, pytest
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "hypothesis" else real(name, *more)
sys.exit(pytest.main(["-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-q", "-rs", *sys.argv[1:]]))
"""


class TestTorchvision:
    def test_operators_of_its_own_are_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        foreign.foreign("torchvision")
        loaded: list[str] = []
        monkeypatch.setattr(foreign, "_stand_ins", [])
        monkeypatch.setattr(torch.ops, "load_library", loaded.append)
        foreign.let_torchvision_be_imported()
        assert len(loaded) == 1
        assert foreign._stand_ins == []

    def test_it_can_be_imported_and_calls_its_own_where_they_load(self) -> None:
        operators = foreign.foreign("torchvision.ops")
        boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 4.0, 3.9], [8.0, 8.0, 9.0, 9.0]])
        scores = torch.tensor([0.5, 0.9, 0.1])
        if foreign._stand_ins:
            with pytest.raises(RuntimeError, match=r"custom C\+\+ ops"):
                operators.nms(boxes, scores, 0.5)
        else:
            assert operators.nms(boxes, scores, 0.5).tolist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("file", ["ops/test_edges.py", "metrics/test_metrics_formulas.py"])
def test_without_hypothesis_all_others_run(file: str) -> None:
    """One file has examples beside parameters, the other in classes of tests."""
    pytest.importorskip("hypothesis")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, str(TESTS / file)],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert REASON in done.stdout
    assert "." in done.stdout.splitlines()[0]
