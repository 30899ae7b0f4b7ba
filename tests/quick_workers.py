"""Worker processes that are forked from one that has imported torch: each would else spend two seconds on that."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any


class QuickContext(ForkServerContext):
    """Stands for the spawning context: what a spawned process inherits is sent, since its real parent is older."""

    def __init__(self) -> None:
        super().__init__()
        self.set_forkserver_preload(["torch", "blemish.evaluation.run", "blemish.evaluation.executors.processes"])

    def Process(self, *, target: Callable[..., None], args: tuple[Any, ...], **settings: Any) -> BaseProcess:  # type: ignore[override]  # noqa: N802
        """A process that begins with the environment of this one."""
        return super().Process(target=_begin, args=(dict(os.environ), target, args), **settings)


def _begin(environment: dict[str, str], target: Callable[..., None], args: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*args)
