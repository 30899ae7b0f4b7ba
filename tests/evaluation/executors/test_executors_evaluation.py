"""Evaluation on executors: the same files, bit for bit, whoever measures them and whatever is killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.data.cache import load
from blemish.data.open import open_source, open_stored
from blemish.evaluation.executors import Executor, InProcess, Processes
from blemish.evaluation.executors.failures import FAILURES_FILE
from blemish.evaluation.header import made_with
from blemish.evaluation.jobs import PlanJob
from blemish.evaluation.parts import UNFINISHED, spans_left
from blemish.evaluation.plan import plan_for
from blemish.evaluation.recording import Outputs
from blemish.evaluation.records import read_records
from blemish.export import corrupt_arrays, make_recipe
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.models.speed import compile_seconds, speed_up
from blemish.models.torch_module import from_module
from execution_jobs import Net, benchmark, evaluate, pictures, records_of
from told_steps import Steps
from until import PATIENCE, until

CONDITIONS = ("gaussian_noise@3", "fog@1-5", "p:gaussian_noise@1", "p:translate@2", "brightness@5")
TWO: Executor = Processes(2, threads=1)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("spawned_workers")
def test_processes_write_the_same_files(tmp_path: Path) -> None:
    steps = Steps()
    evaluate(Net(), pictures(), benchmark(*CONDITIONS), out=tmp_path / "one", batch_size=4, zipf=True)
    run = evaluate(
        Net(), pictures(), benchmark(*CONDITIONS), out=tmp_path / "two", batch_size=4, zipf=True, executor=TWO,
        report=steps,
    )  # fmt: skip
    assert len(records_of(tmp_path / "one")) == 1 + len(CONDITIONS)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")
    assert not (run.folder / UNFINISHED).exists()
    assert steps[-1].done <= steps[-1].total == max(step.done for step in steps)
    assert {step.condition for step in steps} == {"clean", *CONDITIONS}
    assert [step.done for step in steps] == sorted(step.done for step in steps)


def test_a_model_opened_from_a_text(tmp_path: Path) -> None:
    wanted = benchmark("fog@2", "shot_noise@4")
    model = replace(open_model("demo:noisy", device="cpu"), name="mine")
    digits = open_source("demo:digits")
    evaluate(model, digits, wanted, out=tmp_path / "one", limit=300, batch_size=32)
    evaluate(model, digits, wanted, out=tmp_path / "two", limit=300, batch_size=32, executor=TWO)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")


def test_threads_do_not_change_what_the_demo_net_says(tmp_path: Path) -> None:
    wanted, digits = benchmark("fog@2"), open_source("demo:digits")
    for threads in (1, 2):
        executor = Processes(1, threads=threads)
        evaluate("demo:plain", digits, wanted, out=tmp_path / str(threads), limit=100, executor=executor)
    assert records_of(tmp_path / "1") == records_of(tmp_path / "2")


def test_workers_whose_models_have_other_numbers_of_classes(tmp_path: Path) -> None:
    """Each worker compares the batches that it sees; the coordinator compares the workers."""

    class Differing(InProcess):
        def run(self, job: Any, units: Any, *, progress: Any = None, **settings: Any) -> Any:
            def told(unit: Any, what: Any) -> None:
                number = [*shards].index(unit)
                progress(unit, replace(what, count=4 + number) if isinstance(what, Outputs) else what)

            shards = list(units)
            return super().run(job, shards, progress=told, **settings)

    said = "model Net: 5 classes in fog@2, 4 before; expected as many for all images"
    with pytest.raises(InputError, match=said):
        evaluate(Net(), pictures(8), benchmark("fog@2"), out=tmp_path, executor=Differing())


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    wanted = benchmark("gaussian_noise@3", "fog@2")
    evaluate(Net(), pictures(), wanted, out=tmp_path / "one", batch_size=4)
    killer = from_module(Net(kill=tmp_path / "killed"), name="Net")
    evaluate(killer, pictures(), wanted, out=tmp_path / "two", batch_size=4, executor=TWO)
    assert (tmp_path / "killed").exists()
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")


def test_what_fails_is_told_and_the_rest_is_measured(tmp_path: Path) -> None:
    wanted = benchmark("gaussian_noise@3", "brightness@5", "fog@2")
    model = from_module(Net(refuse_bright=True), name="Net")
    with pytest.raises(InputError, match=f"(?s)failed: brightness@5 .*all others are done.*{FAILURES_FILE}"):
        evaluate(model, pictures(), wanted, out=tmp_path / "two", batch_size=4, executor=TWO)
    log = tmp_path / "two" / "Net" / FAILURES_FILE
    assert "too bright" in log.read_text()
    assert "Traceback" in log.read_text()
    assert [name.partition("@")[0] for name in records_of(tmp_path / "two")] == [
        "clean.parquet", "fog", "gaussian_noise"
    ]  # fmt: skip
    evaluate(Net(), pictures(), wanted, out=tmp_path / "two", batch_size=4)
    evaluate(Net(), pictures(), wanted, out=tmp_path / "one", batch_size=4)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")
    assert not log.exists()


def test_finished_parts_survive_a_killed_coordinator(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[2])\n"
        "from execution_jobs import Net, benchmark, evaluate, pictures\n"
        "from blemish.evaluation.executors import Processes\n"
        "if __name__ == '__main__':\n"
        "    evaluate(Net(seconds=0.1), pictures(), benchmark('fog@2', 'snow@1'), out=sys.argv[1], batch_size=1,\n"
        "             executor=Processes(3, threads=1))\n"
    )
    command = [sys.executable, str(script), str(tmp_path / "two"), str(Path(__file__).parents[2])]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        until(lambda: [*(tmp_path / "two").glob(f"*/{UNFINISHED}/*/*.parquet")], parent)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(PATIENCE)
    parts = list((tmp_path / "two").glob(f"*/{UNFINISHED}/*/*.parquet"))
    assert parts
    measured = sum(len(read_records(path)) for path in parts)
    steps = Steps()
    wanted = benchmark("fog@2", "snow@1")
    evaluate(Net(), pictures(), wanted, out=tmp_path / "two", batch_size=1, report=steps)
    assert steps[0].done >= measured, "parts are not measured again"
    evaluate(Net(), pictures(), wanted, out=tmp_path / "one", batch_size=1)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")
    assert not list((tmp_path / "two").glob(f"*/{UNFINISHED}"))


@pytest.mark.parametrize("damage", ["cut", "other batches", "another run"])
def test_parts_that_are_not_this_runs_are_measured_again(tmp_path: Path, damage: str) -> None:
    wanted = benchmark("fog@2", "brightness@5")
    with pytest.raises(InputError, match="failed"):
        evaluate(
            from_module(_DarkFirst(), name="Net"), pictures(), wanted, out=tmp_path / "two", batch_size=4,
            executor=_Divided(retries=0),
        )  # fmt: skip
    parts = list((tmp_path / "two").glob(f"*/{UNFINISHED}/*/*.parquet"))
    assert parts
    if damage == "cut":
        for path in parts:
            path.write_bytes(path.read_bytes()[:-20])
    if damage == "another run":
        for path in parts:
            path.rename(path.with_name(f"4-90-{path.stem}.parquet"))
    size = 5 if damage == "other batches" else 4
    evaluate(from_module(_Dark(), name="Net"), pictures(), wanted, out=tmp_path / "two", batch_size=size)
    evaluate(from_module(_Dark(), name="Net"), pictures(), wanted, out=tmp_path / "one", batch_size=size)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")


class _Dark(Net):
    pass


class _DarkFirst(_Dark):
    """Fails at its last batches under brightness, after other parts are done."""

    def __init__(self) -> None:
        super().__init__(refuse_bright=True)
        self.seen = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen += float(images.mean()) > 0.6
        if self.seen > 6:
            return super().forward(images)
        return self.last(self.layers(images))  # type: ignore[no-any-return]


class _Divided(InProcess):
    """In this process, but in parts, as if there were workers."""

    @property
    def workers(self) -> int:
        return 3


def test_stored_sets(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "clean.npz", images=images, labels=np.arange(30) % 7)
    corrupt_arrays(tmp_path / "clean.npz", tmp_path / "set", make_recipe(["fog", "contrast"], [1, 2, 3, 4, 5]))
    wanted = benchmark("fog@2", "contrast@5")
    source, stored = open_source(tmp_path / "clean.npz"), open_stored(tmp_path / "set")
    evaluate(Net(), source, wanted, out=tmp_path / "one", stored=stored, batch_size=4)
    evaluate(Net(), source, wanted, out=tmp_path / "two", stored=stored, batch_size=4, executor=TWO)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")


def test_a_model_that_cannot_travel(tmp_path: Path) -> None:
    model = Classifier("local", "function", lambda values: values.flatten(1)[:, :7], "w")
    with pytest.raises(InputError, match="model local cannot be sent to other processes"):
        evaluate(model, pictures(), benchmark("fog@2"), out=tmp_path, executor=TWO)


@given(
    count=st.integers(1, 40),
    shares=st.integers(1, 12),
    cuts=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6),
)
def test_spans_cover_what_is_missing_once(count: int, shares: int, cuts: list[tuple[int, int]]) -> None:
    measured = [(min(a, b, count), min(max(a, b), count)) for a, b in cuts]
    left = spans_left(count, measured, shares)
    covered = [batch for _, (first, last) in left for batch in range(first, last)]
    known = {batch for first, last in measured for batch in range(first, last)}
    assert sorted(covered) == [batch for batch in range(count) if batch not in known]
    for share, (first, last) in left:
        assert share * count // shares <= first < last <= (share + 1) * count // shares


def test_workers_tell_how_long_they_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling itself is switched off, which takes a minute on a CPU; the first batch is timed all the same."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    model = speed_up(from_module(Net(), name="Net"), compiled=True)
    evaluate(model, pictures(8), benchmark("brightness@1"), out=tmp_path, batch_size=4, executor=Processes(2))
    assert model.forward._run is None, "not used in this process"
    assert compile_seconds(model) > 0


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2])
def test_processes_on_a_gpu(tmp_path: Path, count: int) -> None:
    """One process per GPU is the same code as several on one, which is what a machine with one GPU can test."""
    model = from_module(Net(), name="Net", device="cuda")
    executor = Processes(count, devices=tuple(f"cuda:{number}" for number in range(torch.cuda.device_count())))
    evaluate(model, pictures(), benchmark(*CONDITIONS), out=tmp_path / "one", batch_size=4, zipf=True)
    evaluate(
        model, pictures(), benchmark(*CONDITIONS), out=tmp_path / "two", batch_size=4, zipf=True, executor=executor
    )
    assert records_of(tmp_path / "one") == records_of(tmp_path / "two")


def test_workers_with_other_libraries_are_refused() -> None:
    plan = plan_for(from_module(Net()), load(pictures()))
    job = PlanJob(plan, lambda *_: None, versions={**made_with(), "torch": "0.1"})
    with pytest.raises(InputError, match=r'differs from the coordinator: torch was "0\.1", now'):
        job.open(None)
