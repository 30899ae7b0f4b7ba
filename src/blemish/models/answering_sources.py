"""Where models for other tasks than classes of images come from: torchvision, Hugging Face and ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.by_name import fetched, import_library
from blemish.models.hashing import hash_state
from blemish.models.hf_files import read_config, read_network, read_processor
from blemish.models.hub import snapshot
from blemish.models.onnx_file import OnePicture
from blemish.models.torch_module import device_named, load_weights


def from_function(
    function: Callable[[Tensor], Any],
    *,
    name: str | None,
    weights: str,
    device: str | torch.device | None,
    classes: Sequence[str | None] | None = None,
) -> AnsweringModel:
    """A function, called by its own name where it is given none."""
    called = name or getattr(function, "__name__", None) or type(function).__name__
    return AnsweringModel(called, "function", function, weights, classes, device=device_named(device))


def torchvision_network(
    name: str, what: str, family: str, *, weights: Path | None, heads: Mapping[str, Any]
) -> tuple[nn.Module, Any]:
    """A network of a family of torchvision's (``detection``), and the weights that it stands for.

    ``heads`` are the settings of a network whose ``weights`` are read from a file.
    """
    models = import_library("torchvision.models")
    base, _, version = name.partition(".")
    known = models.list_models(module=getattr(models, family))
    if base not in known:
        raise InputError(f"torchvision knows no {what} {base!r}; expected one of {', '.join(known)}")
    versions = models.get_model_weights(base)
    if version and version not in versions.__members__:
        raise InputError(f"torchvision:{base} has no weights {version!r}; expected {', '.join(versions.__members__)}")
    chosen = versions[version] if version else next(iter(versions))
    if weights is None:
        return fetched(f"torchvision:{name}", lambda: models.get_model(base, weights=chosen)), chosen
    return load_weights(models.get_model(base, weights=None, weights_backbone=None, **heads), weights), chosen


def from_hugging_face(
    name: str,
    auto_class: str,
    read: Callable[[Any, Any, list[tuple[int, ...]]], Any],
    *,
    weights: Path | None,
    device: torch.device,
    allow_code: bool,
    classes: Callable[[Any], Sequence[str | None]] | None = None,
) -> AnsweringModel:
    """A network of transformers with the processor that is saved beside it.

    ``read`` makes answers of the processor, what the network gave and the heights and widths of the images; ``classes``
    makes names of classes of the network's configuration.
    """
    import_library("transformers")
    saved = snapshot(name, weights=weights is None, allow_code=allow_code)
    config = read_config(saved)
    network = read_network(saved, config, auto_class, weights).to(device).eval()
    processor = read_processor(saved)

    def forward(images: Tensor) -> Any:
        pictures = [image.permute(1, 2, 0).expand(-1, -1, 3).cpu().numpy() for image in images]
        inputs = processor(images=pictures, return_tensors="pt", input_data_format="channels_last").to(device)
        return read(processor, network(**inputs), [picture.shape[:2] for picture in pictures])

    digest, said = hash_state(network.state_dict()), None if classes is None else classes(config)
    return AnsweringModel(saved.name, "transformers", forward, digest, said, device=device)


def from_onnx(path: Path, model: OnePicture, forward: Callable[[Tensor], Any], device: torch.device) -> AnsweringModel:
    """An ONNX file that is asked about one image at a time by ``forward``."""
    return AnsweringModel(path.stem, "onnx", forward, model.weights, device=device, assumed=model.assumed)
