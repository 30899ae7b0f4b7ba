"""Severity tables: the published rows, what lies between them, and which preset an image gets."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import blemish
from blemish.core.rng import CounterRng, as_ids
from blemish.corruptions import severity
from blemish.corruptions.severity import SeverityTable, check_severity
from conftest import SHARED
from pictures import pictures

FACTS = SHARED / "facts" / "imagenet_c_parameters.json"

NAMES = [
    *("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    *("gaussian_blur", "glass_blur", "defocus_blur", "motion_blur", "zoom_blur"),
    *("fog", "frost", "snow", "spatter", "contrast", "brightness"),
    *("saturate", "jpeg_compression", "pixelate", "elastic_transform"),
]
PRESETS = {"cifar": 32, "imagenet64": 64, "imagenet": 224, "inception": 299}

# Row 0, from the facts about continuously changing corruptions (ccc.md). Those without an entry there have their own:
# no noise or blur, saturation as it is, and the drops of severity 1 without strength.
IDENTITY = {
    "gaussian_noise": [0],
    "shot_noise": [np.inf],
    "impulse_noise": [0],
    "speckle_noise": [0],
    "gaussian_blur": [0],
    "defocus_blur": [0, 0],
    "glass_blur": [0, 0, 0],
    "motion_blur": [0, 0],
    "zoom_blur": [1.0, 0.01],
    "fog": [0, 2],
    "frost": [1, 0],
    "snow": [0.1, 0.3, 3, 1.0, 10, 4, 1.0],
    "contrast": [1],
    "brightness": [0],
    "saturate": [1, 0],
    "jpeg_compression": [85],
    "pixelate": [1],
    "elastic_transform": [0, 999, 0],
}

# The reference scales its frost textures by preset; here that is one more parameter.
TEXTURE_SCALE = {"imagenet": 1.0, "inception": 1.0, "imagenet64": 0.3, "cifar": 0.2}


def tables(path: Path) -> dict[str, Any]:
    if not path.is_file():
        pytest.skip(f"{path} is not beside this checkout")
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def row(name: str, level: float, preset: str = "imagenet") -> list[float]:
    """The parameters that the published tables have, at one severity, in order."""
    params = blemish.catalog[name].table.at([level], preset)
    return [float(values[0]) for key, values in params.items() if key != "texture_scale"]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", NAMES)
def test_published_rows_come_out_untouched(name: str, preset: str) -> None:
    """Bit for bit, alone and beside each other, for all 19 corruptions, 4 presets and 5 severities."""
    published = tables(FACTS)
    assert published["_image_size"] == PRESETS
    assert sorted(published["parameters"]) == sorted(NAMES)
    table = blemish.catalog[name].table
    together = table.at([5, 4, 3, 2, 1], preset)
    for level, expected in enumerate(published[preset][name], start=1):
        params = table.at([level], preset)
        assert list(params)[: len(expected)] == published["parameters"][name]
        assert row(name, level, preset) == expected
        assert [float(values[5 - level]) for values in together.values()][: len(expected)] == expected
        assert all(values.dtype == torch.float64 for values in params.values())
    assert list(params)[len(expected) :] == (["texture_scale"] if name == "frost" else [])


@pytest.mark.parametrize("preset", PRESETS)
def test_row_0_is_the_identity(preset: str) -> None:
    for name, expected in IDENTITY.items():
        assert row(name, 0, preset) == expected
    first = row("spatter", 1, preset)
    assert row("spatter", 0, preset) == [*first[:4], 0, 0]


@pytest.mark.parametrize("preset", PRESETS)
def test_frost_textures_have_the_presets_scale_at_any_severity(preset: str) -> None:
    found = blemish.catalog["frost"].table.at([0, 0.3, 1, 4.7, 5], preset)["texture_scale"]
    assert found.tolist() == [TEXTURE_SCALE[preset]] * 5


# Worked by hand from the rows of the preset for 224 pixels: linear in the severity unless it says otherwise.
BETWEEN = {
    ("gaussian_noise", 0.25): [0.02],
    ("gaussian_noise", 4.5): [0.32],
    # 1/photons is linear: half of 1/60; (1/60 + 1/25)/2 = 17/600; ¾ · 1/25 + ¼ · 1/12 = 61/1200.
    ("shot_noise", 0.5): [120],
    ("shot_noise", 1.5): [600 / 17],
    ("shot_noise", 2.25): [1200 / 61],
    ("impulse_noise", 3.25): [0.11],
    ("defocus_blur", 0.5): [1.5, 0.05],
    ("defocus_blur", 4.25): [8.5, 0.5],
    # Distance and passes are rounded: 0.25 and 0.5 to 0; 1.25 to 1 and 1.75 to 2; 2.75 to 3 and 2.25 to 2.
    ("glass_blur", 0.25): [0.175, 0, 0],
    ("glass_blur", 0.75): [0.525, 1, 2],
    ("glass_blur", 1.25): [0.75, 1, 2],
    ("glass_blur", 3.75): [1.075, 3, 2],
    ("glass_blur", 4.25): [1.2, 3, 2],
    ("motion_blur", 0.5): [5, 1.5],
    ("motion_blur", 4.5): [17.5, 13.5],
    ("zoom_blur", 0.5): [1.055, 0.01],
    ("zoom_blur", 2.5): [1.185, 0.015],
    ("fog", 2.5): [2.25, 1.85],
    ("frost", 0.5): [1, 0.2],
    ("frost", 3.75): [0.6625, 0.7],
    ("snow", 0.5): [0.1, 0.3, 3, 0.75, 10, 4, 0.9],
    ("snow", 4.75): [0.55, 0.3, 3, 0.85, 12, 11, 0.575],
    ("contrast", 0.5): [0.7],
    ("brightness", 2.75): [0.275],
    # Rounded: 85 − 15 = 70; 25 − 7 · ¾ = 19.75; 18 − 3 · ¾ = 15.75; 10 − ¾ = 9.25.
    ("jpeg_compression", 0.25): [70],
    ("jpeg_compression", 1.75): [20],
    ("jpeg_compression", 2.75): [16],
    ("jpeg_compression", 4.25): [9],
    ("pixelate", 0.5): [0.8],
    ("pixelate", 4.5): [0.275],
    ("elastic_transform", 0.25): [122, 791.95, 6.1],
    ("elastic_transform", 2.5): [250.1, 10.98, 26.84],
    ("saturate", 2.5): [1.05, 0],
    ("saturate", 4.5): [12.5, 0.15],
    # Drops fade in; then water becomes mud half-way between 3 and 4.
    ("spatter", 0.5): [0.65, 0.3, 4, 0.69, 0.3, 0],
    ("spatter", 3.25): [0.65, 0.3, 1.75, 0.6725, 0.75, 0],
    ("spatter", 3.75): [0.65, 0.3, 1.25, 0.6575, 1.25, 1],
}


@pytest.mark.parametrize(("name", "level"), BETWEEN)
def test_fractional_severities_by_hand(name: str, level: float) -> None:
    np.testing.assert_allclose(row(name, level), BETWEEN[name, level], rtol=1e-12, atol=1e-15)


def test_glass_moves_pixels_by_one_at_least() -> None:
    """At ½ the distance is rounded to 0 and there is one pass, which goes to −1 … 0; at ¼ there is none."""
    glass = blemish.catalog["glass_blur"]
    rng = CounterRng(0, as_ids([0]), "glass_blur")
    assert row("glass_blur", 0.5) == [0.35, 0, 1]
    moved = glass.draw(blemish.Shape(3, 32, 32), glass.table.at([0.5], "imagenet"), rng)
    for offsets in moved:
        assert sorted(set(offsets.flatten().tolist())) == [-1, 0]
    still = glass.draw(blemish.Shape(3, 32, 32), glass.table.at([0.25], "imagenet"), rng)
    assert not any(offsets.any() for offsets in still)


# One photon more or less in 10³⁰ is nothing; what happens nearer to 0 is tested with the calls (test_base.py).
levels = st.just(0.0) | st.floats(1e-30, 5)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(NAMES), level=levels)
def test_every_parameter_lies_between_its_neighbours(preset: str, name: str, level: float) -> None:
    table = blemish.catalog[name].table
    low = min(int(level), 4)
    below, above = ({k: float(v[0]) for k, v in table.at([n], preset).items()} for n in (low, low + 1))
    for key, values in table.at([level], preset).items():
        value, bounds = float(values[0]), sorted([below[key], above[key]])
        slack = 1e-14 * abs(value) if np.isfinite(value) else 0
        assert bounds[0] - slack <= value <= bounds[1] + slack
        if below[key] != above[key] and key not in table.rounded and 0.01 < level - low < 0.99:
            assert bounds[0] < value < bounds[1]


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(NAMES), level=st.integers(0, 4), share=st.floats(0, 1), preset=st.sampled_from(list(PRESETS))
)
def test_two_severities_around_the_middle_are_as_far_from_it(name: str, level: int, share: float, preset: str) -> None:
    """Between two rows all is linear, in 1/photons too: what one gains on a row, the other loses."""
    table = blemish.catalog[name].table
    params = table.at([level, level + 1, level + share, level + 1 - share], preset)
    for key, values in params.items():
        below, above, one, other = (1 / values if key == "photons" else values).tolist()
        tolerance = 1.0 if key in table.rounded else 1e-12 * (1 + abs(below) + abs(above))
        assert abs(one + other - below - above) <= tolerance


def test_quality_distance_passes_and_mud_are_whole() -> None:
    levels = torch.linspace(0, 5, 101, dtype=torch.float64)
    whole = {"jpeg_compression": ["quality"], "glass_blur": ["max_delta", "iterations"], "spatter": ["mud"]}
    for name in NAMES:
        params = blemish.catalog[name].table.at(levels, "imagenet")
        found = [key for key, values in params.items() if torch.equal(values, values.round())]
        constant = [key for key, values in params.items() if len(set(values.tolist())) == 1]
        assert [key for key in found if key not in constant] == whole.get(name, [])


@pytest.mark.parametrize(
    ("side", "preset"),
    [
        *((8, "cifar"), (32, "cifar"), (48, "cifar"), (49, "imagenet64"), (64, "imagenet64"), (96, "imagenet64")),
        *((144, "imagenet64"), (145, "imagenet"), (224, "imagenet"), (256, "imagenet"), (261, "imagenet")),
        *((262, "inception"), (299, "inception"), (1000, "inception")),
    ],
)
def test_the_preset_is_the_nearest_to_the_shorter_side(side: int, preset: str) -> None:
    """48 is as near to 32 as to 64, and 144 to 64 as to 224: the smaller one."""
    for size in ((side, side), (side, side + 300), (side + 300, side)):
        assert blemish.nearest_preset(*size) == preset
        for name in NAMES:
            assert blemish.catalog[name].table.preset(*size) == preset


def test_a_call_takes_that_preset_unless_it_names_another() -> None:
    """A constant image and contrast about its mean would hide it; brightness adds the preset's shift."""
    brightness = blemish.catalog["brightness"]
    images = pictures(1, 3, 40, 200)
    chosen = brightness(images, severity=3)
    assert torch.equal(chosen, brightness(images, severity=3, preset="cifar"))
    assert not torch.equal(chosen, brightness(images, severity=3, preset="imagenet"))


def test_an_unknown_preset_is_refused_and_the_known_ones_are_named() -> None:
    for name in NAMES:
        with pytest.raises(blemish.InputError, match="unknown preset 'cifar10'") as error:
            blemish.catalog[name].table.at([1], "cifar10")
        assert all(preset in str(error.value) for preset in PRESETS)


def own_table() -> SeverityTable:
    """A user's: two presets, a plain, a rounded and a reciprocal parameter."""
    small = tuple((float(n), 10.0 * n, 1 / (n + 1)) for n in range(6))
    large = tuple((2.0 * n, 100.0 - n, float(n + 1)) for n in range(6))
    return SeverityTable(
        ("plain", "whole", "rare"),
        {"large": large, "small": small},
        {"small": 100, "large": 300, "unused": 200},
        rounded=frozenset(["whole"]),
        reciprocal=frozenset(["rare"]),
    )


def test_a_users_table_follows_the_same_rules() -> None:
    """In the small one 1/rare is n + 1, so at 2.3 it is 3.3; whole is 23. In the large one it is (¾ · ⅓ + ¼ · ¼)."""
    table = own_table()
    found = table.at([2.3], "small")
    assert {key: float(values[0]) for key, values in found.items()} == pytest.approx(
        {"plain": 2.3, "whole": 23, "rare": 1 / 3.3}
    )
    found = table.at([2.25, 5], "large")
    assert found["plain"].tolist() == [4.5, 10]
    assert found["whole"].tolist() == [98, 95]
    assert found["rare"].tolist() == pytest.approx([16 / 5, 6])
    assert table.preset(200, 500) == "small"
    assert table.preset(201, 500) == "large"
    with pytest.raises(blemish.InputError, match="unknown preset 'unused'; expected one of large, small"):
        table.at([1], "unused")


def test_ways_of_writing_a_table() -> None:
    """Every value; from the identity to severity 5; or the identity and a range from severity 1 to 5."""
    levels = [0, 1, 3, 5]
    listed = SeverityTable.of(width=(0, 1, 4, 9, 16, 25))
    assert listed.at(levels, "any")["width"].tolist() == [0, 1, 9, 25]
    linear = SeverityTable.linear(gain=(1, 6), share=(0, 0.5))
    assert linear.at(levels, "any")["gain"].tolist() == pytest.approx([1, 2, 4, 6])
    assert linear.at(levels, "any")["share"].tolist() == pytest.approx([0, 0.1, 0.3, 0.5])
    between = SeverityTable.between(count=(0, 10, 15), rounded=("count",))
    assert between.at([0, 1, 2, 3, 5], "any")["count"].tolist() == [0, 10, 11, 12, 15]  # 11.25 and 12.5, rounded


def test_a_preset_without_rows_has_those_of_imagenet() -> None:
    table = SeverityTable.by_preset(
        ("a", "b"), imagenet=[(n, 2 * n) for n in range(6)], cifar=[(n, 0) for n in range(6)]
    )
    assert dict(table.sizes) == PRESETS
    assert table.rows["inception"] == table.rows["imagenet64"] == table.rows["imagenet"]
    assert table.rows["imagenet"][5] == (5.0, 10.0)
    assert table.rows["cifar"][5] == (5.0, 0.0)


def test_a_table_cannot_be_changed() -> None:
    """Corruptions share tables, and all of ImageNet-C's share the sizes of the presets."""
    sizes = {"small": 100, "large": 300}
    table = replace(own_table(), sizes=sizes)
    sizes["small"] = 1000
    assert table.sizes == {"small": 100, "large": 300}
    for mapping in (table.sizes, table.rows, blemish.catalog["fog"].table.sizes, severity.PRESETS):
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping["small"] = 1  # type: ignore[index]
        with pytest.raises(TypeError, match="does not support item deletion"):
            del mapping[next(iter(mapping))]  # type: ignore[attr-defined]
        assert not {"update", "pop", "popitem", "clear", "setdefault"} & set(dir(mapping))
    with pytest.raises(FrozenInstanceError):
        table.sizes = {}  # type: ignore[misc]


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, replace, lambda table: pickle.loads(pickle.dumps(table))],
    ids=["copy", "deepcopy", "replace", "pickle"],
)
def test_a_table_can_be_copied_and_sent(again: Callable[[SeverityTable], SeverityTable]) -> None:
    fog, chained = blemish.catalog["fog"], blemish.chain((blemish.catalog["fog"], 3), (blemish.catalog["contrast"], 2))
    for table in (own_table(), fog.table, chained.table):
        found = again(table)
        assert found == table
        assert type(found) is type(table)
        assert (dict(found.sizes), dict(found.rows)) == (dict(table.sizes), dict(table.rows))
        with pytest.raises(TypeError, match="does not support item assignment"):
            found.sizes["small"] = 1  # type: ignore[index]
    assert asdict(own_table())["sizes"] == {"small": 100, "large": 300, "unused": 200}


def test_the_last_row_is_not_a_sum() -> None:
    """10¹⁷ + (1 − 10¹⁷) is 0 in floating point."""
    table = SeverityTable(("a",), {"any": ((0.0,), (0.0,), (0.0,), (0.0,), (1e17,), (1.0,))}, {"any": 32})
    assert table.at([5], "any")["a"].tolist() == [1.0]


def test_a_table_without_presets_serves_for_all_of_them() -> None:
    """But not for a name that is nobody's."""
    table = replace(own_table(), rows={"any": own_table().rows["small"]}, sizes={"any": 0})
    for preset in ("any", *PRESETS):
        assert table.at([2], preset)["whole"].tolist() == [20]
    assert table.preset(500, 500) == "any"
    with pytest.raises(blemish.InputError, match="unknown preset 'small'; expected one of imagenet, inception"):
        table.at([2], "small")


@pytest.mark.parametrize("value", [0, 5, 2.5, np.float32(2.5), torch.tensor(2.5)])
def test_numbers_up_to_five_are_severities(value: float) -> None:
    assert check_severity(value) == float(value)
    assert type(check_severity(value)) is float


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-0.1, "-0.1"), (5.01, "5.01"), (np.inf, "inf"), (np.nan, "nan"), ("3", "'3'"), (True, "True"), (None, "None")],
)
def test_anything_else_is_refused(value: object, shown: str) -> None:
    with pytest.raises(blemish.InputError, match=f"^severity {shown}; expected a number in 0 … 5$"):
        check_severity(value)


def test_severities_beside_each_other_do_not_mix() -> None:
    levels = [0.0, 0.1, 1.0, 1.7, 3.0, 4.999, 5.0, 2.5]
    for name in NAMES:
        table = blemish.catalog[name].table
        together = table.at(torch.tensor(levels, dtype=torch.float64), "cifar")
        for i, level in enumerate(levels):
            alone = table.at([level], "cifar")
            assert [v[i].item() for v in together.values()] == [v[0].item() for v in alone.values()]
