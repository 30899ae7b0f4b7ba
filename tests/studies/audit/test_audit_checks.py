"""The checks of an audit, one by one, on records and pictures that a test makes."""

from __future__ import annotations

import io
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.evaluation.info import RecordsHeader
from blemish.evaluation.records import Records, records_bytes
from blemish.evaluation.runs import record_path
from blemish.models.card import Claim, ModelCard
from blemish.studies.audit.assignment import best_assignment
from blemish.studies.audit.curves import check_curves, check_table
from blemish.studies.audit.jpeg_traces import check_jpeg
from blemish.studies.audit.known import Expected, check_accuracy, expected_accuracy, published_accuracy
from blemish.studies.audit.labels import check_chance, check_missing, check_order
from blemish.studies.audit.of_runs import audit_run
from blemish.studies.audit.pictures import check_levels, check_twice
from blemish.studies.audit.precision import check_precision, images_for, smallest_difference
from blemish.studies.audit.significance import holm, sign_test
from synthetic_runs import write_run


def records(labels: NDArray[np.int64], answers: NDArray[np.int64], *, confidence: float = 0.9) -> Records:
    """Records with these answers."""
    count = len(labels)
    top = np.full((count, 5), -1, dtype=np.int32)
    top[:, 0] = answers
    sure = np.full(count, confidence, dtype=np.float32)
    names = np.array([f"{row}.png" for row in range(count)])
    return Records(RecordsHeader("clean"), names, labels.astype(np.int32), top, sure, sure)


def answered(labels: NDArray[np.int64], classes: int, *, right: float, seed: int = 0) -> NDArray[np.int64]:
    """Answers of which this share is right and the others are any class."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(labels)) < right, labels, rng.integers(0, classes, len(labels)))


def images(pixels: NDArray[np.uint8], labels: NDArray[np.int64] | None = None) -> Images:
    """Images of (N, H, W, 3)."""
    made = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    numbers = np.arange(len(pixels)) % 10 if labels is None else labels
    return load(blemish.open_source((made, torch.from_numpy(numbers))))


@pytest.fixture(scope="module")
def digits() -> NDArray[np.uint8]:
    source = blemish.open_source("demo:digits")
    return np.stack([np.asarray(source.read(row)) for row in range(60)])


class TestSignificance:
    def test_sign_test_is_the_binomial_tail(self) -> None:
        """By hand: of 12 changes 10 or more gains have probability (66 + 12 + 1) / 4096."""
        assert sign_test(10, 2) == pytest.approx(79 / 4096)
        assert sign_test(0, 12) == pytest.approx(1)
        assert sign_test(700, 0) == pytest.approx(2.0**-700)

    def test_holm_stops_at_the_first_that_fails(self) -> None:
        # 0.002 ≤ 0.01/4, 0.0033 ≤ 0.01/3, but 0.006 > 0.01/2, so that 0.0061 fails as well.
        assert holm([0.0061, 0.002, 0.0033, 0.006], alpha=0.01) == [False, True, True, False]

    def test_assignments_are_the_best_of_all(self) -> None:
        rng = np.random.default_rng(3)
        for rows, columns in ((1, 1), (3, 3), (4, 6), (5, 5)):
            scores = rng.integers(0, 9, (rows, columns)).astype(float)
            found = best_assignment(scores)
            ways = itertools.permutations(range(columns), rows)
            best = max(sum(scores[row, column] for row, column in enumerate(way)) for way in ways)
            assert scores[np.arange(rows), found].sum() == best
            assert len(set(found.tolist())) == rows


class TestLabels:
    def test_right_labels_pass(self) -> None:
        labels = np.arange(300) % 10
        found = check_order(records(labels, answered(labels, 10, right=0.7)), 10)
        assert not found.check.findings
        assert found.mapping is None

    @pytest.mark.parametrize("classes", [3, 10, 100])
    def test_an_order_is_learnt(self, classes: int) -> None:
        truth = np.arange(600) % classes
        order = np.roll(np.random.default_rng(0).permutation(classes), 1)
        found = check_order(records(np.argsort(order)[truth], answered(truth, classes, right=0.8)), classes)
        assert found.check.findings[0].check == "class-order"
        assert found.mapping is not None
        assert (found.mapping[np.argsort(order)[truth]] == truth).mean() > 0.95

    def test_known_mistakes_have_names(self) -> None:
        truth = np.arange(400) % 20
        answers = answered(truth, 20, right=0.8)
        texts = np.argsort(np.array(sorted(range(20), key=str)))
        for labels, words in (
            ((truth + 1) % 20, "one too high"),
            (19 - truth, "backwards"),
            (texts[truth], "labels number the classes sorted as texts"),
        ):
            (finding,) = check_order(records(labels, answers), 20).check.findings
            assert words in finding.title

    def test_two_classes_that_a_model_confuses_are_no_order(self) -> None:
        """All of class 3 are called 5, and class 5 as well: no one-to-one order makes more answers right."""
        labels = np.arange(400) % 10
        answers = np.where(labels == 3, 5, answered(labels, 10, right=0.9))
        assert not check_order(records(labels, answers), 10).check.findings

    def test_labels_of_other_images_look_random(self) -> None:
        truth = np.arange(400) % 10
        labels = np.random.default_rng(0).permutation(truth)
        chance, shuffled = check_chance(records(labels, answered(truth, 10, right=0.9)), 10)
        assert not chance.findings
        assert shuffled.findings[0].sure == "very likely"
        unsure = check_chance(records(labels, answered(truth, 10, right=0.9), confidence=0.2), 10)[1]
        assert unsure.findings[0].sure == "likely"

    def test_one_answer_is_no_matter_of_labels(self) -> None:
        labels = np.arange(400) % 10
        chance, shuffled = check_chance(records(labels, np.zeros(400, dtype=np.int64)), 10)
        assert "always" in chance.findings[0].title
        assert shuffled.skipped

    def test_missing_classes(self) -> None:
        labels = np.arange(300) % 10
        assert not check_missing(labels, 10).findings
        (finding,) = check_missing(labels[labels != 7], 10, [f"name {k}" for k in range(10)]).findings
        assert "7 (name 7)" in finding.seen
        assert check_missing(labels, 100).findings[0].level == "note"
        # Of 1,000 classes, 1,000 images drawn at random leave out 368.
        drawn = np.random.default_rng(0).integers(0, 1000, 1000)
        assert not check_missing(drawn, 1000).findings


class TestPictures:
    def test_digits_are_clean(self, digits: NDArray[np.uint8]) -> None:
        made = images(digits)
        assert not any(check(made).findings for check in (check_twice, check_levels, check_jpeg))

    def test_copies_are_found(self, digits: NDArray[np.uint8]) -> None:
        nearly = digits[5].astype(int) + np.random.default_rng(0).integers(-2, 3, digits[5].shape)
        again = np.concatenate([digits, digits[:1], nearly[None].clip(0, 255).astype(np.uint8)])
        (finding,) = check_twice(images(again)).findings
        assert finding.numbers["exact"] == 1
        assert finding.numbers["near"] == 1

    def test_labels_of_copies_that_differ_are_told(self, digits: NDArray[np.uint8]) -> None:
        again = np.concatenate([digits, digits[:1]])
        labels = np.append(np.arange(60) % 10, 9)
        assert check_twice(images(again, labels)).findings[0].numbers["conflicts"] == 1

    @pytest.mark.parametrize("quality", [60, 75, 85, 90])
    def test_jpeg_leaves_traces(self, digits: NDArray[np.uint8], quality: int) -> None:
        stored = []
        for picture in digits:
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "JPEG", quality=quality)
            stored.append(np.asarray(Image.open(buffer)))
        assert check_jpeg(images(np.stack(stored))).findings[0].check == "jpeg"

    def test_pictures_enlarged_without_a_filter_are_not_jpeg(self, digits: NDArray[np.uint8]) -> None:
        for times in (2, 4, 8):
            small = digits[:, ::times, ::times]
            assert not check_jpeg(images(small.repeat(times, 1).repeat(times, 2))).findings


class TestSeverities:
    def outcomes(self, **rates: float) -> dict[blemish.Condition, NDArray[np.bool_]]:
        order = np.random.default_rng(0).permutation(400)
        return {parse_condition(name.replace("_at_", "@")): order < round(400 * rate) for name, rate in rates.items()}

    def test_a_curve_that_falls(self) -> None:
        rising = self.outcomes(fog_at_1=0.8, fog_at_3=0.6, fog_at_5=0.3)
        assert not check_curves(rising, preset="imagenet").findings
        (finding,) = check_curves(self.outcomes(fog_at_1=0.3, fog_at_5=0.6), preset=None).findings
        assert "fog" in finding.title

    def test_a_step_that_falls_where_published_ones_do_not(self) -> None:
        """Of the testbed's 200 models, 198 have lower errors at elastic_transform@3 than @2, and none at fog@3."""
        fog = self.outcomes(fog_at_1=0.8, fog_at_2=0.4, fog_at_3=0.6, fog_at_5=0.3)
        assert check_curves(fog, preset="imagenet").findings
        assert not check_curves(fog, preset=None).findings
        elastic = self.outcomes(elastic_transform_at_1=0.8, elastic_transform_at_2=0.4, elastic_transform_at_3=0.6)
        assert not check_curves(elastic, preset="imagenet").findings

    def test_the_table_has_to_fit(self) -> None:
        fog = [parse_condition("fog@1")]
        assert check_table([(32, 32)], "imagenet", fog).findings[0].level == "problem"
        assert check_table([(512, 512)], None, fog).findings[0].level == "note"
        for side, preset in ((32, "cifar"), (224, "imagenet"), (224, None), (28, None), (299, None), (64, None)):
            assert not check_table([(side, side)], preset, fog).findings
        assert not check_table([(224, 224)], "pathmnist", fog).findings


class TestNumbers:
    def test_smallest_difference_by_hand(self) -> None:
        """At half of the answers right, s = ½: (1.959964 + 0.841621) · ½ / √400 = 0.07004."""
        scores = np.array([0.0, 1.0] * 200)
        assert smallest_difference(scores) == pytest.approx(0.0700396, rel=1e-5)
        assert images_for(scores, smallest_difference(scores)) in (400, 401)

    def test_precision_is_a_problem_only_if_asked_for(self) -> None:
        scores = np.array([0.0, 1.0] * 200)
        assert not check_precision(scores, None, 400, of="accuracy").findings
        assert not check_precision(scores, 7.1, 400, of="accuracy").findings
        (finding,) = check_precision(scores, 1.0, 400, of="accuracy").findings
        assert finding.numbers["needed"] == math.ceil((2.801585 * 0.5 / 0.01) ** 2)
        with pytest.raises(blemish.InputError, match="difference 0"):
            check_precision(scores, 0.0, 400, of="accuracy")

    def test_accuracy_against_the_known_one(self) -> None:
        labels = np.zeros(400, dtype=np.int64)
        answers = (np.arange(400) >= 300).astype(np.int64)  # 75 % right: 99 % Wilson interval 69.0 to 80.1 %
        made = records(labels, answers)
        for expected, words in ((0.82, "lower"), (0.67, "higher")):
            (finding,) = check_accuracy(made, Expected(expected, expected, "x"), why_not="").findings
            assert words in finding.title
        assert not check_accuracy(made, Expected(0.79, 0.79, "x"), why_not="").findings
        assert check_accuracy(made, None, why_not="nobody knows").skipped == "nobody knows"

    def test_what_is_published(self) -> None:
        """timm's results-imagenet.csv: resnet50.a1_in1k at 224 and 288 pixels; the testbed's alexnet: 56.5 %."""
        timm = published_accuracy(ModelCard(source="timm:resnet50.a1_in1k"))
        assert timm is not None
        assert 0.79 < timm.low <= timm.high < 0.82
        assert published_accuracy(ModelCard(source="timm:resnet50"), "a1_in1k") == timm
        alexnet = published_accuracy(ModelCard(source="torchvision:alexnet.IMAGENET1K_V1"))
        assert alexnet is not None
        assert alexnet.low == pytest.approx(0.565, abs=0.001)
        assert published_accuracy(ModelCard(source="torchvision:resnet50.IMAGENET1K_V2")) is None
        names = ["n01440764/ILSVRC2012_val_00000293.JPEG"]
        card = ModelCard(source="timm:resnet50.a1_in1k")
        assert expected_accuracy(None, card, names)[0] == timm
        assert expected_accuracy(None, card, ["cat.jpg"])[0] is None

    def test_what_a_card_claims(self) -> None:
        names = ["ILSVRC2012_val_00000293.JPEG"]
        claim = Claim("ImageNet-1K", 0.8, "its README")
        expected, _ = expected_accuracy(None, ModelCard(claims=(claim,)), names)
        assert expected == Expected(0.8, 0.8, "its README")
        other = ModelCard(claims=(Claim("cifar10", 0.98, "its README"),))
        expected, why_not = expected_accuracy(None, other, names)
        assert expected is None
        assert "--accuracy 98" in why_not


def test_what_does_not_vary_has_no_precision() -> None:
    """Four hundred right answers do not tell apart models that differ by 0.0 points."""
    for scores in (np.ones(400), np.zeros(400)):
        check = check_precision(scores, 1.0, 400, of="accuracy")
        assert (check.findings, "not known" in check.skipped) == ((), True)


def test_records_in_another_order_are_paired_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    easy = rng.random(200)
    conditions = {"clean": easy < 0.9, "fog@1": easy < 0.8, "fog@5": easy < 0.5}
    run = write_run(tmp_path, "net", conditions, images=200)
    before = [(check.name, check.said) for check in audit_run(run).checks]
    strong = run.conditions[-1]
    mixed = run.records(strong).take(rng.permutation(200))
    record_path(run.folder, strong).write_bytes(records_bytes(mixed))
    assert [(check.name, check.said) for check in audit_run(run.folder).checks] == before
