"""Chains and random severities, which are corruptions themselves."""

from __future__ import annotations

import pickle

import pytest
import torch
from scipy import stats

import blemish
from blemish.corruptions.compose import chain, random_severity
from pictures import pictures

C = blemish.catalog


def test_a_chain_of_one_is_its_link() -> None:
    images = pictures(3, 3, 40, 48)
    assert torch.equal(chain((C["snow"], 4))(images, severity=5, seed=2), C["snow"](images, severity=4, seed=2))


def test_a_chain_quantises_between_its_links() -> None:
    images = pictures(3, 3, 40, 48)
    linked = chain((C["fog"], 3), (C["jpeg_compression"], 2), (C["gaussian_noise"], 1.5))
    by_hand = C["gaussian_noise"](C["jpeg_compression"](C["fog"](images, severity=3), severity=2), severity=1.5)
    assert torch.equal(linked(images, severity=5), by_hand)


def test_lower_severities_shrink_every_link() -> None:
    images = pictures(2, 3, 40, 48)
    linked = chain((C["contrast"], 4), (C["brightness"], 2))
    by_hand = C["brightness"](C["contrast"](images, severity=2), severity=1)
    assert torch.equal(linked(images, severity=2.5), by_hand)
    assert torch.equal(linked(images, severity=0), images)


def test_the_same_corruption_twice_draws_twice() -> None:
    """Variances of independent noises add up; the same noise twice would double the deviation."""
    images = torch.full((4, 3, 64, 64), 128, dtype=torch.uint8)
    once, twice = (chain(*[(C["gaussian_noise"], 1)] * n)(images, severity=5, preset="cifar") for n in (1, 2))
    ratio = twice.double().std() / once.double().std()
    assert 1.35 < ratio < 1.48


def test_severities_per_image_in_a_chain_with_grouped_links() -> None:
    images = pictures(4, 3, 32, 32)
    linked = chain((C["zoom_blur"], 3), (C["pixelate"], 4))
    together = linked(images, severity=[1, 5, 0, 5], ids=range(4))
    for i, severity in enumerate([1, 5, 0, 5]):
        assert torch.equal(together[i : i + 1], linked(images[i : i + 1], severity=severity, ids=[i]))


def test_chains_travel_to_workers() -> None:
    images = pictures(1, 3, 32, 32)
    transform = blemish.Corrupt(chain((C["fog"], 3), (C["frost_drawn"], 2)), severity=5)
    assert torch.equal(pickle.loads(pickle.dumps(transform))(images), transform(images))


def test_bad_chains_are_refused() -> None:
    with pytest.raises(blemish.InputError, match="at least one"):
        chain()
    with pytest.raises(blemish.InputError, match="fog in a chain: severity 6; expected"):
        chain((C["fog"], 6))
    with pytest.raises(blemish.InputError, match="fog in a chain: severity 0; expected more"):
        chain((C["fog"], 0))
    with pytest.raises(blemish.InputError, match="unknown preset 'cifra'"):
        chain((C["fog"], 3))(pictures(1, 3, 32, 32), severity=5, preset="cifra")


def test_random_severity_is_the_corruption_at_a_severity_of_the_images_own() -> None:
    images = pictures(40, 3, 16, 16)
    ranged = random_severity(C["contrast"], 1, 5)
    out = ranged(images, severity=5, ids=range(40))
    params = {}
    for i in range(40):
        candidates = torch.linspace(1, 5, 81, dtype=torch.float64)
        tries = C["contrast"](images[i : i + 1].expand(81, -1, -1, -1), severity=candidates)
        distance = (tries.double() - out[i].double()).abs().mean((1, 2, 3))
        params[i] = float(candidates[distance.argmin()])
        assert distance.min() < 1
    assert stats.kstest(list(params.values()), stats.uniform(1, 4).cdf).pvalue > 0.001


def test_random_severity_depends_on_the_id_alone() -> None:
    images = pictures(4, 3, 32, 32)
    ranged = random_severity(C["gaussian_noise"], 2, 3)
    together = ranged(images, severity=5, ids=[7, 8, 9, 10])
    assert torch.equal(ranged(images[2:3], severity=5, ids=[9]), together[2:3])
    assert torch.equal(ranged(images, severity=0), images)
    fixed = random_severity(C["gaussian_noise"], 2, 2)
    assert torch.equal(fixed(images, severity=5), C["gaussian_noise"](images, severity=2))
    with pytest.raises(blemish.InputError, match="0 ≤ low"):
        random_severity(C["fog"], 3, 2)
