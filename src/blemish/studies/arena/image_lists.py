"""Published lists of images: which of a validation set are shown."""

from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np

from blemish.core.errors import InputError
from blemish.data.source import Source

LISTS = {"robustbench": "imagenet_5000.json"}
"""Lists by name: RobustBench's 5,000 images of ImageNet's validation set, which most papers on ImageNet-C show."""

_NUMBER = re.compile(r"ILSVRC2012_val_(\d{8})")


def listed_images(source: Source, name: str) -> Source:
    """Those images of a source that a list names, in the order of the source."""
    if name not in LISTS:
        raise InputError(f"list {name!r}; expected {', '.join(LISTS)}")
    text = resources.files("blemish.studies.arena").joinpath(LISTS[name]).read_text(encoding="utf-8")
    wanted = set(json.loads(text)["numbers"])
    numbers = [int(match[1]) if (match := _NUMBER.search(name)) else 0 for name in source.names]
    rows = np.array([row for row, number in enumerate(numbers) if number in wanted], dtype=np.int64)
    if len({numbers[row] for row in rows.tolist()}) != len(wanted) or len(rows) != len(wanted):
        raise InputError(
            f"{source.name}: {len(rows):,} of the {len(wanted):,} images of the list {name} are there; expected each "
            "once, called ILSVRC2012_val_00000001 and so on"
        )
    return source.take(rows)
