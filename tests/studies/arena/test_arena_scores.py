"""Scores by hand: intervals over images, label-free choices, and published numbers beside ours."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from blemish.benchmarks.benchmark import Protocol
from blemish.models.base import ModelInfo
from blemish.studies.arena.json_scores import scores_json
from blemish.studies.arena.published import differences, published_table, published_tables
from blemish.studies.arena.results import ArenaInfo, MethodResult, ResultHeader, StreamHeader, StreamTable
from blemish.studies.arena.scores import Clustered, Scored, Shown, scored
from blemish.studies.arena.setting import load_setting
from blemish.studies.arena.signals import concentration, density
from blemish.studies.arena.tables import setting_table
from blemish.studies.arena.tuning import choices
from blemish.studies.arena.units import Variation

LABELS = np.arange(40) % 4


def result(method: str, wrong: set[int], *, entropy: float = 1.0, rate: float = 1.0) -> MethodResult:
    predictions = np.array([(label + 1) % 4 if i in wrong else label for i, label in enumerate(LABELS)])
    header = ResultHeader(
        method=method,
        variation=Variation(rate),
        batch=200,
        images=40,
        probes=(0.5,),
        clean_labels=(0, 1),
        clean_before=(0, 1),
        clean_after=(0, 0),
        seconds=4.0,
    )
    each = np.full(40, entropy)
    return MethodResult(header, predictions, each, each, each, np.ones(40, np.bool_))


def shown(**results: MethodResult) -> list[Scored]:
    header = StreamHeader("", load_setting("continual"), "standard", 1, ("fog@5", "snow@5"), (0, 20))
    table = StreamTable(header, np.arange(40) % 20, LABELS, np.arange(40) // 20)
    return scored([Shown(table, {name.replace("_x", "@rate×"): value for name, value in results.items()})])


def test_an_image_that_comes_twice_counts_as_one() -> None:
    """Ten images seen twice with the same result: the interval of ten, not of twenty; Student's correction n/(n−1)."""
    values = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    once, twice = Clustered([(np.arange(10), values)]), Clustered([(np.tile(np.arange(10), 2), np.tile(values, 2))])
    assert twice.mean == once.mean == pytest.approx(0.3)
    assert twice.error == pytest.approx(once.error)
    assert once.error == pytest.approx(values.std(ddof=1) / math.sqrt(10))


def test_images_of_different_numbers_of_visits() -> None:
    """The ratio of sums: three visits of one image, one of another; by hand."""
    found = Clustered([(np.array([0, 0, 0, 1]), np.array([1, 1, 0, 0]))])
    assert found.mean == 0.5
    assert found.error == pytest.approx(math.sqrt(2 * ((2 - 1.5) ** 2 + (0 - 0.5) ** 2)) / 4)


def test_a_few_images_that_agree_prove_little() -> None:
    """Of 50 images none erred: an error rate of h is missed with probability (1 − h)^50, which is 0.025 at the end."""
    ids = np.arange(50)
    high = 1 - 0.025 ** (1 / 50)
    error = Clustered([(ids, np.zeros(50, dtype=bool))]).estimate()
    assert (error.value, error.low) == (0.0, 0.0)
    assert error.high == pytest.approx(high)
    gain = Clustered([(ids, np.zeros(50, dtype=np.int64))])
    assert (gain.estimate().low, gain.estimate().high) == pytest.approx((-high, high))
    assert gain.p_value == 1
    # Four images that all differ the same way: as likely as four heads or four tails.
    assert Clustered([(np.arange(4), np.ones(4, dtype=np.int64))]).p_value == pytest.approx(2 / 16)


def test_errors_gains_and_ranks() -> None:
    (setting,) = shown(none=result("none", set(range(30))), good=result("good", {0}), alike=result("alike", {1}))
    assert setting.entrants["good"].error.value == pytest.approx(1 / 40)
    gain = setting.entrants["good"].gain
    assert gain is not None
    assert gain.value == pytest.approx(29 / 40)
    assert setting.entrants["none"].gain is None
    places = {name: entrant.place.rank for name, entrant in setting.entrants.items() if entrant.place}
    assert places == {"none": "3", "good": "1–2", "alike": "1–2"}
    assert setting.entrants["good"].by_condition == {"fog@5": 1 / 20, "snow@5": 0.0}
    forgetting = setting.entrants["good"].forgetting
    assert forgetting is not None
    assert forgetting.value == 0.5  # one of the two clean images
    assert setting.entrants["good"].seconds == 0.1


def test_behind_none_says_how_far() -> None:
    """Windows of 4 of 40 images: ``little`` errs once more than ``none`` in 8 … 15; ``far`` errs from image 20 on."""
    (setting,) = shown(
        none=result("none", set()), little=result("little", {8, 12}), far=result("far", set(range(20, 40)))
    )
    (little,), (far,) = (setting.entrants[name].behind for name in ("little", "far"))
    assert (little.at, little.until, little.loss, little.to_the_end) == (8, 15, 0.25, False)
    assert (far.at, far.until, far.loss, far.to_the_end) == (20, 39, 1.0, True)
    table = setting_table(setting)
    column = table.columns.index("behind none")
    texts = {row[0].text: row[column].text for row in table.rows}
    assert texts == {
        "none": "–",
        "little": "image 8 to 15, by up to 25.0",
        "far": "image 20 to the end, by up to 100.0",
    }
    (better,) = shown(none=result("none", {3}), good=result("good", set()))
    assert {row[0].text: row[column].text for row in setting_table(better).rows}["good"] == "never"
    assert scores_json([setting])["continual"]["methods"]["far"]["behind"] == [far._asdict()]


def test_choices_without_labels() -> None:
    hot = result("tent", set(range(9)), entropy=0.1, rate=9)
    (setting,) = shown(tent=result("tent", {0, 1}), tent_x2=result("tent", {0}, rate=2), tent_x9=hot)
    (choice,) = choices(setting)
    assert choice.oracle.label == "tent@rate×2"
    assert choice.worst.label == choice.by["entropy"].label == "tent@rate×9"
    assert choice.by["consistency"].label == "tent"  # a tie goes to the published settings


def test_signals_by_hand() -> None:
    import torch

    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    mean = logits.mean(0).softmax(0)
    assert float(concentration(logits)) == pytest.approx(float(-(mean * mean.log()).sum()))
    p = logits.softmax(1)
    unit = p / p.norm(dim=1, keepdim=True)
    total = 0.0
    for i in range(3):
        others = [j for j in range(3) if j != i]
        share = torch.stack([(unit[i] @ unit[j]) / 0.05 for j in others]).softmax(0)
        total += float(-(share * share.log()).sum()) / 3
    assert float(density(logits)) == pytest.approx(total, rel=1e-4)


INFO = ArenaInfo(
    model=ModelInfo("net"),
    data="cifar10",
    images=10_000,
    fingerprint="",
    image_list=None,
    benchmark="cifar10-c",
    corruptions=("fog", "snow"),
    protocol=Protocol(),
    methods="cifar",
    clean_images=0,
)


def test_published_numbers_stand_beside_ours() -> None:
    """Tent on CIFAR-10-C, continual, WRN-28-10: 20.0 in Döbler et al.'s repository."""
    (setting,) = shown(none=result("none", set(range(30))), tent=result("tent", {0}))
    table = published_table(setting, INFO)
    assert table is not None
    row = next(row for row in table.rows if row[0].text == "tent")
    assert [cell.text for cell in row[1:3]] == ["2.5", "20.0"]
    assert "without gaussian_noise" in table.notes[0]
    titles = table.columns[2:]
    assert len(set(titles)) == len(titles) == 2  # the same network in two sources
    assert [note.partition(": ")[0] for note in table.notes[1:]] == list(titles)
    assert published_tables("ccc", "cifar10-c") == []
    assert published_table(setting, replace(INFO, benchmark="imagenet-noc")) is None
    other = differences(setting, replace(INFO, images=500, corruptions=("fog",)))
    assert "500 images instead of 10,000" in other


def test_published_numbers_of_all_images() -> None:
    """SAR's label shift (ResNet-50 with GN: 37.2 % right) and EATA's table are of all 50,000 images, batches of 64."""
    info = replace(INFO, benchmark="imagenet-c", images=50_000)
    assert published_tables("label_shift", "imagenet-c")[1].rows[-1] == ("sar", 62.8, None)
    (eata,) = published_tables("reset_each_shift", "imagenet-c")
    assert {name: error for name, error, _ in eata.rows}["eata"] == 52.19
    (setting,) = shown(none=result("none", set(range(30))), tent=result("tent", {0}))
    for name in ("label_shift", "reset_each_shift", "correlated_sorted", "mixed_correlated"):
        said = differences(replace(setting, name=name, batch=64), info)
        assert not any("images instead" in text or "batches" in text for text in said)
        assert "5,000 images instead of 50,000" in differences(replace(setting, name=name), replace(info, images=5000))
    assert "50,000 images instead of 5,000" in differences(setting, info)


def test_nothing_is_chosen_by_signals_that_are_not_numbers() -> None:
    broken, sound = result("tent", {0, 1}), result("tent", {0}, rate=0.1)
    broken.predictions[5] = -1
    (setting,) = shown(**{"none": result("none", set(range(30))), "tent": broken, "tent_x0.1": sound})
    assert np.isnan(setting.entrants["tent"].signals["entropy"])
    (choice,) = choices(setting)
    assert choice.by["entropy"].label == "tent@rate×0.1"
