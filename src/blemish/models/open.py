"""Opening a model: a name, a file or a function, with what the user says about it; or a TOML file that says it all."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from blemish.core.errors import InputError
from blemish.core.reading import is_there, read_toml
from blemish.corruptions.catalog import Catalog, catalog, hint
from blemish.corruptions.imagenet_p import sequences
from blemish.models.base import Channels, Classifier, Layout, Output, Training
from blemish.models.by_name import LIBRARIES
from blemish.models.code import ending_refused, needs_permission
from blemish.models.demo import DEMO_NETS, demo_model
from blemish.models.files import SUFFIXES, load_file
from blemish.models.python_function import load_python
from blemish.models.torch_module import device_named

__all__ = ["open_model", "trained_corruptions"]

_log = logging.getLogger(__name__)

_TEXTS = ("model", "weights", "name", "channels", "layout", "output")
_NUMBERS = ("size", "mean", "std", "skip_classes")
_LISTS = ("trained_on", "augmentations")
_KEYS = (*_TEXTS, *_NUMBERS, *_LISTS)

_PYTHON = "python:"


def open_model(
    spec: str | Path,
    *,
    weights: str | Path | None = None,
    name: str | None = None,
    size: int | Sequence[int] | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    channels: Channels | None = None,
    layout: Layout | None = None,
    output: Output | None = None,
    skip_classes: int | None = None,
    device: str | torch.device | None = None,
    trained_on: Iterable[str] = (),
    augmentations: Iterable[str] = (),
    allow_code: bool = False,
    catalog: Catalog = catalog,
) -> Classifier:
    """The classifier that a text names.

    ``timm:NAME``, ``torchvision:NAME``, ``python:package.module:function``, ``demo:plain``, ``demo:noisy``, a model
    file, or a TOML file with these settings. What is given here goes before what the file or the model itself says.
    ``trained_on`` names the corruptions seen in training; a family (``noise``, ``noc``) stands for its members.
    Files that can run code, and settings that name a Python function, are refused without ``allow_code``.
    """
    given: dict[str, Any] = {
        "weights": weights,
        "name": name,
        "size": size,
        "mean": mean,
        "std": std,
        "channels": channels,
        "layout": layout,
        "output": output,
        "skip_classes": skip_classes,
        "trained_on": _words("trained_on", trained_on) or None,
        "augmentations": _words("augmentations", augmentations) or None,
    }
    described = str(spec).lower().endswith(".toml")
    settings: dict[str, Any] = _read_settings(Path(spec)) if described else {"model": str(spec)}
    if described and not allow_code and settings["model"].startswith(_PYTHON):
        raise needs_permission(
            f"{spec}",
            f"names {settings['model']}, which runs code; a file may not ask for that",
            "give this text as the model itself",
        )
    settings |= {key: value for key, value in given.items() if value is not None}
    corruptions = trained_corruptions(_words("trained_on", settings.get("trained_on", ())), catalog=catalog)
    load = partial(_load, settings["model"], settings.get("weights"), allow_code)
    return replace(_adjusted(load(device), settings, corruptions), reopen=load)


def trained_corruptions(names: Iterable[str], *, catalog: Catalog = catalog) -> tuple[str, ...]:
    """Names of corruptions and of families as names of corruptions.

    >>> trained_corruptions(["fog", "noise"])
    ('fog', 'gaussian_noise', 'shot_noise', 'impulse_noise', 'speckle_noise')
    """
    families = {corruption.family for corruption in catalog.values()}
    found: dict[str, None] = {}
    for name in names:
        if name in catalog or name in sequences:
            found[name] = None
        elif name in families:
            found.update({key: None for key, corruption in catalog.items() if corruption.family == name})
        else:
            known = [*catalog, *sequences, *sorted(families)]
            raise InputError(f"trained_on {name!r} is neither a corruption nor a family; {hint(name, known)}")
    return tuple(found)


def _load(spec: str, weights: str | Path | None, allow_code: bool, device: str | torch.device | None) -> Classifier:
    place = device_named(device)
    _log.info("opening model %s on %s", spec, place)
    start = time.perf_counter()
    with ending_refused(f"model {spec!r}"):
        model = _loaded(spec, weights, allow_code, place)
    _log.debug("model %s was opened in %.2f s", spec, time.perf_counter() - start)
    return model


def _loaded(spec: str, weights: str | Path | None, allow_code: bool, device: torch.device) -> Classifier:
    file = None if weights is None else Path(weights)
    kind, _, rest = spec.partition(":")
    if kind in LIBRARIES and rest:
        return LIBRARIES[kind](rest, weights=file, device=device, allow_code=allow_code)
    if spec.startswith(_PYTHON):
        return load_python(rest, weights=file, device=device)
    if file is not None:
        raise InputError(
            f"weights {weights} for model {spec!r}; expected a model that can take them: "
            "timm:NAME, torchvision:NAME or python:package.module:function"
        )
    if kind == "demo":
        return demo_model(rest or "plain", device=device)
    if Path(spec).suffix.lower() in SUFFIXES or is_there(spec):
        return load_file(spec, device=device, allow_code=allow_code)
    raise InputError(
        f"model {spec!r}; expected timm:NAME, torchvision:NAME, python:package.module:function, "
        f"{', '.join(f'demo:{net}' for net in DEMO_NETS)}, or a file ({', '.join(SUFFIXES)}, .toml)"
    )


def _adjusted(model: Classifier, settings: dict[str, Any], corruptions: tuple[str, ...]) -> Classifier:
    """The model with what was said about it in place of what it says itself."""
    changes: dict[str, Any] = {key: settings[key] for key in ("channels", "layout") if key in settings}
    if "size" in settings:
        changes["size"] = _size(settings["size"])
    for key in ("mean", "std"):
        if key in settings:
            changes[key] = _floats(key, settings[key])
    own = model.training
    augmentations = _words("augmentations", settings.get("augmentations", ()))
    try:
        return replace(
            model,
            name=settings.get("name", model.name),
            preprocessing=replace(model.preprocessing, **changes),
            assumed=None if "mean" in settings or "std" in settings else model.assumed,
            output=settings.get("output", model.output),
            skip_classes=_whole("skip_classes", settings.get("skip_classes", model.skip_classes)),
            training=Training(
                corruptions=tuple(dict.fromkeys((*own.corruptions, *corruptions))),
                augmentations=tuple(dict.fromkeys((*own.augmentations, *augmentations))),
            ),
        )
    except InputError as error:
        raise InputError(f"model {settings['model']!r}: {error}") from error


def _read_settings(path: Path) -> dict[str, Any]:
    found = read_toml(path)
    for key, value in found.items():
        _check_setting(path, key, value)
    if "model" not in found:
        raise InputError(f'{path}: no model in it; expected a line such as model = "timm:resnet50"')
    # Files are named from where the settings lie.
    if "weights" in found:
        found["weights"] = str(path.parent / found["weights"])
    if Path(found["model"]).suffix.lower() in SUFFIXES and ":" not in found["model"]:
        found["model"] = str(path.parent / found["model"])
    return found


def _check_setting(path: Path, key: str, value: Any) -> None:
    if key.replace("-", "_") == "allow_code":
        raise InputError(f"{path}: a file cannot allow itself to run code; say so when you open it (--allow-code)")
    if key not in _KEYS:
        raise InputError(f"{path}: unknown setting {key!r}; {hint(key, list(_KEYS))}")
    if key in _TEXTS and not isinstance(value, str):
        raise InputError(f"{path}: {key} = {value!r}; expected a text")
    if key in _LISTS:
        _words(f"{path}: {key}", value)


def _words(what: str, values: Any) -> tuple[str, ...]:
    texts = (values,) if isinstance(values, str) else values
    if not isinstance(texts, Iterable) or isinstance(texts, dict):
        raise InputError(f"{what} {values!r}; expected a list of texts")
    words = tuple(texts)
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"{what} {values!r}; expected a list of texts")
    return words


def _size(value: Any) -> tuple[int, int]:
    sides = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(sides) != 2 or not all(isinstance(side, int) and not isinstance(side, bool) for side in sides):
        raise InputError(f"size {value!r}; expected a whole number, or height and width")
    return sides[0], sides[1]


def _floats(what: str, value: Any) -> tuple[float, ...]:
    numbers = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not numbers or not all(isinstance(item, int | float) and not isinstance(item, bool) for item in numbers):
        raise InputError(f"{what} {value!r}; expected a number, or one for each channel")
    try:
        return tuple(float(item) for item in numbers)
    except OverflowError:
        raise InputError(f"{what}: a number that no float can hold; expected a smaller one") from None


def _whole(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{what} {value!r}; expected a whole number")
    return value
