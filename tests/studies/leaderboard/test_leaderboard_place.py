"""One's own model among the published ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.files import load_benchmark
from blemish.evaluation.runs import Run
from blemish.metrics.imports import imported_table
from blemish.studies.leaderboard.place import placed
from command_line import invoke
from synthetic_runs import write_run

CIFAR = [str(condition) for condition in load_benchmark("cifar10-c").conditions]
MINE = {"name": "cifar10-c", "metric": "error", "title": "CIFAR-10-C"}


def cifar_run(folder: Path, name: str = "net", *, error: float = 0.12, images: int = 400, **settings: object) -> Run:
    conditions = {text: 1 - (0.05 if text == "clean" else error) for text in CIFAR}
    return write_run(folder, name, conditions, images=images, benchmark=MINE, **settings)  # type: ignore[arg-type]


def test_a_model_stands_where_its_number_does(tmp_path: Path) -> None:
    run = cifar_run(tmp_path)
    (place,), reasons = placed(run, replicates=200)
    own = 100 * (1 - np.mean([run[text].correct.mean() for text in CIFAR[1:]]))
    assert place.value.value == pytest.approx(own)
    assert reasons == []
    published = sorted(row.value.value for row in imported_table("robustbench/cifar10-c").rows)
    position = 1 + sum(value < own for value in published)
    assert place.low <= position <= place.high
    assert place.low < place.high, "400 images cannot tell it from its neighbours"
    assert place.above[-1][1].value < own < place.below[0][1].value
    assert place.count == 24


def test_an_mce_is_divided_as_theirs_is(tmp_path: Path) -> None:
    """A model with exactly the errors of a published one, on as many images as show them: its mCE is theirs."""
    rows = {row.model: row for row in imported_table("robustbench/imagenet-c").rows}
    own = rows["Standard_R50"]
    images = 5000
    conditions = {"clean": np.arange(images) < images * (1 - (own.clean or 0) / 100)}
    conditions |= {text: np.arange(images) < round(images * (1 - error / 100)) for text, error in own.cells.items()}
    benchmark = {"name": "imagenet-c", "metric": "mce", "baseline": "alexnet"}
    stored = {"pixels": "stored", "storage": "as stored", "preset": "imagenet", "crop": 224}
    run = write_run(
        tmp_path, "copy", conditions, images=images, benchmark=benchmark, protocol=stored, data={"classes": 1000}
    )
    found = {place.table.info.name: place for place in placed(run, replicates=20)[0]}
    assert set(found) == {"robustbench/imagenet-c", "testbed/stored", "testbed/in-memory", "imagenet-c/readme"}
    place = found["robustbench/imagenet-c"]
    assert place.value.value == pytest.approx(own.value.value, abs=1e-6)
    assert place.low <= 9 <= place.high, "the rank of Standard_R50"
    # README of the tables: dividing by the published AlexNet instead changes an mCE by at most 0.03.
    assert found["imagenet-c/readme"].value.value == pytest.approx(own.value.value, abs=0.03)
    assert any("Divisor" in text for text in place.differs)
    assert not any(text.startswith("Pixels") for text in place.differs)
    assert any("made in memory" in text for text in found["testbed/in-memory"].differs)


def test_what_differs_is_said(tmp_path: Path) -> None:
    run = cifar_run(
        tmp_path, protocol={"storage": "jpeg85"}, model={"training": {"corruptions": ["fog"], "augmentations": []}}
    )
    (place,), _ = placed(run, replicates=20)
    text = " ".join(place.differs)
    assert "stored as JPEG of quality 85" in text
    assert "theirs are 10,000 (all); these are 400" in text
    assert "has seen fog" in text
    stored = cifar_run(tmp_path / "b", "same", images=100, protocol={"pixels": "stored"}, data={"images": 100})
    (same,), _ = placed(stored, replicates=20)
    assert [text.partition(":")[0] for text in same.differs] == ["Images"]


def test_a_part_has_no_place_and_neither_has_chance(tmp_path: Path) -> None:
    part = {**MINE, "part_of": {"name": "cifar10-c", "conditions": 75}}
    some = write_run(tmp_path, "some", {"clean": 0.9, "fog@3": 0.5}, images=50, benchmark=part)
    places, reasons = placed(some, replicates=20)
    assert places == []
    assert "was not measured (74 in all)" in reasons[0]
    lost = cifar_run(tmp_path, "lost", error=0.9)
    chance = write_run(tmp_path, "chance", dict.fromkeys(CIFAR, 0.1), images=200, benchmark=MINE)
    assert placed(chance, replicates=20)[0] == []
    assert placed(lost, replicates=20)[0][0].low > 20


def test_natural_sets_have_places(tmp_path: Path) -> None:
    run = write_run(tmp_path, "net", {"clean": 0.9, "natural:imagenet-r": 0.5, "clean:imagenet-r": 0.9}, images=300)
    places, _ = placed(run, replicates=20)
    assert {place.table.info.name for place in places} == {
        "timm/imagenet-r",
        "testbed/imagenet-r",
        "open_clip/imagenet-r",
    }
    assert places[0].value.value == pytest.approx(100 * (1 - run["natural:imagenet-r"].correct.mean()))


def test_the_report_shows_it(tmp_path: Path) -> None:
    run = cifar_run(tmp_path, images=40)
    out = tmp_path / "report.html"
    assert invoke("report", run.folder, "--place", "--replicates", 20, "-o", out)[0] == 0
    text = out.read_text()
    assert "Among published models" in text
    assert "net (this run)" in text


def test_a_part_of_a_benchmark_is_not_put_among_claims_about_the_whole(tmp_path: Path) -> None:
    """Of a claimed mCE no cells are known: those of the whole benchmark have to be measured all the same."""
    part = {"name": "imagenet-c", "metric": "mce", "baseline": "alexnet"}
    part["part_of"] = {"name": "imagenet-c", "conditions": 75}  # type: ignore[assignment]
    some = write_run(tmp_path, "some", {"clean": 0.76, "brightness@1": 0.7}, images=300, benchmark=part)
    places, reasons = placed(some, replicates=20)
    assert places == []
    assert len(reasons) == 4
    assert all("was not measured" in why for why in reasons)
