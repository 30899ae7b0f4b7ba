"""The files that ``blemish separation`` and ``blemish mscr`` write, found beside runs, read and checked."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from blemish.core.errors import InputError
from blemish.core.reading import is_there, read_json
from blemish.core.statistics import MeanEstimate
from blemish.evaluation.runs import Run
from blemish.ops.balls import Norm
from blemish.studies.separation.exact import NORMS, Pair, Separation
from blemish.studies.separation.scores import ModelScore

__all__ = ["MSCR_FILE", "SEPARATION_FILE", "Entry", "Experiment", "Found", "Settings", "TrainedAt", "find_separation"]

SEPARATION_FILE = "separation.json"
MSCR_FILE = "mscr.json"

_ROUNDING = 1e-9
_TINY, _HUGE = 1e-300, 1e300
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """How MSCR was measured; None is what a file of trained models alone does not say."""

    norm: Norm
    k: int
    runs: int
    seed: int
    clip: bool
    test_share: float | None = None
    draws: str | None = None


@dataclass(frozen=True)
class TrainedAt:
    """A model trained at some radii: accuracies per ε_test, and MSCR; one estimate per ε_train."""

    settings: Settings
    eps_train: list[float]
    accuracy: dict[float, list[MeanEstimate]]
    mscr: list[MeanEstimate]


@dataclass(frozen=True)
class Experiment:
    """What one file says about MSCR; ``radius`` says where ε comes from, if the file does."""

    epsilon: float
    radius: str | None
    settings: Settings | None
    models: dict[str, TrainedAt]
    trained: list[ModelScore]


@dataclass(frozen=True)
class Entry(Generic[T]):
    """What a file says, and the name of its data where it holds one."""

    path: Path
    data: str | None
    result: T


@dataclass(frozen=True)
class Found:
    """What stands beside some runs."""

    separations: list[Entry[Separation]]
    experiments: list[Entry[Experiment]]


def find_separation(runs: Sequence[Run], folders: Iterable[str | os.PathLike[str]] = ()) -> Found:
    """Read the files in ``folders``, in the folders of the runs and in their parents, each once."""
    own = (place for run in runs for place in (run.folder, run.folder.resolve().parent))
    places: dict[Path, Path] = {}
    for place in map(Path, (*folders, *own)):
        places.setdefault(place.resolve(), place)

    def entries(name: str, reader: Callable[[_Node], T]) -> list[Entry[T]]:
        nodes = [node for place in places.values() if (node := _read(place / name)) is not None]
        return [Entry(node.path, data.text() if (data := node.get("data")) else None, reader(node)) for node in nodes]

    return Found(entries(SEPARATION_FILE, _separation), entries(MSCR_FILE, _experiment))


@dataclass(frozen=True)
class _Node:
    """A value of a file, and where it stands there, for messages."""

    path: Path
    value: Any
    where: str = ""

    def wrong(self, expected: str) -> InputError:
        return InputError(f"{self.path}: {self.where or 'it'} is {reprlib.repr(self.value)}; expected {expected}")

    def entries(self) -> Iterator[tuple[str, _Node]]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        start = f"{self.where}." if self.where else ""
        return ((name, _Node(self.path, item, f"{start}{name}")) for name, item in self.value.items())

    def get(self, name: str) -> _Node | None:
        return dict(self.entries()).get(name)

    def __getitem__(self, name: str) -> _Node:
        if (found := self.get(name)) is None:
            where = f"{self.where} has no {name}" if self.where else f"no {name} in it"
            raise InputError(f"{self.path}: {where}; expected what blemish {self.path.stem} writes")
        return found

    def items(self) -> list[_Node]:
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [_Node(self.path, item, f"{self.where}[{place}]") for place, item in enumerate(self.value)]

    def number(self, low: float = 0.0, high: float = _HUGE) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not low <= self.value <= high:
            raise self.wrong(f"a number from {low:g}" + ("" if high == _HUGE else f" to {high:g}"))
        return float(self.value)

    def whole(self, low: int | None = 0) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or (low is not None and self.value < low):
            raise self.wrong("a whole number" + ("" if low is None else f" from {low}"))
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def label(self) -> str | int | float:
        if not isinstance(self.value, str | int | float):
            raise self.wrong("the name or number of a class")
        return self.value

    def norm(self) -> Norm:
        if self.value not in NORMS:
            raise self.wrong(f"one of {', '.join(NORMS)}")
        return cast(Norm, self.value)

    def spread(self) -> float:
        """A deviation; null, or NaN where Python wrote it, stands for none, as of a single run."""
        none = self.value is None or (isinstance(self.value, float) and math.isnan(self.value))
        return math.nan if none else self.number()


def _read(path: Path) -> _Node | None:
    if not is_there(path):
        return None
    try:
        return _Node(path, read_json(path, nan=True))
    except InputError as error:
        raise InputError(f"{error}; expected what blemish {path.stem} writes") from error


def _pair(node: _Node) -> Pair:
    classes = [item.label() for item in node["classes"].items()]
    if len(classes) != 2:
        raise node["classes"].wrong("two classes")
    return Pair(node["first"].whole(), node["second"].whole(), (classes[0], classes[1]), node["distance"].number())


def _separation(node: _Node) -> Separation:
    found = Separation(
        norm=node["norm"].norm(),
        points=node["points"].whole(2),
        classes=[item.label() for item in node["classes"].items()],
        distance=node["distance"].number(),
        closest=[_pair(item) for item in node["closest"].items()],
        pairs=None,  # a page does not show them
        contradictions=[_pair(item) for item in node["contradictions"].items()],
        contradiction_count=node["contradiction_count"].whole(),
        duplicates_excluded=node["duplicates_excluded"].flag(),
        scale=node["scale"].number(_TINY),
    )
    listed = len(found.contradictions)
    if not found.closest or not math.isclose(found.closest[0].distance, found.distance):
        raise node["closest"].wrong(f"pairs, the first at the distance {found.distance:g}")
    if not math.isclose(node["epsilon_min"].number(), found.epsilon_min):
        raise node["epsilon_min"].wrong(f"half of the distance {found.distance:g}")
    if listed and not found.duplicates_excluded and found.distance != 0:
        raise node["distance"].wrong("0, as there are contradictions that were not left out")
    if found.contradiction_count < listed or (found.contradiction_count > 0) != (listed > 0):
        raise node["contradiction_count"].wrong(f"the number of contradictions, of which {listed} are listed")
    return found


def _accuracy(node: _Node) -> MeanEstimate:
    return _estimate(node, 0.0, 1 + _ROUNDING)


def _relative(node: _Node) -> MeanEstimate:
    return _estimate(node, -1 - _ROUNDING, _HUGE)


def _estimate(node: _Node, low: float, high: float) -> MeanEstimate:
    mean, half = node["mean"].number(low, high), node["half_width"].spread()
    return MeanEstimate(mean, mean - half, mean + half, node["deviation"].spread(), node["runs"].whole(1))


def _settings(node: _Node, runs: _Node) -> Settings:
    share, draws = node.get("test_share"), node.get("draws")
    return Settings(
        norm=node["norm"].norm(),
        k=node["k"].whole(1),
        runs=runs.whole(1),
        seed=node["seed"].whole(None),
        clip=node["clip"].flag(),
        test_share=share.number(0.0, 1.0) if share else None,
        draws=draws.text() if draws else None,
    )


def _trained_at(node: _Node, epsilon: float) -> TrainedAt:
    protocol = node["protocol"]
    _same_radius(protocol["epsilon_min"], epsilon)
    eps_train = [item.number() for item in protocol["eps_train"].items()]
    eps_test = [item.number() for item in protocol["eps_test"].items()]
    if not {0.0, epsilon} <= set(eps_test):
        raise protocol["eps_test"].wrong(f"0 and {epsilon:g} among the radii")

    def per_radius(part: _Node, reader: Callable[[_Node], MeanEstimate]) -> list[MeanEstimate]:
        found = [reader(item) for item in part.items()]
        if len(found) != len(eps_train):
            raise part.wrong(f"{len(eps_train)} entries, one for each ε_train")
        return found

    accuracy = {eps: per_radius(node["accuracy"][str(eps)], _accuracy) for eps in eps_test}
    return TrainedAt(_settings(protocol, node["runs"]), eps_train, accuracy, per_radius(node["mscr"], _relative))


def _score(node: _Node, epsilon: float) -> ModelScore:
    _same_radius(node["epsilon"], epsilon)
    clean, robust = node["clean"].number(0.0, 1.0), _accuracy(node["robust"])
    return ModelScore(node["model"].text(), epsilon, clean, robust, _relative(node["mscr"]))


def _same_radius(node: _Node, epsilon: float) -> None:
    if node.number() != epsilon:
        raise node.wrong(f"{epsilon:g}, the epsilon of the file")


def _experiment(node: _Node) -> Experiment:
    epsilon = node["epsilon"].number(_TINY)
    models = {name: _trained_at(item, epsilon) for name, item in node["models"].entries()}
    trained = [_score(item, epsilon) for item in node["trained"].items()]
    if not models and not trained:
        raise node["models"].wrong("at least one model, here or under trained")
    common = {(str(model.settings), tuple(model.accuracy)): name for name, model in models.items()}
    if len(common) > 1:
        named = " and ".join(list(common.values())[:2])
        raise InputError(f"{node.path}: {named} were measured with different settings; expected those of one command")
    given, radius = node.get("settings"), node.get("radius")
    settings = _settings(given, given["runs"]) if given else None
    settings = next((model.settings for model in models.values()), settings)
    return Experiment(epsilon, radius.text() if radius else None, settings, models, trained)
