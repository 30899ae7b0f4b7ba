"""The Ray executor on a local cluster of two nodes made of processes: the same records, and workers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from blemish.core.errors import InputError, WorkerError
from blemish.data.demo import demo_picture
from blemish.data.open import open_source
from blemish.evaluation.executors import Done, Failed, RayExecutor, pool, ray_cluster
from blemish.models.torch_module import from_module
from execution_checks import KILL, check_calibration, check_corrupted_copies, check_materialised_stream, check_training
from execution_jobs import Afterwards, Net, Overlapping, Squares, Unopenable, benchmark, evaluate, pictures, records_of
from told_steps import Steps
from until import PATIENCE, until

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'blemish[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]  # warnings of Ray's own


@pytest.fixture(scope="module")
def executor() -> Iterator[RayExecutor]:
    """Two nodes with one core each, so that two workers are never on the same node.

    Workers are kept from test to test, because starting one takes seconds; those that are killed are replaced.
    """
    from ray.cluster_utils import Cluster

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args={**memory, "include_dashboard": False})
        cluster.add_node(**memory)
        with RayExecutor(cluster.address, retries=1) as executor:
            yield executor
        ray.shutdown()
        cluster.shutdown()
    torch.set_num_threads(before)


def test_the_cluster_has_two_nodes(executor: RayExecutor) -> None:
    assert sum(node["Alive"] for node in ray.nodes()) == 2
    assert executor.workers == 2
    assert executor.reach == "cluster"


def test_units_fail_die_and_are_repeated(executor: RayExecutor, tmp_path: Path) -> None:
    told: list[tuple[int, Any]] = []
    job = Squares(tmp_path, die=(1,), fail_once=(2,), fail_always=(3,), refuse=(4,), seconds=0.2)
    found = {
        outcome.unit: outcome
        for outcome in executor.run(job, range(8), progress=lambda unit, what: told.append((unit, what)))
    }
    assert {unit for unit, outcome in found.items() if isinstance(outcome, Done)} == {0, 1, 2, 5, 6, 7}
    assert all(found[unit].result[0] == unit * unit for unit in (0, 1, 2, 5, 6, 7))
    assert isinstance(found[3], Failed)
    assert "ZeroDivisionError: unit 3" in found[3].traceback
    assert found[3].attempts == 2
    assert isinstance(found[4], Failed)
    assert (found[4].attempts, found[4].bad_input) == (1, True)
    assert {(unit, "ended") for unit in (0, 1, 2, 5, 6, 7)} <= {*told}
    assert all((unit, "ended") not in told for unit in (3, 4))


def test_results_that_come_later(executor: RayExecutor, tmp_path: Path) -> None:
    job = Afterwards(tmp_path, die=(1,), fail_once=(2,), refuse=(4,))
    found = {outcome.unit: outcome for outcome in executor.run(job, range(10))}
    done = {unit: outcome.result for unit, outcome in found.items() if isinstance(outcome, Done)}
    assert done == {unit: unit * unit for unit in range(10) if unit != 4}
    assert found[4].bad_input


def test_the_next_unit_begins_before_the_last_is_finished(executor: RayExecutor, tmp_path: Path) -> None:
    executor.__exit__()  # its workers, which are kept, would leave no place for another
    outcomes = list(replace(executor, count=1).run(Overlapping(tmp_path, 3), range(4)))
    executor.__enter__()
    assert [outcome.result for outcome in outcomes if isinstance(outcome, Done)] == [0, 1, 2, 3]


def test_jobs_that_cannot_be_opened(executor: RayExecutor) -> None:
    with pytest.raises(InputError, match="no such model"):
        list(executor.run(Unopenable("input"), [1]))
    with pytest.raises(WorkerError, match=r"(?s)workers cannot start.*broken"):
        list(executor.run(Unopenable("raise"), [1]))


def test_the_same_records_with_a_worker_killed(executor: RayExecutor, tmp_path: Path) -> None:
    wanted = benchmark("gaussian_noise@3", "p:gaussian_noise@1", "fog@1-5")
    evaluate(Net(), pictures(), wanted, out=tmp_path / "one", batch_size=4, zipf=True)
    killer = from_module(Net(kill=tmp_path / "killed"), name="Net")
    steps = Steps()
    evaluate(
        killer,
        pictures(),
        wanted,
        out=tmp_path / "ray",
        batch_size=4,
        zipf=True,
        executor=executor,
        report=steps,
    )
    assert (tmp_path / "killed").exists(), "no worker was killed"
    assert records_of(tmp_path / "one") == records_of(tmp_path / "ray")
    assert steps[-1].done == steps[-1].total


def test_workers_that_are_kept(executor: RayExecutor, tmp_path: Path) -> None:
    with executor:
        pids = [{outcome.result[1] for outcome in executor.run(Squares(tmp_path), range(6))} for _ in range(3)]  # type: ignore[union-attr]
    # Either of the two may do all units of a job; new ones for each job would be three at least.
    assert len(set().union(*pids)) <= 2


def test_a_kept_worker_tells_of_its_own_units_only(executor: RayExecutor, tmp_path: Path) -> None:
    """What it told of the last job's units stays in it until it has begun the next."""
    for _ in range(4):
        told: list[tuple[int, str]] = []
        list(
            executor.run(Squares(tmp_path), range(2), progress=lambda unit, what, told=told: told.append((unit, what)))
        )
        assert sorted(told) == sorted((unit, what) for unit in range(2) for what in ("begun", "ended"))


def test_a_worker_killed_from_outside(executor: RayExecutor, tmp_path: Path) -> None:
    outcomes = executor.run(Squares(tmp_path, seconds=0.3), range(12))
    first = next(outcomes)
    assert isinstance(first, Done)
    os.kill(first.result[1], signal.SIGKILL)
    rest = list(outcomes)
    assert all(isinstance(outcome, Done) for outcome in rest)
    assert {first.unit, *(outcome.unit for outcome in rest)} == set(range(12))


def test_models_and_images_by_name(executor: RayExecutor, tmp_path: Path) -> None:
    digits = open_source("demo:digits")
    wanted = benchmark("fog@2")
    evaluate("demo:plain", digits, wanted, out=tmp_path / "one", limit=200, batch_size=16)
    evaluate("demo:plain", digits, wanted, out=tmp_path / "ray", limit=200, batch_size=16, executor=executor)
    assert records_of(tmp_path / "one") == records_of(tmp_path / "ray")


def test_images_that_stay_here(executor: RayExecutor, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pictures: these images cannot be opened on other machines"):
        evaluate(Net(), replace(pictures(), reopen=None), benchmark("fog@2"), out=tmp_path, executor=executor)


def test_other_images_on_a_worker_are_noticed(executor: RayExecutor, tmp_path: Path) -> None:
    moved = replace(pictures(), reopen=pictures(40, ((32, 32), (24, 40), (32, 32), (32, 32))).reopen)
    with pytest.raises(InputError, match="a worker sees other images"):
        evaluate(Net(), moved, benchmark("fog@2"), out=tmp_path, executor=executor, batch_size=4)


def test_data_sets_do_not_go_to_the_object_store(
    executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "LARGEST_JOB", 1000)
    with pytest.raises(InputError, match="name models and images by a text or a path"):
        evaluate(Net(), pictures(), benchmark("fog@2"), out=tmp_path, executor=executor)


def test_training(executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL, str(tmp_path / "killed"))
    check_training(executor, tmp_path, killed=True)


def test_calibration(executor: RayExecutor, tmp_path: Path) -> None:
    check_calibration(executor, tmp_path)


def test_streams(executor: RayExecutor, tmp_path: Path) -> None:
    check_materialised_stream(executor, tmp_path)


def test_corrupted_copies(executor: RayExecutor, tmp_path: Path) -> None:
    check_corrupted_copies(executor, tmp_path)


def test_waiting_for_a_place_is_told(executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is ready at once."""
    monkeypatch.setattr(pool, "_PATIENCE_SECONDS", 0.0)
    with pytest.warns(RuntimeWarning, match="no worker is ready after 0 s, but we go on waiting; each needs"):
        outcomes = list(executor.run(Squares(tmp_path), range(3)))
    assert {outcome.unit for outcome in outcomes} == {0, 1, 2}


def test_sigterm_ends_a_command_in_peace(tmp_path: Path) -> None:
    """Ray's own handler would dump the stack of its C++ code and abort."""
    for number in range(60):
        path = tmp_path / "src" / "a" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        demo_picture(224).save(path)
    command = [
        "corrupt",
        str(tmp_path / "src"),
        "-o",
        str(tmp_path / "out"),
        "-c",
        "fog,snow",
        "--ray",
        "local",
        "-j",
        "1",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "blemish", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: [*(tmp_path / "out").glob("*/*/*/*.jpg")], process)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "Run the same command again to continue" in said
    assert "SIGTERM" not in said
    assert "Traceback" not in said
