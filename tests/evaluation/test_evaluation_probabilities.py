"""All class probabilities of a few images are those that records keep a part of."""

from __future__ import annotations

import numpy as np
import pytest

import blemish
from blemish.data.cache import load
from blemish.evaluation.measure import measure, probabilities
from blemish.evaluation.plan import plan_for


@pytest.mark.parametrize("batch_size", [1, 7])
def test_they_agree_with_the_records(batch_size: int) -> None:
    images = load(blemish.open_source("demo:digits").take(np.arange(20)))
    names = ("clean", "contrast@3", "contrast@3+gaussian_noise@2", "contrast@3+gaussian_noise@4")
    conditions = [blemish.parse_condition(name) for name in names]
    plan = plan_for(blemish.open_model("demo:plain"), images, conditions, batch_size=batch_size)
    for (condition, records), (same, shares) in zip(measure(plan), probabilities(plan), strict=True):
        assert condition == same
        assert shares.shape == (20, 10)
        ordered = shares.sort(descending=True, stable=True)
        assert np.array_equal(ordered.indices[:, :5].numpy(), records.top5)
        assert np.array_equal(ordered.values[:, 0].numpy(), records.confidence)
        assert np.array_equal(shares.numpy()[np.arange(20), images.labels], records.label_confidence)
