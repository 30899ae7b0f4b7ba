"""Lines about long work where there is no terminal; time is made up, so that nothing waits."""

from __future__ import annotations

import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from blemish.core import live
from blemish.core.live import Lines, shown_progress


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


def test_a_stream_that_is_closed_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    clock = Clock()
    lines = Lines("run", clock=clock)
    monkeypatch.setattr(sys, "stderr", closed)
    clock.now = 31
    lines.report(1, 2)
    lines.finish()


def test_python_code_gets_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(live, "_clock", clock)
    with shown_progress("evaluate", first="reading images") as report:
        report(1, 4)
        clock.now = 30
        report(2, 4)
    assert capsys.readouterr().err.splitlines() == [
        "evaluate: reading images, 2 of 4 (50 %), 0:00:30, about 0:01:00 left",
        "evaluate: done in 0:00:30",
    ]


class Cell:
    """What a notebook shows; ``update`` replaces it."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, content: Any) -> None:
        self.shown.append(content.data)


def test_a_notebook_gets_one_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of others are escaped, and the bar is not redrawn for every batch."""
    cell, clock = Cell(), Clock()
    shell = SimpleNamespace(kernel=object())
    display = ModuleType("IPython.display")
    display.display = lambda _content, **_settings: cell  # type: ignore[attr-defined]
    display.HTML = lambda data: SimpleNamespace(data=data)  # type: ignore[attr-defined]
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    ipython.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(live, "_clock", clock)
    with shown_progress("evaluate") as report:
        for done in range(3):
            clock.now = 0.1 * done
            report(done, 40, "<b>fog@3")
        clock.now = 2
        report(20, 40)
    assert len(cell.shown) == 3
    assert cell.shown[0].startswith('<progress value="0" max="40"></progress> evaluate: &lt;b&gt;fog@3, 0 of 40')
    assert cell.shown[1].startswith('<progress value="20" max="40"></progress> evaluate: &lt;b&gt;fog@3, 20 of 40')
    assert cell.shown[2] == ""
