"""Pretrained models by name, from timm and torchvision where they are installed, with their own preprocessing."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from blemish.core.errors import InputError, StorageError, first_line
from blemish.core.optional import optional_import
from blemish.models.base import Classifier
from blemish.models.card import Claim, training_card
from blemish.models.code import needs_permission
from blemish.models.own_preprocessing import as_preprocessing, from_settings
from blemish.models.torch_module import from_module, load_weights

# What timm fetches from a hub or a folder, for anyone who can write there; many of its versions unpickle the weights.
_TIMM_SOURCES = ("hf_hub:", "hf-hub:", "local-dir:")


def load_timm(name: str, *, weights: Path | None, device: torch.device, allow_code: bool = False) -> Classifier:
    """``timm:NAME``, pretrained, or with the weights of a file; size, mean and standard deviation as timm has them."""
    elsewhere = name.lower().startswith(_TIMM_SOURCES)
    if elsewhere and not allow_code:
        why = "weights and settings that anyone can have put there, which timm may unpickle"
        raise needs_permission(f"timm:{name}", why, "give the weights of a model that timm knows (--weights FILE)")
    timm = import_library("timm")
    data = import_library("timm.data")
    if not elsewhere and not timm.is_model(name):
        raise InputError(f"timm knows no model {name!r}; {_near(name.split('.')[0], timm.list_models())}")
    if weights is None:
        module = fetched(f"timm:{name}", lambda: timm.create_model(name, pretrained=True))
    else:
        module = load_weights(timm.create_model(name, pretrained=False), weights)
    preprocessing = from_settings(data.resolve_model_data_config(module))
    model = from_module(module, name=name, preprocessing=preprocessing, device=device, channels_last=True)
    settings = getattr(module, "pretrained_cfg", None) or {}
    tag = "" if weights is not None else str(settings.get("tag") or name.partition(".")[2])
    return _with_card(model, f"timm:{name}", tag)


def load_torchvision(name: str, *, weights: Path | None, device: torch.device, allow_code: bool = False) -> Classifier:
    """``torchvision:NAME``, or ``torchvision:NAME.WEIGHTS`` such as ``resnet50.IMAGENET1K_V1``."""
    models = import_library("torchvision.models")
    base, _, version = name.partition(".")
    known = models.list_models(module=models)
    if base not in known:
        raise InputError(f"torchvision knows no classifier {base!r}; {_near(base, known)}")
    versions = models.get_model_weights(base)
    try:
        chosen = versions[version] if version else versions.DEFAULT
    except KeyError:
        names = ", ".join(member.name for member in versions)
        raise InputError(f"torchvision:{base} has no weights {version!r}; expected {names}") from None
    if weights is None:
        module = fetched(f"torchvision:{name}", lambda: models.get_model(base, weights=chosen))
    else:
        module = load_weights(models.get_model(base, weights=None), weights)
    preprocessing = as_preprocessing(chosen)
    full_name = name if version or weights is not None else f"{base}.{chosen.name}"
    model = from_module(module, name=full_name, preprocessing=preprocessing, device=device)
    if weights is not None:
        return _with_card(model, f"torchvision:{full_name}", "")
    return _with_card(model, f"torchvision:{full_name}", chosen.name, claims=_claims_of(chosen))


def _claims_of(weights: Any) -> tuple[Claim, ...]:
    """The accuracies that torchvision states of weights, in percent."""
    try:
        stated = dict(weights.meta["_metrics"])
        return tuple(Claim(str(data), float(of["acc@1"]) / 100, "torchvision's weights") for data, of in stated.items())
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def _with_card(model: Classifier, source: str, tag: str, *, claims: tuple[Claim, ...] = ()) -> Classifier:
    """What the name of a library's weights says of their training."""
    said = training_card([tag], "the name of its weights")
    own = model.card or said
    card = replace(said, parameters=own.parameters, input_size=own.input_size, source=source, claims=claims)
    return replace(model, card=card)


LIBRARIES = {"timm": load_timm, "torchvision": load_torchvision}


def import_library(module: str) -> Any:
    """A module of a library that models come from; one that does not go with the installed torch is explained."""
    try:
        return optional_import(module)
    except InputError:
        raise
    except Exception as error:  # a build for another torch fails in any way it likes
        library = module.split(".")[0]
        raise InputError(
            f"{library} is installed but cannot be imported ({first_line(error)}); "
            "it has to be built for the torch that is installed"
        ) from error


_INSTEAD = "give a file of weights (--weights FILE)"


def fetched(model: str, create: Callable[[], Any], *, what: str = "pretrained weights", instead: str = _INSTEAD) -> Any:
    """What a library downloads; an error says what could not be had, and what to do without a network."""
    try:
        return create()
    except Exception as error:  # no network, no such file, no weights: each library has its own errors
        raise StorageError(
            f"{model}: its {what} could not be had ({type(error).__name__}: {first_line(error)}). "
            f"Such files are downloaded once; without a network, {instead}"
        ) from error


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(near)}?" if near else f"it knows {len(names)} others"
