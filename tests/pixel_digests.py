"""The pixels of every unit, for processes that should make the same ones: run with a number of threads and a file.

Every process is a fresh one. Within a process caches would show what the first call made, not what another would make.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import blemish
from blemish.corruptions.compose import chain, random_severity
from codec_units import by_codec
from frost_files import draw_pictures
from pictures import pictures

SIZES = [(27, 27), (64, 64), (67, 67), (96, 96), (48, 130), (224, 224), (299, 299)]
LARGE = 200
SEVERITIES = (0.3, 1.0, 5.0)


def units(frost: Path) -> dict[str, blemish.Corruption]:
    """All corruptions, frost with the photographs of a folder, and some made of others, which are in no catalog."""
    catalog = blemish.catalog.with_frost(frost)
    composed = [
        chain((catalog["elastic_transform"], 2), (catalog["jpeg_compression"], 3), (catalog["frost"], 1)),
        random_severity(catalog["elastic_transform"]),
    ]
    return {corruption.name: corruption for corruption in (*catalog.values(), *composed)}


def severities(corruption: blemish.Corruption) -> list[float]:
    """Low and high ones in one batch."""
    return [level if corruption.supports(level) else corruption.only_severity or 0 for level in SEVERITIES]


def results(images: dict[tuple[int, int, int], Tensor], frost: Path) -> Iterator[tuple[str, Tensor]]:
    """Name and pixels of every corruption and every sequence."""
    for name, corruption in units(frost).items():
        if by_codec(corruption):  # its version would decide
            continue
        for (channels, height, width), batch in images.items():
            levels = severities(corruption)[: len(batch)]
            yield f"{name} {channels}×{height}×{width}", corruption(batch, severity=levels, seed=3)
    for sequence in blemish.sequences.values():
        for (channels, height, width), batch in images.items():
            last = sequence.length(sequence.preset(height, width)) - 1
            for frame in (1, last):
                yield f"{sequence.name} {channels}×{height}×{width} {frame}", sequence.frame(batch, frame)


def inputs() -> dict[tuple[int, int, int], Tensor]:
    """Pictures of all sizes, as one thread makes them; the largest ones once, in colour."""
    torch.set_num_threads(1)
    shapes = [(channels, *size) for channels in (3, 1) for size in SIZES if channels == 3 or size[0] < LARGE]
    return {(c, h, w): pictures(3 if h < LARGE else 1, c, h, w) for c, h, w in shapes}


def digests(made: Mapping[str, NDArray[np.uint8]]) -> dict[str, str]:
    """A short text for the pixels of each case."""
    return {case: hashlib.blake2b(pixels.tobytes(), digest_size=8).hexdigest() for case, pixels in made.items()}


def change_settings() -> None:
    """What a caller may have told torch for reasons of its own."""
    torch.set_default_dtype(torch.bfloat16)
    torch.set_default_device("meta")
    torch.set_float32_matmul_precision("medium")
    torch.use_deterministic_algorithms(True)


def main(threads: int, frost: Path, target: Path, *, changed: bool) -> None:
    """Write digests as JSON, or whole pixels as an archive."""
    images = inputs()
    torch.set_num_threads(threads)
    if changed:
        change_settings()
    made = {case: found.numpy() for case, found in results(images, frost)}
    if target.suffix == ".npz":
        np.savez(target, **made)
    else:
        target.write_text(json.dumps(digests(made)))


def _in_a_fresh_process(target: Path, *options: str, threads: int = 1, **variables: str) -> Path:
    source = Path(blemish.__file__).parents[1]
    frost = draw_pictures(target.parent / "frost")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]),
        "OMP_WAIT_POLICY": "passive",  # threads that wait for each other should sleep
        **variables,
    }
    command = [sys.executable, __file__, str(threads), str(frost), str(target), *options]
    subprocess.run(command, env=environment, check=True)
    return target


def digests_with(threads: int, folder: Path, *options: str) -> dict[str, str]:
    """What another process makes with so many threads, with settings ``changed`` or as they are."""
    path = _in_a_fresh_process(folder / f"{threads}.json", *options, threads=threads)
    found: dict[str, str] = json.loads(path.read_text())
    return found


def pixels_with(instructions: str, folder: Path) -> dict[str, NDArray[np.uint8]]:
    """What another process makes with these of torch's instruction sets: default, avx2 or avx512."""
    path = _in_a_fresh_process(folder / f"{instructions}.npz", ATEN_CPU_CAPABILITY=instructions)
    with np.load(path) as made:
        found = dict(made)
    path.unlink()
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), changed="changed" in sys.argv)
