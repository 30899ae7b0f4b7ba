"""Running a benchmark again: what is skipped, continued or refused, and what survives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError, StorageError
from blemish.evaluation.records import read_records
from blemish.evaluation.runs import find_runs, record_path
from told_steps import Step, Steps
from toy_runs import benchmark, evaluate, forward, model, source
from until import until


def test_a_second_run_repeats_nothing(tmp_path: Path) -> None:
    wanted = benchmark("fog@1", "fog@2")
    run = evaluate(model(), source(), wanted, out=tmp_path)
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*.parquet")}
    missing = record_path(run.folder, parse_condition("fog@2"))
    content = missing.read_bytes()
    missing.unlink()
    steps = Steps()
    again = evaluate(model(), source(), wanted, out=tmp_path, report=steps)
    assert {step.condition for step in steps} == {"fog@2"}
    assert steps[0].done == 40
    assert steps[-1] == Step(60, 60, "fog@2")
    assert missing.read_bytes() == content
    assert {path: path.stat().st_mtime_ns for path in again.folder.rglob("*.parquet") if path != missing} == {
        path: stamp for path, stamp in before.items() if path != missing
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"wanted": benchmark("fog@1", seed=1)}, "protocol.seed was 0, now 1"),
        ({"wanted": benchmark("fog@3")}, "its benchmark has fog@1, which mine has not"),
        ({"model": model(weights="w2")}, 'model.weights was "w1", now "w2"'),
        ({"source": source(base=5)}, "data.fingerprint"),
        ({"source": source(19)}, "data.images was 20, now 19"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path, change: dict[str, object], field: str) -> None:
    settings: dict[str, object] = {"wanted": benchmark("fog@1"), "model": model(), "source": source(), "limit": None}
    run = evaluate(model(), source(), benchmark("fog@1"), out=tmp_path)
    before = (run.folder / "run.json").read_bytes()
    wanted = {**settings, **change}
    with pytest.raises(InputError, match="holds results of another run") as caught:
        evaluate(wanted["model"], wanted["source"], wanted["wanted"], out=tmp_path, limit=wanted["limit"])  # type: ignore[arg-type]
    assert field in str(caught.value)
    assert (run.folder / "run.json").read_bytes() == before


def test_a_wider_interval_does_not_cut_a_finished_run_short(tmp_path: Path) -> None:
    settings = (model(), source(70), benchmark("fog@1"))
    evaluate(*settings, out=tmp_path, limit=10, stop_when=lambda _, look: look == 3)
    pictures = (tmp_path / "toy" / "pictures.npz").read_bytes()
    again = evaluate(*settings, out=tmp_path, limit=10, stop_when=lambda *_: True)
    assert again.stages == 3
    assert (tmp_path / "toy" / "pictures.npz").read_bytes() == pictures
    further = evaluate(*settings, out=tmp_path, limit=10, stop_when=lambda _, look: look == 4)
    assert further.stages == 4
    assert (tmp_path / "toy" / "pictures.npz").read_bytes() != pictures


def test_a_first_attempt_that_failed_binds_nobody(tmp_path: Path) -> None:
    broken = replace(model(), forward=lambda values: forward(values)[:, :2])
    with pytest.raises(InputError, match="expected labels below 2"):
        evaluate(broken, source(), benchmark("fog@1"), out=tmp_path)
    run = evaluate(model(weights="w2"), source(30), benchmark("fog@2"), out=tmp_path)
    assert len(run.records(parse_condition("fog@2"))) == 30


def test_a_model_that_changed_is_not_continued_with(tmp_path: Path) -> None:
    wanted = benchmark("fog@1", "fog@2")
    run = evaluate(model(), source(), wanted, out=tmp_path)
    record_path(run.folder, parse_condition("fog@2")).unlink()
    other = replace(model(), forward=lambda values: forward(values).flip(1))
    with pytest.raises(InputError, match="gives other scores for"):
        evaluate(other, source(), wanted, out=tmp_path)


def test_zipf_distances_can_be_asked_for_later(tmp_path: Path) -> None:
    wanted = benchmark("p:translate@1", "fog@1")
    condition = parse_condition("p:translate@1")
    assert evaluate(model(), source(4), wanted, out=tmp_path).records(condition).zipf is None
    steps = Steps()
    run = evaluate(model(), source(4), wanted, out=tmp_path, zipf=True, report=steps)
    assert {step.condition for step in steps} == {"p:translate@1"}
    assert run.records(condition).zipf is not None
    # Having them does no harm to those who do not ask.
    assert evaluate(model(), source(4), wanted, out=tmp_path).records(condition).zipf is not None


def test_damaged_records_are_not_skipped(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark("fog@1"), out=tmp_path)
    record_path(run.folder, parse_condition("fog@1")).write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InputError, match="remove the file to measure it again"):
        evaluate(model(), source(), benchmark("fog@1"), out=tmp_path)


CHILD = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from dataclasses import replace
from pathlib import Path
from toy_runs import benchmark, evaluate, forward, model, source

def stopping(values):  # for ever, once three conditions are finished
    if len([*Path(sys.argv[2]).glob("*/records/*.parquet")]) >= 3:
        threading.Event().wait()
    return forward(values)

wanted = benchmark(*[f"fog@{s}" for s in (1, 2, 3, 4, 5)])
evaluate(replace(model(), forward=stopping), source(), wanted, out=sys.argv[2], batch_size=4)
"""


def test_a_killed_run_loses_only_the_condition_in_progress(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(tmp_path / "killed")]
    child = subprocess.Popen(arguments, env={**os.environ, "OMP_NUM_THREADS": "1"})
    records = tmp_path / "killed" / "toy" / "records"
    until(lambda: len([*records.glob("*.parquet")]) >= 3, child)
    child.send_signal(signal.SIGKILL)
    child.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in records.glob("*.parquet")}
    assert 3 <= len(finished) < 6
    for path in records.glob("*.parquet"):
        assert len(read_records(path)) == 20
    wanted = benchmark(*[f"fog@{s}" for s in (1, 2, 3, 4, 5)])
    run = evaluate(model(), source(), wanted, out=tmp_path / "killed", batch_size=4)
    assert {name: (records / name).stat().st_mtime_ns for name in finished} == finished
    whole = evaluate(model(), source(), wanted, out=tmp_path / "whole", batch_size=4)
    for condition in wanted.conditions:
        assert record_path(run.folder, condition).read_bytes() == record_path(whole.folder, condition).read_bytes()
    assert not [*run.folder.glob(".blemish-unfinished/*")]


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    def second(done: int, total: int | None, what: str = "") -> None:
        with pytest.raises(StorageError, match="another run is writing"):
            evaluate(model(), source(), benchmark("fog@1"), out=tmp_path)

    evaluate(model(), source(), benchmark("fog@1"), out=tmp_path, report=second)


def test_damaged_records_are_named(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark("fog@1"), out=tmp_path)
    path = record_path(run.folder, parse_condition("fog@1"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"fog@1\.parquet: not a readable file of records"):
        run.records(parse_condition("fog@1"))


def test_records_of_another_run_are_not_mixed_in(tmp_path: Path) -> None:
    run = evaluate(model(), source(), benchmark("fog@1"), out=tmp_path / "a")
    other = evaluate(model(), source(), benchmark("fog@1", seed=1), out=tmp_path / "b")
    condition = parse_condition("fog@1")
    record_path(run.folder, condition).write_bytes(record_path(other.folder, condition).read_bytes())
    with pytest.raises(InputError, match="its protocol is not that of"):
        run.records(condition)


def test_unreadable_run_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        find_runs([tmp_path / "none"])
    with pytest.raises(InputError, match="no results in it"):
        find_runs([tmp_path])
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "run.json").write_text("[]")
    with pytest.raises(InputError, match="not a readable run file"):
        find_runs([tmp_path])
    (tmp_path / "m" / "run.json").write_text(json.dumps({"model": {}}))
    with pytest.raises(InputError, match="not a readable run file"):
        find_runs([tmp_path])
