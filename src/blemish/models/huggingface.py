"""``hf:ORG/NAME`` and folders that transformers has saved: classifiers with their own image processors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, first_line
from blemish.core.printable import first_few
from blemish.models.base import Classifier
from blemish.models.by_name import import_library
from blemish.models.card import count_parameters, training_card
from blemish.models.hf_processor import processor_preprocessing
from blemish.models.hub import Snapshot, snapshot
from blemish.models.torch_module import from_module, load_weights

_SHOWN = 3


def load_hf(name: str, *, weights: Path | None, device: torch.device, allow_code: bool = False) -> Classifier:
    """``hf:NAME``, a folder or a model of the hub, with its own weights or those of a file; code in it is never run."""
    import_library("transformers")
    saved = snapshot(name, weights=weights is None, allow_code=allow_code)
    config = _config(saved)
    if not any(kind.endswith("ForImageClassification") for kind in config.architectures or ()):
        found = first_few(config.architectures or [config.model_type], _SHOWN)
        raise InputError(f"hf:{name}: a {found}, which tells no classes apart; expected a …ForImageClassification")
    network = _network(saved, config, weights)
    preprocessing = processor_preprocessing(f"hf:{name}", _processor(saved))
    model = from_module(Scores(network), name=saved.name, preprocessing=preprocessing, device=device)
    card = training_card(
        saved.datasets(),
        "its README",
        parameters=count_parameters(network),
        input_size=preprocessing.size,
        source=f"hf:{saved.name}",
        revision=saved.revision,
    )
    return replace(model, kind="transformers", classes=_class_names(config), card=card)


class Scores(nn.Module):
    """The scores of a network of transformers, which gives more than them and takes pictures by a name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, values: Tensor) -> Tensor:
        """Logits (B, classes)."""
        return self.network(pixel_values=values).logits  # type: ignore[no-any-return]


def _config(saved: Snapshot) -> Any:
    transformers = import_library("transformers")
    with _explained(saved, "its settings cannot be read"):
        return transformers.AutoConfig.from_pretrained(saved.folder, trust_remote_code=False)


def _processor(saved: Snapshot) -> Any:
    """The processor that works with Pillow, which needs no torchvision; its resizing is the one we repeat exactly."""
    transformers = import_library("transformers")
    kind = {"backend": "pil"} if int(transformers.__version__.split(".")[0]) >= 5 else {"use_fast": False}
    with _explained(saved, "its image processor cannot be read"):
        return transformers.AutoImageProcessor.from_pretrained(saved.folder, trust_remote_code=False, **kind)


def _network(saved: Snapshot, config: Any, weights: Path | None) -> nn.Module:
    transformers = import_library("transformers")
    auto = transformers.AutoModelForImageClassification
    if weights is not None:
        with _explained(saved, "it cannot be made"):
            empty: nn.Module = auto.from_config(config, trust_remote_code=False).float()
        return load_weights(empty, weights)
    with _explained(saved, "its weights cannot be read"), _without_progress(transformers):
        network, loaded = auto.from_pretrained(
            saved.folder,
            config=config,
            trust_remote_code=False,
            use_safetensors=not saved.pickled,
            output_loading_info=True,
        )
    check_complete(f"hf:{saved.name}", loaded)
    return network.float()  # type: ignore[no-any-return]


def check_complete(model: str, loaded: Any) -> None:
    """Refuse weights that transformers made up at random, because the files have none or others."""
    made_up = [str(key) for name in ("missing_keys", "mismatched_keys") for key in loaded.get(name) or ()]
    if made_up:
        raise InputError(
            f"{model}: no weights for {len(made_up)} of its parameters ({first_few(sorted(made_up), _SHOWN)}), which "
            "would be random; expected a model that was trained to tell classes apart"
        )


def _class_names(config: Any) -> tuple[str, ...] | None:
    """The names of the outputs; none where transformers has numbered them itself."""
    names = dict(getattr(config, "id2label", None) or {})
    listed = [names.get(number) for number in range(len(names))]
    if not listed or any(not isinstance(name, str) or re.fullmatch(r"LABEL_\d+", name) for name in listed):
        return None
    return tuple(str(name) for name in listed)


@contextlib.contextmanager
def _explained(saved: Snapshot, what: str) -> Iterator[None]:
    """Errors of transformers as ours; one that asks for code from the model says what that is."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # of any kind: files of others, and many versions of the library
        if "trust_remote_code" in str(error):
            raise InputError(
                f"hf:{saved.name}: it needs code of its own, which is never run; give a function that makes the model "
                "(python:package.module:function)"
            ) from error
        if isinstance(error, ModuleNotFoundError) and error.__cause__ is not None:  # torchvision for another torch, say
            raise InputError(f"hf:{saved.name}: {what} ({first_line(error)} {first_line(error.__cause__)})") from error
        raise InputError(f"hf:{saved.name}: {what} ({type(error).__name__}: {first_line(error)})") from error


@contextlib.contextmanager
def _without_progress(transformers: Any) -> Iterator[None]:
    """Reading a file is no step that a user waits for; their own setting comes back."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
