"""Tables of small pictures, as Parquet files hold them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def encoded(level: int) -> bytes:
    """A picture whose first value tells which one it is."""
    buffer = io.BytesIO()
    Image.new("RGB", (9, 8), (level, 7, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def image_table(levels: Sequence[int], labels: Sequence[Any], names: Sequence[str] | None = None) -> pa.Table:
    """Pictures as Hugging Face writes them, a label each and, where there are names, the features that tell them."""
    pictures = pa.array(
        [{"bytes": encoded(level), "path": f"{level}.png"} for level in levels],
        type=pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    table = pa.table({"id": list(range(len(levels))), "image": pictures, "label": pa.array(labels)})
    if names is None:
        return table
    features = {"image": {"_type": "Image"}, "label": {"names": list(names), "_type": "ClassLabel"}}
    return table.replace_schema_metadata({b"huggingface": json.dumps({"info": {"features": features}}).encode()})


def write_table(path: Path, table: pa.Table, *, rows: int = 3) -> Path:
    """A Parquet file with row groups of so many rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=rows)
    return path
