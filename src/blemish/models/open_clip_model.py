"""``open_clip:MODEL/WEIGHTS``: zero-shot classifiers of open_clip, with its tokenisers and preprocessing."""

from __future__ import annotations

import contextlib
import difflib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, Preprocessing
from blemish.models.by_name import fetched, import_library
from blemish.models.card import count_parameters, training_card
from blemish.models.prompts import Prompts
from blemish.models.resizing import Interpolation, Resizing
from blemish.models.torch_module import load_weights
from blemish.models.zero_shot import Towers, learnt_number, zero_shot_classifier

_QUICK = "-quickgelu"

# Models whose features of pictures are the output of their part for pictures.
_PLAIN = ("CLIP", "CustomTextCLIP")


def load_open_clip(
    name: str, *, weights: Path | None, device: torch.device, prompts: Prompts, allow_code: bool = False
) -> Classifier:
    """``open_clip:MODEL/WEIGHTS``, such as ``ViT-B-16/laion2b_s34b_b88k``, or a model with the weights of a file."""
    library = import_library("open_clip")
    model, _, tag = name.partition("/")
    _check_names(library, model, tag if weights is None else None)
    network = _network(library, model, tag, weights)
    preprocessing, assumed = open_clip_preprocessing(getattr(network.visual, "preprocess_cfg", None) or {})
    with _quiet():
        tokenizer = fetched(
            f"open_clip:{name}",
            lambda: library.get_tokenizer(model),
            what="tokeniser",
            instead="open the model once where there is one, and copy the cache of the hub",
        )
    towers = Towers(
        network=network,
        tokens=lambda texts: tokenizer(list(texts)),
        encode_text=network.encode_text,
        pictures=network.visual if type(network).__name__ in _PLAIN else _Pictures(network),
        scale=learnt_number(network, "logit_scale", logarithm=True),
        bias=learnt_number(network, "logit_bias"),
    )
    card = training_card(
        [tag] if weights is None else [],
        "the name of its weights",
        parameters=count_parameters(network),
        input_size=preprocessing.size,
        source=f"open_clip:{name}",
    )
    classifier = zero_shot_classifier(
        towers, prompts, name=name, kind="open_clip", preprocessing=preprocessing, card=card, device=device
    )
    return replace(classifier, assumed=assumed)


class _Pictures(nn.Module):
    """Features of pictures by a model that makes more of them than its part for pictures does."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, values: Tensor) -> Tensor:
        return self.network.encode_image(values)  # type: ignore[operator, no-any-return]


def _check_names(library: Any, model: str, tag: str | None) -> None:
    """Refuse names that open_clip does not know, and weights with an activation that is not theirs."""
    settings = library.get_model_config(model)
    if settings is None:
        near = difflib.get_close_matches(model, library.list_models(), n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "see open_clip.list_models()"
        raise InputError(f"open_clip knows no model {model!r}; {hint}")
    if tag is None:
        return
    tags = library.list_pretrained_tags_by_model(model)
    if not library.is_pretrained_cfg(model, tag):
        expected = ", ".join(tags) if tags else "none; give a file of weights (--weights FILE)"
        raise InputError(
            f"open_clip:{model} has no weights {tag!r}; expected open_clip:{model}/WEIGHTS with {expected}"
        )
    quick = bool(settings.get("quick_gelu", False))
    if bool(library.get_pretrained_cfg(model, tag).get("quick_gelu", False)) != quick:
        other = model.removesuffix(_QUICK) if quick else f"{model}{_QUICK}"
        raise InputError(
            f"open_clip:{model}/{tag}: these weights were trained with another activation, which would cost accuracy "
            f"without an error; expected open_clip:{other}/{tag}"
        )


def _network(library: Any, model: str, tag: str, weights: Path | None) -> Any:
    def create(**more: Any) -> Any:
        with _quiet():
            return library.create_model(model, precision="fp32", device="cpu", **more)

    if weights is None:
        return fetched(f"open_clip:{model}/{tag}", lambda: create(pretrained=tag, require_pretrained=True))
    return load_weights(create(load_weights=False, pretrained_text=False), weights)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Its warnings are about settings that were checked here; its log would set up that of the whole program."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeHandler(silent)


def open_clip_preprocessing(settings: Mapping[str, Any]) -> tuple[Preprocessing, str | None]:
    """What open_clip does to pictures, and a remark on what is done otherwise here."""
    size = settings["size"]
    height, width = (int(side) for side in (size if isinstance(size, Sequence) else (size, size)))
    mode, name = settings.get("resize_mode", "shortest"), settings.get("interpolation", "bicubic")
    if name not in get_args(Interpolation):
        raise InputError(f"a filter {name!r} for resizing; expected {', '.join(get_args(Interpolation))}")
    to = height if mode == "shortest" and height == width else None
    mean, std = (tuple(float(value) for value in settings[key]) for key in ("mean", "std"))
    remark = None
    if mode not in ("shortest", "squash") or (mode == "shortest" and height != width):
        remark = (
            "pictures of another shape than its input are pressed into it here; open_clip cuts them, or adds borders"
        )
    resizing = Resizing(cast(Interpolation, name), to)
    return Preprocessing(size=(height, width), mean=mean, std=std, resizing=resizing), remark
