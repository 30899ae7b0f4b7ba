"""Segmentation from end to end, on drawn shapes: records, mIoU, CD and rCD, refusals."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import blemish
from blemish.core.errors import InputError
from blemish.core.resampling import Bootstrap
from blemish.data.maps import map_images
from blemish.data.shapes import class_map, shapes_maps, shapes_source
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.metrics.overlaps import areas_of, mean_iou, pixel_accuracy
from blemish.models.answering import AnsweringModel
from blemish.models.colour_detector import colour_segmenter
from blemish.models.segmenters import from_segmenter, open_segmenter
from blemish.tasks.segmentation import Segmentation
from foreign import foreign

COUNT = 6
CONDITIONS = ["gaussian_noise@1", "gaussian_noise@3", "contrast@2"]


def run(folder: Path, model: AnsweringModel | None = None, conditions: list[str] = CONDITIONS, **more: Any) -> Run:
    read = tuple(blemish.parse_condition(text) for text in conditions)
    benchmark = blemish.Benchmark("shapes-c", "", "miou", read, protocol=blemish.Protocol(preset="imagenet"))
    task = Segmentation(shapes_maps(COUNT))
    return evaluate(model or colour_segmenter(), shapes_source(COUNT), benchmark, out=folder, task=task, **more)  # type: ignore[arg-type]


def blurry(images: Tensor) -> Tensor:
    """Another model: class scores of half the size, red told from the rest only."""
    red = (images[:, 0].float() - images[:, 2].float())[:, ::2, ::2] > 60
    never = torch.zeros_like(red)
    return torch.stack([~red, red, never, never], dim=1).float()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("segmentation")
    return run(folder), run(folder, from_segmenter(blurry, name="blurry", device="cpu"))


def by_hand(maps: list[tuple[NDArray[Any], NDArray[Any]]], classes: int = 4) -> float:
    """mIoU from one confusion matrix of all pixels, as its definition has it."""
    matrix = np.zeros((classes, classes))
    for true, said in maps:
        for t in range(classes):
            for s in range(classes):
                matrix[t, s] += np.count_nonzero((true == t) & (said == s))
    shares = [
        matrix[k, k] / union for k in range(classes) if (union := matrix[k].sum() + matrix[:, k].sum() - matrix[k, k])
    ]
    return float(np.mean(shares))


def said_by_blurry() -> list[tuple[NDArray[Any], NDArray[Any]]]:
    source, pairs = shapes_source(COUNT), []
    for number in range(COUNT):
        pixels = torch.from_numpy(np.array(source.read(number))).permute(2, 0, 1)[None]
        scores = torch.nn.functional.interpolate(blurry(pixels), size=pixels.shape[-2:], mode="bilinear")
        pairs.append((class_map(number), scores.argmax(1)[0].numpy()))
    return pairs


def test_miou_is_that_of_one_confusion_matrix_also_of_resamples(runs: tuple[Run, Run]) -> None:
    pairs = said_by_blurry()
    answers = runs[1].answers(runs[1].conditions[0]).in_order()
    areas = areas_of(answers)
    assert float(mean_iou(areas.mean(0))) == pytest.approx(by_hand(pairs))
    assert float(pixel_accuracy(areas.mean(0))) == pytest.approx(
        np.concatenate([(true == said).ravel() for true, said in pairs]).mean()
    )
    draws = next(Bootstrap(COUNT, 4).blocks())
    resampled = mean_iou(Bootstrap(COUNT, 4).means({"areas": areas})["areas"])
    for counts, value in zip(draws, resampled, strict=True):
        repeated = [pair for pair, times in zip(pairs, counts, strict=True) for _ in range(int(times))]
        assert value == pytest.approx(by_hand(repeated))


def test_a_model_of_pixels_that_changed_is_noticed_when_its_run_goes_on(tmp_path: Path) -> None:
    def named(function: Any) -> AnsweringModel:
        return from_segmenter(function, name="mine", device="cpu")

    def off(images: Tensor, rows: int) -> Tensor:
        """All but a few rows of pixels as before."""
        classes = colour_segmenter()(images).clone()
        classes[:, :rows] = 3
        return classes

    height = class_map(0).shape[0]
    run(tmp_path, named(colour_segmenter()), CONDITIONS[:1])
    others = (blurry, lambda images: off(images, 1 + height // 20), lambda images: 0 * colour_segmenter()(images))
    for conditions in (CONDITIONS[:1], CONDITIONS[:2]):
        for other in others:
            with pytest.raises(InputError, match=r"mine gives another answer to shapes00\d\.png"):
                run(tmp_path, named(other), conditions)

    def rounded(images: Tensor) -> Tensor:
        classes = colour_segmenter()(images).clone()
        classes[:, 0, :5] = 3
        return classes

    grown = run(tmp_path, named(rounded), CONDITIONS[:2])
    assert all(map(grown.finished, grown.conditions))


def test_colours_are_told_on_clean_images_and_lost_in_noise(runs: tuple[Run, Run]) -> None:
    scores = blemish.score(runs[0], replicates=50)
    values = [scores.find("miou", text).estimate.value for text in ("clean", *CONDITIONS[:2])]
    assert values[0] == pytest.approx(100)
    assert values[0] > values[1] > values[2] > 0
    assert scores.headline is not None
    assert scores.headline.name == "miou"


def test_cd_and_rcd_are_ratios_to_a_chosen_model(runs: tuple[Run, Run]) -> None:
    """The formulae of Kamann and Rother, as they are known: sums over severities of D = 1 − mIoU, and of its rise."""
    first, reference = (blemish.score(one, replicates=20) for one in runs)
    scores = blemish.score(runs[0], baseline=runs[1], replicates=20)

    def lost(which: blemish.Scores, condition: str) -> float:
        return 1 - which.find("miou", condition).estimate.value / 100

    noise = CONDITIONS[:2]
    cd = sum(lost(first, c) for c in noise) / sum(lost(reference, c) for c in noise)
    assert scores.find("cd", "gaussian_noise").estimate.value == pytest.approx(100 * cd)
    rises = [sum(lost(which, c) - lost(which, "clean") for c in noise) for which in (first, reference)]
    assert scores.find("rcd", "gaussian_noise").estimate.value == pytest.approx(100 * rises[0] / rises[1])


def test_two_models_are_compared_and_reported(runs: tuple[Run, Run], tmp_path: Path) -> None:
    comparison = blemish.compare(*runs, replicates=50)
    assert comparison.find("miou", "clean").difference.high < 0
    page = blemish.write_report(list(runs), tmp_path / "page.html", replicates=20).read_text()
    assert "mIoU by corruption and severity" in page
    assert "MIoU" not in page


def test_what_cannot_be_scored_is_refused(tmp_path: Path) -> None:
    for answer, message in (
        (lambda _: None, "NoneType for images of shape"),
        (lambda images: images[:, 0, ::2].long(), "expected whole numbers, one for each pixel"),
        (lambda images: images[:, 0].float(), "expected whole numbers, one for each pixel"),
        (lambda images: images.float() * torch.nan, "scores that are not finite"),
        (lambda images: images[:, 0].long() - 999, "a class below 0"),
    ):
        with pytest.raises(InputError, match=message):
            run(tmp_path, from_segmenter(answer, name="odd", device="cpu"), CONDITIONS[:1])
    with pytest.raises(InputError, match="unknown model of pixels 'x'"):
        open_segmenter("x")


def test_maps_with_numbers_that_a_model_cannot_give_are_told_of(tmp_path: Path) -> None:
    for classes, told in ((3, True), (4, False)):
        model = from_segmenter(lambda x, n=classes: torch.zeros(len(x), n, 4, 4), name="few", device="cpu")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(tmp_path / str(classes), model, CONDITIONS[:1])
        assert any("scores of classes 0 … 2, and maps that hold class 3" in str(w.message) for w in caught) == told


def test_predicted_pixels_are_scored_as_measured_ones(runs: tuple[Run, Run], tmp_path: Path) -> None:
    path = tmp_path / "pixels.jsonl"
    lines: list[dict[str, Any]] = []
    for one in runs:
        for condition in one.conditions:
            answers = one.answers(condition)
            columns = {name: answers.lists(name) for name in ("truth", "prediction", "pixels")}
            ends = np.cumsum(columns["pixels"].counts)[:-1]
            parts = {name: [each.tolist() for each in np.split(own.values, ends)] for name, own in columns.items()}
            for row, image in enumerate(answers.images):
                own = {name: values[row] for name, values in parts.items()}
                lines.append({"model": one.name, "image": str(image), "condition": str(condition), **own})
    lines[0] = {**lines[0], "truth": [*lines[0]["truth"], 255], "prediction": [*lines[0]["prediction"], 1]}
    lines[0]["pixels"] = [*lines[0]["pixels"], 40]  # of class 255: left out

    def written(change: list[dict[str, Any]]) -> Path:
        path.write_text("".join(json.dumps(line) + "\n" for line in change))
        return path

    made = blemish.read_predictions(written(lines))
    for one, other in zip(runs, made, strict=True):
        assert blemish.score(one, replicates=20).rows == blemish.score(other, replicates=20).rows
    cd = [blemish.score(pair[0], baseline=pair[1], replicates=20).find("mcd").estimate for pair in (runs, made)]
    assert cd[0] == cd[1]
    last = lines[-1]
    for change, message in (
        ({"pixels": [number + 1 for number in last["pixels"]]}, "row 48: other numbers of true pixels than in row "),
        ({"pixels": [0.5 for _ in last["pixels"]]}, "row 48: 0.5 in pixels; expected whole numbers"),
        ({"truth": [-1 for _ in last["pixels"]]}, "row 48: -1 in truth; expected whole numbers"),
        ({"prediction": []}, "expected as many of each"),
        ({"truth": "0"}, "truth"),
    ):
        with pytest.raises(InputError, match=message):
            blemish.read_predictions(written([*lines[:-1], {**last, **change}]))
    void = [{**line, "truth": [255] * len(line["truth"])} for line in lines]
    with pytest.raises(InputError, match="no pixels of any class but 255"):
        blemish.read_predictions(written(void))


def test_maps_beside_pictures_as_cityscapes_names_them(tmp_path: Path) -> None:
    source = shapes_source(COUNT)
    for folder in ("leftImg8bit/val/a", "gtFine/val/a"):
        (tmp_path / folder).mkdir(parents=True)
    for number in range(3):
        source.read(number).save(tmp_path / f"leftImg8bit/val/a/a_{number}_leftImg8bit.png")
        true = class_map(number).copy()
        true[:5] = 255  # to be left out
        Image.fromarray(true).save(tmp_path / f"gtFine/val/a/a_{number}_gtFine_labelTrainIds.png")
        Image.fromarray(true).save(tmp_path / f"gtFine/val/a/a_{number}_gtFine_labelIds.png")
    found, truth = map_images(tmp_path / "leftImg8bit/val", tmp_path / "gtFine/val")
    assert list(found.names) == [f"a/a_{number}_leftImg8bit.png" for number in range(3)]
    assert truth.classes == (0, 1, 2, 3)
    columns = Segmentation(truth).answers(
        colour_segmenter(), torch.from_numpy(np.array(found.read(0))).permute(2, 0, 1)[None], found.names[:1]
    )
    assert columns["pixels"].values.sum() == class_map(0)[5:].size  # type: ignore[union-attr]
    (tmp_path / "original").mkdir()
    Image.fromarray(true).save(tmp_path / "original/a_0_gtFine_labelIds.png")
    with pytest.raises(InputError, match=r"no maps of classes in it; .* those of training numbers"):
        map_images(tmp_path / "leftImg8bit/val", tmp_path / "original")
    (tmp_path / "gtFine/val/a/b_gtFine_labelTrainIds.png").write_bytes(b"x")
    with pytest.raises(InputError, match="no picture for 1 of 4 maps: a/b_gtFine"):
        map_images(tmp_path / "leftImg8bit/val", tmp_path / "gtFine/val")


@pytest.mark.slow
def test_models_of_pixels_of_others(tmp_path: Path) -> None:
    models, transformers = foreign("torchvision.models"), foreign("transformers")
    torch.manual_seed(0)
    network = models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, aux_loss=True)
    torch.save(network.state_dict(), tmp_path / "net.pt")
    model = open_segmenter("torchvision:deeplabv3_mobilenet_v3_large", weights=tmp_path / "net.pt", device="cpu")
    pixels = torch.randint(0, 256, (2, 3, 64, 80), dtype=torch.uint8)
    assert model(pixels).shape == (2, 21, 64, 80)
    config = transformers.SegformerConfig(
        num_labels=5, depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16], decoder_hidden_size=8
    )
    transformers.SegformerForSemanticSegmentation(config).save_pretrained(tmp_path / "s")
    transformers.SegformerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(tmp_path / "s")
    assert open_segmenter(f"hf:{tmp_path / 's'}", device="cpu")(pixels).shape[:2] == (2, 5)
