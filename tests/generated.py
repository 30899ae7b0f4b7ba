"""Examples that hypothesis makes; where it is not installed, tests of such examples are skipped and all others run."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

REASON = "hypothesis is not installed, which makes the examples"


def set_up_hypothesis() -> None:
    """Set how it makes examples, or stand in for it where it is missing."""
    if isinstance(sys.modules.get("hypothesis"), _Anything):
        return
    if importlib.util.find_spec("hypothesis") is None:
        _stand_in()
        return
    from hypothesis import settings

    # How long an example takes says more about the machine than about the code.
    settings.register_profile("blemish", deadline=None)
    settings.load_profile("blemish")


def _stand_in() -> None:
    found = _Anything("hypothesis")
    found.__spec__ = ModuleSpec("hypothesis", None)  # torch asks where it lies
    found.given, found.settings, found.example = _given, _leave_alone, _leave_alone
    sys.modules["hypothesis"] = found
    for name in ("strategies", "extra", "extra.numpy"):
        sys.modules[f"hypothesis.{name}"] = _Anything(f"hypothesis.{name}")


class _Anything(ModuleType):
    """Whatever is asked of it, such as a strategy, is something of which anything can be asked."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name)

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    __or__ = __ror__ = __getitem__ = __call__


def _leave_alone(*_: Any, **__: Any) -> Callable[[Any], Any]:
    return lambda test: test


def _given(*unnamed: Any, **named: Any) -> Callable[[Any], Any]:
    """A test that is skipped, and asks for what the test asks for beside its examples."""

    def skipped(test: Any) -> Any:
        asked = [value for name, value in inspect.signature(test).parameters.items() if name not in named]

        def instead(*_: Any, **__: Any) -> None:
            raise AssertionError(REASON)

        instead.__name__, instead.__doc__, instead.__module__ = test.__name__, test.__doc__, test.__module__
        instead.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        kept = asked[: len(asked) - len(unnamed)]  # those without a name are the last ones
        instead.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
        return pytest.mark.skip(reason=REASON)(instead)

    return skipped
