"""Frost is the reference's or nothing; frost_drawn is another corruption; a folder travels with the corruption."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import blemish
from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.corruptions.compose import chain, random_severity
from blemish.evaluation.executors.processes import Processes
from blemish.evaluation.header import protocol_info
from blemish.export import make_recipe
from blemish.ops.codecs import MissingCodecError
from blemish.ops.photographs import MissingFrostError
from blemish.studies.equivalence.compare_sets import equivalence
from blemish.studies.overlap.harness import Plan, train_all
from blemish.studies.streams.calibration import Bench, calibrate
from blemish.studies.streams.images import from_source
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep
from frost_files import Frosted, digest, draw_pictures
from pictures import pictures
from tensor_images import images_of

REMEDY = r"fetch them, 2 MB, with: blemish fetch-frost"


def walk(*names: str) -> Walk:
    steps = tuple(WalkStep(name, 3.0, name, 0.0, 8, 0.5, 0) for name in names)
    return Walk(steps, WalkInfo(target=0.5))


def benchmark(*texts: str, frost: Path | None = None) -> Benchmark:
    known = blemish.catalog if frost is None else blemish.catalog.with_frost(frost)
    conditions = tuple(blemish.parse_condition(text, catalog=known) for text in texts)
    return Benchmark("mine", "Mine", "error", conditions, Protocol(preset="cifar"))


class Constant(nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.flatten(1)[:, :10]


def nothing_is_read() -> blemish.Source:
    """Images that cannot be read: what fails on them has begun to work."""

    def read(row: int) -> object:
        raise AssertionError(f"image {row} was read")

    source = blemish.open_source("demo:digits")
    return replace(source, read=read)


def calibrated() -> object:
    model = blemish.Classifier("never", "function", lambda _: pytest.fail("a model was asked"), "w")
    bench = Bench(model, images_of(pictures(2, 3, 32, 32), torch.zeros(2, dtype=torch.int64)))
    return calibrate(bench, ["fog", "frost"])


CALLS: dict[str, Callable[[Path], object]] = {
    "call": lambda _: blemish.catalog["frost"](pictures(1, 3, 32, 32), severity=1),
    "corrupt": lambda _: blemish.corrupt(pictures(1, 3, 32, 32), "frost", severity=1),
    "transform": lambda _: blemish.Corrupt("frost", severity=1),
    "chain": lambda _: blemish.Corrupt(chain((blemish.catalog["fog"], 1), (blemish.catalog["frost"], 1)), severity=5),
    "random": lambda _: random_severity(blemish.catalog["frost"])(pictures(1, 3, 32, 32)),
    "recipe": lambda _: make_recipe(["frost"], [1]),
    "all of ImageNet-C": lambda _: make_recipe(),
    "evaluate": lambda out: blemish.evaluate(Constant(), nothing_is_read(), benchmark("frost@1"), out=out),
    "in a chain": lambda out: blemish.evaluate(Constant(), nothing_is_read(), benchmark("fog@1+frost@1"), out=out),
    "imagenet-c": lambda out: blemish.evaluate(Constant(), nothing_is_read(), "imagenet-c", out=out),
    "calibrate": lambda _: calibrated(),
    "stream": lambda _: Stream(from_source(nothing_is_read()), walk("fog", "frost")),
    "overlap": lambda out: train_all(
        Plan(("fog", "frost"), "small_net", 2), pictures(2, 3, 32, 32), torch.zeros(2), out, device=torch.device("cpu")
    ),
    "equivalence": lambda _: equivalence(None, None, [blemish.parse_condition("frost@1")]),  # type: ignore[arg-type]
}


@pytest.mark.usefixtures("no_photographs")
@pytest.mark.parametrize("name", CALLS)
def test_without_its_photographs_frost_is_refused_before_any_work(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingFrostError, match=REMEDY):
        CALLS[name](tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_photographs")
class TestOthersNeedNone:
    def test_everything_else_in_the_catalog(self) -> None:
        """But for what a codec that this machine may not have makes."""
        for corruption in blemish.catalog.values():
            if corruption.name != "frost":
                with suppress(MissingCodecError):
                    corruption.check_files()

    def test_a_part_of_a_benchmark_and_its_results(self, tmp_path: Path) -> None:
        part = blemish.load_benchmark("digits-c")
        part = replace(part, conditions=part.conditions[:2])
        run = blemish.evaluate("demo:plain", "demo:digits", part, out=tmp_path, limit=20)
        assert protocol_info(part).frost is None
        assert blemish.score(run, replicates=2).headline is not None

    def test_a_stored_set(self, tmp_path: Path) -> None:
        """Frost that somebody else has made."""
        images = pictures(4, 3, 32, 32).permute(0, 2, 3, 1).numpy()
        np.savez(tmp_path / "clean.npz", images=images, labels=np.arange(4))
        (tmp_path / "set").mkdir()
        np.save(tmp_path / "set" / "frost.npy", np.concatenate([images] * 5))
        np.save(tmp_path / "set" / "labels.npy", np.tile(np.arange(4), 5))
        stored = blemish.open_stored(tmp_path / "set")
        clean = blemish.open_source(tmp_path / "clean.npz")
        model = blemish.from_module(Constant(), preprocessing=blemish.Preprocessing())
        run = blemish.evaluate(model, clean, benchmark("frost@1"), out=tmp_path / "out", stored=stored)
        assert run.info.protocol.frost is None

    def test_severity_0_and_streams_without_frost(self) -> None:
        assert walk("fog", "snow").corruptions == ("fog", "snow")
        Stream(
            from_source(nothing_is_read()), Walk((WalkStep("fog", 3.0, "frost", 0.0, 8, 0.5, 0),), WalkInfo(target=0.5))
        )

    def test_protocols_are_known_without_them(self) -> None:
        assert blemish.catalog.frost_kind == "reference"
        assert protocol_info(benchmark("frost@1")).frost == "reference"


class TestDrawn:
    def test_it_is_another_name_with_the_same_draws(self, tmp_path: Path) -> None:
        drawn, frost = blemish.catalog["frost_drawn"], blemish.catalog.with_frost(draw_pictures(tmp_path))["frost"]
        assert (drawn.family, drawn.table.rows) == (frost.family, frost.table.rows)
        assert drawn.files is None
        images = pictures(4, 3, 64, 64)
        rng = blemish.CounterRng(3, torch.arange(4), drawn.stream or "")
        params = drawn.table.at([3.0] * 4, "imagenet64")
        both = [unit.draw(blemish.Shape.of(images), params, rng) for unit in (drawn, frost)]
        assert torch.equal(both[0].texture, both[1].texture)
        assert not torch.equal(drawn(images, severity=3), frost(images, severity=3))

    def test_it_is_not_among_what_is_meant_by_default(self) -> None:
        assert len(blemish.catalog.plain()) == 19
        assert "frost_drawn" not in blemish.catalog.plain()
        named = {name for c in blemish.load_benchmark("digits-c").conditions for name in c.names()}
        assert "frost_drawn" in named
        assert "frost" not in named
        for other in ("imagenet-c", "cifar10-c", "tiny-imagenet-c"):
            assert "frost" in blemish.load_benchmark(other).groups
            assert "frost_drawn" not in blemish.load_benchmark(other).groups

    def test_both_in_one_chain_draw_apart(self) -> None:
        once, twice = (chain(*[(blemish.catalog["frost_drawn"], 3)] * n) for n in (1, 2))
        assert [link.stream for link in twice.table.links] == ["frost", "frost 2"]  # type: ignore[attr-defined]
        assert once.files is None


class TestAFolderOfYourOwn:
    def test_it_travels_to_spawned_workers_of_a_loader(self, tmp_path: Path) -> None:
        mine = blemish.catalog.with_frost(draw_pictures(tmp_path))
        data = Frosted(blemish.Corrupt("frost", 3, catalog=mine))
        loader = DataLoader(data, batch_size=3, num_workers=1, multiprocessing_context="spawn")
        assert torch.equal(next(iter(loader)), torch.stack([data[i] for i in range(3)]))

    def test_it_travels_to_worker_processes_of_a_run(self, tmp_path: Path) -> None:
        frost = draw_pictures(tmp_path / "ice")
        runs = [
            blemish.evaluate(
                blemish.open_model("demo:plain", device="cpu"),
                "demo:digits",
                benchmark("frost@3", frost=frost),
                out=tmp_path / out,
                limit=40,
                batch_size=20,
                executor=executor,
            )
            for out, executor in (("one", None), ("two", Processes(2)))
        ]
        assert {run.info.protocol.frost for run in runs} == {f"custom-{digest(frost)}"}
        parts = [run.part(blemish.parse_condition("frost@3"), 0) for run in runs]
        assert (parts[0].confidence == parts[1].confidence).all()
        drawn = blemish.evaluate(
            "demo:plain", "demo:digits", benchmark("frost_drawn@3"), out=tmp_path / "drawn", limit=40, batch_size=20
        )
        other = drawn.part(blemish.parse_condition("frost_drawn@3"), 0)
        assert (parts[0].confidence != other.confidence).any()

    def test_a_run_is_not_continued_with_other_photographs(self, tmp_path: Path) -> None:
        folders = [draw_pictures(tmp_path / str(seed), seed) for seed in (1, 2)]
        settings = {"model": "demo:plain", "data": "demo:digits", "out": tmp_path / "out", "limit": 10}
        blemish.evaluate(benchmark=benchmark("frost@3", frost=folders[0]), **settings)  # type: ignore[arg-type]
        with pytest.raises(blemish.InputError, match=r"protocol\.frost was"):
            blemish.evaluate(benchmark=benchmark("frost@3", frost=folders[1]), **settings)  # type: ignore[arg-type]

    def test_chains_and_random_severities_keep_it(self, tmp_path: Path) -> None:
        mine = blemish.catalog.with_frost(draw_pictures(tmp_path))["frost"]
        both = chain((blemish.catalog["fog"], 1), (mine, 2))
        kind = f"custom-{digest(tmp_path)}"
        for made in (both, random_severity(mine), pickle.loads(pickle.dumps(both))):
            assert made.files is not None
            assert made.files.kind == kind
            made.check_files()

    def test_the_header_names_the_photographs_and_not_the_code(self, tmp_path: Path) -> None:
        entry = asdict(protocol_info(benchmark("frost@3", frost=draw_pictures(tmp_path))))
        assert entry["frost"] == f"custom-{digest(tmp_path)}"
        assert entry["corruptions"] == {"frost": blemish.catalog["frost"].version}

    def test_the_same_photographs_are_the_same_corruption(self, tmp_path: Path) -> None:
        one, two = (blemish.catalog.with_frost(draw_pictures(tmp_path / name))["frost"] for name in ("one", "two"))
        assert one == two == pickle.loads(pickle.dumps(one))
        assert one != blemish.catalog["frost"]
        assert blemish.catalog["frost"] == pickle.loads(pickle.dumps(blemish.catalog["frost"]))

    def test_a_catalog_without_frost_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(blemish.InputError, match="unknown corruption 'frost'"):
            blemish.Catalog(blemish.catalog["fog"]).with_frost(draw_pictures(tmp_path))
