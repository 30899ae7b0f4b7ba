"""Several labels for an image, from end to end on squares that are lit or not: records, balanced errors, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import blemish
from blemish.core.errors import InputError
from blemish.data.label_sets import LabelTruth, labelled_arrays
from blemish.data.shapes import shapes_maps
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.evaluation.task import fitting_benchmark
from blemish.metrics.baselines import baseline_from_run
from blemish.metrics.formulas import balanced_accuracy
from blemish.metrics.label_hits import label_hits
from blemish.models.python_function import from_python
from blemish.tasks.labellers import from_labeller, open_labeller
from blemish.tasks.segmentation import Segmentation
from blemish.tasks.several_labels import SeveralLabels
from command_line import invoke

COUNT, LABELS, SIDE = 30, 4, 32
CONDITIONS = [f"med:{name}@{severity}" for name in ("contrast_down", "brightness_down") for severity in range(1, 6)]
STRONG = "med:contrast_down@5"


def labels() -> NDArray[np.uint8]:
    """The last label is rare."""
    rng = np.random.default_rng(5)
    return (rng.random((COUNT, LABELS)) < [0.5, 0.4, 0.3, 0.1]).astype(np.uint8)


def lit() -> NDArray[np.uint8]:
    """Gray images: each label is a quarter of the image, which is brighter where the image has it."""
    rng = np.random.default_rng(7)
    quarters = labels().reshape(COUNT, 2, 2) * 70.0 + 90 + rng.normal(0, 12, (COUNT, 2, 2))
    return np.kron(quarters, np.ones((SIDE // 2, SIDE // 2))).clip(0, 255).astype(np.uint8)


def brightness(images: Tensor) -> Tensor:
    """A logit for each quarter."""
    means = torch.nn.functional.adaptive_avg_pool2d(images.float(), 2).mean(1).flatten(1)
    return (means - 125) / 10


def labeller(function: Any = brightness, name: str = "quarters") -> Any:
    return from_labeller(from_python(function, name=name, device="cpu"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("several") / "quarters.npz"
    np.savez(file, test_images=lit(), test_labels=labels(), train_images=lit()[:2], train_labels=labels()[:2])
    return file


def run(path: Path, folder: Path, model: Any = None, conditions: list[str] = CONDITIONS) -> Run:
    source, truth = labelled_arrays(path)
    read = tuple(blemish.parse_condition(text) for text in conditions)
    protocol = blemish.Protocol(preset="chestmnist")
    benchmark = blemish.Benchmark("mine", "", "mbe", read, protocol=protocol, baseline="alexnet/chestmnist")
    return evaluate(model or labeller(), source, benchmark, out=folder, task=SeveralLabels(truth))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs(path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return run(path, folder), run(path, folder, labeller(lambda images: brightness(images) - 2, "strict"))


def by_hand(said: NDArray[Any], true: NDArray[Any]) -> float:
    """The mean over labels of a binary balanced accuracy, as MedMNIST-C has it."""
    each = [(said[true[:, k] == 1, k].mean() + (1 - said[true[:, k] == 0, k]).mean()) / 2 for k in range(true.shape[1])]
    return float(np.mean(each))


def test_the_balanced_error_is_the_mean_over_labels(runs: tuple[Run, Run], path: Path) -> None:
    """All of it again from the pixels: corrupted, asked, told by one half, and averaged label by label."""
    source, _ = labelled_arrays(path)
    scores = blemish.score(runs[0], replicates=50)
    images = torch.from_numpy(lit())[:, None]
    for text in ("clean", *CONDITIONS):
        name, _, level = text.partition("@")
        pixels = images
        if level:
            pixels = blemish.corrupt(images, name, severity=float(level), preset="chestmnist", ids=source.ids)
        said = (brightness(pixels).sigmoid() > 0.5).numpy()
        assert scores.find("balanced_error", text).estimate.value == pytest.approx(100 * (1 - by_hand(said, labels())))
        assert scores.find("error", text).estimate.value == pytest.approx(100 * (said != labels()).mean())
    assert scores.find("balanced_error", STRONG).estimate.value > 5


def test_be_is_divided_by_alexnets(runs: tuple[Run, Run]) -> None:
    """AlexNet's mean balanced error under brightness_down is .29711530406534037 (published by the authors)."""
    scores = blemish.score(runs[0], replicates=50)
    mean = np.mean([scores.find("balanced_error", text).estimate.value for text in CONDITIONS[5:]])
    assert scores.find("be", "med:brightness_down").estimate.value == pytest.approx(mean / 0.29711530406534037)
    assert scores.headline is not None
    assert scores.headline.name == "mbe"
    assert any("of 14 classes; this data has 4" in remark for remark in scores.remarks)


def test_labels_have_no_places_that_pixels_could_leave(path: Path, tmp_path: Path) -> None:
    scores = blemish.score(run(path, tmp_path, conditions=["sensor:rolling_shutter@3"]), replicates=20)
    assert not any("pixels move" in remark for remark in scores.remarks)


def test_resamples_are_those_of_images(runs: tuple[Run, Run]) -> None:
    answers = runs[0].answers(runs[0].conditions[5]).in_order()
    true = answers.lists("truth").values.reshape(COUNT, LABELS)
    said = answers.lists("probability").values.reshape(COUNT, LABELS) > 0.5
    rows = np.random.default_rng(1).integers(0, COUNT, 200)
    assert float(balanced_accuracy(label_hits(said, true)[rows].mean(0))) == pytest.approx(
        by_hand(said[rows], true[rows])
    )


def test_an_error_of_zero_is_bounded_by_the_rarest_label(path: Path, tmp_path: Path) -> None:
    truth = torch.from_numpy(labels()).float()

    def knowing(images: Tensor) -> Tensor:
        own = torch.from_numpy(lit()).float().flatten(1)
        return truth[torch.cdist(images[:, 0].flatten(1).float(), own).argmin(1)] * 8 - 4

    found = blemish.score(run(path, tmp_path, labeller(knowing, "knowing"), CONDITIONS[:1]), replicates=20)
    estimate = found.find("balanced_error", "clean").estimate
    rarest = min(int(labels().sum(0).min()), int((1 - labels()).sum(0).min()))
    assert estimate.value == 0
    # Clopper and Pearson: (1 − p) ** n = .025
    assert estimate.high == pytest.approx(100 * (1 - 0.025 ** (1 / (2 * rarest))))


def test_two_models_are_compared_and_one_divides_the_other(runs: tuple[Run, Run], tmp_path: Path) -> None:
    comparison = blemish.compare(*runs, replicates=50)
    assert comparison.consistency is None  # an image is neither right nor wrong
    row = comparison.find("error", "clean")
    assert row.test == "swap"
    baseline = baseline_from_run(runs[1])
    assert baseline.balanced
    scores = blemish.score(runs[0], baseline=runs[1], replicates=20)
    rows = [
        sum(blemish.score(one, replicates=20).find("balanced_error", text).estimate.value for text in CONDITIONS[:5])
        for one in runs
    ]
    assert scores.find("be", "med:contrast_down").estimate.value == pytest.approx(100 * rows[0] / rows[1])
    page = blemish.write_report(list(runs), tmp_path / "page.html", replicates=20).read_text()
    assert "multilabel" in page
    assert "any of 4 labels: the error is the share of them that is told wrongly" in page


def test_a_model_that_changed_is_noticed(path: Path, tmp_path: Path) -> None:
    run(path, tmp_path, conditions=CONDITIONS[:1])
    with pytest.raises(InputError, match="gives another answer to"):
        run(path, tmp_path, labeller(lambda images: brightness(images) + 0.2))
    assert run(path, tmp_path, labeller(lambda images: brightness(images) + 1e-4)).finished(
        blemish.parse_condition(STRONG)
    )


def test_a_whole_image_may_be_cut_and_resized(path: Path) -> None:
    benchmark = blemish.load_benchmark("imagenet-c")
    task = SeveralLabels(labelled_arrays(path)[1])
    fitted = fitting_benchmark(benchmark, task)
    assert (fitted.metric, fitted.baseline, fitted.protocol) == ("balanced_error", None, benchmark.protocol)
    with pytest.raises(InputError, match="brings images to another size"):
        fitting_benchmark(benchmark, Segmentation(shapes_maps(2)))


def test_what_cannot_be_scored_is_refused(path: Path, tmp_path: Path) -> None:
    for answer, message in (
        (lambda images: brightness(images)[:, :3], r"\(30, 3\) for 30 images of 4 labels"),
        (lambda images: brightness(images) * torch.nan, "infinite or not a number"),
        (lambda images: brightness(images)[0], "one row of class scores per image"),
    ):
        with pytest.raises(InputError, match=message):
            run(path, tmp_path, labeller(answer, "odd"))
    for rows, message in (
        (labels()[:, :1], r"labels of shape \(30, 1\) for 30 images; expected a row of several"),
        (labels()[:9], r"labels of shape \(9, 4\) for 30 images"),
        (labels() * 2, "labels besides 0 and 1"),
    ):
        np.save(tmp_path / "rows.npy", rows)
        with pytest.raises(InputError, match=message):
            labelled_arrays(path, tmp_path / "rows.npy")
    with pytest.raises(InputError, match=r"no labels of 7; expected them for every image"):
        SeveralLabels(LabelTruth(("1",), labels()[:1] > 0)).check(labeller(), ["1", "7"])
    with pytest.raises(InputError, match="expected a model of labels"):
        SeveralLabels(labelled_arrays(path)[1]).check(brightness, ["1"])


def test_the_command_on_chestmnist(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the model's settings, whose outputs are probabilities, on part of the published benchmark."""
    code = "import torch\ndef make():\n    def f(images):\n        means = torch.nn.functional.adaptive_avg_pool2d"
    code += "(images.float(), 2).mean(1).flatten(1)\n        return ((means - 125) / 10).sigmoid()\n    return f\n"
    (tmp_path / "quarters_net.py").write_text(code)
    (tmp_path / "net.toml").write_text('model = "python:quarters_net:make"\noutputs_are = "probabilities"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = ["run", "medmnist-c/chestmnist", "-m", "net.toml", "-d", str(path), "-o", "out", "--allow-code"]
    code, _, told = invoke(*known)
    assert code == 2
    assert "--task multilabel" in " ".join(told.split())
    code, table, told = invoke(*known, "--task", "multilabel", "--only", "med:brightness_down@1")
    assert code == 0, told
    assert "balanced error" in table
    with pytest.raises(InputError, match="expected none: a model of labels has one output"):
        open_labeller("net.toml", allow_code=True, outputs=("a",))
