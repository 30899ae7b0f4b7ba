"""Models near chance: the rule, the run that stops, and how it is continued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.core.errors import InputError
from blemish.evaluation.chance import NearChanceError, against_chance
from blemish.evaluation.executors import Processes
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run, open_run
from execution_jobs import Net, pictures
from execution_jobs import benchmark as for_workers
from told_steps import Steps
from toy_runs import CLASSES, benchmark, model, source


class TestRule:
    """Accuracies are of ``images`` pictures, classes in turn, whose first ones are answered correctly."""

    @staticmethod
    def near(right: float, images: int, classes: int, outputs: int | None = None) -> bool:
        labels = np.arange(images) % classes
        answers = np.where(np.arange(images) < round(right * images), labels, (labels + 1) % (outputs or classes))
        return against_chance(labels, answers, outputs=outputs).near

    def test_a_constant_answer_is_chance_however_common_the_class(self) -> None:
        labels = np.array([0] * 90 + [1] * 10)
        found = against_chance(labels, np.zeros(100, dtype=int))
        assert found.near
        assert found.accuracy == found.chance == pytest.approx(0.9)

    def test_a_model_that_knows_the_rare_class_is_not_chance(self) -> None:
        """Though it is right less often than one that always says the common class."""
        labels = np.array([0] * 180 + [1] * 20)
        answers = np.concatenate([np.zeros(155), np.ones(25 + 18), np.zeros(2)])
        found = against_chance(labels, answers)
        assert found.accuracy < 0.9
        assert not found.near

    @pytest.mark.parametrize(
        ("right", "images", "classes", "near"),
        [
            (0.1, 1000, 10, True),
            (0.12, 100, 10, True),
            (0.2, 1000, 10, False),
            (0.5, 100, 2, True),
            (0.58, 100, 2, True),  # the interval reaches down to 0.48
            (0.65, 100, 2, False),
            (0.9, 1000, 10, False),
            (0.0, 1000, 10, True),
            (0.004, 50_000, 1000, True),  # four times chance and proven, but next to nothing
            (0.05, 50_000, 1000, False),
        ],
    )
    def test_many_images(self, right: float, images: int, classes: int, near: bool) -> None:
        assert self.near(right, images, classes) is near

    @pytest.mark.parametrize(
        ("right", "images", "classes", "near"),
        [
            (1, 1, 1, False),
            (0, 1, 1, False),
            (0, 3, 3, False),
            (0, 9, 10, False),
            (2, 5, 5, False),
            (1, 2, 2, False),
            (7, 12, 2, False),  # in two classes: the interval goes from 0.32 to 0.81
            (6, 12, 2, True),
            (0, 10, 10, True),
            (1, 12, 10, True),
        ],
    )
    def test_few_images_do_not_stop_anybody_unless_nearly_all_are_wrong(
        self, right: int, images: int, classes: int, near: bool
    ) -> None:
        assert self.near(right / images, images, classes, outputs=max(classes, 2)) is near

    def test_images_of_one_class(self) -> None:
        """Dealing out answers tells nothing then, so guessing among all outputs is chance."""
        labels = np.zeros(50, dtype=int)
        assert not against_chance(labels, [0] * 40 + [1] * 10, outputs=1000).near
        assert against_chance(labels, np.arange(50) + 1, outputs=1000).near
        assert not against_chance(labels, labels).near

    def test_wrong_class_order(self) -> None:
        """All answers are right but for the number of the class."""
        labels = np.arange(500) % 10
        assert against_chance(labels, labels + 1, outputs=11).near

    def test_what_it_says(self) -> None:
        labels = np.arange(1000) % 10
        text = str(against_chance(labels, np.zeros(1000)))
        assert text == "clean accuracy 10.0 % (8.3 to 12.0, 1,000 images), not above chance (10.0 %)"

    @pytest.mark.parametrize(("labels", "answers"), [([], []), ([0, 1], [0]), ([[0]], [[0]])])
    def test_nothing_to_compare(self, labels: list[int], answers: list[int]) -> None:
        with pytest.raises(InputError, match="expected as many, one or more"):
            against_chance(labels, answers)


def at_chance(values: Tensor) -> Tensor:
    return torch.tensor([3.0] + [0.0] * (CLASSES - 1)).expand(len(values), -1)


WANTED = benchmark("fog@1", "fog@2")


def conditions_of(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "toy" / "records").glob("*.parquet"))


class TestRun:
    def test_it_stops_after_the_clean_images_and_says_what_to_look_at(self, tmp_path: Path) -> None:
        steps = Steps()
        poor = replace(model(), forward=at_chance)
        with pytest.raises(NearChanceError, match=r"model toy: clean accuracy 14\.3 %") as caught:
            evaluate(poor, source(70), WANTED, out=tmp_path, report=steps)
        for word in ("labels", "normalisation", "channels", "order", "--anyway", "allow_chance=True"):
            assert word in str(caught.value)
        assert isinstance(caught.value, InputError)
        assert conditions_of(tmp_path) == ["clean"]
        assert {step.condition for step in steps} == {"clean"}
        assert len(open_run(tmp_path / "toy").records(CLEAN)) == 70

    def test_going_on_anyway(self, tmp_path: Path) -> None:
        poor = replace(model(), forward=at_chance)
        for _ in range(2):  # the second time the clean images are there already
            with pytest.raises(NearChanceError):
                evaluate(poor, source(70), WANTED, out=tmp_path)
        assert open_run(tmp_path / "toy").info.allow_chance is False
        steps = Steps()
        run = evaluate(poor, source(70), WANTED, out=tmp_path, allow_chance=True, report=steps)
        assert {step.condition for step in steps} == {"fog@1", "fog@2"}
        assert run.info.allow_chance is True
        # What was allowed once is remembered, and a finished run is no run to be stopped.
        again = evaluate(poor, source(70), WANTED, out=tmp_path)
        assert again.info.allow_chance is True

    def test_a_model_that_is_better_goes_on(self, tmp_path: Path) -> None:
        def good(values: Tensor) -> Tensor:
            return torch.eye(CLASSES)[(values.mean((1, 2, 3)) * 255).round().long() // 30] * 5

        shades = [np.full((32, 32, 3), 30 * (i % CLASSES) + 5, dtype=np.uint8) for i in range(70)]
        images = replace(source(70), read=lambda i: blemish.data.pictures.Image.fromarray(shades[i]))
        run = evaluate(replace(model(), forward=good), images, benchmark("contrast@1"), out=tmp_path)
        assert run.finished(parse_condition("contrast@1"))
        assert run.info.allow_chance is False

    def test_later_stages_are_looked_at_too(self, tmp_path: Path) -> None:
        """Three images tell nothing; twelve do."""
        looks: list[int] = []

        def enough(run: Run, look: int) -> bool:
            looks.append(look)
            return False

        poor = replace(model(), forward=lambda values: at_chance(values).roll(2, 1))
        with pytest.raises(NearChanceError):
            evaluate(poor, source(70), WANTED, out=tmp_path, limit=3, stop_when=enough)
        assert looks
        assert looks[-1] < 5
        assert open_run(tmp_path / "toy").stages == looks[-1] + 1

    def test_workers_stop_too(self, tmp_path: Path) -> None:
        wanted = for_workers(*(f"{name}@{level}" for name in ("contrast", "fog", "snow") for level in range(1, 6)))
        with pytest.raises(NearChanceError):
            evaluate(Net(), pictures(), wanted, out=tmp_path, batch_size=4, executor=Processes(2, threads=1))
        run = open_run(tmp_path / "Net")
        assert run.finished(CLEAN)
        assert not all(run.finished(condition) for condition in run.conditions)
        again = evaluate(Net(), pictures(), wanted, out=tmp_path, batch_size=4, allow_chance=True)
        assert all(again.finished(condition) for condition in again.conditions)
