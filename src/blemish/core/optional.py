"""Libraries that not everybody has."""

from __future__ import annotations

import importlib
from typing import Any

from blemish.core.errors import InputError

_DISTRIBUTIONS = {"sklearn": "scikit-learn", "open_clip": "open_clip_torch"}
_EXTRAS = {"onnxruntime": "onnx", "ray": "ray", "fsspec": "remote"}
_OWN = (
    "polars",
    "pandas",
    "ai_edge_litert",
    "albumentations",
    "datasets",
    "fiftyone",
    "huggingface_hub",
    "keras",
    "lightning",
    "mlflow",
    "mmengine",
    "nrtk",
    "open_clip",
    "safetensors",
    "timm",
    "torchmetrics",
    "torchvision",
    "transformers",
    "wandb",
)


def optional_import(module: str) -> Any:
    """A module of an optional library; where it is missing, an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != library:
            raise
        name = _DISTRIBUTIONS.get(library, library.replace("_", "-"))
        package = name if library in _OWN else f"'blemish[{_EXTRAS.get(library, 'full')}]'"
        raise InputError(f"this needs {name}; install it with: pip install {package}") from error
