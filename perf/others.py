"""One picture at a time beside what people use to augment images: python perf/others.py.

Albumentations and torchvision's v2 transforms have noise, blurs, JPEG and elastic transforms too. Their pixels are not
those of ImageNet-C, and an image's random draws depend on what was drawn before it; settings here are as near to
severity 3 as theirs allow. One 224-pixel picture, one thread, CPU time, the least of several rounds in turns. Both get
what they take: Albumentations an array (H, W, C), torchvision a tensor (C, H, W), blemish each of them and an id.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import metadata

import albumentations
import cv2
import torch

import blemish
from cpu_settings import settle
from images import scenes

try:
    from torchvision.transforms import v2
except RuntimeError:  # beside a torch for CPUs alone, torchvision's own operators are missing; none is needed here
    missing = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        missing.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    from torchvision.transforms import v2

SIDE, PICTURES, ROUNDS = 224, 8, 12

Work = Callable[[], object]


def albumented(transform: albumentations.BasicTransform, pictures: list) -> Work:
    """All pictures through one of Albumentations' transforms."""
    return lambda: [transform(image=picture)["image"] for picture in pictures]


def transformed(transform: torch.nn.Module, tensors: list) -> Work:
    """All pictures through one of torchvision's."""
    return lambda: [transform(tensor) for tensor in tensors]


def corrupted(name: str, pictures: list) -> Work:
    """All pictures through blemish."""
    return lambda: [blemish.corrupt(picture, name, severity=3, ids=i) for i, picture in enumerate(pictures)]


class Noise(torch.nn.Module):
    """torchvision's noise, which takes floats alone, between two changes of type."""

    def __init__(self, sigma: float) -> None:
        super().__init__()
        self.noise = v2.GaussianNoise(sigma=sigma)
        self.to_float, self.back = v2.ToDtype(torch.float32, scale=True), v2.ToDtype(torch.uint8, scale=True)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Noise on uint8."""
        return self.back(self.noise(self.to_float(image)))


def rivals() -> dict[str, tuple[albumentations.BasicTransform | None, torch.nn.Module | None]]:
    """What each corruption is compared with."""
    a = albumentations
    return {
        "gaussian_noise": (a.GaussNoise(std_range=(0.18, 0.18), p=1), Noise(0.18)),
        "shot_noise": (a.ShotNoise(scale_range=(0.08, 0.08), p=1), None),
        "gaussian_blur": (
            a.GaussianBlur(sigma_limit=(3, 3), blur_limit=(25, 25), p=1),
            v2.GaussianBlur(kernel_size=25, sigma=3.0),
        ),
        "defocus_blur": (a.Defocus(radius=(6, 6), alias_blur=(0.5, 0.5), p=1), None),
        "glass_blur": (a.GlassBlur(sigma=1.0, max_delta=2, iterations=3, p=1), None),
        "motion_blur": (a.MotionBlur(blur_limit=(31, 31), p=1), None),
        "zoom_blur": (a.ZoomBlur(max_factor=(1.21, 1.21), step_factor=(0.02, 0.02), p=1), None),
        "jpeg_compression": (a.ImageCompression(quality_range=(15, 15), p=1), v2.JPEG(quality=15)),
        "elastic_transform": (
            a.ElasticTransform(alpha=12, sigma=3, p=1),
            v2.ElasticTransform(alpha=12.0, sigma=3.0),
        ),
    }


def working(name: str, transform: torch.nn.Module | None, tensor: torch.Tensor) -> torch.nn.Module | None:
    """The transform, or None where this torchvision came without what it needs."""
    try:
        if transform is not None:
            transform(tensor)
    except RuntimeError as error:
        print(f"torchvision has no {name} here: {str(error).splitlines()[0]}", file=sys.stderr)
        return None
    return transform


def least(works: list[Work | None]) -> list[float | None]:
    """The least CPU time of each, in turns, per picture."""
    best: list[float | None] = [None] * len(works)
    for turn in range(ROUNDS + 1):
        for i, work in enumerate(works):
            if work is None:
                continue
            start = time.process_time()
            work()
            taken = (time.process_time() - start) / PICTURES
            if turn:  # the first warms up
                best[i] = min(best[i] or taken, taken)
    return best


def shown(seconds: float | None) -> str:
    """Milliseconds."""
    return "" if seconds is None else f"{1e3 * seconds:.2f}"


def main() -> None:
    """Print a table in Markdown."""
    settle()
    cv2.setNumThreads(1)
    pictures = list(scenes(PICTURES, SIDE))
    tensors = [torch.from_numpy(picture).permute(2, 0, 1).contiguous() for picture in pictures]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("albumentations", "torchvision", "torch"))
    print(f"blemish {blemish.__version__}, {versions}; ms of CPU time for one picture of {SIDE} pixels\n")
    print("| corruption | Albumentations | blemish, array | ratio | torchvision v2 | blemish, tensor | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, (other, another) in rivals().items():
        usable = working(name, another, tensors[0])
        first, ours, second, mine = least(
            [
                None if other is None else albumented(other, pictures),
                corrupted(name, pictures),
                None if usable is None else transformed(usable, tensors),
                corrupted(name, tensors),
            ]
        )
        ratios = ["" if theirs is None else f"{theirs / own:.1f}" for theirs, own in ((first, ours), (second, mine))]
        row = [name, shown(first), shown(ours), ratios[0], shown(second), shown(mine), ratios[1]]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
