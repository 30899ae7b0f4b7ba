"""Integrations where the library they are for is not installed, and how libraries find them."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

_CHECK = """
import importlib, json, sys

said = {}
for library in ("albumentations", "lightning", "pytorch_lightning", "torchmetrics", "mmengine", "nrtk"):
    sys.modules[library] = None
for name in ("albumentations", "lightning", "torchmetrics", "nrtk", "maite", "mmcv", "trackers", "fiftyone"):
    try:
        module = importlib.import_module(f"blemish.integrations.{name}")
        said[name] = len(module.perturbers) if name == "nrtk" else "imported"
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""


def test_it_is_named_where_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", _CHECK], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    for name in ("albumentations", "lightning", "torchmetrics"):
        assert said.pop(name) == f"InputError: this needs {name}; install it with: pip install {name}"
    # smqtk imports what its entry points name for all its users, also those without nrtk.
    assert said.pop("nrtk") == 0
    assert said == dict.fromkeys(("maite", "mmcv", "trackers", "fiftyone"), "imported")


def test_entry_points_lead_somewhere() -> None:
    file = Path(__file__).resolve().parents[2] / "pyproject.toml"
    groups = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["entry-points"]
    for group, entries in groups.items():
        for name, value in entries.items():
            assert EntryPoint(name, value, group).load() is not None
    protocols = [name for name in groups if name.startswith("maite.protocols.")]
    assert len(protocols) == 4
    assert groups["smqtk_plugins"] == {"blemish.integrations.nrtk": "blemish.integrations.nrtk"}
