"""Opening a model: a name, a file or a function, with what the user says about it; or a TOML file that says it all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from blemish.core.errors import InputError, about
from blemish.core.reading import check_regular, is_file, is_folder, is_there, read_toml
from blemish.corruptions.catalog import Catalog, catalog, hint
from blemish.corruptions.imagenet_p import sequences
from blemish.models.base import Channels, Classifier, Layout, Output, Training
from blemish.models.by_name import LIBRARIES
from blemish.models.code import ending_refused, needs_permission
from blemish.models.demo import DEMO_NETS, demo_model
from blemish.models.hub import REPOSITORY
from blemish.models.huggingface import load_hf
from blemish.models.onnx_file import load_onnx
from blemish.models.python_function import load_python
from blemish.models.sklearn_estimator import load_estimator
from blemish.models.tflite_file import load_tflite
from blemish.models.torch_files import EXPORTED_SUFFIX, TORCHSCRIPT_SUFFIXES, load_torch_file
from blemish.models.torch_module import SAFETENSORS, device_named

_log = logging.getLogger(__name__)

_PYTHON = "python:"
_TORCH = (".pt", ".pth", ".th", ".ckpt", *TORCHSCRIPT_SUFFIXES, EXPORTED_SUFFIX)
_SUFFIXES = (*_TORCH, ".onnx", ".tflite", ".joblib", ".pkl", ".pickle")
_NAMED = {**LIBRARIES, "hf": load_hf}


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
    outputs_are: Output | None = None,
    skip_classes: int | None = None,
    device: str | torch.device | None = None,
    trained_on: Iterable[str] = (),
    augmentations: Iterable[str] = (),
    allow_code: bool = False,
    catalog: Catalog = catalog,
) -> Classifier:
    """The classifier that a text names.

    ``timm:NAME``, ``torchvision:NAME``, ``hf:ORG/NAME``, ``python:package.module:function``, ``demo:plain``,
    ``demo:noisy``, a model file, a folder of transformers, or a TOML file with these settings. What is given here goes
    before what the file or the model itself says.
    ``trained_on`` names the corruptions seen in training; a family (``noise``, ``noc``) stands for its members.
    Files that can run code, and settings that name a Python function, are refused without ``allow_code``.
    """
    given = {
        "weights": weights,
        "name": name,
        "size": size,
        "mean": mean,
        "std": std,
        "channels": channels,
        "layout": layout,
        "outputs_are": outputs_are,
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
    for key, value in given.items():
        if value is not None:
            settings[key] = value if isinstance(value, Path) else _READERS[key](key, value)
    settings["trained_on"] = trained_corruptions(settings.get("trained_on", ()), catalog=catalog)
    load = partial(_load, settings["model"], settings.get("weights"), allow_code)
    return replace(_adjusted(load(device), settings), reopen=load)


def trained_corruptions(names: Iterable[str], *, catalog: Catalog = catalog) -> tuple[str, ...]:
    """Names of corruptions and of families as names of corruptions.

    >>> trained_corruptions(["fog", "noise"])
    ('fog', 'gaussian_noise', 'shot_noise', 'impulse_noise', 'speckle_noise')
    """
    families = {corruption.family for corruption in catalog.values()}
    corruptions: list[str] = []
    for name in names:
        if name in catalog or name in sequences:
            corruptions.append(name)
        elif name in families:
            corruptions += [key for key, corruption in catalog.items() if corruption.family == name]
        else:
            known = [*catalog, *sequences, *sorted(families)]
            raise InputError(f"trained_on {name!r} is neither a corruption nor a family; {hint(name, known)}")
    return tuple(dict.fromkeys(corruptions))


def _load(spec: str, weights: str | Path | None, allow_code: bool, device: str | torch.device | None) -> Classifier:
    target = device_named(device)
    _log.info("opening model %s on %s", spec, target)
    start = time.perf_counter()
    with ending_refused(f"model {spec!r}"):
        model = _loaded(spec, weights, allow_code, target)
    _log.debug("model %s was opened in %.2f s", spec, time.perf_counter() - start)
    return model


def _loaded(spec: str, weights: str | Path | None, allow_code: bool, device: torch.device) -> Classifier:
    file = None if weights is None else Path(weights)
    kind, _, rest = spec.partition(":")
    if kind in _NAMED and rest:
        return _NAMED[kind](rest, weights=file, device=device, allow_code=allow_code)
    if is_folder(spec):
        return load_hf(spec, weights=file, device=device, allow_code=allow_code)
    if spec.startswith(_PYTHON):
        return load_python(rest, weights=file, device=device)
    if file is not None:
        raise InputError(
            f"weights {weights} for model {spec!r}; expected a model that can take them: "
            "timm:NAME, torchvision:NAME, hf:NAME or python:package.module:function"
        )
    if kind == "demo":
        return demo_model(rest or "plain", device=device)
    if _is_model_file(spec) or is_there(spec):
        return _load_file(Path(spec), device, allow_code)
    if REPOSITORY.match(spec):
        raise InputError(f"model {spec!r}: no such file; a model of the Hugging Face hub is given as hf:{spec}")
    raise InputError(
        f"model {spec!r}; expected timm:NAME, torchvision:NAME, hf:ORG/NAME, python:package.module:function, "
        f"{', '.join(f'demo:{net}' for net in DEMO_NETS)}, or a file ({', '.join(_SUFFIXES)}, .toml)"
    )


def _is_model_file(name: str) -> bool:
    return Path(name).suffix.lower() in (*_SUFFIXES, SAFETENSORS)


def _load_file(path: Path, device: torch.device, allow_code: bool) -> Classifier:
    """The model in a file, by the ending of its name."""
    suffix = path.suffix.lower()
    if suffix == SAFETENSORS:
        folder = f"; its folder {path.parent} can be given" if is_file(path.parent / "config.json") else ""
        raise InputError(
            f"{path}: weights alone, which say nothing of the model; name the model, and give the file as its weights "
            f"(timm:NAME, torchvision:NAME, hf:NAME or python:… with --weights FILE){folder}"
        )
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: a model file with the ending {suffix!r}; expected {', '.join(_SUFFIXES)} or .toml")
    check_regular(path)
    if suffix in _TORCH:
        return load_torch_file(path, device=device, allow_code=allow_code)
    if suffix == ".onnx":
        return load_onnx(path, device=device)
    return (load_tflite if suffix == ".tflite" else load_estimator)(path, allow_code=allow_code)


def _adjusted(model: Classifier, settings: dict[str, Any]) -> Classifier:
    """The model with the settings that were given, in place of its own."""
    changes: dict[str, Any] = {
        key: settings[key] for key in ("channels", "layout", "size", "mean", "std") if key in settings
    }
    own, resizing = model.training, model.preprocessing.resizing
    if "size" in changes and resizing is not None:
        changes["resizing"] = resizing.for_size(changes["size"])
    with about(f"model {settings['model']!r}"):
        return replace(
            model,
            name=settings.get("name", model.name),
            preprocessing=replace(model.preprocessing, **changes),
            assumed=None if "mean" in settings or "std" in settings else model.assumed,
            output=settings.get("outputs_are", model.output),
            skip_classes=settings.get("skip_classes", model.skip_classes),
            training=Training(
                corruptions=tuple(dict.fromkeys((*own.corruptions, *settings["trained_on"]))),
                augmentations=tuple(dict.fromkeys((*own.augmentations, *settings.get("augmentations", ())))),
            ),
        )


def _read_settings(path: Path) -> dict[str, Any]:
    settings = {key: _read_setting(path, key, value) for key, value in read_toml(path).items()}
    if "model" not in settings:
        raise InputError(f'{path}: no model in it; expected a line such as model = "timm:resnet50"')
    # Files are named from where the settings lie.
    if "weights" in settings:
        settings["weights"] = str(path.parent / settings["weights"])
    if ":" not in settings["model"] and (
        _is_model_file(settings["model"]) or is_folder(path.parent / settings["model"])
    ):
        settings["model"] = str(path.parent / settings["model"])
    return settings


def _read_setting(path: Path, key: str, value: Any) -> Any:
    if key.replace("-", "_") == "allow_code":
        raise InputError(f"{path}: a file cannot allow itself to run code; say so when you open it (--allow-code)")
    if key not in _READERS:
        raise InputError(f"{path}: unknown setting {key!r}; {hint(key, list(_READERS))}")
    return _READERS[key](f"{path}: {key}", value)


def _text(setting: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{setting} = {value!r}; expected a text")
    return value


def _words(setting: str, values: Any) -> tuple[str, ...]:
    words = (values,) if isinstance(values, str) else values
    if isinstance(words, Iterable) and not isinstance(words, dict):
        words = tuple(words)
        if all(isinstance(word, str) for word in words):
            return words
    raise InputError(f"{setting} {values!r}; expected a list of texts")


def _size(setting: str, value: Any) -> tuple[int, int]:
    sides = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(sides) != 2 or not all(isinstance(side, int) and not isinstance(side, bool) for side in sides):
        raise InputError(f"{setting} {value!r}; expected a whole number, or height and width")
    return sides[0], sides[1]


def _floats(setting: str, value: Any) -> tuple[float, ...]:
    numbers = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not numbers or not all(isinstance(item, int | float) and not isinstance(item, bool) for item in numbers):
        raise InputError(f"{setting} {value!r}; expected a number, or one for each channel")
    try:
        return tuple(float(item) for item in numbers)
    except OverflowError:
        raise InputError(f"{setting}: a number that no float can hold; expected a smaller one") from None


def _whole(setting: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{setting} {value!r}; expected a whole number")
    return value


# The settings of a model, each with the function that checks its value.
_READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("model", "weights", "name", "channels", "layout", "outputs_are"), _text),
    "size": _size,
    **dict.fromkeys(("mean", "std"), _floats),
    "skip_classes": _whole,
    **dict.fromkeys(("trained_on", "augmentations"), _words),
}
