"""What transformers has saved in a folder: settings, image processor, network; read without code from the folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from blemish.core.errors import BlemishError, InputError, first_line
from blemish.core.printable import first_few
from blemish.models.by_name import import_library
from blemish.models.hub import Snapshot
from blemish.models.torch_module import load_weights

_SHOWN = 3


def read_config(saved: Snapshot) -> Any:
    """Its settings."""
    transformers = import_library("transformers")
    with explained(saved, "its settings cannot be read"):
        return transformers.AutoConfig.from_pretrained(saved.folder, trust_remote_code=False)


def read_processor(saved: Snapshot) -> Any:
    """The processor that works with Pillow, which needs no torchvision; its resizing is the one we repeat exactly."""
    transformers = import_library("transformers")
    kind = {"backend": "pil"} if int(transformers.__version__.split(".")[0]) >= 5 else {"use_fast": False}
    with explained(saved, "its image processor cannot be read"):
        return transformers.AutoImageProcessor.from_pretrained(saved.folder, trust_remote_code=False, **kind)


def read_network(saved: Snapshot, config: Any, auto_class: str, weights: Path | None) -> nn.Module:
    """The network by one of the automatic classes, with its own weights or those of a file; none are made up."""
    transformers = import_library("transformers")
    auto = getattr(transformers, auto_class)
    if weights is not None:
        with explained(saved, "it cannot be made"):
            empty: nn.Module = auto.from_config(config, trust_remote_code=False).float()
        return load_weights(empty, weights)
    with explained(saved, "its weights cannot be read"), _without_progress(transformers):
        network, loaded = auto.from_pretrained(
            saved.folder,
            config=config,
            trust_remote_code=False,
            use_safetensors=not saved.pickled,
            output_loading_info=True,
        )
    _check_complete(f"hf:{saved.name}", loaded)
    return network.float()  # type: ignore[no-any-return]


def _check_complete(model: str, loaded: Any) -> None:
    """Refuse weights that transformers made up at random, because the files have none or others."""
    made_up = [str(key) for name in ("missing_keys", "mismatched_keys") for key in loaded.get(name) or ()]
    if made_up:
        raise InputError(
            f"{model}: no weights for {len(made_up)} of its parameters ({first_few(sorted(made_up), _SHOWN)}), which "
            "would be random; expected a model that was trained to tell classes apart"
        )


@contextlib.contextmanager
def explained(saved: Snapshot, what: str) -> Iterator[None]:
    """Errors of transformers as ours; one that asks for code from the model says what that is."""
    try:
        yield
    except BlemishError:
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
