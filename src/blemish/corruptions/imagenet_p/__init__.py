"""ImageNet-P's perturbation sequences (Hendrycks and Dietterich, ICLR 2019): ten in the benchmark, five extra ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from blemish.core.errors import InputError
from blemish.corruptions.imagenet_p import pixels, warps
from blemish.corruptions.imagenet_p.sequence import DIFFICULTIES, PerturbationSequence, Preset, Scene, Window, strides

__all__ = ["DIFFICULTIES", "PerturbationSequence", "Preset", "Scene", "Sequences", "Window", "sequences", "strides"]


class Sequences(Mapping[str, PerturbationSequence]):
    """An immutable mapping from name to sequence. Unknown names are answered with the nearest known ones."""

    def __init__(self, *members: PerturbationSequence) -> None:
        entries: dict[str, PerturbationSequence] = {}
        for member in members:
            if member.name in entries:
                raise InputError(f"two sequences are named {member.name!r}; names must be unique")
            entries[member.name] = member
        self._entries = entries

    def __getitem__(self, name: str) -> PerturbationSequence:
        try:
            return self._entries[name]
        except KeyError:
            near = difflib.get_close_matches(str(name), self._entries, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(self._entries)}"
            raise InputError(f"unknown sequence {name!r}; {hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Sequences({', '.join(self)})"


sequences = Sequences(
    pixels.gaussian_noise,
    pixels.shot_noise,
    pixels.motion_blur,
    warps.zoom_blur,
    pixels.snow,
    pixels.brightness,
    warps.translate,
    warps.rotate,
    warps.tilt,
    warps.scale,
    pixels.speckle_noise,
    pixels.gaussian_blur,
    pixels.spatter,
    warps.shear,
    pixels.saturate,
)
