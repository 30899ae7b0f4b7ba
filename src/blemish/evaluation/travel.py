"""Images on their way to workers: as they are, as a file that is mapped, or as what has to be opened again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from blemish.core.errors import InputError
from blemish.core.files import staging_path
from blemish.data.cache import Images
from blemish.data.natural import same_classes
from blemish.data.stored import StoredSet
from blemish.evaluation.executors.tensors import mapped_file
from blemish.evaluation.shards import Mapped, Reopened, View
from blemish.evaluation.stage import Setting, Stage

__all__ = ["reopening", "travelling"]


def travelling(
    setting: Setting, stage: Stage, views: Mapping[str, Images], folder: Path, stack: contextlib.ExitStack
) -> dict[str, View]:
    """The views as workers take them, by what they share with this process; ``stack`` removes the files at the end."""
    reach, protocol = setting.executor.reach, setting.benchmark.protocol
    if reach == "process":
        return {name: View(images) for name, images in views.items()}
    nothing = np.empty(0, dtype=np.uint8)
    if reach == "machine":
        files: dict[int, Mapped] = {}
        for images in views.values():
            if id(images.pixels) not in files:
                files[id(images.pixels)] = Mapped(_file_of(images, folder, stack), images.pixels.size)
        return {name: View(replace(images, pixels=nothing), files[id(images.pixels)]) for name, images in views.items()}
    found = {}
    for name, images in views.items():
        source = stage.source
        crop = None if setting.benchmark.has_sequences and not name.startswith("natural:") else protocol.crop
        if name.startswith("natural:"):
            source = setting.natural[name.partition(":")[2]]
        elif name:
            source = same_classes(name.partition(":")[2], stage.source)
        if source.reopen is None:
            raise InputError(
                f"{source.name}: these images cannot be opened on other machines; "
                "expected a path, or a source with a way to reopen it"
            )
        found[name] = View(replace(images, pixels=nothing), Reopened(source.reopen, protocol.resize, crop))
    return found


def _file_of(images: Images, folder: Path, stack: contextlib.ExitStack) -> Path:
    """The file that the pixels lie in; where they do not, one that is written now."""
    file = images.pixels.filename if isinstance(images.pixels, np.memmap) else None
    if isinstance(file, (str, Path)) and Path(file).is_file():
        return Path(file)
    return stack.enter_context(mapped_file(images.pixels, staging_path(folder, "pixels")))


def reopening(stored: StoredSet | None) -> Callable[[], StoredSet] | None:
    """How workers open a stored set."""
    if stored is not None and stored.reopen is None:
        raise InputError(f"{stored.name}: a stored set that workers cannot open; expected one of open_stored")
    return None if stored is None else stored.reopen
