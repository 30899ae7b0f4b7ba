"""Faster forward passes: the same predictions within rounding, settings recorded, batches of one size."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.evaluation.predict import Batcher
from blemish.models.base import Classifier
from blemish.models.portable import portable
from blemish.models.resnet import small_net
from blemish.models.speed import compile_seconds, fill_batches, speed_up
from blemish.models.torch_module import from_module

IMAGES = torch.randint(0, 256, (10, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model() -> Classifier:
    torch.manual_seed(0)
    return from_module(small_net(10), name="small")


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes and strides that a compiled module is given; nothing is compiled, which takes a minute on a CPU."""
    seen: list[tuple[int, ...]] = []

    def compiled(module: nn.Module, *, dynamic: bool) -> Callable[[Tensor], Tensor]:
        assert not dynamic

        def call(values: Tensor) -> Tensor:
            seen.append((*values.shape, *values.stride()))
            return module(values)

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    return seen


def test_half_precision_says_nearly_the_same(model: Classifier) -> None:
    fast = speed_up(model, precision="bfloat16")
    assert (fast(IMAGES) - model(IMAGES)).abs().max() < 0.02
    assert fast(IMAGES).dtype == torch.float32


def test_channels_last_alone_changes_nothing_but_rounding(model: Classifier) -> None:
    assert (speed_up(model)(IMAGES) - model(IMAGES)).abs().max() < 1e-5


def test_what_changes_predictions_is_recorded(model: Classifier) -> None:
    assert speed_up(model).kind == "torch"
    assert speed_up(model, precision="bfloat16", compiled=True).describe().kind == "torch (bfloat16, compiled)"


def test_compiled_batches_have_one_shape(model: Classifier, shapes: list[tuple[int, ...]]) -> None:
    """A short last batch is filled up, in the same memory format, and its scores are cut to its length."""
    fast = speed_up(model, compiled=True)
    assert compile_seconds(fast) is None
    for batch in IMAGES.split(4):
        assert torch.allclose(fast(batch), model(batch), atol=1e-5)
    assert len(shapes) == 3
    assert len(set(shapes)) == 1
    assert compile_seconds(fast) > 0
    assert compile_seconds(model) is None


def test_a_short_batch_that_comes_first_is_filled_up_too(model: Classifier, shapes: list[tuple[int, ...]]) -> None:
    """As it does for a worker that is given the end of a set only."""
    fast = speed_up(model, compiled=True)
    fill_batches(fast, 4)
    assert fast(IMAGES[8:]).shape == (2, 10)
    fast(IMAGES[:4])
    assert [shape[0] for shape in shapes] == [4, 4]
    assert len(set(shapes)) == 1
    fill_batches(model, 4)  # there is nothing to fill up
    assert model(IMAGES[8:]).shape == (2, 10)


def test_a_compiled_batch_that_does_not_fit_may_become_smaller(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def compiled(module: nn.Module, *, dynamic: bool) -> Callable[[Tensor], Tensor]:
        def call(values: Tensor) -> Tensor:
            sizes.append(len(values))
            if len(values) > 4:
                raise torch.cuda.OutOfMemoryError("too large")
            return module(values)

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    fast = speed_up(model, compiled=True)
    found = list(Batcher(8).map(lambda rows: fast(IMAGES[rows]), range(10)))
    assert [len(rows) for rows, _ in found] == [4, 4, 2]
    assert sizes == [8, 4, 4, 4]
    assert torch.allclose(torch.cat([scores for _, scores in found]), model(IMAGES), atol=1e-5)


def test_it_travels(model: Classifier) -> None:
    fast = speed_up(model, precision="bfloat16")
    again = pickle.loads(pickle.dumps(portable(fast))).open(torch.device("cpu"))
    assert again.kind == fast.kind
    assert torch.equal(again(IMAGES), fast(IMAGES))


def test_a_model_that_is_opened_again_is_sped_up_again(model: Classifier) -> None:
    fast = speed_up(replace(model, reopen=lambda device: model), precision="bfloat16")  # noqa: ARG005
    assert fast.reopen is not None
    assert fast.reopen(torch.device("cpu")).kind == "torch (bfloat16)"


def test_scores_with_a_name(model: Classifier) -> None:
    class Named(nn.Module):
        def forward(self, values: Tensor) -> dict[str, Tensor]:
            return {"logits": values.mean((2, 3))}

    fast = speed_up(from_module(Named()), precision="bfloat16")
    assert fast(IMAGES).shape == (10, 3)


def test_bad_settings_are_explained(model: Classifier) -> None:
    with pytest.raises(InputError, match="precision 'int8'; expected float32, float16, bfloat16"):
        speed_up(model, precision="int8")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"small .*is no torch module; it cannot be sped up"):
        speed_up(replace(model, module=None), precision="bfloat16")


@pytest.mark.usefixtures("shapes")
def test_rows_that_are_not_those_of_the_images() -> None:
    """Rows that fill up a short batch are cut off; others would be as well."""

    class Constant(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return torch.arange(24.0).view(8, 3) + 0 * values.sum()

    fast = speed_up(from_module(Constant()), compiled=True)
    fill_batches(fast, 10)
    with pytest.raises(InputError, match=r"an output of shape \(8, 3\) for 10 images"):
        fast(IMAGES[:8])
