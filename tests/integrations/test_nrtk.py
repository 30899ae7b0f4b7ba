"""Corruptions as perturbers of nrtk."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import blemish
from blemish.core.errors import InputError
from foreign import foreign
from pictures import pictures

interfaces = foreign("nrtk.interfaces")

pytestmark = pytest.mark.slow

from blemish.integrations.nrtk import perturbers  # noqa: E402


def image(row: int = 0) -> np.ndarray:
    return pictures(1, 3, 24, 32, first=row)[0].permute(1, 2, 0).numpy().copy()


def test_nrtk_finds_every_corruption() -> None:
    """In a process that has imported nothing of blemish: by the entry point."""
    code = "from nrtk.interfaces import PerturbImage; print(*(c.get_type_string() for c in PerturbImage.get_impls()))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    found = {name for name in done.stdout.split() if name.startswith("blemish.")}
    assert found == {f"blemish.integrations.nrtk.{made.__name__}" for made in perturbers.values()}
    assert len(found) == len(blemish.catalog)


# What smqtk says of drivers of databases that are not there.
@pytest.mark.filterwarnings("ignore")
def test_names_that_nrtk_has_too_are_documented() -> None:
    """They are told apart by their modules alone."""
    found = interfaces.PerturbImage.get_impls()
    times = Counter(made.__name__ for made in found)
    assert len({made.get_type_string() for made in found}) == len(found)
    page = (Path(__file__).resolve().parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
    assert [name for name, count in times.items() if count > 1 and f"`{name}`" not in page] == []


def test_pixels_and_boxes() -> None:
    perturber = perturbers["fog"](severity=2.5, seed=4)
    alone = blemish.Corrupt("fog", 2.5, seed=4)
    boxes = [(object(), {"cat": 0.5})]
    before = image()
    after, same = perturber(image=before, boxes=boxes)
    np.testing.assert_array_equal(after, alone(image()))
    np.testing.assert_array_equal(before, image())
    assert same is boxes
    np.testing.assert_array_equal(perturber(image=before, id=7)[0], alone(image(), id=7))
    np.testing.assert_array_equal(perturber(image=before, id="a", note=1)[0], alone(image(), id=blemish.hash_id("a")))
    gray, _ = perturber(image=before[..., 0])
    np.testing.assert_array_equal(gray, alone(before[..., 0]))


@pytest.mark.parametrize("name", ["fog", "noc:border", "lp:linf"])
def test_configurations_come_back(name: str) -> None:
    kind = perturbers[name]
    perturber = kind(severity=2, seed=3, preset="cifar") if name in ("fog", "noc:border") else kind(seed=3)
    again = kind.from_config(perturber.get_config())
    np.testing.assert_array_equal(again(image=image())[0], perturber(image=image())[0])
    assert name in (kind.__doc__ or "")


def test_in_nrtks_own_tools() -> None:
    factories = foreign("nrtk.impls.perturb_factory")
    fog = perturbers["fog"]
    steps = factories.PerturberStepFactory(perturber=fog, theta_key="severity", start=1, stop=4, step=1)
    severities = [perturber.get_config()["severity"] for perturber in steps]
    assert severities == [1, 2, 3]
    maite = foreign("nrtk.interop").MAITEImageClassificationAugmentation(augment=fog(severity=3), augment_id="fog")
    chw = image().transpose(2, 0, 1)
    images, _, _ = maite(([chw], [np.array([1.0])], [{"id": "a"}]))
    np.testing.assert_array_equal(
        images[0].transpose(1, 2, 0), blemish.Corrupt("fog", 3)(image(), id=blemish.hash_id("a"))
    )


def test_refusals() -> None:
    with pytest.raises(InputError, match="severity 7"):
        perturbers["fog"](severity=7)
    with pytest.raises(InputError, match="float images with values in"):
        perturbers["fog"]()(image=image().astype(np.float32))


def test_names_are_those_of_the_module() -> None:
    import blemish.integrations.nrtk as module

    assert module.FogPerturber is perturbers["fog"]
    assert perturbers["noc:border"].__name__ == "NocBorderPerturber"
