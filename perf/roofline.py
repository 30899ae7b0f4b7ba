"""How far each corruption is from what the GPU allows: python perf/roofline.py [--batch 1536] [--side 224] [--only …].

For every corruption of the catalog, per image: the fewest bytes it must move (levels in, levels out, and what it reads
besides), the operations its formula needs, the floor that the larger of the two sets (with the bandwidth of a large
copy and the rate of a large float32 matrix product, measured in the same run), and the measured time, device events
around calls in a row: in large batches, and in those of `--small`, which the host's queueing may hold up. Severity is
3, or the only one there is. How operations and bytes were counted, for 224 pixels, stands in roofline_counts.py.
`--only noc syn2nat:random` measures the groups of these keys (imagenet-c, extra, noc, syn2nat, lp, cbar, optics,
human) and the corruptions whose names begin so.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

import blemish
from blemish.ops.codecs import Codec
from blemish.ops.jpeg import jpeg_round_trip
from gpu import synthetic_images
from roofline_counts import BENCHMARK, COUNTS, Count

HEADINGS = {
    "imagenet-c": "The ImageNet-C benchmark",
    "extra": "ImageNet-C's extra corruptions",
    "noc": "NOC",
    "syn2nat": "Syn2Nat",
    "lp": "Noise in balls",
    "cbar": "C̄",
    "optics": "Optics",
    "human": "The stimuli of the comparison with humans",
    "laion": "LAION-C",
    "sensor": "Cameras",
    "med": "MedMNIST-C",
}
USUAL_SEVERITY = 3.0
STORAGE_QUALITY = 85.0

# A run of slow calls is shortened to about this many milliseconds.
LONGEST_RUN = 1000


class Measured(NamedTuple):
    """A row of the table, and its measured time in µs per image and how many times the floor that is."""

    text: str
    time: float
    ratio: float


def run(work: Callable[[], object], calls: int) -> float:
    """Milliseconds per call of several in a row."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        work()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop)) / calls


def milliseconds(work: Callable[[], object], calls: int = 10) -> float:
    """Time of a call, the least over three runs of several (of fewer, if calls are slow)."""
    work()
    calls = max(1, min(calls, int(LONGEST_RUN / run(work, 1))))
    return min(run(work, calls) for _ in range(3))


def bandwidth() -> float:
    """Bytes per second of a large copy, read and written."""
    source = torch.randint(0, 2**31, (2**29,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / milliseconds(lambda: target.copy_(source)) * 1000


def arithmetic() -> float:
    """Operations per second of a large float32 matrix product, without the tensor cores."""
    first, second = (torch.rand(8192, 8192, device="cuda") for _ in range(2))
    return 2 * 8192**3 / milliseconds(lambda: first @ second, 3) * 1000


def groups() -> dict[str, list[str]]:
    """All names of the catalog by the keys of `HEADINGS`, but for what a codec makes: it works on the CPU."""
    plain = blemish.catalog.plain()
    found = {"imagenet-c": list(BENCHMARK), "extra": [name for name in plain if name not in BENCHMARK]}
    for name, corruption in blemish.catalog.items():
        if ":" in name and not isinstance(corruption.files, Codec):
            found.setdefault(name.partition(":")[0], []).append(name)
    return found


def chosen(words: Sequence[str]) -> dict[str, list[str]]:
    """The groups, or what is left of them if only these keys and beginnings of names are wanted."""
    found = groups()
    unknown = [word for word in words if word not in found and not any(n.startswith(word) for n in blemish.catalog)]
    if unknown:
        keys = ", ".join(found)
        raise SystemExit(f"nothing begins with {', '.join(unknown)}; expected names' beginnings, or groups of {keys}")
    if words:
        found = {
            key: names if key in words else [name for name in names if name.startswith(tuple(words))]
            for key, names in found.items()
        }
    return {key: names for key, names in found.items() if names}


def check_counts() -> None:
    """Refuse to measure while a corruption has no counts, or counts have no corruption."""
    missing = [name for name in blemish.catalog if name not in COUNTS]
    surplus = [name for name in COUNTS if name not in blemish.catalog]
    if missing or surplus:
        raise SystemExit(
            "roofline_counts.py does not match the catalog; "
            f"without counts: {', '.join(missing) or 'none'}; not in the catalog: {', '.join(surplus) or 'none'}"
        )


class Bench(NamedTuple):
    """What is measured with: images, how many of them make a small batch, and the rates of copies and of products."""

    images: Tensor
    small: int
    rates: tuple[float, float]

    def measured(self, name: str, count: Count, work: Callable[[Tensor], Tensor]) -> Measured:
        """Time a corruption against its floor."""
        values = self.images[0].numel()
        moved = values * (2 + count.more_bytes)
        by_bytes, by_work = 1e6 * moved / self.rates[0], 1e6 * values * count.operations / self.rates[1]
        time, few = (self._microseconds(work, images) for images in (self.images, self.images[: self.small]))
        floor = max(by_bytes, by_work)
        text = (
            f"| {name} | {moved / 1000:.0f} | {values * count.operations / 1e6:.1f} | {floor:.2f} "
            f"({'bytes' if by_bytes > by_work else 'operations'}) | {time:.2f} | {time / floor:.0f} | {few:.2f} "
            f"| {count.what} |"
        )
        return Measured(text, time, time / floor)

    @staticmethod
    def _microseconds(work: Callable[[Tensor], Tensor], images: Tensor) -> float:
        return 1000 * milliseconds(lambda: work(images)) / len(images)


def corrupted(name: str) -> Callable[[Tensor], Tensor]:
    """The call that users make, at the usual severity."""
    corruption = blemish.catalog[name]
    severity = USUAL_SEVERITY if corruption.only_severity is None else corruption.only_severity
    return lambda images: corruption(images, severity=severity)


def stored(images: Tensor) -> Tensor:
    """The JPEG round trip of stored sets."""
    return jpeg_round_trip(images, torch.full((len(images),), STORAGE_QUALITY, dtype=torch.float64))


def print_group(key: str, names: Sequence[str], bench: Bench) -> None:
    """Print a group's heading, table and means; JPEG as storage is in the table only."""
    print(f"\n### {HEADINGS.get(key, key)}\n")
    print("| corruption | kB per image | million operations | floor, µs | measured, µs | ratio | ", end="")
    print(f"{bench.small} at a time | operations |\n|---|---:|---:|---:|---:|---:|---:|---|")
    rows = []
    for name in names:
        rows.append(bench.measured(name, COUNTS[name], corrupted(name)))
        print(rows[-1].text, flush=True)
    if "jpeg_compression" in names:
        label = f"jpeg_compression, as storage ({STORAGE_QUALITY:g})"
        print(bench.measured(label, COUNTS["jpeg_compression"], stored).text, flush=True)
    time = statistics.fmean(row.time for row in rows)
    ratio = math.exp(statistics.fmean(math.log(row.ratio) for row in rows))
    print(f"\nOf {len(rows)}: geometric mean of the ratios {ratio:.1f}, ", end="")
    print(f"mean time {time:.2f} µs, {1e6 / time:,.0f} images per second.", flush=True)


def main() -> None:
    """Print the tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1536)
    parser.add_argument("--small", type=int, default=256)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--only", nargs="+", default=[], metavar="PREFIX", help="groups, or beginnings of names")
    options = parser.parse_args()
    check_counts()
    wanted = chosen(options.only)
    images = synthetic_images(options.batch, options.side).cuda()
    rates = bandwidth(), arithmetic()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: copies {rates[0] / 1e12:.2f} TB/s, ", end="")
    print(f"float32 products {rates[1] / 1e12:.0f} TFLOP/s; {options.batch} images of {options.side} pixels")
    for key, names in wanted.items():
        print_group(key, names, Bench(images, options.small, rates))


if __name__ == "__main__":
    main()
