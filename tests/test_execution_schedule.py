"""Who does which unit next: whatever workers do, each unit has one outcome, and nobody else is blamed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.execution import Done, Failed
from blemish.execution.schedule import Died, Event, Finished, Queued, Raised, Ready, Returned, schedule
from blemish.types import InputError


class Script:
    """Workers that do what a list of random choices says; every event that the schedule may see."""

    def __init__(self, choices: list[int]) -> None:
        self.choices = choices
        self.waiting: dict[int, int | None] = {}
        self.numbers: dict[int, int] = {}
        self.later: dict[int, dict[int, int]] = {}
        self.killed: set[int] = set()
        self.started = 0
        self.most = 0

    def start(self) -> int:
        self.started += 1
        self.waiting[self.started] = None
        self.most = max(self.most, len(self.waiting))
        return self.started

    def give(self, worker: int, unit: int, number: int) -> None:
        assert self.waiting[worker] == -1, "a unit for a worker that is not idle"
        later = self.later.get(worker, {})
        assert len(later) <= 1, "more than one result on its way"
        assert not (later and ({unit, *later.values()} & self.killed)), "a unit to be watched is not alone"
        self.waiting[worker], self.numbers[worker] = unit, number

    def end(self, worker: int) -> None:
        self.waiting.pop(worker, None)
        self.killed |= {*self.later.pop(worker, {}).values()}

    def events(self) -> list[tuple[int, Event]]:
        busy = [worker for worker, unit in self.waiting.items() if unit != -1 or self.later.get(worker)]
        choice = self.choices.pop() if self.choices else 0
        worker = busy[choice % len(busy)]
        return [(worker, self.event(worker, choice // 7 % 7))]

    def event(self, worker: int, choice: int) -> Event:
        unit, later = self.waiting[worker], self.later.setdefault(worker, {})
        if choice == 1:
            self.waiting.pop(worker)
            self.killed |= {*self.later.pop(worker).values(), unit} - {None, -1}
            return Died("killed")
        if unit is None:
            self.waiting[worker] = -1
            return Ready()
        if later and (unit == -1 or choice in (2, 4)):
            number = min(later)
            done = later.pop(number)
            return Finished(number, Raised("error", "trace", False) if choice == 2 else Returned(done * 2))
        self.waiting[worker] = -1
        if choice == 2:
            self.killed.add(unit)
            return Raised("error", "trace", False)
        if choice == 3:
            return Raised("bad", "trace", True)
        if choice == 5 and not later:
            later[self.numbers[worker]] = unit
            return Queued()
        return Returned(unit * 2)


@given(
    choices=st.lists(st.integers(0, 999), max_size=80),
    units=st.integers(0, 12),
    count=st.integers(1, 4),
    keyed=st.booleans(),
)
def test_whatever_happens_each_unit_has_one_outcome(choices: list[int], units: int, count: int, keyed: bool) -> None:
    pool = Script(choices)
    source = list(range(units)) if keyed else iter(range(units))
    run = schedule(pool, source, count=count, retries=2, key=(lambda unit: unit % 3) if keyed else None)  # type: ignore[arg-type]
    outcomes: list[Any] = []
    reason = ""
    try:
        outcomes.extend(run)
    except InputError as error:
        reason = str(error)
    if reason:
        assert "workers cannot start" in reason
        return
    assert sorted(outcome.unit for outcome in outcomes) == list(range(units))
    assert all(outcome.result == 2 * outcome.unit for outcome in outcomes if isinstance(outcome, Done))
    assert all(outcome.attempts <= 3 for outcome in outcomes if isinstance(outcome, Failed))
    assert pool.most <= count


@pytest.mark.parametrize("event", [Raised("late", "trace", False), Died("killed")])
def test_no_blame_while_two_units_are_with_a_worker(event: Event) -> None:
    """A GPU fails late: what the second unit meets may be the first one's doing."""

    class Late:
        def __init__(self) -> None:
            self.given: list[tuple[int, int]] = []

        def start(self) -> int:
            self.given.append((-1, 0))
            return sum(unit == -1 for unit, _ in self.given)

        def give(self, worker: int, unit: int, number: int) -> None:
            self.given.append((unit, number))
            self.worker = worker

        def end(self, worker: int) -> None:
            pass

        def events(self) -> list[tuple[int, Event]]:
            unit, _ = self.given[-1]
            if unit == -1:
                return [(sum(unit == -1 for unit, _ in self.given), Ready())]
            if [unit for unit, _ in self.given if unit >= 0] == [0]:
                return [(self.worker, Queued())]
            if [unit for unit, _ in self.given if unit >= 0] == [0, 1]:
                return [(self.worker, event)]
            return [(self.worker, Returned(unit * 2))]

    outcomes = list(schedule(Late(), [0, 1], count=1, retries=0))
    assert sorted(outcome.unit for outcome in outcomes if isinstance(outcome, Done)) == [0, 1]
