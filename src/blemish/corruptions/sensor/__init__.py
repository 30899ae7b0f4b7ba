"""What happens in a camera: light, the sensor, the shutter, the lens, and the stream that is stored or sent."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.moves import unmoved
from blemish.corruptions.sensor.defects import dead_pixels, lens_dirt, rolling_shutter
from blemish.corruptions.sensor.light import color_quant, iso_noise, low_light
from blemish.corruptions.sensor.streams import h265_bit_error, jpeg_bit_error

__all__ = ["SENSOR"]

SENSOR: tuple[Corruption, ...] = unmoved(
    low_light,
    iso_noise,
    color_quant,
    jpeg_bit_error,
    h265_bit_error,
    rolling_shutter,
    dead_pixels,
    lens_dirt,
)
