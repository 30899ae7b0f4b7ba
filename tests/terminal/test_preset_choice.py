"""What commands say of the severity tables that they use."""

from __future__ import annotations

import pytest

import blemish
from blemish.terminal.corruptions import preset_choice

BY_SIZE = "(nearest to the shorter side: cifar 32, imagenet64 64, imagenet 224, inception 299; here 32 px)"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["laion:glitched", "human:contrast"], "severities: one table for all image sizes"),
        (["fog", "laion:glitched"], f"preset: cifar {BY_SIZE}"),
        (
            ["med:bubble", "med:black_corner"],
            "preset: of medical corruptions the first data set that has settings (pathmnist, dermamnist)",
        ),
        (
            ["med:bubble", "fog"],
            f"preset: cifar {BY_SIZE}; of medical corruptions the first data set that has settings (pathmnist)",
        ),
    ],
)
def test_what_is_chosen_for_each_kind_of_table(names: list[str], said: str) -> None:
    """MedMNIST-C has no black corners for PathMNIST: its first data set with them is DermaMNIST."""
    assert preset_choice([blemish.catalog[name] for name in names], None, 32) == said


def test_a_preset_that_was_asked_for() -> None:
    assert preset_choice([blemish.catalog["fog"]], "imagenet", 32) == "preset: imagenet (as asked)"
