"""How images come to the size of a benchmark: squares of the whole image or of its middle, and short sequences."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.evaluation.pictures import PICTURES
from blemish.evaluation.run import evaluate as evaluate_strictly
from blemish.metrics import compare, score
from blemish.ops.pillow import squared
from blemish.terminal.protocol import ProtocolOptions
from told_steps import Steps
from toy_runs import benchmark, forward, model, picture, source

evaluate = partial(evaluate_strictly, allow_chance=True)  # the toy knows nothing

SIZES = ((40, 56), (50, 36))


def images(view: Square) -> Tensor:
    """The squares of all twenty pictures."""
    whole = [torch.from_numpy(np.array(picture(i, SIZES[i % 2]))).permute(2, 0, 1)[None] for i in range(20)]
    return torch.cat([squared(image, view) for image in whole])


def answers(pixels: Tensor) -> list[int]:
    """What the model says of some images."""
    return forward(pixels.float() / 255).argmax(1).tolist()


@pytest.mark.parametrize("centre", [None, 0.75])
def test_corruptions_are_made_of_the_square(tmp_path: Path, centre: float | None) -> None:
    run = evaluate(model(), source(sizes=SIZES), benchmark("fog@2", square=24, centre=centre), out=tmp_path)
    squares = images(Square(24, centre or 1.0))
    assert run.records(CLEAN).top5[:, 0].tolist() == answers(squares)
    foggy = blemish.corrupt(squares, "fog", severity=2)
    assert run.records(parse_condition("fog@2")).top5[:, 0].tolist() == answers(foggy)
    assert (run.info.protocol.square, run.info.protocol.centre) == (24, centre)


def test_sequences_are_made_of_whole_images(tmp_path: Path) -> None:
    view = Square(24, 0.75)
    asked = benchmark("p:rotate@1", "p:snow@1", preset="inception", square=24, centre=0.75)
    run = evaluate(model(), source(sizes=SIZES), asked, out=tmp_path)
    assert run.records(CLEAN).top5[:, 0].tolist() == answers(images(view))
    for name in ("p:rotate", "p:snow"):
        records = run.records(parse_condition(f"{name}@1"))
        assert records.frames is not None
        assert records.frames.max() == 30
        first = records.top5[records.images == "1/1.png", 0]
        whole = torch.from_numpy(np.array(picture(1, SIZES[1]))).permute(2, 0, 1)[None]
        frames = blemish.sequences[name].frames(whole, ids=[1], preset="inception", crop=view)
        assert first.tolist() == [answers(frame)[0] for frame in frames]
    with np.load(run.folder / PICTURES) as kept:
        assert kept["images"].shape[1:3] == (24, 24)
    again = evaluate(model(), source(sizes=SIZES), asked, out=tmp_path)
    assert again.info == run.info


def test_short_sequences_are_scored(tmp_path: Path) -> None:
    """At 32 pixels motion blur has 21 frames and translate 16 (create_p/make_cifar_p.py)."""
    steps = Steps()
    run = evaluate(
        model(),
        source(),
        benchmark("p:motion_blur@2", "p:translate@1", preset="cifar"),
        out=tmp_path,
        report=steps,
    )
    found = score(run, replicates=20)
    for name, frames in (("p:motion_blur@2", 21), ("p:translate@1", 16)):
        assert len(run.records(parse_condition(name))) == 20 * frames
        assert 0 <= found.find("flips", name).estimate.value <= 100
    assert steps[-1].done == steps[-1].total == 20 * (1 + 21 + 16)


def test_other_squares_are_another_protocol(tmp_path: Path) -> None:
    runs = [
        evaluate(model(), source(sizes=SIZES), benchmark("fog@2", square=24, centre=centre), out=tmp_path / str(centre))
        for centre in (None, 0.75)
    ]
    with pytest.raises(InputError, match=r"protocol\.centre"):
        compare(*runs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"square": 24, "crop": 24}, "square together with resize or crop"),
        ({"square": 24, "resize": 24}, "square together with resize or crop"),
        ({"centre": 0.5}, "centre without square"),
        ({"square": 4}, "a square of 4×4 pixels; expected at least 8×8"),
        ({"square": 24, "centre": 0.0}, "the middle 0 of each side"),
    ],
)
def test_sizes_that_mean_nothing(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Protocol(**settings)  # type: ignore[arg-type]


def test_the_command_line_can_take_images_as_they_are() -> None:
    whole = load_benchmark("imagenet-c-299")
    assert whole.protocol.view == Square(299, 0.875)
    assert ProtocolOptions(square=0).apply(whole).protocol.view is None
    assert ProtocolOptions(square=256).apply(whole).protocol.view == Square(256, 0.875)
    with pytest.raises(InputError, match="square together with resize or crop"):
        ProtocolOptions(resize=256).apply(whole)


def test_every_size_is_that_of_the_published_generators() -> None:
    """The transforms in create_c and create_p of hendrycks/robustness; CIFAR and Tiny ImageNet are taken as given."""
    views = {
        "imagenet-c": 224,
        "imagenet-p": 224,
        "imagenet64-c": Square(64),
        "imagenet-c-299": Square(299, 0.875),
        "imagenet-p-299": Square(299, 0.875),
        **dict.fromkeys(("cifar10-c", "cifar100-c", "cifar10-p", "tiny-imagenet-c", "tiny-imagenet-p"), None),
    }
    for name, view in views.items():
        assert load_benchmark(name).protocol.view == view


@pytest.mark.parametrize("name", ["cifar10-p", "cifar100-c", "tiny-imagenet-p", "imagenet64-c"])
def test_variants_without_a_published_baseline_have_none(name: str) -> None:
    chosen = load_benchmark(name)
    assert chosen.baseline is None
    assert chosen.metric in ("error", "flips")
