"""What a call refuses and says, how it shares out a batch, and how the catalog answers."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import blemish
from blemish import Catalog, Corruption, InputError, SeverityTable, catalog
from blemish.benchmarks.benchmark import Protocol
from blemish.core.resampling import Bootstrap
from blemish.corruptions import base
from blemish.corruptions.base import per_image, quantise
from blemish.corruptions.compose import random_severity
from blemish.export.recipe import make_recipe
from blemish.export.sequences import make_sequence_recipe
from blemish.studies.overlap.plan import Plan
from pictures import pictures

NOISE = catalog["gaussian_noise"]


def blank(*shape: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    return torch.zeros(shape, dtype=dtype)


def with_value(value: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Gray images with one wrong value in the last of them."""
    images = torch.full((2, 3, 9, 9), 0.5, dtype=dtype)
    images[1, 2, 8, 8] = value
    return images


BAD_IMAGES = {
    "one image": (blank(3, 32, 32), "shape (3, 32, 32); expected (batch, channels, height, width)"),
    "a video": (blank(1, 2, 3, 32, 32), "shape (1, 2, 3, 32, 32)"),
    "no images": (blank(0, 3, 32, 32), "an empty batch; expected at least one image"),
    "no float images": (blank(0, 3, 32, 32, dtype=torch.float32), "an empty batch"),
    "no channels": (blank(1, 0, 32, 32), "0 channels"),
    "two channels": (blank(1, 2, 32, 32), "2 channels (shape (1, 2, 32, 32)); expected 1 or 3"),
    "four channels": (blank(1, 4, 32, 32), "4 channels"),
    "channels last": (blank(1, 32, 32, 3), "32 channels"),
    "too narrow": (blank(1, 3, 32, 7), "32×7 pixels; expected at least 8×8"),
    "too low": (blank(1, 1, 7, 32), "7×32 pixels"),
    "no pixels": (blank(1, 3, 0, 0), "0×0 pixels"),
    "int64": (blank(1, 3, 32, 32, dtype=torch.int64), "type torch.int64; expected uint8, or float in [0, 1]"),
    "int8": (blank(1, 3, 32, 32, dtype=torch.int8), "type torch.int8"),
    "bool": (blank(1, 3, 32, 32, dtype=torch.bool), "type torch.bool"),
    "complex": (blank(1, 3, 32, 32, dtype=torch.complex64), "type torch.complex64"),
    "normalised": (pictures(1, 3, 16, 16) / 127.5 - 1, "(normalise afterwards)"),
    "levels as float": (pictures(1, 3, 16, 16).float(), "(divide 0–255 levels by 255)"),
    "above 1": (with_value(1.001), "values in [0.5, 1.001]; expected all in [0, 1]"),
    "below 0": (with_value(-0.25), "values in [-0.25, 0.5]"),
    "half precision above 1": (with_value(2, torch.float16), "values in [0.5, 2]"),
    "double precision below 0": (with_value(-1e-9, torch.float64), "values in [-1e-09, 0.5]"),
    "not a number": (with_value(torch.nan), "not-a-number values; expected all in [0, 1]"),
    "infinite": (with_value(torch.inf), "values in [0.5, inf]"),
    "minus infinite": (with_value(-torch.inf), "values in [-inf, 0.5]"),
}


@pytest.mark.parametrize("case", BAD_IMAGES)
def test_bad_images_are_refused_at_any_severity(case: str) -> None:
    images, message = BAD_IMAGES[case]
    for severity in (0, 3):
        with pytest.raises(InputError, match=re.escape(message)):
            NOISE(images, severity=severity)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (2, 3, 8, 9)])
def test_the_smallest_images_of_every_type_pass(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    images = blank(*shape, dtype=dtype)
    images[..., ::2] = 1
    found = NOISE(images, severity=3)
    assert found.shape == images.shape
    assert found.dtype == dtype


BAD_SEVERITIES: dict[str, tuple[Any, str]] = {
    "below 0": (-0.001, "severity -0.001; expected a number in 0 … 5"),
    "above 5": (5.001, "severity 5.001; expected a number in 0 … 5"),
    "not a number": (float("nan"), "severity nan"),
    "infinite": (float("inf"), "severity inf"),
    "one bad of three": ([1, 7, 2], "severity 7"),
    "one not a number": (torch.tensor([1, torch.nan, 2]), "severity nan"),
    "two for three": ([1, 2], "severities of shape (2,) for 3 images; expected one per image"),
    "four for three": (torch.ones(4), "severities of shape (4,) for 3 images"),
    "none": ([], "severities of shape (0,) for 3 images"),
    "a column": ([[1], [2], [3]], "severities of shape (3, 1) for 3 images"),
    "a word": ("hard", "severity 'hard'; expected a number in 0 … 5, or one per image"),
    "nothing": (None, "severity None"),
    "ragged": ([1, [2], 3], "severity [1, [2], 3]"),
    "true": (True, "severity True; expected a number in 0 … 5, or one per image"),
    "true among numbers": ([1, True, 2.5], "severity [1, True, 2.5]"),
    "NumPy's true": (np.True_, f"severity {np.True_!r}"),
    "truths of torch": (torch.tensor([True, False, True]), "severity tensor([ True, False,  True])"),
    "truths of NumPy": (np.array([True, False, True]), "severity array([ True, False,  True])"),
    "complex": (1j, "severity 1j"),
    "complex values": (torch.ones(3, dtype=torch.complex64), "severity tensor([1.+0.j"),
    "complex array": (np.ones(3, dtype=complex), "severity array([1.+0.j"),
    "beyond floats": (10**400, "severity 1000000000…0000000000 (401 characters); expected a number in 0 … 5"),
    "one beyond floats": ([1, 10**400, 2], "severity [1, 100000…"),
    "beyond what Python writes": (10**5000, "severity <int, too long to write>; expected"),
    "hardly above 5": (5.0000001, "severity 5.0000001; expected a number in 0 … 5"),
}


@pytest.mark.parametrize("case", BAD_SEVERITIES)
def test_bad_severities_are_refused(case: str) -> None:
    severity, message = BAD_SEVERITIES[case]
    for corruption in (NOISE, random_severity(NOISE)):
        with pytest.raises(InputError, match=re.escape(message)):
            corruption(blank(3, 3, 16, 16), severity=severity)
    # Pictures of several sizes, whose severities are shared out first.
    sizes = [Image.new("RGB", (16, side)) for side in (16, 16, 20)]
    with pytest.raises(InputError, match=re.escape(message)):
        blemish.corrupt(sizes, NOISE, severity=severity)


@pytest.mark.parametrize("seed", [pytest.param(10**5000, id="huge"), 2**64, -(2**63) - 1, 1.5, "1", None, True])
def test_bad_seeds_are_refused(seed: Any) -> None:
    image = blank(1, 3, 16, 16)
    calls: list[Callable[[], object]] = [
        lambda: NOISE(image, severity=1, seed=seed),
        lambda: blemish.corrupt(image, NOISE, severity=1, seed=seed),
        lambda: blemish.Corrupt(NOISE, 1, seed=seed),
        lambda: blemish.sequences["p:shot_noise"].frame(image, 1, seed=seed),
        lambda: Protocol(seed=seed),
        lambda: make_recipe(["fog"], seed=seed),
        lambda: make_sequence_recipe(["p:tilt"], seed=seed),
        lambda: Plan(("fog",), seed=seed),
        lambda: Bootstrap(10, seed=seed),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"seed .{1,60}; expected a (whole number|number of 64 bits)"):
            call()


def test_the_extreme_seeds_pass() -> None:
    images = pictures(1, 3, 16, 16)
    found = [NOISE(images, severity=3, seed=seed) for seed in (-(2**63), 2**64 - 1, 0)]
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])


@pytest.mark.parametrize(
    "severity", [[3, 3.0], (3, 3), torch.tensor([3, 3]), torch.full((2,), 3.0), np.array([3.0, 3.0]), torch.tensor(3)]
)
def test_severities_of_every_kind_pass(severity: Sequence[float] | Tensor) -> None:
    images = pictures(2, 3, 16, 16)
    assert torch.equal(NOISE(images, severity=severity), NOISE(images, severity=3))


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("shot_noise", 1e-9),
        ("shot_noise", 1e-30),
        ("shot_noise", 1e-37),
        ("shot_noise", 1e-310),
        ("defocus_blur", 1e-9),
        ("defocus_blur", 1e-100),
        ("defocus_blur", 1e-200),
    ],
)
def test_next_to_nothing_changes_next_to_nothing(name: str, severity: float) -> None:
    """The two whose parameters are divisors, which severity 0 makes infinite or 0."""
    images = pictures(1, 3, 32, 32)
    assert (catalog[name](images, severity=severity).int() - images.int()).abs().max() <= 1


@pytest.mark.parametrize(
    ("ids", "count"), [([1, 2], 2), ([1, 2, 3, 4], 4), ([], 0), (torch.arange(2), 2), (range(4), 4), (iter([1]), 1)]
)
def test_as_many_ids_as_images(ids: Any, count: int) -> None:
    with pytest.raises(InputError, match=f"{count} ids for 3 images; expected one id per image"):
        NOISE(blank(3, 3, 16, 16), severity=1, ids=ids)


def test_ids_of_every_kind_pass() -> None:
    images = pictures(3, 3, 16, 16)
    expected = NOISE(images, severity=3, ids=[5, 7, 9])
    assert not torch.equal(expected, NOISE(images, severity=3))
    for ids in ((5, 7, 9), range(5, 10, 2), iter([5, 7, 9]), torch.tensor([5, 7, 9]), np.array([5, 7, 9])):
        assert torch.equal(NOISE(images, severity=3, ids=ids), expected)


def test_every_other_id_of_a_tensor_passes() -> None:
    images = pictures(3, 3, 16, 16)
    expected = NOISE(images, severity=3, ids=[5, 7, 9])
    assert torch.equal(NOISE(images, severity=3, ids=torch.arange(5, 11)[::2]), expected)


def test_unknown_presets_are_refused_and_the_known_ones_named() -> None:
    for severity in (0, 1):
        message = "unknown preset 'tiny'; expected one of imagenet, inception, imagenet64, cifar"
        with pytest.raises(InputError, match=message):
            NOISE(blank(1, 3, 16, 16), severity=severity, preset="tiny")


def test_a_corruption_with_one_severity_refuses_others() -> None:
    only = replace(NOISE, name="only", only_severity=3.0)
    images = pictures(2, 3, 16, 16)
    assert torch.equal(only(images, severity=0), images)
    assert torch.equal(only(images, severity=[0, 3])[0], images[0])
    with pytest.raises(InputError, match=re.escape("only at severity 2.5; it exists at severity 3 only")):
        only(images, severity=[3, 2.5])


def test_a_stream_of_another_name_gives_that_ones_draws() -> None:
    images = pictures(2, 3, 16, 16)
    expected = NOISE(images, severity=3)
    assert not torch.equal(replace(NOISE, name="other")(images, severity=3), expected)
    assert torch.equal(replace(NOISE, name="other", stream="gaussian_noise")(images, severity=3), expected)


def test_errors_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)


class Spy:
    """A corruption's apply that writes down what it is given and changes nothing."""

    def __init__(self) -> None:
        self.calls: list[dict[str, list[float]]] = []
        self.images: list[Tensor] = []

    def __call__(self, images: Tensor, params: Mapping[str, Tensor], _: object) -> Tensor:
        self.calls.append({name: values.tolist() for name, values in params.items()})
        self.images.append(images.clone())
        return images


def spied(**settings: Any) -> tuple[Corruption, Spy]:
    """`step` counts pairs of severities and is rounded: 0, 0, 1, 2, 2, 2; `strength` is the severity."""
    spy = Spy()
    rows = tuple((step, float(n)) for n, step in enumerate((0.0, 0.0, 1.0, 2.0, 2.0, 2.0)))
    table = SeverityTable(("step", "strength"), {"any": rows}, {"any": 32}, rounded=frozenset(["step"]))
    return Corruption("spied", "test", "Writes down.", table, spy, **settings), spy


class TestParts:
    def test_images_at_severity_0_are_never_touched(self) -> None:
        corruption, spy = spied()
        corruption(pictures(4, 3, 8, 8), severity=[0, 2, 0, 1])
        assert [call["strength"] for call in spy.calls] == [[2, 1]]
        corruption(pictures(2, 3, 8, 8), severity=0)
        assert len(spy.calls) == 1

    def test_shared_parameters_are_equal_within_a_call(self) -> None:
        corruption, spy = spied(shared=("step",))
        corruption(pictures(6, 3, 8, 8), severity=[3, 1, 0, 4, 2, 5])
        assert [call["step"] for call in spy.calls] == [[0], [1], [2, 2, 2]]
        assert [call["strength"] for call in spy.calls] == [[1], [2], [3, 4, 5]]

    def test_results_return_to_their_places(self) -> None:
        corruption, spy = spied(shared=("step",))
        images = pictures(6, 3, 8, 8)
        assert torch.equal(corruption(images, severity=[3, 1, 0, 4, 2, 5]), images)
        given = torch.cat(spy.images).mul(255).round().to(torch.uint8)
        assert torch.equal(given, images[[1, 4, 0, 3, 5]])

    @pytest.mark.parametrize("severity", [3, [3, 3, 0, 3, 3, 3]])
    def test_parts_fit_the_room(self, severity: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        corruption, spy = spied()
        monkeypatch.setattr(base, "_CPU_CHUNK", 2 * 3 * 8 * 8 + 1)
        corruption(pictures(6, 3, 8, 8), severity=severity)
        sizes = [len(call["step"]) for call in spy.calls]
        assert sizes == ([2, 2, 2] if severity == 3 else [2, 2, 1])
        monkeypatch.setattr(base, "_CPU_CHUNK", 1)
        corruption(pictures(2, 3, 8, 8), severity=3)
        assert [len(call["step"]) for call in spy.calls[3:]] == [1, 1]

    def test_images_are_unit_floats_or_levels_as_asked(self) -> None:
        levels = pictures(1, 3, 8, 8)
        for uint8_io in (False, True):
            for images in (levels, levels.float() / 255, levels.double() / 255):
                corruption, spy = spied(uint8_io=uint8_io)
                corruption(images, severity=1)
                (given,) = spy.images
                if uint8_io:
                    assert given.dtype == torch.uint8
                    assert torch.equal(given, levels)
                else:
                    assert given.dtype == torch.float32
                    np.testing.assert_allclose(given.numpy(), levels.numpy() / 255, rtol=0, atol=1e-7)

    def test_float_images_go_to_the_nearest_level(self) -> None:
        """100.4 and 100.6 levels, where cutting off would give 100 twice."""
        corruption, spy = spied(uint8_io=True)
        images = torch.full((1, 1, 8, 8), 100.4 / 255)
        images[..., 4:] = 100.6 / 255
        corruption(images, severity=1)
        assert spy.images[0][0, 0, 0].tolist() == [100] * 4 + [101] * 4


class TestQuantise:
    def test_every_level_survives(self) -> None:
        """As float32 k/255, and as the product with 1/255 that a GPU makes."""
        levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
        assert torch.equal(quantise(levels.float() / 255), levels)
        assert torch.equal(quantise(levels.float() * (1 / 255)), levels)

    def test_float_noise_below_a_level_does_not_cost_it(self) -> None:
        """A ten-thousandth of a level is noise, a thousandth is not."""
        levels = torch.arange(1, 256, dtype=torch.float64)
        assert quantise(((levels - 1e-4) / 255).float()).tolist() == levels.tolist()
        assert quantise(((levels - 1e-3) / 255).float()).tolist() == (levels - 1).tolist()

    def test_values_are_cut_off_and_clipped(self) -> None:
        values = torch.tensor([-3.0, -0.001, 0.0, 0.999 / 255, 1.5 / 255, 99.99 / 255, 254.99 / 255, 1.0, 1.01, 40.0])
        assert quantise(values.clone()).tolist() == [0, 0, 0, 0, 1, 99, 254, 255, 255, 255]


def test_a_column_has_one_value_per_image() -> None:
    found = per_image(torch.tensor([1.5, 2.5], dtype=torch.float64), torch.zeros(2, 3, 8, 8))
    assert found.shape == (2, 1, 1, 1)
    assert found.dtype == torch.float32
    assert found.flatten().tolist() == [1.5, 2.5]


class TestCatalog:
    @pytest.mark.parametrize(
        ("name", "suggestion"),
        [
            ("gausian_noise", "gaussian_noise"),
            ("Fog", "fog"),
            ("motion-blur", "motion_blur"),
            ("elastic_transfrom", "elastic_transform"),
            ("brightnes", "brightness"),
        ],
    )
    def test_near_names_are_suggested(self, name: str, suggestion: str) -> None:
        with pytest.raises(InputError, match=f"unknown corruption '{name}'; did you mean .*{suggestion}") as error:
            catalog[name]
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__

    @pytest.mark.parametrize("name", ["zzz", "", 7, None])
    def test_far_names_are_answered_with_all(self, name: Any) -> None:
        """A short catalog lists its names, a long one says where to find them."""
        with pytest.raises(
            InputError, match=f"unknown corruption {name!r}; there are {len(catalog)}; see blemish list"
        ):
            catalog[name]
        small = Catalog(NOISE, catalog["fog"])
        with pytest.raises(InputError, match=f"unknown corruption {name!r}; known: gaussian_noise, fog"):
            small[name]

    def test_the_whole_benchmark_is_there_under_its_names(self) -> None:
        assert len(catalog) == len(list(catalog)) >= 19
        for name, corruption in catalog.items():
            assert corruption.name == name
            assert name in catalog
            assert catalog[name] is catalog.get(name) is corruption
        assert "gaussian" not in catalog
        assert repr(catalog).startswith("Catalog(gaussian_noise, shot_noise, ")

    def test_get_has_a_default(self) -> None:
        assert catalog.get("nothing like it") is None
        assert catalog.get("nothing like it", NOISE) is NOISE

    def test_names_are_unique(self) -> None:
        with pytest.raises(InputError, match="two corruptions are named 'fog'; names must be unique"):
            Catalog(catalog["fog"], catalog["snow"], replace(NOISE, name="fog"))

    def test_extending_leaves_the_original_alone(self) -> None:
        before = list(catalog)
        larger = catalog.extended(replace(NOISE, name="mine"))
        assert list(larger) == [*before, "mine"]
        assert list(catalog) == before

    def test_catalogs_can_be_sent_to_workers(self) -> None:
        copy = pickle.loads(pickle.dumps(catalog))
        assert list(copy) == list(catalog)
        images = pictures(1, 3, 16, 16)
        assert torch.equal(copy["shot_noise"](images, severity=2), catalog["shot_noise"](images, severity=2))

    def test_the_function_that_takes_names_uses_it(self) -> None:
        with pytest.raises(InputError, match=r"did you mean .*fog"):
            blemish.corrupt(pictures(1, 3, 16, 16), "fogg", severity=1)
