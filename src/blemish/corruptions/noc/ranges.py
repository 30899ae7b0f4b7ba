"""The severity ranges of ImageNet-NOC's corruptions, and what its pixels are measured in."""

from __future__ import annotations

from blemish.corruptions.severity import MAX_SEVERITY, SeverityTable

__all__ = ["PUBLISHED_SIDE", "side_scale", "table"]

PUBLISHED_SIDE = 224
"""The side of the images for which quantities in pixels were published."""

# Parameter, its value without corruption, and the published range (Figures 5 and 6), from mild to severe.
_RANGES: dict[str, tuple[str, float, float, float]] = {
    "quantization": ("levels", 256, 9, 4),
    "gaussian_noise": ("sigma", 0, 0.05, 0.18),
    "salt_pepper": ("amount", 0, 0.003, 0.032),
    "blur": ("weight", 0, 0.4, 0.95),
    "thumbnail_resize": ("factor", 1, 1.1, 3.25),
    "pixelate": ("size", 1, 2, 4),
    "artifacts": ("count", 0, 15, 170),
    "vertical_artifacts": ("count", 0, 15, 180),
    "rhombus": ("count", 0, 9, 76),
    "rain": ("count", 0, 12, 120),
    "circles": ("count", 0, 7, 50),
    "obstruction": ("size", 0, 47, 125),
    "border": ("thickness", 0, 9, 46),
    "translation": ("distance", 0, 15, 62),
    # The figure prints one number, 0.39. The authors' released settings are 12 to 39 degrees, and 39 degrees move the
    # first row by tan(39°) / 2 = 0.40 of the height.
    "shear": ("degrees", 0, 12, 39),
    "elastic": ("cropped", 0, 44, 110),
    "rotation": ("degrees", 0, 7, 50),
    "backlight": ("shift", 0, 0.11, 0.44),
    "brightness": ("shift", 0, 0.16, 0.51),
    "contrast": ("reduction", 0, 0.33, 0.74),
    "color_distortion": ("shift", 0, 0.09, 0.40),
    "gray_scale": ("weight", 0, 0.49, 1),
    "hue": ("turns", 0, 0.05, 0.5),
}

_WHOLE = frozenset({"levels", "count"})


def table(name: str) -> SeverityTable:
    """Severity 1 is the lower bound of the range, severity 5 the upper, with even steps between."""
    parameter, identity, lower, upper = _RANGES[name]
    step = (upper - lower) / (MAX_SEVERITY - 1)
    between = (lower + i * step for i in range(1, MAX_SEVERITY - 1))
    rows = tuple((float(value),) for value in (identity, lower, *between, upper))
    sizes = {"any": PUBLISHED_SIDE}
    return SeverityTable((parameter,), {"any": rows}, sizes, rounded=_WHOLE & {parameter})


def side_scale(height: int, width: int) -> float:
    """What a published pixel measures in an image of this size: the shorter side counts."""
    return min(height, width) / PUBLISHED_SIDE
