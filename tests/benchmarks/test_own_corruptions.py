"""A user's own corruption works wherever a built-in one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import blemish
import own_corruptions
from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import parse_condition, read_condition
from blemish.corruptions.plugins import OwnVersion, code_digest, load_catalog, own_code
from blemish.data.cache import load
from blemish.evaluation.executors.processes import Processes
from blemish.evaluation.header import protocol_info
from blemish.export import corrupt_arrays, make_recipe
from blemish.reports.html import write_report
from blemish.studies.overlap.harness import Plan, train_all
from blemish.studies.overlap.training import Schedule
from blemish.studies.streams.calibration import Bench, calibrate, read_calibration
from frost_files import draw_pictures
from toy_runs import evaluate, model, source

CATALOG = blemish.catalog.extended(own_corruptions.shaded)
CONDITIONS = ("mine:shaded@3", "mine:shaded@1-5", "fog@2+mine:shaded@1.5")


def benchmark() -> Benchmark:
    return Benchmark("mine", "", "error", tuple(parse_condition(text, catalog=CATALOG) for text in CONDITIONS))


def test_measured_read_and_reported(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark(), out=tmp_path)
    again = blemish.open_run(run.folder)
    assert [str(condition) for condition in again.conditions[1:]] == list(CONDITIONS)
    assert again.family(read_condition("mine:shaded@3")) == "mine"
    assert blemish.score(again).find("error", "mine:shaded").estimate.value >= 0
    write_report([again], tmp_path / "report.html")
    assert "mine:shaded is not a corruption of this catalog" in (tmp_path / "report.html").read_text(encoding="utf-8")
    write_report([again], tmp_path / "drawn.html", catalog=CATALOG)
    page = (tmp_path / "drawn.html").read_text(encoding="utf-8")
    assert "not a corruption of this catalog" not in page
    assert "mine:shaded, severity\N{NO-BREAK SPACE}3" in page
    write_report([again], tmp_path / "other.html", catalog=OTHER_CODE)
    assert "mine:shaded was measured with other code" in (tmp_path / "other.html").read_text(encoding="utf-8")


def test_processes_give_the_same_records(tmp_path: Path) -> None:
    here = blemish.evaluate(
        blemish.open_model("demo:plain", device="cpu"), "demo:digits", benchmark(), out=tmp_path / "one", limit=20
    )
    there = blemish.evaluate(
        blemish.open_model("demo:plain", device="cpu"),
        "demo:digits",
        benchmark(),
        out=tmp_path / "two",
        limit=20,
        executor=Processes(2),
    )
    for condition in here.conditions:
        assert (here.records(condition).confidence == there.records(condition).confidence).all()


def test_in_a_benchmark_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\nmetric = "error"\n[[conditions]]\ncorruptions = ["mine:shaded"]\nseverities = [1, 2]\n'
    )
    with pytest.raises(blemish.InputError, match="mine:shaded"):
        blemish.load_benchmark(path)
    loaded = blemish.load_benchmark(path, catalog=load_catalog(["own_corruptions"], installed=False))
    assert loaded.conditions[1].steps[0].unit == own_corruptions.shaded


def test_the_header_knows_the_code() -> None:
    entry = protocol_info(benchmark()).corruptions
    assert entry["fog"] == blemish.catalog["fog"].version
    assert entry["mine:shaded"] == OwnVersion(1, code_digest(own_corruptions.shaded))
    other = replace(own_corruptions.shaded, apply=blemish.catalog["contrast"].apply)
    assert code_digest(other) != code_digest(own_corruptions.shaded)


OTHER_CODE = blemish.catalog.extended(replace(own_corruptions.shaded, apply=blemish.catalog["contrast"].apply))


def test_ours_with_other_photographs_are_not_a_users_own(tmp_path: Path) -> None:
    assert own_code(blemish.catalog.values()) == {}
    assert own_code([blemish.catalog.with_frost(draw_pictures(tmp_path))["frost"]]) == {}
    assert own_code(CATALOG.values()) == {"mine:shaded": code_digest(own_corruptions.shaded)}


def test_copies_of_other_code_are_not_mixed(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 32, 32, 3), np.uint8), labels=np.arange(2))
    names = ["mine:shaded"]
    for _ in range(2):
        corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", make_recipe(names, [1], catalog=CATALOG))
    with pytest.raises(blemish.InputError, match="mine:shaded"):
        corrupt_arrays(tmp_path / "x.npz", tmp_path / "out", make_recipe(names, [1], catalog=OTHER_CODE))


def test_networks_of_other_code_are_not_mixed(tmp_path: Path) -> None:
    images, labels = torch.randint(0, 256, (16, 3, 32, 32), dtype=torch.uint8), torch.arange(16) % 2
    plan = Plan(("mine:shaded", "fog"), "small_net", 2, Schedule(1, 8), catalog=CATALOG)
    train_all(plan, images, labels, tmp_path, device=torch.device("cpu"))
    fog = replace(plan, corruptions=("fog", "contrast"))
    train_all(fog, images, labels, tmp_path, device=torch.device("cpu"))
    with pytest.raises(blemish.InputError, match="other code of mine:shaded"):
        train_all(replace(plan, catalog=OTHER_CODE), images, labels, tmp_path, device=torch.device("cpu"))


def test_surfaces_of_other_code_are_not_mixed(tmp_path: Path) -> None:
    bench = Bench(model(), load(source()), grid=(0.0, 5.0), catalog=CATALOG)
    names = ["mine:shaded", "fog"]
    calibrate(bench, names, folder=tmp_path)
    calibrate(bench, [*names, "contrast"], folder=tmp_path)
    surfaces, _ = read_calibration(tmp_path)  # which needs no code
    assert ("fog", "mine:shaded") in surfaces
    with pytest.raises(blemish.InputError, match="measured otherwise"):
        calibrate(replace(bench, catalog=OTHER_CODE), names, folder=tmp_path)


@pytest.mark.parametrize("name", ["p:mine", "a b", "fog@2", "a+b", "a,b"])
def test_names_that_conditions_could_not_hold(name: str) -> None:
    with pytest.raises(blemish.InputError, match="a corruption named"):
        blemish.catalog.extended(replace(own_corruptions.shaded, name=name))


def test_plugins_that_cannot_be_used() -> None:
    with pytest.raises(blemish.InputError, match="no_such_module"):
        load_catalog(["no_such_module"], installed=False)
    with pytest.raises(blemish.InputError, match="no corruption in it"):
        load_catalog(["json"], installed=False)


def test_conditions_that_were_only_read_cannot_be_applied() -> None:
    with pytest.raises(blemish.InputError, match="not at hand"):
        read_condition("fog@3").apply(torch.zeros(1, 3, 8, 8), seed=0, ids=torch.arange(1))
