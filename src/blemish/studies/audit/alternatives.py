"""Other ways in which a model may want its images: channels, normalisation, range, size; guesses to be tested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from blemish.benchmarks.benchmark import Protocol
from blemish.core.errors import InputError
from blemish.models.base import Channels, Classifier, Preprocessing
from blemish.models.resizing import Interpolation, Resizing
from blemish.studies.audit.subject import Subject

_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_USUAL = {
    "values in 0 … 1": ((0.0,), (1.0,)),
    "ImageNet's mean and std": _IMAGENET,
    "0.5 and 0.5 (values in −1 … 1)": ((0.5,), (0.5,)),
    "mean 0.5 and std 1": ((0.5,), (1.0,)),
    "CIFAR-10's mean and std": ((0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    "CLIP's mean and std": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
}
_USUAL_GRAY = {
    "values in 0 … 1": ((0.0,), (1.0,)),
    "0.5 and 0.5 (values in −1 … 1)": ((0.5,), (0.5,)),
    "mean 0.5 and std 1": ((0.5,), (1.0,)),
    "MNIST's mean and std": ((0.1307,), (0.3081,)),
}
_WHITE = 255.0
_CAFFE = tuple(round(value / _WHITE, 6) for value in (103.939, 116.779, 123.68))

# Sides that networks are made for. More than twice the present one would make an audit slow.
_SIDES = (28, 32, 64, 96, 128, 160, 224, 256, 299, 384)
_LARGEST = 2
_SHOWN_SIDES = 3
# A network may see a little better at another size than the one it was made for, which is no fault of the set-up.
_LEAST_GAIN = 0.1
# Means and standard deviations that differ by less, in standard deviations, are the same way.
_SAME = 0.03
# The share of a picture's side that most evaluations show.
_CENTRE = 0.875


@dataclass(frozen=True)
class Alternative:
    """A model that gets its images in another way, what that way is, and how to say it.

    ``protocol`` is another way to bring the images to size, if that is what is tried. It counts if it makes at least
    ``least_gain`` more of the answers right. Confidences can be compared where the values have the ``same_scale``.
    """

    check: str
    what: str
    todo: str
    model: Classifier
    protocol: Protocol | None = None
    least_gain: float = 0.0
    same_scale: bool = False


def alternatives(subject: Subject) -> list[Alternative]:
    """All that is tried for a model and its images, each way once."""
    seen, tried = [subject.model.preprocessing], []
    for alternative in (*_of_values(subject.model), *_of_size(subject)):
        if alternative.protocol is None:
            made = alternative.model.preprocessing
            if any(_nearly_equal(made, other) for other in seen):
                continue
            seen.append(made)
        tried.append(alternative)
    return tried


def _nearly_equal(one: Preprocessing, other: Preprocessing) -> bool:
    """Whether two ways differ by so little that no few images could tell them apart."""
    plain = [replace(each, mean=(0.0,), std=(1.0,)) for each in (one, other)]
    if plain[0] != plain[1]:
        return False
    means, stds = (
        [np.broadcast_to(values, 3) for values in pair] for pair in ((one.mean, other.mean), (one.std, other.std))
    )
    return bool((abs(stds[0] / stds[1] - 1) < _SAME).all() and (abs(means[0] - means[1]) < _SAME * stds[1]).all())


def _of_values(model: Classifier) -> Iterator[Alternative]:
    own = model.preprocessing
    if own.channels != "gray":
        other: Channels = "rgb" if own.channels == "bgr" else "bgr"
        yield Alternative(
            "channel-order",
            f"{other.upper()} instead of {own.channels.upper()}",
            f"give the model its channels in the order that it learnt: --channels {other}; or look at how the images "
            "were read, as OpenCV gives blue first",
            replace(model, preprocessing=replace(own, channels=other)),
            same_scale=True,
        )
    if own.levels:
        yield from _of_levels(model)
        return
    for what, (mean, std) in _normalisations(own).items():
        yield _normalised(model, "normalisation", what, mean, std)
    ranges = {
        "values in 0 … 255": ((0.0,), (1 / _WHITE,)),
        "its own mean and std divided by 255": (_over(own.mean, _WHITE), _over(own.std, _WHITE)),
        "its own mean and std times 255": (_over(own.mean, 1 / _WHITE), _over(own.std, 1 / _WHITE)),
    }
    for what, (mean, std) in ranges.items():
        yield _normalised(model, "value-range", what, mean, std)
    if own.channels != "gray":
        caffe = _normalised(model, "normalisation", "Caffe's way, BGR in 0 … 255 less its mean", _CAFFE, (1 / _WHITE,))
        changed = replace(caffe.model.preprocessing, channels="bgr")
        yield replace(caffe, todo=f"{caffe.todo} --channels bgr", model=replace(model, preprocessing=changed))


def _of_levels(model: Classifier) -> Iterator[Alternative]:
    """Of functions that are given 8-bit levels, and may have forgotten to scale them."""
    for what, (mean, std) in (_USUAL_GRAY if model.preprocessing.channels == "gray" else _USUAL).items():
        scaled = replace(model.preprocessing, levels=False, mean=mean, std=std)
        yield Alternative(
            "value-range" if std == (1.0,) and mean == (0.0,) else "normalisation",
            f"floats, {what}, instead of 8-bit levels",
            "scale the levels where the model takes them (images.float() / 255, then mean and std)",
            replace(model, preprocessing=scaled),
        )


def _normalisations(own: Preprocessing) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    ways = dict(_USUAL_GRAY if own.channels == "gray" else _USUAL)
    ways["its own mean and std swapped"] = own.std, own.mean
    ways["its own mean without its std"] = own.mean, (1.0,)
    ways["its own std without its mean"] = (0.0,), own.std
    if len(own.mean) == len(own.std):  # ((x − m) / s − m) / s
        twice = tuple(m + m * s for m, s in zip(own.mean, own.std, strict=True))
        ways["its own mean and std applied twice"] = twice, tuple(s * s for s in own.std)
    return ways


def _normalised(
    model: Classifier, check: str, what: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> Alternative:
    try:
        changed = replace(model.preprocessing, mean=mean, std=std)
    except InputError:  # such as a mean of 0 as a std
        changed = model.preprocessing
    shown = "--mean " + ",".join(f"{value:.6g}" for value in mean) + " --std " + ",".join(f"{v:.6g}" for v in std)
    todo = shown
    if (mean, std) == ((0.0,), (1.0,)):
        todo += " (a model that normalises by itself is not to be given normalised values)"
    return Alternative(check, what, todo, replace(model, preprocessing=changed))


def _over(values: tuple[float, ...], divisor: float) -> tuple[float, ...]:
    return tuple(value / divisor for value in values)


def _of_size(subject: Subject) -> Iterator[Alternative]:
    yield from _of_protocol(subject)
    shape = tuple(int(side) for side in np.median(subject.images.shapes[:, 1:], axis=0))
    yield from _of_input(subject.model, (shape[0], shape[1]), lossy=subject.lossy)


def _of_protocol(subject: Subject) -> Iterator[Alternative]:
    """Other cuts of the images, as long as they come larger or of other shapes than the model's input."""
    now = subject.protocol
    plain = replace(now, resize=None, crop=None, square=None, centre=None)
    tried = [("images as they are", "neither resize nor crop: --resize 0 --crop 0", plain)]
    size = subject.model.preprocessing.size
    side = size[0] if size is not None and size[0] == size[1] else now.crop
    sizes = [subject.source.read(int(row)).size for row in subject.rows[:8]]
    if side is not None and any(width != height or min(width, height) > side for width, height in sizes):
        for resize in (round(side / _CENTRE), side):
            what = f"the shorter side brought to {resize} pixels and the middle {side} cut out"
            tried.append((what, f"--resize {resize} --crop {side}", replace(plain, resize=resize, crop=side)))
    for what, todo, protocol in tried:
        if protocol != now:
            yield Alternative("resizing", what, todo, subject.model, protocol)


def _of_input(model: Classifier, shape: tuple[int, int], *, lossy: bool) -> Iterator[Alternative]:
    """Other sizes of the model's input, and other ways to bring images to it.

    Of ``lossy`` images a smaller input smooths the traces of JPEG away, which makes it better and not right.
    """
    own = model.preprocessing
    if own.size is not None and own.size != shape:
        to = None if own.resizing is None else own.resizing.to
        ways: tuple[Interpolation, ...] = ("nearest", "bilinear", "bicubic")
        for way in ways:
            changed = replace(own, resizing=Resizing(way, to))
            yield _resized(model, changed, f"{way} resizing to {own.size[0]}×{own.size[1]}")
        if to is not None:
            yield _resized(model, replace(own, resizing=None), "the whole picture pressed into the model's input")
        text = f"images as they are ({shape[0]}×{shape[1]}), without resizing to {own.size[0]}×{own.size[1]}"
        yield _resized(model, replace(own, size=None, resizing=None), text)
    now = min(shape if own.size is None else own.size)
    near = sorted(_SIDES, key=lambda side: abs(np.log(side / now)))
    least = now if lossy else 0
    sides = [side for side in near if side != now and least <= side <= _LARGEST * now][:_SHOWN_SIDES]
    for side in sides:
        changed = replace(own, size=(side, side), resizing=None)
        yield replace(_resized(model, changed, f"an input of {side}×{side} pixels"), least_gain=_LEAST_GAIN)


def _resized(model: Classifier, preprocessing: Preprocessing, what: str) -> Alternative:
    size = preprocessing.size
    todo = "leave --size out" if size is None else f"--size {size[0]}"
    if preprocessing.resizing is not None:
        todo = f"Preprocessing(size={size}, resizing=Resizing({preprocessing.resizing.interpolation!r}))"
    return Alternative("resizing", what, todo, replace(model, preprocessing=preprocessing))
