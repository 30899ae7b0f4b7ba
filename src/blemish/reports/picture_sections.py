"""The sections with pictures: some images as the models were given them, and those that each lost most often."""

from __future__ import annotations

from collections.abc import Iterator

from blemish.reports.answers import gather, read_pictures
from blemish.reports.examples import Subject, examples, unmakeable, worst_images
from blemish.reports.material import Material, section
from blemish.reports.page import Section

_TAKEN = "The data has numbers for classes; they are called by the names of ImageNet's classes in their usual order."


def picture_sections(material: Material) -> Iterator[Section]:
    """Examples with every model's answers, and the worst-hit images of each model that is better than chance."""
    readings, report = material.readings, material.report
    subjects = []
    for done, reading in enumerate(readings):
        report(done, len(readings), "gathering answers")
        if (answers := gather(reading.run)) is not None:
            pictures = read_pictures(reading.run)
            subjects.append(Subject(reading.name, reading.run, answers, pictures, reading.number, material.catalog))
    report(0, 1 + len(subjects), "making pictures")
    if shown := examples(subjects):
        reasons = (
            unmakeable(s.run, c, material.catalog)
            for s in subjects
            if s.pictures is not None
            for c in s.answers.conditions
        )
        gaps = [f"Some pictures are missing: {text}." for text in dict.fromkeys(filter(None, reasons))]
        levels = list(shown[0].levels)
        if any(subject.is_taken_for_imagenet for subject in subjects):
            gaps.append(_TAKEN)
        yield section("examples", "Examples", names=material.names, notes=gaps, examples=shown, levels=levels)
    near = {reading.number for reading in readings if reading.scores.near_chance}
    sure = [subject for subject in subjects if subject.number not in near]
    worst = []
    for done, subject in enumerate(sure, start=1):
        report(done, 1 + len(sure), "making pictures")
        if hits := worst_images(subject, of=len(sure)):
            worst.append((subject, hits))
    if worst:
        yield section("worst", "Worst-hit images", short="Worst hit", models=worst, named=len(subjects) > 1)
