"""Detectors by name: torchvision's, those of Hugging Face, ONNX files, and functions of one's own.

Every one of them answers a uint8 batch with a list of ``{"boxes", "scores", "labels"}``, an entry per image: boxes as
(left, top, right, bottom) in pixels of the image.
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

from blemish.core.class_names import read_class_names
from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.answering_sources import from_function, from_hugging_face, from_onnx, torchvision_network
from blemish.models.hashing import hash_state
from blemish.models.onnx_file import load_one_picture
from blemish.models.python_function import load_function
from blemish.models.torch_module import device_named

DETECTORS = "torchvision:NAME, hf:NAME, python:PACKAGE.MODULE:FUNCTION, a file (.onnx), or demo:colours"
_NAMES = ("boxes", "scores", "labels")


def open_detector(
    text: str,
    *,
    name: str | None = None,
    weights: Path | None = None,
    device: str | torch.device | None = None,
    allow_code: bool = False,
    outputs: Sequence[str] = _NAMES,
    class_names: str | Sequence[str] | None = None,
) -> AnsweringModel:
    """A detector that is named by a text; ``outputs`` are the names of an ONNX model's boxes, scores and labels.

    ``class_names`` are those of its labels, from 0, where it does not know them: a file, or the names themselves.
    """
    if len(outputs) != len(_NAMES):
        raise InputError(f"outputs {', '.join(outputs)}; expected three, of boxes, scores and labels")
    target, kind, rest = device_named(device), *_parted(text)
    if kind == "torchvision":
        model = _torchvision(rest, weights, target)
    elif kind == "hf":
        model = _hugging_face(rest, weights, target, allow_code=allow_code)
    elif kind == "python":
        function, digest = load_function(rest, text)
        model = from_detector(function, name=rest.rpartition(":")[2], weights=digest, device=target)
    elif kind == "demo" and rest == "colours":
        from blemish.models.colour_detector import colour_detector

        model = colour_detector()
    elif text.lower().endswith(".onnx"):
        model = _onnx(Path(text), outputs, target)
    else:
        raise InputError(f"unknown detector {text!r}; expected {DETECTORS}")
    if weights is not None and kind not in ("torchvision", "hf"):
        raise InputError(f"weights {weights} for {text}; expected a torchvision: or hf: detector that takes them")
    said = model.classes
    if class_names is not None:
        if said is not None:
            raise InputError(f"class names for {text}, which brings its own; expected none")
        said = class_names = read_class_names(class_names)
    own = {"name": name, "weights": weights, "allow_code": allow_code, "outputs": outputs, "class_names": class_names}
    reopen = None if kind == "python" else partial(_reopened, text, own)
    return replace(model, name=name or model.name, classes=said, reopen=reopen)


def _reopened(text: str, settings: dict[str, Any], device: torch.device) -> AnsweringModel:
    return open_detector(text, device=device, **settings)


def _parted(text: str) -> tuple[str, str]:
    kind, colon, rest = text.partition(":")
    return (kind, rest) if colon and rest else ("", text)


def from_detector(
    function: Callable[[Tensor], Any],
    *,
    name: str | None = None,
    classes: Sequence[str | None] | None = None,
    weights: str = "",
    device: str | torch.device | None = None,
) -> AnsweringModel:
    """A function from uint8 (B, C, H, W) to a list of ``{"boxes", "scores", "labels"}`` as a detector.

    Labels are the numbers of categories in the annotations, or places in ``classes``, the names of categories.
    """
    return from_function(function, name=name, weights=weights, device=device, classes=classes)


class _Torchvision(nn.Module):
    """Images in a list, in 0 … 1, as torchvision's detectors take them."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Any:
        colour = images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1)
        return self.network([image.to(torch.float32) / 255 for image in colour])


def _torchvision(name: str, weights: Path | None, device: torch.device) -> AnsweringModel:
    network, chosen = torchvision_network(name, "detector", "detection", weights=weights, heads={})
    module = _Torchvision(network).to(device).eval()
    said = [None if label in ("__background__", "N/A") else label for label in chosen.meta["categories"]]
    digest = hash_state(network.state_dict())
    return AnsweringModel(name, "torchvision", module, digest, said, device=device, module=module)


def _hugging_face(name: str, weights: Path | None, device: torch.device, *, allow_code: bool) -> AnsweringModel:
    return from_hugging_face(
        name,
        "AutoModelForObjectDetection",
        _boxes,
        classes=_labels,
        weights=weights,
        device=device,
        allow_code=allow_code,
    )


def _boxes(processor: Any, answer: Any, sizes: list[tuple[int, ...]]) -> Any:
    """All boxes: AP is over all levels of confidence."""
    return processor.post_process_object_detection(answer, threshold=0.0, target_sizes=sizes)


def _labels(config: Any) -> list[str | None]:
    labels: dict[int, str] = config.id2label
    named = [labels.get(number) for number in range(max(labels) + 1)]
    return [None if label == "N/A" else label for label in named]


def _onnx(path: Path, outputs: Sequence[str], device: torch.device) -> AnsweringModel:
    """One image at a time, brought to the model's size where it has one; boxes are brought back."""
    model = load_one_picture(path, device=device)
    wanted, size = model.named(path, outputs, "name those of boxes, scores and labels"), model.preprocessing.size

    def one(image: Tensor) -> dict[str, Tensor]:
        boxes, scores, labels = model.ask(image, wanted)
        height, width = image.shape[-2:]
        scale = [1.0, 1.0] if size is None else [width / size[1], height / size[0]]
        corners = torch.from_numpy(boxes.reshape(-1, 4).astype(np.float32)) * torch.tensor([*scale, *scale])
        flat = [torch.from_numpy(np.ascontiguousarray(value.reshape(-1))) for value in (scores, labels)]
        return {"boxes": corners, "scores": flat[0], "labels": flat[1]}

    return from_onnx(path, model, lambda images: [one(image) for image in images], device)
