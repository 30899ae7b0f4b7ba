"""The catalog: an explicit, frozen mapping from name to corruption, to which users can add their own in a copy."""

from __future__ import annotations

import os

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.by_name import ByName, hint
from blemish.corruptions.cbar import CBAR
from blemish.corruptions.cbar.candidates import CANDIDATES
from blemish.corruptions.human import HUMAN
from blemish.corruptions.imagenet_c import IMAGENET_C
from blemish.corruptions.imagenet_c.weather import frost_from
from blemish.corruptions.laion import LAION_C, tiled_with
from blemish.corruptions.lp import LP
from blemish.corruptions.med import MED
from blemish.corruptions.noc import NOC
from blemish.corruptions.optics import OPTICS
from blemish.corruptions.sensor import SENSOR
from blemish.corruptions.syn2nat import SYN2NAT

__all__ = ["Catalog", "catalog", "catalogue_of", "hint"]

_NO_PREFIX = "imagenet-c"


def catalogue_of(corruption: Corruption) -> str:
    """The catalogue that a corruption belongs to: its prefix. Those without one are ImageNet-C's, or users' own.

    >>> catalogue_of(catalog["cbar:sparkles"]), catalogue_of(catalog["fog"])
    ('cbar', 'imagenet-c')
    """
    prefix, colon, _ = corruption.name.partition(":")
    return prefix if colon else _NO_PREFIX


class Catalog(ByName[Corruption]):
    """An immutable mapping from name to corruption.

    ``catalog.extended(mine)`` is a new catalog with further corruptions; the original never changes.
    """

    kind = "corruption"

    def __init__(self, *corruptions: Corruption) -> None:
        for corruption in corruptions:
            if corruption.name.startswith("p:") or set(corruption.name) & set("@+, \t\n"):
                raise InputError(
                    f"a corruption named {corruption.name!r}; expected a name without spaces, @, + and commas, that "
                    "does not begin with p: as perturbation sequences do"
                )
        super().__init__(*corruptions)

    def plain(self) -> list[str]:
        """The names without a namespace, but for variants: ImageNet-C's, and those that users add without one."""
        return [name for name, corruption in self.items() if ":" not in name and corruption.variant_of is None]

    def kin(self, name: str) -> set[str]:
        """A corruption, the one it is a variant of, and all variants of either: who has seen one has seen them all.

        >>> sorted(catalog.kin("frost_drawn"))
        ['frost', 'frost_drawn']
        """
        known = self.get(name)
        root = name if known is None else known.variant_of or name
        return {name, root, *(other for other in self if self[other].variant_of == root)}

    def with_frost(self, folder: str | os.PathLike[str]) -> Catalog:
        """A catalog whose frost is made from the photographs in a folder: see `frost_from`."""
        mine = frost_from(folder)
        self[mine.name]  # refused where there is none
        return Catalog(*(mine if corruption.name == mine.name else corruption for corruption in self.values()))

    def with_tiles(self, folder: str | os.PathLike[str]) -> Catalog:
        """A catalog whose mosaics and stickers are made of crops of the pictures in a folder: see `tiled_with`."""
        mine = {corruption.name: corruption for corruption in tiled_with(folder)}
        return Catalog(*(mine.get(name, corruption) for name, corruption in self.items()))

    @property
    def frost_kind(self) -> str | None:
        """Which photographs frost is made from, in the word of protocols; none of them is read for it."""
        frost = self.get("frost")
        return None if frost is None or frost.files is None else frost.files.kind

    def extended(self, *corruptions: Corruption) -> Catalog:
        """A new catalog with further corruptions; a name that is already taken is refused."""
        return Catalog(*self._entries.values(), *corruptions)


catalog = Catalog(*IMAGENET_C, *NOC, *SYN2NAT, *LP, *CBAR, *CANDIDATES, *OPTICS, *HUMAN, *LAION_C, *SENSOR, *MED)
