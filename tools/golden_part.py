"""Take the part of the reference's recordings that is committed: python tools/golden_part.py RECORDINGS tests/golden.

RECORDINGS is the folder with the full files; tests/golden/README.md says what they are. Only the public-domain
picture is taken (image 0), and nothing that holds pixels of frost photographs. Recordings with large fields of noise
are left out at 224 pixels, where they show nothing that they do not show at 32.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

PICTURE = "0"
SEVERITIES_224 = ("3",)
LEFT_OUT = ("frost",)
LARGE = ("gaussian_noise", "speckle_noise", "elastic_transform", "snow", "spatter")


def wanted(file: str, key: str) -> bool:
    """Whether an array of a file is taken; keys are ``image|I`` or ``NAME|SEVERITY|I|what``."""
    name, *rest = key.split("|")
    if name == "image":
        return rest == [PICTURE]
    severity, picture, _ = rest
    if picture != PICTURE or name in LEFT_OUT:
        return False
    return file == "cifar_c_32" or (severity in SEVERITIES_224 and name not in LARGE)


def main(source: Path, target: Path) -> None:
    """Write the arrays of one picture, and the statistics of the same."""
    for file in ("cifar_c_32", "imagenet_c_224"):
        with np.load(source / f"{file}.npz") as arrays:
            part = {key: arrays[key] for key in arrays.files if wanted(file, key)}
        np.savez_compressed(target / f"{file}.npz", **part)
    statistics = json.loads((source / "syn2nat_statistics.json").read_text(encoding="utf-8"))
    statistics["clean"] = {"image0": statistics["clean"]["image0"]}
    statistics["candidates"] = {name: {"image0": of["image0"]} for name, of in statistics["candidates"].items()}
    (target / "syn2nat_statistics.json").write_text(json.dumps(statistics, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
