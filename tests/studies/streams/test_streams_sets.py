"""Sets: the rules they were published with, names of our own, and how many images they show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.core.errors import InputError
from blemish.studies.streams.commands.ccc import ccc_app
from blemish.studies.streams.images import image_list
from blemish.studies.streams.levels import LEVELS, SEEDS, SETS, find_set
from blemish.studies.streams.planning import PathRule, make_walk
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.walks import read_walk

OURS = [name for name in SETS if name.endswith("-smooth")]
PUBLISHED = [name for name in SETS if name not in OURS]


def test_the_published_sets() -> None:
    """The release's lists: 14, 13 and 4 corruptions; the workshop paper's 15, targets and speeds."""
    assert PUBLISHED == ["easy", "medium", "hard", "ccc-5k", "ccc-50k"]
    assert [len(level.corruptions) for level in LEVELS.values()] == [14, 13, 4]
    assert [level.targets for level in LEVELS.values()] == [(0.4,), (0.2,), (0.0,)]
    for level in LEVELS.values():
        assert (level.objective, level.ends, level.closed) == ("reference", "independent", False)
        assert (level.speeds, level.images, level.seeds) == ((1000, 2000, 5000), 7_500_000, SEEDS)
    for name in ("ccc-5k", "ccc-50k"):
        assert len(SETS[name].corruptions) == 15
        assert SETS[name].targets == (0.2, 0.3, 0.4)
        assert SETS[name].speeds == (5000, 10_000, 20_000)
        assert SETS[name].images == 750_000
        assert (SETS[name].objective, SETS[name].ends, SETS[name].closed) == ("mean", "independent", True)
    assert (find_set("ccc-5k").subset, find_set("ccc-50k").subset) == (5000, None)
    with pytest.raises(InputError, match="unknown set"):
        find_set("ccc-500k")


def test_ours_have_other_names_and_differ_in_the_rule_alone() -> None:
    assert [f"{name}-smooth" for name in PUBLISHED] == OURS
    for name in PUBLISHED:
        theirs, ours = vars(SETS[name]), vars(SETS[f"{name}-smooth"])
        assert (ours["objective"], ours["ends"], ours["source"]) == ("pointwise", "joint", "")
        same = {"corruptions", "targets", "speeds", "images", "closed", "subset"}
        assert {key: theirs[key] for key in same} == {key: ours[key] for key in same}
        assert SETS[name].source


def surfaces(names: tuple[str, ...]) -> dict[tuple[str, str], Surface]:
    ramp = np.linspace(0, 1, 5)
    falls = np.rint(100 * 0.8 * np.exp(-ramp[:, None] - ramp[None, :])) / 100
    grid = (0.0, 1.25, 2.5, 3.75, 5.0)
    return {(a, b): Surface(a, b, falls, 100, grid) for a in names for b in names if a != b}


def test_what_is_not_of_a_set_is_named() -> None:
    hard = SETS["hard"]
    planes = surfaces(hard.corruptions)
    walk = make_walk(planes, hard.rule(0.0), images=7_500_000, speed=5000, seed=44)
    assert hard.changes(walk) == []
    rule = PathRule(0.1, seam_weight=0.5)
    changed = make_walk(planes, rule, images=70, speed=5, seed=4, names=hard.corruptions[:2], closed=True)
    assert hard.changes(changed) == [
        "objective pointwise instead of reference",
        "ends joint instead of independent",
        "seam weight 0.5 instead of 0.04",
        "target 0.1 instead of 0.0",
        "images 70 instead of 7500000",
        "speed 5 instead of 1000, 2000, 5000",
        "closed True instead of False",
        "seed 4 instead of 43, 44, 45",
        "2 corruptions instead of its 4",
    ]
    # The workshop paper names no seeds.
    workshop = SETS["ccc-50k"]
    other = make_walk(
        surfaces(workshop.corruptions), workshop.rule(0.3), images=750_000, speed=5000, seed=4, closed=True
    )
    assert workshop.changes(other) == []


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo network under the four corruptions of the hard level, on a coarse grid."""
    place = tmp_path_factory.mktemp("sets")
    common = ("-m", "demo:plain", "-d", "demo:digits", "--device", "cpu", "--step", 2.5, "-n", 30)
    code, said = invoke("calibrate", *common, "--set", "hard", "-o", place / "cal")
    assert code == 0, said
    return place


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(ccc_app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


class TestCommands:
    def test_a_set_has_its_own_rule(self, calibrated: Path) -> None:
        walk = ("walk", calibrated / "cal", "--length", 40, "--speed", 10, "-o", calibrated / "walk.json")
        for name, expected in (("hard", ("reference", "independent")), ("hard-smooth", ("pointwise", "joint"))):
            code, said = invoke(*walk, "--set", name)
            assert code == 0, said
            made = read_walk(calibrated / "walk.json").protocol
            assert (made.objective, made.ends, made.set, made.subset) == (*expected, name, None)
            assert made.changed == ("images 40 instead of 7500000", "speed 10 instead of 1000, 2000, 5000")
            assert f"not {name} as it is defined: images 40 instead" in said

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ("--set", "hard", "--objective", "pointwise"),
                "--objective pointwise with --set hard, whose rule is reference; hard-smooth has the same corruptions",
            ),
            (("--set", "hard", "--objective", "mean"), "--objective mean with --set hard, whose rule is reference\n"),
            (("--set", "hard", "--ends", "joint"), "--ends joint with --set hard, whose paths have independent ends"),
            (("--target", "0.3", "--ends", "meeting"), "--ends meeting; expected one of joint, independent"),
            (("--set", "ccc-5k"), "no target accuracy; expected --target; ccc-5k has 0.2, 0.3, 0.4"),
            (("--target", "0.3", "--objective", "reference", "--ends", "joint"), "joint ends with the release's rule"),
        ],
    )
    def test_refusals(self, calibrated: Path, options: tuple[str, ...], message: str) -> None:
        code, said = invoke("walk", calibrated / "cal", *options, "-o", calibrated / "none.json")
        assert code == 2
        assert message in said
        assert not (calibrated / "none.json").exists()

    def test_the_usual_rule_is_ours(self, calibrated: Path) -> None:
        walk = ("walk", calibrated / "cal", "--length", 40, "--target", 0.3, "-o", calibrated / "own.json")
        for options, expected in (
            ((), ("pointwise", "joint")),
            (("--objective", "mean"), ("mean", "joint")),
            (("--objective", "reference"), ("reference", "independent")),
            (("--ends", "independent"), ("pointwise", "independent")),
        ):
            code, said = invoke(*walk, *options)
            assert code == 0, said
            assert f"{expected[0]} paths, {expected[1]} ends" in said
            assert "as it is defined" not in said


def test_five_thousand_images_are_implied(tmp_path: Path) -> None:
    """Of a source with more, 5,000 are shown, and the header has the digest of the list; of fewer, it is said."""
    side, count = 8, 5003
    levels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)
    np.savez(tmp_path / "many.npz", images=levels, labels=np.arange(count) % 10)
    np.savez(tmp_path / "few.npz", images=levels[:40], labels=np.arange(40) % 10)
    net = ("-m", "demo:plain", "--device", "cpu")
    names = ("-c", "contrast,brightness")
    walk = ("--set", "ccc-5k", *names, "--target", 0.1, "--length", 20, "--speed", 10)
    for data in ("many", "few"):
        shown = ("-d", tmp_path / f"{data}.npz", *net)
        cal, made, run = (tmp_path / f"{data}-{what}" for what in ("cal", "walk.json", "run"))
        assert invoke("calibrate", *shown, *names, "--step", 5, "-o", cal)[0] == 0
        code, said = invoke("walk", cal, *walk, "-o", made)
        assert code == 0, said
        code, said = invoke("run", made, *shown, "--methods", "none", "-o", run)
        assert code == 0, said
        header = json.loads((run / "run.json").read_text())["stream"]
        calibration = json.loads((cal / "calibration.json").read_text())
        assert header["image_list"] == calibration["image_list"]
        if data == "few":
            assert header["image_count"] == 40
            assert "ccc-5k shows 5,000 images again and again; here there are 40" in said
        else:
            assert header["image_count"] == 5000
            assert f"the authors' list is not public, ours is {header['image_list']}" in said
            assert header["image_list"] != image_list([str(number) for number in range(count)])
    # Other images than those of the calibration are refused.
    code, said = invoke(
        "run", tmp_path / "many-walk.json", "-d", tmp_path / "few.npz", *net, "--methods", "none", "-o", tmp_path / "x"
    )
    assert code == 2
    assert "image_list was " in said
