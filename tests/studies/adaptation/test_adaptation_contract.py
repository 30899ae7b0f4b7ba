"""What holds for every adaptation method, on which models, and with which settings."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn

from adapted_nets import CLASSES, images, made, parameters, small_net
from blemish.core.errors import InputError
from blemish.models.base import Preprocessing
from blemish.studies.adaptation.base import Gradient, Levels, Method, Optimiser
from blemish.studies.adaptation.eata import RDumb
from blemish.studies.adaptation.methods import METHODS, make_method, settings_for
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.adaptation.selftraining import Tent

WITHOUT_GRADIENTS = {"none", "bn", "norm_alpha", "norm_ema", "t3a", "lame"}


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_protocol_and_logits(self, name: str) -> None:
        method = made(name)
        assert isinstance(method, Method)
        logits = method.adapt(images())
        assert logits.shape == (16, CLASSES)
        assert not logits.requires_grad

    def test_the_given_model_is_left_alone(self, name: str) -> None:
        model = small_net()
        before = copy.deepcopy(model.state_dict())
        method = made(name, model)
        for seed in range(3):
            method.adapt(images(seed))
        assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
        assert all(parameter.requires_grad for parameter in model.parameters())

    def test_reset_restores_everything(self, name: str) -> None:
        method = made(name)
        batches = [images(seed) for seed in range(5)]
        first = [method.adapt(batch) for batch in batches]
        method.reset()
        again = [method.adapt(batch) for batch in batches]
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))

    def test_reset_gives_back_weights_buffers_and_optimiser(self, name: str) -> None:
        method, fresh = made(name), made(name)
        for seed in range(4):
            method.adapt(images(seed))
        method.reset()
        one, other = method.state_dict(), fresh.state_dict()
        assert one.keys() == other.keys()
        for key in ("model", "teacher"):
            assert all(torch.equal(one[key][k], v) for k, v in other.get(key, {}).items())
        if "optimiser" in one:
            assert one["optimiser"]["state"] == other["optimiser"]["state"] == {}
        assert one.get("steps") == other.get("steps")
        assert one.get("average") is None

    def test_a_saved_state_goes_on_exactly(self, name: str) -> None:
        method = made(name)
        for seed in range(4):
            method.adapt(images(seed))
        buffer = io.BytesIO()
        torch.save(method.state_dict(), buffer)
        rest = [method.adapt(images(seed)) for seed in range(4, 8)]
        buffer.seek(0)
        other = made(name)
        other.load_state_dict(torch.load(buffer, weights_only=True))
        assert all(torch.equal(logits, other.adapt(images(4 + i))) for i, logits in enumerate(rest))

    def test_only_the_documented_parameters_change(self, name: str) -> None:
        method = made(name)
        before = parameters(method)
        for seed in range(4):
            method.adapt(images(seed))
        changed = {key for key, value in parameters(method).items() if not torch.equal(value, before[key])}
        norms = {"network.1.weight", "network.1.bias"}
        expected = (
            set(before)
            if name in ("cotta", "rmt", "adacontrast")
            else set()
            if name in {*WITHOUT_GRADIENTS, "memo"}
            else norms
        )
        assert changed == expected

    def test_buffers_never_change_but_of_one_that_says_so(self, name: str) -> None:
        method = made(name)
        before = {key: value.clone() for key, value in method.model.named_buffers()}  # type: ignore[attr-defined]
        for seed in range(4):
            method.adapt(images(seed))
        after = dict(method.model.named_buffers())  # type: ignore[attr-defined]
        same = all(torch.equal(value, after[key]) for key, value in before.items())
        assert same == (name not in ("norm_ema", "rotta", "note", "adacontrast"))

    def test_predict_changes_nothing(self, name: str) -> None:
        """What comes after is the same with and without it; and it does not depend on how often it is asked."""
        method, other = made(name), made(name)
        for seed in range(3):
            assert torch.equal(method.predict(images(50)), method.predict(images(50)))
            assert torch.equal(method.adapt(images(seed)), other.adapt(images(seed)))

    def test_nothing_of_a_batch_is_borrowed(self, name: str) -> None:
        """Whoever shows batches may write the next one over the last, and does not keep all of them in memory."""
        method, other = made(name), made(name)
        place = images(0)
        for seed in range(4):
            place.copy_(images(seed))
            assert torch.equal(method.adapt(place), other.adapt(images(seed)))

    def test_what_is_known_of_it(self, name: str) -> None:
        entry = METHODS[name]
        assert entry.name == name
        assert entry.cost is not None
        assert entry.cost.forwards >= 1
        # Passes with gradients are those of methods that change parameters.
        assert (entry.cost_with({}).backwards > 0) == (name not in WITHOUT_GRADIENTS)

    def test_in_inference_mode(self, name: str) -> None:
        method, other = made(name), made(name)
        with torch.inference_mode():
            found = [method.adapt(images(seed)) for seed in range(3)]
        assert all(torch.equal(logits, other.adapt(images(seed))) for seed, logits in enumerate(found))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in {*WITHOUT_GRADIENTS, "rotta", "note"}])
def test_models_without_batch_norm(name: str) -> None:
    """Group norm has scales and shifts to adapt; without any normalisation, methods of all weights have to do."""
    assert made(name, small_net("group")).adapt(images()).shape == (16, CLASSES)
    if name in ("cotta", "memo", "rmt", "adacontrast"):
        assert made(name, small_net("none")).adapt(images()).shape == (16, CLASSES)
    else:
        with pytest.raises(InputError, match=f"{name} adapts the scales and shifts of normalisation layers"):
            made(name, small_net("none"))


def test_settings() -> None:
    assert settings_for("tent") == {}
    assert settings_for("tent", "cifar") == {"optimiser": Optimiser("adam", 0.001)}
    assert settings_for("cotta", "cifar")["confident"] == 0.92
    assert settings_for("cpl", "cifar") == {"epsilon": 6.0, "optimiser": Optimiser("sgd", 0.001, nesterov=True)}
    assert settings_for("rdumb", "cifar") == settings_for("eta", "cifar")
    with pytest.raises(InputError, match="unknown adaptation method 'tend'"):
        make_method("tend", small_net())
    with pytest.raises(InputError, match="settings 'mnist'"):
        settings_for("tent", "mnist")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unexpected keyword argument 'rate'"):
        make_method("tent", small_net(), rate=1)
    with pytest.raises(InputError, match="not one of tent on this model"):
        Tent(small_net()).load_state_dict({})
    assert issubclass(RDumb, Gradient)


def test_a_network_without_parameters_is_unsuited() -> None:
    """So that ``--methods all`` leaves CoTTA out, instead of ending."""
    with pytest.raises(UnsuitedError, match="cotta adapts all parameters, and Flatten has none"):
        make_method("cotta", Levels(nn.Flatten(), Preprocessing()))
