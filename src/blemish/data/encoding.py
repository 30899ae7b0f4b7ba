"""Pictures as the bytes of files."""

from __future__ import annotations

import io

from PIL import Image

__all__ = ["ORIENTATION", "encode_picture"]

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture is to be turned for viewing."""


def encode_picture(picture: Image.Image, file_format: str, *, orientation: int | None = None) -> bytes:
    """A picture as the bytes of a file: JPEG of quality 85, as ImageNet-C was published, or PNG."""
    # Pixels are corrupted as stored, so the copy has to be turned for viewing just like the original.
    exif = Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    buffer = io.BytesIO()
    if file_format == "jpeg":
        picture.save(buffer, "JPEG", quality=85, exif=exif)
    else:
        picture.save(buffer, "PNG", compress_level=4, exif=exif)
    return buffer.getvalue()
