"""All methods by name, and how they are made with the settings that their authors give for ImageNet and CIFAR-10."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from torch import Tensor, nn

from blemish.core.errors import InputError, UnknownNameError
from blemish.studies.adaptation.base import Method
from blemish.studies.adaptation.entries import ENTRIES
from blemish.studies.adaptation.entry import Cost, MethodEntry

Settings = Literal["imagenet", "cifar"]

METHODS: dict[str, MethodEntry] = {entry.name: entry for entry in ENTRIES}


def method_entry(name: str) -> MethodEntry:
    """What is known of the method of this name; options may follow it, as in ``rotta:sure=0:follow=0``."""
    plain, *texts = name.split(":")
    if plain not in METHODS:
        raise UnknownNameError(f"unknown adaptation method {plain!r}; expected one of {', '.join(METHODS)}")
    entry = METHODS[plain]
    if not texts:
        return entry
    options = dict(_option(entry, text) for text in texts)
    if len(options) < len(texts):
        raise InputError(f"method {name!r}: an option is given twice; expected each once")
    return replace(entry, name=name, imagenet={**entry.imagenet, **options}, cifar={**entry.cifar, **options})


_SIMPLE = (bool, int, float, str)
_GIVEN = ("clean", "sample", "seed", "optimiser")
"""What whoever runs methods gives to them, or what is no plain value."""


def _option(entry: MethodEntry, text: str) -> tuple[str, Any]:
    """An option and its value, which has the type of the method's default; it may be nothing where that is."""
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(entry.make).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and key not in _GIVEN
        if parameter.default is None or isinstance(parameter.default, _SIMPLE)
    }
    key, equals, value = text.partition("=")
    if key not in known or not equals:
        raise InputError(f"method {entry.name}: option {text!r}; expected OPTION=VALUE with one of {', '.join(known)}")
    default = {**known, **entry.imagenet, **entry.cifar}[key]
    try:
        return key, _value(value, default)
    except ValueError:
        kind = "a number" if default is None else type(default).__name__
        raise InputError(f"method {entry.name}: option {text!r}; expected {kind}, as in {key}={default}") from None


def _value(text: str, default: Any) -> Any:
    """A text as what a default is."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    value = int(text) if isinstance(default, int) else float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def settings_for(name: str, settings: Settings = "imagenet") -> dict[str, Any]:
    """What a method is given for this kind of data; nothing where its defaults are meant."""
    return options_of(method_entry(name), settings)


def options_of(entry: MethodEntry, settings: Settings = "imagenet") -> dict[str, Any]:
    """The same for a method that need not be one of the list."""
    if settings not in get_args(Settings):
        raise InputError(f"settings {settings!r}; expected one of {', '.join(get_args(Settings))}")
    return dict(entry.cifar if settings == "cifar" else entry.imagenet)


def cost_of(name: str, settings: Settings = "imagenet", **changes: Any) -> Cost | None:
    """Passes that a method takes for each image with these settings; none where it does not tell.

    >>> cost_of("cotta").forwards, cost_of("cotta", views=4).forwards
    (34, 6)
    """
    return method_entry(name).cost_with(settings_for(name, settings) | changes)


def make_method(
    name: str,
    model: nn.Module,
    *,
    settings: Settings = "imagenet",
    clean: Iterable[Tensor] | Sequence[Tensor] | None = None,
    sample: Tensor | None = None,
    **changes: Any,
) -> Method:
    """A method by name, with its paper's settings and any changes to them; one with a source needs ``clean`` batches.

    With a ``sample`` of images, networks that do not end as a method needs it are refused here, else at its first
    batch.
    """
    return make_from(method_entry(name), model, settings=settings, clean=clean, sample=sample, **changes)


def make_from(
    entry: MethodEntry,
    model: nn.Module,
    *,
    settings: Settings = "imagenet",
    clean: Iterable[Tensor] | Sequence[Tensor] | None = None,
    sample: Tensor | None = None,
    **changes: Any,
) -> Method:
    """The same for a method that need not be one of the list."""
    options = options_of(entry, settings) | changes
    if entry.source:
        if clean is None:
            raise InputError(
                f"{entry.name} needs clean images, which it is shown before the stream; give some as clean"
            )
        options["clean"] = clean
    if entry.needs == "linear head":
        options["sample"] = sample
    try:
        return entry.make(model, **options)
    except TypeError as error:
        raise InputError(f"{entry.name}: {error}") from error
