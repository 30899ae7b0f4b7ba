"""A corruption as a transform of Albumentations."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.corruptions.base import Corruption
from blemish.corruptions.samples import sample_id
from blemish.corruptions.transform import Corrupt as _Corrupt

_ImageOnlyTransform: Any = optional_import("albumentations").ImageOnlyTransform


class Corrupt(_ImageOnlyTransform):
    """A corruption of ``image`` and ``images``; masks, boxes and keypoints stay as they are.

    ``p`` is the probability with which Albumentations applies it. The pixels are then a pure function of the image, the
    settings and the id: the value under the key ``id_from`` of what the pipeline is called with, a whole number or a
    text; by default the content of the image. Images are uint8, or float in 0 … 1, before any normalisation.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
        id_from: str | None = None,
        p: float = 1.0,
    ) -> None:
        """Check the settings."""
        super().__init__(p=p)
        if id_from is not None and not isinstance(id_from, str):
            raise InputError(f"id_from {id_from!r}; expected a key of what the pipeline is called with")
        self.name, self.severity, self.preset, self.id_from = name, severity, preset, id_from
        self.corrupt = _Corrupt(name, severity, seed=seed, preset=preset)

    @property
    def targets_as_params(self) -> list[str]:
        """What Albumentations has to hand on beside images."""
        return [] if self.id_from is None else [self.id_from]

    def get_params_dependent_on_data(self, params: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        """The id, which `apply` is given."""
        return {**params, "image_id": None if self.id_from is None else sample_id(data, self.id_from)}

    def apply(self, img: NDArray[Any], image_id: int | None = None, **_: Any) -> NDArray[Any]:
        """Corrupt one image (height, width, channels)."""
        changed: NDArray[Any] = self.corrupt(img, id=image_id)
        return changed

    def get_transform_init_args(self) -> dict[str, Any]:
        """The settings, for Albumentations' way of saving pipelines, with the seed, which it leaves out of others'."""
        settings = {name: getattr(self, name) for name in ("name", "severity", "preset", "id_from", "p")}
        return {**settings, "seed": self.corrupt.seed}
