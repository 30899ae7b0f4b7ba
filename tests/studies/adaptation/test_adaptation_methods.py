"""Each adaptation method against its paper's equations on a small network."""

from __future__ import annotations

import copy
import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from adapted_nets import FAST, images, small_net
from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.models.base import Classifier, Preprocessing
from blemish.studies.adaptation.augment import random_views
from blemish.studies.adaptation.base import Optimiser, adaptable, entropy
from blemish.studies.adaptation.cotta import CoTTA
from blemish.studies.adaptation.eata import EATA, ETA, RDumb
from blemish.studies.adaptation.gradient_free import BatchNorm, Unadapted
from blemish.studies.adaptation.methods import make_method
from blemish.studies.adaptation.norm import BatchStatistics, grouped, with_batch_statistics
from blemish.studies.adaptation.selftraining import CPL, RPL, Tent, conjugate_labels


class TestNone:
    def test_equals_plain_evaluation_bit_for_bit(self) -> None:
        net = small_net().network
        classifier = Classifier("net", "torch", net, "x", preprocessing=Preprocessing(mean=(0.5,), std=(0.25,)))
        method = Unadapted(adaptable(classifier))
        for seed in range(3):
            assert torch.equal(method.adapt(images(seed)).softmax(1), classifier(images(seed)))

    def test_scores_that_are_not_numbers(self) -> None:
        with pytest.raises(InputError, match="method none: the model gave scores that are not numbers"):
            Unadapted(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Threshold(9, float("nan")))).adapt(
                torch.ones(2, 3)
            )

    def test_models_that_cannot_be_adapted(self) -> None:
        with pytest.raises(InputError, match="kind onnx; expected a torch module"):
            adaptable(Classifier("net", "onnx", lambda x: x, "x"))
        with pytest.raises(InputError, match="gives probabilities"):
            adaptable(Classifier("net", "torch", nn.Identity(), "x", output="probabilities"))


class TestBatchNorm:
    def test_all_of_the_batch_is_training_mode(self) -> None:
        model = small_net()
        trained = copy.deepcopy(model)
        trained.network[1].train()
        assert torch.allclose(BatchNorm(model).adapt(images()), trained(images()), atol=1e-6)

    def test_none_of_the_batch_is_plain_evaluation(self) -> None:
        model = small_net()
        assert torch.allclose(BatchNorm(model, alpha=0).adapt(images()), model(images()), atol=1e-5)

    def test_mixed_by_hand(self) -> None:
        """Batch 1, 3: mean 2, variance 1. Training: mean 0, variance 4. α = 1/4: mean 0.5, variance 3.25."""
        layer = nn.BatchNorm1d(1, eps=0.0).eval()
        layer.running_mean.fill_(0)
        layer.running_var.fill_(4)
        values = torch.tensor([[1.0], [3.0]])
        expected = (values - 0.5) / math.sqrt(3.25)
        assert torch.allclose(with_batch_statistics(layer, alpha=0.25)(values), expected)
        # A prior of 6 pseudo-images and a batch of 2: α = 2 / 8.
        assert torch.allclose(BatchNorm(layer, prior=6).adapt(values), expected)

    def test_groups_have_their_own_statistics(self) -> None:
        """Image i belongs to group i mod 2."""
        model = with_batch_statistics(small_net())
        one, two = images(1), images(2)
        mixed = torch.stack([one, two], 1).flatten(0, 1)
        with grouped(model, 2):
            found = model(mixed)
        assert torch.allclose(found[::2], model(one), atol=1e-5)
        assert torch.allclose(found[1::2], model(two), atol=1e-5)
        assert all(layer.groups == 1 for layer in model.modules() if isinstance(layer, BatchStatistics))

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="bn needs batch norm layers"):
            BatchNorm(small_net("group"))
        with pytest.raises(InputError, match=r"alpha 1\.5"):
            BatchNorm(small_net(), alpha=1.5)
        with pytest.raises(InputError, match="not both"):
            BatchNorm(small_net(), alpha=0.5, prior=4)
        with pytest.raises(InputError, match="no statistics"):
            BatchNorm(nn.BatchNorm1d(1)).adapt(torch.ones(1, 1))


class TestTent:
    def test_entropy_falls_on_a_fixed_batch(self) -> None:
        method = Tent(small_net(), optimiser=Optimiser("sgd", 0.05, momentum=0.0))
        values = [float(entropy(method.adapt(images())).mean()) for _ in range(8)]
        assert all(after < before for before, after in itertools.pairwise(values))

    def test_one_step_by_hand(self) -> None:
        """The first step of SGD is θ − rate · ∂ mean entropy / ∂θ, whatever the momentum."""
        method = Tent(small_net(), optimiser=FAST)
        model = copy.deepcopy(method.model)
        log = F.log_softmax(model(images()), 1)
        loss = -(log.exp() * log).sum(1).mean()
        layer = model.network[1]
        (gradient,) = torch.autograd.grad(loss, layer.weight)
        method.adapt(images())
        assert torch.allclose(method.model.network[1].weight, layer.weight - 0.1 * gradient, atol=1e-6)


class TestPseudoLabels:
    def test_generalised_cross_entropy(self) -> None:
        logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        p = torch.tensor([math.exp(2) / (1 + math.exp(2)), math.e / (1 + math.e)])
        assert float(RPL(small_net()).loss(logits)) == pytest.approx(float(((1 - p**0.8) / 0.8).mean()), abs=1e-6)

    def test_conjugate_labels_solve_the_system(self) -> None:
        p = torch.randn(5, 7, dtype=torch.float64).softmax(1)
        for epsilon in (0.0, 1.0, 8.0):
            y = conjugate_labels(p, epsilon)
            for row, label in zip(p, y, strict=True):
                matrix = torch.eye(7) + epsilon * torch.diag(row) - epsilon * torch.outer(row, row)
                assert torch.allclose(torch.linalg.solve(matrix, row), label)
            assert torch.allclose(y.sum(1), torch.ones(5, dtype=torch.float64))

    def test_without_epsilon_it_is_tent(self) -> None:
        one, other = CPL(small_net(), epsilon=0.0, optimiser=FAST), Tent(small_net(), optimiser=FAST)
        for seed in range(4):
            assert torch.allclose(one.adapt(images(seed)), other.adapt(images(seed)), atol=1e-5)

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="q = 0"):
            RPL(small_net(), q=0)
        with pytest.raises(InputError, match="epsilon -1"):
            CPL(small_net(), epsilon=-1)
        with pytest.raises(InputError, match="learning rate 0"):
            Tent(small_net(), optimiser=Optimiser(rate=0.0))


class TestETA:
    def test_unsure_images_are_left_out(self) -> None:
        """Entropies 0.0486 (p = 0.99 of two) and ln 2; E₀ = 0.4 · ln 2 keeps the first, weighed by exp(E₀ − E)."""
        method = ETA(small_net(), similarity=2.0)
        logits = torch.tensor([[math.log(99), 0.0], [0.0, 0.0]])
        e = -(0.99 * math.log(0.99) + 0.01 * math.log(0.01))
        assert float(method.loss(logits)) == pytest.approx(e * math.exp(0.4 * math.log(2) - e), abs=1e-6)
        assert method.average is not None
        assert torch.allclose(method.average, torch.tensor([0.99, 0.01]))

    def test_images_like_the_average_are_left_out(self) -> None:
        method = ETA(small_net(), similarity=0.5)
        sure = torch.tensor([[10.0, 0.0]])
        assert method.loss(sure) is not None
        assert method.loss(sure) is None
        other = torch.tensor([[0.0, 10.0]])
        before = method.average.clone()
        assert method.loss(other) is not None
        assert torch.allclose(method.average, 0.9 * before + 0.1 * other.softmax(1)[0])

    def test_nothing_changes_without_a_reason(self) -> None:
        method = ETA(small_net(), margin=1e-6)
        before = copy.deepcopy(method.model.state_dict())
        method.adapt(images())
        assert all(torch.equal(value, before[key]) for key, value in method.model.state_dict().items())

    def test_eata_is_held_back(self) -> None:
        """With β = 0 it is ETA; with a large β scales stay nearer to where they were."""
        common = {"margin": 0.9, "similarity": 2.0, "optimiser": Optimiser("sgd", 0.01)}
        eta = ETA(small_net(), **common)
        free, held = (EATA(small_net(), clean=[images(90)], beta=beta, **common) for beta in (0.0, 50.0))
        start = eta.model.network[1].weight.detach().clone()
        for seed in range(20):
            assert torch.allclose(eta.adapt(images(seed)), free.adapt(images(seed)), atol=1e-6)
            held.adapt(images(seed))
        moved = {m: float((m.model.network[1].weight.detach() - start).norm()) for m in (free, held)}
        assert moved[held] < moved[free]

    def test_fisher_information_by_hand(self) -> None:
        method = EATA(small_net(), clean=[images(90), images(91)])
        model = copy.deepcopy(method.model)
        squares = []
        for seed in (90, 91):
            logits = model(images(seed))
            loss = F.cross_entropy(logits, logits.argmax(1))
            squares.append(torch.autograd.grad(loss, model.network[1].weight)[0] ** 2)
        assert torch.allclose(method.fisher["network.1.weight"], (squares[0] + squares[1]) / 2)

    def test_eata_needs_clean_images(self) -> None:
        with pytest.raises(InputError, match="eata needs clean images"):
            make_method("eata", small_net())
        with pytest.raises(InputError, match="no clean images"):
            EATA(small_net(), clean=[])


def test_rdumb_starts_afresh() -> None:
    """With a reset every 3 batches, batches 3, 4, 5 are predicted as if they were the first."""
    changes = {"optimiser": FAST, "margin": 0.9, "similarity": 2.0}
    method, eta = RDumb(small_net(), every=3, **changes), ETA(small_net(), **changes)
    for seed in range(3):
        assert torch.equal(method.adapt(images(seed)), eta.adapt(images(seed)))
    eta.reset()
    for seed in range(3, 6):
        assert torch.equal(method.adapt(images(seed)), eta.adapt(images(seed)))


class TestCoTTA:
    def test_a_sure_model_needs_no_views(self) -> None:
        """Confident 0: the first prediction is that of the batch's statistics."""
        method = CoTTA(small_net(), confident=0.0)
        assert torch.equal(method.adapt(images()), with_batch_statistics(small_net())(images()))

    def test_views_are_predicted_alike_however_they_are_cut_up(self) -> None:
        whole, cut = (CoTTA(small_net(), confident=1.0, views=6, room=room) for room in (10_000, 32))
        assert torch.allclose(whole.adapt(images()), cut.adapt(images()), atol=1e-4)

    @pytest.mark.parametrize("symmetric", [False, True])
    def test_one_step_by_hand(self, symmetric: bool) -> None:
        """Sure, so the teacher's own logits are learned; SGD's first step is θ − rate · gradient."""
        method = CoTTA(small_net(), confident=0.0, restore=0.0, symmetric=symmetric, optimiser=FAST)
        model = copy.deepcopy(method.model)
        with torch.no_grad():
            teacher = method.teacher(images())
        student = model(images())
        loss = F.cross_entropy(student, teacher.softmax(1))
        if symmetric:
            # F.cross_entropy takes the teacher's logits as input, and the student's probabilities as targets.
            loss = 0.5 * loss + 0.5 * F.cross_entropy(teacher, student.softmax(1))
        weight = model.network[0].weight
        (gradient,) = torch.autograd.grad(loss, weight)
        method.adapt(images())
        assert torch.allclose(method.model.network[0].weight, weight - 0.1 * gradient, atol=1e-6)

    def test_the_teacher_follows(self) -> None:
        method = CoTTA(small_net(), confident=1.0, views=2, decay=0.9, restore=0.0, optimiser=FAST)
        before = [value.clone() for value in method.teacher.parameters()]
        method.adapt(images())
        for old, teacher, student in zip(before, method.teacher.parameters(), method.model.parameters(), strict=True):
            assert torch.allclose(teacher, 0.9 * old + 0.1 * student, atol=1e-6)

    def test_weights_are_restored(self) -> None:
        """Probability 1 restores all; with 0.1, about a tenth is as it was."""
        every = CoTTA(small_net(), restore=1.0, optimiser=FAST)
        every.adapt(images())
        given = small_net().state_dict()
        assert all(torch.equal(value, given[key]) for key, value in every.model.named_parameters())
        some = CoTTA(small_net(), restore=0.1, optimiser=FAST, confident=1.0, views=2)
        some.adapt(images())
        same = torch.cat([(v == given[k]).flatten() for k, v in some.model.named_parameters()]).float()
        assert 0.05 < float(same.mean()) < 0.25

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match=r"decay 1\.5"):
            CoTTA(small_net(), decay=1.5)
        with pytest.raises(InputError, match="0 views"):
            CoTTA(small_net(), views=0)

    def test_random_views(self) -> None:
        unit = images(count=8).float() / 255
        views = random_views(unit, CounterRng(0, torch.arange(8)))
        assert views.shape == unit.shape
        assert 0 <= float(views.min()) <= float(views.max()) <= 1
        assert torch.equal(views[3:5], random_views(unit[3:5], CounterRng(0, torch.tensor([3, 4]))))
        gray = torch.full((4, 1, 12, 12), 0.5)
        assert random_views(gray, CounterRng(0, torch.arange(4))).shape == gray.shape
        # Brightness 0.6 … 1.4 and gamma 0.7 … 1.3 of a mid gray: what is left of it after all of them.
        low, high = 0.3**1.3, 0.7**0.7
        means = random_views(torch.full((200, 3, 12, 12), 0.5), CounterRng(1, torch.arange(200))).mean((1, 2, 3))
        assert low - 0.01 < float(means.min()) < float(means.max()) < high + 0.01

    def test_views_are_shifted_by_up_to_an_eighth_of_a_side(self) -> None:
        """torchvision's affine shifts by 1/16 of what it is given, here an image with a border of half its side."""
        dot = torch.zeros(1, 3, 48, 48)
        dot[..., 23:25, 23:25] = 1
        views = random_views(dot.expand(400, -1, -1, -1), CounterRng(2, torch.arange(400))).mean(1) - 0.1
        weights = views.clamp(min=0)
        places = torch.arange(48) - 23.5
        total = weights.sum((1, 2))
        for along in (1, 2):
            shift = (weights.sum(along) * places).sum(1) / total
            assert 5.5 < float(shift.abs().max()) < 6.1  # 48 / 8 = 6
            assert abs(float(shift.mean())) < 0.6


@pytest.mark.parametrize(
    ("margin", "limit"),
    [
        # The authors' code since 17 August 2023: 0.4 · ln(1000).
        (None, 2.7631),
        ("release", 2.7631),
        # Before: ln(1000)/2 − 1.
        ("first-release", 2.4539),
    ],
)
def test_rdumbs_margins(margin: str | None, limit: float) -> None:
    method = make_method("rdumb", small_net(), similarity=2.0, **({} if margin is None else {"margin": margin}))
    assert isinstance(method, RDumb)
    assert method.margin * math.log(1000) == pytest.approx(limit, abs=1e-4)
    # p = 0.76 and the rest even over 999 classes gives E = −0.76 ln 0.76 − 0.24 ln(0.24 / 999) = 2.209; p = 0.7 gives
    # 2.683, which lies between the two margins; p = 0.6 gives 3.436.
    for share, uncertainty in ((0.76, 2.209), (0.7, 2.683), (0.6, 3.436)):
        logits = torch.full((1, 1000), math.log((1 - share) / 999))
        logits[0, 0] = math.log(share)
        method.reset()
        assert (method.loss(logits) is not None) == (uncertainty < limit)


def test_a_margin_that_is_none() -> None:
    with pytest.raises(InputError, match="margin 'old'; expected a number, or one of release, first-release"):
        make_method("rdumb", small_net(), margin="old")
    for margin in (0, float("nan")):
        with pytest.raises(InputError, match="expected positive numbers"):
            make_method("rdumb", small_net(), margin=margin)
