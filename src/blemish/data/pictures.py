"""Picture files: reading one or a tree of class folders, the usual resize and centre crop, and writing."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, JpegImagePlugin, UnidentifiedImageError

from blemish.core.errors import InputError
from blemish.core.reading import is_folder, read_bytes
from blemish.core.rng import hash_id
from blemish.core.types import Square
from blemish.data.formats import encoded
from blemish.data.png import check_whole
from blemish.ops.pillow import squared

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".tif", ".tiff", ".webp")

MAX_PIXELS = 178_956_970
"""The largest picture that is decoded: twice Pillow's own warning level, which programs often switch off.

A file of a few kilobytes can claim billions of pixels; decoding it would exhaust the memory.
"""

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture is to be turned for viewing."""

# Formats with plain decoders only. Pillow knows others by their content, whatever the suffix says, and hands some of
# them (PostScript) to a program that runs what it finds in them.
_FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")

_JPEG = b"\xff\xd8\xff"

_GRAY_MODES = ("1", "L", "LA", "La")
_WIDE_MODES = ("I", "F")


def read_picture(path: str | os.PathLike[str]) -> Image.Image:
    """A picture file as mode RGB, or L where it is gray, fully decoded.

    Pixels are taken as stored: like torchvision's loader, this does not turn a picture by its EXIF orientation (the tag
    is still there for those who want to) and drops transparency. Gray of 16 bits keeps its upper eight.
    """
    return decode_picture(read_bytes(path), os.fspath(path))


def decode_picture(content: bytes, name: str) -> Image.Image:
    """The bytes of a picture file as `read_picture` gives it; ``name`` is for messages."""
    try:
        with _open(content) as picture:
            _check_pixels(*picture.size)
            picture.load()
            if picture.format == "PNG":
                check_whole(picture, content)
            return rgb_or_gray(picture)
    except Exception as error:  # decoders of damaged files raise almost anything
        raise InputError(f"{name}: not a readable picture ({_reason(error)})") from error


_opening = threading.Lock()


def _open(content: bytes) -> Image.Image:
    if content.startswith(_JPEG):
        # By its own reader, which warns of nothing: threads need not wait for one another here. What it does not take,
        # the others explain.
        with contextlib.suppress(Exception):
            return JpegImagePlugin.jpeg_factory(io.BytesIO(content))
    # Filters of warnings belong to the whole process, and pictures are decoded in many threads.
    with _opening, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(io.BytesIO(content), formats=_FORMATS)


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise InputError(f"{width}×{height} pixels; more than {MAX_PIXELS:,} are refused, as decompression bombs are")


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "unknown or damaged format"
    if isinstance(error, Image.DecompressionBombError):
        return f"more pixels than a picture may have, as decompression bombs do: {error}"
    return str(error) or type(error).__name__


def rgb_or_gray(picture: Image.Image) -> Image.Image:
    """A picture as mode RGB, or L where it is gray."""
    if picture.mode.startswith("I;16"):
        # Pillow's own conversion clips at 255 in some versions and shifts in others.
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    if picture.mode in _WIDE_MODES:
        raise InputError(f"mode {picture.mode!r} has no fixed range of levels; expected 8 or 16 bits per value")
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return picture.convert("L" if picture.mode in _GRAY_MODES else "RGB")


def list_pictures(root: str | os.PathLike[str]) -> list[str]:
    """The pictures below a folder as ``<class>/<file>``, sorted, with forward slashes on every system.

    Hidden files and folders and files of other types are left out; links to folders are followed.
    """
    folder = Path(root)
    if not is_folder(folder):
        raise InputError(f"{folder}: no such folder")
    names = sorted(_walk(folder), key=lambda name: name.split("/"))
    if not names:
        raise InputError(f"{folder}: no pictures in this folder (looked for {', '.join(PICTURE_SUFFIXES)})")
    return names


def _walk(root: Path) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be listed ({error.strerror})") from error

    seen = set()  # a link to a folder above would otherwise be followed for ever
    for folder, subfolders, files in os.walk(root, followlinks=True, onerror=fail):
        real = os.path.realpath(folder)
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        # A folder reached twice must be met first under the same name on every machine.
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for file in files:
            if not file.startswith(".") and file.lower().endswith(PICTURE_SUFFIXES):
                yield Path(folder, file).relative_to(root).as_posix()


def picture_id(name: str) -> int:
    """The id of a picture named ``<class>/<file>``: the same on systems that spell accents differently."""
    raw = unicodedata.normalize("NFC", name).encode("utf-8", "surrogateescape")
    return hash_id(raw.decode("utf-8", "backslashreplace"))


def resize_and_crop(
    picture: Image.Image, *, resize: int | None = None, crop: int | Square | None = None
) -> Image.Image:
    """Bring the shorter side to ``resize`` (bilinear, antialiased), then cut a centre square of side ``crop``.

    Sizes are rounded as torchvision's ``Resize`` and ``CenterCrop`` do. ImageNet-C was made with 256 and 224. A
    `Square` takes another part of the image, and changes its shape.
    """
    if isinstance(crop, Square):
        crop.check(least=1)
    for setting, side in (("resize", resize), ("crop", crop)):
        if isinstance(side, int) and side < 1:
            raise InputError(f"{setting} to {side} pixels; expected at least 1")
    width, height = picture.size
    shorter = min(width, height)
    if resize is not None and shorter != resize:
        width, height = resize * width // shorter, resize * height // shorter
        _check_pixels(width, height)  # of a thin strip, a small resize makes a huge picture
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    if crop is None:
        return picture
    if isinstance(crop, Square):
        return _squared(picture, crop)
    if crop > min(width, height):
        raise InputError(f"{width}×{height} pixels are too few for a centre crop of {crop}×{crop}")
    left, top = round((width - crop) / 2), round((height - crop) / 2)
    return picture.crop((left, top, left + crop, top + crop))


def _squared(picture: Image.Image, square: Square) -> Image.Image:
    """Made by our own operation, so that sequences, which do this last, have the same pixels as pictures."""
    width, height = picture.size
    if min(square.kept(height, width)) < 1:
        raise InputError(f"{width}×{height} pixels are too few for {square}")
    levels = torch.from_numpy(np.array(picture)).view(height, width, -1).permute(2, 0, 1)
    made = squared(levels, square).permute(1, 2, 0).numpy()
    return Image.fromarray(made[..., 0] if made.shape[-1] == 1 else np.ascontiguousarray(made))


def encode_picture(picture: Image.Image, file_format: str, *, orientation: int | None = None) -> bytes:
    """A picture as the bytes of a file, in a format that `picture_format` knows."""
    # Pixels are corrupted as stored, so the copy has to be turned for viewing just like the original.
    exif = Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    return encoded(picture, file_format, exif)
