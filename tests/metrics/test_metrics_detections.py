"""AP of detections: against a count by hand, a plain implementation and pycocotools; resamples, doing all again."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from blemish.core.resampling import Bootstrap, Swaps, stream_of
from blemish.metrics.detections import OVERLAPS, Matches, Side, match
from blemish.metrics.paired import swapped_means
from blemish.metrics.table import Table
from foreign import foreign

CLASSES = 4
Entry = dict[str, Any]


def drawn(seed: int, images: int = 25, levels: int = 0) -> tuple[list[Entry], list[Entry]]:
    """Annotations and detections in COCO's form: crowds, small and large ones, doubled and missing ones.

    With ``levels`` there are so many different scores, as of a detector in whole numbers.
    """
    rng = np.random.default_rng(seed)
    true: list[Entry] = []
    found: list[Entry] = []
    for image in range(images):
        for _ in range(rng.integers(0, 6)):
            x, y = rng.uniform(0, 300, 2)
            w, h = np.exp(rng.uniform(2, 5.3, 2))
            kind, crowd = int(rng.integers(1, CLASSES + 1)), int(rng.random() < 0.1)
            area = float(w * h * rng.uniform(0.5, 1))
            box = [float(x), float(y), float(w), float(h)]
            true.append({"id": len(true) + 1, "image_id": image, "category_id": kind, "bbox": box})
            true[-1] |= {"area": area, "iscrowd": crowd}
            for _ in range(rng.integers(0, 3)):
                moved = np.array(box) + rng.normal(0, 0.12, 4) * [w, h, w, h]
                moved[2:] = np.maximum(moved[2:], 1)
                other = int(rng.integers(1, CLASSES + 1))
                found.append({"image_id": image, "category_id": kind if rng.random() < 0.8 else other})
                found[-1] |= {"bbox": moved.tolist(), "score": float(rng.random())}
        for _ in range(rng.integers(0, 3)):
            box = [*rng.uniform(0, 300, 2).tolist(), *np.exp(rng.uniform(2, 5, 2)).tolist()]
            found.append({"image_id": image, "category_id": 1, "bbox": box, "score": float(rng.random())})
    for entry in found if levels else ():
        entry["score"] = np.ceil(entry["score"] * levels) / levels
    return true, found


def side(entries: list[Entry]) -> Side:
    columns = [np.array([entry[key] for entry in entries]) for key in ("image_id", "category_id")]
    return Side(*columns, np.array([entry["bbox"] for entry in entries]).reshape(-1, 4))


def matches(true: list[Entry], found: list[Entry], images: int, *ranges: str) -> Matches:
    scores = np.array([entry["score"] for entry in found])
    areas = np.array([entry["area"] for entry in true])
    crowd = np.array([entry["iscrowd"] for entry in true], dtype=np.bool_)
    return match(images, side(found), scores, side(true), areas, crowd, ranges=ranges or ("all",))


def again(entries: list[Entry], draw: NDArray[np.int64]) -> list[Entry]:
    """The entries of a resample, as if each drawn image were another one."""
    return [
        {**entry, "image_id": new}
        for new, old in enumerate(draw.tolist())
        for entry in entries
        if entry["image_id"] == old
    ]


def plain_ap(true: list[Entry], found: list[Entry], overlap: float) -> float:
    """AP at one overlap without crowds, written anew from the definition: greedy matching, 101 levels of recall."""

    def iou(a: list[float], b: list[float]) -> float:
        w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
        h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
        shared = max(w, 0) * max(h, 0)
        return shared / (a[2] * a[3] + b[2] * b[3] - shared)

    values = []
    for kind in sorted({entry["category_id"] for entry in true}):
        own = [entry for entry in true if entry["category_id"] == kind]
        taken: set[int] = set()
        hits: list[bool] = []
        for box in sorted((e for e in found if e["category_id"] == kind), key=lambda e: -e["score"]):
            fits = [(iou(box["bbox"], o["bbox"]), i) for i, o in enumerate(own) if o["image_id"] == box["image_id"]]
            best = max((pair for pair in fits if pair[1] not in taken and pair[0] >= overlap), default=None)
            hits.append(best is not None)
            if best is not None:
                taken.add(best[1])
        precision = [sum(hits[: n + 1]) / (n + 1) for n in range(len(hits))]
        recall = [sum(hits[: n + 1]) / len(own) for n in range(len(hits))]
        levels = np.linspace(0, 1, 101).tolist()  # COCO's, to the last bit
        reached = [[p for p, r in zip(precision, recall, strict=True) if r >= level] for level in levels]
        values.append(np.mean([max(own_level, default=0.0) for own_level in reached]))
    return float(np.mean(values))


def coco(true: list[Entry], found: list[Entry], images: int) -> NDArray[np.float64]:
    """AP, AP50, AP75, and AP of small, medium and large objects, by pycocotools."""
    tools, evaluation = foreign("pycocotools.coco"), foreign("pycocotools.cocoeval")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = tools.COCO()
        categories = [{"id": number} for number in range(1, CLASSES + 1)]
        listed = [{**entry, "id": number} for number, entry in enumerate(true, start=1)]
        truth.dataset = {"images": [{"id": i} for i in range(images)], "annotations": listed, "categories": categories}
        truth.createIndex()
        run = evaluation.COCOeval(truth, truth.loadRes([dict(entry) for entry in found]), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return np.asarray(run.stats[:6])


def six(whole: Matches, sizes: Matches, weights: NDArray[Any]) -> NDArray[np.float64]:
    ap = whole.weighted(weights[None])[0]
    return np.array([ap.mean(), ap[0], ap[5], *sizes.weighted(weights[None])[0]])


SIZES = ("small", "medium", "large")


@pytest.mark.parametrize(("seed", "levels"), [(0, 0), (1, 0), (2, 0), (3, 2), (4, 10)])
def test_ap_is_that_of_pycocotools_also_of_resamples(seed: int, levels: int) -> None:
    true, found = drawn(seed, levels=levels)
    whole, sizes = matches(true, found, 25), matches(true, found, 25, *SIZES)
    assert six(whole, sizes, np.ones(25)) == pytest.approx(coco(true, found, 25), abs=1e-12)
    draw = np.sort(np.random.default_rng(seed).integers(0, 25, 25))
    counts = np.bincount(draw, minlength=25)
    assert six(whole, sizes, counts) == pytest.approx(coco(again(true, draw), again(found, draw), 25), abs=1e-12)


@pytest.mark.parametrize("seed", range(10, 13))
def test_ap_is_that_of_a_plain_implementation(seed: int) -> None:
    true, found = drawn(seed)
    true = [{**entry, "iscrowd": 0} for entry in true]
    whole = matches(true, found, 25)
    assert whole.weighted(np.ones((1, 25)))[0, [0, 5]] == pytest.approx(
        [plain_ap(true, found, 0.5), plain_ap(true, found, 0.75)], abs=1e-12
    )
    draw = np.random.default_rng(seed).integers(0, 25, 25)
    again_at_75 = plain_ap(again(true, draw), again(found, draw), 0.75)
    assert whole.weighted(np.bincount(draw, minlength=25)[None])[0, 5] == pytest.approx(again_at_75, abs=1e-12)


def test_ap_by_hand() -> None:
    """One class, two objects; hit, miss, hit: precision 1 up to recall ½, then ⅔: (51 · 1 + 50 · ⅔) / 101."""
    boxes = np.array([[0.0, 0, 10, 10], [50, 0, 10, 10], [20, 0, 10, 10]])
    truth = Side(np.array([0, 1]), np.array([7, 7]), boxes[[0, 2]])
    found = Side(np.array([0, 0, 1]), np.array([7, 7, 7]), boxes)
    scores = np.array([0.9, 0.8, 0.7])
    whole = match(2, found, scores, truth, np.array([100.0, 100]), np.zeros(2, dtype=np.bool_))
    assert whole.weighted(np.ones((1, 2)))[0] == pytest.approx(np.full(10, (51 + 50 * 2 / 3) / 101))
    assert whole.weighted(np.array([[0.0, 1]]))[0] == pytest.approx(np.ones(10))
    assert np.isnan(whole[np.array([], dtype=np.int64)].weighted(np.ones((1, 0)))).all()
    assert len(OVERLAPS) == 10


def test_parts_and_unions_of_images_are_those_of_their_boxes() -> None:
    true, found = drawn(20)
    whole = matches(true, found, 25)
    rows = np.array([3, 4, 9, 20])
    weights = np.zeros(25)
    weights[rows] = [1, 2, 0, 3]
    assert whole[rows].weighted(np.array([[1.0, 2, 0, 3]])) == pytest.approx(whole.weighted(weights[None]), abs=1e-12)
    joined = whole[np.arange(10)].joined(whole[np.arange(10, 25)])
    draws = np.stack([row for block in Bootstrap(25, 5).blocks() for row in block])
    assert joined.weighted(draws) == pytest.approx(whole.weighted(draws), abs=1e-12)


@pytest.mark.parametrize("levels", [0, 2])
def test_swapping_the_answers_of_two_models_is_counting_the_other_ones(levels: int) -> None:
    true, found = drawn(30, levels=levels)
    worse = [{**entry, "score": 1 - entry["score"]} for entry in found]
    names = np.array([f"{i:02}" for i in range(25)])
    one, other = (Table("", names, {("boxes", "clean"): matches(true, f, 25)}) for f in (found, worse))
    first, second = swapped_means(one, other, replicates=30, seed=0)
    assert first["boxes", "clean"].shape == (30, 10)
    signs = next(Swaps(25, 30, 0, stream_of("")).blocks())
    for number in (0, 17):
        stays = signs[number] > 0
        for keeps, swapped in ((stays, first), (~stays, second)):
            mixed = [entry for entry in found if keeps[entry["image_id"]]]
            mixed += [entry for entry in worse if not keeps[entry["image_id"]]]
            expected = matches(true, mixed, 25).weighted(np.ones((1, 25)))[0]
            assert swapped["boxes", "clean"][number] == pytest.approx(expected, abs=1e-12)
