"""A corruption as a transform of mmcv, MMDetection, MMSegmentation and MMPretrain; by its shape alone, without them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.corruptions.base import Corruption
from blemish.corruptions.samples import sample_id
from blemish.corruptions.transform import Corrupt as _Corrupt

REGISTERED_AS = "BlemishCorrupt"
"""What configuration files of mmengine call it: ``dict(type="BlemishCorrupt", name="fog", severity=3)``."""

_ORDERS = ("bgr", "rgb")


class BlemishCorrupt:
    """A corruption of ``results["img"]``, uint8 of shape (height, width, channels), as ``LoadImageFromFile`` gives it.

    mmcv loads colours in the order BGR. They are corrupted as RGB, which several corruptions can tell apart, and given
    back as they came; ``channel_order="rgb"`` says that they are loaded as RGB. Boxes, masks and labels stay as they
    are. The id of an image is under the key ``id_from`` of the results, such as "img_id" or "img_path"; by default its
    content.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
        channel_order: str = "bgr",
        id_from: str | None = None,
    ) -> None:
        """Check the settings once, here, rather than in a worker."""
        if channel_order not in _ORDERS:
            raise InputError(f"channel_order {channel_order!r}; expected {' or '.join(_ORDERS)}")
        if id_from is not None and not isinstance(id_from, str):
            raise InputError(f"id_from {id_from!r}; expected a key of the results")
        self.corrupt = _Corrupt(name, severity, seed=seed, preset=preset)
        self.channel_order, self.id_from = channel_order, id_from

    def __call__(self, results: dict[str, Any]) -> dict[str, Any]:
        """As `transform`."""
        return self.transform(results)

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        """The results with a corrupted image."""
        image = results.get("img")
        if not isinstance(image, np.ndarray):
            raise InputError(f"results with img of type {type(image).__name__}; expected an array, as mmcv loads it")
        number = None if self.id_from is None else sample_id(results, self.id_from)
        # What has no colours is the same in both orders.
        reverse = self.channel_order == "bgr" and image.ndim == 3
        image = image[..., ::-1] if reverse else image
        changed = self.corrupt(image, id=number)
        return {**results, "img": np.ascontiguousarray(changed[..., ::-1]) if reverse else changed}

    def __repr__(self) -> str:
        return f"{REGISTERED_AS}({self.corrupt!r}, channel_order={self.channel_order!r}, id_from={self.id_from!r})"


def register() -> None:
    """Tell mmengine of it, so that configurations can name it.

    Importing this module does, where mmengine is there already, as it is when a configuration names the module
    (``custom_imports = dict(imports=["blemish.integrations.mmcv"])``).
    """
    registry = optional_import("mmengine.registry")
    registry.TRANSFORMS.register_module(name=REGISTERED_AS, module=BlemishCorrupt, force=True)


if "mmengine.registry" in sys.modules:
    register()
