"""NOTE's memory, its layer and its step by hand, and networks that are trained with its layer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from adapted_nets import CLASSES, FAST, Plain, images, norms, small_net
from blemish.core.errors import InputError
from blemish.studies.adaptation.moving_norms import InstanceAware, instance_aware
from blemish.studies.adaptation.note import NOTE, BalancedReservoir


class TestNOTE:
    def test_the_reservoir(self) -> None:
        """Two places; a class that is not among the most frequent replaces, one that is does so by chance m / n."""
        memory = BalancedReservoir(2)
        one, two, three = (torch.full((1,), float(value)) for value in (1, 2, 3))
        memory.add(one, 0, (0.5, 0.5, 0.5))
        memory.add(two, 0, (0.5, 0.5, 0.5))
        memory.add(three, 1, (0.5, 0.5, 0.9))  # class 0 is the most frequent: its second item goes
        assert memory.labels == [0, 1]
        assert torch.equal(memory.images[1], three)
        memory.add(two, 0, (0.5, 0.4, 0.0))  # 1 of 3 were kept, and 0.4 > 1 / 3: dropped
        assert torch.equal(memory.images[0], one)
        memory.add(two, 0, (0.5, 0.2, 0.0))  # 0.2 < 1 / 4
        assert torch.equal(memory.images[0], two)
        assert memory.seen == {0: 4, 1: 1}

    def test_the_layer_by_hand(self) -> None:
        layer = nn.BatchNorm2d(2)
        layer.running_mean.copy_(torch.tensor([0.5, -1.0]))
        layer.running_var.copy_(torch.tensor([2.0, 0.5]))
        x = torch.randn(3, 2, 4, 4, generator=torch.Generator().manual_seed(1)) * 3 + 1
        found = InstanceAware(layer, 0.01, 1.0).eval()(x)
        for image in range(3):
            for channel in range(2):
                values = x[image, channel]
                mean, variance = float(layer.running_mean[channel]), float(layer.running_var[channel])
                slack, other = math.sqrt((variance + 1e-5) / 16), (variance + 1e-5) * math.sqrt(2 / 15)
                gap, wide = float(values.mean()) - mean, float(values.var(unbiased=True)) - variance
                mean += math.copysign(max(abs(gap) - slack, 0), gap)
                variance = max(0.0, variance + math.copysign(max(abs(wide) - other, 0), wide))
                assert torch.allclose(found[image, channel], (values - mean) / math.sqrt(variance + 1e-5), atol=1e-4)

    def test_a_network_to_train_with_its_layer(self) -> None:
        """It learns by the batch, moves its statistics as batch norm does, and keeps the names of what it holds."""
        plain = small_net()
        network = instance_aware(plain)
        assert network.state_dict().keys() == plain.state_dict().keys()
        layers = [layer for layer in network.modules() if isinstance(layer, InstanceAware)]
        assert layers
        assert all(layer.moves and layer.k == 4 for layer in layers)
        x = images(1)
        network(x)
        plain.train()(x)  # k does not matter to the statistics of the first layer
        first = next(layer for layer in plain.modules() if isinstance(layer, nn.BatchNorm2d))
        assert torch.allclose(layers[0].running_mean, first.running_mean, atol=1e-5)
        assert torch.allclose(layers[0].running_var, first.running_var, atol=1e-5)

    def test_what_cannot_be_trained_with_its_layer(self) -> None:
        with pytest.raises(InputError, match="needs batch norm"):
            instance_aware(nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)))
        with pytest.raises(InputError, match="statistics of training"):
            instance_aware(nn.BatchNorm2d(4, track_running_stats=False))
        layer = instance_aware(nn.BatchNorm2d(4, momentum=0.01), k=2)
        assert isinstance(layer, InstanceAware)
        assert (layer.momentum, layer.k) == (0.01, 2)
        with pytest.raises(InputError, match=r"\(1, 4, 1, 1\) has no statistics"):
            layer(torch.zeros(1, 4, 1, 1))
        assert layer.running_var.isfinite().all()

    def test_a_network_that_has_its_layer_keeps_it(self) -> None:
        """NOTE then predicts as the network does, and as one with batch norm and the same weights would be made to."""
        network = instance_aware(small_net()).eval()
        x = images(2)
        method = NOTE(network, room=64, every=16, momentum=0.05)
        assert torch.equal(method.predict(x), network(x))
        assert torch.equal(method.predict(x), NOTE(small_net()).predict(x))
        layers = [layer for layer in method.model.modules() if isinstance(layer, InstanceAware)]
        assert layers
        assert all(layer.momentum == 0.05 and not layer.moves for layer in layers)
        own = [layer for layer in network.modules() if isinstance(layer, InstanceAware)]
        assert all(layer.momentum == 0.1 for layer in own)  # the one that was given stays as it is
        before = {name: value.clone() for name, value in network.state_dict().items()}
        method.adapt(x)
        assert any(not torch.equal(value, method.model.state_dict()[name]) for name, value in before.items())
        assert all(torch.equal(value, network.state_dict()[name]) for name, value in before.items())

    def test_one_step(self) -> None:
        """With k so large that nothing is corrected, the step is one of entropy over batch norm by the batch."""
        x, plain = images(3), Plain(small_net())
        method = NOTE(small_net(), room=64, every=16, k=1e9, optimiser=FAST)
        before = plain(x, share=0.0).detach()
        assert torch.allclose(method.adapt(x), before, atol=1e-4)
        p = plain(x, unbiased=True).softmax(1)
        loss = -(p * (p + 1e-6).log()).sum(1).mean() / CLASSES
        gradients = torch.autograd.grad(loss, (plain.weight, plain.bias))
        for found, old, gradient in zip(norms(method), (plain.weight, plain.bias), gradients, strict=True):
            assert torch.allclose(found, old - 0.1 * gradient, atol=1e-5)
        assert torch.allclose(
            method.model.network[1].running_mean, 0.99 * plain.norm.running_mean + 0.01 * plain.moved[0], atol=1e-5
        )
