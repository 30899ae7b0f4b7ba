"""Pictures in the report: what the models saw, made again from the originals, and what they said."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from PIL import Image

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.corruptions.severity import severity_text
from blemish.data.encoding import encode_picture
from blemish.evaluation.runs import Run
from blemish.reports.answers import Answers, Hit, Pictures, class_name, worst_hit
from blemish.reports.markup import Markup, element

__all__ = [
    "Subject",
    "condition_label",
    "condition_pixels",
    "examples",
    "inline_picture",
    "shown_conditions",
    "unmakeable",
    "worst_images",
]

_SIDE = 176
_FINE = 96
_EXAMPLES, _TILES, _WORST = 4, 24, 6


@dataclass(frozen=True)
class Subject:
    """A model in the report: its run, its answers, the pictures kept with it, and its place among the models."""

    name: str
    run: Run
    answers: Answers
    pictures: Pictures | None
    place: int

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The names of the classes, where they are known."""
        return None if self.pictures is None else self.pictures.classes

    @property
    def series(self) -> str:
        """The style class that gives the model its colour."""
        return f"s{self.place % 8}"


def unmakeable(run: Run, condition: Condition) -> str | None:
    """Why the pixels of a condition cannot be made again here exactly; None where they can."""
    protocol = run.info["protocol"]
    if protocol.get("pixels") != "generated":
        return "the corrupted images were stored, and are not kept with the results"
    for name in condition.names():
        if name not in catalog:
            return f"{name} is not a corruption of this catalog"
        version = protocol.get("corruptions", {}).get(name)
        if version != catalog[name].version:
            return f"{name} was measured in version {version}; this is version {catalog[name].version}"
    if "frost" in condition.names():
        if protocol.get("frost") != catalog.frost_kind:
            return f"frost was measured with {protocol.get('frost')} photographs; a report has the reference's only"
        try:
            catalog["frost"].check_files()
        except InputError:
            return 'the photographs of frost are not on this machine; "blemish fetch-frost" gets them'
    return None


def condition_pixels(subject: Subject, row: int, condition: Condition) -> Image.Image:
    """The image as the model was given it; storage as JPEG is repeated."""
    assert subject.pictures is not None
    protocol = subject.run.info["protocol"]
    picture = torch.from_numpy(subject.pictures.images[row]).permute(2, 0, 1).unsqueeze(0).contiguous()
    number = torch.tensor([int(subject.pictures.ids[row])])
    whole = condition.with_units(catalog)
    changed = whole.apply(picture, seed=int(protocol["seed"]), ids=number, preset=protocol.get("preset"))
    values = changed[0].permute(1, 2, 0).numpy()
    image = Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values)
    if condition.steps and protocol.get("storage") == "jpeg85":
        image = Image.open(io.BytesIO(encode_picture(image, "jpeg")))
        image.load()
    return image


def inline_picture(image: Image.Image, alt: str) -> Markup:
    """A picture inside the page; small ones keep every pixel, large ones are made smaller."""
    fine = max(image.size) <= _FINE
    if not fine:
        image = image.copy()
        image.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    if fine:
        image.save(buffer, "PNG", optimize=True)
    else:
        image.save(buffer, "JPEG", quality=82)
    source = f"data:image/{'png' if fine else 'jpeg'};base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return element("img", src=source, alt=alt, class_="fine" if fine else None, loading="lazy")


def condition_label(condition: Condition) -> str:
    """A condition in words."""
    if condition.severity is not None:
        return f"{condition.group.replace('_', ' ')}, severity\N{NO-BREAK SPACE}{severity_text(condition.severity)}"
    return str(condition).replace("_", " ")


def _said(subject: Subject, name: str, row: int | None, *, dots: bool) -> Markup | None:
    """What a model said of an image, under a condition by its row or, without one, when clean."""
    column = subject.answers.column(name)
    if column is None:
        return None
    answers = subject.answers
    if row is None:
        number, sure = int(answers.clean.top5[column, 0]), float(answers.clean.confidence[column])
    else:
        number, sure = int(answers.top1[row, column]), float(answers.confidence[row, column])
    right = number == int(answers.labels[column])
    text = f"{'✓' if right else '✗'} {class_name(number, subject.classes)} {100 * sure:.0f}\N{NO-BREAK SPACE}%"
    dot = element("span", class_=f"dot {subject.series}", role="img", aria_label=subject.name) if dots else None
    return element("span", dot, element("span", text, class_="right" if right else "wrong"), class_="said")


def _tile(picture: Image.Image, caption: Sequence[object], alt: str) -> Markup:
    return element("figure", inline_picture(picture, alt), element("figcaption", *caption), class_="tile")


def _same_pixels(first: Subject, other: Subject) -> bool:
    return bool(first.run.info["protocol"] == other.run.info["protocol"])


def shown_conditions(subject: Subject) -> list[Condition]:
    """For each corruption one condition, at the middle of its severities, as far as its pixels can be made here."""
    groups: dict[str, list[Condition]] = {}
    for condition in subject.answers.conditions:
        if unmakeable(subject.run, condition) is None:
            groups.setdefault(condition.group, []).append(condition)
    return [sorted(some, key=lambda c: c.severity or 0)[len(some) // 2] for some in groups.values()][:_TILES]


def examples(subjects: Sequence[Subject]) -> list[Markup]:
    """A few images, each clean and under every corruption, with what each model said of it."""
    first = next((subject for subject in subjects if subject.pictures is not None), None)
    if first is None or first.pictures is None:
        return []
    alike = [subject for subject in subjects if _same_pixels(first, subject)]
    worst = {hit.name for hit in worst_hit(first.answers, _WORST)}
    names = [name for name in first.pictures.names if name not in worst] or list(first.pictures.names)
    return [_example(first, alike, name) for name in names[:_EXAMPLES]]


def _example(first: Subject, subjects: Sequence[Subject], name: str) -> Markup:
    assert first.pictures is not None
    row = first.pictures.names.index(name)
    label = class_name(int(first.pictures.labels[row]), first.classes)
    dots = len(subjects) > 1

    def tile(condition: Condition, title: str) -> Markup:
        lines = []
        for subject in subjects:
            known = condition in subject.answers.conditions
            if known or not condition.steps:
                place = subject.answers.conditions.index(condition) if condition.steps else None
                lines.append(_said(subject, name, place, dots=dots))
        return _tile(condition_pixels(first, row, condition), [title, *lines], f"{name}: {title}")

    clean = tile(Condition(), "clean")
    tiles = [tile(condition, condition_label(condition)) for condition in shown_conditions(first)]
    heading = element("h3", label, " ", element("span", name, class_="quiet small"))
    return element("div", heading, element("div", clean, element("div", tiles, class_="tiles"), class_="example"))


def worst_images(subject: Subject) -> list[Markup]:
    """The images that a model lost most often, with the mildest conditions that fooled it."""
    hits = worst_hit(subject.answers, _WORST)
    return [_worst(subject, hit) for hit in hits]


def _worst(subject: Subject, hit: Hit) -> Markup:
    label, other = class_name(hit.label, subject.classes), class_name(hit.mistaken_for, subject.classes)
    text = f"Wrong in {hit.wrong} of {hit.out_of} conditions; {hit.times} times called {other}."
    heading = element("h4", label, " ", element("span", hit.name, class_="quiet small"))
    row = None if subject.pictures is None else subject.pictures.place(hit.name)
    if row is None:
        return element("div", heading, element("p", text))
    clean = _tile(
        condition_pixels(subject, row, Condition()),
        ["clean", _said(subject, hit.name, None, dots=False)],
        f"{hit.name}: clean",
    )
    tiles = []
    for place in hit.mildest:
        condition = subject.answers.conditions[place]
        title = condition_label(condition)
        if unmakeable(subject.run, condition) is None:
            said = _said(subject, hit.name, place, dots=False)
            tiles.append(_tile(condition_pixels(subject, row, condition), [title, said], f"{hit.name}: {title}"))
    return element("div", heading, element("p", text), element("div", clean, tiles, class_="tiles"), class_="hit")
