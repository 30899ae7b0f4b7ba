"""Superclasses: which images belong to them, under which labels, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError, Notice, UnknownNameError
from blemish.data.classes import imagenet_wnids
from blemish.data.source import Source
from blemish.data.superclasses import in_superclasses, superclass_names, superclasses_named

FACTS = Path(__file__).resolve().parents[3] / "shared" / "facts"
SIXTEEN = superclasses_named("sixteen")


def source(labels: list[int], **more: object) -> Source:
    count = len(labels)
    settings = {"ids": np.arange(count), "labels": np.array(labels), "read": lambda _: Image.new("RGB", (8, 8)), **more}
    return Source("pictures", tuple(f"{i}.png" for i in range(count)), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "file", "key"), [("laion-c", "laion_c_classes", "superclasses"), ("sixteen", "sixteen_classes", "classes")]
)
def test_members_are_the_published_ones(name: str, file: str, key: str) -> None:
    """Indices and WordNet ids as extracted from the two repositories."""
    if not FACTS.is_dir():
        pytest.skip("the extracted facts are not beside this checkout")
    facts = json.loads((FACTS / f"{file}.json").read_text(encoding="utf-8"))[key]
    ours = superclasses_named(name)
    assert {c: [*m] for c, m in zip(ours.classes, ours.members, strict=True)} == {
        c: entry["indices"] for c, entry in facts.items()
    }
    for entry in facts.values():
        assert [imagenet_wnids()[index] for index in entry["indices"]] == entry["wnids"]


@pytest.mark.parametrize("name", superclass_names())
def test_no_class_is_in_two(name: str) -> None:
    members = [index for group in superclasses_named(name).members for index in group]
    assert len({*members}) == len(members)
    assert len(superclasses_named(name).classes) == 16


def test_imagenet_labels() -> None:
    """404 is the airliner, 294 the brown bear, 207 the golden retriever, and 0 the tench, none of the sixteen."""
    with pytest.warns(Notice, match="3 of 4 images are of the 16 classes of sixteen; the others are left out"):
        part = in_superclasses(source([404, 0, 294, 207]), SIXTEEN, 1000, model="net")
    assert [SIXTEEN.classes[label] for label in part.labels] == ["airplane", "bear", "dog"]
    assert list(part.names) == ["0.png", "2.png", "3.png"]
    assert part.classes == SIXTEEN.classes
    assert part.groups == SIXTEEN.members


def test_wordnet_folders() -> None:
    wnids = ("n02123045", "n02690373")  # the tabby, a cat, and the airliner
    with pytest.warns(Notice, match="labels are ImageNet's class indices"):
        part = in_superclasses(source([0, 1, 1], classes=wnids, labelling="order"), SIXTEEN, 1000, model="net")
    assert [SIXTEEN.classes[label] for label in part.labels] == ["cat", "airplane", "airplane"]


def test_folders_that_are_superclasses() -> None:
    """Some of them, in their own order."""
    part = in_superclasses(source([1, 0], classes=("dog", "car"), labelling="order"), SIXTEEN, 1000, model="net")
    assert [SIXTEEN.classes[label] for label in part.labels] == ["car", "dog"]


@pytest.mark.parametrize(
    ("given", "outputs", "message"),
    [
        (source([404]), 10, "net has 10 outputs, but the superclasses sixteen are made of ImageNet's 1,000 classes"),
        (source([404]), 1001, r"expected a model with those\. Where the first output is the background, drop it"),
        (source([0, 1]), 1000, "no images of the 16 classes of sixteen"),
        (source([0], groups=((1,),)), 1000, "its labels stand for several classes already"),
        (source([0], classes=("fog",), labelling="order"), 1000, "expected as many outputs as folders"),
    ],
)
def test_refusals(given: Source, outputs: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        in_superclasses(given, SIXTEEN, outputs, model="net")


def test_unknown_superclasses() -> None:
    with pytest.raises(UnknownNameError, match="known are laion-c, sixteen"):
        superclasses_named("seventeen")
