"""The pictures that are looked at: read with the guards of files, brought to a square, and kept in memory."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps

from blemish.core.errors import InputError
from blemish.core.reading import is_folder
from blemish.corruptions.inputs import MIN_SIDE
from blemish.data.demo import demo_picture
from blemish.data.images import image_digest, picture_batch
from blemish.data.pictures import ORIENTATION, decode_picture, list_pictures, picture_id, read_picture, resize_and_crop

SIDE = 224
"""The side of the square that large pictures are brought to, as ImageNet-C was made: resized to 256 and cut to 224."""

SIDES = (32, 1024)
"""The least and the largest side that may be asked for."""

MOST_FROM_A_FOLDER = 24
"""How many pictures of a folder are shown."""

# Those that were dropped onto the page; the oldest goes.
_MOST_DROPPED = 12


@dataclass(frozen=True, eq=False)
class Picture:
    """A square picture as it is corrupted. ``path`` is what makes it again; the built-in one has none.

    ``resize`` and ``crop`` are what was done to the file's picture, for squares of at most ``side``; ``turned`` says
    that it was first turned as its camera asks for. Random draws are those of ``id``, which `blemish corrupt` gives a
    single file, too: by its name.
    """

    name: str
    path: str | None
    image: Image.Image
    resize: int | None
    crop: int | None
    turned: bool = False
    note: str = ""
    side: int = SIDE

    @property
    def id(self) -> int:
        """What decides random draws, besides the seed."""
        return picture_id(self.name)

    @property
    def key(self) -> str:
        """What the page calls it: by name and pixels."""
        digest = hashlib.blake2b(image_digest(picture_batch(self.image).contiguous().numpy()), digest_size=8)
        digest.update(self.name.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def prepared(picture: Image.Image, path: str, side: int = SIDE, *, name: str | None = None, note: str = "") -> Picture:
    """A decoded picture as it is shown: the square in its middle, made as benchmarks make theirs.

    One with a shorter side of at least ``side`` is resized to 8/7 of it and cut to it; a smaller one is only cut.
    """
    name = name or Path(path).name
    turned = picture.getexif().get(ORIENTATION, 1) not in (0, 1)
    upright = ImageOps.exif_transpose(picture)
    shorter = min(upright.size)
    if shorter < MIN_SIDE:
        raise InputError(f"{name}: {upright.width}×{upright.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    resize = crop = None
    if shorter >= side:
        resize, crop = side * 8 // 7, side
    elif max(upright.size) > shorter:
        crop = shorter
    square = resize_and_crop(upright, resize=resize, crop=crop)
    # A new image, without what files say of themselves beside their pixels.
    plain = Image.frombytes(square.mode, square.size, square.tobytes())
    return Picture(name, path, plain, resize, crop, turned, note, side)


def built_in(side: int = SIDE) -> Picture:
    """The picture that comes with the package."""
    return Picture("blemish-demo.png", None, demo_picture(side), None, None, note="painted by code", side=side)


def pictures_at(source: Path | None, side: int = SIDE) -> tuple[list[Picture], str]:
    """The pictures of a file or folder, or the built-in one; and a word on those of a folder that are left out."""
    if not SIDES[0] <= side <= SIDES[1]:
        raise InputError(f"a side of {side} pixels; expected {SIDES[0]} … {SIDES[1]}")
    if source is None:
        return [built_in(side)], ""
    if not is_folder(source):
        return [prepared(read_picture(source), os.fspath(source), side)], ""
    names = list_pictures(source)
    chosen = names[:: max(1, -(-len(names) // MOST_FROM_A_FOLDER))]
    pictures: list[Picture] = []
    refusals: list[InputError] = []
    for name in chosen:
        try:
            pictures.append(prepared(read_picture(source / name), os.fspath(source / name), side))
        except InputError as error:  # one damaged picture need not keep anybody from looking at the others
            refusals.append(error)
    if not pictures:
        raise refusals[0]
    told = [f"{len(pictures)} of the folder's {len(names)} pictures are shown"] if len(pictures) < len(names) else []
    # By its name alone: a page that is sent to somebody has no folders of this machine in it.
    told += [f"left out: {str(error).removeprefix(f'{source}{os.sep}')}" for error in refusals[:1]]
    return pictures, "; ".join(told)


class Shelf:
    """The pictures of a page by key; those that were dropped onto it are kept until there are too many."""

    def __init__(self, pictures: Iterable[Picture], side: int = SIDE) -> None:
        self.side = side
        self._given = {picture.key: picture for picture in pictures}
        self._dropped: OrderedDict[str, Picture] = OrderedDict()
        self._lock = threading.Lock()
        self._decoding = threading.Lock()

    def __getitem__(self, key: str) -> Picture:
        with self._lock:
            picture = self._given.get(key) or self._dropped.get(key)
        if picture is None:
            raise InputError("this picture is not here any more; drop it onto the page again")
        return picture

    def given(self) -> dict[str, Picture]:
        """Those that the page began with, in order."""
        return self._given

    def add(self, content: bytes, name: str) -> tuple[str, Picture]:
        """Decode what was dropped; one at a time, because a picture may take much memory on its way."""
        plain = Path(name.replace("\\", "/")).name[:200] or "picture"
        with self._decoding:
            picture = prepared(decode_picture(content, plain), plain, self.side, note="dropped here")
        key = picture.key
        with self._lock:
            if key not in self._given:
                self._dropped[key] = picture
                self._dropped.move_to_end(key)
                while len(self._dropped) > _MOST_DROPPED:
                    self._dropped.popitem(last=False)
        return key, picture
