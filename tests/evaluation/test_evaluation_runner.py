"""Running a benchmark: what is written, which images are taken, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.core.settings import differences
from blemish.core.typed import as_json
from blemish.evaluation.records import read_records
from blemish.evaluation.runs import Run, find_runs, open_run, record_path
from blemish.models.base import Training
from toy_runs import CLASSES, benchmark, evaluate, forward, model, picture, source


def test_records_say_what_the_model_said(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark("fog@2", "fog@1-5", seed=3), out=tmp_path, batch_size=6)
    assert [str(condition) for condition in run.conditions] == ["clean", "fog@2", "fog@1-5"]
    images = torch.stack([torch.from_numpy(np.array(picture(i))).permute(2, 0, 1) for i in range(20)])
    foggy = blemish.corrupt(images, "fog", severity=2, seed=3)
    expected = forward(foggy.float() / 255).float().softmax(1)
    found = run.records(parse_condition("fog@2"))
    np.testing.assert_array_equal(found.top5[:, 0], expected.argmax(1))
    np.testing.assert_allclose(found.confidence, expected.amax(1), rtol=1e-4)
    own = expected[torch.arange(20), torch.arange(20) % CLASSES]
    np.testing.assert_allclose(found.label_confidence, own, rtol=1e-4)
    assert found.images.tolist() == list(source().names)
    assert (found.top5 >= 0).all()


def test_the_header_states_the_protocol(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark("fog@2", seed=3, storage="jpeg85", crop=24), out=tmp_path)
    header = read_records(record_path(run.folder, parse_condition("fog@2"))).header
    assert header.condition == "fog@2"
    assert as_json(header.protocol) == {
        "seed": 3,
        "preset": None,
        "storage": "jpeg85",
        "resize": None,
        "crop": 24,
        "square": None,
        "centre": None,
        "pixels": "generated",
        "stored": None,
        "corruptions": {"fog": 1},
        "frost": None,
        "labels": "as given",
    }
    assert header.model.outputs == CLASSES
    assert header.model.weights == "w1"
    assert header.model.training == Training(("fog",))
    assert header.data.images == 20
    assert len(header.data.fingerprint) == 32
    assert open_run(run.folder).info == run.info


@pytest.mark.parametrize("storage", ["raw", "jpeg85"])
def test_batches_do_not_change_records(tmp_path: Path, storage: str) -> None:
    sizes = ((32, 32), (24, 40), (32, 32))
    wanted = benchmark("gaussian_noise@3", "fog@2+contrast@1", "p:gaussian_noise@1", "p:translate@2", storage=storage)
    one = evaluate(model(), source(sizes=sizes), wanted, out=tmp_path / "one", batch_size=1, zipf=True)
    many = evaluate(model(), source(sizes=sizes), wanted, out=tmp_path / "many", batch_size=7, zipf=True)
    for condition in wanted.conditions:
        a, b = one.records(condition), many.records(condition)
        assert a.images.tolist() == b.images.tolist()
        np.testing.assert_array_equal(a.top5, b.top5)
        np.testing.assert_array_equal(a.confidence, b.confidence)
        if condition.is_sequence:
            assert a.frames is not None
            assert b.frames is not None
            np.testing.assert_array_equal(a.frames, b.frames)
            np.testing.assert_array_equal(a.zipf, b.zipf)


def test_storage_as_jpeg_changes_corrupted_images_only(tmp_path: Path) -> None:
    raw = evaluate(model(), source(), benchmark("contrast@2"), out=tmp_path / "raw")
    jpeg = evaluate(model(), source(), benchmark("contrast@2", storage="jpeg85"), out=tmp_path / "jpeg")
    clean, dark = raw.conditions
    np.testing.assert_array_equal(raw.records(clean).confidence, jpeg.records(clean).confidence)
    assert (raw.records(dark).confidence != jpeg.records(dark).confidence).any()


def test_frames_are_those_of_the_sequence(tmp_path: Path) -> None:
    wanted = benchmark("p:translate@2", resize=48, crop=32)
    run = evaluate(model(), source(5, ((48, 60),)), wanted, out=tmp_path, zipf=True)
    found = run.records(parse_condition("p:translate@2"))
    sequence = blemish.sequences["p:translate"]
    images = torch.stack([torch.from_numpy(np.array(picture(i, (48, 60)))).permute(2, 0, 1) for i in range(5)])
    frames = list(sequence.frames(images, ids=range(5), difficulty=2, crop=32))
    assert found.frames is not None
    assert found.frames.tolist() == list(range(len(frames))) * 5
    expected = torch.stack([forward(frame.float() / 255).float().softmax(1) for frame in frames], dim=1)
    np.testing.assert_array_equal(found.top5[:, 0].reshape(5, -1), expected.argmax(2))
    # The Zipf distance by its definition, of frame 7 of image 3 from the frame two before it.
    ranks = (-expected[3]).argsort(dim=1, stable=True).argsort(dim=1) + 1
    first, second = ranks[5].double(), ranks[7].double()
    distance = float(((1 / first - 1 / second).abs() / first).sum())
    assert found.zipf is not None
    assert found.zipf.reshape(5, -1)[3, 7] == pytest.approx(distance, rel=1e-5)
    assert np.isnan(found.zipf.reshape(5, -1)[:, :2]).all()


def test_several_models_share_a_folder(tmp_path: Path) -> None:
    for name in ("one", "two/../x", "…"):
        evaluate(model(name), source(), benchmark("fog@1"), out=tmp_path)
    assert sorted(run.name for run in find_runs([tmp_path])) == sorted(["one", "two/../x", "…"])
    assert all(run.folder.parent == tmp_path for run in find_runs([tmp_path]))


def test_long_names_and_strange_models(tmp_path: Path) -> None:
    run = evaluate(model("ä" * 300), source(), benchmark("fog@1"), out=tmp_path)
    assert run.name == "ä" * 300
    with pytest.raises(InputError, match="a int; expected a torch module"):  # functions are models
        evaluate(7, source(), benchmark("fog@1"), out=tmp_path)  # type: ignore[arg-type]


def test_a_limit_takes_all_classes_in_proportion(tmp_path: Path) -> None:
    run = evaluate(model(), source(70), benchmark("fog@1"), out=tmp_path, limit=14)
    labels = run.records(run.conditions[0]).labels
    assert sorted(labels.tolist()) == sorted([*range(CLASSES)] * 2)
    assert run.info.data.selection == "14 of 70, stratified by class"


def test_going_on_until_it_is_enough(tmp_path: Path) -> None:
    looks: list[tuple[int, int]] = []

    def enough(run: Run, look: int) -> bool:
        looks.append((look, len(run.records(run.conditions[1]))))
        return look == 3

    run = evaluate(model(), source(70), benchmark("fog@1"), out=tmp_path, limit=10, stop_when=enough)
    assert looks == [(1, 10), (2, 20), (3, 40)]
    names = run.records(run.conditions[1]).images
    assert len({*names.tolist()}) == 40
    assert run.info.data.images == 40
    assert run.info.until
    whole = evaluate(model("whole"), source(70), benchmark("fog@1"), out=tmp_path)
    places = {name: i for i, name in enumerate(whole.records(whole.conditions[1]).images.tolist())}
    rows = np.array([places[name] for name in names.tolist()])
    np.testing.assert_array_equal(run.records(run.conditions[1]).top5, whole.records(whole.conditions[1]).top5[rows])


def test_all_images_end_it_too(tmp_path: Path) -> None:
    run = evaluate(model(), source(30), benchmark("fog@1"), out=tmp_path, limit=10, stop_when=lambda *_: False)
    assert len(run.records(run.conditions[0])) == 30
    assert run.stages == 3


def test_memory_errors_halve_the_batch(tmp_path: Path) -> None:
    sizes: list[int] = []

    def greedy(values: Tensor) -> Tensor:
        sizes.append(len(values))
        if len(values) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(values)

    run = evaluate(replace(model(), forward=greedy), source(), benchmark("fog@1"), out=tmp_path / "a", batch_size=16)
    assert sizes[:4] == [2, 16, 8, 4], "an image, twice, to count the outputs; then batches"
    assert max(sizes[4:]) == 2
    other = evaluate(model(), source(), benchmark("fog@1"), out=tmp_path / "b")
    np.testing.assert_array_equal(run.records(run.conditions[1]).top5, other.records(other.conditions[1]).top5)


def test_memory_for_not_even_one_image_is_explained(tmp_path: Path) -> None:
    def hungry(values: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(InputError, match="too little memory for a single image"):
        evaluate(replace(model(), forward=hungry), source(), benchmark("fog@1"), out=tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_labels_that_the_model_does_not_know_are_refused(tmp_path: Path) -> None:
    few = replace(model(), forward=lambda values: forward(values)[:, :4])
    with pytest.raises(InputError, match=r"image 6/6.png has the label 6, but model toy has 4 outputs"):
        evaluate(few, source(), benchmark("fog@1"), out=tmp_path)


def test_models_of_few_classes_leave_places_empty(tmp_path: Path) -> None:
    two = replace(model(), forward=lambda values: forward(values)[:, :2])
    images = replace(source(), labels=np.arange(20, dtype=np.int64) % 2)
    found = evaluate(two, images, benchmark("fog@1"), out=tmp_path).records(parse_condition("fog@1"))
    assert (found.top5[:, 2:] == -1).all()
    assert sorted({*found.top5[:, :2].ravel().tolist()}) == [0, 1]


def test_pictures_are_kept_worst_first(tmp_path: Path) -> None:
    run = evaluate(model(), source(40), benchmark("fog@1", "fog@5"), out=tmp_path)
    with np.load(run.folder / "pictures.npz") as kept:
        assert kept["images"].shape == (16, 32, 32, 3)
        assert kept["classes"].tolist() == list("abcdefg")
        first = kept["names"][0]
        place = list(source(40).names).index(str(first))
        np.testing.assert_array_equal(kept["images"][0], np.array(picture(place)))


def test_long_texts_are_shown_where_they_differ() -> None:
    long = "abcdefgh" * 40
    (line,) = differences({"title": long + "old"}, {"title": long + "new"})
    assert line.startswith("title was …")
    assert 'old"' in line
    assert 'new"' in line
    assert len(line) < 200
    assert differences({"seed": 1}, {"seed": None}) == ["seed was 1, now not set"]
    (line,) = differences([1] * 100, [1] * 101)
    assert line.endswith("1, 1]")
    (line,) = differences([1] * 100, [2] * 100)
    assert line.count("…") == 2
