"""Errors by whose doing they are, and how they come through workers and commands."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import typer

import blemish
from blemish.core.errors import BlemishError, InputError, StorageError, UnknownNameError, WorkerError
from blemish.core.files import part_file
from blemish.core.states import DamagedFileError
from blemish.evaluation.executors.base import Calls
from blemish.evaluation.executors.failures import FAILURES_FILE, completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.executors.processes import Processes
from blemish.terminal.commands import exit_on_input_error
from execution_jobs import full_disk

KINDS = {
    InputError: ValueError,
    UnknownNameError: KeyError,
    StorageError: OSError,
    DamagedFileError: OSError,
    WorkerError: RuntimeError,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_ours_and_a_kind_that_python_knows(kind: type[BlemishError]) -> None:
    error = kind("out.txt: no room")
    assert isinstance(error, BlemishError)
    assert isinstance(error, KINDS[kind])  # type: ignore[index]
    assert str(error) == "out.txt: no room"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (kind, "out.txt: no room")


def test_errors_are_public() -> None:
    assert (blemish.BlemishError, blemish.InputError) == (BlemishError, InputError)
    assert (blemish.StorageError, blemish.WorkerError) == (StorageError, WorkerError)


def test_a_file_that_cannot_be_written_is_named_once(tmp_path: Path) -> None:
    """What fails inside one of our own blocks is not told again by the block around it."""
    (tmp_path / "x").mkdir()
    with pytest.raises(StorageError) as error, part_file(tmp_path / "x") as part:
        part.finish()
    assert str(error.value) == f"cannot write {tmp_path / 'x'}: Is a directory"


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["here", "process"])
def test_storage_that_fails_in_a_worker(tmp_path: Path, executor: InProcess | Processes) -> None:
    """It is not tried again, stays a StorageError, and needs no traceback."""
    with pytest.raises(StorageError, match=r"^cannot write out\.npy: No space left on device \(1\)$"):
        list(completed(executor.run(Calls(full_disk), range(3)), tmp_path))
    assert not (tmp_path / FAILURES_FILE).exists()


@pytest.mark.parametrize(("kind", "code"), [(InputError, 2), (StorageError, 2), (WorkerError, 1)])
def test_commands_say_it_in_one_line(kind: type[BlemishError], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    @exit_on_input_error
    def command() -> None:
        raise kind("out.txt: no room")

    with pytest.raises(typer.Exit) as stopped:
        command()
    assert stopped.value.exit_code == code
    assert capsys.readouterr().err == "error: out.txt: no room\n"
