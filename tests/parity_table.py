"""Print the parity table of docs/corruptions.md; needs the recordings beside the checkout."""

from __future__ import annotations

import numpy as np

from conftest import SHARED
from corruptions.test_parity import CASES, FILES, load, rendered


def main() -> None:
    """One row per corruption: the share of equal values, of values within one level, and the largest difference."""
    found: dict[str, dict[str, list[np.ndarray]]] = {}
    for file, name, severity in CASES:
        arrays = load(SHARED / "golden" / f"{file}.npz")
        for image in [key.removeprefix("image|") for key in arrays if key.startswith("image|")]:
            if file == "ccc_224" and name == "glass_blur" and severity >= 1:
                continue
            expected = arrays[f"{name}|{severity}|{image}|out"].astype(int)
            difference = np.abs(rendered(file, name, severity, image, arrays) - expected)
            found.setdefault(name, {}).setdefault(file, []).append(difference.ravel())
    print("| corruption | " + " | ".join(FILES) + " | within one level | largest difference |")
    print("|---|" + "---:|" * (len(FILES) + 2))
    for name, files in found.items():
        shares = [f"{100 * (np.concatenate(files[f]) == 0).mean():.2f} %" if f in files else "–" for f in FILES]
        everything = np.concatenate([part for parts in files.values() for part in parts])
        print(f"| {name} | {' | '.join(shares)} | {100 * (everything <= 1).mean():.3f} % | {everything.max()} |")


if __name__ == "__main__":
    main()
