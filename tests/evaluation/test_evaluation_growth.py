"""Runs that grow: further conditions and more images into the same folder, and nothing is measured twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.benchmark import Protocol, only
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.core.errors import InputError, Notice
from blemish.data.open import open_source, open_stored
from blemish.evaluation.runs import Run, open_run
from blemish.export import corrupt_arrays, make_recipe
from blemish.metrics.compare import protocol_differences
from told_steps import Steps
from toy_runs import benchmark, evaluate, model, source

WHOLE = benchmark("fog@1", "fog@3", "snow@2", "frost_drawn@1")


def correct_by_image(run: Run, condition: str) -> dict[str, bool]:
    records = run.records(parse_condition(condition))
    return dict(zip(records.images.tolist(), records.correct.tolist(), strict=True))


def times(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_further_conditions_extend_a_folder(tmp_path: Path) -> None:
    first = evaluate(model(), source(), only(WHOLE, ["fog"]), out=tmp_path / "out")
    assert first.info.benchmark.name == "mine (2 of 4 conditions)"
    before = times(first.folder)
    steps = Steps()
    both = evaluate(model(), source(), only(WHOLE, ["snow"]), out=tmp_path / "out", report=steps)
    assert [str(condition) for condition in both.conditions] == ["clean", "fog@1", "fog@3", "snow@2"]
    assert both.info.benchmark.name == "mine (3 of 4 conditions)"
    assert {step.condition for step in steps} == {"snow@2"}
    assert (steps[-1].done, steps[-1].total) == (80, 80)
    assert before.items() <= times(both.folder).items(), "what was there is not written again"
    assert open_run(both.folder).info == both.info

    whole = evaluate(model(), source(), WHOLE, out=tmp_path / "out")
    assert whole.info.benchmark.part_of is None
    at_once = evaluate(model(), source(), WHOLE, out=tmp_path / "at once")
    for condition in WHOLE.conditions:
        assert correct_by_image(whole, str(condition)) == correct_by_image(at_once, str(condition))
    assert whole.info.protocol == at_once.info.protocol
    # A part into a folder with the whole: there is nothing left to do.
    steps = Steps()
    again = evaluate(model(), source(), only(WHOLE, ["fog"]), out=tmp_path / "out", report=steps)
    assert not steps, "nothing is measured again"
    assert again.info == whole.info


def test_a_larger_limit_extends_a_folder(tmp_path: Path) -> None:
    few = evaluate(model(), source(70), WHOLE, out=tmp_path / "out", limit=20)
    seen = correct_by_image(few, "fog@1")
    before = times(few.folder)
    more = evaluate(model(), source(70), WHOLE, out=tmp_path / "out", limit=40)
    assert before.items() <= times(more.folder).items()
    assert more.info.data.images == 40
    assert [stage.images for stage in more.info.stages] == [20, 20]
    assert seen.items() <= correct_by_image(more, "fog@1").items()
    at_once = evaluate(model(), source(70), WHOLE, out=tmp_path / "at once", limit=40)
    assert correct_by_image(more, "snow@2") == correct_by_image(at_once, "snow@2")
    assert more.info.data == at_once.info.data, "the same images, whenever they came"
    assert protocol_differences(more, at_once) == []
    everything = evaluate(model(), source(70), WHOLE, out=tmp_path / "out")
    assert everything.info.data.selection == "all"
    whole = evaluate(model(), source(70), WHOLE, out=tmp_path / "whole")
    assert everything.info.data == whole.info.data


def test_both_at_once(tmp_path: Path) -> None:
    """More images also for the conditions that were there."""
    evaluate(model(), source(70), only(WHOLE, ["fog"]), out=tmp_path / "out", limit=20)
    run = evaluate(model(), source(70), only(WHOLE, ["snow"]), out=tmp_path / "out", limit=30)
    assert {len(run.records(condition).images) for condition in run.conditions} == {30}


def test_fewer_images_than_there_are(tmp_path: Path) -> None:
    evaluate(model(), source(70), WHOLE, out=tmp_path / "out", limit=20)
    with pytest.warns(Notice, match="holds 20 images already, more than the 10 that were asked for"):
        run = evaluate(model(), source(70), WHOLE, out=tmp_path / "out", limit=10)
    assert run.info.data.images == 20


def test_until_it_suffices_after_a_limit(tmp_path: Path) -> None:
    evaluate(model(), source(70), WHOLE, out=tmp_path / "out", limit=10)
    run = evaluate(model(), source(70), WHOLE, out=tmp_path / "out", stop_when=lambda _, look: look == 3)
    assert [stage.images for stage in run.info.stages] == [10, 10, 20]
    assert run.info.until is True


def test_other_versions_of_a_corruption_are_not_mixed(tmp_path: Path) -> None:
    run = evaluate(model(), source(), only(WHOLE, ["fog"]), out=tmp_path / "out")
    path = run.folder / "run.json"
    path.write_text(path.read_text().replace('"fog": 1', '"fog": 7'))
    with pytest.raises(InputError, match=r"\(protocol\.corruptions\.fog was 7, now 1\)"):
        evaluate(model(), source(), WHOLE, out=tmp_path / "out")


def test_stored_sets_grow_too(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (14, 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "clean.npz", images=pixels, labels=np.arange(14) % 7)
    corrupt_arrays(tmp_path / "clean.npz", tmp_path / "set", make_recipe(["fog", "snow"], [1, 2, 3, 4, 5]))
    clean, stored = open_source(tmp_path / "clean.npz"), open_stored(tmp_path / "set")
    whole = benchmark("fog@1", "snow@2")
    evaluate(model(), clean, only(whole, ["fog"]), out=tmp_path / "out", stored=stored)
    run = evaluate(model(), clean, whole, out=tmp_path / "out", stored=stored)
    assert {*run.info.protocol.stored} == {"fog@1", "snow@2"}
    assert all(run.finished(condition) for condition in whole.conditions)


def test_an_interrupted_condition_is_continued_although_the_run_has_grown(tmp_path: Path) -> None:
    def stop(done: int, total: int | None, what: str = "") -> None:
        if what == "snow@2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(model(), source(), only(WHOLE, ["snow"]), out=tmp_path / "out", report=stop)
    run = evaluate(model(), source(), WHOLE, out=tmp_path / "out")
    assert all(run.finished(condition) for condition in WHOLE.conditions)
    assert np.array_equal(run.part(CLEAN, 0).images, run.records(parse_condition("snow@2")).images)


def test_a_part_keeps_the_protocol_that_was_chosen_for_it(tmp_path: Path) -> None:
    part = replace(only(WHOLE, ["fog"]), protocol=Protocol(seed=3))
    evaluate(model(), source(), part, out=tmp_path / "out")
    run = evaluate(model(), source(), replace(only(WHOLE, ["snow"]), protocol=Protocol(seed=3)), out=tmp_path / "out")
    assert run.info.protocol.seed == 3
    assert len(run.conditions) == 4
