"""Detectors by name: torchvision's, those of Hugging Face, ONNX files, and functions of one's own.

Every one of them answers a uint8 batch with a list of ``{"boxes", "scores", "labels"}``, an entry per image: boxes as
(left, top, right, bottom) in pixels of the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from blemish.core.class_names import read_class_names
from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.by_name import fetched, import_library
from blemish.models.hashing import hash_state
from blemish.models.hf_files import read_config, read_network, read_processor
from blemish.models.hub import snapshot
from blemish.models.onnx_file import load_one_picture
from blemish.models.python_function import load_function
from blemish.models.torch_module import device_named, load_weights

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
    settings = {"name": name or model.name, "classes": said, "reopen": reopen}
    return AnsweringModel(**{f: getattr(model, f) for f in model.__dataclass_fields__} | settings)


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
    called = name or getattr(function, "__name__", None) or type(function).__name__
    return AnsweringModel(called, "function", function, weights, classes, device=device_named(device))


class _Torchvision(nn.Module):
    """Images in a list, in 0 … 1, as torchvision's detectors take them."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Any:
        colour = images if images.shape[1] == 3 else images.expand(-1, 3, -1, -1)
        return self.network([image.to(torch.float32) / 255 for image in colour])


def _torchvision(name: str, weights: Path | None, device: torch.device) -> AnsweringModel:
    models = import_library("torchvision.models")
    base, _, version = name.partition(".")
    known = models.list_models(module=models.detection)
    if base not in known:
        raise InputError(f"torchvision knows no detector {base!r}; expected one of {', '.join(known)}")
    versions = models.get_model_weights(base)
    if version and version not in versions.__members__:
        names = ", ".join(member.name for member in versions)
        raise InputError(f"torchvision:{base} has no weights {version!r}; expected {names}")
    chosen = versions[version] if version else next(iter(versions))
    if weights is None:
        network = fetched(f"torchvision:{name}", lambda: models.get_model(base, weights=chosen))
    else:
        network = load_weights(models.get_model(base, weights=None, weights_backbone=None), weights)
    module = _Torchvision(network).to(device).eval()
    said = [None if label in ("__background__", "N/A") else label for label in chosen.meta["categories"]]
    digest = hash_state(network.state_dict())
    return AnsweringModel(name, "torchvision", module, digest, said, device=device, module=module)


def _hugging_face(name: str, weights: Path | None, device: torch.device, *, allow_code: bool) -> AnsweringModel:
    import_library("transformers")
    saved = snapshot(name, weights=weights is None, allow_code=allow_code)
    config = read_config(saved)
    network = read_network(saved, config, "AutoModelForObjectDetection", weights)
    processor = read_processor(saved)
    network = network.to(device).eval()

    def forward(images: Tensor) -> Any:
        pictures = [image.permute(1, 2, 0).expand(-1, -1, 3).cpu().numpy() for image in images]
        inputs = processor(images=pictures, return_tensors="pt", input_data_format="channels_last").to(device)
        sizes = [tuple(picture.shape[:2]) for picture in pictures]
        # All boxes: AP is over all levels of confidence.
        return processor.post_process_object_detection(network(**inputs), threshold=0.0, target_sizes=sizes)

    labels: dict[int, str] = config.id2label
    named = [labels.get(number) for number in range(max(labels) + 1)]
    said = [None if label == "N/A" else label for label in named]
    return AnsweringModel(saved.name, "transformers", forward, hash_state(network.state_dict()), said, device=device)


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

    return AnsweringModel(
        path.stem,
        "onnx",
        lambda images: [one(image) for image in images],
        model.weights,
        device=device,
        assumed=model.assumed,
    )
