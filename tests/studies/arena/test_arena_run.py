"""Running the arena: the same bytes for any number of workers and after any interruption."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import arena_toys
from blemish.core.errors import InputError
from blemish.evaluation.executors import Processes
from blemish.studies.adaptation.base import adaptable
from blemish.studies.adaptation.entry import Cost
from blemish.studies.adaptation.methods import METHODS, make_method, method_entry, options_of
from blemish.studies.arena.adapting import Pace, adapt_over
from blemish.studies.arena.course import course_of
from blemish.studies.arena.images import CorruptedImages, clean_images
from blemish.studies.arena.page import arena_page
from blemish.studies.arena.planning import Grid, planned_units
from blemish.studies.arena.results import read_method_result, read_stream
from blemish.studies.arena.scores import read_arena, scored
from blemish.studies.arena.setting import load_setting
from blemish.studies.arena.tables import setting_table
from blemish.studies.arena.units import Stage, Unit, Variation
from blemish.studies.arena.work import lag_of


def units(*methods: str, settings: tuple[str, ...] = ("continual", "mixed"), batch: int = 8) -> list[Unit]:
    return [Unit(Stage(load_setting(name), "standard", 1), method, batch) for name in settings for method in methods]


def columns(folder: Path, unit: Unit) -> dict[str, np.ndarray]:
    result = read_method_result(unit.result(folder))
    return {name: value for name, value in vars(result).items() if name != "header"}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_results_are_what_a_plain_loop_gives(tmp_path: Path) -> None:
    """Tent over the continual stream, step by step, on images that are corrupted one condition at a time."""
    arena = arena_toys.arena(tmp_path)
    (unit,) = units("tent", settings=("continual",))
    assert arena.run([unit]) == 1
    assert arena.run([unit]) == 0
    found = read_method_result(unit.result(arena.folder))
    stream = read_stream(arena.folder / "streams" / "continual.seed-1.parquet")
    method = make_method("tent", adaptable(arena.model), settings="cifar")
    order = course_of(unit.stage.setting, "standard", ("brightness", "contrast"), arena.images.labels, 1)
    expected = []
    for start, stop in [(0, 8), (8, 16), (16, 24), (24, 32), (32, 40), (40, 48)]:
        name = "brightness" if start < 24 else "contrast"
        rows = order.rows[start:stop]
        batch = arena.question.catalog[name](
            arena.images.batch(rows), severity=5, ids=torch.from_numpy(arena.images.ids[rows]), preset="cifar"
        )
        expected += method.adapt(batch).argmax(1).tolist()
    assert found.predictions.tolist() == expected
    assert stream.labels.tolist() == arena.images.labels[order.rows].tolist()
    assert found.adapted.all()
    assert len(found.header.clean_after) == 8


def test_resets_come_where_the_setting_says(tmp_path: Path) -> None:
    """After the first corruption, reset_each_shift is a fresh start, and continual is not."""
    arena = arena_toys.arena(tmp_path, corruptions=("contrast", "contrast"))
    clean = clean_images(arena.images, torch.device("cpu"))
    ids = torch.from_numpy(arena.images.ids)
    halves = {}
    for name in ("continual", "reset_each_shift"):
        course = course_of(load_setting(name), "benchmark", ("brightness", "contrast"), arena.images.labels, 1)
        condition = {text: arena_toys.catalog_condition(text) for text in course.conditions}
        images = CorruptedImages(course, clean, ids, condition, arena.question.protocol, clean.device)
        method = make_method("tent", adaptable(arena.model), settings="cifar")
        halves[name] = adapt_over(method, course, images, batch=8).columns["entropy"]
    assert np.array_equal(halves["continual"][:24], halves["reset_each_shift"][:24])
    fresh = make_method("tent", adaptable(arena.model), settings="cifar")
    course = course_of(load_setting("continual"), "benchmark", ("contrast",), arena.images.labels, 1)
    condition = {"contrast@5": arena_toys.catalog_condition("contrast@5")}
    alone = CorruptedImages(course, clean, ids, condition, arena.question.protocol, clean.device)
    assert np.array_equal(halves["reset_each_shift"][24:], adapt_over(fresh, course, alone, batch=8).columns["entropy"])
    assert not np.array_equal(halves["continual"][24:], halves["reset_each_shift"][24:])


def test_a_stream_that_does_not_wait(tmp_path: Path) -> None:
    """Tent costs 1 + 2 passes, so that it misses two batches after each; at half the speed ⌈1.5⌉ − 1 = 1."""
    setting = load_setting("constant_speed")
    tent, sar = METHODS["tent"], METHODS["sar"]
    assert [lag_of(entry, setting, "cifar") for entry in (METHODS["none"], METHODS["norm_ema"], tent, sar)] == [
        0,
        1,
        2,
        5,
    ]
    assert lag_of(tent, load_setting("continual"), "cifar") == 0
    assert lag_of(tent, replace(setting, speed=0.5), "cifar") == 1
    arena = arena_toys.arena(tmp_path)
    (unit,) = units("tent", settings=("constant_speed",), batch=4)
    arena.run([unit])
    late = columns(arena.folder, unit)["adapted"].reshape(2, 6, 4)
    assert late.all(2).tolist() == [[True, False, False, True, False, False]] * 2


def test_after_an_interruption_it_is_the_same(tmp_path: Path) -> None:
    """Stopped in the middle of every unit, and gone on from its state."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = arena_toys.arena(tmp_path / "whole")
    wanted = units("tent", "cotta", settings=("continual",), batch=4)
    whole.run(wanted)
    parts = arena_toys.arena(tmp_path / "parts", pace=Pace(tell=1, save=0.0))

    class StoppedError(BaseException):
        pass

    stops = 0
    for _ in range(40):
        seen = 0

        def stop(done: int, total: int, text: str) -> None:
            nonlocal seen
            seen += 1
            if seen == 4:
                raise StoppedError

        try:
            parts.run(wanted, report=stop)
            break
        except StoppedError:
            stops += 1
    assert stops > 2
    for unit in wanted:
        assert same(columns(whole.folder, unit), columns(parts.folder, unit))
    assert not list((parts.folder / "states").rglob("*.state"))


@pytest.mark.slow
def test_any_number_of_workers(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = arena_toys.arena(tmp_path / "one"), arena_toys.arena(tmp_path / "two")
    others = [name for name in METHODS if name not in ("none", "tent", "eata")]
    wanted = units("none", "tent", "eata") + units(*others, settings=("continual",))
    one.run(wanted)
    two.run(wanted, Processes(2))
    assert all(same(columns(one.folder, unit), columns(two.folder, unit)) for unit in wanted)


def test_damaged_states_are_begun_again(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path)
    (unit,) = units("tent", settings=("continual",))
    path = arena._state_file(unit)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"nothing")
    arena.run([unit])
    assert unit.result(arena.folder).is_file()


def test_a_folder_of_another_arena_is_refused(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path)
    wanted = units("none", settings=("continual",))
    arena.run(wanted)
    with pytest.raises(InputError, match="holds another arena"):
        arena_toys.arena(tmp_path, clean=4).run(wanted)
    with pytest.raises(InputError, match="batch was 8, now 4"):  # they could not be ranked together
        arena_toys.arena(tmp_path, batch=4).run(wanted)
    wanted[0].result(arena.folder).write_bytes(b"nothing")
    with pytest.raises(InputError):
        arena.run(wanted)


def test_scores_that_are_not_numbers_are_wrong_and_counted(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path)
    clean = clean_images(arena.images, torch.device("cpu"))
    course = course_of(load_setting("continual"), "benchmark", ("contrast",), arena.images.labels, 1)
    condition = {"contrast@5": arena_toys.catalog_condition("contrast@5")}
    ids = torch.from_numpy(arena.images.ids)
    images = CorruptedImages(course, clean, ids, condition, arena.question.protocol, clean.device)
    method = make_method("tent", adaptable(arena.model), settings="cifar")
    with torch.no_grad():
        next(iter(method.adapted.values())).fill_(torch.nan)  # type: ignore[attr-defined]
    assert set(adapt_over(method, course, images, batch=8).columns["prediction"].tolist()) == {-1}


def test_what_does_not_suit_is_left_out_with_a_word(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path, norm="group")
    settings = [load_setting("continual"), load_setting("single_images")]
    planned = planned_units(arena, ["none", "bn", "tent", "lame"], settings, seeds=[1, 2])
    assert {unit.method for unit in planned.units} == {"none", "tent", "lame"}
    assert "left out, because Sequential has no batch norm layers: bn" in planned.left_out
    assert "lame is left out of single_images: it needs more than one image at a time" in planned.left_out
    assert sum(unit.method == "tent" for unit in planned.units) == 4  # group norm needs no batch
    with pytest.raises(InputError, match="bn needs batch norm layers"):
        planned_units(arena, ["none", "bn"], settings, seeds=[1], strict=True)
    with pytest.raises(InputError, match="named twice"):
        planned_units(arena, ["none", "none"], settings, seeds=[1])


def test_a_grid_varies_what_there_is_to_vary(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path)
    grid = Grid((0.1, 1.0), (4, 8))
    planned = planned_units(arena, ["none", "tent"], [load_setting("continual")], seeds=[1], grid=grid)
    assert [unit.label for unit in planned.units] == [
        "none", "none@batch=4", "tent", "tent@batch=4", "tent@rate×0.1", "tent@rate×0.1,batch=4",
    ]  # fmt: skip
    arena.run(planned.units)
    rates = [read_method_result(unit.result(arena.folder)).header.variation for unit in planned.units]
    assert rates[-1] == Variation(0.1, 4)
    one, other = (columns(arena.folder, planned.units[place]) for place in (2, 4))
    assert not np.array_equal(one["entropy"], other["entropy"])


def test_methods_with_options(tmp_path: Path) -> None:
    """They are methods of their own: with a name, options in the header, and other predictions."""
    arena = arena_toys.arena(tmp_path)
    wanted = units("rotta:momentum=0.5:every=8", "rotta", settings=("continual",))
    arena.run(wanted)
    headers = [read_method_result(unit.result(arena.folder)).header for unit in wanted]
    assert headers[0].options == "every=8, momentum=0.5"
    assert headers[1].options == ""
    assert not np.array_equal(*(columns(arena.folder, unit)["entropy"] for unit in wanted))
    entry = method_entry("memo:views=4:nesterov=True:crop=cifar")
    assert options_of(entry, "cifar") == {"views": 4, "rate": 0.005, "crop": "cifar", "nesterov": True}
    assert entry.cost_with(options_of(entry, "cifar")) == Cost(5, 4)


def test_methods_that_lack_a_stream_are_named(tmp_path: Path) -> None:
    arena = arena_toys.arena(tmp_path)
    setting = load_setting("continual")
    stages = [Stage(setting, "standard", seed) for seed in (1, 2)]
    arena.run([Unit(stage, "none", 8) for stage in stages] + [Unit(stages[1], "tent", 8)])
    (found,) = scored(read_arena(arena.folder), level=0.8)
    assert list(found.entrants) == ["none"]
    assert found.unfinished == {"tent": 1}
    assert "Not compared, because streams are missing: tent (1 of 2)." in setting_table(found).notes
    assert "Intervals (80 %)" in arena_page([found], arena.info)


class TestOnesOwn:
    def test_it_runs_beside_the_others(self, tmp_path: Path) -> None:
        arena = arena_toys.arena(tmp_path)
        wanted = units("python:arena_toys:OwnTent", "python:arena_toys:Common", settings=("constant_speed",))
        arena.run(wanted[:1])
        assert columns(arena.folder, wanted[0])["adapted"].mean() < 1
        with pytest.raises(InputError, match="does not say what it costs"):
            arena.run(wanted[1:])
        (unit,) = units("python:arena_toys:Common", settings=("continual",))
        arena.run([unit])
        before = columns(arena.folder, unit)
        unit.result(arena.folder).unlink()
        torch.manual_seed(7)
        arena.run([unit])
        assert same(before, columns(arena.folder, unit))  # its random numbers are the batch's

    def test_what_it_writes_into_images_reaches_nobody_else(self, tmp_path: Path) -> None:
        """Not the methods after it, and not what is asked about the same batch."""
        (tmp_path / "alone").mkdir()
        alone, beside = arena_toys.arena(tmp_path / "alone"), arena_toys.arena(tmp_path)
        masking, none = units("python:arena_toys:Masking", "none", settings=("continual",))
        alone.run([none])
        beside.run([masking, none])
        for folder, unit in ((beside.folder, none), (beside.folder, masking)):
            assert same(columns(alone.folder, none), columns(folder, unit))
        headers = [read_method_result(unit.result(beside.folder)).header for unit in (masking, none)]
        assert headers[0].probes == headers[1].probes
        assert headers[0].clean_after == headers[1].clean_after

    def test_a_module_that_only_adapts(self, tmp_path: Path) -> None:
        arena = arena_toys.arena(tmp_path)
        one, none = units("python:arena_toys:OnlyAdapts", "none", settings=("continual",))
        arena.run([one, none])
        predictions = [columns(arena.folder, unit)["predictions"] for unit in (one, none)]
        assert np.array_equal(*predictions)
        (few,) = units("python:arena_toys:TooFew", settings=("continual",))
        with pytest.raises(InputError, match=r"gave \(8, 3\) for 8 images; expected logits, \(8, 4\)"):
            arena.run([few])

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("python:arena_toys:Nothing", "gives a Nothing; expected an object with adapt"),
            ("python:arena_toys:Missing", "arena_toys has no 'Missing'"),
            ("python:no_such_module:Thing", "no module 'no_such_module'"),
            ("python:arena_toys", "expected python:package.module:name"),
            ("tend", "unknown adaptation method 'tend'"),
            ("python:arena_toys:Dear", "cost 3; expected two numbers"),
            ("python:arena_toys:library", "name it as it is, with options: tent:option=value"),
            ("sar:keep_avarage=true", "option 'keep_avarage=true'; expected OPTION=VALUE with one of margin, radius"),
            ("sar:keep_average=yes", "expected bool, as in keep_average=False"),
            ("memo:views=many", "expected int, as in views=32"),
            ("sar:margin=nan", "expected float, as in margin=0.4"),
            ("sar:margin=0.3:margin=0.4", "an option is given twice"),
        ],
    )
    def test_what_is_refused(self, tmp_path: Path, name: str, message: str) -> None:
        with warnings.catch_warnings(), pytest.raises(InputError, match=message):
            planned_units(arena_toys.arena(tmp_path), [name], [load_setting("continual")], seeds=[1])
