"""What files say of how they were made, as dataclasses: `read_typed` reads them by their hints, `as_json` writes them.

To say one more thing in a file that others were already written without, add one line to its dataclass::

    card: ModelCard | None = optional_field()                  # two files that differ in it do not belong together
    parameters: int | None = optional_field(compare=False)     # a remark, which binds nobody

It is left out of files while it has its default, so that these keep their bytes, and files without it are read as
having the default. Any hint that `read_typed` knows will do, another dataclass included.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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


_OMITTED = "left out of files while it has its default"


def optional_field(default: Any = None, *, compare: bool = True) -> Any:
    """A field that a file need not have; without ``compare`` it does not decide whether two files belong together."""
    return field(default=default, compare=compare, metadata={_OMITTED: True})


def as_json(value: Any, *, compared: bool = False) -> Any:
    """Dataclasses, and what is in them, as JSON holds it; with ``compared``, only the fields that are compared.

    >>> @dataclass
    ... class Model:
    ...     name: str
    ...     sizes: tuple[int, ...] = ()
    ...     parameters: int | None = optional_field(compare=False)
    >>> as_json(Model("net")), as_json(Model("net", (8, 4), 12)), as_json(Model("net", (8, 4), 12), compared=True)
    ({'name': 'net', 'sizes': []}, {'name': 'net', 'sizes': [8, 4], 'parameters': 12}, {'name': 'net', 'sizes': [8, 4]})
    """
    if dataclasses.is_dataclass(value):
        return {
            each.name: as_json(entry, compared=compared)
            for each in dataclasses.fields(value)
            if not (compared and not each.compare)
            and not ((entry := getattr(value, each.name)) == each.default and _OMITTED in each.metadata)
        }
    if isinstance(value, Mapping):
        return {name: as_json(entry, compared=compared) for name, entry in value.items()}
    return [as_json(entry, compared=compared) for entry in value] if isinstance(value, list | tuple) else value


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
    for each in dataclasses.fields(cls):
        if each.name in value and each.init:
            entries[each.name] = _read(_hints(cls)[each.name], value[each.name], _entry(where, each.name))
        elif each.init and each.default is each.default_factory is dataclasses.MISSING:
            raise InputError(f"no {_entry(where, each.name)} in it")
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
