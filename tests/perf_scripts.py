"""The scripts in perf/, which import each other by name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

PERF = Path(__file__).resolve().parents[1] / "perf"


def module(name: str) -> ModuleType:
    """A script as a module."""
    if str(PERF) not in sys.path:
        sys.path.append(str(PERF))
    return importlib.import_module(name)
