"""Who does which unit next: whatever workers do, each unit has one outcome, and nobody else is blamed."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError, WorkerError
from blemish.evaluation.executors import Calls, Done, Failed
from blemish.evaluation.executors.base import Outcome
from blemish.evaluation.executors.pool import WorkerPool
from blemish.evaluation.executors.worker import OPENING, Queued, Told

KINDS = ("well", "dies", "dies once", "tells afterwards", "raises", "raises once", "refused")
RETRIES = 2


@dataclass
class Sight:
    """What all workers of a test have seen."""

    begun: Counter[int] = field(default_factory=Counter)
    alive: set[int] = field(default_factory=set)
    started: int = 0
    most: int = 0
    lost: set[int] = field(default_factory=set)


@dataclass
class Play(WorkerPool):
    """Workers that only pretend, in this process. Units say what happens: their number, how they end, and whether late.

    Late results are held back ``until`` something has happened.
    """

    reach = "process"
    device = None

    count: int = 2
    opening: str = ""
    until: Callable[[Sight], bool] = lambda _: True
    sight: Sight = field(default_factory=Sight)

    @property
    def workers(self) -> int:
        return self.count

    def start(self, slot: int) -> Actor:
        return Actor(self, slot)


class Actor:
    def __init__(self, pool: Play, place: int) -> None:
        self.pool, self.place = pool, place
        self.says: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.later: list[tuple[int, str, int]] = []
        self.held: set[int] = set()
        self.lock = threading.Lock()
        sight = pool.sight
        sight.started += 1
        assert place not in sight.alive, "two workers in one place"
        sight.alive.add(place)
        sight.most = max(sight.most, len(sight.alive))

    def open(self, job: Any, threads: int) -> None:  # noqa: ARG002
        opening = self.pool.opening
        if opening == "raises":
            self.says.put(Failed(OPENING, "no memory", "trace: no memory", 1))
        elif opening == "dies":
            self.says.put(WorkerError("killed"))
        else:
            self.says.put(Done(OPENING, None))

    def send(self, content: bytes) -> None:
        if not content:
            assert not self.later
            self.says.put(b"")
            return
        with self.lock:
            self.begin(*pickle.loads(content))

    def begin(self, number: int, packed: bytes) -> None:
        unit, kind, late = pickle.loads(packed)
        self.held = {unit, *(other for _, _, other in self.later)}
        assert len(self.held) <= 2
        assert len(self.held) == 1 or not self.held & self.pool.sight.lost, "a unit to be watched is not alone"
        self.pool.sight.begun[unit] += 1
        if kind == "tells":
            self.says.put(Told(number, f"of {unit}"))
        if late:
            self.finish()
            self.says.put(Queued(number))
            self.later.append((number, kind, unit))
        else:
            self.end(number, kind, unit)

    def finish(self) -> None:
        while self.later:
            self.end(*self.later.pop())

    def end(self, number: int, kind: str, unit: int) -> None:
        first = self.pool.sight.begun[unit] == 1
        if kind in ("dies", "raises") or (kind.endswith("once") and first):
            self.pool.sight.lost |= self.held
        if kind == "dies" or (kind == "dies once" and first):
            self.says.put(WorkerError("killed"))
        elif kind == "raises" or (kind == "raises once" and first):
            self.says.put(Failed(number, "error", "trace", 1))
        elif kind == "too large":
            self.says.put(MemoryError("so large"))
        elif kind == "refused":
            self.says.put(Failed(number, "bad", "trace", 1, bad_input=True))
        else:
            self.says.put(Done(number, unit * 2))
            if kind == "dies afterwards":
                self.says.put(WorkerError("killed"))
            if kind == "tells afterwards":
                self.says.put(Told(number, "too late"))

    def receive(self) -> bytes:
        while True:
            try:
                said = self.says.get(timeout=0.001)
                break
            except queue.Empty:  # nobody has sent another unit in the meantime
                if self.pool.until(self.pool.sight):
                    with self.lock:
                        self.finish()
        if isinstance(said, Exception):
            raise said
        return said and pickle.dumps(said)

    def kill(self) -> None:
        self.says.put(WorkerError("killed"))
        self.pool.sight.alive.discard(self.place)


def listeners() -> int:
    """Threads beside the main one, without those of compiled kernels, which stay for the next call."""
    return sum(not thread.name.startswith("blemish") for thread in threading.enumerate()) - 1


def outcomes(pool: Play, units: Any, **settings: Any) -> dict[int, Outcome[Any, Any]]:
    found = list(pool.run(Calls(str), units, **settings))
    assert len({outcome.unit for outcome in found}) == len(found), "a unit with two outcomes"
    assert not pool.sight.alive, "workers that nobody ended"
    assert listeners() == 0
    return {outcome.unit[0]: outcome for outcome in found}


@given(
    kinds=st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), max_size=12),
    count=st.integers(1, 4),
    keyed=st.booleans(),
    listed=st.booleans(),
)
def test_whatever_happens_each_unit_has_its_own_outcome(
    kinds: list[tuple[str, bool]], count: int, keyed: bool, listed: bool
) -> None:
    pool = Play(count=count, retries=RETRIES)
    units = [(unit, kind, late) for unit, (kind, late) in enumerate(kinds)]
    found = outcomes(pool, units if listed else iter(units), key=(lambda unit: unit[0] % 3) if keyed else None)
    assert sorted(found) == list(range(len(units)))
    for unit, kind, _ in units:
        outcome = found[unit]
        if kind not in ("dies", "raises", "refused"):
            assert isinstance(outcome, Done), "blamed for what another did"
            assert outcome.result == 2 * unit
        else:
            assert isinstance(outcome, Failed)
            assert outcome.attempts == (1 if kind == "refused" else RETRIES + 1)
            assert (outcome.lost, outcome.bad_input) == (kind == "dies", kind == "refused")
    assert pool.sight.most <= count


@pytest.mark.parametrize("kind", ["dies once", "raises once"])
def test_no_blame_while_two_units_are_with_a_worker(kind: str) -> None:
    """A GPU fails late: what the second unit meets may be the first one's doing."""
    found = outcomes(
        Play(count=1, retries=0, until=lambda sight: sight.begun[1] > 0), [(0, "well", True), (1, kind, False)]
    )
    assert [type(found[unit]) for unit in (0, 1)] == [Done, Done]


@pytest.mark.parametrize("opening", ["raises", "dies"])
def test_workers_that_cannot_start_are_given_up(opening: str) -> None:
    pool = Play(count=2, retries=RETRIES, opening=opening)
    with pytest.raises(WorkerError, match=r"workers cannot start: (trace: no memory|killed)"):
        outcomes(pool, [(unit, "well", False) for unit in range(9)])
    assert RETRIES < pool.sight.started <= RETRIES + 2
    assert not pool.sight.alive


def test_workers_rest_from_one_run_to_the_next() -> None:
    pool = Play(count=2)
    units = [(unit, "well", False) for unit in range(9)]
    with pool:
        for _ in range(3):
            assert len(list(pool.run(Calls(str), units))) == 9
        assert pool.sight.started <= 2
    assert not pool.sight.alive


def test_a_run_within_a_run_has_workers_of_its_own() -> None:
    units = [(unit, "well", False) for unit in range(4)]
    with Play(count=1) as outer:
        run = outer.run(Calls(str), units)
        next(run)
        inner = Play(count=1, sight=outer.sight)
        outer.sight.alive.clear()  # the places of another pool
        assert len(list(inner.run(Calls(str), units))) == 4
        assert len(list(run)) == 3


def endless(drawn: list[int]) -> Iterator[tuple[int, str, bool]]:
    for unit in itertools.count():
        drawn.append(unit)
        yield unit, "well", bool(unit % 2)


def test_units_are_drawn_when_they_are_needed() -> None:
    """Nothing piles up for a caller who is slower than the workers; closing ends all of them."""
    drawn: list[int] = []
    pool = Play(count=2)
    with contextlib.closing(pool.run(Calls(str), endless(drawn))) as run:
        for done, _ in enumerate(itertools.islice(run, 100), start=1):
            assert len(drawn) <= done + 2 * 2 + 1
    assert not pool.sight.alive
    assert listeners() == 0


def test_errors_of_the_caller_are_raised_as_they_are() -> None:
    """Those of drawing units, of progress, and of a unit that cannot travel; workers and threads end all the same."""

    def units() -> Iterator[tuple[int, str, bool]]:
        yield 1, "well", False
        raise KeyError("mine")

    def progress(unit: object, what: object) -> None:
        raise LookupError("mine")

    pool = Play(count=2)
    with pytest.raises(KeyError, match="mine"):
        outcomes(pool, units())
    with pytest.raises(LookupError, match="mine"):
        outcomes(pool, [(1, "tells", False)], progress=progress)
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        outcomes(pool, [lambda: 1])
    assert not pool.sight.alive
    assert listeners() == 0


def test_a_worker_that_dies_with_nothing_to_do() -> None:
    """Nobody is blamed, and nothing is done about it while nothing waits."""
    pool = Play(count=2, retries=0, until=lambda sight: len(sight.alive) == 1)
    found = outcomes(pool, [(0, "dies afterwards", False), (1, "well", True)])
    assert [type(found[unit]) for unit in (0, 1)] == [Done, Done]
    assert pool.sight.started == 2


def test_a_listener_that_fails_is_not_waited_for() -> None:
    with pytest.raises(MemoryError, match="so large"):
        outcomes(Play(count=2), [(0, "too large", False)])


def test_what_is_told_belongs_to_its_unit() -> None:
    told: list[tuple[int, str]] = []
    units = [(unit, "tells", bool(unit % 2)) for unit in range(6)]
    outcomes(Play(count=2), units, progress=lambda unit, what: told.append((unit[0], what)))
    assert sorted(told) == [(unit, f"of {unit}") for unit in range(6)]
