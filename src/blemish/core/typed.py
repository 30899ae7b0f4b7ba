"""Read parsed JSON into dataclasses by their type hints, so that no reader checks entries by hand."""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from blemish.core.errors import InputError

T = TypeVar("T")

# The types that json gives for each kind of hint. A whole number stands for a float too.
_JSON: dict[Any, tuple[type, ...]] = {
    **{kind: (kind,) for kind in (str, int, bool, NoneType, list, dict)},
    float: (int, float),
    tuple: (list,),
}


@dataclass(frozen=True)
class Between:
    """The numbers that an entry may hold, for hints such as ``Annotated[int, Between(1)]``; both ends are allowed."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        ends = (("from", self.low), ("to", self.high))
        return " ".join(f"{word} {end:g}" for word, end in ends if math.isfinite(end))


def read_typed(cls: type[T], value: object, where: str = "") -> T:
    """Parsed JSON as ``cls``, such as a dataclass of dataclasses; ``where`` names the entry in errors.

    Hints may be str, int, float, bool, None, Any, Literal, list[T], tuple[T, ...], tuple[A, B], dict[str, T],
    dataclasses, unions of these, and Annotated with a `Between`. Fields with a default may be missing, unknown entries
    are ignored. What a dataclass itself refuses by an `InputError` is refused with the entry's name in front.

    >>> @dataclass
    ... class Benchmark:
    ...     name: str
    ...     metric: str = "error"
    >>> read_typed(Benchmark, {"name": "mine", "year": 2022})
    Benchmark(name='mine', metric='error')
    >>> read_typed(Benchmark, {"name": "mine", "metric": 7}, "benchmark")
    Traceback (most recent call last):
    blemish.core.errors.InputError: benchmark.metric is 7; expected str
    """
    return cast(T, _read(cls, value, where))


def _read(hint: Any, value: Any, where: str) -> Any:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for option in options:
        if _fits(option, value):
            return _convert(option, value, where)
    expected = " or ".join(map(_name, options))
    raise InputError(f"{where or 'it'} is {reprlib.repr(value)}; expected {expected}")


def _fits(hint: Any, value: Any) -> bool:
    """Whether the outermost type of a hint, and its limits, allow a value; `_convert` checks what is inside."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(inner[0], value) and all(limits.low <= value <= limits.high for limits in _limits(hint))
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if _is_fixed(hint):
        return isinstance(value, list) and len(value) == len(inner)
    if hint is Any:
        return True
    return isinstance(value, _JSON[_kind(hint)]) and (hint is bool or not isinstance(value, bool))


def _name(hint: Any) -> str:
    """What a hint allows, for errors."""
    inner = get_args(hint)
    if get_origin(hint) is Annotated:
        return " ".join([_name(inner[0]), *map(str, _limits(hint))])
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if _is_fixed(hint):
        return f"list of {len(inner)}"
    return "null" if hint is NoneType else "list" if _kind(hint) is tuple else str(_kind(hint).__name__)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _convert(inner[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _convert_fields(hint, value, where)
    if origin is dict:
        return {name: _read(inner[1], item, _entry(where, name)) for name, item in value.items()}
    if origin in (list, tuple):
        hints = inner if _is_fixed(hint) else (inner[0],) * len(value)
        return origin(map(_read, hints, value, (f"{where}[{k}]" for k in range(len(value)))))
    return float(value) if hint is float else value


def _convert_fields(cls: Any, value: dict[str, Any], where: str) -> Any:
    entries = {}
    for field in dataclasses.fields(cls):
        if field.name in value and field.init:
            entries[field.name] = _read(_hints(cls)[field.name], value[field.name], _entry(where, field.name))
        elif field.init and field.default is field.default_factory is dataclasses.MISSING:
            raise InputError(f"no {_entry(where, field.name)} in it")
    try:
        return cls(**entries)
    except InputError as error:
        raise InputError(f"{where}: {error}" if where else str(error)) from error


def _kind(hint: Any) -> Any:
    kind = dict if dataclasses.is_dataclass(hint) else get_origin(hint) or hint
    if kind not in _JSON:
        raise TypeError(f"{hint}: not a hint that read_typed knows")
    return kind


def _is_fixed(hint: Any) -> bool:
    """Whether a hint is a tuple of a given length."""
    return get_origin(hint) is tuple and get_args(hint)[-1:] != (Ellipsis,)


def _limits(hint: Any) -> Iterator[Between]:
    return (limits for limits in get_args(hint)[1:] if isinstance(limits, Between))


def _entry(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)
