"""Packages of others that adapters are tried with: imported, or a skip that says how to get them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

# Albumentations asks the network for its newest version when it is imported.
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

# Held for as long as the process lives: torch forgets operators whose library is gone.
_stand_ins: list[torch.library.Library] = []


def foreign(module: str) -> Any:
    """A module of a package that `make test-all` installs; what it warns of while it is imported is its own affair.

    Only a missing package skips the test; one that is there and cannot be imported fails it.
    """
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed; make test-all installs it", allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


def let_torchvision_be_imported() -> None:
    """Define the two operators that torchvision asks torch for, where its own cannot be loaded.

    Its wheel on PyPI is built for GPUs, and its compiled operators do not load beside torch for CPUs. Nothing here
    calls them: they select boxes.
    """
    spec = importlib.util.find_spec("torchvision")
    if _stand_ins or spec is None or spec.submodule_search_locations is None:
        return
    for compiled in Path(spec.submodule_search_locations[0]).glob("_C*.so"):
        try:
            torch.ops.load_library(str(compiled))
        except OSError:
            continue
        return
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _stand_ins.append(library)
