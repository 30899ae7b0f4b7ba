"""norm-α and norm-EMA against their equations, by hand and on a small network."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from adapted_nets import images, small_net
from blemish.core.errors import InputError
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.adaptation.statistics import NormAlpha, NormEMA

# Batch 1, 3: mean 2, unbiased variance 2, biased 1. Training: mean 0, variance 4.
VALUES = torch.tensor([[1.0], [3.0]])


def one_layer() -> nn.BatchNorm1d:
    layer = nn.BatchNorm1d(1, eps=1e-9).eval()
    layer.running_mean.fill_(0)
    layer.running_var.fill_(4)
    return layer


class TestNormAlpha:
    def test_by_hand(self) -> None:
        """α = 0.1: mean 0.2, variance 0.9 · 4 + 0.1 · 2 = 3.8; with the biased variance 3.7."""
        assert torch.allclose(NormAlpha(one_layer()).adapt(VALUES), (VALUES - 0.2) / math.sqrt(3.8))
        biased = NormAlpha(one_layer(), unbiased=False)
        assert torch.allclose(biased.adapt(VALUES), (VALUES - 0.2) / math.sqrt(3.7))

    def test_by_torch_s_running_estimate(self) -> None:
        """Torch moves running statistics by momentum · batch, so that a pass in training mode has made the mixture."""
        plain = small_net()
        layer = plain.network[1]
        layer.train()
        plain(images())
        layer.eval()
        assert torch.allclose(NormAlpha(small_net()).adapt(images()), plain(images()), atol=1e-5)

    def test_a_batch_of_one_image(self) -> None:
        assert NormAlpha(small_net()).adapt(images(count=1)).shape == (1, 4)

    def test_refusals(self) -> None:
        with pytest.raises(UnsuitedError, match="norm_alpha needs batch norm layers"):
            NormAlpha(small_net("group"))
        with pytest.raises(InputError, match=r"alpha -0\.1 for norm_alpha"):
            NormAlpha(small_net(), alpha=-0.1)


class TestNormEMA:
    def test_by_hand(self) -> None:
        """After one batch mean 0.2, variance 3.8; after the second 0.9 · 0.2 + 0.2 = 0.38 and 3.42 + 0.2 = 3.62."""
        method = NormEMA(one_layer())
        assert torch.allclose(method.adapt(VALUES), (VALUES - 0.2) / math.sqrt(3.8))
        assert torch.allclose(method.adapt(VALUES), (VALUES - 0.38) / math.sqrt(3.62))
        method.reset()
        assert torch.allclose(method.adapt(VALUES), (VALUES - 0.2) / math.sqrt(3.8))
        assert torch.allclose(NormEMA(one_layer(), momentum=1.0).adapt(VALUES), (VALUES - 2) / math.sqrt(2))

    def test_later_layers_see_what_the_batch_was_normalised_by(self) -> None:
        """In the first pass the second layer gets values normalised by the batch: mean 0, unbiased variance 2."""
        method = NormEMA(nn.Sequential(one_layer(), one_layer()))
        first = (VALUES - 0.2) / math.sqrt(3.8)
        assert torch.allclose(method.adapt(VALUES), first / math.sqrt(0.9 * 4 + 0.1 * 2), atol=1e-6)

    def test_the_state_holds_the_statistics(self) -> None:
        method = NormEMA(small_net())
        for seed in range(3):
            method.adapt(images(seed))
        state = copy.deepcopy(method.state_dict())
        expected = method.adapt(images(9))
        other = NormEMA(small_net())
        other.load_state_dict(state)
        assert torch.equal(other.adapt(images(9)), expected)
        with pytest.raises(InputError, match="not one of norm_ema on this model"):
            other.load_state_dict({})

    def test_refusals(self) -> None:
        with pytest.raises(UnsuitedError, match="norm_ema needs batch norm layers"):
            NormEMA(small_net("group"))
        with pytest.raises(UnsuitedError, match="starts from statistics of training in each"):
            NormEMA(nn.BatchNorm1d(1, track_running_stats=False))
        with pytest.raises(InputError, match="momentum 2 for norm_ema"):
            NormEMA(small_net(), momentum=2)
        method = NormEMA(one_layer())
        with pytest.raises(InputError, match=r"a batch of shape \(1, 1\) has no statistics"):
            method.adapt(torch.ones(1, 1))
        assert not any(layer.training for layer in method.model.modules())
