"""The ε_train × ε_test experiment: train at several noise levels, test at several, over many runs.

Algorithm 1 of Siedel et al. 2022. A run splits the data anew, trains one model per ε_train and measures each at every
ε_test. Runs are independent, go side by side, and are kept one file each, so that a stopped experiment can go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError, StorageError, WorkerError
from blemish.core.files import write_bytes
from blemish.core.folders import held_folder
from blemish.core.optional import optional_import
from blemish.core.reading import read_json
from blemish.core.rng import CounterRng
from blemish.core.settings import keep_settings
from blemish.evaluation.executors import Calls, Failed, Processes
from blemish.ops.balls import Norm
from blemish.studies.separation.exact import checked_points
from blemish.studies.separation.noise import Draws, Noise, as_unit_floats
from blemish.studies.separation.scores import Matrix, accuracy

Predict = Callable[[NDArray[Any]], NDArray[Any]]
Trainer = Callable[[NDArray[Any], NDArray[Any], Noise], Predict]
"""Trains on points and labels with this noise and returns a function that predicts labels."""

PROTOCOL = "protocol.json"


@dataclass(frozen=True)
class Protocol:
    """Everything that decides the numbers, apart from the trainer's own settings."""

    model: str
    norm: Norm
    epsilon_min: float
    eps_train: tuple[float, ...]
    eps_test: tuple[float, ...]
    k: int
    seed: int
    test_share: float
    clip: bool
    draws: Draws
    data: str
    """A digest of points and labels."""

    def __post_init__(self) -> None:
        for name, values in (("ε_train", self.eps_train), ("ε_test", self.eps_test)):
            if not values or len(set(values)) < len(values):
                raise InputError(f"{name} {values}; expected at least one radius, each once")
            for value in values:
                self.noise(0).of(value)
        if not (math.isfinite(self.epsilon_min) and self.epsilon_min > 0):
            raise InputError(f"ε_min = {self.epsilon_min}; expected a positive radius")
        if not 0 < self.test_share < 1:
            raise InputError(f"test_share={self.test_share}; expected a share between 0 and 1")

    def noise(self, run: int) -> Noise:
        """The noise of one run, with radius 0."""
        return Noise(0.0, norm=self.norm, k=self.k, seed=self.seed, run=run, clip=self.clip, draws=self.draws)

    def split(self, run: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of the training and of the test points: uniform at random, not stratified."""
        order = CounterRng(self.seed, torch.tensor([run]), "mscr/split").permutations("split", count)[0].numpy()
        tested = math.ceil(count * self.test_share)
        if not 0 < tested < count:
            raise InputError(f"test_share={self.test_share} of {count} points leaves nothing to train or to test with")
        return order[tested:], order[:tested]


def experiment(
    points: ArrayLike,
    labels: ArrayLike,
    train: Trainer,
    *,
    model: str,
    epsilon_min: float,
    eps_train: Sequence[float] = (0.0,),
    eps_test: Sequence[float] | None = None,
    norm: Norm = "linf",
    k: int = 10,
    runs: int = 20,
    seed: int = 0,
    test_share: float = 0.2,
    clip: bool = False,
    draws: Draws = "independent",
    folder: str | Path | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Matrix:
    """Accuracies for every ε_train and ε_test over ``runs`` runs; 0 and ε_min are always among the test radii.

    With a ``folder``, each finished run is kept there, and a later call continues; a folder with other settings is
    refused. ``jobs`` runs go side by side in processes of their own, which have to be able to import the trainer.
    """
    data, codes, _ = checked_points(points, labels)
    if runs < 1 or jobs < 1:
        raise InputError(f"runs={runs}, jobs={jobs}; expected at least 1 of each")
    wanted = {0.0, float(epsilon_min), *map(float, eps_test or ())}
    protocol = Protocol(
        model=model,
        norm=norm,
        epsilon_min=float(epsilon_min),
        eps_train=tuple(map(float, eps_train)),
        eps_test=tuple(sorted(wanted)),
        k=k,
        seed=seed,
        test_share=test_share,
        clip=clip,
        draws=draws,
        data=_digest(data, codes),
    )
    protocol.split(0, len(data))
    target = None if folder is None else Path(folder)
    work = partial(_one, as_unit_floats(data), codes, train, protocol, target)

    def measured(which: Sequence[int]) -> dict[int, NDArray[np.float64]]:
        tables: dict[int, NDArray[np.float64]] = {}
        for run, table in _tables(work, which, jobs):
            tables[run] = table
            if progress is not None:
                progress(runs - len(which) + len(tables), runs)
        return tables

    if target is None:
        tables = measured(range(runs))
    else:
        with held_folder(target):
            keep_settings(target / PROTOCOL, protocol, holds="runs with other settings")
            measured([run for run in range(runs) if not _file(target, run).is_file()])
            tables = {run: _read(_file(target, run), protocol) for run in range(runs)}
    return Matrix(protocol, np.stack([tables[run] for run in range(runs)]))


def _digest(*arrays: NDArray[Any]) -> str:
    state = hashlib.blake2b(digest_size=8)
    for array in arrays:
        state.update(f"{array.shape} {array.dtype}".encode())
        for row in array:
            state.update(np.ascontiguousarray(row).data)
    return state.hexdigest()


def _file(folder: Path, run: int) -> Path:
    return folder / f"run-{run:05d}.json"


def _read(path: Path, protocol: Protocol) -> NDArray[np.float64]:
    try:
        table = np.array(read_json(path)["accuracy"], dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a readable run ({error}); remove it to have it made again") from error
    if table.shape != (len(protocol.eps_test), len(protocol.eps_train)):
        raise InputError(f"{path}: a table of shape {table.shape}; remove it to have it made again")
    if not ((table >= 0) & (table <= 1)).all():
        raise InputError(f"{path}: accuracies outside 0 … 1; remove it to have it made again")
    return table


def _tables(
    work: Callable[[int], NDArray[np.float64]], which: Sequence[int], jobs: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Runs and their tables, as they are finished."""
    if jobs == 1 or len(which) < 2:
        yield from ((run, work(run)) for run in which)
        return
    with contextlib.closing(Processes(jobs).run(Calls(work), which)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, Failed):  # what fails in one run will in others
                kind = WorkerError if outcome.lost else StorageError if outcome.storage else InputError
                raise kind(f"run {outcome.unit}: {outcome.reason}") from RuntimeError(outcome.traceback)
            yield outcome.unit, outcome.result


def _one(
    points: NDArray[Any], codes: NDArray[np.int64], train: Trainer, protocol: Protocol, folder: Path | None, run: int
) -> NDArray[np.float64]:
    """One run: accuracies of shape (ε_test, ε_train)."""
    trained, tested = protocol.split(run, len(points))
    noise = protocol.noise(run)
    table = np.empty((len(protocol.eps_test), len(protocol.eps_train)))
    for column, eps_train in enumerate(protocol.eps_train):
        predict = train(points[trained], codes[trained], noise.of(eps_train, role="train"))
        for row, eps_test in enumerate(protocol.eps_test):
            table[row, column] = accuracy(predict, points[tested], codes[tested], noise.of(eps_test))
    if folder is not None:
        write_bytes(
            _file(folder, run), json.dumps({"run": run, "accuracy": table.tolist()}).encode(), destination=folder
        )
    return table


def from_estimator(make: Callable[[int], Any]) -> Trainer:
    """A trainer from a function that makes a fresh scikit-learn estimator for a seed."""
    return partial(_fit, make)


def _fit(make: Callable[[int], Any], points: NDArray[Any], labels: NDArray[Any], noise: Noise) -> Predict:
    noisy, targets = noise.augmented(points, labels)
    fitted = make(noise.run).fit(noisy.reshape(len(noisy), -1), targets)
    return lambda asked: np.asarray(fitted.predict(asked.reshape(len(asked), -1)))


def forest(trees: int = 100) -> Trainer:
    """A random forest, as in the paper with 100 trees; the run seeds it."""
    optional_import("sklearn")
    return from_estimator(partial(_forest, trees))


def _forest(trees: int, run: int) -> Any:
    return optional_import("sklearn.ensemble").RandomForestClassifier(n_estimators=trees, random_state=run)


def nearest_neighbour() -> Trainer:
    """The 1-nearest-neighbour classifier, which leaves as much room around points as there is."""
    optional_import("sklearn")
    return from_estimator(_nearest)


def _nearest(_run: int) -> Any:
    return optional_import("sklearn.neighbors").KNeighborsClassifier(n_neighbors=1)
