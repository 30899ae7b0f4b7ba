"""Pictures in the report: what the models saw, made again from the originals, and what they said."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from PIL import Image, features

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.plugins import OwnVersion, stated_version
from blemish.corruptions.severity import severity_text
from blemish.data.classes import class_titles, imagenet_wnids
from blemish.data.images import as_picture
from blemish.data.pictures import encode_picture
from blemish.evaluation.runs import Run
from blemish.reports.answers import Answers, Hit, Pictures, class_name, worst_hit

_SIDE = 160
_FINE = 96
_SURE = 0.1
"""One right answer in ten is a hundred times what chance gives among 1,000 classes."""
_QUALITY = 72
_EXAMPLES, _TILES, _LEVELS, _WORST = 4, 24, 5, 6
_PICTURES = 200
"""Pictures of examples in a page, and a third as many of worst-hit images: about two megabytes of photographs."""


@dataclass(frozen=True)
class Subject:
    """A model in the report: its run, its answers, the pictures kept with it, and its number among the models.

    Pixels are made again with the corruptions of the catalog.
    """

    name: str
    run: Run
    answers: Answers
    pictures: Pictures | None
    number: int
    catalog: Catalog = field(default_factory=lambda: catalog, repr=False)

    @cached_property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes as people read them, where they are known."""
        kept = None if self.pictures is None else self.pictures.classes
        known = self.run.info.classes or kept or (imagenet_wnids() if self.is_taken_for_imagenet else None)
        return None if known is None else class_titles(known)

    @cached_property
    def is_taken_for_imagenet(self) -> bool:
        """Whether numbers of classes are taken for ImageNet's.

        So they are where nothing names the classes, but the benchmark is one of ImageNet and a model of 1,000 outputs
        is right far more often than chance.
        """
        info = self.run.info
        named = info.classes or (self.pictures is not None and self.pictures.classes)
        benchmark = info.benchmark.name if info.benchmark.part_of is None else info.benchmark.part_of.name
        of_imagenet = benchmark.startswith("imagenet") and info.model.outputs == len(imagenet_wnids())
        return not named and of_imagenet and bool(self.answers.clean.correct.mean() > _SURE)

    @property
    def series(self) -> str:
        """The style class that gives the model its colour."""
        return f"s{self.number % 8}"

    def makeable(self, condition: Condition) -> bool:
        """Whether the pixels of a condition can be made again here exactly."""
        return unmakeable(self.run, condition, self.catalog) is None


@dataclass(frozen=True)
class Picture:
    """A picture inside the page; a ``fine`` one has so few pixels that they are shown as squares."""

    source: str
    alt: str
    fine: bool


@dataclass(frozen=True)
class Answer:
    """What a model said of a picture; the model is named where there are several."""

    text: str
    right: bool
    model: Subject | None


@dataclass(frozen=True)
class Tile:
    """A picture under a condition with what models said of it."""

    title: str
    picture: Picture
    answers: list[Answer]


@dataclass(frozen=True)
class Example:
    """An image by its class and name, clean and under some conditions; ``text`` says why it is shown."""

    label: str
    name: str
    clean: Tile | None
    tiles: list[Tile]
    text: str = ""
    levels: dict[str, list[Tile]] = field(default_factory=dict)
    """The same at each severity, where there are several to choose from."""


def unmakeable(run: Run, condition: Condition, catalog: Catalog = catalog) -> str | None:
    """Why the pixels of a condition cannot be made again here exactly; None where they can."""
    protocol = run.info.protocol
    if protocol.pixels != "generated":
        return "the corrupted images were stored, and are not kept with the results"
    for name in condition.names():
        if name not in catalog:
            return f"{name} is not a corruption of this catalog; --plugin names a module that has it"
        version, measured = catalog[name].version, protocol.corruptions.get(name)
        if measured != stated_version(catalog[name]):
            before = measured.version if isinstance(measured, OwnVersion) else measured
            same = "with other code or files"
            other = same if before == version else f"in version {before}; this is version {version}"
            return f"{name} was measured {other}"
    if "frost" in condition.names():
        if protocol.frost != catalog.frost_kind:
            return f"frost was measured with {protocol.frost} photographs; --frost names their folder"
        try:
            catalog["frost"].check_files()
        except InputError:
            return 'the photographs of frost are not on this machine; "blemish fetch-frost" gets them'
    return None


def condition_pixels(subject: Subject, row: int, condition: Condition) -> Image.Image:
    """The image as the model was given it; storage as JPEG is repeated."""
    assert subject.pictures is not None
    protocol = subject.run.info.protocol
    picture = torch.from_numpy(subject.pictures.images[row]).permute(2, 0, 1).unsqueeze(0).contiguous()
    number = torch.tensor([int(subject.pictures.ids[row])])
    whole = condition.with_units(subject.catalog)
    changed = whole.apply(picture, seed=protocol.seed, ids=number, preset=protocol.preset)
    image = as_picture(changed[0])
    if condition.steps and protocol.storage == "jpeg85":
        image = Image.open(io.BytesIO(encode_picture(image, "jpeg")))
        image.load()
    return image


def inline_picture(image: Image.Image, alt: str) -> Picture:
    """A picture inside the page; small ones keep every pixel, large ones are made smaller."""
    fine = max(image.size) <= _FINE
    kind = "png" if fine else "webp" if features.check("webp") else "jpeg"
    if not fine:
        image = image.copy()
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    if fine:
        image.save(buffer, kind, optimize=True)
    else:
        image.save(buffer, kind, quality=_QUALITY)
    source = f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return Picture(source, alt, fine)


def condition_label(condition: Condition) -> str:
    """A condition in words."""
    if condition.severity is not None:
        return f"{condition.group.replace('_', ' ')}, severity\N{NO-BREAK SPACE}{severity_text(condition.severity)}"
    return str(condition).replace("_", " ")


def _answer(subject: Subject, name: str, condition: Condition, *, named: bool) -> Answer | None:
    """What a model said of an image under a condition, as far as it was asked."""
    answers, column = subject.answers, subject.answers.column(name)
    if column is None or (condition.steps and condition not in answers.conditions):
        return None
    if condition.steps:
        row = answers.conditions.index(condition)
        number, sure = int(answers.top1[row, column]), float(answers.confidence[row, column])
    else:
        number, sure = int(answers.clean.top5[column, 0]), float(answers.clean.confidence[column])
    right = number == int(answers.labels[column])
    text = f"{class_name(number, subject.classes)} {100 * sure:.0f}\N{NO-BREAK SPACE}%"
    return Answer(text, right, subject if named else None)


def _tile(first: Subject, row: int, condition: Condition, subjects: Sequence[Subject]) -> Tile:
    """A picture of the first model's under a condition, with what all of them said."""
    assert first.pictures is not None
    name, title = first.pictures.names[row], condition_label(condition) if condition.steps else "clean"
    answers = [_answer(subject, name, condition, named=len(subjects) > 1) for subject in subjects]
    picture = inline_picture(condition_pixels(first, row, condition), f"{name}: {title}")
    return Tile(title, picture, [answer for answer in answers if answer is not None])


def _same_pixels(first: Subject, other: Subject) -> bool:
    return first.run.info.protocol == other.run.info.protocol


def shown_conditions(subject: Subject) -> list[Condition]:
    """For each corruption one condition, at the middle of its severities, as far as its pixels can be made here."""
    groups: dict[str, list[Condition]] = {}
    for condition in subject.answers.conditions:
        if subject.makeable(condition):
            groups.setdefault(condition.group, []).append(condition)
    return [sorted(some, key=lambda c: c.severity or 0)[len(some) // 2] for some in groups.values()][:_TILES]


def shown_levels(subject: Subject) -> dict[str, list[Condition]]:
    """For each of a few severities one condition of each corruption, at that severity or the one next to it.

    Empty where there are no severities to choose from.
    """
    groups: dict[str, list[Condition]] = {}
    for condition in subject.answers.conditions:
        if subject.makeable(condition) and condition.severity is not None:
            groups.setdefault(condition.group, []).append(condition)
    levels = sorted({c.severity for some in groups.values() for c in some if c.severity is not None})
    if len(levels) < 2:
        return {}
    step = (len(levels) - 1) / (min(len(levels), _LEVELS) - 1)
    chosen = [levels[round(index * step)] for index in range(min(len(levels), _LEVELS))]
    shown = [condition.group for condition in shown_conditions(subject) if condition.group in groups]
    return {
        severity_text(level): [min(groups[name], key=lambda c: abs((c.severity or 0) - level)) for name in shown]
        for level in chosen
    }


def examples(subjects: Sequence[Subject]) -> list[Example]:
    """A few images, each clean and under every corruption, with what each model said of it."""
    first = next((subject for subject in subjects if subject.pictures is not None), None)
    if first is None or first.pictures is None:
        return []
    alike = [subject for subject in subjects if _same_pixels(first, subject)]
    worst = {hit.name for hit in worst_hit(first.answers, _WORST)}
    names = [name for name in first.pictures.names if name not in worst] or list(first.pictures.names)
    levels = shown_levels(first)
    each = sum(map(len, levels.values())) or len(shown_conditions(first))
    count = max(1, min(_EXAMPLES, _PICTURES // max(1, each)))
    return [_example(first, alike, first.pictures.names.index(name), levels) for name in names[:count]]


def _example(
    first: Subject, subjects: Sequence[Subject], row: int, levels: Mapping[str, Sequence[Condition]]
) -> Example:
    assert first.pictures is not None
    label = class_name(int(first.pictures.labels[row]), first.classes)
    clean = _tile(first, row, Condition(), subjects)
    plain = shown_conditions(first) if not levels else []
    tiles = {
        condition: _tile(first, row, condition, subjects) for some in (*levels.values(), plain) for condition in some
    }
    return Example(
        label,
        first.pictures.names[row],
        clean,
        [tiles[condition] for condition in plain],
        levels={level: [tiles[condition] for condition in some] for level, some in levels.items()},
    )


def worst_images(subject: Subject, *, of: int = 1) -> list[Example]:
    """The images that a model lost most often, with the mildest conditions that fooled it; fewer where ``of`` many."""
    count = max(2, min(_WORST, _PICTURES // (12 * of)))
    return [_worst(subject, hit) for hit in worst_hit(subject.answers, count)]


def _worst(subject: Subject, hit: Hit) -> Example:
    label, other = class_name(hit.label, subject.classes), class_name(hit.mistaken_for, subject.classes)
    text = f"Wrong in {hit.wrong} of {hit.out_of} conditions; {hit.times} times called {other}."
    row = None if subject.pictures is None else subject.pictures.row(hit.name)
    if row is None:
        return Example(label, hit.name, None, [], text)
    mildest = [subject.answers.conditions[row] for row in hit.mildest]
    shown = [Condition(), *(condition for condition in mildest if subject.makeable(condition))]
    clean, *tiles = (_tile(subject, row, condition, [subject]) for condition in shown)
    return Example(label, hit.name, clean, tiles, text)
