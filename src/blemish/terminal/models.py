"""Options for a model, the same for every command that takes one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.models.speed import speed_up
from blemish.terminal.lists import listed, numbers

_PANEL = "Model"
MODEL_NAMES = (
    "timm:NAME, torchvision:NAME, hf:ORG/NAME or a folder (Hugging Face), open_clip:MODEL/WEIGHTS, "
    "python:PACKAGE.MODULE:FUNCTION, demo:plain, a file (.onnx, .pt, .pt2, .tflite, .keras, .joblib), or a .toml file "
    "that describes one."
)

Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1 … or auto.")]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", min=1, help="Images at a time; halved when memory runs out. Default: by the device."),
]


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What can be said of a model, besides which one it is."""

    weights: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_PANEL,
            help="A file of weights for timm:, torchvision:, hf:, open_clip: and python: models: .safetensors, .npz, "
            "or a state dict of torch (never unpickled).",
        ),
    ] = None
    name: Annotated[str | None, typer.Option(rich_help_panel=_PANEL, help="What to call the model.")] = None
    size: Annotated[
        int | None, typer.Option(rich_help_panel=_PANEL, help="Side of the model's input. Default: as images come.")
    ] = None
    mean: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="Subtracted from values in 0 … 1: one number or three.")
    ] = None
    std: Annotated[str | None, typer.Option(rich_help_panel=_PANEL, help="Divided by: one number or three.")] = None
    channels: Annotated[str | None, typer.Option(rich_help_panel=_PANEL, help="rgb, bgr or gray.")] = None
    layout: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="Of the input: nchw, nhwc, flat or flat-chw.")
    ] = None
    outputs_are: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="What the model gives: logits or probabilities.")
    ] = None
    skip_classes: Annotated[
        int | None,
        typer.Option(min=0, rich_help_panel=_PANEL, help="Leading outputs to drop: 1 for 1001-class models."),
    ] = None
    templates: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_PANEL,
            help="What zero-shot models are asked: a file with a sentence per line, {} for the name of a class; openai "
            "(80 sentences, the default) or simple (7). The names are those of --class-names.",
        ),
    ] = None
    trained_on: Annotated[
        str | None,
        typer.Option(rich_help_panel=_PANEL, help="Corruptions or families it saw in training; marked everywhere."),
    ] = None
    augmentations: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="Augmentations it saw in training, in your words.")
    ] = None
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            rich_help_panel=_PANEL,
            help="Let the model run code, if you trust it: TorchScript, pickles, .pt2, .keras, a .toml that names "
            "python:….",
        ),
    ] = False
    device: Annotated[str, typer.Option(rich_help_panel=_PANEL, help="cpu, cuda, cuda:1 … or auto.")] = "auto"

    def open_named(
        self, model: str, *, catalog: Catalog, device: str | None = None, class_names: str | None = None
    ) -> Classifier:
        """The model of this name with these settings; on ``device``, where one is given, instead of the option's.

        ``class_names`` are those of the images, which zero-shot models are asked for.
        """
        settings: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(ModelSettings)}
        settings |= {"mean": _floats(self.mean, "--mean"), "std": _floats(self.std, "--std")}
        settings |= {name: listed(settings[name]) for name in ("trained_on", "augmentations")}
        settings |= {"device": device or self.device, "class_names": class_names}
        return open_model(model, **settings, catalog=catalog)


def _floats(text: str | None, option: str) -> list[float] | None:
    return None if text is None else numbers(text, option, such_as="0.5, or three such as 0.485,0.456,0.406")


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ModelSettings):
    """A model."""

    model: Annotated[str, typer.Option("--model", "-m", rich_help_panel=_PANEL, help=MODEL_NAMES)]

    def open(self, *, catalog: Catalog, device: str | None = None, class_names: str | None = None) -> Classifier:
        """The model that was named."""
        return self.open_named(self.model, catalog=catalog, device=device, class_names=class_names)


@dataclass(frozen=True, kw_only=True)
class OptionalModelOptions(ModelSettings):
    """A model, or none."""

    model: Annotated[str | None, typer.Option("--model", "-m", rich_help_panel=_PANEL, help=MODEL_NAMES)] = None

    def open(self, *, catalog: Catalog, class_names: str | None = None) -> Classifier | None:
        """The model that was named, if any; settings without a model are refused."""
        if self.model is not None:
            return self.open_named(self.model, catalog=catalog, class_names=class_names)
        names = [field.name for field in fields(ModelSettings) if getattr(self, field.name) != field.default]
        unused = [name for name in names if name != "device"]
        if unused:
            raise InputError(f"--{unused[0].replace('_', '-')} without --model; expected a model that it is for")
        return None


@dataclass(frozen=True, kw_only=True)
class SpeedOptions:
    """Faster forward passes of a model that does not change."""

    precision: Annotated[
        str, typer.Option(rich_help_panel=_PANEL, help="Of forward passes: float32, or float16 or bfloat16 (faster).")
    ] = "float32"
    compiled: Annotated[
        bool, typer.Option("--compile", rich_help_panel=_PANEL, help="Use torch.compile: slow to start, then fast.")
    ] = False
    channels_last: Annotated[
        bool,
        typer.Option(
            "--channels-last/--channels-first",
            rich_help_panel=_PANEL,
            help="How feature maps lie in memory with --precision or --compile.",
        ),
    ] = True

    def apply(self, model: Classifier) -> Classifier:
        """The model, sped up where that was asked for."""
        if self.precision == "float32" and not self.compiled:
            return model
        precision = cast(Any, self.precision)  # checked there
        return speed_up(model, precision=precision, channels_last=self.channels_last, compiled=self.compiled)
