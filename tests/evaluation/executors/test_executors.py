"""Executors: every unit has one outcome, failures are repeated and told, workers come and go."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from blemish.core.errors import InputError, WorkerError
from blemish.evaluation.executors import Done, Executor, Failed, InProcess, Processes, RayExecutor
from blemish.evaluation.executors.base import torch_threads
from blemish.evaluation.executors.failures import FAILURES_FILE, completed
from blemish.evaluation.executors.worker import OPENING, Queued, serve
from execution_jobs import Afterwards, Overlapping, Sleeper, Squares, Unopenable, Weighty
from until import PATIENCE, until

EXECUTORS: list[Executor] = [InProcess(), Processes(2)]


def test_what_a_worker_says(tmp_path: Path) -> None:
    """Of each unit in turn, by its number; what cannot travel is the unit's failure, and the worker lives on."""
    units: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    said: list[bytes] = []
    for number in (1, 2, 3, 4):
        units.put(pickle.dumps((number, pickle.dumps(number))))
    units.put(pickle.dumps((5, b"not a pickle")))
    units.put(b"")
    job = Afterwards(tmp_path, not_to_send=(1, 2), at_once=(2,), refuse=(4,))
    serve(pickle.dumps(job), torch.get_num_threads(), "cpu", units.get, said.append)
    assert said.pop() == b""
    messages = [pickle.loads(content) for content in said]
    assert messages[0] == Done(OPENING, None)
    assert [message.unit for message in messages if isinstance(message, Queued)] == [1, 3, 4]
    outcomes = {message.unit: message for message in messages[1:] if not isinstance(message, Queued)}
    assert ["ickl" in outcomes[unit].reason for unit in (1, 2, 5)] == [True, True, True]
    assert outcomes[3] == Done(3, 9)
    assert outcomes[4].bad_input
    # A unit that is queued is reported before the next one is.
    assert messages.index(outcomes[1]) < messages.index(Queued(3)) < messages.index(outcomes[3])


@pytest.mark.ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999"])
def test_a_cluster_that_is_not_there(address: str) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'blemish[ray]'")
    assert not ray.is_initialized()
    with pytest.raises(InputError, match=f"no Ray cluster at {address}"):
        RayExecutor(address)


def results(executor: Executor, job: Squares, units: Any, **settings: Any) -> dict[int, Any]:
    found = list(executor.run(job, units, **settings))
    assert len({outcome.unit for outcome in found}) == len(found), "a unit with two outcomes"
    return {outcome.unit: outcome for outcome in found}


@pytest.mark.parametrize("executor", EXECUTORS, ids=["in-process", "processes"])
class TestEveryExecutor:
    def test_each_unit_is_done(self, executor: Executor, tmp_path: Path) -> None:
        found = results(executor, Squares(tmp_path), iter(range(20)))
        assert {unit: outcome.result[0] for unit, outcome in found.items()} == {n: n * n for n in range(20)}

    def test_no_units(self, executor: Executor, tmp_path: Path) -> None:
        assert results(executor, Squares(tmp_path), []) == {}

    def test_failures_are_repeated_then_told_and_the_rest_is_done(self, executor: Executor, tmp_path: Path) -> None:
        job = Squares(tmp_path, fail_once=(1,), fail_always=(2,), refuse=(3,))
        found = results(executor, job, range(6))
        assert {unit for unit, outcome in found.items() if isinstance(outcome, Done)} == {0, 1, 4, 5}
        assert isinstance(found[2], Failed)
        assert (found[2].attempts, found[2].bad_input) == (3, False)
        assert "ZeroDivisionError: unit 2" in found[2].traceback
        assert isinstance(found[3], Failed)
        assert (found[3].attempts, found[3].bad_input) == (1, True)
        assert found[3].reason == "3 is refused; expected another number"

    def test_progress(self, executor: Executor, tmp_path: Path) -> None:
        told: list[tuple[int, str]] = []
        results(executor, Squares(tmp_path), range(4), progress=lambda unit, what: told.append((unit, what)))
        assert sorted(told) == sorted((unit, what) for unit in range(4) for what in ("begun", "ended"))

    def test_results_that_come_later(self, executor: Executor, tmp_path: Path) -> None:
        job = Afterwards(tmp_path, fail_once=(1,), fail_always=(4,))
        found = {outcome.unit: outcome for outcome in executor.run(job, range(5))}
        done = {unit: outcome.result for unit, outcome in found.items() if isinstance(outcome, Done)}
        assert done == {0: 0, 1: 1, 2: 4, 3: 9}
        assert isinstance(found[4], Failed)
        assert "ZeroDivisionError: unit 4" in found[4].traceback

    def test_threads(self, executor: Executor, tmp_path: Path) -> None:
        before = torch.get_num_threads()
        found = results(executor, Squares(tmp_path), range(2), threads=3)
        assert {outcome.result[2] for outcome in found.values()} == {3}
        assert torch.get_num_threads() == before

    def test_as_many_threads_as_here(self, executor: Executor, tmp_path: Path) -> None:
        """The number of threads can change the last bit, so it is the same with workers as without."""
        with torch_threads(3):
            found = results(executor, Squares(tmp_path), range(2))
        assert {outcome.result[2] for outcome in found.values()} == {3}

    def test_bad_input_while_opening(self, executor: Executor) -> None:
        with pytest.raises(InputError, match="no such model"):
            list(executor.run(Unopenable("input"), [1]))


class TestProcesses:
    def test_killed_workers_are_replaced(self, tmp_path: Path) -> None:
        found = results(Processes(2), Squares(tmp_path, die=(1, 4)), range(8))
        assert all(isinstance(outcome, Done) for outcome in found.values())
        assert len(list(tmp_path.glob("opened-*"))) >= 3, "two at first, and others for those that were killed"

    def test_a_unit_that_always_kills(self, tmp_path: Path) -> None:
        found = results(Processes(2), Squares(tmp_path, die_always=(1,)), range(4))
        failed = found.pop(1)
        assert isinstance(failed, Failed)
        assert failed.attempts == 3
        assert failed.lost
        assert "SIGKILL" in failed.reason
        assert all(isinstance(outcome, Done) for outcome in found.values())

    @pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="no /proc that tells of calls here")
    def test_a_worker_killed_while_it_sends(self, tmp_path: Path) -> None:
        """Half a message is no message, and nobody waits for the other half."""
        found = list(Processes(1, retries=1).run(Weighty(tmp_path), range(2)))
        assert (tmp_path / "killed").exists()
        assert [len(outcome.result) for outcome in found if isinstance(outcome, Done)] == [2**26, 2**26]

    @pytest.mark.parametrize(("how", "reason"), [("kill", "SIGKILL"), ("raise", "RuntimeError: broken")])
    def test_workers_that_cannot_start(self, how: str, reason: str) -> None:
        with pytest.raises(WorkerError, match=f"(?s)workers cannot start.*{reason}"):
            list(Processes(1, retries=0).run(Unopenable(how), range(4)))

    def test_units_of_a_key_stay_with_a_worker(self, tmp_path: Path) -> None:
        # Long enough that both workers are there before half of the units are done.
        job = Squares(tmp_path, seconds=0.3)
        found = results(Processes(2), job, range(20), key=lambda unit: unit % 2)
        places = [{found[unit].result[1] for unit in range(first, 16, 2)} for first in (0, 1)]
        assert sum(len(place) for place in places) <= 3  # at the end, an idle worker helps the other

    def test_workers_that_are_kept(self, tmp_path: Path) -> None:
        executor = Processes(2)
        with executor, executor:
            found = [results(executor, Squares(tmp_path, seconds=0.1), range(8), threads=n) for n in (1, 2)]
            with pytest.raises(InputError, match="no such model"):
                list(executor.run(Unopenable("input"), [1]))
            found.append(results(executor, Squares(tmp_path, die=(1,)), range(4)))
        pids = [{outcome.result[1] for outcome in run.values()} for run in found]
        # On a quick machine one worker may do everything before the other has started.
        assert pids[0] & pids[1]
        assert len(pids[0] | pids[1]) <= 2
        assert [{outcome.result[2] for outcome in run.values()} for run in found[:2]] == [{1}, {2}]
        assert not any(alive(pid) for run in pids for pid in run)

    def test_the_next_unit_begins_before_the_last_is_finished(self, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []
        outcomes = Processes(1).run(
            Overlapping(tmp_path, 4), range(5), progress=lambda unit, what: told.append((unit, what))
        )
        assert [outcome.result for outcome in outcomes if isinstance(outcome, Done)] == [0, 1, 2, 3, 4]
        assert told == [(unit, unit) for unit in range(5)]

    def test_workers_killed_while_results_come_later(self, tmp_path: Path) -> None:
        """Of two units that a dead worker had, only the one that does it again, alone, is to blame."""
        job = Afterwards(tmp_path, die=(1,), die_always=(6,), refuse=(3,))
        found = {outcome.unit: outcome for outcome in Processes(2, retries=1).run(job, range(12))}
        done = {unit: outcome.result for unit, outcome in found.items() if isinstance(outcome, Done)}
        assert done == {unit: unit * unit for unit in range(12) if unit not in (3, 6)}
        assert [found[unit].bad_input for unit in (3, 6)] == [True, False]
        assert "SIGKILL" in found[6].reason

    def test_results_that_leave_or_cannot_travel(self, tmp_path: Path) -> None:
        """Whatever happens to a result, somebody hears of it."""
        job = Afterwards(tmp_path, leave=(1, 4), not_to_send=(2, 3), at_once=(0, 3, 4))
        found = {outcome.unit: outcome for outcome in Processes(1, retries=0).run(job, range(6))}
        assert {unit for unit, outcome in found.items() if isinstance(outcome, Done)} == {0, 5}
        assert all("pickle" in found[unit].reason for unit in (2, 3))
        assert all("ended by itself" in found[unit].reason for unit in (1, 4))

    def test_kept_workers_finish_before_the_next_job(self, tmp_path: Path) -> None:
        with Processes(1) as executor:
            for _ in range(3):
                found = list(executor.run(Afterwards(tmp_path), range(4)))
                assert [outcome.result for outcome in found if isinstance(outcome, Done)] == [0, 1, 4, 9]

    def test_units_that_cannot_travel(self) -> None:
        with pytest.raises(InputError, match="cannot be sent to other processes"):
            list(Processes(2).run(lambda: None, [1]))  # type: ignore[arg-type]

    def test_closing_ends_the_workers(self, tmp_path: Path) -> None:
        outcomes = Processes(2).run(Squares(tmp_path, seconds=0.05), range(1000))
        next(outcomes)
        pids = [int(path.name.partition("-")[2]) for path in tmp_path.glob("opened-*")]
        outcomes.close()
        assert pids
        assert not any(alive(pid) for pid in pids)

    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "term", "kill -9"])
    def test_workers_end_with_the_coordinator(self, tmp_path: Path, how: signal.Signals) -> None:
        script = tmp_path / "script.py"
        script.write_text(
            "import sys, signal\nfrom pathlib import Path\n"
            "sys.path.insert(0, sys.argv[2])\n"
            "from execution_jobs import Afterwards, Sleeper\nfrom blemish.evaluation.executors import Processes\n"
            "if __name__ == '__main__':\n"
            "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "    list(Processes(2).run(Sleeper(Path(sys.argv[1])), range(2)))\n"
        )
        with subprocess.Popen(
            [sys.executable, str(script), str(tmp_path), str(Path(__file__).parents[2])], stderr=subprocess.DEVNULL
        ) as parent:
            until(lambda: len([*tmp_path.glob("pid-*")]) == 2, parent)
            pids = [int(path.name.partition("-")[2]) for path in tmp_path.glob("pid-*")]
            parent.send_signal(how)
            parent.wait(PATIENCE)
        until(lambda: not any(alive(pid) for pid in pids))  # they sleep for ever

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="0 jobs"):
            Processes(0)
        with pytest.raises(InputError, match="no devices"):
            Processes(devices=())

    def test_a_sleeping_job_is_a_job(self, tmp_path: Path) -> None:
        assert callable(Sleeper(tmp_path).open(None))


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class TestCompleted:
    def test_lost_workers_are_no_bad_input(self, tmp_path: Path) -> None:
        """A unit that killed its workers is named; everything else is done."""
        lost = Failed(1, "a worker process was ended by SIGKILL", "", 3, lost=True)
        raised = Failed(2, "ZeroDivisionError: unit 2", "", 3)
        for failures, kind in (([raised, lost], WorkerError), ([raised], InputError)):
            found = completed([Done(0, "result"), *failures], tmp_path)
            assert next(found) == (0, "result")
            with pytest.raises(kind, match=f"failed: {', '.join(sorted(str(it.unit) for it in failures))}; all others"):
                next(found)

    def test_tracebacks_are_written_down(self, tmp_path: Path) -> None:
        job = Squares(tmp_path, fail_always=(1,), refuse=(3,))
        seen: list[Any] = []
        found = completed(InProcess().run(job, range(5)), tmp_path / "new", lambda unit: f"unit {unit}")
        with pytest.raises(InputError, match=f"failed: unit 1, unit 3; all others are done.*{FAILURES_FILE}"):
            seen.extend(found)
        assert [unit for unit, _ in seen] == [0, 2, 4]
        log = (tmp_path / "new" / FAILURES_FILE).read_text()
        assert "ZeroDivisionError: unit 1" in log
        assert "execution_jobs.py" in log

    def test_bad_input_alone_needs_no_traceback(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"^3 is refused; expected another number \(3\)$"):
            list(completed(InProcess().run(Squares(tmp_path, refuse=(3,)), range(5)), tmp_path))
        assert not (tmp_path / FAILURES_FILE).exists()

    def test_bad_input_that_another_error_caused(self, tmp_path: Path) -> None:
        def failing(unit: int, _: object) -> int:
            try:
                return 1 // (unit - 1)
            except ZeroDivisionError as error:
                raise InputError("the model refuses it; expected another") from error

        class Failing:
            def open(self, device: object) -> Any:  # noqa: ARG002
                return failing

        with pytest.raises(InputError, match=f"the model refuses it; .*; tracebacks in .*{FAILURES_FILE}"):
            list(completed(InProcess().run(Failing(), range(3)), tmp_path))
        assert "ZeroDivisionError" in (tmp_path / FAILURES_FILE).read_text()

    def test_the_log_of_an_earlier_run_goes(self, tmp_path: Path) -> None:
        (tmp_path / FAILURES_FILE).write_text("old")
        assert len(list(completed(InProcess().run(Squares(tmp_path), range(5)), tmp_path))) == 5
        assert not (tmp_path / FAILURES_FILE).exists()
