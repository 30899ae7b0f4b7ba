"""Walks: the release's order of corruptions, ends as asked, and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.studies.streams.levels import LEVELS
from blemish.studies.streams.planning import PathRule, make_walk, usable_corruptions
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import Walk, read_walk

NAMES = ("gaussian_noise", "shot_noise", "impulse_noise", "contrast")


def surfaces(names: tuple[str, ...] = NAMES) -> dict[tuple[str, str], Surface]:
    ramp = np.linspace(0, 1, 21)
    found = {}
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            if first != second:
                values = 0.8 * np.exp(-(1 + 0.2 * i) * ramp[:, None] - (1 + 0.2 * j) * ramp[None, :])
                found[first, second] = Surface(first, second, np.rint(values * 1000) / 1000, 1000)
    return found


SURFACES, RULE = surfaces(), PathRule(0.4)


def visited(walk: Walk) -> list[tuple[str, str]]:
    return list(dict.fromkeys((s.segment, s.first, s.second) for s in walk.steps))


@pytest.mark.parametrize(
    ("seed", "order"),
    [
        # The release's own draws: random.seed(seed), then choice over its list, again while both are equal.
        (43, "gaussian impulse shot contrast impulse gaussian contrast"),
        (44, "contrast gaussian shot contrast shot impulse gaussian shot"),
        (45, "impulse contrast impulse gaussian impulse gaussian"),
    ],
)
def test_the_releases_order(seed: int, order: str) -> None:
    assert LEVELS["hard"].corruptions == NAMES
    expected = [word if word == "contrast" else f"{word}_noise" for word in order.split()]
    walk = make_walk(SURFACES, RULE, images=9 * 30 * 1000, speed=1000, seed=seed)
    assert [first for _, first, _ in visited(walk)][: len(expected)] == expected


def test_segments_follow_one_another() -> None:
    walk = make_walk(SURFACES, RULE, images=3000, speed=10, seed=7)
    assert len(walk) >= 3000
    for (_, _, second), (_, first, _) in zip(visited(walk), visited(walk)[1:], strict=False):
        assert first == second
    for before, after in zip(walk.steps, walk.steps[1:], strict=False):
        if before.segment == after.segment:
            change = (after.first_severity - before.first_severity, after.second_severity - before.second_severity)
            assert change in ((-0.25, 0.0), (0.0, 0.25))
        else:
            assert before.first_severity == 0
            assert after.second_severity == 0
    assert walk.accuracy == pytest.approx(0.4, abs=0.03)
    assert walk.step_at(0) == 0
    assert walk.step_at(10) == 1
    assert walk.step_at(len(walk) - 1) == len(walk.steps) - 1


def test_ends_as_asked() -> None:
    walk = make_walk(SURFACES, RULE, images=500, speed=10, seed=1, start="contrast", end="shot_noise")
    assert walk.steps[0].first == "contrast"
    assert walk.steps[-1].second == "shot_noise"
    assert not walk.closed
    closed = make_walk(SURFACES, RULE, images=500, speed=10, seed=1, closed=True)
    assert closed.steps[0].first == closed.steps[-1].second
    assert closed.closed
    named = make_walk(SURFACES, RULE, images=500, speed=10, seed=1, closed=True, start="contrast")
    assert named.steps[0].first == named.steps[-1].second == "contrast"


def test_seeds_and_speeds() -> None:
    one, two = (make_walk(SURFACES, RULE, images=500, speed=10, seed=seed) for seed in (1, 2))
    assert one == make_walk(SURFACES, RULE, images=500, speed=10, seed=1)
    assert one != two
    assert {step.images for step in make_walk(SURFACES, RULE, images=500, speed=25).steps} == {25}


def test_files(tmp_path: Path) -> None:
    walk = make_walk(SURFACES, RULE, images=500, speed=10, seed=1, closed=True, repair=True)
    (tmp_path / "walk.json").write_text(walk.to_json(), encoding="utf-8")
    assert read_walk(tmp_path / "walk.json") == walk
    assert walk.protocol.repair
    data = json.loads(walk.to_json())
    data["steps"][0][0] = "fogg"
    with pytest.raises(InputError, match="did you mean fog"):
        Walk.from_json(json.dumps(data))
    data["steps"][0][0] = "fog"
    data["steps"][0][1] = 7
    with pytest.raises(InputError, match="severity 7"):
        Walk.from_json(json.dumps(data))
    with pytest.raises(InputError, match="not a walk"):
        Walk.from_json("{}")
    with pytest.raises(InputError, match="no such file"):
        read_walk(tmp_path / "gone.json")


def test_corruptions_that_cannot_hold_the_target() -> None:
    """Brightness never gets below 60 %: no path over it holds 40 %."""
    ramp = np.linspace(0, 1, 21)
    known = surfaces()
    for other in NAMES:
        flat = np.rint(1000 * (0.8 - 0.2 * ramp[:, None]) * np.exp(-ramp[None, :])) / 1000
        known["brightness", other] = Surface("brightness", other, flat, 1000)
        known[other, "brightness"] = Surface(other, "brightness", flat.T, 1000)
    assert usable_corruptions(known, 0.4, tolerance=0.03) == NAMES
    assert set(usable_corruptions(known, 0.4, tolerance=0.25)) == {*NAMES, "brightness"}
    assert usable_corruptions(known, 0.4, tolerance=0.03, names=NAMES[:2]) == NAMES[:2]
    with pytest.raises(InputError, match=r"no corruption holds 0 % within 1 points"):
        usable_corruptions(known, 0.0, tolerance=0.01)


def test_refusals() -> None:
    with pytest.raises(InputError, match="'fog' is not among"):
        make_walk(SURFACES, RULE, images=10, speed=1, start="fog")
    with pytest.raises(InputError, match="expected it to end where it begins"):
        make_walk(SURFACES, RULE, images=10, speed=1, start="contrast", end="shot_noise", closed=True)
    with pytest.raises(InputError, match="0 for speed"):
        make_walk(SURFACES, RULE, images=10, speed=0)
    with pytest.raises(InputError, match=r"contrast\+fog"):
        make_walk(SURFACES, RULE, images=10, speed=1, names=("contrast", "fog"))
    with pytest.raises(InputError, match="at least two"):
        make_walk(SURFACES, RULE, images=10, speed=1, names=("contrast",))
