"""Models that tell the class of every pixel: torchvision's, those of Hugging Face, and functions of one's own.

Every one of them answers a uint8 batch with class scores (B, classes, H, W), of any height and width, or with the
numbers of classes themselves, (B, H, W).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.answering_sources import from_function, from_hugging_face, from_onnx, torchvision_network
from blemish.models.base import Preprocessing
from blemish.models.colour_detector import colour_segmenter
from blemish.models.hashing import hash_state
from blemish.models.onnx_file import load_one_picture
from blemish.models.python_function import load_function
from blemish.models.torch_module import device_named

SEGMENTERS = "torchvision:NAME, hf:NAME, python:PACKAGE.MODULE:FUNCTION, a file (.onnx), or demo:colours"


def open_segmenter(
    text: str,
    *,
    name: str | None = None,
    weights: Path | None = None,
    device: str | torch.device | None = None,
    allow_code: bool = False,
    outputs: Sequence[str] = (),
    class_names: str | None = None,
) -> AnsweringModel:
    """A model of pixels that is named by a text; ``outputs`` names an ONNX output, by default the first."""
    if class_names is not None:
        raise InputError(f"class names for {text}; expected none: its classes are told by the numbers of the maps")
    target = device_named(device)
    kind, _, rest = text.partition(":")
    if kind == "torchvision":
        model = _torchvision(rest, weights, target)
    elif kind == "hf":
        model = from_hugging_face(
            rest, "AutoModelForSemanticSegmentation", _scores, weights=weights, device=target, allow_code=allow_code
        )
    elif kind == "python":
        function, digest = load_function(rest, text)
        model = from_segmenter(function, name=rest.rpartition(":")[2], weights=digest, device=target)
    elif text == "demo:colours":
        model = colour_segmenter()
    elif text.lower().endswith(".onnx"):
        model = _onnx(Path(text), outputs, target)
    else:
        raise InputError(f"unknown model of pixels {text!r}; expected {SEGMENTERS}")
    if weights is not None and kind not in ("torchvision", "hf"):
        raise InputError(f"weights {weights} for {text}; expected a torchvision: or hf: model that takes them")
    if outputs and model.kind != "onnx":
        raise InputError(f"outputs {', '.join(outputs)} for {text}; expected none, or an ONNX file")
    again = partial(_reopened, text, {"name": name, "weights": weights, "allow_code": allow_code, "outputs": outputs})
    return replace(model, name=name or model.name, reopen=None if kind == "python" else again)


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
    return from_function(function, name=name, weights=weights, device=device)


class _Torchvision(nn.Module):
    """Normalised images at their own size, as torchvision's models of pixels take them."""

    def __init__(self, network: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.network, self.preprocessing = network, preprocessing

    def forward(self, images: Tensor) -> Any:
        return self.network(self.preprocessing(images))["out"]


def _torchvision(name: str, weights: Path | None, device: torch.device) -> AnsweringModel:
    # With the second head that published weights have; LR-ASPP has none.
    heads = {} if name.startswith("lraspp") else {"aux_loss": True}
    network, chosen = torchvision_network(name, "model of pixels", "segmentation", weights=weights, heads=heads)
    stated = chosen.transforms()
    module = _Torchvision(network, Preprocessing(mean=tuple(stated.mean), std=tuple(stated.std))).to(device).eval()
    said, digest = tuple(chosen.meta["categories"]), hash_state(network.state_dict())
    return AnsweringModel(name, "torchvision", module, digest, said, device=device, module=module)


def _scores(processor: Any, answer: Any, sizes: list[tuple[int, ...]]) -> Any:
    return answer.logits


def _onnx(path: Path, outputs: Sequence[str], device: torch.device) -> AnsweringModel:
    """One image at a time; classes of another size are brought to that of the image, as the task does with scores."""
    model = load_one_picture(path, device=device)
    if len(outputs) > 1:
        raise InputError(f"outputs {', '.join(outputs)}; expected one, of class scores or classes")
    if model.preprocessing.layout != "nchw":
        raise InputError(f"{path}: channels last; expected a model of (1, C, H, W) that gives (1, classes, h, w)")
    wanted = model.named(path, outputs or model.given[:1], "name that of class scores or classes")

    def one(image: Tensor) -> Tensor:
        (value,) = model.ask(image, wanted)
        answer = torch.from_numpy(np.ascontiguousarray(value))
        if answer.is_floating_point():
            return answer.to(torch.float32)
        classes = answer[:, 0] if answer.ndim == 4 and answer.shape[1] == 1 else answer
        if classes.ndim != 3 or classes.shape[1:] == image.shape[-2:]:
            return classes.to(torch.int64)
        # Numbers of classes are no levels: each pixel takes the nearest one.
        return functional.interpolate(classes[None].double(), size=image.shape[-2:], mode="nearest-exact")[0].long()

    return from_onnx(path, model, lambda images: torch.cat([one(image) for image in images]), device)
