"""Preprocessing worked by hand, the checks of scores, torch modules and the hash of their weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, Preprocessing
from blemish.models.hashing import hash_files, hash_state
from blemish.models.speed import speed_up
from blemish.models.torch_module import device_named, from_module, load_weights, read_state
from blemish.studies.separation.trained import from_classifier
from waiting import no_waiting


def batch(count: int = 3, channels: int = 3, side: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, channels, side, side), dtype=torch.uint8, generator=generator)


class TestPreprocessing:
    def test_mean_and_std_by_hand(self) -> None:
        images = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1)
        values = Preprocessing(mean=(0.0, 0.2, 0.5), std=(1.0, 0.5, 0.25))(images)
        torch.testing.assert_close(values.flatten(), torch.tensor([0.0, 0.0, 2.0]))

    def test_layouts(self) -> None:
        images = batch()
        unit = images.float() / 255
        assert torch.equal(Preprocessing()(images), unit)
        assert torch.equal(Preprocessing(channels="bgr")(images), unit.flip(1))
        assert torch.equal(Preprocessing(layout="nhwc")(images), unit.permute(0, 2, 3, 1))
        pictures = images.permute(0, 2, 3, 1).numpy()
        assert np.array_equal(Preprocessing(layout="flat")(images).numpy(), pictures.reshape(3, -1) / np.float32(255))
        assert torch.equal(Preprocessing(layout="flat-chw")(images), unit.flatten(1))

    def test_gray_and_colour(self) -> None:
        white = torch.full((1, 3, 8, 8), 255, dtype=torch.uint8)
        torch.testing.assert_close(Preprocessing(channels="gray")(white), torch.ones(1, 1, 8, 8))
        assert Preprocessing()(batch(channels=1)).shape == (3, 3, 8, 8)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def test_levels_come_through_unchanged(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        images = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8, generator=generator)
        assert torch.equal(Preprocessing(levels=True)(images), images)

    def test_resizing_keeps_a_constant_picture_either_way(self) -> None:
        images = torch.full((1, 3, 16, 10), 77, dtype=torch.uint8)
        for size in ((8, 20), (32, 5), (16, 10)):
            assert torch.equal(Preprocessing(size=size, levels=True)(images), torch.full((1, 3, *size), 77).byte())

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"mean": (0.1, 0.2)}, "mean of 2 values"),
            ({"std": (0.0,)}, "std .0.0,.; expected positive"),
            ({"std": (-1.0,)}, "std .-1.0,.; expected positive"),
            ({"std": (0.5, 0.5, float("inf"))}, "std .*inf.; expected positive, finite"),
            ({"std": (float("nan"),)}, "std .nan,.; expected positive"),
            ({"std": (1e39,)}, "std .1e.39,.; expected positive, finite"),  # infinite in float32
            ({"std": (1e-46,)}, "std .1e-46,.; expected positive"),  # zero in float32
            ({"mean": (float("nan"),)}, "mean .nan,.; expected finite"),
            ({"mean": (0.5, float("-inf"), 0.5)}, "mean .*-inf.*; expected finite"),
            ({"mean": (1e39,)}, "mean .1e.39,.; expected finite"),
            ({"channels": "cmyk"}, "channels 'cmyk'"),
            ({"layout": "hwc"}, "layout 'hwc'"),
            ({"levels": True, "mean": (0.5,)}, "8-bit levels"),
            ({"size": (0, 4)}, "input size"),
        ],
    )
    def test_refusals(self, settings: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            Preprocessing(**settings)


def fixed(scores: Tensor, **settings: Any) -> Classifier:
    return Classifier(name="fixed", kind="test", forward=lambda values: scores[: len(values)], weights="0", **settings)


class TestScores:
    def test_probabilities_without_background_equal_those_of_logits(self) -> None:
        logits = torch.tensor([[3.0, 1.0, 2.0, 0.5], [0.0, 0.0, 1.0, -1.0], [5.0, 0.1, 0.2, 0.3]])
        one = fixed(logits, skip_classes=1)(batch())
        other = fixed(logits.softmax(1), skip_classes=1, output="probabilities")(batch())
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(one, logits[:, 1:].softmax(1))

    @pytest.mark.parametrize(
        ("scores", "settings", "said"),
        [
            (torch.eye(3), {}, "they are probabilities"),
            (torch.eye(3) * 4, {"output": "probabilities"}, "they are logits"),
            (torch.full((3, 2), float("nan")), {}, "not a number"),
            (torch.zeros(3), {}, "one row of class scores"),
            (torch.rand(2, 4), {}, "for 3 images"),
            (torch.zeros(3, 2), {"skip_classes": 2}, "skip_classes 2 of 2"),
        ],
    )
    def test_scores_that_cannot_be_meant(self, scores: Tensor, settings: dict[str, Any], said: str) -> None:
        with pytest.raises(InputError, match=said):
            fixed(scores, **settings)(batch())

    def test_a_refused_batch_does_not_vouch_for_the_next(self) -> None:
        """On a GPU only the first batch is looked at; one that was refused must not count as looked at."""
        bad, good = fixed(torch.eye(3)), fixed(torch.eye(3) * 4)
        with pytest.raises(InputError, match="they are probabilities"):
            bad(batch())
        good(batch())
        assert (bad.outputs_seen, good.outputs_seen) == (None, 3)

    @pytest.mark.parametrize(
        ("odd", "said"),
        [
            (lambda s: s.to(torch.complex64), r"complex \(torch.complex64\)"),
            (lambda s: s.to_sparse(), r"a sparse tensor \(torch.sparse_coo\)"),
            (lambda s: s.to("meta"), "without values"),
            (lambda s: torch.nested.nested_tensor(list(s), layout=torch.jagged), "a nested tensor"),
            (lambda s: torch.quantize_per_tensor(s, 0.1, 0, torch.qint8), r"a quantised tensor \(torch.qint8\)"),
            (lambda s: s[:2], r"shape \(2, 4\) for 3 images"),
            (lambda s: s.index_fill(0, torch.tensor(1), float("inf")), "infinite or not a number"),
            (lambda s: s[:, :3], "3 classes for a batch of 3 images, 4 for those before; expected as many for all"),
        ],
    )
    @pytest.mark.parametrize("before", [0, 2])
    @pytest.mark.filterwarnings(
        "ignore:Sparse:UserWarning", "ignore:.*nested:UserWarning", "ignore:.*quantize:UserWarning"
    )
    def test_outputs_that_become_odd(self, odd: Any, said: str, before: int) -> None:
        """Whether in the first batch or in a later one."""
        calls = iter(range(9))
        good = torch.tensor([[3.0, 1.0, 2.0, 0.5]] * 3)
        model = Classifier(
            name="odd", kind="test", forward=lambda _: good if next(calls) < before else odd(good), weights="0"
        )
        for _ in range(before):
            model(batch())
        if before or "before" not in said:
            with pytest.raises(InputError, match=f"model odd: .*{said}"):
                model(batch())

    def test_the_number_of_outputs_counts_skipped_classes(self) -> None:
        model = fixed(torch.rand(3, 4) * 9, skip_classes=1)
        assert model.outputs_seen is None
        assert model(batch()).shape == (3, 3)
        assert model.outputs_seen == 4

    def test_a_later_batch_is_checked_without_waiting_for_the_device(self, device: torch.device) -> None:
        good = torch.rand(3, 4, device=device) * 9
        outputs = iter([good, good, good[:, :3], good.to(torch.complex64)])
        model = Classifier(name="odd", kind="test", forward=lambda _: next(outputs), weights="0", device=device)
        images = batch().to(device)
        model(images)
        with no_waiting():
            model(images)
            for said in ("3 classes", "complex"):
                with pytest.raises(InputError, match=said):
                    model(images)

    def test_later_scores_that_are_not_numbers_on_a_gpu(self, device: torch.device) -> None:
        """There they are noticed where somebody waits for the device anyway."""
        good = torch.rand(3, 4, device=device) * 9
        outputs = iter([good, good * float("nan")])
        model = Classifier(name="odd", kind="test", forward=lambda _: next(outputs), weights="0", device=device)
        predict = from_classifier(model, clip=False, batch=3)
        with pytest.raises(InputError, match="model odd: scores that are not numbers"):
            predict(np.zeros((6, 8, 8, 3), np.float32))

    def test_output_of_another_type(self) -> None:
        model = Classifier(name="odd", kind="test", forward=list, weights="0")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="output of type list"):
            model(batch())

    def test_settings(self) -> None:
        with pytest.raises(InputError, match="output 'scores'"):
            fixed(torch.eye(3), output="scores")
        with pytest.raises(InputError, match="skip_classes -1"):
            fixed(torch.eye(3), skip_classes=-1)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(4, 5)

    def forward(self, values: Tensor) -> Tensor:
        return self.linear(self.drop(self.norm(self.conv(values)).mean((2, 3))))  # type: ignore[no-any-return]


class TestModules:
    def test_evaluation_mode_even_after_training_goes_on(self) -> None:
        net = Net()
        model = from_module(net)
        expected = model(batch())
        net.train()
        assert torch.equal(model(batch()), expected)
        assert model.name == "Net"
        torch.testing.assert_close(expected, net.eval()(batch().float() / 255).softmax(1))

    def test_channels_last_computes_the_same(self) -> None:
        net = Net()
        torch.testing.assert_close(from_module(net)(batch()), from_module(net, channels_last=True)(batch()))

    def test_models_that_return_logits_in_a_dictionary(self) -> None:
        class Wrapped(nn.Module):
            def forward(self, values: Tensor) -> dict[str, Tensor]:
                return {"logits": values.mean((2, 3))}

        torch.testing.assert_close(from_module(Wrapped())(batch()), (batch().float() / 255).mean((2, 3)).softmax(1))

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
    def test_weights_of_another_type(self, kind: torch.dtype) -> None:
        net = Net()
        expected = from_module(net)(batch())
        model = from_module(net.to(kind))
        assert model.kind == f"torch ({str(kind).removeprefix('torch.')})"
        assert model(batch()).dtype == torch.float32
        torch.testing.assert_close(model(batch()), expected, atol=2e-2, rtol=0)
        torch.testing.assert_close(speed_up(model)(batch()), expected, atol=2e-2, rtol=0)

    def test_weights_of_several_types_are_left_to_the_module(self) -> None:
        net = Net()
        net.linear.double()
        assert from_module(net).kind == "torch"
        with pytest.raises(InputError, match=r"refuses an input of shape"):
            from_module(net)(batch())

    @pytest.mark.parametrize(
        ("wrap", "said"),
        [
            (lambda scores: {"out": scores, "aux": scores}, r"dict \(out, aux\), of which none is called logits"),
            (lambda scores: (scores, scores), "tuple of 2"),
        ],
    )
    def test_outputs_of_several_things(self, wrap: Any, said: str) -> None:
        class Several(Net):
            def forward(self, values: Tensor) -> Any:
                return wrap(super().forward(values))

        with pytest.raises(InputError, match=f"output of type {said}; expected a tensor of class scores"):
            from_module(Several())(batch())

    def test_no_module(self) -> None:
        with pytest.raises(InputError, match="expected a torch module"):
            from_module("resnet")  # type: ignore[arg-type]

    def test_devices(self) -> None:
        assert device_named("auto").type in ("cpu", "cuda")
        assert device_named("cpu") == torch.device("cpu")
        with pytest.raises(InputError, match="expected cpu, cuda or auto"):
            device_named("tpu9000")
        if not torch.cuda.is_available():
            with pytest.raises(InputError, match="no GPU"):
                device_named("cuda")

    @pytest.mark.parametrize("name", ["meta", "vulkan", *([] if torch.backends.mps.is_available() else ["mps"])])
    def test_devices_that_cannot_be_used(self, name: str) -> None:
        with pytest.raises(InputError, match=f"device '{name}' cannot be used here .*; expected cpu, cuda or auto"):
            device_named(name)

    def test_an_input_that_does_not_fit(self) -> None:
        net = from_module(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), name="mine")
        said = r"model mine: refuses an input of shape \(3, 3, 8, 8\) \(mat1 and mat2 shapes.*\); .*--size, --channels"
        with pytest.raises(InputError, match=said):
            net(batch())

    @pytest.mark.parametrize(
        ("error", "raised"),
        [
            (TypeError("wrong\nshape"), InputError),
            (AssertionError("height"), InputError),
            (torch.cuda.OutOfMemoryError("full"), torch.cuda.OutOfMemoryError),
            (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), RuntimeError),
            (RuntimeError("DefaultCPUAllocator: can't allocate memory"), RuntimeError),
            (InputError("mine"), InputError),
            (ZeroDivisionError("of its own"), ZeroDivisionError),
        ],
    )
    def test_what_a_module_raises(self, error: Exception, raised: type[Exception]) -> None:
        class Failing(nn.Module):
            def forward(self, _: Tensor) -> Tensor:
                raise error

        with pytest.raises(raised) as caught:
            from_module(Failing())(batch())
        wrapped = isinstance(error, (TypeError, AssertionError))
        assert (caught.value is error) == (not wrapped)
        if wrapped:
            assert f"({str(error).splitlines()[-1]})" in str(caught.value)

    def test_a_module_that_has_taken_such_images_before(self) -> None:
        """It fails; that is no fault of the input, and may be repeated."""

        class Tired(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.calls = 0

            def forward(self, values: Tensor) -> Tensor:
                self.calls += 1
                if self.calls > 1:
                    raise RuntimeError("broken")
                return values.mean((2, 3)) * 3

        net = from_module(Tired())
        net(batch())
        with pytest.raises(RuntimeError, match=r"^broken$"):
            net(batch()[:2])
        with pytest.raises(InputError, match="refuses an input of shape"):
            net(batch()[..., :4])


STATE = "{'a': torch.arange(6.).view(2, 3), 'b': torch.ones(1, dtype=torch.bfloat16), 'n': torch.tensor(3)}"


class TestHash:
    def test_the_same_in_another_process(self) -> None:
        code = f"import torch; from blemish.models.hashing import hash_state; print(hash_state({STATE}))"
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert result.stdout.strip() == hash_state(eval(STATE))

    def test_names_shapes_types_and_values_count(self) -> None:
        base = torch.tensor([1.0, 2.0, 3.0, 4.0])
        changed = base.clone()
        changed[3] = torch.nextafter(changed[3], torch.tensor(9.0))
        states: list[dict[str, Any]] = [
            {"w": base},
            {"v": base},
            {"w": base.view(2, 2)},
            {"w": base.view(torch.int32)},
            {"w": changed},
            {"w": base, "extra": 1},
            {"w": base, "extra": 2},
            {},
        ]
        assert len({hash_state(state) for state in states}) == len(states)

    def test_the_way_memory_is_laid_out_does_not_count(self) -> None:
        weights = torch.rand(4, 3, 5, 5)
        turned = weights.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
        last = weights.to(memory_format=torch.channels_last)
        assert hash_state({"w": weights}) == hash_state({"w": turned}) == hash_state({"w": last})

    def test_on_a_gpu(self, device: torch.device) -> None:
        state = Net().state_dict()
        assert hash_state(state) == hash_state({key: value.to(device) for key, value in state.items()})

    def test_weights_without_values(self) -> None:
        with pytest.raises(InputError, match="have no values yet"):
            from_module(nn.LazyLinear(3))
        with pytest.raises(InputError, match="have no values yet"):
            from_module(nn.Linear(2, 2, device="meta"))

    def test_files(self, tmp_path: Path) -> None:
        one, two = tmp_path / "1", tmp_path / "2"
        one.write_bytes(b"ab")
        two.write_bytes(b"c")
        both = hash_files([one, two])
        one.write_bytes(b"a")
        two.write_bytes(b"bc")
        assert hash_files([one, two]) != both


class TestWeights:
    @pytest.mark.parametrize("wrap", [lambda s: s, lambda s: {"state_dict": s, "epoch": 3}, lambda s: {"model": s}])
    def test_wrappings(self, tmp_path: Path, wrap: Any) -> None:
        state = {f"module.{key}": value for key, value in Net().state_dict().items()}
        torch.save(wrap(state), tmp_path / "w.pth")
        net = load_weights(Net(), tmp_path / "w.pth")
        assert hash_state(net.state_dict()) == hash_state({key.removeprefix("module."): v for key, v in state.items()})

    def test_arrays(self, tmp_path: Path) -> None:
        state = Net().state_dict()
        np.savez(tmp_path / "w.npz", **{key: value.numpy() for key, value in state.items()})
        assert hash_state(read_state(tmp_path / "w.npz")) == hash_state(state)

    def test_what_does_not_fit_is_named(self, tmp_path: Path) -> None:
        state = Net().state_dict()
        del state["linear.bias"]
        torch.save({**state, "other": torch.zeros(1)}, tmp_path / "w.pth")
        with pytest.raises(
            InputError, match=r"1 missing from the file \(linear.bias\) and 1 not in the model \(other\)"
        ):
            load_weights(Net(), tmp_path / "w.pth")
        torch.save({**Net().state_dict(), "linear.bias": torch.zeros(7)}, tmp_path / "w.pth")
        with pytest.raises(InputError, match="do not fit"):
            load_weights(Net(), tmp_path / "w.pth")

    def test_complex_weights_for_real_ones(self, tmp_path: Path) -> None:
        state = Net().state_dict()
        torch.save({**state, "linear.bias": state["linear.bias"].to(torch.complex64) * 1j}, tmp_path / "w.pth")
        with pytest.raises(InputError, match=r"w\.pth: complex weights \(linear.bias\) for a model with real ones"):
            load_weights(Net(), tmp_path / "w.pth")

    @pytest.mark.parametrize(
        "state", [{3: torch.zeros(1)}, {"model": {3: torch.zeros(1)}}, {"net": {b"3": torch.zeros(1)}}]
    )
    def test_names_that_are_no_texts(self, tmp_path: Path, state: Any) -> None:
        torch.save(state, tmp_path / "w.pth")
        with pytest.raises(InputError, match="1 not in the model"):
            load_weights(Net(), tmp_path / "w.pth")

    def test_no_weights(self, tmp_path: Path) -> None:
        (tmp_path / "text.pth").write_text("hello")
        (tmp_path / "text.npz").write_text("hello")
        torch.save({"epoch": 3}, tmp_path / "epoch.pth")
        for name, said in (
            ("text.pth", r"text\.pth: not a torch file"),
            ("text.npz", "not a readable"),
            ("epoch.pth", "no state dict"),
            ("none.pth", "no such file"),
        ):
            with pytest.raises(InputError, match=said):
                read_state(tmp_path / name)
