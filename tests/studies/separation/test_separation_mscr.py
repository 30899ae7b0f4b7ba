"""Noise in balls, scores, the ε_train × ε_test experiment, and how many points and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.separation.experiment import Protocol, experiment, from_estimator, nearest_neighbour
from blemish.studies.separation.noise import Noise
from blemish.studies.separation.sample_size import effect_of_k, effect_of_runs, runs_for
from blemish.studies.separation.scores import accuracy, mscr, mscr_of

POWERS: dict[str, float] = {"l1": 1, "l2": 2, "linf": np.inf}


def two_blobs(count: int = 120) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    return rng.uniform(0, 0.4, (count, 2)) + 0.5 * labels[:, None], labels


class Threshold:
    """An estimator without randomness: the middle between the class means of the first coordinate."""

    def fit(self, points: NDArray[Any], labels: NDArray[Any]) -> Threshold:
        self.middle = (points[labels == 0, 0].mean() + points[labels == 1, 0].mean()) / 2
        return self

    def predict(self, points: NDArray[Any]) -> NDArray[np.int64]:
        return (points[:, 0] > self.middle).astype(np.int64)


threshold = from_estimator(lambda _run: Threshold())


@settings(max_examples=40, deadline=None)
@given(norm=st.sampled_from(sorted(POWERS)), epsilon=st.floats(1e-3, 10), run=st.integers(0, 9), k=st.integers(1, 4))
def test_noise_stays_in_the_ball_and_repeats(norm: Any, epsilon: float, run: int, k: int) -> None:
    points = np.random.default_rng(1).uniform(size=(7, 5))
    noise = Noise(epsilon, norm=norm, k=k, run=run)
    noisy, labels = noise.augmented(points, np.arange(7))
    assert noisy.shape == (7 * k, 5)
    away = np.linalg.norm(noisy - points[labels], ord=POWERS[norm], axis=1)
    assert (away <= epsilon * (1 + 1e-5)).all()
    assert (away > 0).all()
    again, _ = noise.augmented(points, np.arange(7))
    np.testing.assert_array_equal(noisy, again)
    np.testing.assert_array_equal(noise.around(points[3:], ids=np.arange(3, 7)), noise.around(points)[3:])
    np.testing.assert_allclose(
        noise.of(2 * epsilon).around(points) - points, 2 * (noise.around(points) - points), rtol=1e-6, atol=1e-12
    )
    others = (
        Noise(epsilon, norm=norm, run=run + 1),
        Noise(epsilon, norm=norm, run=run, seed=1),
        noise.of(epsilon, role="train"),
    )
    for other in others:
        assert (other.around(points) != noise.around(points)).all(1).all()


@pytest.mark.parametrize("norm", sorted(POWERS))
def test_the_radius_follows_the_law_of_the_ball(norm: Any) -> None:
    """In d dimensions the share of a ball's volume inside radius r·ε is r^d in every norm; here d = 3,072."""
    points = np.zeros((400, 32, 32, 3))
    away = np.linalg.norm(Noise(1.0, norm=norm).around(points).reshape(400, -1), ord=POWERS[norm], axis=1)
    share = np.sort(away**3072)
    # Kolmogorov–Smirnov at 1 %: 1.63 / √400.
    assert np.abs(share - (np.arange(400) + 0.5) / 400).max() < 1.63 / 20


def test_shared_draws_move_all_points_alike() -> None:
    points = np.random.default_rng(1).uniform(size=(6, 2))
    noise = Noise(0.1, k=3, draws="shared", run=4)
    moved = noise.augmented(points, np.arange(6))[0].reshape(3, 6, 2) - points
    np.testing.assert_allclose(moved, np.broadcast_to(moved[:, :1], moved.shape), atol=1e-15)
    assert len(np.unique(moved[:, 0, 0])) == 3
    np.testing.assert_array_equal(noise.of(0.1, role="train").around(points), noise.around(points))


def test_clipping_is_optional() -> None:
    points = np.zeros((50, 2))
    assert Noise(0.1).around(points).min() < 0
    clipped = Noise(0.1, clip=True).around(points)
    np.testing.assert_array_equal(clipped, Noise(0.1).around(points).clip(0, 1))


def test_accuracy_at_a_known_boundary() -> None:
    """A point on the edge x = 0 is right in half of its ball: 4 standard deviations of 4,000 coins are 0.032."""
    share = accuracy(lambda asked: (asked[:, 0] > 0).astype(int), np.zeros((40, 2)), np.ones(40), Noise(0.3, k=100))
    assert share == pytest.approx(0.5, abs=0.032)


def test_mscr_of_trained_models_by_hand() -> None:
    """Points at −1 and 1: a sign is always right at ε = 0.5, a wrong sign never; a constant gets one class."""
    points, labels = np.array([[-1.0], [1.0], [1.0], [1.0]]), np.array(["low", "high", "high", "high"])
    models = {
        "sign": lambda asked: np.where(asked[:, 0] > 0, "high", "low"),
        "constant": lambda asked: np.full(len(asked), "high"),
    }
    sign, constant = mscr(models, points, labels, epsilon=0.5, runs=3, k=2)
    assert (sign.clean, sign.robust.value, sign.mscr.value, sign.mscr.half_width) == (1, 1, 0, 0)
    assert (constant.clean, constant.robust.value) == (0.75, 0.75)
    json.dumps(sign.record())


def test_mscr_numbers_of_the_paper() -> None:
    """Table 2: 99.531 % clean and 99.405 % robust give −0.126 … −0.127 %; CIFAR-10 at ε_train = 0.15: +2.674 %."""
    assert 100 * mscr_of(0.99531, 0.99405) == pytest.approx(-0.1266, abs=5e-5)
    assert 100 * mscr_of(0.81989, 0.84181) == pytest.approx(2.674, abs=5e-4)


def test_the_experiment_is_what_its_parts_say() -> None:
    points, labels = two_blobs()
    matrix = experiment(
        points, labels, threshold, model="t", epsilon_min=0.05, eps_train=(0, 0.1), eps_test=(0.2,), k=3, runs=2, seed=7
    )
    protocol = matrix.protocol
    assert protocol.eps_test == (0.0, 0.05, 0.2)
    trained, tested = protocol.split(1, 120)
    assert sorted([*trained, *tested]) == list(range(120))
    assert len(tested) == 24
    noise = protocol.noise(1)
    predict = threshold(points[trained], labels[trained], noise.of(0.1, role="train"))
    assert matrix.accuracies[1, 2, 1] == accuracy(predict, points[tested], labels[tested], noise.of(0.2))
    assert matrix.mscr()[0].count == 2
    with pytest.raises(InputError, match=r"was not measured; expected one of 0\.0, 0\.05, 0\.2"):
        matrix.mscr(0.3)
    json.dumps(matrix.record())


def test_a_stopped_experiment_goes_on(tmp_path: Path) -> None:
    points, labels = two_blobs()
    made: list[int] = []

    def counted(run: int) -> Threshold:
        made.append(run)
        if len(made) == 3 and not (tmp_path / "resumed").exists():
            raise KeyboardInterrupt
        return Threshold()

    settings: dict[str, Any] = {"model": "t", "epsilon_min": 0.05, "folder": tmp_path / "runs", "k": 2}
    with pytest.raises(KeyboardInterrupt):
        experiment(points, labels, from_estimator(counted), runs=4, **settings)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "protocol.json",
        "run-00000.json",
        "run-00001.json",
    ]
    (tmp_path / "resumed").touch()
    seen: list[tuple[int, int]] = []
    whole = experiment(
        points, labels, from_estimator(counted), runs=4, progress=lambda *at: seen.append(at), **settings
    )
    assert made == [0, 1, 2, 2, 3]
    assert seen == [(3, 4), (4, 4)]
    fresh = experiment(points, labels, threshold, runs=4, model="t", epsilon_min=0.05, k=2)
    np.testing.assert_array_equal(whole.accuracies, fresh.accuracies)
    with pytest.raises(InputError, match=r"holds runs with other settings \(k was 2, now 3\)"):
        experiment(points, labels, threshold, runs=4, **{**settings, "k": 3})
    with pytest.raises(InputError, match=r"holds runs with other settings \(data was "):
        experiment(points + 1, labels, threshold, runs=4, **settings)
    (tmp_path / "runs" / "run-00001.json").write_text("{")
    with pytest.raises(InputError, match=r"run-00001.json: not a readable run .* remove it"):
        experiment(points, labels, threshold, runs=4, **settings)


def test_runs_side_by_side_give_the_same(tmp_path: Path) -> None:
    points, labels = two_blobs()
    settings: dict[str, Any] = {"model": "1nn", "epsilon_min": 0.05, "eps_train": (0, 0.3), "runs": 3, "k": 2}
    apart = experiment(points, labels, nearest_neighbour(), jobs=2, folder=tmp_path, **settings)
    np.testing.assert_array_equal(
        apart.accuracies, experiment(points, labels, nearest_neighbour(), **settings).accuracies
    )


def test_runs_side_by_side_that_fail(tmp_path: Path) -> None:
    """What cannot be sent is refused; what fails is told at once, for it would in every run."""
    points, labels = two_blobs()
    settings: dict[str, Any] = {"model": "t", "epsilon_min": 0.05, "runs": 50, "k": 2, "jobs": 2, "folder": tmp_path}
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        experiment(points, labels, threshold, **settings)
    with pytest.raises(InputError, match=r"run .: AttributeError: 'int' object has no attribute 'fit'") as failed:
        experiment(points, labels, from_estimator(int), **settings)
    assert "Traceback" in str(failed.value.__cause__)


def test_uint8_images_are_trained_on_from_0_to_1() -> None:
    images = np.array([[[0, 0]], [[255, 255]]] * 20, dtype=np.uint8)
    matrix = experiment(images, np.arange(40) % 2, threshold, model="t", epsilon_min=0.4, runs=2, k=2)
    np.testing.assert_array_equal(matrix.accuracies, 1)  # 0.4 from 0 and 1 stays on its side of 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k = 0; expected at least 1 noisy point per data point"),
        ({"epsilon_min": 0}, "ε_min = 0.0; expected a positive radius"),
        ({"epsilon_min": -1}, "expected a radius of 0 or more"),
        ({"epsilon_min": float("nan")}, "ε = nan; expected a radius"),
        ({"eps_train": (-0.1,)}, "ε = -0.1; expected a radius of 0 or more"),
        ({"eps_train": ()}, "expected at least one radius"),
        ({"eps_train": (0.1, 0.1)}, "each once"),
        ({"runs": 0}, "runs=0"),
        ({"test_share": 1.0}, "test_share=1.0"),
        ({"test_share": 0.999}, "leaves nothing to train"),
        ({"norm": "l7"}, "norm 'l7'"),
        ({"draws": "many"}, "draws 'many'; expected one of independent, shared"),
    ],
)
def test_bad_settings_are_explained(settings: dict[str, Any], message: str) -> None:
    points, labels = two_blobs(20)
    with pytest.raises(InputError, match=message):
        experiment(points, labels, threshold, **{"model": "t", "epsilon_min": 0.05, "runs": 1, **settings})


def test_bad_models_are_explained() -> None:
    points, labels = two_blobs(20)
    with pytest.raises(InputError, match="no models"):
        mscr({}, points, labels, epsilon=0.1)
    with pytest.raises(InputError, match="ε = 0; expected a positive radius"):
        mscr({"m": lambda asked: asked[:, 0]}, points, labels, epsilon=0)
    with pytest.raises(InputError, match=r"predictions of shape \(20, 2\) for 20 points"):
        mscr({"m": lambda asked: asked}, points, labels, epsilon=0.1)
    with pytest.raises(InputError, match=r"clean accuracy 0\.0; expected more than 0"):
        mscr({"m": lambda asked: np.full(len(asked), 9)}, points, labels, epsilon=0.1)


def test_more_points_per_point_lower_the_draws_share() -> None:
    """The variance of the draws falls as 1/k, here to 1/64; 1/16 leaves room for chance."""
    points, labels = two_blobs(200)
    one, many = effect_of_k(points, labels, threshold, epsilon=0.4, ks=(1, 64), runs=12, repeats=6)
    variances = [effect.share_of_draws * effect.robust.deviation**2 for effect in (one, many)]
    assert 0 < variances[1] < variances[0] / 16
    assert many.robust.deviation < one.robust.deviation
    assert one.robust.count == 12
    with pytest.raises(InputError, match="expected 2 runs"):
        effect_of_k(points, labels, threshold, epsilon=0.4, runs=1)


def test_the_effect_of_runs() -> None:
    points, labels = two_blobs()
    matrix = experiment(points, labels, threshold, model="t", epsilon_min=0.3, runs=12, k=2)
    rows = effect_of_runs(matrix)
    assert [row.count for row in rows] == [5, 10, 12]
    assert rows[-1] == matrix.mscr()[0]
    assert runs_for(rows[-1].half_width, rows[-1].deviation) < 12  # 1.96 instead of t(11) = 2.201
    with pytest.raises(InputError, match="half_width=0"):
        runs_for(0, 1)


def test_the_split_is_new_in_every_run_and_repeats() -> None:
    protocol = Protocol("m", "linf", 0.1, (0.0,), (0.0, 0.1), 1, 0, 0.2, False, "independent", "")
    first, again, other = (set(protocol.split(run, 4674)[1].tolist()) for run in (0, 0, 1))
    assert len(first) == 935  # ⌈0.2 · 4674⌉
    assert first == again != other
    assert torch.equal(torch.tensor(protocol.split(0, 10)[0]), torch.tensor(protocol.split(0, 10)[0]))
