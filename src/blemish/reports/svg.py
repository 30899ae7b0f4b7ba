"""Charts as SVG: elements with everything escaped, axes, and the marks of series. Colours are the style sheet's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from blemish.core.statistics import Estimate
from blemish.reports.visible import visible

_DASHES = ("", "7 3", "2 3", "7 3 2 3", "11 3", "11 3 2 3", "1 2", "5 5")
# Marks around the origin, one unit high to each side.
_SHAPES = (
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0z",
    "M-.9-.9h1.8v1.8h-1.8z",
    "M0-1.3L1.3 0L0 1.3L-1.3 0z",
    "M0-1.2L1.2 1H-1.2z",
    "M0 1.2L1.2-1H-1.2z",
    "M-.4-1.2h.8v.8h.8v.8h-.8v.8h-.8v-.8h-.8v-.8h.8z",
    "M0-1.4L.4-.4L1.4-.4L.6.3L.9 1.3L0 .7L-.9 1.3L-.6.3L-1.4-.4L-.4-.4z",
    "M-.7-1.1h1.4l.7 1.1l-.7 1.1h-1.4l-.7-1.1z",
)


def element(tag: str, *children: str | Markup, **attributes: object) -> Markup:
    """An element; texts are escaped, and names of attributes are written with hyphens.

    >>> str(element("text", "a < b", class_="x", text_anchor="end", x=1.25))
    '<text class="x" text-anchor="end" x="1.2">a &lt; b</text>'
    """
    written = (
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _value(value))
        for name, value in attributes.items()
        if value is not None
    )
    start = Markup("").join(written)
    inside = Markup("").join(child if isinstance(child, Markup) else escape(visible(child)) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), start, inside)


def _value(value: object) -> str:
    """A coordinate with one digit, which is finer than a pixel."""
    if isinstance(value, float):
        text = f"{value:.1f}"
        return text.removesuffix(".0") if text != "-0.0" else "0"
    return visible(str(value))


def series_class(series: int) -> str:
    """The style class that gives a series its colour.

    >>> series_class(9)
    's1'
    """
    return f"s{series % 8}"


def dashes(series: int) -> str | None:
    """The dashes of a line; where colours come round again, they do so with other dashes."""
    return _DASHES[(series + series // 8) % 8] or None


def mark(x: float, y: float, series: int, size: float, title: str, *, hollow: bool = False) -> Markup:
    """A mark with what it stands for; hollow where little stands behind it."""
    fill = "var(--paper)" if hollow else "var(--series)"
    stroke = {"stroke": "var(--series)", "stroke_width": f"{1.4 / size:.2f}"} if hollow else {}
    return element(
        "path",
        element("title", title),
        class_="mark",
        d=_shape(series),
        transform=f"translate({x:.1f} {y:.1f}) scale({size:g})",
        fill=fill,
        **stroke,
    )


def polyline(points: Sequence[tuple[float, float]], **attributes: object) -> Markup:
    """A line through points, without an inside."""
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), fill="none", **attributes)


def whiskers(ends: Iterable[tuple[float, float, float, float]]) -> Markup:
    """Intervals as bare lines, all in one path."""
    path = "".join(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" for x, y, to_x, to_y in ends)
    return element("path", d=path, stroke="var(--series)", stroke_width="1.2", opacity=".75", fill="none")


def swatch(series: int, *, line: bool = True) -> Markup:
    """The key of a series: a piece of its line with its mark, or the mark alone."""
    width = 34 if line else 14
    parts = [mark(width / 2, 7, series, 4, "")]
    if line:
        stroke = {"stroke": "var(--series)", "stroke_width": "2", "stroke_dasharray": dashes(series)}
        parts.insert(0, element("line", x1=1, y1=7, x2=33, y2=7, **stroke))
    return element("svg", *parts, class_=series_class(series), width=width, height=14, aria_hidden="true")


def model_mark(series: int) -> Markup:
    """The mark of a series, ten units wide, without a name."""
    return element("path", d=_shape(series), transform="translate(5 5) scale(3.6)", fill="var(--series)")


def _shape(series: int) -> str:
    return _SHAPES[(series + series // 8) % 8]


@dataclass(frozen=True)
class Axis:
    """From where to where an axis goes, and the values and texts of its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    reads: Callable[[float], float] = float
    """What is read off the axis at a place, where it is not even."""


def nice_axis(low: float, high: float, *, title: str = "", count: int = 5, tidy: str = "{:g}") -> Axis:
    """An axis over some numbers with round ticks, one, two or five times a power of ten apart.

    >>> nice_axis(3, 47).ticks
    ((0, '0'), (10, '10'), (20, '20'), (30, '30'), (40, '40'), (50, '50'))
    """
    span = (high - low) or abs(high) or 1.0
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    values = [round(number * step, 10) for number in range(first, last + 1)]
    shown = [int(value) if value == int(value) else value for value in values]
    return Axis(values[0], values[-1], tuple((value, tidy.format(value)) for value in shown), title)


@dataclass(frozen=True)
class Frame:
    """The plane of a chart: its size in pixels, the room for labels, and its axes."""

    width: int
    height: int
    x: Axis
    y: Axis
    left: int = 34
    right: int = 10
    top: int = 8
    bottom: int = 22

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point; what lies outside is moved to the edge."""
        across = (min(max(x, self.x.low), self.x.high) - self.x.low) / (self.x.high - self.x.low)
        up = (min(max(y, self.y.low), self.y.high) - self.y.low) / (self.y.high - self.y.low)
        right, bottom = self.width - self.right, self.height - self.bottom
        return self.left + across * (right - self.left), bottom - up * (bottom - self.top)

    def upright(self, x: float, estimate: Estimate) -> tuple[float, float, float, float]:
        """The interval of a value on the upright axis."""
        return (*self.at(x, estimate.low), *self.at(x, estimate.high))

    def across(self, estimate: Estimate, y: float) -> tuple[float, float, float, float]:
        """The interval of a value on the other axis."""
        return (*self.at(estimate.low, y), *self.at(estimate.high, y))

    def grid(self) -> list[Markup]:
        """Lines, labels and titles of both axes."""
        parts = []
        for value, text in self.y.ticks:
            left, y = self.at(self.x.low, value)
            right, _ = self.at(self.x.high, value)
            parts.append(element("line", class_="grid", x1=left, y1=y, x2=right, y2=y))
            parts.append(element("text", text, x=left - 5, y=y + 4, text_anchor="end"))
        for value, text in self.x.ticks:
            x, bottom = self.at(value, self.y.low)
            _, top = self.at(value, self.y.high)
            parts.append(element("line", class_="grid", x1=x, y1=bottom, x2=x, y2=top))
            parts.append(element("text", text, x=x, y=bottom + 15, text_anchor="middle"))
        middle_x, middle_y = (self.left + self.width - self.right) / 2, (self.top + self.height - self.bottom) / 2
        if self.x.title:
            parts.append(element("text", self.x.title, x=middle_x, y=self.height - 4, text_anchor="middle"))
        if self.y.title:
            turned = f"translate(12 {middle_y:.1f}) rotate(-90)"
            parts.append(element("text", self.y.title, transform=turned, text_anchor="middle"))
        return parts

    def drawn(self, *parts: Markup, label: str, size: str = "") -> Markup:
        """The whole picture with its words; ``size`` is a style class."""
        return element(
            "svg",
            *self.grid(),
            *parts,
            class_=f"plot {size}".strip(),
            viewBox=f"0 0 {self.width} {self.height}",
            role="img",
            aria_label=label,
        )
