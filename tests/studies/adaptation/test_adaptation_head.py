"""T3A and LAME against plain implementations of their equations, image by image."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from adapted_nets import CLASSES, images, small_net
from blemish.core.errors import InputError
from blemish.models.base import Preprocessing
from blemish.studies.adaptation.base import Levels
from blemish.studies.adaptation.head import LAME, T3A, Headed, affinity
from blemish.studies.adaptation.norm import UnsuitedError


def split(batch: Tensor) -> tuple[Tensor, Tensor, nn.Linear]:
    """Features, logits and head of the small network, by its parts."""
    model = small_net()
    with torch.no_grad():
        features = model.network[:-1](model.preprocessing(batch))
        return features, model.network[-1](features), model.network[-1]


def plain_entropy(logits: Tensor) -> float:
    p = [float(value) for value in logits.softmax(0)]
    return -sum(value * math.log(value) for value in p if value > 0)


def plain_t3a(batches: list[Tensor], keep: int | str) -> Tensor:
    """The scores of the last batch: lists of (entropy, feature) per class."""
    head = split(batches[0])[2]
    supports: list[list[tuple[float, Tensor]]] = [[] for _ in range(CLASSES)]
    with torch.no_grad():
        for row in head.weight:
            scores = head(row)
            supports[int(scores.argmax())].append((plain_entropy(scores), row))
        for batch in batches:
            features, logits, _ = split(batch)
            for feature, scores in zip(features, logits, strict=True):
                supports[int(scores.argmax())].append((plain_entropy(scores), feature))
            for kept in supports:
                kept.sort(key=lambda entry: entry[0])
                end = len(kept) - 1 if keep == "all-released" else len(kept) if keep == "all" else int(keep)
                del kept[max(end, 0) :]
        weights = []
        for kept in supports:
            total = sum((feature / feature.norm() for _, feature in kept), torch.zeros(24))
            weights.append(total / max(float(total.norm()), 1e-12))
        return features @ torch.stack(weights).T


class TestT3A:
    @pytest.mark.parametrize("keep", [1, 3, 100, "all", "all-released"])
    def test_against_a_plain_implementation(self, keep: int | str) -> None:
        batches = [images(seed) for seed in range(3)]
        method = T3A(small_net(), keep=keep)
        for number, batch in enumerate(batches):
            expected = plain_t3a(batches[: number + 1], keep)
            assert torch.allclose(method.adapt(batch), expected, rtol=1e-4, atol=1e-4)

    def test_few_supports_stay(self) -> None:
        method = T3A(small_net(), keep=2)
        for seed in range(4):
            method.adapt(images(seed))
        label = method.state_dict()["supports"]["label"]
        assert int(torch.bincount(label).max()) == 2

    def test_refusals(self) -> None:
        for keep in (0, "most"):
            with pytest.raises(InputError, match=f"keep {keep!r} for T3A"):
                T3A(small_net(), keep=keep)
        with pytest.raises(InputError, match="not one of t3a on this model"):
            T3A(small_net()).load_state_dict({})


class TestLAME:
    def test_affinities_by_hand(self) -> None:
        """Rows at 0, 1 and 3 on a line. Second nearest, itself first: 1, 1 and 2; σ = 4/3."""
        rows = torch.tensor([[0.0], [1.0], [3.0]])
        near, far, farther = (math.exp(-(d**2) / (2 * (4 / 3) ** 2)) for d in (1, 2, 3))
        expected = torch.tensor([[1, near, farther], [near, 1, far], [farther, far, 1]])
        assert torch.allclose(affinity(rows, "rbf", 2), expected)
        assert affinity(rows, "knn", 1).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
        assert affinity(rows, "linear", 1).tolist() == [[0, 0, 0], [0, 1, 3], [0, 3, 9]]
        # Fewer rows than neighbours: all the others, and the greatest distance (3, 2 and 3).
        assert torch.equal(affinity(rows, "knn", 9), 1 - torch.eye(3))
        assert float(affinity(rows, "rbf", 9)[0, 1]) == pytest.approx(math.exp(-1 / (2 * (8 / 3) ** 2)))

    @pytest.mark.parametrize("kind", ["rbf", "knn", "linear"])
    def test_against_a_plain_implementation(self, kind: str) -> None:
        features, logits, _ = (part for part in split(images()))
        features, p = features.double(), logits.double().softmax(1)
        w = affinity(features / features.norm(dim=1, keepdim=True), kind, 5)  # type: ignore[arg-type]
        y, before = (p + 1e-10) / (p + 1e-10).sum(1, keepdim=True), 0.0
        for done in range(100):
            pull = torch.stack([sum((w[i, j] * y[j] for j in range(16)), torch.zeros(CLASSES)) for i in range(16)])
            raised = (p + 1e-10) * pull.exp()
            y = raised / raised.sum(1, keepdim=True)
            energy = float((-(p + 1e-10).log() * y - pull * y + y * y.log()).sum())
            if done > 1 and abs(energy - before) <= 1e-8 * abs(before):
                break
            before = energy
        found = LAME(small_net(), kind=kind).adapt(images())  # type: ignore[arg-type]
        assert torch.allclose(found.exp().double(), y, atol=1e-4)
        assert not torch.allclose(y, p, atol=1e-2)

    def test_a_batch_of_one_image_keeps_its_class(self) -> None:
        for kind in ("rbf", "knn", "linear"):
            found = LAME(small_net(), kind=kind).adapt(images(count=1))  # type: ignore[arg-type]
            assert found.isfinite().all()
            assert int(found.argmax()) == int(small_net()(images(count=1)).argmax())

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="affinity 'near' for LAME; expected one of rbf, knn, linear"):
            LAME(small_net(), kind="near")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="0 neighbours and 100 rounds"):
            LAME(small_net(), neighbours=0)


class Scaled(nn.Module):
    """A network whose scores are not what its last linear layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.linear(images.mean((2, 3)))
        return 5 * logits


@pytest.mark.parametrize("method", [T3A, LAME])
class TestHeads:
    def test_networks_without_a_linear_head(self, method: type[Headed]) -> None:
        convolution = nn.Sequential(nn.Conv2d(3, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        with pytest.raises(UnsuitedError, match="needs a linear layer at its end, and Sequential has none"):
            method(convolution)
        model = Levels(Scaled(), Preprocessing())
        with pytest.raises(UnsuitedError, match="Scaled has none"):
            method(model, sample=images(count=1))
        with pytest.raises(UnsuitedError, match="Scaled has none"):
            method(model).adapt(images())

    def test_classes_that_are_dropped(self, method: type[Headed]) -> None:
        """A background class in front is no class of the method either."""
        net = small_net().network
        preprocessing = Preprocessing(mean=(0.5,), std=(0.25,))
        fewer = nn.Sequential(*net[:-1], nn.Linear(24, CLASSES - 1))
        fewer[-1].load_state_dict({"weight": net[-1].weight[1:], "bias": net[-1].bias[1:]})
        dropping, without = method(Levels(net, preprocessing, 1)), method(Levels(fewer.eval(), preprocessing))
        assert torch.allclose(dropping.adapt(images()), without.adapt(images()), atol=1e-5)
