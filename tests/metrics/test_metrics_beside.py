"""Published accuracies beside a run: the data, where a model falls below people, and the tables of a page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.evaluation.runs import Run
from blemish.metrics.beside import Beside, falls_below
from blemish.metrics.compare import compare
from blemish.metrics.references import Level, reference_named, references
from blemish.metrics.scores import score
from command_line import invoke
from synthetic_runs import write_run

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "published"
PEOPLE = reference_named("human-16")
SETS = {
    "human:colour": "colour",
    "human:contrast": "contrast",
    "human:uniform_noise": "uniform-noise",
    "human:low_pass": "low-pass",
    "human:high_pass": "high-pass",
    "human:phase_noise": "phase-scrambling",
    "human:power_equalisation": "power-equalisation",
    "human:rotation": "rotation",
    "human:false_colour": "false-colour",
}


class TestReferences:
    def test_people_are_the_published_ones(self) -> None:
        """Right answers and trials of model-vs-human, aggregated from its raw data."""
        if not PUBLISHED.is_dir():
            pytest.skip("the published tables are not beside this checkout")
        sets = json.loads((PUBLISHED / "human_16class.json").read_text(encoding="utf-8"))["sets"]
        assert SETS.keys() == PEOPLE.levels.keys()
        for corruption, name in SETS.items():
            theirs = sets[name]["conditions"]
            ours = PEOPLE.levels[corruption]
            assert [(v.correct, v.trials, v.counted, v.kappa) for v in ours] == [
                (c["correct"], c["trials"], c["in_benchmark"], c["kappa_between_observers"]) for c in theirs
            ]
            assert [v.accuracy for v in ours] == pytest.approx([c["accuracy"] for c in theirs], abs=6e-5)

    def test_laion_c_is_the_published_leaderboard(self) -> None:
        if not PUBLISHED.is_dir():
            pytest.skip("the published tables are not beside this checkout")
        theirs = json.loads((PUBLISHED / "laion_c.json").read_text(encoding="utf-8"))["leaderboard"]
        ours = reference_named("laion-c").rows
        assert [(r.name, r.kind, r.accuracy) for r in ours] == [(r["name"], r["kind"], r["accuracy"]) for r in theirs]

    @pytest.mark.parametrize("corruption", list(SETS))
    def test_each_level_is_a_condition_of_the_benchmark(self, corruption: str) -> None:
        """Which severity stands for which level is said by the stimuli themselves."""
        conditions = {str(condition) for condition in load_benchmark("human-16").conditions}
        control, *levels = PEOPLE.levels[corruption]
        assert (control.severity, control.counted) == (0, False)
        assert tuple(item.severity for item in levels) == catalog[corruption].severities
        for item in (control, *levels):
            assert item.condition in conditions
        for item in levels:
            assert item.condition == f"{corruption}@{item.severity:g}"

    def test_levels_are_the_parameters_of_their_severities(self) -> None:
        """What observers saw, in words, is what the corruption's table has there."""
        parameter = {"human:contrast": ("contrast", 100), "human:low_pass": ("sigma", 1)}
        for corruption, (name, factor) in parameter.items():
            for item in PEOPLE.levels[corruption][1:]:
                value = catalog[corruption].table.at([item.severity], "any")[name].item()
                assert item.level.split()[0] == f"{factor * value:g}"

    def test_unknown(self) -> None:
        assert references() == ("laion-c", "human-16")
        with pytest.raises(InputError, match="no published accuracies are called 'human'"):
            reference_named("human")

    def test_wilson(self) -> None:
        """548 of 640: the published interval is .8269 to .8813."""
        assert PEOPLE.levels["human:contrast"][0].interval().low == pytest.approx(0.8269, abs=5e-5)
        assert PEOPLE.levels["human:contrast"][0].interval().high == pytest.approx(0.8813, abs=5e-5)


class TestFallsBelow:
    @pytest.mark.parametrize(
        ("gaps", "severity"),
        [
            ([0.1, 0.1, 0.1], np.inf),
            ([-0.1, 0.1, 0.1], 0),
            ([0.1, -0.1, 0.1], 0.5),  # half way between 0 and 1
            ([0.3, 0.1, -0.3], 1.5),  # a quarter of the way from 1 to 3
            ([0.0, -0.2, -0.2], 0),  # equal at first, then below at once
            ([0.0, 0.0, 0.0], np.inf),
        ],
    )
    def test_by_hand(self, gaps: list[float], severity: float) -> None:
        assert float(falls_below([0, 1, 3], gaps)) == pytest.approx(severity)

    def test_many_at_once(self) -> None:
        assert falls_below([0, 1], [[0.1, -0.1], [0.1, 0.1]]).tolist() == [0.5, np.inf]

    @pytest.mark.parametrize(("places", "gaps"), [([0, 1], [0.1]), ([1, 0], [0.1, 0.1]), ([], [])])
    def test_refusals(self, places: list[float], gaps: list[float]) -> None:
        with pytest.raises(InputError):
            falls_below(places, gaps)


def run(folder: Path, *, gain: dict[str, float] | None = None, images: int = 2000) -> Run:
    """A model as good as people at every level, but for a gain by condition; answers are right by share, not chance."""
    shares = {"clean": 0.95}
    for levels in (PEOPLE.levels["human:contrast"], PEOPLE.levels["human:colour"]):
        shares |= {item.condition: item.accuracy for item in levels if item.condition not in shares}
    for condition, more in (gain or {}).items():
        shares[condition] += more
    outcomes = {text: np.arange(images) < round(images * share) for text, share in shares.items()}
    chosen = {"metric": "accuracy", "reference": "human-16"}
    return write_run(folder, "net", outcomes, images=images, benchmark=chosen)


def found(measured: Run) -> Beside:
    beside = score(measured, replicates=400).beside
    assert beside is not None
    return beside


class TestBeside:
    def test_levels_and_means(self, tmp_path: Path) -> None:
        beside = found(run(tmp_path, gain={"human:contrast@1": 0.05}))
        assert [stimulus.corruption for stimulus in beside.stimuli] == ["human:colour", "human:contrast"]
        levels = beside.stimuli[1].levels
        assert levels[1].people.value == pytest.approx(100 * 529 / 640)
        assert levels[1].model is not None
        assert levels[1].model.value == pytest.approx(100 * 529 / 640 + 5, abs=0.03)
        # Six levels count, five of contrast and gray. Contrast gains 5 points at one of five. Gray is also the control
        # of contrast, where people were right on 548 of 640; in the set of colour it was 2,270 of 2,560.
        assert beside.counted == 6
        assert beside.difference is not None
        gray = 100 * (548 / 640 - 2270 / 2560)
        assert beside.difference.value == pytest.approx((5 / 5 + gray) / 2, abs=0.05)
        assert beside.difference.low < beside.difference.value < beside.difference.high

    def test_where_it_falls_below(self, tmp_path: Path) -> None:
        """Ten points above people up to 15 % contrast (severity 3), ten below from 10 % (3.5): half way, 3.25."""
        above = {f"human:contrast@{s}": 0.1 for s in (1, 2, 3)} | {"human:colour@5": 0.05}
        below = {f"human:contrast@{s}": -0.1 for s in ("3.5", "4", "4.5")} | {"human:contrast@5": -0.05}
        fall = found(run(tmp_path, gain=above | below)).stimuli[1].fall
        assert fall is not None
        assert fall.severity == pytest.approx(3.25, abs=0.01)
        assert fall.between == ("15 %", "10 %")
        assert fall.low is not None
        assert fall.high is not None
        assert 3 < fall.low < 3.25 < fall.high < 3.5
        assert fall.resamples == 1

    def test_never_and_from_the_start(self, tmp_path: Path) -> None:
        conditions = [item.condition for item in PEOPLE.levels["human:contrast"]]
        better = found(run(tmp_path / "a", gain=dict.fromkeys(conditions, 0.1))).stimuli[1].fall
        assert better is not None
        assert (better.severity, better.low, better.high, better.between) == (None, None, None, None)
        assert better.resamples == 0
        worse = found(run(tmp_path / "b", gain=dict.fromkeys(conditions, -0.05))).stimuli[1].fall
        assert worse is not None
        assert (worse.severity, worse.between) == (0, None)

    def test_a_level_that_was_not_measured(self, tmp_path: Path) -> None:
        shares = {"clean": 0.9, "human:contrast@2": 0.5, "human:contrast@4": 0.1}
        chosen = {"metric": "accuracy", "reference": "human-16"}
        beside = found(write_run(tmp_path, "net", shares, benchmark=chosen))
        (stimulus,) = beside.stimuli
        assert [item.model is None for item in stimulus.levels].count(False) == 2
        assert beside.difference is None
        assert stimulus.fall is not None  # from the levels that there are

    def test_a_name_that_nobody_knows(self, tmp_path: Path) -> None:
        """Numbers are there all the same; blemish run refuses it before any work."""
        chosen = {"reference": "nobody"}
        scores = score(write_run(tmp_path, "net", {"clean": 0.9, "fog@3": 0.5}, benchmark=chosen), replicates=10)
        assert scores.beside is None
        assert "No published accuracies are called 'nobody'; known are laion-c, human-16." in scores.remarks
        file = tmp_path / "own.toml"
        lines = 'name = "own"\nreference = "nobody"\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [3]\n'
        file.write_text(lines, encoding="utf-8")
        out = tmp_path / "out"
        code, _, errors = invoke("run", file, "-m", "demo:plain", "-d", "demo:digits", "-o", out)
        assert code == 2
        assert "no published accuracies are called 'nobody'" in errors
        assert not out.exists()

    def test_other_benchmarks_have_none(self, tmp_path: Path) -> None:
        assert score(write_run(tmp_path, "net", {"clean": 0.9, "fog@3": 0.5}), replicates=10).beside is None


def test_kappa_between_people() -> None:
    """The mean over the two levels that count of these three: .4234 and .4621; the control does not count."""
    three = {"human:colour@5x", "human:contrast@1", "human:contrast@2", "human:contrast@5"}
    assert PEOPLE.kappa_between_people(three) == pytest.approx((0.4234 + 0.4621) / 2)
    assert PEOPLE.kappa_between_people({"fog@3"}) is None
    assert isinstance(PEOPLE.levels["human:contrast"][0], Level)


@pytest.mark.parametrize(("pool", "calibrated"), [("mean", False), ("sum", True)])
def test_a_mean_of_probabilities_is_no_confidence(pool: str, calibrated: bool, tmp_path: Path) -> None:
    """A dog is at most 1/109 of its members' mean; their sum is the probability of a dog."""
    protocol = {"superclasses": "sixteen", "pool": pool}
    runs = [write_run(tmp_path, name, {"clean": 0.9, "fog@3": 0.5}, protocol=protocol) for name in "ab"]
    scores = score(runs[0], replicates=20)
    assert bool(scores.select(name="ece")) is calibrated
    assert bool(scores.reliability) is calibrated
    if not calibrated:
        with pytest.raises(InputError, match="by the mean probability of their members, which is no confidence"):
            scores.find("ece")
    assert any(row.name == "confidence" for row in compare(*runs, replicates=20).rows) is calibrated


class TestCommands:
    def test_score(self, tmp_path: Path) -> None:
        run(tmp_path, images=200)
        code, output, _ = invoke("score", tmp_path, "--replicates", 50)
        assert code == 0
        for words in ("Accuracy beside people in the laboratory", "Where models fall below people", "50 %"):
            assert words in output
        code, output, _ = invoke("score", tmp_path, "--replicates", 50, "--json")
        (entry,) = json.loads(output)
        assert entry["beside"]["reference"]["name"] == "human-16"
        assert entry["beside"]["stimuli"][1]["levels"][1]["people"]["value"] == pytest.approx(100 * 529 / 640)
        assert entry["headline"]["title"] == "mean accuracy"
        _, output, _ = invoke("score", tmp_path, "--replicates", 50, "--csv")
        rows = {(row["metric"], row["of"]): row for row in csv.DictReader(io.StringIO(output))}
        assert float(rows["people_accuracy", "human:contrast 50 %"]["value"]) == pytest.approx(100 * 529 / 640)
        assert rows["below_people_from", "human:contrast"]["unit"] == "severity"

    def test_laion_c_beside_its_leaderboard(self, tmp_path: Path) -> None:
        chosen = {"metric": "accuracy", "reference": "laion-c", "title": "LAION-C-like distortions"}
        write_run(tmp_path, "net", {"clean": 0.9, "laion:mosaic@1": 0.56, "laion:mosaic@2": 0.56}, benchmark=chosen)
        code, output, _ = invoke("score", tmp_path, "--replicates", 50)
        assert code == 0
        assert "best human observer" in output
        assert "net: images made here (LAION-C-like distortions), not the published ones." in " ".join(output.split())

    def test_report(self, tmp_path: Path) -> None:
        run(tmp_path, images=200)
        page = tmp_path / "page.html"
        assert invoke("report", tmp_path, "-o", page, "--replicates", 50)[0] == 0
        text = page.read_text(encoding="utf-8")
        assert "Beside published accuracies" in text
        assert 'id="beside-1"' in text  # the curve of contrast; that of colour has too few points
        assert "Where models fall below people" in text
