"""A model and labelled images brought together: what is assumed is said, what cannot be is refused at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import blemish
from blemish.core.errors import InputError, Notice
from blemish.data.classes import imagenet_wnids
from blemish.evaluation.fitting import fit
from blemish.evaluation.measure import count_outputs
from blemish.evaluation.records import read_records
from blemish.evaluation.runs import record_path
from blemish.models.base import Classifier, Preprocessing
from blemish.models.speed import speed_up
from toy_runs import CLASSES, benchmark, evaluate, forward, model, source

CLASSES_THERE = (0, 217, 482, 701)


class Shade(torch.nn.Module):
    """Names the shade of a picture, in as many classes as asked for."""

    def __init__(self, outputs: int = 1000) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, images: Tensor) -> Tensor:
        shade = (images.mean((1, 2, 3)) * 1000).round().long().clamp(0, self.outputs - 1)
        return torch.nn.functional.one_hot(shade, self.outputs).float() * 9


def shaded(index: int) -> Image.Image:
    """A picture of 8 × 8 whose mean is exactly so many thousandths of white."""
    total = round(index / 1000 * 255 * 192)
    pixels = np.full(192, total // 192, dtype=np.uint8)
    pixels[: total % 192] += 1
    return Image.fromarray(np.repeat(np.repeat(pixels.reshape(8, 8, 3), 4, 0), 4, 1))


@pytest.fixture
def imagenette(tmp_path: Path) -> Path:
    """A few of ImageNet's classes, in folders named by their WordNet ids."""
    for index in CLASSES_THERE:
        folder = tmp_path / "val" / imagenet_wnids()[index]
        folder.mkdir(parents=True)
        for file in range(3):
            shaded(index).save(folder / f"{file}.png")
    return tmp_path / "val"


KNOWN = Preprocessing()


def test_some_of_imagenets_classes_from_python(imagenette: Path, tmp_path: Path) -> None:
    net = blemish.from_module(Shade(), preprocessing=KNOWN)
    wanted = benchmark("contrast@1")
    with pytest.warns(Notice, match="4 class folders named by WordNet ids") as told:
        run = blemish.evaluate(net, imagenette, wanted, out=tmp_path / "out")
    assert len(told) == 1
    assert told[0].filename == __file__, "the warning is at the user's own line"
    assert run.correct(run.conditions[0]).all()
    assert sorted(set(run.records(run.conditions[0]).labels.tolist())) == list(CLASSES_THERE)
    header = read_records(record_path(run.folder, run.conditions[0])).header
    assert header.protocol.labels == "imagenet"
    assert header.model.outputs == 1000
    given = blemish.open_source(imagenette, mapping="imagenet")
    again = blemish.evaluate(net, given, wanted, out=tmp_path / "out")  # the same run, which is continued
    assert again.info == run.info


def test_other_labels_are_another_run(imagenette: Path, tmp_path: Path) -> None:
    net = replace(blemish.from_module(Shade(4), preprocessing=KNOWN), name="Shade")
    evaluate(net, imagenette, benchmark("contrast@1"), out=tmp_path / "out")
    ordered = blemish.open_source(imagenette, mapping={imagenet_wnids()[i]: 3 - n for n, i in enumerate(CLASSES_THERE)})
    with pytest.raises(InputError, match=r"holds results of another run \(protocol.labels was .class folders in order"):
        evaluate(net, ordered, benchmark("contrast@1"), out=tmp_path / "out")


def test_folders_that_fit_nothing_are_refused_before_anything_is_written(imagenette: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"4 class folders .* but model Shade has 100 outputs"):
        evaluate(
            blemish.from_module(Shade(100), preprocessing=KNOWN), imagenette, benchmark("contrast@1"), out=tmp_path
        )
    assert not (tmp_path / "Shade").exists()


def test_skipped_classes_do_not_count(imagenette: Path, tmp_path: Path) -> None:
    class WithBackground(Shade):
        def forward(self, images: Tensor) -> Tensor:
            return torch.nn.functional.pad(super().forward(images), (1, 0))

    net = blemish.from_module(WithBackground(), preprocessing=KNOWN, skip_classes=1)
    with pytest.warns(Notice, match="1,000 outputs"):
        run = evaluate(net, imagenette, benchmark("contrast@1"), out=tmp_path / "out")
    assert run.correct(run.conditions[0]).all()


def test_arrays_are_refused_where_a_label_has_no_output(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((8, 32, 32, 3), dtype=np.uint8), labels=np.arange(8))
    net = blemish.from_module(Shade(5), preprocessing=KNOWN)
    with pytest.raises(InputError, match="x: image 7 has the label 7, but model Shade has 5 outputs"):
        evaluate(net, tmp_path / "x.npz", benchmark("contrast@1"), out=tmp_path / "out")


class TestAssumedInput:
    def test_a_bare_module_is_told_what_is_assumed(self) -> None:
        bare = blemish.from_module(Shade(CLASSES))
        with pytest.warns(Notice, match=r"model Shade: nothing says .* assumed values in 0 … 1.*--mean.*from_module"):
            fit(bare, source())

    def test_whoever_says_it_is_not_told(self) -> None:
        assert fit(blemish.from_module(Shade(CLASSES), preprocessing=KNOWN), source()).outputs == CLASSES
        own = Shade(CLASSES)
        own.preprocessing = Preprocessing(mean=(0.5,), std=(0.5,))  # type: ignore[assignment]
        assert fit(blemish.from_module(own), source()).outputs == CLASSES

    def test_from_python(self, tmp_path: Path) -> None:
        with pytest.warns(Notice, match="nothing says what its input is like"):
            evaluate(Shade(CLASSES), source(), benchmark("contrast@1"), out=tmp_path)


class TestCounting:
    def test_models_that_drop_the_axis_of_a_single_image(self) -> None:
        def squeezed(values: Tensor) -> Tensor:
            return forward(values).squeeze()

        assert fit(replace(model(), forward=squeezed), source()).outputs == CLASSES

    def test_one_image_is_shown(self) -> None:
        seen: list[int] = []

        def counted(values: Tensor) -> Tensor:
            seen.append(len(values))
            return forward(values)

        assert fit(replace(model(), forward=counted), source()).outputs == CLASSES
        assert seen == [2], "one image, twice"

    def test_a_model_that_was_sped_up_is_not_compiled_for_it(self) -> None:
        fast = speed_up(blemish.from_module(Shade(6), preprocessing=KNOWN), compiled=True)
        assert count_outputs(fast, torch.zeros(1, 3, 8, 8, dtype=torch.uint8)) == 6
        assert fast.forward._run is None  # type: ignore[attr-defined]

    def test_what_is_odd_about_one_image_is_left_to_the_first_batch(self) -> None:
        """Logits of one image may happen to look like probabilities."""
        odd = Classifier("odd", "function", lambda values: torch.tensor([[0.25, 0.75]]).expand(len(values), 2), "w")
        assert count_outputs(odd, torch.zeros(1, 3, 8, 8, dtype=torch.uint8)) == 2

    @pytest.mark.parametrize(
        ("output", "message"),
        [
            (lambda values: values, "output of shape"),
            (lambda _: None, "output of type NoneType"),
            (lambda _: 1 / 0, "model m fails at the first image .ZeroDivisionError"),
        ],
    )
    def test_models_that_give_no_scores(self, output: object, message: str) -> None:
        broken = Classifier("m", "function", output, "w")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=message):
            fit(broken, source())

    def test_what_the_model_raised_is_kept(self, tmp_path: Path) -> None:
        def broken(values: Tensor) -> Tensor:
            raise LookupError("no such layer")

        with pytest.raises(InputError, match=r"no such layer.*failures.txt"):
            evaluate(replace(model(), forward=broken), source(), benchmark("fog@1"), out=tmp_path)
        assert "in broken" in (tmp_path / "toy" / "failures.txt").read_text()
