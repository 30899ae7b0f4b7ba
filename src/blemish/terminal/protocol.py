"""Options for the protocol of a benchmark, where it is not to be the published one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer

from blemish.benchmarks.benchmark import Benchmark, Protocol

_PANEL = "Protocol"


@dataclass(frozen=True, kw_only=True)
class ProtocolOptions:
    """What decides the pixels, instead of what the benchmark says."""

    seed: Annotated[int | None, typer.Option(rich_help_panel=_PANEL, help="Instead of the benchmark's.")] = None
    storage: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="raw or jpeg85, instead of the benchmark's.")
    ] = None
    preset: Annotated[
        str | None, typer.Option(rich_help_panel=_PANEL, help="Severity table, instead of the benchmark's.")
    ] = None
    resize: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_PANEL, help="Instead of the benchmark's; 0 for none.")
    ] = None
    crop: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_PANEL, help="Instead of the benchmark's; 0 for none.")
    ] = None
    square: Annotated[
        int | None,
        typer.Option(min=0, rich_help_panel=_PANEL, help="Instead of the benchmark's; 0 for images as they are."),
    ] = None

    def apply(self, benchmark: Benchmark) -> Benchmark:
        """The benchmark under the protocol that was asked for."""
        protocol = self.apply_to(benchmark.protocol)
        return benchmark if protocol == benchmark.protocol else replace(benchmark, protocol=protocol)

    def apply_to(self, protocol: Protocol) -> Protocol:
        """The protocol with what was asked for."""
        given: dict[str, Any] = {key: value for key, value in asdict(self).items() if value is not None}
        for key in ("resize", "crop", "square"):
            if given.get(key) == 0:
                given[key] = None
        if given.get("square", 0) is None:
            given["centre"] = None
        return replace(protocol, **given)
