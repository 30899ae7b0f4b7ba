"""Poisson quantiles: against SciPy's, at every one of the 2¹⁶ ranks that a normal draw can have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import special, stats
from torch import Tensor

from blemish.core.rng import CounterRng, _normal_table, as_ids
from blemish.ops.poisson import poisson_quantile

SUMMED = [0.01, 0.02, 0.1, 0.3, 0.5, 1.0, 1.3, 1.7, 2.0, 2.3, 2.499]
EXPANDED = [2.5, 2.7, 3.0, 4.0, 5.0, 7.5, 12.0, 20.0, 25.0, 60.0, 100.0, 250.0, 500.0]
LIMIT = 500.0


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Arrays this small are no work for several threads, which wait for each other when the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def ranks() -> Tensor:
    """All the values of the generator's normals, in ascending order."""
    table = _normal_table("cpu")
    assert len(table) == 2**16
    drawn = CounterRng(0, as_ids([0]), "ranks").normals("some", 1000)
    assert set(drawn.flatten().tolist()) <= set(table.tolist())
    return table


def exact(ranks: Tensor, mean: float) -> NDArray[np.float64]:
    """SciPy's count at Φ(rank), for the mean as float32 holds it."""
    return np.asarray(stats.poisson.ppf(special.ndtr(ranks.double().numpy()), float(np.float32(mean))))


def counts(ranks: Tensor, mean: float, limit: float = LIMIT) -> NDArray[np.float32]:
    return poisson_quantile(ranks, torch.full_like(ranks, mean), limit=limit).numpy()


@pytest.mark.parametrize("mean", SUMMED)
def test_small_means_are_exact_at_every_rank(ranks: Tensor, mean: float) -> None:
    np.testing.assert_array_equal(counts(ranks, mean), exact(ranks, mean))


@pytest.mark.parametrize("mean", EXPANDED)
def test_larger_means_are_one_count_off_at_few_ranks(ranks: Tensor, mean: float) -> None:
    wrong = np.abs(counts(ranks, mean) - exact(ranks, mean))
    assert wrong.max() <= 1
    # 0.25 % is promised for all means, and the error falls with the mean: 0.05 % at 5, 0.006 % from 20 on.
    assert (wrong > 0).mean() <= (0.0025 if mean < 5 else 0.0005 if mean < 20 else 0.00006)


@pytest.mark.parametrize("mean", SUMMED + EXPANDED)
def test_mean_and_variance_of_the_law(ranks: Tensor, mean: float) -> None:
    """A Poisson law's are equal; every rank is equally likely."""
    found = counts(ranks, mean).astype(np.float64)
    assert found.mean() == pytest.approx(mean, rel=0.005)
    assert found.var() == pytest.approx(mean, rel=0.005)


@pytest.mark.parametrize(
    "mean",
    SUMMED + EXPANDED,
)
def test_counts_never_fall_when_the_rank_rises(ranks: Tensor, mean: float) -> None:
    found = counts(ranks, mean)
    assert (np.diff(found) >= 0).all()
    assert found[0] >= 0


def test_no_light_gives_no_photons(ranks: Tensor) -> None:
    assert not counts(ranks, 0.0).any()
    assert not counts(ranks, 0.0, limit=1.0).any()


@pytest.mark.parametrize("mean", SUMMED)
def test_the_limit_changes_nothing_for_small_means(ranks: Tensor, mean: float) -> None:
    expected = counts(ranks, mean)
    for limit in (mean, 1.9999, 2.0, 60.0, float("inf")):
        np.testing.assert_array_equal(counts(ranks, mean, limit), expected)


@pytest.mark.parametrize("mean", [2.0, 5.0, 60.0])
def test_the_limit_changes_nothing_for_larger_means(ranks: Tensor, mean: float) -> None:
    expected = counts(ranks, mean)
    for limit in (mean, 1e6, float("inf")):
        np.testing.assert_array_equal(counts(ranks, mean, limit), expected)


def test_each_value_has_its_own_mean(ranks: Tensor) -> None:
    """A mixture of dark and bright values in the shape of images, against each mean alone."""
    choices = torch.tensor([0.0, 0.3, 1.999, 2.0, 2.5, 60.0])
    generator = torch.Generator().manual_seed(0)
    which = torch.randint(len(choices), (2, 3, 40, 50), generator=generator)
    rank = ranks[torch.randint(len(ranks), which.shape, generator=generator)]
    found = poisson_quantile(rank, choices[which], limit=60.0)
    assert found.dtype == torch.float32
    assert found.shape == which.shape
    for i, mean in enumerate(choices.tolist()):
        np.testing.assert_array_equal(found[which == i].numpy(), counts(rank[which == i], mean))


def test_the_arguments_survive(ranks: Tensor) -> None:
    rank, mean = ranks.clone(), torch.linspace(0, 60, len(ranks))
    before = mean.clone()
    for limit in (60.0, 1.0):
        poisson_quantile(rank, mean.clamp(max=limit), limit=limit)
        poisson_quantile(rank, mean, limit=60.0)
    assert torch.equal(rank, ranks)
    assert torch.equal(mean, before)
