"""Run the fused kernels in Triton's interpreter on the CPU, and compare each with the plain operation beside it.

The interpreter has to be chosen before Triton is imported, so this is a process of its own: run with a file to write.
What it cannot show is what a compiler or a card does; `test_kernels.py` runs the same kernels on a GPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import blemish
from blemish.core.rng import CounterRng
from blemish.corruptions.base import quantise
from blemish.corruptions.imagenet_c.blur import motion_taps
from blemish.models.base import Preprocessing
from blemish.ops import fused
from blemish.ops.edges import _connected, drop_light
from blemish.ops.filters import gaussian_blur, line_blur
from blemish.ops.grid import Grid
from blemish.ops.jpeg import jpeg_torch
from blemish.ops.poisson import poisson_quantile
from blemish.ops.rank import median_filter
from blemish.ops.textures import frost_textures

Work = Callable[[], Tensor]


def levels(*shape: int) -> Tensor:
    """Uint8 images of chance, a part of them of few levels."""
    images = np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8)
    images[..., ::2] //= 64
    return torch.from_numpy(images)


def floats(*shape: int) -> Tensor:
    """Float32 images of chance."""
    return torch.from_numpy(np.random.default_rng(sum(shape)).random(shape, dtype=np.float32))


def jpeg() -> Tensor:
    """Sides that are no multiples of eight, and qualities from bad to best."""
    return jpeg_torch(levels(3, 3, 19, 37), torch.tensor([7.0, 40.0, 100.0], dtype=torch.float64))


def words() -> Tensor:
    """More words than one program makes, and the last of them not whole."""
    return CounterRng(3, torch.arange(3), "x").raw("y", 3, 40, 41)


def poisson() -> Tensor:
    """Means on both sides of where the way to count changes."""
    rng = CounterRng(0, torch.arange(2), "x")
    return poisson_quantile(rng.normals("rank", 3, 30, 31), rng.uniforms("mean", 3, 30, 31) * 20, limit=20.0)


def lines() -> Tensor:
    """Lines of another length and direction for each image."""
    lengths, widths = torch.tensor([5.0, 10.0, 3.0]), torch.tensor([3.0, 2.0, 3.0])
    return line_blur(floats(3, 3, 24, 29), *motion_taps(lengths, widths, torch.tensor([10.0, -40.0, 30.0])), reach=44)


def gaussian(border: Any) -> Tensor:
    """Narrow and wide ones in one batch."""
    return gaussian_blur(floats(3, 3, 24, 29), torch.tensor([0.7, 5.0, 1.5], dtype=torch.float64), border=border)


def normalising() -> Tensor:
    """Another mean and deviation for each channel."""
    return Preprocessing(mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))(levels(2, 3, 19, 31))


def quantising() -> Tensor:
    """Also values beyond the range, and what is no number."""
    values = floats(2, 3, 19, 31) * 1.2 - 0.1
    values[0, 0, 0, :2] = torch.tensor([float("nan"), float("inf")])
    with np.errstate(invalid="ignore"):  # NumPy warns where it makes 0 of what is no number
        return quantise(values)


def median(radius: int) -> Tensor:
    """More planes than a word has bits, and windows larger than the image."""
    return median_filter(levels(11, 3, 7, 6), radius)


def wide_median() -> Tensor:
    """With the longer counters, which a window of 23 by 23 needs; here they count less, as that takes long."""
    kernels = fused.kernels_for(torch.device("cpu"))
    if kernels is None:
        return median(1)
    module = sys.modules[kernels.medians.__module__]
    before, module._NARROW = module._NARROW, 0  # type: ignore[attr-defined]
    try:
        return median(1)
    finally:
        module._NARROW = before  # type: ignore[attr-defined]


def regions(share: float) -> Tensor:
    """Weak pixels that hang on strong ones; called by itself, since on a CPU the plain one works on NumPy's arrays."""
    chance = np.random.default_rng(7).random((2, 4, 1, 29, 33))
    weak = np.zeros((4, 1, 31, 35), bool)
    weak[..., 1:-1, 1:-1] = chance[0] < share
    strong = weak.copy()
    strong[..., 1:-1, 1:-1] &= chance[1] < 0.02
    if kernels := fused.kernels_for(torch.device("cpu")):
        return kernels.connected(torch.from_numpy(strong), torch.from_numpy(weak))  # type: ignore[no-any-return]
    grid = Grid(torch.from_numpy(weak))
    planes = [grid.at(grid.load(grid.plane(0, "bool"), torch.from_numpy(mask))) for mask in (strong, weak)]
    return grid.images(_connected(grid, *planes))


def drops(*size: int) -> Tensor:
    """Drops of three sizes."""
    field = gaussian_blur(floats(3, 1, *size) - 0.5, torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64))
    return drop_light((field * 2000).clamp(0, 255).to(torch.int16))


def corrupted(name: str, severity: float | list[float] = 3, channels: int = 3, preset: str | None = None) -> Tensor:
    """A corruption of two small images, black pixels among them, as it is called."""
    images = levels(2, channels, 17, 19)
    images[0, :, 3:5, 3:5] = 0
    corruption = blemish.catalog[name]
    return corruption(images, severity=corruption.only_severity or severity, seed=3, preset=preset)


# Everything that goes from levels to levels by fused kernels, and others that are made of kernels in part.
AT_ONCE = tuple(
    name
    for name, corruption in blemish.catalog.items()
    if corruption.at_once is not None
    and importlib.util.find_spec(f"blemish.ops.fused.{corruption.at_once.kernels}") is not None
    and name != "frost"  # as frost_drawn, but for its files
)
IN_PART = (
    "noc:gray_scale",
    "noc:hue",
    "noc:translation",
    "noc:rotation",
    "noc:elastic",
    "syn2nat:hue_saturation_value",
    "syn2nat:to_sepia",
    "syn2nat:random_snow",
    "syn2nat:random_fog",
    "syn2nat:random_shadow",
    "syn2nat:rotate",
    "syn2nat:elastic_transform",
    "syn2nat:perspective",
    "syn2nat:grid_distortion",
    "syn2nat:optical_distortion",
    "syn2nat:blur",
    "syn2nat:emboss",
    "syn2nat:sharpen",
    "syn2nat:translate",
    "syn2nat:color_jitter",
    "lp:l0",
    "spatter",
)
GRAY = (
    "snow",
    "frost_drawn",
    "fog",
    "brightness",
    "glass_blur",
    "defocus_blur",
    "zoom_blur",
    "elastic_transform",
    "jpeg_compression",
)
SMALL = ("glass_blur", "shot_noise", "elastic_transform")


# What is worked on, and how far the two may be apart: whole numbers not at all, sums of floats by their rounding. A
# Poisson count may be the next where a rank lies within rounding of it; none does here.
CASES: dict[str, tuple[Work, float]] = {
    "jpeg": (jpeg, 0),
    "words": (words, 0),
    "poisson": (poisson, 0),
    "lines": (lines, 1e-6),
    "gaussian, edges repeated": (lambda: gaussian("replicate"), 0),
    "gaussian, mirrored": (lambda: gaussian("reflect"), 0),
    "gaussian, mirrored without the edge": (lambda: gaussian("reflect101"), 0),
    "normalising": (normalising, 2e-6),
    "quantising": (quantising, 0),
    "median of 3": (lambda: median(1), 0),
    "median of 5": (lambda: median(2), 0),
    "median with long counters": (wide_median, 0),
    "drops": (lambda: drops(37, 53), 0),
    "drops on a small image": (lambda: drops(2, 9), 0),
    "few regions": (lambda: regions(0.3), 0),
    "winding regions": (lambda: regions(0.45), 0),
    "one region": (lambda: regions(1.1), 0),
    "normals": (lambda: CounterRng(3, torch.arange(2), "x").normals("y", 3, 19, 21), 0),
    "uniforms": (lambda: CounterRng(3, torch.arange(2), "x").coarse_uniforms("y", 3, 19, 21), 0),
    **{name: (partial(corrupted, name), 0) for name in AT_ONCE + IN_PART},
    **{f"{name}, gray": (partial(corrupted, name, 2.5, 1), 0) for name in GRAY},
    **{f"{name}, as for small images": (partial(corrupted, name, 1, preset="cifar"), 0) for name in SMALL},
    **{f"{name}, some images": (partial(corrupted, name, [4.0, 0.0]), 0) for name in ("fog", "defocus_blur")},
    "elastic_transform, near and far": (partial(corrupted, "elastic_transform", [1.0, 4.0]), 0),
}


def exact_sums() -> None:
    """Let the interpreter round a fused multiply-add once, as a card does: in double precision the product is exact."""
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def create_fma(_: InterpreterBuilder, first: Any, second: Any, third: Any) -> Any:
        total = first.data.astype(np.float64) * second.data + third.data
        return TensorHandle(total.astype(third.data.dtype), third.dtype.scalar)

    InterpreterBuilder.create_fma = create_fma


def compared(work: Work) -> dict[str, Any]:
    """How far apart the two are, which kernels were launched, and what went wrong, if it did."""
    from triton.runtime.interpreter import GridExecutor

    launched: list[str] = []
    call = GridExecutor.__call__

    def noted(executor: GridExecutor, *arguments: Any, **settings: Any) -> Any:
        launched.append(f"{executor.fn.__module__}.{executor.fn.__name__}")
        return call(executor, *arguments, **settings)

    GridExecutor.__call__ = noted
    os.environ.pop("BLEMISH_FUSED", None)
    try:
        quick = work()
        os.environ["BLEMISH_FUSED"] = "0"
        plain = work()
    except Exception:
        return {"error": traceback.format_exc()}
    finally:
        GridExecutor.__call__ = call
    same = (quick.shape, quick.dtype) == (plain.shape, plain.dtype)
    distance = float((quick.double() - plain.double()).abs().max()) if same else float("inf")
    return {"error": "", "distance": distance, "values": int(plain.unique().numel()), "launched": sorted({*launched})}


def main(target: Path) -> None:
    """Write what was found in every case, and the names of all kernels."""
    frost_textures(None, 1.0, 17, 19, torch.device("cpu"))  # drawn once, by the plain operations
    fused._DEVICES |= {"cpu"}
    torch.set_num_threads(1)
    exact_sums()
    assert fused.kernels_for(torch.device("cpu")) is not None, "Triton's interpreter does not work here"
    found = {name: compared(work) for name, (work, _) in CASES.items()}
    kernels = [
        f"{name}.{item}"
        for name, module in sys.modules.items()
        if name.startswith("blemish.ops.fused.")
        for item, value in vars(module).items()
        if item.endswith("_kernel") and value.fn.__module__ == name
    ]
    target.write_text(json.dumps({"cases": found, "kernels": sorted(kernels)}))


def interpreted(folder: Path) -> dict[str, Any]:
    """What a fresh process finds."""
    target = folder / "interpreted.json"
    source = Path(blemish.__file__).parents[1]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "BLEMISH_COMPILED": "0", "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, __file__, str(target)], env=environment, check=True)
    found: dict[str, Any] = json.loads(target.read_text())
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
