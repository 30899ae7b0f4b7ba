"""Textures in the place of photographs of frost: made here, of odd sizes, with every grey level."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from pictures import pictures

FROST = "frost"
_SIZES = {
    "frost1.png": (315, 260),
    "frost2.png": (241, 333),
    "frost3.png": (300, 301),
    "frost4.jpg": (256, 280),
    "frost5.jpg": (307, 251),
}


def frost_folder(folder: Path) -> Path:
    """A folder with five textures; an existing one is left as it is."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        for number, (name, (height, width)) in enumerate(_SIZES.items()):
            levels = pictures(1, 3, height, width, first=100 + number)[0].permute(1, 2, 0).contiguous().numpy()
            Image.fromarray(levels).save(folder / name)
    return folder
