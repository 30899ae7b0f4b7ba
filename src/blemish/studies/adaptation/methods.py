"""All methods by name, with what they need and cost, and the settings their authors give for ImageNet and CIFAR-10.

The methods' defaults are those for ImageNet. Their docstrings name the source of every setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from torch import Tensor, nn

from blemish.core.errors import InputError, UnknownNameError
from blemish.studies.adaptation.base import Method, Optimiser
from blemish.studies.adaptation.cotta import CoTTA
from blemish.studies.adaptation.deyo import DeYO
from blemish.studies.adaptation.eata import EATA, ETA, RDumb
from blemish.studies.adaptation.entry import Cost, MethodEntry
from blemish.studies.adaptation.gradient_free import BatchNorm, Unadapted
from blemish.studies.adaptation.head import LAME, T3A
from blemish.studies.adaptation.sar import SAR
from blemish.studies.adaptation.selftraining import CPL, RPL, Tent
from blemish.studies.adaptation.statistics import NormAlpha, NormEMA

__all__ = ["METHODS", "Settings", "cost_of", "make_method", "method_entry", "settings_for"]

Settings = Literal["imagenet", "cifar"]

_ADAM = Optimiser("adam", 0.001)
_ETA_CIFAR = {"similarity": 0.4, "optimiser": Optimiser(rate=0.005)}
_NORM = "scales and shifts of normalisation layers"

_ENTRIES = (
    MethodEntry(name="none", make=Unadapted, needs="nothing", cost=Cost(1, 0), single="yes", changes="nothing"),
    MethodEntry(
        name="bn",
        make=BatchNorm,
        needs="batch norm",
        cost=Cost(1, 0),
        single="no",
        changes="statistics of batch norm: (1 − α) · training + α · batch",
        paper="Schneider et al., NeurIPS 2020; Nado et al., 2020",
    ),
    MethodEntry(
        name="norm_alpha",
        make=NormAlpha,
        needs="batch norm",
        cost=Cost(1, 0),
        single="yes",
        changes="the same with α = 0.1, for batches of one image",
        paper="Schneider et al., NeurIPS 2020; Döbler et al.'s repository",
    ),
    MethodEntry(
        name="norm_ema",
        make=NormEMA,
        needs="batch norm",
        cost=Cost(2, 0),
        single="no",
        changes="statistics of batch norm, which follow the stream",
        paper="Döbler et al.'s repository",
    ),
    MethodEntry(
        name="t3a",
        make=T3A,
        needs="linear head",
        cost=Cost(1, 0),
        single="yes",
        changes="the last linear layer",
        paper="Iwasawa and Matsuo, NeurIPS 2021",
        cifar={"keep": 100},
    ),
    MethodEntry(
        name="lame",
        make=LAME,
        needs="linear head",
        cost=Cost(1, 0),
        single="no",
        changes="predictions, towards those of alike images of the batch",
        paper="Boudiaf et al., CVPR 2022",
    ),
    MethodEntry(
        name="tent",
        make=Tent,
        needs="any norm",
        cost=Cost(1, 1),
        changes=_NORM,
        paper="Wang et al., ICLR 2021",
        cifar={"optimiser": _ADAM},
    ),
    MethodEntry(
        name="rpl",
        make=RPL,
        needs="any norm",
        cost=Cost(1, 1),
        changes=_NORM,
        paper="Rusak et al., TMLR 2022",
        # Nothing is known of RPL on CIFAR in one pass; Tent's are used, as the two differ in their loss alone.
        cifar={"optimiser": _ADAM},
    ),
    MethodEntry(
        name="cpl",
        make=CPL,
        needs="any norm",
        cost=Cost(1, 1),
        changes=_NORM,
        paper="Goyal et al., NeurIPS 2022",
        cifar={"epsilon": 6.0, "optimiser": Optimiser(rate=0.001, nesterov=True)},
    ),
    MethodEntry(
        name="eta",
        make=ETA,
        needs="any norm",
        cost=Cost(1, 1),
        changes=_NORM,
        paper="Niu et al., ICML 2022",
        cifar=_ETA_CIFAR,
    ),
    MethodEntry(
        name="eata",
        make=EATA,
        needs="any norm",
        cost=Cost(1, 1),
        source=True,
        changes=_NORM,
        paper="Niu et al., ICML 2022",
        cifar=_ETA_CIFAR | {"beta": 1.0},
    ),
    MethodEntry(
        name="cotta",
        make=CoTTA,
        needs="parameters",
        # The model as given and the student see each image once, the teacher each of its views.
        cost=Cost(2, 1, each_view=(1, 0)),
        views=32,
        changes="all parameters",
        paper="Wang et al., CVPR 2022",
        cifar={"confident": 0.92, "restore": 0.01, "symmetric": False, "optimiser": _ADAM},
    ),
    MethodEntry(
        name="rdumb",
        make=RDumb,
        needs="any norm",
        cost=Cost(1, 1),
        changes=_NORM,
        paper="Press et al., NeurIPS 2023",
        # RDumb was never run on CIFAR; these are ETA's.
        cifar=_ETA_CIFAR,
    ),
    MethodEntry(
        name="sar",
        make=SAR,
        needs="any norm",
        cost=Cost(2, 2),
        changes=f"{_NORM} before the last stage",
        paper="Niu et al., ICLR 2023",
        cifar={"optimiser": Optimiser(rate=0.001)},
    ),
    MethodEntry(
        name="deyo",
        make=DeYO,
        needs="any norm",
        cost=Cost(2, 1),
        changes=f"{_NORM} before the last stage",
        paper="Lee et al., ICLR 2024",
        cifar={"optimiser": _ADAM},
    ),
)

METHODS: dict[str, MethodEntry] = {entry.name: entry for entry in _ENTRIES}


def method_entry(name: str) -> MethodEntry:
    """What is known of the method of this name."""
    if name not in METHODS:
        raise UnknownNameError(f"unknown adaptation method {name!r}; expected one of {', '.join(METHODS)}")
    return METHODS[name]


def settings_for(name: str, settings: Settings = "imagenet") -> dict[str, Any]:
    """What a method is given for this kind of data; nothing where its defaults are meant."""
    entry = method_entry(name)
    if settings not in get_args(Settings):
        raise InputError(f"settings {settings!r}; expected one of {', '.join(get_args(Settings))}")
    return dict(entry.cifar if settings == "cifar" else entry.imagenet)


def cost_of(name: str, settings: Settings = "imagenet", **changes: Any) -> Cost | None:
    """Passes that a method takes for each image with these settings; none where it does not tell.

    >>> cost_of("cotta").forwards, cost_of("cotta", views=4).forwards
    (34.0, 6.0)
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
    entry = method_entry(name)
    options = settings_for(name, settings) | changes
    if entry.source:
        if clean is None:
            raise InputError(f"{name} needs clean images, which it is shown before the stream; give some as clean")
        options["clean"] = clean
    if entry.needs == "linear head":
        options["sample"] = sample
    try:
        return entry.make(model, **options)
    except TypeError as error:
        raise InputError(f"{name}: {error}") from error
