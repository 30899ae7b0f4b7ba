"""Nets: their sizes, and training with noise that can be repeated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.models.base import Classifier, Preprocessing
from blemish.studies.separation.experiment import experiment
from blemish.studies.separation.nets import WideResNet
from blemish.studies.separation.noise import Noise
from blemish.studies.separation.scores import accuracy, mscr
from blemish.studies.separation.trained import from_classifier
from blemish.studies.separation.training import Descent, _views, from_net, predictor, train_net, wide_resnet


def bright_and_dark(count: int = 48) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    return (rng.integers(0, 90, (count, 8, 8, 3)) + 150 * labels[:, None, None, None]).astype(np.uint8), labels


def linear(shape: tuple[int, ...], classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), classes))


def test_the_published_net_has_its_published_size() -> None:
    """36.5 million parameters: Zagoruyko and Komodakis 2016, Table 4 (WRN-28-10); 0.2 million for 16-1 is ours."""
    with torch.device("meta"):
        net = WideResNet(28, 10, classes=10)
    assert round(sum(p.numel() for p in net.parameters()) / 1e6, 1) == 36.5
    assert len(net.blocks) == 12


def test_shapes() -> None:
    net = WideResNet(10, 1, classes=7, channels=1).eval()
    assert net(torch.rand(2, 1, 16, 16)).shape == (2, 7)
    for depth, width in ((11, 1), (4, 1), (28, 0)):
        with pytest.raises(InputError, match=f"WRN-{depth}-{width}; expected a depth of 10"):
            WideResNet(depth, width, classes=2)


def test_training_learns_and_repeats() -> None:
    images, labels = bright_and_dark()
    train = wide_resnet(10, 1, epochs=6, batch=8, dropout=0.1, crop=False)
    points = images.astype(np.float32) / 255
    before = torch.random.get_rng_state()
    first = train(points, labels, Noise(0.05, run=1, role="train"))
    assert torch.equal(torch.random.get_rng_state(), before)
    again = train(points, labels, Noise(0.05, run=1, role="train"))
    probe = np.random.default_rng(1).uniform(size=(20, 8, 8, 3)).astype(np.float32)
    np.testing.assert_array_equal(first(probe), again(probe))
    assert accuracy(first, points, labels, Noise(0.05)) == 1


def test_nets_go_through_the_experiment() -> None:
    images, labels = bright_and_dark()
    train = from_net(linear, epochs=20, batch=8, crop=False)
    matrix = experiment(images, labels, train, model="linear", epsilon_min=0.1, eps_train=(0, 0.1), runs=2, k=1)
    assert matrix.accuracies.shape == (2, 2, 2)
    assert matrix.accuracies.min() > 0.8


def test_one_cycle_in_bfloat16_learns() -> None:
    images, labels = bright_and_dark()
    torch.manual_seed(0)
    net = WideResNet(10, 1, classes=2, dropout=0.0).to(memory_format=torch.channels_last)
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    calls: list[torch.Size] = []

    def forward(values: torch.Tensor) -> torch.Tensor:
        calls.append(values.shape)
        return net(values)  # type: ignore[no-any-return]

    descent = Descent(epochs=8, batch=16, rate=0.1, schedule="one-cycle", mixed=True, crop=False)
    losses = train_net(net, pixels, torch.from_numpy(labels), Noise(0.05), descent, forward=forward)
    assert len(losses) == 8
    assert losses[-1] < 0.2 < losses[0]
    assert calls == [(16, 3, 8, 8)] * 24
    assert accuracy(predictor(net), images.astype(np.float32) / 255, labels, Noise(0.05)) == 1


def test_the_rate_of_one_cycle_rises_and_falls() -> None:
    descent = Descent(epochs=5, rate=0.3, schedule="one-cycle")
    rates = [descent.rate_at(epoch, done) for epoch in range(5) for done in (0.0, 0.5)]
    assert rates[0] == 0
    assert rates.index(max(rates)) == 2  # after a fifth
    assert rates[2] == pytest.approx(0.3)
    assert rates[-1] == pytest.approx(0.3 * 0.1 / 0.8)
    with pytest.raises(InputError, match="schedule 'cosine'; expected steps or one-cycle"):
        Descent(schedule="cosine")  # type: ignore[arg-type]


def test_noise_around_tensors_is_that_around_arrays() -> None:
    points = np.random.default_rng(0).uniform(size=(6, 3, 4, 4)).astype(np.float32)
    for noise in (Noise(0.3), Noise(0.9, norm="l2", clip=True), Noise(0.2, draws="shared"), Noise(0.0)):
        ids = np.array([5, 0, 9, 2, 3, 4])
        found = noise.around_images(torch.from_numpy(points.copy()), torch.from_numpy(ids))
        np.testing.assert_allclose(found.numpy(), noise.around(points, ids=ids), atol=2e-7)


def test_bad_nets_are_explained() -> None:
    images, labels = bright_and_dark()
    with pytest.raises(InputError, match="epochs=0"):
        wide_resnet(10, 1, epochs=0)
    with pytest.raises(InputError, match="a net expects images"):
        wide_resnet(10, 1)(np.zeros((4, 2)), np.zeros(4, np.int64), Noise(0.0))
    with pytest.raises(InputError, match="training diverged"):
        from_net(
            lambda shape, classes: torch.nn.Sequential(
                torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), classes)
            ),
            rate=1e38,
        )(images.astype(np.float32), labels, Noise(0.0))


def test_trained_classifiers_see_the_noise_unrounded() -> None:
    """A classifier that asks whether the first value exceeds 0.5: ± 0.1 around 0.55 crosses for a quarter."""
    seen: list[torch.Tensor] = []

    def forward(values: torch.Tensor) -> torch.Tensor:
        seen.append(values)
        above = (values[:, 0, 0, 0] > 0.5).float()
        return torch.stack([1 - above, above], 1)

    classifier = Classifier("half", "test", forward, "", output="probabilities")
    images = np.full((2000, 4, 4), 0.55, np.float32)
    images[0] = 0.1
    labels = np.ones(2000, np.int64)
    labels[0] = 0
    (score,) = mscr({"half": from_classifier(classifier, clip=False)}, images, labels, epsilon=0.1, runs=2)
    assert score.clean == 1
    assert score.robust.value == pytest.approx(0.75, abs=0.03)
    assert ((seen[-1] * 255) % 1 > 0.01).any()
    levels = Classifier("levels", "test", forward, "", Preprocessing(levels=True))
    with pytest.raises(InputError, match="takes 8-bit levels"):
        from_classifier(levels, clip=False)
    with pytest.raises(InputError, match="expects"):
        from_classifier(classifier, clip=False)(np.zeros((3, 2)))


def test_a_net_that_exists_predicts() -> None:
    net = WideResNet(10, 1, classes=3)
    found = predictor(net)(np.zeros((5, 8, 8, 3), np.float32))
    assert found.shape == (5,)
    assert not net.training


def test_views_are_mirrored_or_shifted_copies() -> None:
    images = torch.arange(1, 65, dtype=torch.float32).reshape(1, 1, 8, 8).repeat(40, 1, 1, 1)
    views = _views(images, CounterRng(0, torch.arange(40)), flip=True, crop=True)
    padded = torch.nn.functional.pad(images[:1], (4,) * 4)
    places = [(top, left) for top in range(9) for left in range(9)]
    possible = [whole[..., y : y + 8, x : x + 8] for whole in (padded, _mirrored(images)) for y, x in places]
    found = [next(k for k, copy in enumerate(possible) if torch.equal(copy[0], view)) for view in views]
    assert len(set(found)) > 25
    assert {k // 81 for k in found} == {0, 1}
    assert torch.equal(_views(images, CounterRng(0, torch.arange(40)), flip=False, crop=False), images)


def _mirrored(images: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(images[:1].flip(3), (4,) * 4)
