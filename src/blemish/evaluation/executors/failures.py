"""What is done about units that failed: the others go on, and at the end all failures are told together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TypeVar

from blemish.core.errors import InputError, StorageError, WorkerError
from blemish.core.printable import first_few, printable_lines
from blemish.evaluation.executors.base import Done, Failed, Outcome

Unit = TypeVar("Unit")
Result = TypeVar("Result")

FAILURES_FILE = "failures.txt"
_SHOWN = 3

# What Python writes between an error and one that was raised from it.
_CAUSED = "direct cause of the following exception"


def completed(
    outcomes: Iterable[Outcome[Unit, Result]],
    folder: Path | None,
    name: Callable[[Unit], str] = str,
    *,
    stop_at_bad_input: bool = False,
) -> Generator[tuple[Unit, Result], None, None]:
    """The units that were done, with their results; at the end an error that lists the others, if there are any.

    With ``stop_at_bad_input`` the first unit that met bad input ends it: a full disk, say, would be met by all others.
    """
    failures: list[Failed[Unit]] = []
    for outcome in outcomes:
        if isinstance(outcome, Done):
            yield outcome.unit, outcome.result
        elif stop_at_bad_input and outcome.bad_input:
            raise_failures([outcome], folder, name)
        else:
            failures.append(outcome)
    raise_failures(failures, folder, name)


def raise_failures(failures: list[Failed[Unit]], folder: Path | None, name: Callable[[Unit], str] = str) -> None:
    """An error that names failed units and the file of their tracebacks; nothing where there are none.

    Bad input alone needs no tracebacks, as the first message says what to change; but where another error was its
    cause, that one's may be wanted.
    """
    log = None if folder is None else folder / FAILURES_FILE
    if log is not None:
        log.unlink(missing_ok=True)
    if not failures:
        return
    shown = first_few(sorted({name(failed.unit) for failed in failures}), _SHOWN)
    first = next((failed for failed in failures if failed.bad_input), failures[0])
    if all(failed.bad_input for failed in failures):
        caused = [failed for failed in failures if _CAUSED in failed.traceback]
        where = f"; {_written(log, _text(caused, name))}" if caused and log is not None else ""
        raise (StorageError if first.storage else InputError)(f"{first.reason} ({shown}){where}")
    kind = WorkerError if any(failed.lost for failed in failures) else InputError
    raise kind(f"failed: {shown}; all others are done. {first.reason}; {_written(log, _text(failures, name))}")


def _text(failures: list[Failed[Unit]], name: Callable[[Unit], str]) -> str:
    return "\n\n".join(
        f"{name(failed.unit)}, attempt {failed.attempts}: {failed.reason}\n{failed.traceback}" for failed in failures
    )


def _written(log: Path | None, text: str) -> str:
    """Where the tracebacks are: in the file, or here where it cannot be written."""
    if log is None:
        return f"tracebacks:\n{text}"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"{printable_lines(text)}\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        return f"{log} could not be written ({error.strerror or error}); tracebacks:\n{text}"
    return f"tracebacks in {log}"
