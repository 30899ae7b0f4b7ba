"""What can be said of a model besides which one it is: settings, each checked, and the TOML files that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there, read_toml
from blemish.corruptions.catalog import hint
from blemish.models.keras_file import KERAS_SUFFIX
from blemish.models.torch_files import EXPORTED_SUFFIX, TORCHSCRIPT_SUFFIXES
from blemish.models.torch_module import SAFETENSORS

TORCH_SUFFIXES = (".pt", ".pth", ".th", ".ckpt", *TORCHSCRIPT_SUFFIXES, EXPORTED_SUFFIX)
MODEL_SUFFIXES = (*TORCH_SUFFIXES, ".onnx", ".tflite", KERAS_SUFFIX, ".joblib", ".pkl", ".pickle")


def is_model_file(name: str) -> bool:
    """Whether a name ends as those of model files do."""
    return Path(name).suffix.lower() in (*MODEL_SUFFIXES, SAFETENSORS)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, with the model among them."""
    settings = {key: _read_setting(path, key, value) for key, value in read_toml(path).items()}
    if "model" not in settings:
        raise InputError(f'{path}: no model in it; expected a line such as model = "timm:resnet50"')
    # Files are named from where the settings lie.
    if "weights" in settings:
        settings["weights"] = str(path.parent / settings["weights"])
    for key in ("templates", "class_names"):
        if isinstance(settings.get(key), str) and is_there(path.parent / settings[key]):
            settings[key] = str(path.parent / settings[key])
    if ":" not in settings["model"] and (
        is_model_file(settings["model"]) or is_folder(path.parent / settings["model"])
    ):
        settings["model"] = str(path.parent / settings["model"])
    return settings


def _read_setting(path: Path, key: str, value: Any) -> Any:
    if key.replace("-", "_") == "allow_code":
        raise InputError(f"{path}: a file cannot allow itself to run code; say so when you open it (--allow-code)")
    if key not in READERS:
        raise InputError(f"{path}: unknown setting {key!r}; {hint(key, list(READERS))}")
    return READERS[key](f"{path}: {key}", value)


def _text(setting: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{setting} = {value!r}; expected a text")
    return value


def read_words(setting: str, values: Any) -> tuple[str, ...]:
    """Several texts, or one."""
    words = (values,) if isinstance(values, str) else values
    if isinstance(words, Iterable) and not isinstance(words, dict):
        words = tuple(words)
        if all(isinstance(word, str) for word in words):
            return words
    raise InputError(f"{setting} {values!r}; expected a list of texts")


def _texts(setting: str, value: Any) -> Any:
    """The name of a file or of a set, or the texts themselves."""
    return value if isinstance(value, str | Path) else read_words(setting, value)


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
READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("model", "weights", "name", "channels", "layout", "outputs_are"), _text),
    "size": _size,
    **dict.fromkeys(("mean", "std"), _floats),
    "skip_classes": _whole,
    **dict.fromkeys(("templates", "class_names"), _texts),
    **dict.fromkeys(("trained_on", "augmentations"), read_words),
}
