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

from blemish.core.errors import InputError, about
from blemish.core.reading import check_regular, is_file, is_folder, is_there
from blemish.corruptions.catalog import Catalog, catalog, hint
from blemish.corruptions.imagenet_p import sequences
from blemish.models.base import Channels, Classifier, Layout, Output, Training
from blemish.models.by_name import LIBRARIES
from blemish.models.code import ending_refused, needs_permission
from blemish.models.demo import DEMO_NETS, demo_model
from blemish.models.hub import REPOSITORY
from blemish.models.huggingface import load_hf
from blemish.models.keras_file import KERAS_SUFFIX, load_keras
from blemish.models.onnx_file import load_onnx
from blemish.models.open_clip_model import load_open_clip
from blemish.models.prompts import Names, Prompts, read_prompts
from blemish.models.python_function import load_python
from blemish.models.settings import MODEL_SUFFIXES, READERS, TORCH_SUFFIXES, is_model_file, read_settings, read_words
from blemish.models.sklearn_estimator import load_estimator
from blemish.models.tflite_file import load_tflite
from blemish.models.torch_files import load_torch_file
from blemish.models.torch_module import SAFETENSORS, device_named

_log = logging.getLogger(__name__)

_PYTHON = "python:"
_ZERO_SHOT = {"hf": load_hf, "open_clip": load_open_clip}


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
    templates: Names | None = None,
    class_names: Names | None = None,
    device: str | torch.device | None = None,
    trained_on: Iterable[str] = (),
    augmentations: Iterable[str] = (),
    allow_code: bool = False,
    catalog: Catalog = catalog,
) -> Classifier:
    """The classifier that a text names.

    ``timm:NAME``, ``torchvision:NAME``, ``hf:ORG/NAME``, ``open_clip:MODEL/WEIGHTS``,
    ``python:package.module:function``, ``demo:plain``, ``demo:noisy``, a model file, a folder of
    transformers, or a TOML file with these settings. What is given here goes before what the file or the model itself
    says. ``templates`` and ``class_names`` are what zero-shot models are asked, as `read_prompts` takes them; the
    names are of no concern to others.
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
        "templates": templates,
        "class_names": class_names,
        "trained_on": read_words("trained_on", trained_on) or None,
        "augmentations": read_words("augmentations", augmentations) or None,
    }
    described = str(spec).lower().endswith(".toml")
    settings: dict[str, Any] = read_settings(Path(spec)) if described else {"model": str(spec)}
    if described and not allow_code and settings["model"].startswith(_PYTHON):
        raise needs_permission(
            f"{spec}",
            f"names {settings['model']}, which runs code; a file may not ask for that",
            "give this text as the model itself",
        )
    for key, value in given.items():
        if value is not None:
            settings[key] = value if isinstance(value, Path) else READERS[key](key, value)
    settings["trained_on"] = trained_corruptions(settings.get("trained_on", ()), catalog=catalog)
    prompts = read_prompts(settings.get("templates"), settings.get("class_names"))
    load = partial(_load, settings["model"], settings.get("weights"), prompts, allow_code)
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


def _load(
    spec: str, weights: str | Path | None, prompts: Prompts, allow_code: bool, device: str | torch.device | None
) -> Classifier:
    target = device_named(device)
    _log.info("opening model %s on %s", spec, target)
    start = time.perf_counter()
    with ending_refused(f"model {spec!r}"):
        model = _loaded(spec, weights, prompts, allow_code, target)
    _log.debug("model %s was opened in %.2f s", spec, time.perf_counter() - start)
    return model


def _loaded(
    spec: str, weights: str | Path | None, prompts: Prompts, allow_code: bool, device: torch.device
) -> Classifier:
    file = None if weights is None else Path(weights)
    kind, _, rest = spec.partition(":")
    if kind in LIBRARIES and rest:
        return LIBRARIES[kind](rest, weights=file, device=device, allow_code=allow_code)
    if (kind in _ZERO_SHOT and rest) or is_folder(spec):
        kind, rest = (kind, rest) if kind in _ZERO_SHOT else ("hf", spec)
        return _ZERO_SHOT[kind](rest, weights=file, device=device, prompts=prompts, allow_code=allow_code)
    if spec.startswith(_PYTHON):
        return load_python(rest, weights=file, device=device)
    if file is not None:
        raise InputError(
            f"weights {weights} for model {spec!r}; expected a model that can take them: "
            "timm:NAME, torchvision:NAME, hf:NAME, open_clip:MODEL or python:package.module:function"
        )
    if kind == "demo":
        return demo_model(rest or "plain", device=device)
    if is_model_file(spec) or is_there(spec):
        return _load_file(Path(spec), device, allow_code)
    if REPOSITORY.match(spec):
        raise InputError(f"model {spec!r}: no such file; a model of the Hugging Face hub is given as hf:{spec}")
    raise InputError(
        f"model {spec!r}; expected timm:NAME, torchvision:NAME, hf:ORG/NAME, open_clip:MODEL/WEIGHTS, "
        f"python:package.module:function, "
        f"{', '.join(f'demo:{net}' for net in DEMO_NETS)}, or a file ({', '.join(MODEL_SUFFIXES)}, .toml)"
    )


def _load_file(path: Path, device: torch.device, allow_code: bool) -> Classifier:
    """The model in a file, by the ending of its name."""
    suffix = path.suffix.lower()
    if suffix == SAFETENSORS:
        folder = f"; its folder {path.parent} can be given" if is_file(path.parent / "config.json") else ""
        raise InputError(
            f"{path}: weights alone, which say nothing of the model; name the model, and give the file as its weights "
            f"(timm:NAME, torchvision:NAME, hf:NAME, open_clip:MODEL or python:… with --weights FILE){folder}"
        )
    if suffix not in MODEL_SUFFIXES:
        raise InputError(
            f"{path}: a model file with the ending {suffix!r}; expected {', '.join(MODEL_SUFFIXES)} or .toml"
        )
    check_regular(path)
    if suffix in TORCH_SUFFIXES:
        return load_torch_file(path, device=device, allow_code=allow_code)
    if suffix == KERAS_SUFFIX:
        return load_keras(path, device=device, allow_code=allow_code)
    if suffix == ".onnx":
        return load_onnx(path, device=device)
    return (load_tflite if suffix == ".tflite" else load_estimator)(path, allow_code=allow_code)


def _adjusted(model: Classifier, settings: dict[str, Any]) -> Classifier:
    """The model with the settings that were given, in place of its own."""
    if "templates" in settings and model.prompts is None:
        raise InputError(
            f"templates for model {settings['model']!r}, which is asked nothing; expected a zero-shot model"
        )
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
