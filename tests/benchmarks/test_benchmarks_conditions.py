"""Conditions as text, and what they do to images."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import blemish
from blemish.benchmarks.condition import CLEAN, Condition, Step, parse_condition
from blemish.core.errors import InputError

ANY_SEVERITY = [name for name, corruption in blemish.catalog.items() if corruption.only_severity is None]
LEVELS = st.floats(0, 5, exclude_min=True)
STEPS = st.builds(lambda name, level: Step(name, level, level), st.sampled_from(ANY_SEVERITY), LEVELS)
RANGES = st.builds(lambda name, a, b: Step(name, min(a, b), max(a, b)), st.sampled_from(ANY_SEVERITY), LEVELS, LEVELS)
SEQUENCES = st.builds(
    lambda name, level: Step(name, level, level), st.sampled_from([*blemish.sequences]), st.integers(1, 3).map(float)
)
CONDITIONS = st.one_of(
    st.just(CLEAN),
    st.lists(STEPS, min_size=1, max_size=3).map(lambda steps: Condition(tuple(steps))),
    RANGES.map(lambda step: Condition((step,))),
    SEQUENCES.map(lambda step: Condition((step,))),
    st.sampled_from(["natural:imagenet-a", "clean:objectnet"]).map(lambda text: Condition(other=text)),
)


@given(CONDITIONS)
def test_text_and_back(condition: Condition) -> None:
    assert parse_condition(str(condition)) == condition


@given(CONDITIONS, CONDITIONS)
def test_file_names_are_plain_and_differ(one: Condition, other: Condition) -> None:
    assert not set(one.slug) & set('/\\:*?"<>| ')
    assert (one.slug == other.slug) == (one == other)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fog", "expected clean, NAME@SEVERITY"),
        ("fogg@3", "did you mean fog"),
        ("fog@6", "severity 6"),
        ("fog@0", "write clean instead"),
        ("fog@-1", "expected clean, NAME@SEVERITY"),
        ("fog@4-2", "low ≤ high"),
        ("fog@1-5+snow@2", "cannot be part of a chain"),
        ("p:tilt@4", "difficulty 1, 2 or 3"),
        ("p:tilt@1+fog@1", "sequence alone"),
        ("syn2nat:invert@3", "exists at severity 5 only"),
        ("", "expected clean, NAME@SEVERITY"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason.replace("(", r"\(")):
        parse_condition(text)


def images() -> torch.Tensor:
    return torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


def test_a_single_step_is_the_corruption_itself() -> None:
    batch, ids = images(), torch.arange(4)
    made = parse_condition("fog@2.5").apply(batch, seed=3, ids=ids)
    assert torch.equal(made, blemish.corrupt(batch, "fog", severity=2.5, seed=3))


def test_several_steps_are_a_chain() -> None:
    batch, ids = images(), torch.arange(4)
    made = parse_condition("fog@2+contrast@1").apply(batch, seed=3, ids=ids)
    foggy = blemish.corrupt(batch, "fog", severity=2, seed=3)
    assert torch.equal(made, blemish.corrupt(foggy, "contrast", severity=1, seed=3))


def test_a_range_is_drawn_for_each_image() -> None:
    batch = torch.full((64, 3, 32, 32), 128, dtype=torch.uint8)
    made = parse_condition("brightness@1-5").apply(batch, seed=0, ids=torch.arange(64))
    assert len({int(image.max()) for image in made}) > 20
    again = parse_condition("brightness@1-5").apply(batch[10:20], seed=0, ids=torch.arange(10, 20))
    assert torch.equal(made[10:20], again)


def test_clean_images_pass_untouched() -> None:
    batch = images()
    assert CLEAN.apply(batch, seed=0, ids=torch.arange(4)) is batch


def test_severity_and_group() -> None:
    assert parse_condition("fog@3").severity == 3
    assert parse_condition("fog@1-3").severity is None
    assert parse_condition("p:tilt@1").severity is None
    assert parse_condition("fog@3+snow@1").group == "fog+snow"
    assert parse_condition("noc:border@1-5").group == "noc:border"
