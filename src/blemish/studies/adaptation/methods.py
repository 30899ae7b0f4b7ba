"""All methods by name, with the settings their authors give for ImageNet and for CIFAR-10.

The methods' defaults are those for ImageNet. Their docstrings name the source of every setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

from torch import Tensor, nn

from blemish.core.errors import InputError, UnknownNameError
from blemish.studies.adaptation.base import Method, Optimiser
from blemish.studies.adaptation.cotta import CoTTA
from blemish.studies.adaptation.deyo import DeYO
from blemish.studies.adaptation.eata import EATA, ETA, RDumb
from blemish.studies.adaptation.gradient_free import BatchNorm, Unadapted
from blemish.studies.adaptation.head import LAME, T3A
from blemish.studies.adaptation.sar import SAR
from blemish.studies.adaptation.selftraining import CPL, RPL, Tent
from blemish.studies.adaptation.statistics import NormAlpha, NormEMA

__all__ = ["HEADED", "METHODS", "Settings", "make_method", "settings_for"]

Settings = Literal["imagenet", "cifar"]

METHODS: dict[str, Callable[..., Method]] = {
    "none": Unadapted,
    "bn": BatchNorm,
    "norm_alpha": NormAlpha,
    "norm_ema": NormEMA,
    "t3a": T3A,
    "lame": LAME,
    "tent": Tent,
    "rpl": RPL,
    "cpl": CPL,
    "eta": ETA,
    "eata": EATA,
    "cotta": CoTTA,
    "rdumb": RDumb,
    "sar": SAR,
    "deyo": DeYO,
}

HEADED = ("t3a", "lame")
"""Methods that need a linear layer at the network's end, and can look for it on a ``sample``."""

_ADAM = Optimiser("adam", 0.001)
_CIFAR: dict[str, dict[str, Any]] = {
    "t3a": {"keep": 100},
    "tent": {"optimiser": _ADAM},
    # Nothing is known of RPL on CIFAR in one pass; Tent's are used, as the two differ in their loss alone.
    "rpl": {"optimiser": _ADAM},
    "cpl": {"epsilon": 6.0, "optimiser": Optimiser(rate=0.001, nesterov=True)},
    "eta": {"similarity": 0.4, "optimiser": Optimiser(rate=0.005)},
    "eata": {"similarity": 0.4, "beta": 1.0, "optimiser": Optimiser(rate=0.005)},
    "cotta": {"confident": 0.92, "restore": 0.01, "symmetric": False, "optimiser": _ADAM},
    # RDumb was never run on CIFAR; these are ETA's.
    "rdumb": {"similarity": 0.4, "optimiser": Optimiser(rate=0.005)},
    "sar": {"optimiser": Optimiser(rate=0.001)},
    "deyo": {"optimiser": _ADAM},
}


def settings_for(name: str, settings: Settings = "imagenet") -> dict[str, Any]:
    """What a method is given for this kind of data; nothing where its defaults are meant."""
    if name not in METHODS:
        raise UnknownNameError(f"unknown adaptation method {name!r}; expected one of {', '.join(METHODS)}")
    if settings not in get_args(Settings):
        raise InputError(f"settings {settings!r}; expected one of {', '.join(get_args(Settings))}")
    return dict(_CIFAR.get(name, {})) if settings == "cifar" else {}


def make_method(
    name: str,
    model: nn.Module,
    *,
    settings: Settings = "imagenet",
    clean: Iterable[Tensor] | Sequence[Tensor] | None = None,
    sample: Tensor | None = None,
    **changes: Any,
) -> Method:
    """A method by name, with its paper's settings and any changes to them; EATA needs ``clean`` batches.

    With a ``sample`` of images, networks that do not end as a method needs it are refused here, else at its first
    batch.
    """
    options = settings_for(name, settings) | changes
    if name == "eata":
        if clean is None:
            raise InputError("eata needs clean images, by which it knows the weights that matter; give some as clean")
        options["clean"] = clean
    if name in HEADED:
        options["sample"] = sample
    try:
        return METHODS[name](model, **options)
    except TypeError as error:
        raise InputError(f"{name}: {error}") from error
