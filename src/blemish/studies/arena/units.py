"""Units of work: one method on one stream, with the files that its result and its state are kept in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.typed import optional_field
from blemish.studies.arena.setting import Setting


@dataclass(frozen=True)
class Variation:
    """Other settings of a method than the published ones: its learning rate times ``rate``, another batch size."""

    rate: float = 1.0
    batch: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no factor and no size."""
        if not 0 < self.rate < float("inf") or (self.batch is not None and self.batch < 1):
            raise InputError(f"rate × {self.rate:g}, batch {self.batch}; expected a positive factor, and at least 1")

    def __str__(self) -> str:
        parts = [f"rate×{self.rate:g}"] if self.rate != 1 else []
        return ",".join([*parts, *([] if self.batch is None else [f"batch={self.batch}"])])


AS_PUBLISHED = Variation()


@dataclass(frozen=True)
class Stage:
    """A stream: a setting in one of its orders, with a seed."""

    setting: Setting
    variant: str
    seed: int

    def __str__(self) -> str:
        order = f" {self.variant}" if len(self.setting.variants) > 1 else ""
        return f"{self.setting.name}{order}, seed {self.seed}"

    @property
    def slug(self) -> str:
        """The name of its files."""
        order = f".{self.variant}" if len(self.setting.variants) > 1 else ""
        return f"{_plain(self.setting.name)}{order}.seed-{self.seed}"


@dataclass(frozen=True)
class Unit:
    """A method on a stream. ``batch`` is the size of its batches, ``state`` what an interrupted run left."""

    stage: Stage
    method: str
    batch: int
    variation: Variation = AS_PUBLISHED
    state: bytes | None = optional_field(compare=False)

    def __str__(self) -> str:
        return f"{self.label} on {self.stage}"

    @property
    def label(self) -> str:
        """The method, with what is varied of it."""
        return f"{self.method}@{self.variation}" if str(self.variation) else self.method

    @property
    def slug(self) -> str:
        """The name of its files below that of its stream."""
        return _plain(self.label).replace("×", "x")

    def result(self, folder: Path) -> Path:
        """Where its result is written when it is over."""
        return folder / "results" / self.stage.slug / f"{self.slug}.parquet"

    def state_file(self, folder: Path, mark: str) -> Path:
        """Where its state is written meanwhile; the mark tells how it is made."""
        return folder / "states" / self.stage.slug / f"{self.slug}.{mark}.state"

    def resumed(self, state: bytes | None) -> Unit:
        """The same, to go on from a state."""
        return replace(self, state=state)


def _plain(name: str) -> str:
    return re.sub(r"[^\w.@=,×-]", "_", name)
