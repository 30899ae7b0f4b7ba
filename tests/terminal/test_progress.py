"""Lines about long work where there is no terminal; time is made up, so that nothing waits."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest
import typer

from blemish.terminal import progress
from blemish.terminal.progress import Lines, Report, with_progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_at(clock: Clock, title: str = "run", first: str = "") -> tuple[Lines, list[str]]:
    written: list[str] = []
    return Lines(title, first, clock=clock, write=written.append), written


def test_a_line_every_half_minute() -> None:
    clock = Clock()
    lines, written = lines_at(clock)
    for second in range(95):
        clock.now = float(second)
        lines.report(10 * second, 9400, "fog@3")
    lines.finish()
    assert written == [
        "run: fog@3, 300 of 9,400 (3 %), 0:00:30, about 0:15:10 left",
        "run: fog@3, 600 of 9,400 (6 %), 0:01:00, about 0:14:40 left",
        "run: fog@3, 900 of 9,400 (9 %), 0:01:30, about 0:14:10 left",
        "run: done in 0:01:34",
    ]


def test_what_was_there_before_took_no_time() -> None:
    """A run that is continued at 900 of 1,000 does not promise to be as quick as if it had made them all."""
    clock = Clock()
    lines, written = lines_at(clock)
    lines.report(900, 1000)
    clock.now = 30
    lines.report(910, 1000)
    assert written == ["run: 910 of 1,000 (91 %), 0:00:30, about 0:04:30 left"]


def test_each_phase_has_its_own_pace() -> None:
    clock = Clock()
    lines, written = lines_at(clock, "report", "reading records")
    clock.now = 40
    lines.report(75, 75, "reading records")
    clock.now = 60
    lines.report(0, 1000, "resampling")
    clock.now = 80
    lines.report(100, 1000, "resampling")
    assert written == [
        "report: reading records, 75 of 75 (100 %), 0:00:40",
        "report: resampling, 100 of 1,000 (10 %), 0:01:20, about 0:03:00 left",
    ]


def test_lines_come_where_nothing_is_reported() -> None:
    clock = Clock()
    lines, written = lines_at(clock, first="reading images")
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        clock.now += seconds
        return len(pauses) > 3

    lines.keep_writing(wait)
    assert written == [f"run: reading images, {time}" for time in ("0:00:30", "0:01:00", "0:01:30")]
    assert pauses == [30.0] * 4


def test_the_two_do_not_write_the_same_line() -> None:
    """A report wrote a line ten seconds ago, so the next is due in twenty."""
    clock = Clock()
    lines, written = lines_at(clock)
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 1:
            clock.now = 35
            lines.report(1, 2)
            clock.now = 45
        return len(pauses) == 2

    lines.keep_writing(wait)
    assert len(written) == 1
    assert pauses == [30.0, 20.0]


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
    monkeypatch.setattr(progress, "_clock", ticking(31))
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
    monkeypatch.setattr(progress, "_clock", ticking(31))
    with_progress("run", work)
    assert capsys.readouterr().err.splitlines()[-1] == "run: done in 0:02:04"


def test_quick_work_is_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_clock", ticking(1))
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


def test_a_stream_that_is_closed_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    lines = Lines("run", clock=ticking(31))
    monkeypatch.setattr(sys, "stderr", closed)
    lines.report(1, 2)
    lines.finish()


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
