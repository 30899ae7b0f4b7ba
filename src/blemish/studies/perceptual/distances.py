"""How far each image is from its clean one, condition by condition; kept in a folder, so that a stopped study goes on.

::

    OUT/distances/<condition>.<measure>.npz    a distance for each image, and what they were made with
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import held_folder
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.settings import differences, listed
from blemish.core.statistics import MeanEstimate, estimate_mean
from blemish.data.arrays import read_members
from blemish.data.images import Images
from blemish.evaluation.header import protocol_info
from blemish.evaluation.pixels import as_stored
from blemish.evaluation.plan import fitting_batch_size
from blemish.evaluation.predict import Batcher
from blemish.ops.similarity import ms_ssim, ssim

DISTANCES = "distances"

# What a protocol says of answers, not of pixels.
_NOT_OF_PIXELS = ("labels", "pixels", "stored", "superclasses", "pool")


@dataclass(frozen=True)
class Measure:
    """A distance of two uint8 batches, a number per image; ``made_with`` tells its versions apart."""

    name: str
    title: str
    distance: Callable[[Tensor, Tensor], Tensor]
    made_with: str = "1"


SSIM = Measure("ssim", "1 − SSIM", lambda clean, other: 1 - ssim(clean, other))
MS_SSIM = Measure("ms_ssim", "1 − MS-SSIM", lambda clean, other: 1 - ms_ssim(clean, other))


@dataclass(frozen=True)
class Distances:
    """The distances of one condition, by the name of the measure: float32, one for each image."""

    condition: Condition
    values: Mapping[str, NDArray[np.float32]]

    def mean(self, measure: str, *, level: float = 0.95) -> MeanEstimate:
        """The mean over images, with Student's interval."""
        return estimate_mean(self.values[measure], level=level)


def measure_distances(
    images: Images,
    benchmark: Benchmark,
    *,
    folder: Path,
    measures: Sequence[Measure] = (SSIM, MS_SSIM),
    device: torch.device | None = None,
    batch_size: int | None = None,
    report: ProgressReport = tell_nobody,
) -> list[Distances]:
    """Compare the images under all conditions of a benchmark with the clean ones.

    What a folder holds already is kept; anything in it that was made in another way is refused. Sequences and natural
    sets have no clean image of the same view, and are refused.
    """
    conditions = [condition for condition in benchmark.conditions if condition.steps or condition.other]
    for condition in conditions:
        if condition.is_sequence or condition.other is not None:
            raise InputError(f"{condition}: no distance from a clean image of the same view; expected corruptions")
        condition.check_files()
    chosen_device = device or torch.device("cpu")
    batcher = Batcher(batch_size or fitting_batch_size(images, chosen_device))
    work = _Work(images, benchmark, folder, measures, chosen_device, batcher, report)
    with held_folder(folder, names=(DISTANCES,)):
        return [work.distances(number, condition, len(conditions)) for number, condition in enumerate(conditions)]


@dataclass(frozen=True)
class _Work:
    images: Images
    benchmark: Benchmark
    folder: Path
    measures: Sequence[Measure]
    device: torch.device
    batcher: Batcher
    report: ProgressReport

    def distances(self, number: int, condition: Condition, conditions: int) -> Distances:
        """Those that the folder holds, and those that are missing, which are kept in it."""
        paths = {m.name: self.folder / DISTANCES / f"{condition.slug}.{m.name}.npz" for m in self.measures}
        known = {m.name: _read(paths[m.name], self._header(condition, m)) for m in self.measures}
        missing = [m for m in self.measures if known[m.name] is None]
        self.report(number * len(self.images), conditions * len(self.images), str(condition))
        if missing:
            for measure, values in zip(missing, self._measured(number, condition, conditions, missing), strict=True):
                if not np.isfinite(values).all():
                    raise InputError(f"{condition}: {measure.title} is not a number for some image")
                header = json.dumps(self._header(condition, measure), sort_keys=True)
                buffer = io.BytesIO()
                np.savez(buffer, header=np.asarray(header), values=values)
                write_bytes(paths[measure.name], buffer.getvalue(), destination=self.folder)
                known[measure.name] = values
        return Distances(condition, {name: values for name, values in known.items() if values is not None})

    def _measured(
        self, number: int, condition: Condition, conditions: int, measures: Sequence[Measure]
    ) -> list[NDArray[np.float32]]:
        values = np.empty((len(measures), len(self.images)), dtype=np.float32)
        protocol = self.benchmark.protocol
        done = number * len(self.images)

        def work(rows: list[int]) -> NDArray[np.float32]:
            clean = self.images.batch(rows).to(self.device)
            ids = torch.from_numpy(self.images.ids[rows])
            made = condition.apply(clean, seed=protocol.seed, ids=ids, preset=protocol.preset)
            made = as_stored(made, protocol.storage)
            return np.stack([measure.distance(clean, made).cpu().numpy() for measure in measures])

        for shape_rows in self.images.by_shape():
            for rows, measured in self.batcher.map(work, shape_rows):
                values[:, rows] = measured
                done += len(rows)
                self.report(done, conditions * len(self.images), str(condition))
        return list(values)

    def _header(self, condition: Condition, measure: Measure) -> dict[str, Any]:
        protocol = asdict(protocol_info(self.benchmark).of(condition))
        pixels = {key: value for key, value in protocol.items() if key not in _NOT_OF_PIXELS}
        return {
            "condition": str(condition),
            "images": self.images.fingerprint,
            "measure": {"name": measure.name, "made_with": measure.made_with},
            "protocol": json.loads(json.dumps(pixels)),
        }


def _read(path: Path, header: Mapping[str, Any]) -> NDArray[np.float32] | None:
    """The distances in a file; None where there is none, and an error where they were made in another way."""
    if not path.exists():
        return None
    members = read_members(path, ("header", "values"))
    try:
        present = dict(json.loads(str(members["header"])))
        values = np.asarray(members["values"], dtype=np.float32)
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: not a readable file of distances ({error}); remove it") from error
    if lines := differences(present, dict(header)):
        raise InputError(f"{path}: holds distances of another study ({listed(lines)}); choose another folder")
    return values
