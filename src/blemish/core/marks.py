"""Which files blemish made: they say so where their format has a place for it, and can be made again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image
from PIL.PngImagePlugin import PngInfo

from blemish.core.errors import InputError
from blemish.core.reading import open_regular
from blemish.version import VERSION

MADE_WITH = f"blemish {VERSION}"
"""The entry ``made_with`` of JSON files, which comes first."""

MARK = f"made by {MADE_WITH}"
"""What is written into pictures, figures, Markdown, LaTeX and text."""

_MARK = rb"made by blemish \d"
_PAGE = rb'<meta name="generator" content="blemish \d'
# Tables of results are known by their columns; those that others are computed from may be anybody's.
_COLUMNS = (
    rb"model,benchmark,metric,scope,of,",
    rb"metric,scope,of,",
    rb"benchmark,ranking,tier,model,",
    rb"cell,storage,quantity,",
    rb"threshold,size,largest_subsets,",
    rb"corruption,overlaps most with,score,covered\n",
    rb"corruption,standard,[^\n]*,gain,covered\n",
    rb"corruption,end,target,severity,",
    rb"trained_on,mce_percent\n",
    rb"group,benchmarks,scored_by,natural,correlation,",
    rb"first,second,score,low,high,",
    rb"condition,corruption,catalogue,severity,measure,distance,",
    rb"model,measure,(corruption,condition,distance|scope,of,up_to),",
    rb"first,second,[^\n]*,difference\n",
)
_TEXT = b"|".join(
    (
        rb"\A% " + _MARK,
        rb"<!-- " + _MARK + rb"[^\n]* -->\s*\Z",
        rb"\n" + _MARK + rb"[^\n]*\s*\Z",
        rb"\A(" + b"|".join(_COLUMNS) + rb")",
        rb"\A\[?\s*\{\s*\"made_with\": \"blemish \d",
        rb"\A\{\"closed\": (true|false), \"columns\": \[\"first\", ",  # walks
    )
)
_SIGNS = {
    **dict.fromkeys((".html", ".htm"), _PAGE),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf"), _MARK),
}
_MOST_BYTES = 2**28


def is_ours(path: Path) -> bool:
    """Whether a file says that blemish made it.

    Not all do: tables of accuracies and of overlap, benchmark files and corrupted pictures may be anybody's.
    """
    sign = _SIGNS.get(path.suffix.lower(), _TEXT)
    try:
        with open_regular(path) as file:
            return re.search(sign, file.read(_MOST_BYTES)) is not None
    except (OSError, InputError):
        return False


def mark_settings(suffix: str) -> dict[str, Any]:
    """What Pillow is given to save a picture of this kind with the mark; nothing where there is no place for it."""
    if suffix == ".png":
        info = PngInfo()
        info.add_text("Software", MARK)
        return {"pnginfo": info}
    if suffix in (".jpg", ".jpeg", ".gif"):
        return {"comment": MARK.encode()}
    if suffix == ".webp":
        exif = Image.Exif()
        exif[ExifTags.Base.Software] = MARK
        return {"exif": exif.tobytes()}
    return {}
