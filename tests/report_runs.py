"""Runs with pictures, for the tests of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blemish.corruptions.catalog import catalog
from blemish.data.demo import demo_picture
from blemish.evaluation.runs import Run
from synthetic_runs import severities, write_run

CONDITIONS: dict[str, Any] = {
    "clean": 0.8,
    **{
        f"{name}@{level}": 0.8 - 0.1 * level for name in ("gaussian_noise", "fog", "frost_drawn") for level in (1, 3, 5)
    },
}
HOSTILE = '</script><img src=x onerror="document.title=1">%{x}$series-0 & ‮cat'

SIZES = {"preset": "imagenet", "resize": 256, "crop": 224}


def pictured_run(
    folder: Path,
    name: str,
    conditions: dict[str, Any] | None = None,
    *,
    side: int = 32,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    protocol: dict[str, Any] | None = None,
    **more: Any,
) -> Run:
    """A run of 30 images, with pictures of the first six; protocol and versions are those of this library."""
    used = conditions if conditions is not None else CONDITIONS
    corruptions = {text.split("@")[0] for text in used if "@" in text and not text.startswith("p:")}
    versions = {item: catalog[item].version for item in sorted(corruptions)}
    own = list(names) if names is not None else [f"c{i % 10}/{i:06d}.png" for i in range(30)]
    settings = {"corruptions": versions, "preset": "cifar", **(protocol or {})}
    run = write_run(folder, name, used, images=len(own), names=own, protocol=settings, **more)
    picture = np.asarray(demo_picture(side).convert("RGB"))
    arrays: dict[str, Any] = {
        "names": np.array(own[:6]),
        "images": np.stack([np.roll(picture, 3 * i, axis=1) for i in range(6)]),
        "labels": np.arange(6) % 10,
        "ids": np.arange(6),
    }
    if classes is not None:
        arrays["classes"] = np.array(list(classes))
    np.savez(run.folder / "pictures.npz", **arrays)
    return run


def imagenet_c(folder: Path, name: str, clean: float, worst: float, **more: Any) -> Run:
    """A run of ImageNet-C in full, as it is published."""
    settings: dict[str, Any] = {
        "protocol": {**SIZES, "storage": "jpeg85", "frost": "reference"},
        "benchmark": {"name": "imagenet-c", "title": "ImageNet-C", "metric": "mce", "baseline": "alexnet"},
        "model": {"weights": name},
        "classes": 1000,
        "images": 200,
    }
    return write_run(folder / "c", name, severities(clean=clean, worst=worst), **{**settings, **more})
