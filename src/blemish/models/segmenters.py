"""Models that tell the class of every pixel: torchvision's, those of Hugging Face, and functions of one's own.

Every one of them answers a uint8 batch with class scores (B, classes, H, W), of any height and width, or with the
numbers of classes themselves, (B, H, W).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.base import Preprocessing
from blemish.models.by_name import fetched, import_library
from blemish.models.colour_detector import colour_segmenter
from blemish.models.hashing import hash_state
from blemish.models.hf_files import read_config, read_network, read_processor
from blemish.models.hub import snapshot
from blemish.models.onnx_file import load_one_picture
from blemish.models.python_function import load_function
from blemish.models.torch_module import device_named, load_weights

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
        model = _hugging_face(rest, weights, target, allow_code=allow_code)
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

    return AnsweringModel(
        path.stem,
        "onnx",
        lambda images: torch.cat([one(image) for image in images]),
        model.weights,
        device=device,
        assumed=model.assumed,
    )
