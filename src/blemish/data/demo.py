"""An embedded demo picture, painted by code: sky and clouds, mountains, a meadow, trees, a fence and a house.

It has smooth gradients, strong edges, fine lines and texture, so that every kind of corruption shows on it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Plane = NDArray[np.float64]
Colour = tuple[float, float, float]

_OVERSAMPLING = 2
_HORIZON = 0.66

# Larger ones are painted again rather than kept: 3 MB each.
_KEPT_SIDE = 1024


def demo_picture(side: int = 224) -> Image.Image:
    """The demo picture as a square RGB image; the same pixels every time."""
    return Image.fromarray(_painted(side).copy() if side <= _KEPT_SIDE else _paint(side))


def _paint(side: int) -> NDArray[np.uint8]:
    scene = _Scene(side * _OVERSAMPLING)
    scene.sky()
    scene.mountains()
    scene.meadow()
    scene.house(0.29, 0.80, 0.115)
    scene.fir(0.075, 0.83, 0.27)
    scene.fir(0.155, 0.80, 0.17)
    scene.fir(0.925, 0.80, 0.22)
    scene.oak(0.74, 0.845, 0.15)
    scene.fence(0.885)
    scene.flowers()
    fine: Plane = scene.canvas.reshape(side, _OVERSAMPLING, side, _OVERSAMPLING, 3).mean(axis=(1, 3))
    levels: NDArray[np.uint8] = (fine.clip(0, 1) * 255 + 0.5).astype(np.uint8)
    return levels


_painted = lru_cache(maxsize=4)(_paint)


def _hash(x: NDArray[np.int64], y: NDArray[np.int64], salt: int) -> Plane:
    """A value in [0, 1) per lattice point; integer arithmetic, so it is the same everywhere."""
    h = (x * 374761393 + y * 668265263 + salt * 2147483647) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 2246822519) & 0xFFFFFFFF
    return np.asarray((h ^ (h >> 16)) / 2.0**32)


def _value_noise(x: Plane, y: Plane, salt: int) -> Plane:
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    u, v = x - left, y - top
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    upper = _hash(left, top, salt) * (1 - u) + _hash(left + 1, top, salt) * u
    lower = _hash(left, top + 1, salt) * (1 - u) + _hash(left + 1, top + 1, salt) * u
    return upper * (1 - v) + lower * v


def _cloudy(x: Plane, y: Plane, salt: int, octaves: int = 5) -> Plane:
    """Value noise summed over octaves, in 0 … 1."""
    total, weight = np.zeros(np.broadcast_shapes(x.shape, y.shape)), 0.0
    for octave in range(octaves):
        share, scale = 0.5**octave, 2.0**octave
        total += share * _value_noise(x * scale, y * scale, salt + octave)
        weight += share
    return total / weight


def _step(low: float, high: float, value: Plane) -> Plane:
    t = ((value - low) / (high - low)).clip(0, 1)
    return np.asarray(t * t * (3 - 2 * t))


class _Scene:
    """A canvas of colours over x, y in 0 … 1, painted from back to front."""

    def __init__(self, size: int) -> None:
        ticks = (np.arange(size) + 0.5) / size
        self.x, self.y = ticks[None, :], ticks[:, None]
        self.canvas = np.zeros((size, size, 3))
        self.path = np.zeros((size, size))

    def _cover(self, mask: Plane | NDArray[np.bool_], colour: Colour | Plane) -> None:
        opacity = np.broadcast_to(np.asarray(mask, dtype=np.float64), self.canvas.shape[:2])[..., None]
        self.canvas += opacity * (np.asarray(colour) - self.canvas)

    def _ramp(self, position: Plane, *stops: tuple[float, Colour]) -> Plane:
        positions, colours = zip(*stops, strict=True)
        return np.stack([np.interp(position, positions, band) for band in zip(*colours, strict=True)], axis=-1)

    def sky(self) -> None:
        x, y = self.x, self.y
        height = np.broadcast_to(y, self.canvas.shape[:2]) / _HORIZON
        self.canvas[:] = self._ramp(
            height,
            (0, (0.20, 0.43, 0.76)),
            (0.5, (0.49, 0.70, 0.90)),
            (0.85, (0.94, 0.86, 0.76)),
            (1, (0.98, 0.82, 0.66)),
        )
        distance = np.hypot(x - 0.70, y - 0.19)
        self._cover(0.75 * np.exp(-distance / 0.12), (1.0, 0.93, 0.72))
        self._cover(_step(0.062, 0.055, distance), (1.0, 0.98, 0.86))
        cover = _cloudy(x * 4.2 + 3.1, y * 11, 11) * _step(0.0, 0.10, y) * _step(0.56, 0.34, y)
        shade = self._ramp(_cloudy(x * 9, y * 20, 31), (0.3, (0.86, 0.89, 0.95)), (0.7, (1.0, 0.99, 0.97)))
        self._cover(0.9 * _step(0.50, 0.66, cover), shade)
        for centre, level, wing in ((0.40, 0.17, 0.016), (0.45, 0.145, 0.012), (0.352, 0.135, 0.010)):
            across = (x - centre) / wing
            bend = level - wing * 0.55 * np.sin(np.abs(across).clip(0, 1) * 2.6)
            self._cover((np.abs(across) < 1) & (np.abs(y - bend) < 0.0022), (0.13, 0.15, 0.22))

    def mountains(self) -> None:
        x, y = self.x, self.y
        crest = 0.44 - 0.20 * np.exp(-((x - 0.28) ** 2) / 0.022) - 0.15 * np.exp(-((x - 0.84) ** 2) / 0.02)
        jags = 1 - np.abs(2 * _cloudy(x * 16, np.zeros((1, 1)), 58, 4) - 1)
        crest = crest + 0.10 * (_cloudy(x * 7, np.zeros((1, 1)), 51, 6) - 0.5) - 0.06 * (jags - 0.8)
        rock = _cloudy(x * 22 + y * 14, y * 30 - x * 6, 71)
        stone = self._ramp(rock, (0.25, (0.30, 0.35, 0.50)), (0.75, (0.56, 0.60, 0.72)))
        haze = _step(0.25, 0.62, y)[..., None]
        self._cover(y > crest, stone * (1 - 0.55 * haze) + np.array((0.80, 0.80, 0.84)) * 0.55 * haze)
        depth = y - crest
        streaks = _cloudy(x * 38 + y * 6, y * 7, 81, 4)
        snow = (depth > 0) & (depth < 0.355 - y + 0.26 * (streaks - 0.5))
        self._cover(snow, self._ramp(rock, (0.35, (0.80, 0.86, 0.96)), (0.6, (1.0, 1.0, 1.0))))
        for base, reach, salt, dark, light in (
            (0.535, 0.11, 91, (0.25, 0.40, 0.42), (0.38, 0.52, 0.48)),
            (0.605, 0.09, 101, (0.15, 0.32, 0.24), (0.30, 0.47, 0.28)),
        ):
            ridge = base + reach * (_cloudy(x * 4 + salt, np.zeros((1, 1)), salt, 3) - 0.5)
            spikes = (
                0.014 * np.abs(np.modf(x * 61 + salt * 0.37)[0] * 2 - 1) * _value_noise(x * 61, np.zeros((1, 1)), salt)
            )
            wood = _cloudy(x * 60, y * 90, salt + 9, 3)
            self._cover(y > ridge - spikes, self._ramp(wood, (0.25, dark), (0.75, light)))

    def meadow(self) -> None:
        x, y = self.x, self.y
        edge = _HORIZON + 0.02 * np.sin(x * 5.2 + 0.6)
        near = ((y - edge) / (1 - _HORIZON)).clip(0, 1)
        blades = _value_noise(x * 190, y * 55 / (0.35 + near), 121)
        patches = _cloudy(x * 6, y * 16, 131)
        tone = (0.55 * blades + 0.45 * patches) * (1 - 0.35 * near)
        grass = self._ramp(tone, (0.15, (0.13, 0.29, 0.09)), (0.5, (0.36, 0.56, 0.16)), (0.85, (0.74, 0.80, 0.36)))
        self._cover(y > edge, grass)
        way = ((y - 0.79) / 0.21).clip(0, 1)
        middle = 0.29 + 0.16 * way + 0.035 * np.sin(way * 3)
        gravel = _value_noise(x * 230, y * 230, 141)
        self.path = _step(1.12, 0.95, np.abs(x - middle) / (0.016 + 0.075 * way**1.3)) * (y > 0.79)
        self._cover(self.path, self._ramp(gravel, (0, (0.60, 0.50, 0.38)), (1, (0.90, 0.82, 0.68))))

    def house(self, centre: float, ground: float, half: float) -> None:
        u, v = (self.x - centre) / half, (ground - self.y) / half
        self._cover(0.6 * _step(1.0, 0.8, np.hypot(u / 1.35, v / 0.22)), (0.08, 0.16, 0.05))
        boards = np.modf(v.clip(0, 9) * 9)[0] < 0.16
        self._cover((np.abs(u) < 1) & (v > 0) & (v < 1.0), (0.72, 0.22, 0.17))
        self._cover((np.abs(u) < 1) & (v > 0) & (v < 1.0) & boards, (0.52, 0.13, 0.11))
        self._cover((u > 0.45) & (u < 0.68) & (v > 1.2) & (v < 2.02), (0.50, 0.33, 0.28))
        self._cover((u > 0.42) & (u < 0.71) & (v > 1.98) & (v < 2.06), (0.35, 0.23, 0.20))
        roof = (v > 0.94) & (np.abs(u) < 1.22 * (1 - (v - 0.94) / 0.95))
        row = np.floor(v * 11)
        tiles = (np.modf(v.clip(0, 9) * 11)[0] < 0.2) | (np.modf((u + 4) * 8 + row * 0.5)[0] < 0.12)
        self._cover(roof, (0.33, 0.31, 0.36))
        self._cover(roof & tiles, (0.20, 0.18, 0.23))
        self._cover((np.abs(u) < 0.20) & (v > 0) & (v < 0.66), (0.96, 0.93, 0.86))
        self._cover((np.abs(u) < 0.155) & (v > 0) & (v < 0.62), (0.20, 0.36, 0.42))
        self._cover(np.hypot(u - 0.10, v - 0.30) < 0.03, (0.95, 0.80, 0.30))
        for window in (-0.60, 0.60):
            s, t = np.abs(u - window), np.abs(v - 0.52)
            self._cover((s < 0.25) & (t < 0.25), (0.97, 0.95, 0.90))
            glass = (s < 0.20) & (t < 0.20)
            self._cover(glass, (0.98, 0.83, 0.45))
            self._cover(glass & ((s < 0.022) | (t < 0.022)), (0.97, 0.95, 0.90))
        for puff in range(4):
            right, level = 0.57 + 0.17 * puff, 2.22 + 0.27 * puff
            self._cover(0.55 * _step(0.17 + 0.05 * puff, 0.03, np.hypot(u - right, v - level)), (0.95, 0.95, 0.96))

    def fir(self, centre: float, ground: float, height: float) -> None:
        u, v = (self.x - centre) / height, (ground - self.y) / height
        self._cover((np.abs(u) < 0.035) & (v > -0.02) & (v < 0.2), (0.32, 0.21, 0.13))
        needles = _value_noise(self.x * 260, self.y * 260, 151)
        rise = v.clip(0.12, 1)
        tier = np.modf((1 - rise) * 6.5)[0]
        reach = 0.30 * (1 - rise) ** 0.85 * (0.62 + 0.38 * tier) + 0.02 * (needles - 0.5)
        light = 0.55 * needles + 0.45 * (0.5 + u / 0.5).clip(0, 1) - 0.30 * (1 - tier)
        leaves = self._ramp(light, (-0.1, (0.03, 0.13, 0.10)), (0.35, (0.09, 0.30, 0.18)), (0.9, (0.34, 0.56, 0.30)))
        self._cover((v > 0.12) & (v < 1) & (np.abs(u) < reach), leaves)

    def oak(self, centre: float, ground: float, half: float) -> None:
        u, v = (self.x - centre) / half, (ground - self.y) / half
        self._cover(0.5 * _step(1.05, 0.8, np.hypot(u - 0.1, (v + 0.02) * 6)), (0.08, 0.16, 0.05))
        bark = _value_noise(self.x * 240, self.y * 30, 161)
        trunk = np.abs(u + 0.05 * np.sin(v * 3)) < 0.085 + 0.07 * np.exp(-(v.clip(0, 9)) * 5)
        self._cover(trunk & (v > -0.03) & (v < 1.2), self._ramp(bark, (0, (0.22, 0.15, 0.10)), (1, (0.50, 0.36, 0.24))))
        leaf = _cloudy(self.x * 70, self.y * 70, 171, 3)
        for du, dv, radius in ((-0.42, 1.15, 0.52), (0.45, 1.18, 0.50), (0.0, 1.02, 0.5), (0.02, 1.52, 0.60)):
            s, t = (u - du) / radius, (v - dv) / radius
            away = np.hypot(s, t) + 0.42 * (leaf - 0.5)
            light = 0.30 + 0.28 * s.clip(-1, 1) + 0.34 * t.clip(-1, 1) + 1.1 * (leaf - 0.5)
            crown = self._ramp(light, (-0.3, (0.28, 0.13, 0.05)), (0.3, (0.80, 0.38, 0.10)), (0.9, (1.0, 0.78, 0.28)))
            self._cover(away < 0.92, crown)

    def fence(self, level: float) -> None:
        x, v = self.x, self.y - level - 0.012 * np.sin(self.x * 4)
        post = np.abs(np.modf(x * 22 + 0.5)[0] - 0.5) < 0.14
        top = -0.036 + 0.02 * np.abs(np.modf(x * 22 + 0.5)[0] - 0.5) / 0.14
        gate = np.abs(x - 0.393) > 0.075
        self._cover(gate & post & (v > top) & (v < 0.042), (0.97, 0.96, 0.93))
        for rail in (-0.008, 0.022):
            self._cover(gate & (np.abs(v - rail) < 0.005), (0.86, 0.85, 0.82))
        self._cover(gate & (np.abs(v - 0.045) < 0.004), (0.14, 0.26, 0.08))

    def flowers(self) -> None:
        cells = 42
        column, row = np.floor(self.x * cells).astype(np.int64), np.floor(self.y * cells).astype(np.int64)
        chance = _hash(column, row, 181)
        du = self.x * cells - column - 0.25 - 0.5 * _hash(column, row, 191)
        dv = self.y * cells - row - 0.25 - 0.5 * _hash(column, row, 201)
        bloom = (self.path < 0.1) & ((self.y > 0.93) | ((self.y > 0.82) & (self.x > 0.52) & (self.y < 0.85)))
        away = np.hypot(du, dv)
        for low, colour in ((0.0, (0.93, 0.20, 0.22)), (0.14, (0.98, 0.96, 0.98)), (0.26, (0.66, 0.42, 0.86))):
            petals = bloom & (chance >= low) & (chance < low + 0.13)
            self._cover(petals & (away < 0.24), colour)
            self._cover(petals & (away < 0.09), (0.99, 0.82, 0.20))
