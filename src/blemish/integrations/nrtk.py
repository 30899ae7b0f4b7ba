"""Every corruption as a perturber of nrtk: ``PerturbImage.get_impls()`` finds them, and configurations name them.

They are classes such as `FogPerturber`, `NocBorderPerturber`, `Syn2natRainPerturber`; `perturbers` has them by the
names of their corruptions. The module can be imported without nrtk, for smqtk imports what its entry points name, and
defines no perturbers then.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.core.rng import hash_id
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog
from blemish.corruptions.transform import Corrupt

_SEVERITY = 3.0  # where none is given


def _make(base: Any) -> dict[str, type]:
    """A class for every corruption, so that each can be found, named and configured as nrtk's own are."""

    class BlemishPerturber(base):
        """What the perturbers share: a severity in 0 … 5, a seed and a preset."""

        corruption: Corruption

        def __init__(self, *, severity: float | None = None, seed: int = 0, preset: str | None = None) -> None:
            super().__init__()
            chosen = (self.corruption.only_severity or _SEVERITY) if severity is None else severity
            self._corrupt = Corrupt(self.corruption, chosen, seed=seed, preset=preset)

        @classmethod
        def is_usable(cls) -> bool:
            """Whether it is a perturber: what they share is none."""
            return hasattr(cls, "corruption")

        def perturb(
            self,
            *,
            image: NDArray[Any],
            boxes: Any = None,
            id: int | str | None = None,  # noqa: A002
            **_: Any,
        ) -> tuple[NDArray[Any], Any]:
            """The corrupted image, of the same type and shape, and the boxes as they came.

            The draw depends on ``id``, a number or a text, which nrtk hands on from MAITE's metadata; without one, on
            the content of the image.
            """
            number = hash_id(id) if isinstance(id, str) else id
            return self._corrupt(image, id=number), boxes

        def get_config(self) -> dict[str, Any]:
            """The settings, from which ``from_config`` makes the same perturber."""
            settings = self._corrupt
            return {"severity": settings.severity, "seed": settings.seed, "preset": settings.preset}

    made: dict[str, type] = {}
    for name, corruption in catalog.items():
        title = "".join(part.capitalize() for part in name.replace(":", "_").split("_")) + "Perturber"
        text = f"{corruption.description} (``{name}``)"
        members = {"corruption": corruption, "__doc__": text, "__module__": __name__}
        made[name] = type(title, (BlemishPerturber,), members)
    return made


_is_there = importlib.util.find_spec("nrtk") is not None
perturbers: Mapping[str, type] = MappingProxyType(
    _make(optional_import("nrtk.interfaces").PerturbImage) if _is_there else {}
)
"""The perturbers by the names of their corruptions."""

for _perturber in perturbers.values():
    if globals().setdefault(_perturber.__name__, _perturber) is not _perturber:
        raise InputError(f"two corruptions would be called {_perturber.__name__}")
