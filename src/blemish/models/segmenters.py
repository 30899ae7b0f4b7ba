"""Models that tell the class of every pixel: torchvision's, those of Hugging Face, and functions of one's own.

Every one of them answers a uint8 batch with class scores (B, classes, H, W), of any height and width, or with the
numbers of classes themselves, (B, H, W).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.base import Preprocessing
from blemish.models.by_name import fetched, import_library
from blemish.models.colour_detector import colour_segmenter
from blemish.models.hashing import hash_state
from blemish.models.hf_files import read_config, read_network, read_processor
from blemish.models.hub import snapshot
from blemish.models.python_function import load_function
from blemish.models.torch_module import device_named, load_weights

__all__ = ["SEGMENTERS", "from_segmenter", "open_segmenter"]

SEGMENTERS = "torchvision:NAME, hf:NAME, python:PACKAGE.MODULE:FUNCTION, or demo:colours"


def open_segmenter(
    text: str,
    *,
    name: str | None = None,
    weights: Path | None = None,
    device: str | torch.device | None = None,
    allow_code: bool = False,
) -> AnsweringModel:
    """A model of pixels that is named by a text."""
    target = device_named(device)
    kind, _, rest = text.partition(":")
    if kind == "torchvision":
        model = _torchvision(rest, weights, target)
    elif kind == "hf":
        model = _hugging_face(rest, weights, target, allow_code=allow_code)
    elif kind == "python":
        function, digest = load_function(rest, text)
        model = from_segmenter(function, name=rest.rpartition(":")[2], weights=digest, device=target)
    elif text == "demo:colours":
        model = colour_segmenter()
    else:
        raise InputError(f"unknown model of pixels {text!r}; expected {SEGMENTERS}")
    if weights is not None and kind not in ("torchvision", "hf"):
        raise InputError(f"weights {weights} for {text}; expected a torchvision: or hf: model that takes them")
    again = partial(_reopened, text, {"name": name, "weights": weights, "allow_code": allow_code})
    settings = {"name": name or model.name, "reopen": None if kind == "python" else again}
    return AnsweringModel(**{f: getattr(model, f) for f in model.__dataclass_fields__} | settings)


def _reopened(text: str, settings: dict[str, Any], device: torch.device) -> AnsweringModel:
    return open_segmenter(text, device=device, **settings)


def from_segmenter(
    function: Callable[[Tensor], Any],
    *,
    name: str | None = None,
    weights: str = "",
    device: str | torch.device | None = None,
) -> AnsweringModel:
    """A function from uint8 (B, C, H, W) to class scores (B, classes, h, w), or to classes (B, H, W)."""
    called = name or getattr(function, "__name__", None) or type(function).__name__
    return AnsweringModel(called, "function", function, weights, device=device_named(device))


class _Torchvision(nn.Module):
    """Normalised images at their own size, as torchvision's models of pixels take them."""

    def __init__(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.network, self.preprocessing = network, preprocessing

    def forward(self, images: Tensor) -> Any:
        return self.network(self.preprocessing(images))["out"]


def _torchvision(name: str, weights: Path | None, device: torch.device) -> AnsweringModel:
    models = import_library("torchvision.models")
    base, _, version = name.partition(".")
    known = models.list_models(module=models.segmentation)
    if base not in known:
        raise InputError(f"torchvision knows no model of pixels {base!r}; expected one of {', '.join(known)}")
    versions = models.get_model_weights(base)
    if version and version not in versions.__members__:
        raise InputError(f"torchvision:{base} has no weights {version!r}; expected {', '.join(versions.__members__)}")
    chosen = versions[version] if version else next(iter(versions))
    if weights is None:
        network = fetched(f"torchvision:{name}", lambda: models.get_model(base, weights=chosen))
    else:
        # With the second head that published weights have; LR-ASPP has none.
        heads = {} if base.startswith("lraspp") else {"aux_loss": True}
        network = load_weights(models.get_model(base, weights=None, weights_backbone=None, **heads), weights)
    stated = chosen.transforms()
    module = _Torchvision(network, Preprocessing(mean=tuple(stated.mean), std=tuple(stated.std))).to(device).eval()
    said = tuple(chosen.meta["categories"])
    return AnsweringModel(
        name, "torchvision", module, hash_state(network.state_dict()), said, device=device, module=module
    )


def _hugging_face(name: str, weights: Path | None, device: torch.device, *, allow_code: bool) -> AnsweringModel:
    import_library("transformers")
    saved = snapshot(name, weights=weights is None, allow_code=allow_code)
    network = read_network(saved, read_config(saved), "AutoModelForSemanticSegmentation", weights).to(device).eval()
    processor = read_processor(saved)

    def forward(images: Tensor) -> Any:
        pictures = [image.permute(1, 2, 0).expand(-1, -1, 3).cpu().numpy() for image in images]
        inputs = processor(images=pictures, return_tensors="pt", input_data_format="channels_last").to(device)
        return network(**inputs).logits

    return AnsweringModel(saved.name, "transformers", forward, hash_state(network.state_dict()), device=device)
