"""What each corruption has to compute and to move, counted by hand from its formula, for roofline.py.

`COUNTS` holds for every corruption of the catalog the operations per value of an image (three values a pixel), the
bytes per value besides levels in and levels out, and in words what was counted. Images have 224 × 224 pixels and
severity is 3, or the only one there is; where parameters are drawn, their mean or a typical value counts.

Counted is what the formula asks of a perfect implementation that fuses everything, not what ours executes:

- An addition, product, comparison, minimum, maximum, rounding, selection, shift or look-up is 1, a multiply-add 2, both
  bounds of a clip 2. A division, root, power, logarithm or exponential is `SPECIAL`. Scaling levels to 0 … 1 and
  quantising are 4 together; what only copies or hides levels does neither.
- What is done once for a pixel, not for each of its values, is divided by 3. What is done once for an image, a row or a
  column is nothing.
- A filter of n taps is 2 n, a separable one 4 n; there are no running sums. A real FFT of n values is 2.5 log2(n) per
  value and direction.
- Mixing two values is 4, so that bilinear sampling is three mixes, and comes after the coordinates. These are 4 per
  pixel for an affine map; rounding them to 1/32 is `SNAP`, and going from them to places in the image `PLACE`.
  Coordinates that depend on the row or the column alone leave only the address to compute, `ADDRESS`.
- A small shape is 4 for each pixel of the box around it: the test and the mark.
- Bytes: all levels count as read once, even where they end up hidden, and once more where all of an image must be known
  before its first value can be written. Random words and noise are made again rather than stored. Plain tables (of
  normal quantiles, of levels) and intermediate results are no bytes, but for planes that are said to be stored.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["BENCHMARK", "COUNTS", "Count"]


class Count(NamedTuple):
    """Operations and further bytes, both per value, and what they are for."""

    operations: float
    more_bytes: float
    what: str


VALUES = 3 * 224 * 224
HASH = 9  # whole-number operations for 16 random bits; twice as many for a value of 23 bits
NORMAL = HASH + 1  # one look-up
UNIFORM = 2 * HASH + 2
LEVELS = 4
SPECIAL = 8
MIX = 4
BILINEAR = 3 * MIX
ADDRESS = 2
AFFINE = 4  # a multiply-add for each coordinate; what depends on the row is there already
SNAP = 4  # a product and a rounding for each
PLACE = 8 + ADDRESS  # floor, share and two bounds for each coordinate
SHAPE = 4
GRAY = 5  # luminance
EXTREMES = 4  # the largest and the smallest of three values
HUE = EXTREMES + 2 + 5 + SPECIAL  # spread, guard against 0, sextant, division
LIGHT = EXTREMES + 2
RELIT = LIGHT + 6 + 6 + 1 + SPECIAL  # on levels, the room before and after, guard, ratio; then 3 per value
NOISE = NORMAL + 2 + LEVELS
JPEG = 10 + 0.5 * (4 * 44 + 12) + 14
POISSON = 2 + 30 + 36  # the mean, the expansion and 12 partial sums

_BENCHMARK = {
    "gaussian_noise": Count(NOISE, 0, "hash, table, add"),
    "shot_noise": Count(NORMAL + POISSON + LEVELS, 0, "hash, table, expansion and 12 partial sums"),
    "impulse_noise": Count(HASH + 6 + LEVELS, 0, "hash, two ramps"),
    "defocus_blur": Count(2 * 2.5 * 15.6 + 3 + LEVELS, 0, "a disk of radius 6 by FFT (113 taps would be more)"),
    "glass_blur": Count(
        2 * 4 * 9 + 3 * (HASH + 12) / 3 + LEVELS, 3 * 4 / 3, "two Gaussians of 9 taps, 3 passes of copies"
    ),
    "motion_blur": Count(2 * 31 + LEVELS, 0, "31 taps along a line"),
    "zoom_blur": Count(11 * BILINEAR + LEVELS, 0, "11 enlargements, three mixes each"),
    "snow": Count((HASH + 2 * 25 + 24) / 3 + 10 + LEVELS, 0, "one plane: hash, enlarge, 25 taps; whiten, add"),
    "frost": Count(MIX + LEVELS, 1, "weigh and add a texture"),
    "fog": Count(
        (1.3 * (HASH + 12) + 4) / 3 + 5 + LEVELS,
        1,
        "one plane of 256 × 256: hash, diamond-square; maximum (second read), add",
    ),
    "brightness": Count(6 + LEVELS, 0, "maximum, scale"),
    "contrast": Count(4 + LEVELS, 1, "mean, scale: the levels are read twice"),
    "elastic_transform": Count(
        (2 * (HASH + 4 * 15) + AFFINE + SNAP + 4 + 2 * PLACE) / 3 + 2 * BILINEAR + LEVELS,
        0,
        "two fields: hash, Gaussian of 15 taps; coordinates and bilinear sampling, twice",
    ),
    "pixelate": Count(2, 0, "means of boxes, repeat"),
    "jpeg_compression": Count(JPEG, 0, "colour, four passes of the DCT, quantise, colour"),
}

_EXTRA = {
    "speckle_noise": Count(NORMAL + 3 + LEVELS, 0, "hash, table, scale, multiply"),
    "gaussian_blur": Count(4 * 25 + LEVELS, 0, "Gaussian of 25 taps"),
    # Thickness 5; Canny 27: gradients 6, norm 4, direction 5, ridge and bounds 4, chains 8; chamfer distances 32: two
    # sweeps of 8 neighbours; block means 6; equalisation 2; relief and its means 15; product and maximum 2.
    "spatter": Count(
        (NORMAL + 4 * 17 + 5 + 27 + 32 + 6 + 2 + 15 + 2) / 3 + 2 + LEVELS,
        2 * 2 / 3,
        "one plane: hash, Gaussian of 17 taps, edges, distances, relief; stored for a histogram and a maximum; add",
    ),
    "frost_drawn": Count(MIX + LEVELS, 1, "weigh and add a texture"),
    "saturate": Count((EXTREMES + 3 + 2 * SPECIAL + 6) / 3 + 4 + LEVELS, 0, "extremes, two divisions; scale"),
}

_NOC = {
    "quantization": Count(3 + LEVELS, 0, "scale, round, scale"),
    "gaussian_noise": Count(NOISE, 0, "hash, table, add"),
    "salt_pepper": Count((HASH + 3) / 3 + 1 + LEVELS, 0, "one plane: hash, two comparisons; add"),
    "blur": Count(4 * 11 + MIX + LEVELS, 0, "five means of 3 × 3 as one separable filter of 11 taps, mix"),
    "thumbnail_resize": Count(
        2 * 4.35 * (0.46 + 0.46**2) + MIX * (0.46 + 1) + LEVELS,
        0,
        "to 0.46 of the side by 4.35 taps, back by a mix; per axis",
    ),
    "pixelate": Count(1 + 1 / 3 + 1 / 9 + LEVELS, 0, "means of 3 × 3, repeat"),
    "artifacts": Count(92 * 4 * 26 * SHAPE / VALUES + 1, 0, "92 boxes of 4 × 26; select"),
    "vertical_artifacts": Count(98 * 26 * 4 * SHAPE / VALUES + 1, 0, "98 boxes of 26 × 4; select"),
    "rhombus": Count(42 * 15**2 * SHAPE / VALUES + 1 / 3 + 1, 0, "42 boxes of 15 × 15; look-up, select"),
    "rain": Count(66 * 13**2 * SHAPE / VALUES + 1 / 3 + 3 + LEVELS, 0, "66 boxes of 13 × 13; look-up, whiten"),
    "circles": Count(28 * 13**2 * SHAPE / VALUES + 1 / 3 + 1, 0, "28 boxes of 13 × 13; look-up, select"),
    "obstruction": Count(1 / 3 + 1, 0, "row and column, select"),
    "border": Count(1 / 3 + 1, 0, "row and column, select"),
    "translation": Count((ADDRESS + 1) / 3 + 1, 0, "address, row and column; select"),
    "shear": Count((2 + ADDRESS) / 3 + 1, 0, "two bounds, address; select"),
    "elastic": Count(ADDRESS / 3 + MIX + LEVELS, 0, "address; one mix, along one axis"),
    "rotation": Count((AFFINE + PLACE) / 3 + BILINEAR + LEVELS, 0, "coordinates, bilinear sampling"),
    "backlight": Count(1 / 3 + 1 + LEVELS, 0, "select by row or column, add"),
    "brightness": Count(1 + LEVELS, 0, "add"),
    "contrast": Count(4 + LEVELS, 1, "mean, scale: the levels are read twice"),
    "color_distortion": Count(1 + LEVELS, 0, "add"),
    "gray_scale": Count(GRAY / 3 + MIX + LEVELS, 0, "luminance, mix"),
    "hue": Count((HUE + 1) / 3 + 9 + LEVELS, 0, "hue, turn; ramps"),
}

# Steps of color_jitter; those before contrast, on average half, are done for the mean of the image and once more.
_CONTRAST_STEP = (GRAY + 1) / 3 + 4
_OTHER_STEPS = 3 + (GRAY + 1) / 3 + 4 + (HUE + 1) / 3 + 9

_SYN2NAT = {
    "affine": Count(ADDRESS / 3 + BILINEAR + LEVELS, 0, "address, bilinear sampling"),
    "blur": Count(4 * 17 / 3 + LEVELS, 0, "separable filter of 5, 5 or 7 taps"),
    "border": Count(1 / 3 + 1, 0, "row and column, select"),
    "channel_dropout": Count(1, 0, "select"),
    "coarse_dropout": Count(19 * 8**2 * SHAPE / VALUES + 1, 0, "19 squares of 8 × 8; select"),
    "color_jitter": Count(
        _CONTRAST_STEP + 1.5 * _OTHER_STEPS + LEVELS,
        1,
        "three blends, a turn of the hue; mean of the image (second read)",
    ),
    "cutout": Count(1 / 3 + 1, 0, "row and column, select"),
    "downscale": Count(ADDRESS / 3, 0, "address"),
    "elastic_transform": Count((AFFINE + SNAP + PLACE) / 3 + BILINEAR + LEVELS, 0, "coordinates, bilinear sampling"),
    "emboss": Count(8 + LEVELS, 0, "a diagonal difference and two others, weigh, add"),
    "flip": Count(ADDRESS / 3, 0, "address"),
    "gauss_noise": Count(NOISE, 0, "hash, table, add"),
    "gaussian_blur": Count(4 * 7 + LEVELS, 0, "Gaussian of 7 taps"),
    "grid_distortion": Count(ADDRESS / 3 + BILINEAR + LEVELS, 0, "address, bilinear sampling"),
    "hue_saturation_value": Count(
        (HUE + 3 + SPECIAL + 1 + 3 + 3 + 1) / 3 + 5 + 3 + LEVELS, 0, "hue, turn, saturation, value; ramps"
    ),
    "image_compression": Count(JPEG, 0, "colour, four passes of the DCT, quantise, colour"),
    "invert": Count(1, 0, "subtract"),
    "iso_noise": Count(
        (2 * LIGHT + 3 + 2 * NORMAL + 30 + 3 + 7 + SPECIAL + 3 + HUE + 3) / 3 + 5 + 3 + LEVELS,
        1,
        "contrast of the image (second read); one plane: hash and table twice, Poisson expansion, hue; ramps",
    ),
    "jpeg_compression": Count(JPEG, 0, "colour, four passes of the DCT, quantise, colour"),
    "median_blur": Count(
        (22 + 88 + 88 + 260) / 4,
        0,
        "windows of 3, 5, 5 or 7: minima and maxima of a network that shares sorted columns",
    ),
    "motion_blur": Count(2 * 5 + LEVELS, 0, "5 taps along a line"),
    "multiplicative_noise": Count((HASH + 4) / 3 + 1 + LEVELS, 0, "one plane: hash, scale; multiply"),
    "optical_distortion": Count((5 + 4 + SNAP + PLACE) / 3 + BILINEAR + LEVELS, 0, "coordinates, bilinear sampling"),
    "perspective": Count(
        0.75 * ((6 + SPECIAL + 2 + SNAP + PLACE) / 3 + BILINEAR) + ADDRESS / 3 + 2 * MIX + LEVELS,
        0,
        "of 0.75 of the pixels, the part that is shown: coordinates and a division, bilinear sampling; address, a mix "
        "per axis",
    ),
    "posterize": Count(3, 0, "scale, round, scale"),
    "random_brightness": Count(1 + LEVELS, 0, "add"),
    "random_contrast": Count(1 + LEVELS, 0, "multiply"),
    "random_fog": Count(
        51_000 * SHAPE / VALUES + SPECIAL / 3 + 3 + 4 * 5 + LEVELS,
        0,
        "19 discs, whose boxes hold 51,000 pixels of the image; power; whiten, separable filter of 5 taps",
    ),
    "random_gamma": Count(SPECIAL + LEVELS, 0, "power"),
    "random_grid_shuffle": Count((8 + ADDRESS) / 3, 0, "tile, its source, place in it, address"),
    "random_rain": Count(
        50 * 21 * SHAPE / VALUES + 1 + 4 * 5 + LEVELS + RELIT / 3 + 3 + LEVELS,
        0,
        "50 strokes of 21 pixels; separable filter of 5 taps, quantise, lightness",
    ),
    "random_shadow": Count(
        (3 * 2.7 * 2 + 3 + RELIT) / 3 + 3 + 1 + LEVELS,
        0,
        "2.7 edges met in a row by each of 3 polygons; lightness, select",
    ),
    "random_snow": Count((1 + RELIT) / 3 + 3 + 1 + LEVELS, 0, "comparison, lightness, select"),
    "random_sun_flare": Count(
        8 * (17**2 + 3**2) / 2 * (SHAPE + 3 * MIX) / VALUES + (1 + 5) / 3 + 3 + LEVELS,
        0,
        "8 boxes of 17 × 17 or 3 × 3, mixed in; squared distance, 5 comparisons; look-up",
    ),
    "rgb_shift": Count(1 + LEVELS, 0, "add"),
    "rotate": Count((AFFINE + SNAP + PLACE) / 3 + BILINEAR + LEVELS, 0, "coordinates, bilinear sampling"),
    "sharpen": Count(4 + 3 + LEVELS, 0, "sum of 3 × 3, weigh, subtract"),
    "solarize": Count(3, 0, "comparison, subtract, select"),
    "to_sepia": Count(5 + 1 + MIX + LEVELS, 0, "3 × 3 matrix, bound, mix"),
    "translate": Count(ADDRESS / 3 + BILINEAR + LEVELS, 0, "address, bilinear sampling"),
}

_LP = {
    "l0": Count(
        2 * (2 * HASH) + 2 + 2 + 0.06 * (HASH + 2) + LEVELS, 0, "hash and histogram, again for the comparison; select"
    ),
    "l1": Count(
        2 * (UNIFORM + 1 + SPECIAL) + 1 + 3 + LEVELS, 0, "hash and logarithm, twice because of their sum; sign, add"
    ),
    "l2": Count(2 * NORMAL + 2 + 2 + LEVELS, 0, "hash and table, twice because of their norm; add"),
    "linf": Count(UNIFORM + 2 + LEVELS, 0, "hash, add"),
    "gaussian": Count(NOISE, 0, "hash, table, add"),
}

FFT = 2.5 * 15.6  # of a real plane of 224 × 224
_PHASES = (
    HASH + 2 + 2 * SPECIAL
)  # hash, turn, sine and cosine; for the half of the spectrum there is one for each value
_SPARKLE = (
    SPECIAL + 4 + 4 + 2 + 3 + 3 + 3 + SPECIAL + 2
)  # direction, ray, two look-ups, mix; distance, shape, ratio, clip

_CBAR = {
    "blue_noise_sample": Count(
        (_PHASES / 2 + 3 + FFT + 3) / 3 + 1, 1, "one plane: half the phases, weigh, FFT, spread (second read); select"
    ),
    "brownish_noise": Count(
        _PHASES / 2 + 3 + FFT + 2 + 2 + LEVELS, 1, "half the phases, weigh, FFT, spread (second read); add"
    ),
    "checkerboard_cutout": Count((AFFINE + 4 + 4 + 3 + 1) / 3 + 1, 0, "turn, colours, cell, look-up; select"),
    "inverse_sparkles": Count((_SPARKLE + SPECIAL) / 3 + 2 + LEVELS, 0, "one plane: rays, power; whiten"),
    "sparkles": Count(5 * (_SPARKLE / 3 + 3) + LEVELS, 0, "five planes: rays; whiten"),
    "caustic_refraction": Count(
        (
            5 * (4 * SPECIAL + 8 + 2 * SPECIAL + 2 * SPECIAL + 6 + SPECIAL)
            + 2 * SPECIAL
            + 4
            + 4 * 9
            + 20
            + 3 * SPECIAL
            + PLACE
        )
        / 3
        + BILINEAR
        + 2
        + LEVELS,
        0,
        "one plane: five loops of six sines and three divisions, two powers, Gaussian of 9 taps, slopes, refraction; "
        "bilinear sampling, shade",
    ),
    "cocentric_sine_waves": Count(
        (3 + SPECIAL + SPECIAL + SPECIAL + 3 + 2 * SPECIAL + 2) / 3 + 1 + LEVELS,
        0,
        "one plane: distance, direction, sine, remainder; add",
    ),
    "perlin_noise": Count(
        5 * (4 * (4 + 1) + 2 * 4 + 3 * 3 + 3) / 3 + 4 / 3 + MIX + LEVELS,
        0,
        "one plane: five octaves of four gradients and three mixes; mix",
    ),
    "plasma_noise": Count(
        (5 * (2 * SPECIAL + 2 * SPECIAL + 10) + 5 + 3 * SPECIAL) / 3 + MIX + LEVELS,
        0,
        "one plane: five folds of two sines and two divisions, three sines; mix",
    ),
    "single_frequency_greyscale": Count((4 + SPECIAL) / 3 + 2 + LEVELS, 0, "one plane: sine; add"),
    "circular_motion_blur": Count(
        2 * 2 * 15 + 21 * ((AFFINE + PLACE + 2 * 20) / 3 + 2 * 20) + LEVELS,
        0,
        "spline filter of 15 taps per axis; 21 turns: coordinates, 8 weights, 20 products of 16 taps",
    ),
    "lines": Count(53 * 224 * 2 * (SHAPE + 3 * MIX) / VALUES, 0, "53 lines of about two pixels per row, mixed in"),
    "pinch_and_twirl": Count(
        (3 + SPECIAL + 2 * SPECIAL + 2 * SPECIAL + 14 + PLACE) / 3 + BILINEAR + LEVELS,
        0,
        "distance, sine, power, turn; bilinear sampling",
    ),
    "ripple": Count(ADDRESS / 3 + BILINEAR + LEVELS, 0, "address, bilinear sampling"),
    "transverse_chromatic_abberation": Count(4 * 4 + LEVELS, 0, "separable filter of 4 taps"),
}

# The candidates that were not chosen.
_CBAR |= {
    "voronoi_noise": Count(
        (4 + 9 * (2 * (4 + 2 * SPECIAL + 3) + 4 + SPECIAL + 1) + 6) / 3 + 2 + LEVELS,
        0,
        "one plane: nine cells, a sine and a root for each place; add",
    ),
    "caustic_noise": Count(
        (5 * (4 * SPECIAL + 8 + 2 * SPECIAL + 2 * SPECIAL + 6 + SPECIAL) + 2 * SPECIAL + 4) / 3 + 2 + LEVELS,
        0,
        "one plane: five loops of six sines and three divisions, two powers; add",
    ),
    "blue_noise": Count(
        _PHASES / 2 + 3 + FFT + 2 + 2 + LEVELS, 1, "half the phases, weigh, FFT, spread (second read); add"
    ),
    "scatter": Count((2 * (4 + 3 * SPECIAL + 4) + PLACE) / 3 + BILINEAR + LEVELS, 0, "two hashes; bilinear sampling"),
    "chromatic_abberation": Count(4 * 4 + LEVELS, 0, "separable filter of 4 taps"),
    "fish_eye": Count(
        501 * 23**2 * ((6 + 8 * SPECIAL + PLACE) / 3 + BILINEAR) * 3 / VALUES + LEVELS,
        0,
        "501 boxes of 23 × 23: two refractions of four angles, bilinear sampling",
    ),
    "water_drop": Count(
        (3 + SPECIAL + SPECIAL + 3 + SPECIAL + 4 + PLACE) / 3 + BILINEAR + LEVELS,
        0,
        "distance, sine, ratio; bilinear sampling",
    ),
    "quadrilateral_no_bars": Count(
        (8 + PLACE) / 3 + BILINEAR + 1 + LEVELS, 0, "coordinates, bilinear sampling, select"
    ),
    "perspective_no_bars": Count(
        (6 + SPECIAL + 2 + PLACE) / 3 + BILINEAR + 1 + LEVELS,
        0,
        "coordinates and a division, bilinear sampling, select",
    ),
    "bleach_bypass": Count((GRAY + 4) / 3 + 2 + 4 + 2 * MIX + LEVELS, 0, "luma; product, screen, two mixes"),
    "technicolor": Count(4 + 2 + MIX + LEVELS, 0, "mattes, two products, mix"),
    "pseudocolor": Count(
        (GRAY + 3 + 4 + MIX) / 3 + 2 + 2 * MIX + LEVELS, 0, "luma, place, ramp; two look-ups, two mixes"
    ),
    "color_balance": Count(GRAY / 3 + MIX + LEVELS, 0, "luminance, mix"),
    "hue_shift": Count((HUE + 1) / 3 + 9 + LEVELS, 0, "hue, turn; ramps"),
    "color_dither": Count(1 + 3 + 1 + 6 + LEVELS, 0, "round, error, three shares of it"),
}

_LENS = Count(2 * FFT + 3 + LEVELS, 0, "a kernel of 25 × 25 by FFT (625 taps would be more)")
_ABERRATIONS = (
    *("defocus", "vertical_astigmatism", "oblique_astigmatism", "horizontal_coma", "vertical_coma"),
    *("primary_spherical", "oblique_trefoil", "vertical_trefoil"),
)
_PAIRS = ("defocus_spherical", "astigmatism", "coma", "trefoil")
_OPTICS = dict.fromkeys((*_ABERRATIONS, *_PAIRS, *(f"{name}_rg" for name in _ABERRATIONS)), _LENS)

_HUMAN = {
    "colour": Count(GRAY / 3 + MIX + LEVELS, 0, "luminance, mix"),
    "contrast": Count((GRAY + 2) / 3 + LEVELS, 0, "one plane: luminance, scale"),
    "uniform_noise": Count((GRAY + 2 + HASH + 4) / 3 + LEVELS, 0, "one plane: luminance, scale, hash, add"),
    "low_pass": Count((GRAY + 4 * 41) / 3 + LEVELS, 0, "one plane: luminance, Gaussian of 41 taps"),
    "high_pass": Count(
        (GRAY + 4 * 9 + 3) / 3 + LEVELS, 1, "one plane: luminance, Gaussian of 9 taps, difference; mean (second read)"
    ),
    "phase_noise": Count(
        (GRAY + 2 * FFT + (HASH + 2 + 2 * SPECIAL + 6) / 2) / 3 + LEVELS,
        0,
        "one plane: luminance, FFT and back; hash, sine, cosine and product for half of it",
    ),
    "power_equalisation": Count(
        (GRAY + 2 * FFT + (3 + 2 * SPECIAL + 3) / 2) / 3 + MIX + LEVELS,
        0,
        "one plane: luminance, FFT and back; amplitude and ratio for half of it; mix",
    ),
    "rotation": Count((GRAY + ADDRESS) / 3 + LEVELS, 0, "one plane: luminance, address"),
    "false_colour": Count(1 + 5 + 1 + 2 + 8, 0, "look-up, 3 × 3 matrix, clip, search in 256 values"),
}

_LAION = {
    "mosaic": Count(
        2 * 34 + 28 * 28 * 4096 * 3 * 2 / VALUES + ADDRESS,
        0,
        "bicubic shrinking to 28 × 28, each beside 4,096 mean colours; look-up",
    ),
    "glitched": Count(ADDRESS, 0, "address"),
    "vertical_lines": Count(
        2 + 112 * 56 * 8 * SHAPE / VALUES + 1, 0, "means of cells; 112 lines of 56 pieces, 8 pixels each; look-up"
    ),
    "geometric_shapes": Count(600 * 13 * 13 * SHAPE / VALUES + 1, 0, "600 boxes of 13 × 13; look-up"),
    "stickers": Count(400 * 16 * 16 * SHAPE / VALUES + ADDRESS, 0, "400 squares of 16 × 16; look-up"),
    "luminance_checkerboard": Count(2 + LEVELS, 0, "look-up, add"),
}

_SENSOR = {
    "low_light": Count(
        2 * NORMAL + 2 + 7 + POISSON + SPECIAL + 3 + LEVELS,
        1,
        "both extremes (second read); stretch, bend, dim; photons at the rank of a normal; noise",
    ),
    "iso_noise": Count(2 * NORMAL + POISSON + SPECIAL + 3 + LEVELS, 0, "photons at the rank of a normal; noise"),
    "color_quant": Count(SPECIAL + 2, 0, "division, floor, product"),
    "jpeg_bit_error": Count(JPEG, 0, "a JPEG round trip; its entropy coding, which a codec does, is not counted"),
    "h265_bit_error": Count(8 * 2 * 2 * 17, 0, "eight frames there and back: two transforms of 16 taps each and sums"),
    "rolling_shutter": Count((AFFINE + PLACE) / 3 + BILINEAR + LEVELS, 0, "coordinates, three mixes"),
    "dead_pixels": Count((HASH + 4) / 3 + 3 + 8 + 4, 0, "hash, two bounds; error, neighbours, clip"),
    "lens_dirt": Count(
        2 + (48 * 12 * 64 * 64 / (224 * 224) + 2 * BILINEAR) / 3 + 6 + LEVELS,
        1,
        "mean (second read); 48 spots on 64 × 64 points, two planes enlarged; two mixes",
    ),
}

_MED_SHARED = (
    *("gaussian_noise", "speckle_noise", "impulse_noise", "shot_noise"),
    *("pixelate", "jpeg_compression", "zoom_blur", "saturate"),
)
# In the settings of the first data set that has them; what is ImageNet-C's with other settings is counted so.
_MED = {
    **{name: count for name, count in (_BENCHMARK | _EXTRA).items() if name in _MED_SHARED},
    "defocus_blur": Count(2 * 2.5 * 15.6 + 3 + LEVELS, 0, "a disk of radius 5 by FFT"),
    "motion_blur": Count(2 * 31 + LEVELS, 0, "31 taps along a line"),
    "gaussian_blur": Count(4 * 17 + LEVELS, 0, "17 taps along either side"),
    "brightness_up": Count(3, 0, "product, clip, truncation"),
    "brightness_down": Count(3, 0, "product, clip, truncation"),
    "contrast_up": Count(5 / 3 + 5, 1, "mean gray (second read); product, sum, clip, truncation"),
    "contrast_down": Count(5 / 3 + 5, 1, "mean gray (second read); product, sum, clip, truncation"),
    "gamma_corr_up": Count(1, 0, "look-up"),
    "gamma_corr_down": Count(1, 0, "look-up"),
    "stain_deposit": Count(2 * 24 * 24 * SHAPE / VALUES + 1, 0, "two boxes of 24 × 24; selection"),
    "bubble": Count(
        11 * 2 * 20 * 20 * SHAPE / VALUES + 2 / 3 + 6, 0, "eleven bubbles, two boxes of 20 × 20 each; opacity, mix"
    ),
    "black_corner": Count(3 / 3 + 1, 0, "distance, selection"),
    "characters": Count(
        2 * 5.5 * 81 * (SHAPE + 3 * MIX) / VALUES + 2, 0, "two words of five or six letters, 81 pixels each; mixes"
    ),
}

COUNTS: dict[str, Count] = {
    **_BENCHMARK,
    **_EXTRA,
    **{f"noc:{name}": count for name, count in _NOC.items()},
    **{f"syn2nat:{name}": count for name, count in _SYN2NAT.items()},
    **{f"lp:{name}": count for name, count in _LP.items()},
    **{f"cbar:{name}": count for name, count in _CBAR.items()},
    **{f"optics:{name}": count for name, count in _OPTICS.items()},
    **{f"human:{name}": count for name, count in _HUMAN.items()},
    **{f"laion:{name}": count for name, count in _LAION.items()},
    **{f"sensor:{name}": count for name, count in _SENSOR.items()},
    **{f"med:{name}": count for name, count in _MED.items()},
}

BENCHMARK: tuple[str, ...] = tuple(_BENCHMARK)
"""The fifteen corruptions of the ImageNet-C benchmark."""
