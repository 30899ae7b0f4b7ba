"""Parsed JSON as dataclasses: what is written is read back, and what does not fit is named."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.core.settings import differences
from blemish.core.typed import Between, as_json, optional_field, read_typed


@dataclass(frozen=True)
class Part:
    name: str
    count: Annotated[int, Between(0, 10)]
    ends: tuple[int, str] = (0, "")

    def __post_init__(self) -> None:
        if self.name == "never":
            raise InputError("a part named never")


@dataclass(frozen=True)
class Whole:
    flag: bool
    ratio: Annotated[float, Between(0)]
    label: str | int | float | None
    mode: Literal["l1", "l2", 3]
    part: Part
    maybe: Part | None
    parts: list[Part]
    rows: tuple[tuple[float, ...], ...]
    by_name: dict[str, list[Part | None]]
    anything: Any = None
    extra: list[str] = field(default_factory=list)
    made: int = field(default=7, init=False)


PARTS = st.builds(
    Part,
    name=st.text().filter(lambda name: name != "never"),
    count=st.integers(0, 10),
    ends=st.tuples(st.integers(), st.text()),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLES = st.builds(
    Whole,
    flag=st.booleans(),
    ratio=st.floats(0, 1e300),
    label=st.none() | st.text() | st.integers() | FINITE,
    mode=st.sampled_from(["l1", "l2", 3]),
    part=PARTS,
    maybe=st.none() | PARTS,
    parts=st.lists(PARTS, max_size=3),
    rows=st.lists(st.lists(FINITE, max_size=3).map(tuple), max_size=3).map(tuple),
    by_name=st.dictionaries(st.text(), st.lists(st.none() | PARTS, max_size=2), max_size=3),
    anything=st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner, max_size=2)),
    extra=st.lists(st.text(), max_size=2),
)
WHOLE = Whole(
    flag=True,
    ratio=0.5,
    label=None,
    mode="l1",
    part=Part("a", 1),
    maybe=None,
    parts=[Part("b", 2)],
    rows=((1.0,),),
    by_name={"x": [Part("c", 3)]},
)


@given(WHOLES)
def test_what_is_written_is_read_back(whole: Whole) -> None:
    read = read_typed(Whole, json.loads(json.dumps(asdict(whole))))
    assert read == whole
    assert type(read.label) is type(whole.label)


@given(st.lists(st.integers() | st.text() | st.none(), max_size=4))
def test_lists_take_what_their_hint_says_and_nothing_else(values: list[Any]) -> None:
    if all(isinstance(value, int) for value in values):
        assert read_typed(list[int], values) == values
    else:
        with pytest.raises(InputError, match=r"numbers\[\d\] is .*; expected int$"):
            read_typed(list[int], values, "numbers")


def test_whole_numbers_are_floats_too_but_no_truth_values_are_numbers() -> None:
    number = read_typed(float, 3)
    assert number == 3
    assert isinstance(number, float)
    assert math.isnan(read_typed(float, math.nan))
    for kind in (int, float):
        with pytest.raises(InputError, match="it is True; expected"):
            read_typed(kind, True)


def test_unknown_entries_are_ignored_and_defaults_fill_in() -> None:
    entries = {**json.loads(json.dumps(asdict(WHOLE))), "new": 1, "made": "ignored, as it is no argument"}
    del entries["anything"], entries["extra"], entries["part"]["ends"]
    assert read_typed(Whole, entries) == WHOLE


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("flag", 1, "run.flag is 1; expected bool"),
        ("flag", None, "run.flag is None; expected bool"),
        ("ratio", "0.5", "run.ratio is '0.5'; expected float from 0"),
        ("ratio", -0.1, "run.ratio is -0.1; expected float from 0"),
        ("ratio", math.nan, "run.ratio is nan; expected float from 0"),
        ("label", [], "run.label is []; expected str or int or float or null"),
        ("mode", "l3", "run.mode is 'l3'; expected one of l1, l2, 3"),
        ("mode", 3.0, "run.mode is 3.0; expected one of l1, l2, 3"),
        ("part", [1], "run.part is [1]; expected dict"),
        ("maybe", 7, "run.maybe is 7; expected dict or null"),
        ("maybe", {"name": "a"}, "no run.maybe.count in it"),
        ("parts", {}, "run.parts is {}; expected list"),
        ("parts", [{"name": "a", "count": 11}], "run.parts[0].count is 11; expected int from 0 to 10"),
        ("parts", [{"name": "never", "count": 1}], "run.parts[0]: a part named never"),
        ("part", {"name": "a", "count": 1, "ends": [1]}, "run.part.ends is [1]; expected list of 2"),
        ("part", {"name": "a", "count": 1, "ends": [1, 2]}, "run.part.ends[1] is 2; expected str"),
        ("rows", [[0], 1], "run.rows[1] is 1; expected list"),
        ("by_name", {"x": [None, 3]}, "run.by_name.x[1] is 3; expected dict or null"),
        ("by_name", [], "run.by_name is []; expected dict"),
    ],
)
def test_errors_name_the_entry(entry: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_typed(Whole, {**json.loads(json.dumps(asdict(WHOLE))), entry: value}, "run")
    assert str(raised.value) == message


def test_the_outermost_value_has_a_name_too() -> None:
    with pytest.raises(InputError, match=r"^it is 3; expected dict$"):
        read_typed(Part, 3)
    with pytest.raises(InputError, match=r"^no name in it$"):
        read_typed(Part, {})


def test_hints_that_json_cannot_hold_are_mistakes_of_the_program() -> None:
    with pytest.raises(TypeError, match="not a hint that read_typed knows"):
        read_typed(complex, 3)


@dataclass(frozen=True)
class Card:
    parameters: int
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Old:
    name: str
    crop: int | None = None


@dataclass(frozen=True)
class New(Old):
    """As somebody would say more in a file: one line for each."""

    card: Card | None = optional_field()
    task: str = optional_field("classification")
    remark: str | None = optional_field(compare=False)


class TestOptionalFields:
    """Files from before a field was there keep their bytes and are read; files with it are read by older code."""

    def test_nothing_changes_where_it_is_not_set(self) -> None:
        assert json.dumps(as_json(New("net"))) == json.dumps(as_json(Old("net"))) == '{"name": "net", "crop": null}'
        assert read_typed(New, as_json(Old("net"))) == New("net")

    def test_what_is_set_comes_back(self) -> None:
        new = New("net", 3, Card(5, (8, 4)), "segmentation", "as it was")
        written = json.loads(json.dumps(as_json(new)))
        assert written["card"] == {"parameters": 5, "sizes": [8, 4]}
        assert read_typed(New, written) == new
        assert read_typed(Old, written) == Old("net", 3)

    def test_remarks_bind_nobody(self) -> None:
        plain, card = New("net"), New("net", card=Card(5), remark="x")
        assert New("net", remark="x") == plain
        assert differences(plain, New("net", remark="x")) == []
        assert differences(plain, card) == ['card was not set, now {"parameters": 5, "sizes": []}']
        assert differences(plain, New("net", task="x")) == ['task was not set, now "x"']
