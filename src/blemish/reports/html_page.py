"""The page while it is written: its sections, and the charts that its script draws in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blemish.reports.html_charts import Chart
from blemish.reports.html_parts import section
from blemish.reports.markup import Markup, joined

__all__ = ["ExtraSections", "Page"]


@dataclass
class Page:
    """Filled from top to bottom."""

    title: str
    header: Markup
    footer: Markup
    drawn: bool = True
    """Whether charts are drawn, or told in words."""
    parts: list[tuple[str, str, Markup]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)

    def add(self, identity: str, title: str, *content: object, short: str | None = None) -> None:
        """A section; ``short`` is its name in the bar."""
        self.parts.append((identity, short or title, section(identity, title, *content)))

    def chart(self, chart: Chart, *, heading: bool = True) -> Markup:
        """A chart that will be drawn; its words where nothing can draw it."""
        if not self.drawn:
            return chart.words(heading=heading)
        self.charts.append(chart)
        return chart.figure(heading=heading)

    @property
    def contents(self) -> list[tuple[str, str]]:
        """The sections for the bar."""
        return [(identity, title) for identity, title, _ in self.parts]

    @property
    def body(self) -> Markup:
        """All sections."""
        return joined(part for _, _, part in self.parts)


@dataclass(frozen=True)
class ExtraSections:
    """What a study adds to the page of some runs."""

    add_to: Callable[[Page], None]
    warnings: Sequence[str] = ()
    """For the top of the page."""
