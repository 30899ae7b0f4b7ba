"""The list of methods: what each needs and costs, where it comes from, and its authors' settings.

The methods' defaults are those for ImageNet. Their docstrings name the source of every setting.
"""

from __future__ import annotations

from blemish.studies.adaptation.adacontrast import AdaContrast
from blemish.studies.adaptation.asr import ASR
from blemish.studies.adaptation.base import Optimiser
from blemish.studies.adaptation.cmf import CMF
from blemish.studies.adaptation.cotta import CoTTA
from blemish.studies.adaptation.deyo import DeYO
from blemish.studies.adaptation.eata import EATA, ETA, RDumb
from blemish.studies.adaptation.entry import Cost, MethodEntry
from blemish.studies.adaptation.gradient_free import BatchNorm, Unadapted
from blemish.studies.adaptation.head import LAME, T3A
from blemish.studies.adaptation.memo import MEMO
from blemish.studies.adaptation.note import NOTE
from blemish.studies.adaptation.rmt import RMT
from blemish.studies.adaptation.roid import ROID
from blemish.studies.adaptation.rotta import RoTTA
from blemish.studies.adaptation.sar import SAR
from blemish.studies.adaptation.selftraining import CPL, RPL, Tent
from blemish.studies.adaptation.statistics import NormAlpha, NormEMA

_ADAM = Optimiser("adam", 0.001)
_ETA_CIFAR = {"similarity": 0.4, "optimiser": Optimiser(rate=0.005)}
_NORM = "scales and shifts of normalisation layers"

ENTRIES = (
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
        # Döbler et al.'s repository.
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
        # RDumb's authors did not run it on CIFAR; these are ETA's.
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
    MethodEntry(
        name="roid",
        make=ROID,
        needs="any norm",
        cost=Cost(2, 2),
        single="no",
        changes=f"{_NORM}, which lean back to the source",
        paper="Marsden et al., WACV 2024",
        cifar={"optimiser": _ADAM},
    ),
    MethodEntry(
        name="cmf",
        make=CMF,
        needs="any norm",
        cost=Cost(2, 2),
        single="no",
        changes=f"{_NORM}, which lean to a source that moves",
        paper="Lee and Chang, ICLR 2024",
        cifar={"optimiser": _ADAM},
    ),
    MethodEntry(
        name="asr",
        make=ASR,
        needs="any norm",
        cost=Cost(2, 1),
        single="no",
        changes=f"{_NORM}, reset in part",
        paper="Lim et al., ICLR 2026",
        # ASR was never run on CIFAR; the optimiser and the similarity are ETA's of Döbler et al.'s repository.
        cifar={"optimiser": _ADAM, "similarity": 0.4},
    ),
    MethodEntry(
        name="rotta",
        make=RoTTA,
        needs="batch norm",
        # The teacher predicts; student and teacher see the memory, as many images as come between two steps.
        cost=Cost(3, 1),
        single="yes",
        changes=f"{_NORM}, and statistics of batch norm",
        paper="Yuan et al., CVPR 2023",
    ),
    MethodEntry(
        name="memo",
        make=MEMO,
        needs="parameters",
        cost=Cost(1, 0, each_view=(1, 1)),
        single="yes",
        views=64,
        changes="all parameters, for one image at a time",
        paper="Zhang et al., NeurIPS 2022",
        cifar={"views": 32, "rate": 0.005, "crop": "cifar"},
    ),
    MethodEntry(
        name="note",
        make=NOTE,
        needs="batch norm",
        # The memory is seen once for as many images as come between two steps.
        cost=Cost(2, 1),
        single="yes",
        changes=f"{_NORM}, and statistics of batch norm; for networks trained with its layer",
        paper="Gong et al., NeurIPS 2022",
    ),
    MethodEntry(
        name="rmt",
        make=RMT,
        needs="linear head",
        cost=Cost(3, 2),
        single="no",
        source=True,
        changes="all parameters",
        paper="Döbler et al., CVPR 2023, source-free",
        cifar={"optimiser": _ADAM},
    ),
    MethodEntry(
        name="adacontrast",
        make=AdaContrast,
        needs="linear head",
        cost=Cost(5, 1),
        changes="all parameters, and statistics of batch norm",
        paper="Chen et al., CVPR 2022, as in Döbler et al.'s repository",
    ),
)
