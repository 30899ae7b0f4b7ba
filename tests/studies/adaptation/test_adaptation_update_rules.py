"""One step of the newer methods against plain implementations of their equations, written here on their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F

from adapted_nets import CLASSES, FAST, Plain, images, norms, small_net
from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.adacontrast import AdaContrast, contrast_with_queue
from blemish.studies.adaptation.asr import ASR
from blemish.studies.adaptation.augment import mirrored, random_views, strong_views
from blemish.studies.adaptation.augmix import _equalised, _sheared_x, _sheared_y, augmixed
from blemish.studies.adaptation.cmf import CMF
from blemish.studies.adaptation.memo import MEMO
from blemish.studies.adaptation.rmt import RMT, contrast
from blemish.studies.adaptation.roid import ROID, corrected
from blemish.studies.adaptation.rotta import Memory, RoTTA

LOG_C = math.log(CLASSES)


def roid_loss(plain: Plain, x: Tensor, average: Tensor) -> tuple[Tensor, Tensor]:
    """Image by image, as the paper's equations read."""
    z = plain(x)
    p = z.softmax(1).detach()
    diversity = torch.stack([1 - (average @ row) / (average.norm() * row.norm()) for row in p])
    certainty = torch.stack([(row * row.log()).sum() for row in p])
    d = (diversity - diversity.min()) / (diversity.max() - diversity.min())
    c = (certainty - certainty.min()) / (certainty.max() - certainty.min())
    weights = [float(torch.exp(3 * d[i] * c[i])) if d[i] >= d.mean() else 0.0 for i in range(len(x))]
    chosen = torch.tensor([i for i, weight in enumerate(weights) if weight > 0])
    rng = CounterRng(0, chosen, "roid 0", x.device)
    other = plain(random_views(x[chosen].float() / 255, rng, smooth=False) * 255).softmax(1)
    total = torch.zeros(())
    for place, i in enumerate(chosen.tolist()):
        own, view = z[i].softmax(0), other[place]
        q = own.clamp(max=0.99)
        total = total - weights[i] * (q * torch.log(q / (1 - q) + 1e-5)).sum()
        total = total - weights[i] * 0.5 * ((own * view.log()).sum() + (view * own.log()).sum())
    return z, total / len(x)


class TestROID:
    def test_one_step(self) -> None:
        x, plain = images(3), Plain(small_net())
        z, loss = roid_loss(plain, x, torch.full((CLASSES,), 1 / CLASSES))
        gradients = torch.autograd.grad(loss, (plain.weight, plain.bias))
        method = ROID(small_net(), optimiser=FAST)
        logits = method.adapt(x)
        for found, before, gradient in zip(norms(method), (plain.weight, plain.bias), gradients, strict=True):
            expected = 0.99 * (before - 0.1 * gradient) + 0.01 * before
            assert torch.allclose(found, expected, atol=1e-6)
            assert not torch.allclose(found, before, atol=1e-5)
        prior = z.softmax(1).mean(0)
        smooth = max(1 / 16, 1 / CLASSES) / prior.max()
        assert torch.allclose(logits, z * (prior + smooth) / (1 + smooth * CLASSES), atol=1e-5)
        assert method.average is not None
        assert torch.allclose(method.average, 0.9 / CLASSES + 0.1 * prior)

    def test_priors(self) -> None:
        """Multiplying probabilities by a prior is adding its logarithm to logits."""
        z = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(0))
        ratio = corrected(z, "probabilities").softmax(1) / z.softmax(1)
        factors = ratio / ratio[:, :1]
        assert torch.allclose(factors, factors[:1].expand_as(factors), atol=1e-4)
        assert torch.equal(corrected(z, "none"), z)

    def test_images_that_are_all_alike_change_nothing(self) -> None:
        method = ROID(small_net("group"), optimiser=FAST)
        before = [value.clone() for value in norms(method)]
        method.adapt(images()[:1].expand(5, -1, -1, -1))
        assert all(torch.equal(a, b) for a, b in zip(before, norms(method), strict=True))

    def test_what_is_refused(self) -> None:
        with pytest.raises(InputError, match="prior 'some'"):
            ROID(small_net(), prior="some")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="temperature 0"):
            ROID(small_net(), temperature=0)
        with pytest.raises(InputError, match="alpha 2"):
            CMF(small_net(), alpha=2)


def test_cmf_follows_its_filter() -> None:
    """Two steps; the filter's numbers by hand, from θ after ROID's own step."""
    x, noise = images(3), 1000.0
    method = CMF(small_net(), optimiser=FAST, noise=noise)
    q = noise * 12 / 38_400  # six scales and six shifts
    origin = small_net().network[1].weight.detach()
    plain = ROID(small_net(), optimiser=FAST, source=0.0)
    method.adapt(x)
    plain.adapt(x)
    stepped = norms(plain)[0]
    beta = max(0.89, (1 - q) / (q + 1 - q))
    hidden = beta * origin + (1 - beta) * stepped
    assert torch.allclose(norms(method)[0], 0.99 * stepped + 0.01 * hidden, atol=1e-6)
    first = beta * q
    assert method.variance == pytest.approx(first)
    method.adapt(images(4))
    v = 0.99**2 * first + q
    assert method.variance == pytest.approx(v * max(0.89, (1 - q) / (v + 1 - q)))


class TestASR:
    def test_a_reset_keeps_the_first_tensors(self) -> None:
        """With the baseline at ln C every batch falls below it: half of the two tensors, the scales, stay."""
        method = ASR(small_net(), optimiser=FAST, margin=0.9, similarity=2.0, first=1.0, steep=0.0)
        source = [value.clone() for value in norms(method)]
        method.adapt(images(3))
        scale, shift = norms(method)
        assert method.resets == 1
        assert not torch.equal(scale, source[0])
        assert torch.equal(shift, source[1])
        assert method.baseline == pytest.approx(LOG_C)

    def test_the_baseline_follows(self) -> None:
        method = ASR(small_net(), optimiser=FAST, margin=0.9, similarity=2.0, first=0.3, momentum=0.15)
        x = images(3)
        z = Plain(small_net())(x).detach()
        mean = z.mean(0).softmax(0)
        h = float(-(mean * mean.log()).sum())
        method.adapt(x)
        # The model as given says the same before any step, so that φ = 0 and m = 1 − 0.15.
        assert h > math.log(0.3 * CLASSES)
        assert method.resets == 0
        assert method.baseline == pytest.approx(0.85 * math.log(0.3 * CLASSES) + 0.15 * h, rel=1e-5)

    def test_what_was_learnt_is_held(self) -> None:
        """After a reset the loss has λ Σ F̄ (θ − θ̄)²; its gradient joins that of the base."""
        method = ASR(small_net(), optimiser=FAST, margin=0.9, similarity=2.0, first=1.0, steep=0.0)
        method.adapt(images(3))
        fisher, before = method.kept["fisher"], method.kept["weights"]
        name = "network.1.weight"
        assert torch.allclose(before[name], small_net().network[1].weight)
        method.weight = 2.0
        penalty = method._penalty()
        assert penalty is not None
        theta = norms(method)[0]
        expected = 2.0 * (fisher[name] * (theta - before[name]) ** 2).sum()
        assert penalty.item() == pytest.approx(expected.item(), rel=1e-4)

    def test_bases(self) -> None:
        assert ASR(small_net(), base="roid").adapt(images()).shape == (16, CLASSES)
        with pytest.raises(InputError, match="base 'tent'"):
            ASR(small_net(), base="tent")  # type: ignore[arg-type]


class TestRoTTA:
    def test_what_is_refused(self) -> None:
        with pytest.raises(InputError, match="timely -1 and sure 1 for RoTTA"):
            RoTTA(small_net(), timely=-1)

    def test_the_memory(self) -> None:
        """Four places, two classes: two each. Scores by hand: 1 / (1 + exp(−age / 4)) + H / ln 2."""
        memory = Memory(4, 2)
        blank = torch.zeros(1)
        for uncertainty in (0.1, 0.5):
            memory.add(blank, 0, uncertainty)
        assert [item.age for item in memory.items] == [2, 1]
        memory.add(blank, 0, 0.3)  # its class is full: the most uncertain goes
        assert [(item.entropy, item.age) for item in memory.items] == [(0.1, 3), (0.3, 1)]
        memory.add(blank, 0, 0.69)  # more dispensable than all there are: dropped, and the others age
        assert [(item.entropy, item.age) for item in memory.items] == [(0.1, 4), (0.3, 2)]
        memory.add(blank, 1, 0.6)
        assert len(memory.items) == 3
        assert memory.score(memory.items[0]) == pytest.approx(1 / (1 + math.exp(-5 / 4)) + 0.1 / math.log(2))

    def test_a_rare_class_replaces_in_the_most_frequent_one(self) -> None:
        memory = Memory(3, 2)  # 1.5 for each class
        for label, uncertainty in ((0, 0.2), (0, 0.1), (1, 0.3)):
            memory.add(torch.zeros(1), label, uncertainty)
        assert [item.label for item in memory.items] == [0, 0, 1]
        memory.add(torch.zeros(1), 1, 0.05)
        assert [(item.label, item.entropy) for item in memory.items] == [(1, 0.05), (0, 0.1), (1, 0.3)]

    @pytest.mark.parametrize(("timely", "sure"), [(1.0, 1.0), (1.0, 0.0), (0.5, 2.0)])
    def test_the_memory_is_that_of_a_plain_one(self, timely: float, sure: float) -> None:
        """A list for each class, as the paper draws it, over a long stream that favours some classes."""
        draw = np.random.default_rng(0)
        memory = Memory(10, 4, timely=timely, sure=sure)
        lists: list[list[list[float]]] = [[] for _ in range(4)]

        def dispensable(entropy: float, age: int) -> float:
            return timely / (1 + math.exp(-age / 10)) + sure * entropy / math.log(4)

        for label, entropy in zip(
            draw.choice(4, 400, p=[0.6, 0.2, 0.15, 0.05]).tolist(), draw.random(400), strict=True
        ):
            memory.add(torch.zeros(1), label, float(entropy))
            sizes = [len(one) for one in lists]
            if sizes[label] < 10 / 4 and sum(sizes) < 10:
                lists[label].append([float(entropy), 0])
            else:
                among = [label] if sizes[label] >= 10 / 4 else [k for k in range(4) if sizes[k] == max(sizes)]
                score, k, i = max((dispensable(*item), k, i) for k in among for i, item in enumerate(lists[k]))
                if score > dispensable(float(entropy), 0):
                    del lists[k][i]
                    lists[label].append([float(entropy), 0])
            for item in (item for one in lists for item in one):
                item[1] += 1
            plain = sorted((k, *item) for k, one in enumerate(lists) for item in one)
            assert sorted((item.label, item.entropy, item.age) for item in memory.items) == plain

    def test_one_step(self) -> None:
        x = images(3)
        method = RoTTA(small_net(), room=64, every=16, momentum=0.05, follow=0.25, optimiser=FAST)
        method.adapt(x)
        plain = Plain(small_net())
        z = plain(x, share=0.0).detach()
        kept, ages = memory_of(z, 64)
        target = plain(x[kept], share=0.05).detach().softmax(1)
        rng = CounterRng(0, torch.arange(len(kept)), "rotta 0", x.device)
        student = plain(random_views(x[kept].float() / 255, rng) * 255, share=0.05).log_softmax(1)
        age = torch.tensor(ages) / 64
        loss = (torch.exp(-age) / (1 + torch.exp(-age)) * -(target * student).sum(1)).mean()
        gradients = torch.autograd.grad(loss, (plain.weight, plain.bias))
        for found, before, gradient in zip(norms(method), (plain.weight, plain.bias), gradients, strict=True):
            assert torch.allclose(found, before - 0.1 * gradient, atol=1e-5)
        assert torch.allclose(method.model.network[1].running_mean, plain.moved[0], atol=1e-5)
        teacher = method.teacher.network[1].weight
        assert torch.allclose(teacher, 0.75 * plain.weight + 0.25 * norms(method)[0], atol=1e-5)


def memory_of(z: Tensor, room: int) -> tuple[list[int], list[int]]:
    """Which of a few images a large memory keeps: at most room / C of a class, which sixteen do not fill."""
    assert max(torch.bincount(z.argmax(1)).tolist()) <= room / CLASSES
    count = len(z)
    return list(range(count)), [count - place for place in range(count)]


def test_memo_learns_from_views_and_forgets() -> None:
    x = images(5, count=2)
    method = MEMO(small_net(), views=8, rate=0.05, crop="cifar", alpha=1 / 17)
    found = method.adapt(x)
    for place in range(2):
        net = small_net()
        plain = Plain(net)
        views = augmixed(
            x[place : place + 1].expand(8, -1, -1, -1), CounterRng(0, place * 8 + torch.arange(8), "memo"), crop="cifar"
        )
        p = plain(views, share=1 / 17).softmax(1).mean(0)
        loss = -(p * p.log()).sum()
        tensors = [plain.weight, plain.bias, plain.conv.weight, plain.conv.bias, plain.head.weight, plain.head.bias]
        gradients = torch.autograd.grad(loss, tensors)
        with torch.no_grad():
            for tensor, gradient in zip(tensors, gradients, strict=True):
                tensor -= 0.05 * gradient
        assert torch.allclose(found[place], plain(x[place : place + 1], share=1 / 17)[0], atol=1e-4)
    assert all(torch.equal(value, dict(small_net().named_parameters())[name]) for name, value in method.adapted.items())


class TestViews:
    def test_they_stay_levels_and_differ(self) -> None:
        x = images(1, count=1).expand(40, -1, -1, -1)
        for crop in ("cifar", "imagenet"):
            views = augmixed(x, CounterRng(0, torch.arange(40)), crop=crop)
            assert views.shape == x.shape
            assert float(views.min()) >= -1e-3
            assert float(views.max()) <= 255.001
            assert len(torch.unique(views.flatten(1), dim=0)) == 40

    def test_of_the_batch_they_do_not_depend(self) -> None:
        x = images(1, count=6)
        whole = augmixed(x, CounterRng(0, torch.arange(6)), crop="cifar")
        assert torch.allclose(whole[2:4], augmixed(x[2:4], CounterRng(0, torch.arange(2, 4)), crop="cifar"))

    def test_equalising_is_pillows(self) -> None:
        x = (images(2, count=1) // 3).float()
        theirs = ImageOps.equalize(Image.fromarray(x[0].byte().permute(1, 2, 0).numpy()))
        ours = _equalised(x, torch.ones(1), torch.ones(1))[0].byte()
        assert torch.equal(ours, torch.from_numpy(np.array(theirs)).permute(2, 0, 1))

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_shearing_is_pillows(self, sign: float) -> None:
        """About the corner at the top left. On a ramp of 6 levels a pixel, half a pixel would be 3 levels."""
        ramp = torch.arange(24.0)[:, None] * 4 + torch.arange(32.0) * 6
        x, level, signs = ramp.clamp(max=250).expand(1, 3, -1, -1), torch.ones(1), torch.full((1,), sign)
        picture = Image.fromarray(x[0].byte().permute(1, 2, 0).numpy())
        slope = 0.03 * sign
        for change, matrix in ((_sheared_x, (1, slope, 0, 0, 1, 0)), (_sheared_y, (1, 0, 0, slope, 1, 0))):
            theirs = picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
            gap = change(x, level, signs)[0] - torch.from_numpy(np.array(theirs)).permute(2, 0, 1)
            assert gap[:, 2:-2, 2:-2].abs().max() < 1.01  # Pillow rounds


class TestRMT:
    def test_the_contrast(self) -> None:
        """Anchor by anchor, as the sum over positives reads."""
        views = torch.randn(3, 3, 5, generator=torch.Generator().manual_seed(0))
        unit = F.normalize(views.reshape(9, 5), dim=1)
        total = 0.0
        for i in range(9):
            others = [j for j in range(9) if j != i]
            denominator = sum(math.exp(float(unit[i] @ unit[j]) / 0.1) for j in others)
            mine = [j for j in others if j // 3 == i // 3]
            total -= sum(math.log(math.exp(float(unit[i] @ unit[j]) / 0.1) / denominator) for j in mine) / 2 / 9
        assert float(contrast(views, 0.1)) == pytest.approx(total, rel=1e-4)

    def test_one_step_without_contrast(self) -> None:
        x, plain = images(3), Plain(small_net())
        method = RMT(small_net(), clean=[images(90)], weight=0.0, decay=0.75, optimiser=FAST)
        views = random_views(x.float() / 255, CounterRng(0, torch.arange(16), "rmt 0")) * 255
        teacher = plain(x).detach()
        own, other = plain(x), plain(views)
        total = torch.zeros(())
        for student in (own, other):
            p, q = student.softmax(1), teacher.softmax(1)
            total = total - 0.25 * ((p * q.log()).sum(1) + (q * p.log()).sum(1)).mean()
        gradients = torch.autograd.grad(total, (plain.weight, plain.head.weight))
        found = method.adapt(x)
        assert torch.allclose(found, 2 * teacher, atol=1e-4)
        stepped = plain.weight - 0.1 * gradients[0]
        assert torch.allclose(norms(method)[0], stepped, atol=1e-5)
        assert torch.allclose(method.model.network[6].weight, plain.head.weight - 0.1 * gradients[1], atol=1e-5)
        assert torch.allclose(method.teacher.network[1].weight, 0.75 * plain.weight + 0.25 * stepped, atol=1e-5)

    def test_prototypes_are_mean_features(self) -> None:
        net, x = small_net(), images(90)
        method = RMT(small_net(), clean=[x[:9], x[9:]])
        inside = net.network
        with torch.no_grad():
            features = inside[:5](net.preprocessing(x.clone()))
            labels = net(x).argmax(1)
        expected = torch.stack([features[labels == one].mean(0) for one in labels.unique()])
        assert torch.allclose(method.prototypes, expected, atol=1e-5)


class TestAdaContrast:
    def test_the_contrast(self) -> None:
        """Image by image; a key of the image's own label is left out."""
        draw = torch.Generator().manual_seed(0)
        z, keys, queue = (F.normalize(torch.randn(n, 5, generator=draw), dim=1) for n in (2, 2, 3))
        labels, others = torch.tensor([1, 0]), torch.tensor([1, 2, 0])
        total = 0.0
        for i in range(2):
            own = math.exp(float(z[i] @ keys[i]) / 0.07)
            rest = [math.exp(float(z[i] @ queue[j]) / 0.07) for j in range(3) if others[j] != labels[i]]
            total -= math.log(own / (own + sum(rest))) / 2
        kept = {"features": queue, "labels": others}
        assert float(contrast_with_queue(3 * z, keys, labels, kept, 0.07)) == pytest.approx(total, rel=1e-4)

    def test_two_steps(self) -> None:
        """The second is labelled by the nearest of the bank, which the teacher filled after the first."""
        settings = {"room": 24, "neighbours": 3, "first": 16, "decay": 0.75, "rate": 0.1, "weight_decay": 0.01}
        method, net = AdaContrast(small_net(), **settings), small_net().network  # type: ignore[arg-type]
        student = {name: value.detach().clone().requires_grad_(True) for name, value in net.named_parameters()}
        teacher = {name: value.detach().clone() for name, value in student.items()}
        moments = {name: torch.zeros_like(value) for name, value in student.items()}
        running = [net[1].running_mean.clone(), net[1].running_var.clone()]
        queue = {key: value.clone() for key, value in method._first(torch.zeros(1, 24), CLASSES).items()}
        bank: dict[str, Tensor] = {}

        def through(w: dict[str, Tensor], x: Tensor, *, learns: bool = True) -> tuple[Tensor, Tensor]:
            y = F.conv2d((x / 255 - 0.5) / 0.25, w["0.weight"], w["0.bias"], padding=1)
            flat = y.transpose(0, 1).flatten(1)
            mean, variance = (flat.mean(1), flat.var(1, unbiased=False)) if learns else running
            if learns and w is student:
                running[0] = 0.9 * running[0] + 0.1 * mean.detach()
                running[1] = 0.9 * running[1] + 0.1 * flat.var(1).detach()
            y = (y - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
            z = F.adaptive_avg_pool2d(F.relu(y * w["1.weight"][:, None, None] + w["1.bias"][:, None, None]), 2).flatten(
                1
            )
            return z, z @ w["6.weight"].T + w["6.bias"]

        for step in range(2):
            x = images(3 + step)
            rng = CounterRng(0, 16 * step + torch.arange(16), "adacontrast")
            weak = mirrored(x.float() / 255, rng.scoped("weak")) * 255
            query, key = (strong_views(x.float() / 255, rng.scoped(name)) * 255 for name in ("query", "key"))
            z, logits = through(student, weak)
            labels = logits.argmax(1)
            if step:
                near = (F.normalize(z, dim=1) @ bank["z"].T).argsort(1, descending=True)[:, :3]
                labels = torch.stack([bank["p"][row].mean(0) for row in near]).argmax(1)
            z, logits = through(student, query)
            teacher = {name: 0.75 * value + 0.25 * student[name].detach() for name, value in teacher.items()}
            keys = F.normalize(through(teacher, key)[0], dim=1)
            p = logits.softmax(1)
            loss = -p.log()[torch.arange(16), labels].mean() + (p.mean(0) * p.mean(0).log()).sum()
            loss = loss + contrast_with_queue(z, keys, labels, queue, 0.07)
            gradients = torch.autograd.grad(loss, list(student.values()))
            with torch.no_grad():
                for (name, value), gradient in zip(student.items(), gradients, strict=True):
                    whole = gradient + 0.01 * value
                    moments[name] = 0.9 * moments[name] + whole if step else whole
                    value -= 0.1 * (whole + 0.9 * moments[name])  # Nesterov's
            found = method.adapt(x)
            z, logits = through(teacher, weak)
            bank = {"z": F.normalize(z, dim=1), "p": logits.softmax(1)}
            queue = {
                "features": torch.cat([queue["features"], keys])[-24:],
                "labels": torch.cat([queue["labels"], labels])[-24:],
            }
            for name, value in method.model.network.named_parameters():
                assert torch.allclose(value, student[name], atol=1e-4), name
            assert torch.allclose(found, through(student, x.float(), learns=False)[1], atol=1e-3)
