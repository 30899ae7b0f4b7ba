"""Options that several commands share, written once: a dataclass whose fields are the options."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R")


def spread_options(command: Callable[..., R]) -> Callable[..., R]:
    """Let typer see every field of a parameter that is a dataclass as a parameter of the command.

    The command itself gets the dataclass, made of what was typed.
    """
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in _typed(command):
        if isinstance(parameter.annotation, type) and dataclasses.is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            own = parameter.annotation.__annotations__
            # In the help, what a class adds comes before what it shares with others.
            parameters += sorted(_typed(parameter.annotation), key=lambda option: option.name not in own)
        else:
            parameters.append(parameter)

    @functools.wraps(command)
    def spread(**given: Any) -> R:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        return command(**given)

    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


def _typed(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function or dataclass, by keyword, with their annotations as types instead of texts."""
    hints = get_type_hints(function, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(function).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name], kind=keyword) for parameter in parameters]
