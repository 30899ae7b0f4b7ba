"""Detection from end to end, on drawn shapes: records, numbers, refusals."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.core.errors import InputError, Notice
from blemish.data.shapes import class_map, shapes_source, shapes_truth
from blemish.data.truth import Boxes, BoxTruth, coco_images, coco_truth
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.models.answering import AnsweringModel
from blemish.models.colour_detector import colour_detector
from blemish.models.detectors import from_detector, open_detector
from blemish.reports.protocol import ProtocolRow, protocol_rows
from blemish.reports.reading import read_all
from blemish.tasks.detection import Detection

COUNT = 8
CONDITIONS = ["gaussian_noise@2", "gaussian_noise@5", "contrast@4"]


def benchmark(conditions: list[str]) -> blemish.Benchmark:
    read = tuple(blemish.parse_condition(text) for text in conditions)
    return blemish.Benchmark("shapes-c", "", "ap", read, protocol=blemish.Protocol(preset="imagenet"))


def run(folder: Path, model: AnsweringModel | None = None, conditions: list[str] = CONDITIONS, **more: Any) -> Run:
    task = Detection(shapes_truth(COUNT))
    return evaluate(
        model or colour_detector(),
        shapes_source(COUNT),
        benchmark(conditions),
        out=folder,
        task=task,
        **more,  # type: ignore[arg-type]
    )


def test_shapes_have_exact_boxes_and_masks() -> None:
    truth = shapes_truth(COUNT)
    for number, name in enumerate(truth.images):
        classes, own = class_map(number), truth.images[name]
        assert own.areas.sum() == np.count_nonzero(classes)
        for (x, y, w, h), label, area in zip(own.boxes.astype(int), own.labels, own.areas, strict=True):
            inside = classes[y : y + h, x : x + w] == label
            assert np.count_nonzero(inside) == area
            assert all(inside[edge].any() for edge in (0, -1, (slice(None), 0), (slice(None), -1)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("detection"))


def test_colours_are_found_on_clean_images_and_lost_in_noise(measured: Run) -> None:
    scores = blemish.score(measured, replicates=100)
    clean, light, strong = (scores.find("ap", text).estimate.value for text in ("clean", *CONDITIONS[:2]))
    assert clean == pytest.approx(100)
    assert 100 > light > strong > 0
    assert scores.headline is not None
    mean = np.mean([scores.find("ap", group).estimate.value for group in ("gaussian_noise", "contrast")])
    assert scores.headline.estimate.value == pytest.approx(mean)
    assert scores.find("rpc").estimate.value == pytest.approx(mean)
    assert scores.find("ap50", "gaussian_noise@5").estimate.value >= strong
    assert ["ap_large" in item.names for item in scores.missing].count(True) == 1


def test_records_hold_what_was_found_and_what_is_there(measured: Run) -> None:
    answers = measured.answers(measured.conditions[0])
    assert measured.info.task is not None
    assert measured.info.task.settings["truth"] == shapes_truth(COUNT).digest
    table, truth = answers.table(), shapes_truth(COUNT)
    for row, name in enumerate(table["image"]):
        own = truth.images[name]
        assert table["truth_labels"][row] == own.labels.tolist()
        assert sorted(table["labels"][row]) == sorted(own.labels.tolist())
        assert sorted(np.reshape(table["boxes"][row], (-1, 4)).tolist()) == sorted(own.boxes.tolist())


def test_a_run_goes_on_and_is_the_same_in_other_batches(measured: Run, tmp_path: Path) -> None:
    first = run(tmp_path, conditions=CONDITIONS[:1], batch_size=5)
    assert len(list(first.folder.glob("records/*.parquet"))) == 2
    whole = run(tmp_path, conditions=CONDITIONS[:1], batch_size=5)
    for path in sorted(whole.folder.glob("records/*.parquet")):
        assert path.read_bytes() == (measured.folder / "records" / path.name).read_bytes()


def shifted(images: Tensor) -> list[dict[str, Tensor]]:
    found = colour_detector()(images)
    return [{**entry, "boxes": entry["boxes"] + 2.0} for entry in found]


def test_without_numba_nothing_begins_and_the_extra_is_named(
    measured: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    message = r"this needs numba; install it with: pip install 'blemish\[full\]'"
    with pytest.raises(InputError, match=message):
        run(tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=message):  # records from a machine that has it
        blemish.score(measured, replicates=20)


def recoloured(images: Tensor) -> list[dict[str, Tensor]]:
    return [{**entry, "labels": entry["labels"] % 3 + 1} for entry in colour_detector()(images)]


def without_the_last(images: Tensor) -> list[dict[str, Tensor]]:
    return [{name: values[:-1] for name, values in entry.items()} for entry in colour_detector()(images)]


def twice(images: Tensor) -> list[dict[str, Tensor]]:
    return [
        {name: torch.cat([values, values]) for name, values in entry.items()} for entry in colour_detector()(images)
    ]


def surer(images: Tensor) -> list[dict[str, Tensor]]:
    return [{**entry, "scores": entry["scores"] * 1.1} for entry in colour_detector()(images)]


def rounded(images: Tensor) -> list[dict[str, Tensor]]:
    """Every number is a little off, boxes are in another order, and each image has one more of a negligible score."""
    found = []
    for entry in colour_detector()(images):
        values = {name: each.flip(0) for name, each in entry.items()}
        boxes, scores = values["boxes"] + 0.02, values["scores"] * 1.001
        more = torch.tensor([[3.0, 3, 9, 9]]), torch.tensor([0.002]), torch.tensor([1])
        pairs = zip((boxes, scores, values["labels"]), more, strict=True)
        found.append(dict(zip(("boxes", "scores", "labels"), map(torch.cat, pairs), strict=True)))
    return found


def test_a_detector_that_changed_is_noticed_when_its_run_goes_on(tmp_path: Path) -> None:
    def named(function: Any) -> AnsweringModel:
        return from_detector(function, name="mine", device="cpu")

    first = run(tmp_path, named(colour_detector()), CONDITIONS[:1])
    files = {path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()}
    others = (shifted, recoloured, without_the_last, twice, surer, lambda images: [nothing() for _ in images])
    for conditions in (CONDITIONS[:1], CONDITIONS[:2]):  # with nothing left to measure, and with something
        for other in others:
            with pytest.raises(InputError, match=r"mine gives another answer to shapes00\d\.png than when the run"):
                run(tmp_path, named(other), conditions)
    assert {path: path.read_bytes() for path in first.folder.rglob("*") if path.is_file()} == files
    grown = run(tmp_path, named(rounded), CONDITIONS[:2])
    assert all(map(grown.finished, grown.conditions))


def nothing() -> dict[str, Tensor]:
    return {"boxes": torch.zeros(0, 4), "scores": torch.zeros(0), "labels": torch.zeros(0, dtype=torch.int64)}


def test_a_detector_that_finds_nothing_goes_on(tmp_path: Path) -> None:
    for conditions in (CONDITIONS[:1], CONDITIONS[:2]):
        run(tmp_path, from_detector(lambda images: [nothing() for _ in images], name="none", device="cpu"), conditions)
    with pytest.raises(InputError, match="none gives another answer"):
        run(tmp_path, from_detector(colour_detector(), name="none", device="cpu"), CONDITIONS[:2])


def test_two_detectors_are_compared_on_the_same_images(measured: Run, tmp_path: Path) -> None:
    other = run(tmp_path, from_detector(shifted, name="shifted", device="cpu"))
    comparison = blemish.compare(measured, other, replicates=60)
    clean = comparison.find("ap", "clean")
    assert clean.difference.high < 0
    assert clean.p_value < 0.05
    page = blemish.write_report([measured, other], tmp_path / "page.html", replicates=20).read_text()
    assert "AP by corruption and severity" in page
    assert "Worst-hit images" not in page
    task = shown_protocol(measured, other)["Task"]
    assert [row.name for row in task] == ["name", "columns", "settings · truth", "settings · categories"]
    assert task[2].values == 2 * [shapes_truth(COUNT).digest]


def shown_protocol(*runs: Run) -> dict[str, list[ProtocolRow]]:
    return protocol_rows(read_all(runs, replicates=5))


def test_runs_with_other_boxes_are_told_apart(measured: Run, tmp_path: Path) -> None:
    own = shapes_truth(COUNT)
    fewer = {name: Boxes(e.boxes[1:], e.labels[1:], e.areas[1:], e.crowd[1:]) for name, e in own.images.items()}
    truth = BoxTruth(own.categories, fewer)
    other = evaluate(
        colour_detector(), shapes_source(COUNT), benchmark(CONDITIONS), out=tmp_path, task=Detection(truth)
    )
    with pytest.raises(InputError, match=rf'task\.settings\.truth is "{own.digest}" and "{truth.digest}"'):
        blemish.compare(measured, other)
    assert [row.name for row in shown_protocol(measured, other)["Task"] if row.differs] == ["settings · truth"]
    assert not any(row.name == "classes" for row in shown_protocol(measured)["Images"])


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    def detector(entry: Any) -> AnsweringModel:
        return from_detector(lambda images: [entry for _ in images], name="odd", device="cpu")

    one = {"boxes": torch.tensor([[1.0, 1, 5, 5]]), "scores": torch.tensor([0.5]), "labels": torch.tensor([1])}
    for entry, message in (
        (None, "no boxes, scores and labels"),
        ({**one, "labels": torch.tensor([9])}, "label 9; expected the number of a category, 1, 2, 3"),
        ({**one, "labels": torch.tensor([1.5])}, r"label 1\.5; expected whole numbers"),
        ({**one, "labels": ["red"]}, "boxes, scores and labels that are no numbers"),
        ({**one, "boxes": torch.ones(4, 2), "scores": torch.ones(2), "labels": torch.ones(2)}, r"of shape \(4, 2\), "),
        ({**one, "boxes": torch.tensor([1.0, 1, 5, 5])}, r"of shape \(4,\), \(1,\), \(1,\); expected \(n, 4\)"),
        ({**one, "scores": torch.tensor([0.5, 0.5])}, r"of shape \(1, 4\), \(2,\), \(1,\)"),
        ({**one, "boxes": torch.tensor([[1.0, 1, float("nan"), 5]])}, "not finite"),
        ({**one, "boxes": torch.tensor([[30.0, 1, 9, 5]])}, r"box \[30.0, 1.0, 9.0, 5.0\] ends before it begins"),
    ):
        with pytest.raises(InputError, match=message):
            run(tmp_path / "a", detector(entry), CONDITIONS[:1])
    with pytest.raises(InputError, match=r"0 answers to .* expected a list with one for each"):
        run(tmp_path / "a", from_detector(lambda _: [], name="none", device="cpu"), CONDITIONS[:1])
    with pytest.raises(InputError, match="expected a detector"):
        run(tmp_path / "a", blemish.open_model("demo:plain"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not move with them"):
        evaluate(
            colour_detector(), shapes_source(COUNT), "imagenet-c", out=tmp_path, task=Detection(shapes_truth(COUNT))
        )  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"no annotations of shapes008\.png"):
        evaluate(
            colour_detector(), shapes_source(COUNT + 1), "coco-c", out=tmp_path, task=Detection(shapes_truth(COUNT))
        )  # type: ignore[arg-type]


@pytest.mark.parametrize(("right", "told"), [(0.5, True), (1.5, False)])
def test_boxes_in_parts_of_the_sides_are_told_of(right: float, told: bool, tmp_path: Path) -> None:
    box = torch.tensor([[0.1, 0.1, right, 1.0]])
    entry = {"boxes": box, "scores": torch.tensor([0.5]), "labels": torch.tensor([1])}
    detector = from_detector(lambda images: [entry for _ in images], name="parts", device="cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(tmp_path, detector, CONDITIONS[:1])
    assert any("expected pixels of the image" in str(warning.message) for warning in caught) == told


def one_box(label: int) -> dict[str, Tensor]:
    return {"boxes": torch.tensor([[1.0, 1, 9, 9]]), "scores": torch.ones(1), "labels": torch.tensor([label])}


def test_labels_are_matched_by_name(tmp_path: Path) -> None:
    """A model with other numbers for the same names, one that the truth has not, and one that it lacks."""
    renamed = from_detector(
        lambda images: [{**entry, "labels": entry["labels"] + 3} for entry in colour_detector()(images)],
        name="renamed",
        classes=[None, "cat", "dog", "bird", "red", "green", "azure"],
        device="cpu",
    )
    with pytest.warns(Notice, match="does not know blue: their AP is 0"):
        measured = run(tmp_path, renamed, CONDITIONS[:1])
    assert blemish.score(measured, replicates=20).find("ap", "clean").estimate.value == pytest.approx(200 / 3)
    beyond = from_detector(lambda i: [one_box(3) for _ in i], classes=["red", "green", "blue"], device="cpu")
    with pytest.raises(InputError, match="label 3; expected a place among its 3 classes"):
        run(tmp_path / "b", beyond, CONDITIONS[:1])
    with pytest.raises(InputError, match="names none of the 3 categories"):
        run(tmp_path, from_detector(lambda _: [], classes=["cat"], device="cpu"), CONDITIONS[:1])


def test_names_of_voc_are_those_of_coco() -> None:
    """RT-DETR and D-FINE call COCO's categories so; a model that knows both names means two things."""
    truth = BoxTruth({63: "couch", 5: "airplane", 1: "person", 9: "tvmonitor"}, {})

    def numbers(*classes: str | None) -> dict[int, int]:
        return Detection(truth)._numbers(from_detector(lambda _: [], classes=classes, device="cpu"))

    assert numbers("person", "sofa", "aeroplane", "tv", "cat") == {0: 1, 1: 63, 2: 5, 3: 9}
    assert numbers("sofa", None, "couch", "airplane") == {2: 63, 3: 5}


def coco_folder(folder: Path, count: int = 4, **changed: Any) -> Path:
    """The shapes as COCO has them: pictures, and annotations beside them."""
    source, truth = shapes_source(count), shapes_truth(count)
    for number, name in enumerate(source.names):
        source.read(number).save(folder / name)
    content: dict[str, Any] = {
        "images": [{"id": 10 - i, "file_name": name} for i, name in enumerate(source.names)],
        "categories": [{"id": number, "name": name} for number, name in truth.categories.items()],
        "annotations": [
            {"id": k, "image_id": 10 - i, "category_id": int(label), "bbox": box.tolist(), "area": float(area)}
            for i, name in enumerate(source.names)
            for k, (label, box, area) in enumerate(
                zip(truth.images[name].labels, truth.images[name].boxes, truth.images[name].areas, strict=True)
            )
        ],
    }
    path = folder / "instances.json"
    path.write_text(json.dumps(content | changed))
    return path


def test_coco_annotations_are_read(tmp_path: Path) -> None:
    source, truth = coco_images(tmp_path, coco_folder(tmp_path))
    assert list(source.names) == [f"shapes{i:03}.png" for i in (3, 2, 1, 0)]  # by number
    assert truth.digest == shapes_truth(4).digest
    task = Detection(truth)
    measured = evaluate(colour_detector(), source, benchmark(CONDITIONS[:1]), out=tmp_path / "o", task=task)  # type: ignore[arg-type]
    assert blemish.score(measured, replicates=20).find("ap", "clean").estimate.value == pytest.approx(100)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"categories": []}, "no list of categories"),
        ({"annotations": [{"id": 1, "image_id": 99, "category_id": 1, "bbox": [0, 0, 1, 1]}]}, "is of image 99"),
        ({"annotations": [{"id": 1, "image_id": 10, "category_id": 5, "bbox": [0, 0, 1, 1]}]}, "is of category 5"),
        ({"annotations": [{"id": 1, "image_id": 10, "category_id": 1, "bbox": [0, 0, 1]}]}, "expected four numbers"),
        ({"images": [{"id": 10, "file_name": "../x.png"}]}, "expected a picture in the folder"),
        (
            {
                "images": [{"id": 10, "file_name": "gone.png"}],
                "annotations": [{"id": 1, "image_id": 10, "category_id": 1, "bbox": [0, 0, 1, 1]}],
            },
            r"1 of 1 images .* gone\.png",
        ),
    ],
)
def test_broken_annotations_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        coco_images(tmp_path, coco_folder(tmp_path, **changed))


def test_the_command_measures_shapes(tmp_path: Path) -> None:
    from command_line import invoke

    words = ("run", "coco-c", "--task", "detection", "-m", "demo:colours", "-d", "demo:shapes", "-n", "4")
    code, printed, error = invoke(*words, "--only", "contrast@5", "-o", str(tmp_path / "r"), columns=100)
    assert code == 0, error
    assert "mean AP over 1 of 75 conditions" in printed
    for extra, message in (
        (("--mean", "0.5"), "--mean is for classifiers"),
        (("--until", "1"), "--until is for classifiers"),
        (("--class-names", "imagenet"), "class names for demo:colours, which brings its own"),
        (("--mapping", "imagenet"), "--mapping is for classifiers"),
        (("--task", "poetry"), "unknown task 'poetry'"),
        (("-d", str(tmp_path)), "without --annotations"),
        (("-m", "resnet50"), "unknown detector 'resnet50'"),
    ):
        code, _, error = invoke(*words, "-o", str(tmp_path / "r"), *extra, columns=200)
        assert code == 2
        assert message in error


def test_detectors_by_name() -> None:
    assert open_detector("demo:colours", name="mine").name == "mine"
    with pytest.raises(InputError, match=r"expected a torchvision: or hf: detector"):
        open_detector("demo:colours", weights=Path("x.pt"))
    with pytest.raises(InputError, match="expected python:package"):
        open_detector("python:x")


def predicted_lines(measured: Run) -> list[dict[str, Any]]:
    """The detections of a run as rows of a file of predictions."""
    lines = []
    for condition in measured.conditions:
        table = measured.answers(condition).table()
        for image, boxes, scores, labels in zip(
            *(table[k] for k in ("image", "boxes", "scores", "labels")), strict=True
        ):
            sides = np.reshape(boxes, (-1, 4))
            corners = np.concatenate([sides[:, :2], sides[:, :2] + sides[:, 2:]], axis=1).tolist()
            lines.append({"image": image, "condition": str(condition), "boxes": corners})
            lines[-1] |= {"scores": scores, "labels": labels}
    return lines


def test_shapes_have_no_classes() -> None:
    with pytest.raises(InputError, match=r"without a class for each image; expected a task \(--task detection\)"):
        blemish.open_source("demo:shapes")


def test_predicted_boxes_are_scored_as_measured_ones(measured: Run, tmp_path: Path) -> None:
    annotations = coco_folder(tmp_path, COUNT)
    path = tmp_path / "boxes.jsonl"
    lines = predicted_lines(measured)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (predicted,) = blemish.read_predictions(path, annotations=annotations)
    one, other = (blemish.score(run, replicates=40) for run in (measured, predicted))
    assert one.rows == other.rows
    for change, message in (
        (lines[1:], "no prediction under clean for 1 of 8 images"),
        ([line for line in lines if line["image"] != "shapes000.png"], "no predictions for 1 of 8 annotated images"),
        ([{**lines[0], "scores": []}, *lines[1:]], "expected as many of each"),
        ([{**lines[0], "labels": [7 for _ in lines[0]["labels"]]}, *lines[1:]], "row 1: label 7; expected the number"),
        ([{**lines[0], "boxes": [[90, 9, 5, 20] for _ in lines[0]["boxes"]]}, *lines[1:]], "row 1: box .* have width"),
        ([{**line, "boxes": [[0.1, 0.1, 0.2, 0.2]] * len(line["labels"])} for line in lines], "not parts of its sides"),
        ([{"image": line["image"], "condition": line["condition"], "correct": 1} for line in lines], "no column boxes"),
        ([{**lines[0], "image": "x.png"}, *lines], r"no annotations of x\.png"),
    ):
        path.write_text("".join(json.dumps(line) + "\n" for line in change))
        with pytest.raises(InputError, match=message):
            blemish.read_predictions(path, annotations=annotations)
    with pytest.raises(InputError, match="boxes without the truth"):
        blemish.read_predictions(path)


def test_workers_measure_the_same(measured: Run, tmp_path: Path) -> None:
    from blemish.evaluation.executors.processes import Processes

    model = open_detector("demo:colours", device="cpu")
    shared = run(tmp_path, model, conditions=CONDITIONS[:1], executor=Processes(2))
    for path in sorted(shared.folder.glob("records/*.parquet")):
        assert path.read_bytes() == (measured.folder / "records" / path.name).read_bytes()


def test_a_notice_says_where_boxes_should_have_moved(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(Notice, match="noc:rotation: moves pixels, and the truth of detection does not move"):
        run(tmp_path, conditions=["noc:rotation@3"])
    recwarn.clear()
    run(tmp_path / "c", conditions=["elastic_transform@1"])
    assert not recwarn.list


def test_pictures_of_another_size_than_was_annotated_are_refused(tmp_path: Path) -> None:
    """Boxes would lie elsewhere in resized copies."""
    drawn = shapes_source(COUNT)
    stated: list[dict[str, Any]] = [
        {"id": 10 - i, "file_name": name, "height": drawn.read(i).height, "width": drawn.read(i).width}
        for i, name in enumerate(drawn.names)
    ]
    source, truth = coco_images(tmp_path, coco_folder(tmp_path, COUNT, images=stated))
    conditions = [blemish.parse_condition("fog@1")]
    mine = blemish.Benchmark("mine", "", "ap", tuple(conditions))
    evaluate(colour_detector(), source, mine, out=tmp_path / "right", task=Detection(truth))
    stated[0]["height"] *= 2
    source, truth = coco_images(tmp_path, coco_folder(tmp_path, COUNT, images=stated))
    with pytest.raises(InputError, match=r"annotations are for .*; expected the pictures that were annotated"):
        evaluate(colour_detector(), source, mine, out=tmp_path / "wrong", task=Detection(truth))
    with pytest.raises(InputError, match="several images with the same id"):
        coco_truth(coco_folder(tmp_path, COUNT, images=[stated[0], *stated]))


def test_a_report_says_which_corruptions_move_pixels_under_boxes_that_stay(tmp_path: Path) -> None:
    moving = run(tmp_path / "a", conditions=["elastic_transform@1", "glass_blur@1", "contrast@4"])
    said = "stays where it is, though pixels move a little under glass_blur; by a map under elastic_transform."
    assert f"The truth {said}" in blemish.score(moving, replicates=5).remarks
    page = blemish.write_report([moving], tmp_path / "page.html", replicates=5).read_text()
    assert said in page.replace("<wbr>", "")
    still = run(tmp_path / "b", conditions=["contrast@4"])
    assert not any("truth" in remark for remark in blemish.score(still, replicates=5).remarks)
