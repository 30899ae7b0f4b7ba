"""A bench: a model and images to measure it on, under two corruptions in a row.

A cell of a surface is a condition such as ``fog@2+snow@1``. The random draws of an image are the same in all cells, so
that surfaces are smooth.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import Condition, step_of
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.images import Images
from blemish.evaluation.executors.base import Tell
from blemish.evaluation.measure import Measurer
from blemish.evaluation.plan import Plan, plan_for
from blemish.models.base import Classifier
from blemish.studies.streams.adaptive import Cells, Refinement, refined
from blemish.studies.streams.images import image_list
from blemish.studies.streams.info import CalibrationInfo
from blemish.studies.streams.surface import GRID, Surface, check_grid
from blemish.version import VERSION

Pair = tuple[str, str]


@dataclass(frozen=True)
class Bench:
    """A model, labelled images to measure it on, and the settings that decide the outcome.

    ``jpeg`` stores them with JPEG of quality 85 at the end, as a stream with ``jpeg`` does. ``preparation`` says in
    words what was done to the pictures: see `blemish.studies.streams.images.preparation`.
    """

    model: Classifier
    images: Images
    seed: int = 0
    preset: str | None = None
    batch_size: int | None = None
    grid: tuple[float, ...] = GRID
    catalog: Catalog = field(default_factory=lambda: catalog)
    jpeg: bool = False
    preparation: str = "as they are"

    def __post_init__(self) -> None:
        """Refuse severities that are no grid."""
        check_grid(self.grid)

    @cached_property
    def plan(self) -> Plan:
        """The images and the model; conditions are chosen cell by cell."""
        protocol = Protocol(seed=self.seed, preset=self.preset, storage="jpeg85" if self.jpeg else "raw")
        plan = plan_for(self.model, self.images, protocol=protocol, batch_size=self.batch_size)
        return replace(plan, store_clean=True)  # as a stream does

    def surface(self, first: str, second: str, *, refinement: Refinement | None = None) -> Surface:
        """The surface of one ordered pair, measured in this process."""
        measurement = SurfaceMeasurement(self.grid, self.catalog, refinement)
        return measurement(Measurer(self.plan), (first, second))

    def describe(self, refinement: Refinement | None = None) -> CalibrationInfo:
        """What the numbers depend on."""
        return CalibrationInfo(
            images=len(self.images),
            shape=tuple(self.images.shapes[0].tolist()),
            data_fingerprint=self.images.fingerprint,
            image_list=image_list(self.images.names),
            preparation=self.preparation,
            jpeg=self.jpeg,
            seed=self.seed,
            preset=self.preset,
            grid=self.grid,
            model=self.model.describe(),
            refinement=refinement,
            frost=self.catalog.frost_kind,
            blemish=VERSION,
        )


@dataclass
class SurfaceMeasurement:
    """Measures surfaces, pair by pair, in any process; what a corruption does alone is measured once for all pairs."""

    grid: tuple[float, ...]
    catalog: Catalog
    refinement: Refinement | None = None
    _alone: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def __call__(self, measurer: Measurer, pair: Pair, _: Tell | None = None) -> Surface:
        """The surface of an ordered pair; with a ``refinement``, only the cells that its paths may use."""
        side, total = len(self.grid), len(measurer.plan.images[""].images)
        packed = np.zeros((side, side, -(-total // 8)), dtype=np.uint8)

        def accuracies(cells: Cells) -> NDArray[np.float64]:
            correct = self._correct(measurer, pair, cells)
            rows, columns = zip(*cells, strict=True)
            packed[rows, columns] = np.packbits(correct, axis=1)
            share: NDArray[np.float64] = correct.sum(1) / total
            return share

        if self.refinement is not None:
            values, measured = refined(accuracies, side, self.refinement)
            return Surface(*pair, values, total, self.grid, None if measured.all() else measured, packed)
        cells = [(a, b) for a in range(side) for b in range(side)]
        return Surface(*pair, accuracies(cells).reshape(side, side), total, self.grid, None, packed)

    def _correct(self, measurer: Measurer, pair: Pair, cells: Cells) -> NDArray[np.bool_]:
        """Which images are classified correctly in each cell (a, b) of the grid, as (cells, images)."""
        conditions = {cell: self._condition(pair, cell) for cell in cells}
        # Those that begin alike come one after the other, so that the first corruption is applied once to all.
        new = {str(condition): condition for _, condition in sorted(conditions.items())}
        new = {text: condition for text, condition in new.items() if text not in self._alone}
        try:
            measured = {str(condition): records.correct for condition, records in measurer.measure([*new.values()])}
        except InputError as error:
            raise InputError(f"{pair[0]} + {pair[1]}: {error}") from error
        self._alone |= {text: measured[text] for text, condition in new.items() if len(condition.steps) < 2}
        measured |= self._alone
        return np.stack([measured[str(condition)] for condition in conditions.values()])

    def _condition(self, pair: Pair, cell: tuple[int, int]) -> Condition:
        levels = [self.grid[number] for number in cell]
        return Condition(
            tuple(step_of(self.catalog[name], level) for name, level in zip(pair, levels, strict=True) if level > 0)
        )
