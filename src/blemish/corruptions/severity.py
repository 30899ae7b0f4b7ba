"""Severity tables: real severities in 0 … 5 to parameters, one row per published severity and an identity row 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, brief

MAX_SEVERITY = 5

PUBLISHED_SIDE = 224
"""The side of the images for which settings without presets were published."""

# Severities whose parameters a table keeps.
_KEPT = 256

Params = Mapping[str, Tensor]
"""Parameter name to one float64 value per image, on the CPU."""


def is_truth(value: object) -> bool:
    """Whether it is true or false, of Python, NumPy or torch: all three can also be taken for a number."""
    return isinstance(value, bool) or getattr(value, "dtype", None) in (torch.bool, np.bool_)


def check_severity(value: object) -> float:
    """A severity as a number; anything but a number in 0 … 5 is refused."""
    try:
        number = float("nan") if isinstance(value, str) or is_truth(value) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 <= number <= MAX_SEVERITY:
        shown = severity_text(number) if number == number else brief(value)
        raise InputError(f"severity {shown}; expected a number in 0 … {MAX_SEVERITY}")
    return number


def severity_text(severity: float) -> str:
    """The shortest decimal text that means this very severity, for names, files and messages: 3 for 3.0.

    >>> severity_text(3.0), severity_text(2.50), severity_text(1 / 3), severity_text(0.00001)
    ('3', '2.5', '0.3333333333333333', '0.00001')
    """
    number = float(severity)
    return repr(number) if abs(number) >= 1e16 else np.format_float_positional(number, trim="-")


_Value = TypeVar("_Value")


class _Fixed(Mapping[str, _Value]):
    """A mapping that cannot be changed; unlike MappingProxyType it can be copied and sent to worker processes."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, _Value]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> _Value:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)


PRESETS: Mapping[str, int] = _Fixed({"imagenet": 224, "inception": 299, "imagenet64": 64, "cifar": 32})
"""The presets of ImageNet-C and the image side each was made for."""

DATA_SETS = (
    *("pathmnist", "bloodmnist", "dermamnist", "retinamnist", "tissuemnist", "octmnist", "breastmnist", "chestmnist"),
    *("pneumoniamnist", "organamnist", "organcmnist", "organsmnist"),
)
"""The data sets of MedMNIST-C, in the order of their publication: presets of corruptions with settings for each."""


def nearest_size(sizes: Mapping[str, int], height: int, width: int) -> str:
    """The name whose size is nearest to the shorter side; the smaller one when two are equally near."""
    return min(sizes, key=lambda name: (abs(sizes[name] - min(height, width)), sizes[name]))


def nearest_preset(height: int, width: int) -> str:
    """The ImageNet-C preset used for images of this size unless another is named.

    >>> nearest_preset(224, 224), nearest_preset(32, 32), nearest_preset(480, 640)
    ('imagenet', 'cifar', 'inception')
    """
    return nearest_size(PRESETS, height, width)


@dataclass(frozen=True)
class SeverityTable:
    """Rows 0 … 5 of parameters for each preset; row 0 is (the limit of) the identity.

    A table may have more rows than one for each whole severity, evenly spaced: for example one for each half. Between
    rows parameters are interpolated linearly, as continuously changing corruptions do: those in ``reciprocal`` through
    1/x, and those in ``rounded`` are rounded to whole numbers afterwards.
    """

    names: tuple[str, ...]
    rows: Mapping[str, tuple[tuple[float, ...], ...]]
    sizes: Mapping[str, int]
    rounded: frozenset[str] = frozenset()
    reciprocal: frozenset[str] = frozenset()
    _known: dict[tuple[object, ...], Mapping[str, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Keep copies of the mappings that nobody can change: corruptions share tables."""
        object.__setattr__(self, "rows", _Fixed(self.rows))
        object.__setattr__(self, "sizes", _Fixed(self.sizes))

    @classmethod
    def of(
        cls, *, rounded: Sequence[str] = (), reciprocal: Sequence[str] = (), **parameters: Sequence[float]
    ) -> SeverityTable:
        """Every parameter's values at severities 0 … 5, for images of any size.

        >>> SeverityTable.of(width=(0, 0.02, 0.05, 0.1, 0.2, 0.3)).at([2.5], "any")["width"].tolist()
        [0.07500000000000001]
        """
        rows = tuple(tuple(float(v[s]) for v in parameters.values()) for s in range(MAX_SEVERITY + 1))
        whole, inverse = frozenset(rounded), frozenset(reciprocal)
        return cls(tuple(parameters), {"any": rows}, {"any": PUBLISHED_SIDE}, rounded=whole, reciprocal=inverse)

    @classmethod
    def halves(cls, *, rounded: Sequence[str] = (), **parameters: Sequence[float]) -> SeverityTable:
        """Every parameter's values at severities 0, 0.5, 1, … 5, for images of any size.

        >>> width = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.2, 2)
        >>> SeverityTable.halves(width=width).at([0.5, 4, 4.75], "any")["width"].tolist()
        [0.1, 0.9, 1.6]
        """
        rows = tuple(tuple(float(v[s]) for v in parameters.values()) for s in range(2 * MAX_SEVERITY + 1))
        return cls(tuple(parameters), {"any": rows}, {"any": PUBLISHED_SIDE}, rounded=frozenset(rounded))

    @classmethod
    def linear(cls, **parameters: tuple[float, float]) -> SeverityTable:
        """Every parameter's value at severity 0, the identity, and at 5; linear between."""
        shares = [severity / MAX_SEVERITY for severity in range(MAX_SEVERITY + 1)]
        columns = {name: [(1 - s) * a + s * b for s in shares] for name, (a, b) in parameters.items()}
        return cls.of(rounded=(), reciprocal=(), **columns)

    @classmethod
    def between(cls, *, rounded: Sequence[str] = (), **parameters: tuple[float, float, float]) -> SeverityTable:
        """Every parameter's value at severity 0, the identity, and the range from severity 1 to 5; linear within it."""
        columns = {}
        for name, (identity, low, high) in parameters.items():
            step = (high - low) / (MAX_SEVERITY - 1)
            columns[name] = (identity, *(low + i * step for i in range(MAX_SEVERITY - 1)), high)
        return cls.of(rounded=rounded, reciprocal=(), **columns)

    @classmethod
    def by_preset(
        cls,
        names: tuple[str, ...],
        *,
        imagenet: Sequence[float] | Sequence[Sequence[float]],
        rounded: Sequence[str] = (),
        reciprocal: Sequence[str] = (),
        **rows: Sequence[float] | Sequence[Sequence[float]],
    ) -> SeverityTable:
        """Rows 0 … 5 of these parameters for ImageNet-C's presets; one without rows of its own has those of imagenet.

        A row of a single parameter is its number.
        """
        chosen = {preset: rows.get(preset, imagenet) for preset in PRESETS}
        floats = {
            preset: tuple(tuple(map(float, row if isinstance(row, Sequence) else [row])) for row in table)
            for preset, table in chosen.items()
        }
        return cls(names, floats, PRESETS, rounded=frozenset(rounded), reciprocal=frozenset(reciprocal))

    @property
    def by_data_set(self) -> bool:
        """Whether it has settings for data sets, as those of medical images have."""
        return not self.rows.keys().isdisjoint(DATA_SETS)

    @property
    def by_size(self) -> bool:
        """Whether the size of images decides about the settings."""
        return len(self.rows) > 1 and not self.by_data_set

    def preset(self, height: int, width: int) -> str:
        """The preset whose image size is nearest to the shorter side; the smaller one when two are equally near."""
        return nearest_size({name: self.sizes[name] for name in self.rows}, height, width)

    def numbers(self, severity: float, height: int, width: int, preset: str | None) -> Mapping[str, float]:
        """The parameters of one image of that size; kept, because the next image mostly has the same."""
        key = (severity, height, width, preset)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            params = self.at([severity], preset or self.preset(height, width))
            known = self._known[key] = {name: float(values[0]) for name, values in params.items()}
        return known

    def at(self, severity: Tensor | Sequence[float], preset: str) -> Params:
        """The parameters of each image for a severity per image. A table without presets serves for all of them.

        One with settings for data sets has those of the first where only a size is named.
        """
        if preset not in self.rows:
            any_preset = "any" in self.rows
            by_size = preset in PRESETS and not self.rows.keys() & PRESETS.keys()
            if not by_size and not (any_preset and preset in DATA_SETS):
                what = "no settings for" if preset in DATA_SETS else "unknown preset"
                raise InputError(
                    f"{what} {preset!r}; expected one of {', '.join(PRESETS if any_preset else self.rows)}"
                )
            preset = next(iter(self.rows))
        table = np.array(self.rows[preset])
        last = len(table) - 1
        # NumPy, because so few numbers are all overhead.
        levels = np.asarray(severity, dtype=np.float64)[:, None] * (last / MAX_SEVERITY)
        low = np.clip(np.floor(levels), 0, last - 1)
        inverse = [name in self.reciprocal for name in self.names]
        table[:, inverse] = 1 / table[:, inverse]
        row = low[:, 0].astype(np.int64)
        below, above = table[row], table[row + 1]
        # Published rows come out untouched: no rounding error is added where the severity is that of a row.
        values = np.where(levels == low + 1, above, below + (levels - low) * (above - below))
        with np.errstate(divide="ignore"):  # infinitely many photons at severity 0
            values[:, inverse] = 1 / values[:, inverse]
        whole = [name in self.rounded for name in self.names]
        values[:, whole] = np.rint(values[:, whole])
        return dict(zip(self.names, torch.from_numpy(np.ascontiguousarray(values.T)), strict=True))
