"""How many values a GPU and a CPU make differently: python perf/agreement.py [--images 8] [--side 224] [--only …].

Every corruption of the catalog, at severities 1, 3 and 5 or the only one there is, on the same uint8 images with the
same ids. Prints a table of those that differ at all, with the share of their values and the largest distance in levels.
"""

from __future__ import annotations

import argparse

import torch

import blemish
from blemish.core.errors import InputError
from gpu import synthetic_images


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX", help="beginnings of names")
    options = parser.parse_args()
    images = synthetic_images(options.images, options.side)
    there = images.cuda()
    same, rows = 0, []
    for name, corruption in blemish.catalog.items():
        if not name.startswith(tuple(options.only)):
            continue
        severities = (1.0, 3.0, 5.0) if corruption.only_severity is None else (corruption.only_severity,)
        try:
            pairs = [(corruption(images, severity=s), corruption(there, severity=s).cpu()) for s in severities]
        except InputError as error:  # a codec or photographs that this machine does not have
            print(f"{name} is left out: {error}")
            continue
        apart = torch.stack([(one.int() - two.int()).abs() for one, two in pairs])
        if bool(apart.any()):
            rows.append((float((apart > 0).double().mean()), name, int(apart.max())))
        else:
            same += 1
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.images} images of {options.side} pixels:"
    )
    print(f"{same} of {same + len(rows)} corruptions have the same bits; of the others:\n")
    print("| corruption | share of values that differ | by at most, levels |\n|---|---:|---:|")
    for share, name, most in sorted(rows, reverse=True):
        print(f"| {name} | {share:.1e} | {most} |")


if __name__ == "__main__":
    main()
