"""A recipe: which corruptions at which severities, and how the results are stored. Checked before any work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.rng import check_seed
from blemish.corruptions.base import MIN_SIDE, Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import check_severity

__all__ = ["FORMATS", "Recipe", "check_sizes", "make_recipe"]

FORMATS = {"jpeg": (".jpg", ".jpeg"), "png": (".png",)}
"""Formats of stored pictures, and the file suffixes that say so; the first is given to files that need a new one."""


@dataclass(frozen=True)
class Recipe:
    """What is done to every image of a source."""

    corruptions: tuple[Corruption, ...]
    severities: tuple[float, ...]
    seed: int = 0
    preset: str | None = None
    file_format: str = "jpeg"
    resize: int | None = None
    crop: int | None = None

    @property
    def copies(self) -> int:
        """How many corrupted copies each image gets."""
        return len(self.corruptions) * len(self.severities)


def make_recipe(
    names: Iterable[str] | None = None,
    severities: Iterable[float] = (1, 2, 3, 4, 5),
    *,
    seed: int = 0,
    preset: str | None = None,
    file_format: str = "jpeg",
    resize: int | None = None,
    crop: int | None = None,
    catalog: Catalog = catalog,
) -> Recipe:
    """A checked recipe; without names it holds ImageNet-C's. Names and severities given twice count once."""
    chosen = tuple(catalog[name] for name in dict.fromkeys(catalog.plain() if names is None else names))
    if not chosen:
        raise InputError("no corruptions; expected at least one name")
    levels = tuple(dict.fromkeys(check_severity(level) for level in severities))
    if not levels:
        raise InputError("no severities; expected at least one")
    if file_format not in FORMATS:
        raise InputError(f"unknown format {file_format!r}; expected {' or '.join(FORMATS)}")
    for corruption in chosen:
        if preset is not None:
            corruption.table.at([0], preset)  # refuses an unknown preset, and names the known ones
        for level in levels:
            corruption.require(level)
    check_sizes(resize, crop)
    for corruption in chosen:
        corruption.check_files()
    return Recipe(chosen, levels, check_seed(seed), preset, file_format, resize, crop)


def check_sizes(resize: int | None, crop: int | None) -> None:
    """Refuse sizes that leave no picture to corrupt."""
    for what, side in (("resize", resize), ("crop", crop)):
        if side is not None and side < MIN_SIDE:
            raise InputError(f"{what} to {side} pixels; expected at least {MIN_SIDE}")
    if resize is not None and crop is not None and crop > resize:
        raise InputError(f"a crop of {crop} out of pictures resized to {resize}; expected a crop of at most {resize}")
