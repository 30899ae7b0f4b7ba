"""Labels, chance, assumed inputs and parts of benchmarks as somebody meets them who types commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import Result

from blemish.data.classes import imagenet_wnids
from blemish.evaluation.runs import open_run
from command_line import command

WNIDS = [imagenet_wnids()[index] for index in (0, 217, 482, 701)]

MODELS = """
import torch

class Shade(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs
        self.norm = torch.nn.BatchNorm2d(3, affine=True)

    def forward(self, images):
        shade = (images.mean((1, 2, 3)) * 1000).round().long().clamp(0, 999)
        return torch.nn.functional.one_hot(shade, 1000).float()[:, : self.outputs] * 9 + self.norm(images).mean() * 0

class Order(Shade):
    "The four shades in order."
    def forward(self, images):
        shade = (images.mean((1, 2, 3)) * 1000).round().long().clamp(0, 999)
        place = torch.searchsorted(torch.tensor([100, 300, 600], device=shade.device), shade)
        return torch.nn.functional.one_hot(place, 4).float() * 9 + self.norm(images).mean() * 0

def imagenet():
    return Shade(1000)

def four():
    return Order(4)

def hundred():
    return Shade(100)

def poor():
    return Shade(4)
"""


def shaded(index: int) -> Image.Image:
    """A picture whose mean is so many thousandths of white."""
    total = round(index / 1000 * 255 * 192)
    pixels = np.full(192, total // 192, dtype=np.uint8)
    pixels[: total % 192] += 1
    return Image.fromarray(np.repeat(np.repeat(pixels.reshape(8, 8, 3), 4, 0), 4, 1))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four of ImageNet's classes in folders, and models that know them, or do not."""
    for wnid, index in zip(WNIDS, (0, 217, 482, 701), strict=True):
        for file in range(4):
            path = tmp_path / "val" / wnid / f"{file}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            shaded(index).save(path)
    (tmp_path / "shade_models.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(model: str, *options: object, out: str = "out", benchmark: str = "imagenet-c") -> Result:
    only = () if "--only" in options else ("--only", "jpeg_compression@1,contrast@1")
    given = (
        "-m",
        f"python:shade_models:{model}",
        "-d",
        "val",
        "-o",
        out,
        "--resize",
        0,
        "--crop",
        0,
        "--device",
        "cpu",
    )
    return command("run", benchmark, *given, *only, *options)


def test_imagenette_and_a_model_of_a_thousand_classes() -> None:
    result = run("imagenet")
    assert result.exit_code == 0, result.output
    assert "note: val: 4 class folders named by WordNet ids, and model imagenet has 1,000 outputs" in result.stderr
    assert open_run("out/imagenet").correct(open_run("out/imagenet").conditions[0]).all()
    mapped = run("imagenet", "--mapping", "imagenet")  # the same run, already there
    assert mapped.exit_code == 0, mapped.output
    assert "WordNet ids" not in mapped.stderr


def test_as_many_outputs_as_folders() -> None:
    result = run("four", "--mean", 0, "--std", 1)
    assert result.exit_code == 0, result.output
    assert "note:" not in result.stderr
    assert open_run("out/four").info.protocol.labels == "class folders in order"


def test_what_cannot_be_told_is_refused() -> None:
    result = run("hundred", "--mean", 0)
    assert result.exit_code == 2
    assert "4 class folders" in result.stderr
    assert "100 outputs" in result.stderr
    assert "--mapping" in result.stderr
    assert not Path("out").exists()


def test_what_is_assumed_of_the_input_is_said_once() -> None:
    result = run("imagenet")
    assert result.stderr.count("nothing says what its input is like") == 1
    for settings in (("--mean", 0), ("--std", 1)):
        assert "its input" not in run("imagenet", *settings, out=f"out{settings[0]}").stderr


def test_near_chance_stops_and_goes_on_anyway() -> None:
    result = run("poor", "--mean", 0)
    assert result.exit_code == 2
    assert "model poor: clean accuracy 25.0 %" in result.stderr
    for word in ("labels", "normalisation", "channels", "order of the model's classes", "--anyway"):
        assert word in result.stderr
    assert [path.stem for path in Path("out/poor/records").iterdir()] == ["clean"]
    assert not open_run("out/poor").info.allow_chance
    again = run("poor", "--mean", 0, "--anyway")
    assert again.exit_code == 0, again.output
    assert "poor (near chance)" in again.stdout
    assert open_run("out/poor").info.allow_chance
    scored = json.loads(command("score", "out", "--json").stdout)
    assert scored[0]["model"] == "poor"
    assert scored[0]["near_chance"] is True
    assert run("four", "--mean", 0).exit_code == 0
    compared = command("compare", "out/four", "out/poor")
    assert "poor (near chance)" in compared.stdout


def test_a_part_of_a_benchmark_has_another_name() -> None:
    result = run("imagenet", "--mean", 0)
    assert "mean CE over 2 of 75 conditions" in result.stdout
    for options in ((), ("--markdown",), ("--latex",)):
        said = command("score", "out", *options).stdout
        assert "mean CE over 2 of 75 conditions" in said
        assert "mCE, " not in said
    csv = command("score", "out", "--csv").stdout
    assert ",mean_ce,benchmark," in csv
    assert ",mce," not in csv


def test_severities_follow_the_same_rule() -> None:
    given = ("-c", "contrast", "-d", "val", "-n", 16, "-o", "ranges.csv", "--device", "cpu")
    result = command("build", "match-severities", *given, "-m", "python:shade_models:imagenet")
    assert result.exit_code == 0, result.output
    assert "clean accuracy 100.0 %" in result.stdout
    assert "labels are ImageNet's class indices" in result.stderr
    refused = command("build", "match-severities", *given, "-m", "python:shade_models:hundred")
    assert refused.exit_code == 2
    assert "4 class folders" in refused.stderr
    mapping = {wnid: number for number, wnid in enumerate(reversed(WNIDS))}
    Path("classes.json").write_text(json.dumps(mapping))
    turned = command("build", "match-severities", *given, "-m", "python:shade_models:four", "--mapping", "classes.json")
    assert "no clean image is classified correctly" in turned.stderr


def test_streams_follow_the_same_rule() -> None:
    given = ("-c", "contrast,brightness", "-d", "val", "-n", 8, "--step", 2.5, "--device", "cpu", "-o", "surfaces")
    refused = command("ccc", "calibrate", *given, "-m", "python:shade_models:hundred")
    assert refused.exit_code == 2
    assert "4 class folders" in refused.stderr
    made = command("ccc", "calibrate", *given, "-m", "python:shade_models:imagenet")
    assert made.exit_code == 0, made.output
    assert "labels are ImageNet's class indices" in made.stderr
    walk = ("--target", 0.5, "--length", 8, "--speed", 4)
    assert command("ccc", "walk", "surfaces", *walk, "-o", "walk.json").exit_code == 0
    ran = ("ccc", "run", "walk.json", "-d", "val", "--methods", "none", "--batch-size", 4, "--device", "cpu")
    assert "4 class folders" in command(*ran, "-m", "python:shade_models:hundred", "-o", "a").stderr
    right = command(*ran, "-m", "python:shade_models:four", "--mapping", "imagenet", "-o", "b")
    assert "has the label 701, but model four has 4 outputs" in right.stderr
    assert command(*ran, "-m", "python:shade_models:four", "-o", "c").exit_code == 0


def test_equivalence_follows_the_same_rule() -> None:
    made = command("corrupt", "val", "-o", "theirs", "-c", "contrast", "-s", "1", "--format", "png")
    assert made.exit_code == 0, made.output
    given = ("equivalence", "-d", "val", "--stored", "theirs", "--device", "cpu", "--csv")
    refused = command(*given, "-m", "python:shade_models:hundred")
    assert refused.exit_code == 2
    assert "4 class folders" in refused.stderr
    found = command(*given, "-m", "python:shade_models:imagenet")
    assert found.exit_code == 0, found.output
    assert "labels are ImageNet's class indices" in found.stderr
    assert "note" not in found.stdout, "what other programs read is numbers alone"


def test_stored_copies_beside_mapped_originals() -> None:
    made = command("corrupt", "val", "-o", "theirs", "-c", "contrast,jpeg_compression", "-s", "1", "--format", "png")
    assert made.exit_code == 0, made.output
    result = run("imagenet", "--stored", "theirs")
    assert result.exit_code == 0, result.output
    records = open_run("out/imagenet").records(open_run("out/imagenet").conditions[1])
    assert sorted(set(records.labels.tolist())) == [0, 217, 482, 701]


def test_mscr_follows_the_same_rule() -> None:
    given = ("mscr", "-d", "val", "--epsilon", 0.0001, "--runs", 1, "--json")
    found = command(*given, "-m", "python:shade_models:imagenet", "-m", "python:shade_models:four")
    assert found.exit_code == 0, found.output
    assert [score["clean"] for score in json.loads(found.stdout)["trained"]] == [1.0, 1.0]
    assert "labels are ImageNet's class indices" in found.stderr
    refused = command(*given, "-m", "python:shade_models:hundred")
    assert refused.exit_code == 2
    assert "4 class folders" in refused.stderr
    (Path("val") / "n09999999").mkdir()
    assert "n09999999" in command(*given, "-m", "python:shade_models:imagenet").stderr
    mapped = command(*given, "-m", "python:shade_models:four", "--mapping", "classes.txt")
    assert "classes.txt: no such file" in mapped.stderr
    Path("classes.txt").write_text("\n".join([*reversed(WNIDS), "n09999999"]))
    turned = command(*given, "-m", "python:shade_models:four", "--mapping", "classes.txt")
    assert "clean accuracy 0.0; expected more" in turned.stderr


def test_mscr_refuses_labels_without_an_output() -> None:
    np.savez("x.npz", images=np.zeros((6, 8, 8, 3), dtype=np.uint8), labels=[0, 1, 2, 3, 4, 9])
    result = command("mscr", "-d", "x.npz", "-m", "python:shade_models:four", "--epsilon", 0.1, "--runs", 1)
    assert result.exit_code == 2
    assert "image 5 has the label 9, but model four has 4 outputs" in result.stderr


def test_overlap_gives_test_images_the_labels_of_the_training_folders(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(place)
    (place / "test" / WNIDS[2]).mkdir(parents=True)
    for file in range(4):
        shaded(482).save(place / "test" / WNIDS[2] / f"{file}.png")
    (place / "tiny_net.py").write_text(
        "import torch\n\ndef make(classes):\n    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2),\n"
        "        torch.nn.Flatten(), torch.nn.Linear(12, classes))\n"
    )
    given = (
        "train-overlap",
        "-c",
        "contrast,brightness",
        "-d",
        "val",
        "--arch",
        "tiny_net:make",
        "--epochs",
        1,
        "--device",
    )
    result = command(*given, "cpu", "-t", "test", "-o", "o")
    records = open_run("o/results/standard").records(open_run("o/results/standard").conditions[0])
    assert set(records.labels.tolist()) == {2}, result.output
    (place / "strange" / "n00000001").mkdir(parents=True)
    shaded(1).save(place / "strange" / "n00000001" / "a.png")
    strange = command(*given, "cpu", "-t", "strange", "-o", "p")
    assert "class folder 'n00000001' is not among those that are trained on" in strange.stderr


def test_class_names_in_reports(place: Path) -> None:
    """Index 217 is the English springer, and 482 the cassette player: facts of ImageNet's class order."""
    assert run("imagenet").exit_code == 0
    assert command("report", "out", "-o", "page.html").exit_code == 0
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "English Springer Spaniel" in page
    assert "cassette player" in page
    names = [f"number {index}" for index in range(1000)]
    (place / "names.json").write_text(json.dumps(names), encoding="utf-8")
    assert run("imagenet", "--class-names", "names.json").exit_code == 0  # the same run, and other names for it
    assert command("report", "out", "-o", "page.html", "--overwrite").exit_code == 0
    assert "number 217" in (place / "page.html").read_text(encoding="utf-8")
    refused = run("imagenet", "--class-names", "nowhere.txt")
    assert refused.exit_code == 2
    assert "nowhere.txt: no such file of class names" in refused.stderr
