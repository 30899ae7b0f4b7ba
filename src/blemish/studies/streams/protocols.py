"""Does a stream show what its walk was calibrated with? If not, the accuracy need not be the one that was planned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blemish.core.settings import differences
from blemish.corruptions.severity import nearest_preset
from blemish.studies.streams.images import image_list
from blemish.studies.streams.stream import Stream


def protocol_differences(stream: Stream, *, jpeg: bool | None = None) -> list[str]:
    """What is done otherwise to the images of a stream than to those of its walk's calibration, one line for each.

    ``jpeg`` says whether images are stored as JPEG at the end, where the stream itself does not say it: in shards they
    always are. Nothing differs from a walk that does not know its calibration.
    """
    before = stream.walk.protocol.calibration
    if before is None:
        return []
    shape = stream.images.shape
    after: dict[str, Any] = {
        "preparation": stream.images.preparation,
        "shape": shape,
        "jpeg": stream.jpeg if jpeg is None else jpeg,
        "preset": stream.preset or nearest_preset(*shape[1:]),
    }
    if "frost" in stream.walk.corruptions:
        after["frost"] = stream.catalog.frost_kind
    if stream.walk.protocol.subset is not None:
        # These sets show the images of the calibration, and no others.
        after["image_list"] = image_list(stream.images.names)
    nearest = None if before.shape is None or len(before.shape) != 3 else nearest_preset(*before.shape[1:])
    known = replace(before, preset=before.preset or nearest)
    return differences({name: getattr(known, name) for name in after}, after)
