"""Sets to hold blemish against, for docs/equivalence.md: images of the peer package, and the reference's recordings.

python perf/equivalence.py peer DATA OUT [--images 2000] [--severities 1 3 5] [--only …]
    Corrupts images of DATA with imagecorruptions-imaug, in an environment where it is installed (make perf makes one),
    and writes OUT/clean.npz and OUT/peer.npz. Then: blemish equivalence --data OUT/clean.npz --stored OUT/peer.npz …

python perf/equivalence.py golden RECORDINGS.npz OUT [--preset cifar] [--draws 199]
    Writes the reference's pictures in the same way, OUT/clean.npz and OUT/golden.npz. There are one or two of them, too
    few for intervals over images, so each is also held against many draws of ours for the same picture: the reference
    could have been one of them unless its statistics lie outside.
"""

from __future__ import annotations

import argparse
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import blemish
from blemish.data.source import stratified_order
from blemish.studies.equivalence.copies import STATISTICS, statistics

Pictures = NDArray[np.uint8]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    peer = commands.add_parser("peer")
    peer.add_argument("data")
    peer.add_argument("out", type=Path)
    peer.add_argument("--images", type=int, default=2000)
    peer.add_argument("--severities", type=int, nargs="*", default=[1, 3, 5])
    peer.add_argument("--only", nargs="*", default=blemish.catalog.plain())
    peer.set_defaults(work=make_peer)
    golden = commands.add_parser("golden")
    golden.add_argument("recordings", type=Path)
    golden.add_argument("out", type=Path)
    golden.add_argument("--preset", default=None)
    golden.add_argument("--draws", type=int, default=199)
    golden.set_defaults(work=hold_golden)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    options.work(options)


def make_peer(options: argparse.Namespace) -> None:
    """Images of a source, clean and under the peer's corruptions."""
    import cv2
    import imagecorruptions

    cv2.setNumThreads(1)
    np.random.seed(0)  # noqa: NPY002  # the peer draws from the global state
    source = blemish.open_source(options.data)
    rows = np.sort(stratified_order(source.labels, source.ids)[: options.images])
    clean = np.stack([np.asarray(source.read(int(row)).convert("RGB")) for row in rows])
    classes = {} if source.classes is None else {"classes": np.asarray(source.classes)}
    np.savez(options.out / "clean.npz", images=clean, labels=source.labels[rows], **classes)
    found: dict[str, Pictures] = {}
    for name in options.only:
        for severity in options.severities:
            copies = [imagecorruptions.corrupt(picture, severity, name) for picture in clean]
            found[f"{name}@{severity}"] = np.stack(copies)
        print(name, flush=True)
    np.savez(options.out / "peer.npz", **found)
    print(f"imagecorruptions-imaug {metadata.version('imagecorruptions-imaug')}: {len(found)} cells")


def hold_golden(options: argparse.Namespace) -> None:
    """The reference's pictures as a set, and each among many of ours."""
    with np.load(options.recordings) as file:
        arrays = {key: file[key] for key in file.files if key.startswith("image|") or key.endswith("|out")}
    numbers = sorted(key.removeprefix("image|") for key in arrays if key.startswith("image|"))
    clean = np.stack([arrays[f"image|{number}"] for number in numbers])
    cells = list(dict.fromkeys("@".join(key.split("|")[:2]) for key in arrays if key.endswith("|out")))
    found = {cell: np.stack([arrays[f"{cell.replace('@', '|')}|{n}|out"] for n in numbers]) for cell in cells}
    np.savez(options.out / "clean.npz", images=clean, labels=np.zeros(len(clean), np.int64))
    np.savez(options.out / "golden.npz", **found)

    tested, scores = 0, []
    for cell, references in found.items():
        for picture, reference in zip(clean, references, strict=True):
            measured = _among_draws(cell, picture, reference, options)
            if measured is not None:
                tested += len(STATISTICS)
                scores += [(rank, z, cell, name) for name, (rank, z) in measured.items()]
    scores.sort()
    print(f"{options.recordings.stem}: {len(found)} cells, {tested} statistics of pictures that are drawn at random")
    expected = 2 / (options.draws + 1)
    outside = sum(rank <= expected + 1e-9 for rank, *_ in scores)
    print(f"  outside all {options.draws} draws of ours: {outside}; chance alone gives {tested * expected:.1f}")
    below = {level: np.mean([rank <= level for rank, *_ in scores]) for level in (0.05, 0.1, 0.5)}
    print("  share of p-values up to " + ", ".join(f"{level:g}: {share:.3f}" for level, share in below.items()))
    largest = sorted(scores, key=lambda score: -abs(score[1]))[:5]
    print("  farthest: " + ", ".join(f"{cell} {name} {z:+.1f} sd" for _, z, cell, name in largest))


def _among_draws(
    cell: str, picture: Pictures, reference: Pictures, options: argparse.Namespace
) -> dict[str, tuple[float, float]] | None:
    """For each statistic, a two-sided p-value of the reference among our draws, and how many deviations it is off.

    None for corruptions without a draw.
    """
    name, _, severity = cell.partition("@")
    batch = torch.from_numpy(picture).permute(2, 0, 1).expand(options.draws, -1, -1, -1)
    ids = list(range(options.draws))
    ours = blemish.corrupt(batch, name, severity=float(severity), ids=ids, preset=options.preset)
    if bool((ours == ours[:1]).all()):
        return None
    theirs = torch.from_numpy(reference).permute(2, 0, 1)[None]
    many, one = statistics(ours, batch), statistics(theirs, batch[:1])
    found = {}
    for key in STATISTICS:
        values, value = many[key].numpy(), float(one[key])
        side = min(int((values <= value).sum()), int((values >= value).sum()))
        rank = min(1.0, 2 * (side + 1) / (options.draws + 1))
        found[key] = rank, (value - values.mean()) / max(float(values.std()), 1e-9)
    return found


if __name__ == "__main__":
    main()
