"""Training networks for overlap: exact continuation, independence of copies, and what each network sees."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

import blemish
from blemish.core.errors import InputError
from blemish.models.copies import join_copies, split_copies
from blemish.models.densenet import densenet121
from blemish.models.resnet import resnet18, resnet50, small_net, wide_resnet50_2
from blemish.studies.overlap.harness import ALL, STANDARD, Plan, build_net, conditions, train_all
from blemish.studies.overlap.training import Corruptor, Schedule, Trainer

CPU = torch.device("cpu")


def pictures(count: int = 48) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    labels = torch.arange(count) % 3
    base = torch.randint(0, 256, (3, 3, 16, 16), generator=generator)
    noise = torch.randint(-40, 41, (count, 3, 16, 16), generator=generator)
    return (base[labels] + noise).clamp(0, 255).to(torch.uint8), labels


def trainer(net: torch.nn.Module, *corruptions: str, epochs: int = 2, **settings: float) -> Trainer:
    images, labels = pictures()
    corruptors = [Corruptor((blemish.catalog[name],) if name else ()) for name in corruptions]
    schedule = Schedule(epochs=epochs, batch=16, rate=0.05, **settings)
    return Trainer(net, corruptors, images, labels, schedule, CPU, seed=1)


def fresh(copies: int = 1) -> torch.nn.Module:
    torch.manual_seed(0)
    single = small_net(3)
    if copies == 1:
        return single
    net = small_net(3, copies=copies)
    net.load_state_dict(join_copies([single.state_dict()] * copies))
    return net


def test_parameter_counts_are_the_published_ones() -> None:
    # Counts of the usual implementation; 11.7, 25.6, 68.9 and 8.0 million in the literature.
    assert sum(p.numel() for p in resnet18().parameters()) == 11_689_512
    assert sum(p.numel() for p in resnet50().parameters()) == 25_557_032
    assert sum(p.numel() for p in wide_resnet50_2().parameters()) == 68_883_240
    assert sum(p.numel() for p in densenet121().parameters()) == 7_978_856


@pytest.mark.parametrize("name", ["densenet121", "wide_resnet50_2"])
def test_copies_give_the_scores_that_they_would_give_alone(name: str) -> None:
    """Two networks with weights of their own, in one: each sees its own images."""
    images = torch.randn(4, 2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    alone = [build_net(name, 5).eval() for _ in range(2)]
    both = build_net(name, 5, copies=2).eval()
    both.load_state_dict(join_copies([net.state_dict() for net in alone]))
    with torch.no_grad():
        together = both(images.flatten(1, 2))
        for number, net in enumerate(alone):
            torch.testing.assert_close(together[:, number], net(images[:, number]), rtol=1e-3, atol=1e-4)


def test_names_of_parameters_are_the_usual_ones() -> None:
    """Those of torchvision's files, at the ends and in the middle."""
    dense = densenet121().state_dict()
    assert dense["features.denseblock4.denselayer16.conv2.weight"].shape == (32, 128, 3, 3)
    assert dense["features.transition3.conv.weight"].shape == (512, 1024, 1, 1)
    assert dense["features.norm5.running_var"].shape == (1024,)
    assert dense["classifier.weight"].shape == (1000, 1024)
    wide = wide_resnet50_2().state_dict()
    assert wide["layer4.0.conv2.weight"].shape == (1024, 1024, 3, 3)
    assert wide["layer4.2.conv3.weight"].shape == (2048, 1024, 1, 1)


def test_copies_train_as_they_would_alone() -> None:
    names = ("", "gaussian_noise", "fog")
    together = trainer(fresh(3), *names)
    together.run_epoch()
    parts = split_copies(together.net.state_dict(), 3)
    for name, part in zip(names, parts, strict=True):
        alone = trainer(fresh(), name)
        alone.run_epoch()
        for key, values in alone.net.state_dict().items():
            torch.testing.assert_close(part[key], values, rtol=2e-3, atol=2e-4)
    assert not torch.allclose(parts[0]["fc.weight"], parts[1]["fc.weight"], atol=1e-3)


def test_continuing_equals_never_stopping() -> None:
    whole = trainer(fresh(), "fog")
    whole.run_epoch()
    state = copy.deepcopy(whole.state())
    later = trainer(fresh(), "fog")
    later.restore(state)
    whole.run_epoch()
    later.run_epoch()
    for key, values in whole.net.state_dict().items():
        assert torch.equal(values, later.net.state_dict()[key]), key


def test_half_of_each_batch_is_corrupted() -> None:
    subject = trainer(fresh(), "gaussian_noise", flip=False)
    rows = torch.arange(32)
    made = subject._block(rows, 16)[:, 0]
    images, _ = pictures()
    same = (made == images[:32]).flatten(1).all(1)
    assert same.tolist() == ([True] * 8 + [False] * 8) * 2


def test_epochs_draw_anew() -> None:
    subject = trainer(fresh(), "gaussian_noise", flip=False)
    first = subject._block(torch.arange(16), 16)
    subject.epoch = 1
    assert not torch.equal(first, subject._block(torch.arange(16), 16))


def test_a_mixture_uses_all_corruptions() -> None:
    images, _ = pictures()
    corruptor = Corruptor((blemish.catalog["brightness"], blemish.catalog["contrast"]))
    ids = torch.arange(len(images))
    mixed = corruptor(images, seed=0, ids=ids)
    again = corruptor(images[5:9], seed=0, ids=ids[5:9])
    assert torch.equal(mixed[5:9], again)
    brighter = mixed.float().mean((1, 2, 3)) > images.float().mean((1, 2, 3)) + 5
    assert 0.2 < brighter.float().mean() < 0.8


def test_learning_rates_follow_the_paper() -> None:
    schedule = Schedule()
    assert [schedule.rate_at(epoch) for epoch in (0, 19, 20, 29, 30, 39)] == [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]


def test_a_plan_is_trained_kept_and_resumed(tmp_path: Path) -> None:
    images, labels = pictures()
    plan = Plan(
        ("gaussian_noise", "fog"),
        "small_net",
        3,
        Schedule(epochs=2, batch=16, rate=0.05),
        with_all=True,
        preset="cifar",
    )
    epochs: list[str] = []
    found = train_all(plan, images, labels, tmp_path, device=CPU, report=lambda name, *_: epochs.append(name))
    assert [model.name for model in found] == [STANDARD, "gaussian_noise", "fog", ALL]
    assert len(epochs) == 8
    before = {model.name: model.weights.read_bytes() for model in found}
    epochs.clear()
    found[2].weights.unlink()
    again = train_all(plan, images, labels, tmp_path, device=CPU, report=lambda name, *_: epochs.append(name))
    assert epochs == ["fog", "fog"]
    one = torch.load(again[2].weights, weights_only=True)["weights"]
    assert {model.name: model.weights.read_bytes() for model in again if model.name != "fog"} == {
        name: content for name, content in before.items() if name != "fog"
    }
    together = train_all(plan, images, labels, tmp_path / "together", device=CPU, together=3)
    other = torch.load(together[2].weights, weights_only=True)["weights"]
    for key, values in one.items():
        torch.testing.assert_close(other[key], values, rtol=5e-3, atol=1e-3)


def test_networks_begun_together_go_on_together(tmp_path: Path) -> None:
    images, labels = pictures()
    plan = Plan(("gaussian_noise", "fog", "contrast"), "small_net", 3, Schedule(epochs=3, batch=16, rate=0.05))
    whole = train_all(plan, images, labels, tmp_path / "whole", device=CPU, together=2)

    def stop(name: str, done: int, *_: object) -> None:
        if name == "2 networks" and done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_all(plan, images, labels, tmp_path / "cut", device=CPU, together=2, report=stop)
    heard: list[tuple[str, int]] = []
    resumed = train_all(
        plan, images, labels, tmp_path / "cut", device=CPU, together=1, report=lambda *said: heard.append(said[:2])
    )
    # The state of the first epoch is kept, for this number of networks, though another is asked for now.
    assert heard == [("2 networks", 2), ("2 networks", 3), *(("contrast", epoch) for epoch in (1, 2, 3))]
    for one, other in zip(whole[:3], resumed[:3], strict=True):
        weights = (torch.load(model.weights, weights_only=True)["weights"] for model in (one, other))
        for value, same in zip(*(state.values() for state in weights), strict=True):
            assert torch.equal(value, same)
    assert not list((tmp_path / "cut").rglob("unfinished-*"))


def test_other_images_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    images, labels = pictures()
    plan = Plan((), "small_net", 3, Schedule(epochs=1, batch=16))
    train_all(plan, images, labels, tmp_path, device=CPU)
    with pytest.raises(InputError, match="trained otherwise \\(data_fingerprint was"):
        train_all(plan, images.flip(-1), labels, tmp_path, device=CPU)
    with pytest.raises(InputError, match="trained otherwise \\(data_fingerprint was"):
        train_all(plan, images, labels.flip(0), tmp_path, device=CPU)


def test_fine_tuning_starts_from_the_standard_network(tmp_path: Path) -> None:
    images, labels = pictures()
    schedule = Schedule(epochs=1, batch=16, rate=0.05)
    tune = Schedule(epochs=1, batch=16, rate=1e-9, decay=0.0)
    plan = Plan(("fog",), "small_net", 3, schedule, fine_tune=tune)
    standard, fog = train_all(plan, images, labels, tmp_path, device=CPU)
    one, other = (torch.load(model.weights, weights_only=True)["weights"] for model in (standard, fog))
    torch.testing.assert_close(one["fc.weight"], other["fc.weight"], rtol=0, atol=1e-6)


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    images, labels = pictures()
    train_all(Plan((), "small_net", 3, Schedule(epochs=1, batch=16)), images, labels, tmp_path, device=CPU)
    with pytest.raises(InputError, match=r"schedule\.epochs was 1, now 2"):
        train_all(Plan((), "small_net", 3, Schedule(epochs=2, batch=16)), images, labels, tmp_path, device=CPU)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean resnet18"):
        build_net("resnet19", 10)
    with pytest.raises(InputError, match="expected a torch module"):
        build_net("builtins:list", "ab")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no_such"):
        build_net("no_such_module:net", 10)
    with pytest.raises(InputError, match="0 epochs"):
        Schedule(epochs=0)


def test_conditions_of_a_plan() -> None:
    plan = Plan(("fog", "syn2nat:invert"))
    assert [str(condition) for condition in conditions(plan)] == ["fog@1-5", "syn2nat:invert@5"]
