"""How fast exact class separation is: python perf/separation.py --images cifar.npz [--labels y.npy] [--device cuda].

Prints the time of the global minimum and of all class pairs, the peak memory, and scikit-learn's brute-force neighbour
search timed on a subset and extrapolated quadratically, both in one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
import torch

from blemish.data.arrays import read_arrays
from blemish.studies.separation.exact import separation

METRICS = {"l1": "manhattan", "l2": "euclidean", "linf": "chebyshev"}


def brute_force(points: np.ndarray, labels: np.ndarray, norm: str) -> tuple[float, float]:
    """scikit-learn: each class against all others; seconds and the smallest distance."""
    from sklearn.neighbors import NearestNeighbors

    flat = points.reshape(len(points), -1).astype(np.float64)
    begun, smallest = time.perf_counter(), np.inf
    for label in np.unique(labels):
        index = NearestNeighbors(n_neighbors=1, algorithm="brute", metric=METRICS[norm], n_jobs=-1)
        index.fit(flat[labels != label])
        smallest = min(smallest, float(index.kneighbors(flat[labels == label])[0].min()))
    return time.perf_counter() - begun, smallest


def main() -> None:
    """Time both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--norm", choices=sorted(METRICS), default="linf")
    parser.add_argument("--subset", type=int, default=2000, help="images for scikit-learn; 0 leaves it out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-pairs", action="store_true", help="leave out the search of all class pairs")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    data = read_arrays(args.images, labels=args.labels)
    points, labels = data.images, data.labels
    if labels is None:
        parser.error("no labels: give a .npz with labels or y, or --labels")
    name = torch.cuda.get_device_name() if args.device.startswith("cuda") else f"{args.threads} threads"
    load = os.getloadavg()[0]
    print(f"{len(points)} images of {points.shape[1:]}, {args.norm}, {args.device} ({name}), load {load:.1f}")
    seconds = 0.0
    for per_pair in (False,) if args.no_pairs else (False, True):
        begun, worked = time.perf_counter(), time.process_time()
        settings = {"per_pair": True} if per_pair else {"per_pair": False, "closest": 1}
        found = separation(points, labels, norm=args.norm, device=args.device, **settings)
        taken, work = time.perf_counter() - begun, time.process_time() - worked
        seconds = seconds or taken
        pair = found.closest[0]
        what = "all class pairs, ten closest" if per_pair else "global minimum"
        print(
            f"{what}: {taken:.1f} s ({work:.1f} s of processor time), 2r = {found.distance:.6f} of pair "
            f"{pair.first}, {pair.second} ({pair.classes[0]}, {pair.classes[1]})"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process, libraries and images included: {peak:.0f} MiB")
    if args.subset:
        chosen = np.linspace(0, len(points) - 1, args.subset).astype(np.int64)
        short, smallest = brute_force(np.asarray(points[chosen]), labels[chosen], args.norm)
        ours = separation(points[chosen], labels[chosen], norm=args.norm, per_pair=False, scale=1, device=args.device)
        whole = short * (len(points) / args.subset) ** 2
        print(
            f"scikit-learn brute force on {args.subset}: {short:.1f} s, extrapolated {whole:.0f} s: "
            f"{whole / seconds:.0f} times as long"
        )
        print(f"both find {smallest:g} and {ours.distance:g} on the subset")


if __name__ == "__main__":
    main()
