"""How long compiling takes on a machine's first use of each corruption: python perf/compiling.py.

A process with an empty folder for compiled code calls every corruption once; a second process finds the code there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import blemish

CHILD = """
import sys, time, torch, blemish
torch.set_num_threads(1)
image = torch.zeros(3, 64, 64, dtype=torch.uint8)
start = time.perf_counter()
import numba
print("importing numba", time.perf_counter() - start)
for name in sys.argv[1:]:
    start = time.perf_counter()
    blemish.corrupt(image, name, 3, ids=1)
    print(name, time.perf_counter() - start)
"""


def seconds(names: list[str], folder: str) -> dict[str, float]:
    """What each first call took in a process of its own."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": folder}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *names], env=settings, capture_output=True, check=True, text=True
    )
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in done.stdout.splitlines()}


def main() -> None:
    """Print a table in Markdown."""
    names = blemish.catalog.plain()
    with tempfile.TemporaryDirectory() as folder:
        first, second = seconds(names, folder), seconds(names, folder)
    print("| first call, one after the other | nothing compiled yet, s | compiled before, s |\n|---|---:|---:|")
    for name in first:
        print(f"| {name} | {first[name]:.2f} | {second[name]:.2f} |")
    print(f"| **all** | **{sum(first.values()):.1f}** | **{sum(second.values()):.1f}** |")


if __name__ == "__main__":
    main()
