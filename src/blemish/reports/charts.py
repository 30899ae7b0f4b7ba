"""The charts of pages: curves, dots with intervals, reliability diagrams and models in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from blemish.core.statistics import Estimate
from blemish.metrics.calibration import FEW, Reliability
from blemish.reports.page import Chart
from blemish.reports.reading import is_near_chance
from blemish.reports.svg import (
    Axis,
    Frame,
    dashes,
    element,
    mark,
    nice_axis,
    polyline,
    series_class,
    whiskers,
)

_PERCENT = Axis(0, 100, tuple((value, str(value)) for value in (0, 50, 100)))
_FINE_PERCENT = Axis(0, 100, tuple((value, str(value)) for value in range(0, 101, 20)))


@dataclass(frozen=True)
class Point:
    """A model in a plane: two numbers with their intervals; ``series`` gives its colour and mark.

    ``label`` is what stands beside the mark, a number or a letter: names would lie over each other.
    """

    name: str
    label: str
    series: int
    x: Estimate
    y: Estimate


@dataclass(frozen=True)
class Measured:
    """What a chart shows: its name, its unit, and which way is better; ``axis`` where it is not 0 to 100."""

    name: str = "Error"
    unit: str = "%"
    better: str = "lower is better"
    axis: Axis | None = None

    @property
    def words(self) -> str:
        """The name with its unit."""
        return f"{self.name} in {'per cent' if self.unit == '%' else self.unit}" if self.unit else self.name

    def number(self, value: float) -> str:
        """A number in few digits."""
        return f"{value:.0f}" if self.unit == "%" else f"{value:.3g}"

    def interval(self, estimate: Estimate) -> str:
        """A number and the ends of its interval."""
        if self.unit == "%":
            return f"{estimate.value:.1f} % ({estimate.low:.1f} to {estimate.high:.1f})"
        return f"{f'{estimate.value:.3f} {self.unit}'.rstrip()} ({estimate.low:.3f} to {estimate.high:.3f})"


ERRORS = Measured()


@dataclass(frozen=True)
class Line:
    """A line behind the models of a plane, or one of a chart of lines without intervals; ``series`` None is gray."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    series: int | None = None
    dotted: bool = False


def _group(name: str, series: int, *parts: Markup) -> Markup:
    """What belongs to one model, so that it can be switched off; gray where its numbers mean nothing."""
    lost = " lost" if is_near_chance(name) else ""
    return element("g", *parts, class_=f"{series_class(series)}{lost}", data_m=series)


def _stroke(series: int) -> dict[str, object]:
    return {"stroke": "var(--series)", "stroke_width": "2", "stroke_dasharray": dashes(series)}


def curve(
    identity: str,
    title: str,
    lines: Sequence[tuple[str, int, Mapping[float, Estimate]]],
    measured: Measured = ERRORS,
) -> Chart:
    """Error, or what was ``measured``, against severity, one line per model; severity 0 is the clean images."""
    last = max(5.0, *(max(points) for _, _, points in lines))
    levels = tuple((level, str(level)) for level in range(int(last) + 1))
    frame = Frame(250, 168, Axis(-0.25, last + 0.25, levels), measured.axis or _PERCENT, left=30)
    groups = []
    for name, series, points in lines:
        at = {level: frame.at(level, points[level].value) for level in sorted(points)}
        marks = [
            mark(*at_point, series, 3.2, f"{name}: {measured.interval(points[level])} at severity {level:g}")
            for level, at_point in at.items()
        ]
        spread = whiskers(frame.upright(level, points[level]) for level in at)
        groups.append(_group(name, series, spread, polyline(list(at.values()), **_stroke(series)), *marks))
    words = "; ".join(
        f"{name}: " + ", ".join(measured.number(points[level].value) for level in sorted(points))
        for name, _, points in lines
    )
    label = f"{measured.words} from clean to the highest severity; {measured.better}. {words}."
    return Chart(identity, title, frame.drawn(*groups, label=f"{title}. {label}"), label)


def dots(
    identity: str,
    title: str,
    groups: Sequence[str],
    models: Mapping[str, Sequence[Estimate | None]],
    measured: Measured = ERRORS,
) -> Chart:
    """Rows of dots with intervals, in each row one below the other for each model."""
    known = [value.high for estimates in models.values() for value in estimates if value is not None]
    height = 26 + max(14, 11 * len(models))
    left, room = 96, 26
    whole = len(groups) * height
    rows = Axis(0, whole, tuple((whole - (row + 0.5) * height, name) for row, name in enumerate(groups)))
    frame = Frame(
        560, whole + room + 12, measured.axis or nice_axis(0, max([*known, 1.0])), rows, left=left, bottom=room
    )
    drawn = []
    for series, (name, estimates) in enumerate(models.items()):
        parts, ends = [], []
        for row, value in enumerate(estimates):
            if value is not None:
                y = whole - (row + 0.5) * height - 11 * (series - (len(models) - 1) / 2)
                ends.append(frame.across(value, y))
                parts.append(
                    mark(*frame.at(value.value, y), series, 4, f"{name}, {groups[row]}: {measured.interval(value)}")
                )
        drawn.append(_group(name, series, whiskers(ends), *parts))
    unit = "In per cent; " if measured.unit == "%" else ""
    better = measured.better if unit else measured.better.capitalize()
    label = f"{unit}{better}. The numbers are in the table below."
    return Chart(identity, title, frame.drawn(*drawn, label=f"{title}. {label}", size="wide"), label)


def reliability_chart(
    identity: str, title: str, lines: Sequence[tuple[str, int, Reliability]], *, model: int | None = None
) -> Chart:
    """Accuracy against confidence in bins; on the diagonal, confidence can be taken at its word.

    Bins with few answers are hollow: what they say is mostly chance.
    """
    across = replace(_FINE_PERCENT, title="confidence, %")
    frame = Frame(340, 290, across, replace(_FINE_PERCENT, title="accuracy, %"), left=48, bottom=40)
    diagonal = polyline([frame.at(0, 0), frame.at(100, 100)], stroke="var(--quiet)", stroke_dasharray="2 3")
    drawn = [diagonal]
    for name, series, bins in lines:
        full = np.flatnonzero(bins.counts)
        places = [frame.at(100 * bins.confidence[i], 100 * bins.accuracy[i]) for i in full]
        marks = [
            mark(
                *centre,
                series,
                round(2.2 + 3.5 * float(np.sqrt(bins.counts[i] / bins.counts.max())), 1),
                f"{name}: {100 * bins.confidence[i]:.0f} % sure, {100 * bins.accuracy[i]:.0f} % right "
                f"({bins.counts[i]:,} answers{', too few to tell' if bins.counts[i] < FEW else ''})",
                hollow=bool(bins.counts[i] < FEW),
            )
            for i, centre in zip(full, places, strict=True)
        ]
        # No model of its own to be switched off: the whole diagram is of one.
        sure = [centre for i, centre in zip(full, places, strict=True) if bins.counts[i] >= FEW]
        drawn.append(element("g", polyline(sure, **_stroke(series)), *marks, class_=series_class(series)))
    label = "Accuracy against confidence, nearer to the diagonal is better; the numbers are in the table below."
    return Chart(identity, title, frame.drawn(*drawn, label=f"{title}. {label}"), label, model)


def scatter(
    identity: str,
    title: str,
    points: Sequence[Point],
    quiet: Sequence[tuple[str, str, float, float]] = (),
    *,
    axes: tuple[Axis, Axis] | None = None,
    titles: tuple[str, str],
    lines: Sequence[Line] = (),
    words: str = "",
) -> Chart:
    """Models as marks in a plane, and others, given as name, label and two numbers, as small gray ones."""
    if axes is None:
        xs = [end for p in points for end in (p.x.low, p.x.high)] + [x for _, _, x, _ in quiet]
        ys = [end for p in points for end in (p.y.low, p.y.high)] + [y for _, _, _, y in quiet]
        axes = nice_axis(min(xs), max(xs)), nice_axis(min(ys), max(ys))
    across, upright = (replace(axis, title=text) for axis, text in zip(axes, titles, strict=True))
    frame = Frame(380, 320, across, upright, left=52, bottom=42, right=18, top=12)
    drawn = [
        polyline(
            [frame.at(x, y) for x, y in zip(line.x, line.y, strict=True)],
            stroke="var(--quiet)",
            stroke_width="1.5",
            stroke_dasharray="2 4" if line.dotted else None,
        )
        for line in lines
    ]
    for name, label, x, y in quiet:
        centre = frame.at(x, y)
        circle = element("circle", element("title", f"{name}: {_pair(x, y, axes)}"), **_circle(centre))
        drawn += [circle, *([_label(centre, label)] if label else [])]
    for point in points:
        x, y = point.x.value, point.y.value
        ends = [frame.across(point.x, y), frame.upright(x, point.y)]
        centre = frame.at(x, y)
        dot = mark(*centre, point.series, 5, f"{point.name}: {_pair(x, y, axes)}")
        drawn.append(_group(point.name, point.series, whiskers(ends), dot, _label(centre, point.label, strong=True)))
    said = "; ".join(f"{point.name}: {point.x.value:.1f} and {point.y.value:.1f}" for point in points)
    label = words or f"{titles[1]} against {titles[0]}. {said}."
    return Chart(identity, title, frame.drawn(*drawn, label=f"{title}. {label}"), label)


def _circle(centre: tuple[float, float]) -> dict[str, object]:
    return {"class_": "mark", "cx": centre[0], "cy": centre[1], "r": 2.6, "fill": "var(--quiet)", "opacity": ".55"}


def _label(centre: tuple[float, float], text: str, *, strong: bool = False) -> Markup:
    return element("text", text, x=centre[0] + 7, y=centre[1] - 6, class_="strong" if strong else None)


def _pair(x: float, y: float, axes: tuple[Axis, Axis]) -> str:
    """Two numbers as they are read off the axes, which need not be even."""
    return ", ".join(f"{axis.reads(value):.1f}" for value, axis in zip((x, y), axes, strict=True))


def time_lines(
    identity: str,
    title: str,
    lines: Sequence[Line],
    *,
    titles: tuple[str, str],
    wide: bool,
    begins: Sequence[tuple[float, str]] = (),
) -> Chart:
    """Lines over a long stretch, such as images of a stream; gray and dotted where a line has no series.

    Where something ``begins``, at a place and with a name, there is a thin upright line.
    """
    tops = [value for line in lines for value in line.y]
    across = nice_axis(0, max([*(value for line in lines for value in line.x), 1]), count=5, tidy="{:,}")
    upright = nice_axis(0, max([*tops, 1e-9]))
    axes = [replace(axis, title=text) for axis, text in zip((across, upright), titles, strict=True)]
    frame = Frame(760 if wide else 340, 320 if wide else 220, axes[0], axes[1], left=52, bottom=40, right=24)
    drawn = [
        element(
            "g",
            element("title", name),
            polyline([frame.at(x, upright.low), frame.at(x, upright.high)], stroke="var(--quiet)", stroke_width=".4"),
        )
        for x, name in begins
    ]
    for line in lines:
        places = [frame.at(x, y) for x, y in zip(line.x, line.y, strict=True)]
        name = element("title", line.name)
        if line.series is None:
            path = polyline(places, stroke="var(--quiet)", stroke_width="2", stroke_dasharray="2 3")
            drawn.append(element("g", name, path))
        else:
            drawn.append(element("g", name, polyline(places, **_stroke(line.series)), class_=series_class(line.series)))
    said = "; ".join(
        f"{line.name}: {line.y[0]:.1f} at first, {min(line.y):.1f} at least, {line.y[-1]:.1f} at the end"
        for line in lines
    )
    label = f"{titles[1]} against {titles[0]}; higher is better. {said}."
    return Chart(identity, title, frame.drawn(*drawn, label=f"{title}. {label}", size="wide" if wide else ""), label)
