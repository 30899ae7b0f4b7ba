"""The files that ``blemish separation`` and ``blemish mscr`` write, found beside runs, read and checked."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from blemish.core.errors import InputError
from blemish.core.reading import is_there, read_json
from blemish.core.typed import Between, read_typed
from blemish.evaluation.runs import Run
from blemish.ops.balls import Norm
from blemish.studies.separation.exact import Separation
from blemish.studies.separation.experiment import Protocol
from blemish.studies.separation.sources import LeftOut

_ROUNDING = 1e-9
_NotNegative = Annotated[float, Between(0)]
_Count = Annotated[int, Between(1)]
T = TypeVar("T")


@dataclass(frozen=True)
class Mean:
    """A mean over runs and its spread, which a single run does not have."""

    mean: float
    half_width: _NotNegative | None
    deviation: _NotNegative | None
    runs: _Count


@dataclass(frozen=True)
class _Accuracy(Mean):
    mean: Annotated[float, Between(0, 1 + _ROUNDING)]


@dataclass(frozen=True)
class _Relative(Mean):
    mean: Annotated[float, Between(-1 - _ROUNDING)]


@dataclass(frozen=True)
class Settings:
    """How MSCR was measured."""

    norm: Norm
    k: _Count
    runs: _Count
    seed: int
    clip: bool


@dataclass(frozen=True)
class TrainedAt:
    """A model trained at some radii: accuracies per ε_test, and MSCR; one mean per ε_train."""

    protocol: Protocol
    runs: _Count
    accuracy: dict[str, list[_Accuracy]]
    mscr: list[_Relative]

    def __post_init__(self) -> None:
        radii, count = [str(eps) for eps in self.protocol.eps_test], len(self.protocol.eps_train)
        if list(self.accuracy) != radii or not {0.0, self.protocol.epsilon_min} <= set(self.protocol.eps_test):
            raise InputError(f"accuracy at {list(self.accuracy)}; expected it at {radii}, with 0 and ε_min among them")
        sizes = {f"accuracy.{eps}": len(means) for eps, means in self.accuracy.items()} | {"mscr": len(self.mscr)}
        for name, entries in sizes.items():
            if entries != count:
                raise InputError(f"{name} has {entries} entries; expected {count}, one for each ε_train")


@dataclass(frozen=True)
class Score:
    """The accuracies and MSCR of a model that had been trained before."""

    model: str
    epsilon: float
    clean: Annotated[float, Between(0, 1)]
    robust: _Accuracy
    mscr: _Relative


@dataclass(frozen=True)
class Experiment:
    """What one file says about MSCR; ``radius`` says where ε comes from.

    ``left_out`` are equal points with different labels that were not used, equal ones together.
    """

    epsilon: Annotated[float, Between(1e-300)]
    radius: str
    settings: Settings
    models: dict[str, TrainedAt]
    trained: list[Score]
    left_out: list[list[LeftOut]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.models and not self.trained:
            raise InputError("no models in it; expected at least one, under models or trained")
        protocols = {name: dataclasses.replace(model.protocol, model="") for name, model in self.models.items()}
        first = next(iter(protocols.values()), None)
        for name, protocol in protocols.items():
            _check_radius(f"models.{name}.protocol.epsilon_min", protocol.epsilon_min, self.epsilon)
            runs = self.models[name].runs
            settings = Settings(protocol.norm, protocol.k, runs, protocol.seed, protocol.clip)
            if protocol != first or settings != self.settings:
                raise InputError(f"models.{name} was measured with other settings; expected those of one command")
        for position, score in enumerate(self.trained):
            _check_radius(f"trained[{position}].epsilon", score.epsilon, self.epsilon)


def _check_radius(name: str, radius: float, epsilon: float) -> None:
    if radius != epsilon:
        raise InputError(f"{name} is {radius:g}; expected {epsilon:g}, the epsilon of the file")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """What a file says, and the name of its data where it holds one."""

    path: Path
    data: str | None
    result: T


@dataclass(frozen=True)
class SeparationFiles:
    """What stands beside some runs."""

    separations: list[Entry[Separation]]
    experiments: list[Entry[Experiment]]


def find_separation(runs: Sequence[Run], folders: Iterable[str | os.PathLike[str]] = ()) -> SeparationFiles:
    """Read the files in ``folders``, in the folders of the runs and in their parents, each once."""
    beside_runs = (folder for run in runs for folder in (run.folder, run.folder.resolve().parent))
    distinct: dict[Path, Path] = {}
    for folder in map(Path, (*folders, *beside_runs)):
        distinct.setdefault(folder.resolve(), folder)

    def entries(name: str, read: Callable[[Any], T]) -> list[Entry[T]]:
        paths = [folder / name for folder in distinct.values()]
        return [_read_entry(path, read) for path in paths if is_there(path)]

    return SeparationFiles(
        entries("separation.json", _read_separation), entries("mscr.json", lambda value: read_typed(Experiment, value))
    )


@dataclass(frozen=True)
class _Extras:
    data: str | None = None
    epsilon_min: float | None = None


def _read_entry(path: Path, read: Callable[[Any], T]) -> Entry[T]:
    value = read_json(path, nan=True)
    try:
        return Entry(path, read_typed(_Extras, value).data, read(value))
    except InputError as error:
        raise InputError(f"{path}: not what blemish {path.stem} writes ({error})") from error


def _read_separation(value: Any) -> Separation:
    result = read_typed(Separation, {**value, "pairs": None})  # a page does not show them, and there may be many
    epsilon_min = read_typed(_Extras, value).epsilon_min
    distance, listed, count = result.distance, len(result.contradictions), result.contradiction_count
    if not result.closest or not math.isclose(result.closest[0].distance, distance):
        raise InputError(f"the first of closest is elsewhere; expected a pair at the distance {distance:g}")
    if epsilon_min is None or not math.isclose(epsilon_min, result.epsilon_min):
        raise InputError(f"epsilon_min is {epsilon_min}; expected half of the distance {distance:g}")
    if listed and not result.duplicates_excluded and distance != 0:
        raise InputError(f"distance is {distance:g}; expected 0, as there are contradictions that were not left out")
    if count < listed or (count > 0) != (listed > 0):
        raise InputError(f"contradiction_count is {count}; expected that of the contradictions, {listed} are listed")
    return result
