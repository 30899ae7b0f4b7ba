"""Small models of transformers with random weights, saved as anyone saves theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from blemish.models.base import Classifier
from foreign import foreign, let_torchvision_be_imported

NAMES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu")


def processor(name: str, *, with_torchvision: bool = False, **settings: Any) -> Any:
    """An image processor by the name it has in files, that works with Pillow or with torchvision.

    Version 5 of transformers has a class for each; before it, those for torchvision were called fast.
    """
    transformers = foreign("transformers")
    if int(transformers.__version__.split(".")[0]) >= 5:
        return getattr(transformers, name if with_torchvision else f"{name}Pil")(**settings)
    return getattr(transformers, f"{name}Fast" if with_torchvision else name)(**settings)


def in_a_worker(reopen: Callable[[torch.device], Classifier], device: torch.device) -> Classifier:
    """Open a model in a process that the stand-ins for torchvision's operators have not reached yet."""
    let_torchvision_be_imported()
    return reopen(device)


def save_quietly(made: Any, folder: Path) -> None:
    logging = foreign("transformers").utils.logging
    logging.disable_progress_bar()
    made.save_pretrained(folder)


def save_resnet(folder: Path, *, names: tuple[str, ...] = NAMES, seed: int = 0, **more: Any) -> Any:
    """A residual network of a few thousand parameters for pictures of 32×32, with ConvNeXt's processor as usual."""
    transformers = foreign("transformers")
    torch.manual_seed(seed)
    config = transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16],
        depths=[1, 1],
        layer_type="basic",
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        **more,
    )
    network = transformers.ResNetForImageClassification(config).eval()
    save_quietly(network, folder)
    save_quietly(processor("ConvNextImageProcessor", size={"shortest_edge": 32}), folder)
    return network
