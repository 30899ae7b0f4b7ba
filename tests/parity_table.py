"""Print the parity tables of docs/corruptions.md, cbar.md, optics.md and medical.md.

Needs the recordings beside the checkout. Run with names of catalogues (imagenet-c, cbar, optics, med) for theirs alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from blemish.corruptions.optics import MODES
from conftest import SHARED
from corruptions import test_cbar_parity, test_med, test_optics
from corruptions.test_parity import CASES, FILES, load, rendered

Difference = tuple[str, str, NDArray[np.int64]]
"""File, corruption, and how many levels apart our values are from the reference's."""


def imagenet_c() -> Iterator[Difference]:
    """ImageNet-C and its relatives."""
    for file, name, severity in CASES:
        arrays = load(SHARED / "golden" / f"{file}.npz")
        for image in [key.removeprefix("image|") for key in arrays if key.startswith("image|")]:
            if file == "ccc_224" and name == "glass_blur" and severity >= 1:
                continue
            expected = arrays[f"{name}|{severity}|{image}|out"].astype(int)
            yield file, name, np.abs(rendered(file, name, severity, image, arrays) - expected)


def cbar() -> Iterator[Difference]:
    """C̄."""
    for file, name, level in test_cbar_parity.CASES:
        yield file, name, test_cbar_parity.difference(file, name, level)


def optics() -> Iterator[Difference]:
    """Images through OpticsBench's lenses."""
    for name in MODES:
        for found in test_optics.differences(SHARED / "golden", name):
            yield "optics_224", name, found


def med() -> Iterator[Difference]:
    """MedMNIST-C, but for characters."""
    arrays = test_med.load()
    for unit, severity, image in test_med.CASES:
        data_set, name = unit.split("/")
        if name != "characters":
            yield "medmnist_c_224", name, test_med.difference(data_set, name, severity, image, arrays)


def print_table(differences: Iterator[Difference], files: list[str]) -> None:
    """One row per corruption: the share of equal values, of values within one level, and the largest difference."""
    found: dict[str, dict[str, list[NDArray[np.int64]]]] = {}
    for file, name, difference in differences:
        found.setdefault(name, {}).setdefault(file, []).append(difference.ravel())
    print("| corruption | " + " | ".join(files) + " | within one level | largest difference |")
    print("|---|" + "---:|" * (len(files) + 2))
    for name, parts in found.items():
        shares = [f"{100 * (np.concatenate(parts[f]) == 0).mean():.2f} %" if f in parts else "–" for f in files]
        everything = np.concatenate([part for some in parts.values() for part in some])
        print(f"| {name} | {' | '.join(shares)} | {100 * (everything <= 1).mean():.3f} % | {everything.max()} |")


def print_kernels() -> None:
    """One row per aberration: the largest L1 distance of a kernel from the published one, for both stacks."""
    recorded = load(SHARED / "golden" / "optics_kernels.npz")
    print("| aberration | " + " | ".join(test_optics.STACKS) + " |")
    print("|---|" + "---:|" * len(test_optics.STACKS))
    for number, name in enumerate(MODES):
        furthest = [test_optics.distances(recorded, stack, number).max() for stack in test_optics.STACKS]
        print(f"| {name} | " + " | ".join(f"{value:.5f}" for value in furthest) + " |")


TABLES: dict[str, tuple[Callable[[], Iterator[Difference]], list[str]]] = {
    "imagenet-c": (imagenet_c, list(FILES)),
    "cbar": (cbar, list(test_cbar_parity.FILES)),
    "optics": (optics, ["optics_224"]),
    "med": (med, ["medmnist_c_224"]),
}


def main(names: list[str]) -> None:
    """Print the tables of these catalogues, or of all."""
    for name in names or TABLES:
        print(f"\n{name}\n")
        differences, files = TABLES[name]
        print_table(differences(), files)
        if name == "optics":
            print()
            print_kernels()


if __name__ == "__main__":
    main(sys.argv[1:])
