"""The catalog: an explicit, frozen mapping from name to corruption, to which users can add their own in a copy."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from blemish.core.errors import InputError, UnknownNameError
from blemish.corruptions.base import Corruption
from blemish.corruptions.imagenet_c import blur, digital, noise, weather
from blemish.corruptions.imagenet_c.spatter import spatter
from blemish.corruptions.lp import LP
from blemish.corruptions.noc import NOC
from blemish.corruptions.syn2nat.colour import COLOUR_CANDIDATES
from blemish.corruptions.syn2nat.shape import SHAPE_CANDIDATES
from blemish.corruptions.syn2nat.weather import WEATHER_CANDIDATES

__all__ = ["Catalog", "catalog"]


def hint(name: str, known: list[str]) -> str:
    """The known names nearest to one that is not known."""
    plain = name.lower().replace(" ", "_")
    near = [item for item in known if len(plain) > 2 and plain in item][:3]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    near = near or difflib.get_close_matches(plain, known, n=3, cutoff=0.7)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"known: {', '.join(known)}" if len(known) < 30 else f"there are {len(known)}; see blemish list"


class Catalog(Mapping[str, Corruption]):
    """An immutable mapping from name to corruption. Unknown names are answered with the nearest known ones.

    ``catalog.extended(mine)`` is a new catalog with further corruptions; the original never changes.
    """

    def __init__(self, *corruptions: Corruption) -> None:
        entries: dict[str, Corruption] = {}
        for corruption in corruptions:
            if corruption.name.startswith("p:") or set(corruption.name) & set("@+, \t\n"):
                raise InputError(
                    f"a corruption named {corruption.name!r}; expected a name without spaces, @, + and commas, that "
                    "does not begin with p: as perturbation sequences do"
                )
            if corruption.name in entries:
                raise InputError(f"two corruptions are named {corruption.name!r}; names must be unique")
            entries[corruption.name] = corruption
        self._entries: Mapping[str, Corruption] = MappingProxyType(entries)

    def __getitem__(self, name: str) -> Corruption:
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            raise UnknownNameError(f"unknown corruption {name!r}; {hint(str(name), list(self._entries))}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self)})"

    def __reduce__(self) -> tuple[type[Catalog], tuple[Corruption, ...]]:
        return Catalog, tuple(self._entries.values())

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
        mine = weather.frost_from(folder)
        self[mine.name]  # refused where there is none
        return Catalog(*(mine if corruption.name == mine.name else corruption for corruption in self.values()))

    @property
    def frost_kind(self) -> str | None:
        """Which photographs frost is made from, in the word of protocols; none of them is read for it."""
        frost = self.get("frost")
        return None if frost is None or frost.files is None else frost.files.kind

    def extended(self, *corruptions: Corruption) -> Catalog:
        """A new catalog with further corruptions; a name that is already taken is refused."""
        return Catalog(*self._entries.values(), *corruptions)


catalog = Catalog(
    noise.gaussian_noise,
    noise.shot_noise,
    noise.impulse_noise,
    blur.defocus_blur,
    blur.glass_blur,
    blur.motion_blur,
    blur.zoom_blur,
    weather.snow,
    weather.frost,
    weather.fog,
    weather.brightness,
    digital.contrast,
    digital.elastic_transform,
    digital.pixelate,
    digital.jpeg_compression,
    noise.speckle_noise,
    blur.gaussian_blur,
    spatter,
    digital.saturate,
    weather.frost_drawn,
    *NOC,
    *sorted((*SHAPE_CANDIDATES, *COLOUR_CANDIDATES, *WEATHER_CANDIDATES), key=lambda candidate: candidate.name),
    *LP,
)
