"""Progress of commands: a bar on a terminal, lines elsewhere, and what Ctrl-C leaves."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
import typer

from blemish.core import live
from blemish.terminal import progress
from blemish.terminal.progress import Report, with_progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def work(report: Report) -> str:
    for done in range(3):
        report(done, 2, f"part {done}")
    return "result"


def ticking(step: float) -> Callable[[], float]:
    clock = Clock()

    def tick() -> float:
        clock.now += step
        return clock.now

    return tick


def test_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(live, "_clock", ticking(31))
    assert with_progress("run", work) == "result"
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.splitlines() == [
        "run: part 0, 0 of 2 (0 %), 0:00:31",
        "run: part 1, 1 of 2 (50 %), 0:01:02, about 0:00:31 left",
        "run: part 2, 2 of 2 (100 %), 0:01:33",
        "run: done in 0:02:04",
    ]


def test_colours_do_not_make_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(live, "_clock", ticking(31))
    with_progress("run", work)
    assert capsys.readouterr().err.splitlines()[-1] == "run: done in 0:02:04"


def test_quick_work_is_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(live, "_clock", ticking(1))
    assert with_progress("score", work) == "result"
    assert capsys.readouterr() == ("", "")


def test_with_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    assert with_progress("run", work) == "result"
    shown = stream.getvalue()
    assert "━" in shown
    assert "part 2" in shown
    assert "2/2" in shown
    assert "images/s" in shown
    assert "done in" not in shown


def test_the_bar_of_what_is_only_read_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with_progress("score", work, unit=None)
    assert stream.getvalue().endswith("\x1b[1A\x1b[2K")  # up a line, which is erased
    assert "/s" not in stream.getvalue()


def test_interrupting(capsys: pytest.CaptureFixture[str]) -> None:
    def stop(report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as found:
        with_progress("corrupt", stop, kept="finished files are kept.")
    assert found.value.exit_code == progress.INTERRUPTED
    assert capsys.readouterr().err == "stopped; finished files are kept.\n"


def test_failures_have_no_happy_end(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(report: Report) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        with_progress("corrupt", fail)
    assert capsys.readouterr().err == ""
