"""A recipe: which corruptions at which severities, and how the results are stored. Checked before any work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from blemish.core.errors import InputError, about
from blemish.core.rng import check_seed
from blemish.core.types import Square
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.inputs import MIN_SIDE
from blemish.corruptions.severity import check_severity
from blemish.data.formats import picture_format


@dataclass(frozen=True, kw_only=True)
class PictureRecipe:
    """How the copies of pictures are drawn and stored."""

    seed: int = 0
    preset: str | None = None
    file_format: str = "jpeg"
    resize: int | None = None
    crop: int | Square | None = None

    def __post_init__(self) -> None:
        """Give formats their plain names; refuse unknown ones, and sizes that leave no picture to corrupt."""
        object.__setattr__(self, "file_format", str(picture_format(self.file_format)))
        if isinstance(self.crop, Square):
            if self.resize is not None:
                raise InputError("a square together with resize; expected one of them")
            self.crop.check(least=MIN_SIDE)
            return
        resize, crop = self.resize, self.crop
        for change, side in (("resize", resize), ("crop", crop)):
            if side is not None and side < MIN_SIDE:
                raise InputError(f"{change} to {side} pixels; expected at least {MIN_SIDE}")
        if resize is not None and crop is not None and crop > resize:
            raise InputError(
                f"a crop of {crop} out of pictures resized to {resize}; expected a crop of at most {resize}"
            )

    @property
    def sizes(self) -> dict[str, Any]:
        """How pictures are brought to size, in the words of the manifest."""
        return {"resize": self.resize, "crop": str(self.crop) if isinstance(self.crop, Square) else self.crop}


@dataclass(frozen=True)
class Recipe(PictureRecipe):
    """What is done to every image of a source."""

    corruptions: tuple[Corruption, ...]
    severities: tuple[float, ...]

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
    crop: int | Square | None = None,
    catalog: Catalog = catalog,
) -> Recipe:
    """A checked recipe; without names it holds ImageNet-C's. Names and severities given twice count once."""
    chosen = tuple(catalog[name] for name in dict.fromkeys(catalog.plain() if names is None else names))
    if not chosen:
        raise InputError("no corruptions; expected at least one name")
    levels = tuple(dict.fromkeys(check_severity(level) for level in severities))
    if not levels:
        raise InputError("no severities; expected at least one")
    for corruption in chosen:
        if preset is not None:
            with about(corruption.name):
                corruption.table.at([0], preset)  # refuses an unknown preset, and names the known ones
        for level in levels:
            corruption.require(level)
    recipe = Recipe(
        chosen, levels, seed=check_seed(seed), preset=preset, file_format=file_format, resize=resize, crop=crop
    )
    for corruption in chosen:
        corruption.check_files()
    return recipe
