"""Corruptions made of others: several in sequence, and one at a random severity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng, image_ids
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption
from blemish.corruptions.inputs import as_severities, check_images
from blemish.corruptions.moves import joint_moves
from blemish.corruptions.precision import full_precision
from blemish.corruptions.severity import MAX_SEVERITY, Params, SeverityTable, check_severity, severity_text
from blemish.ops.positions import Positions


@dataclass(frozen=True)
class _Link:
    """A corruption in a chain, its severity when the chain is at its strongest, and its random streams."""

    corruption: Corruption
    severity: float
    stream: str


@dataclass(frozen=True)
class _ChainTable(SeverityTable):
    """All parameters of all links, each name preceded by the link's number."""

    links: tuple[_Link, ...] = ()

    def at(self, severity: Tensor | Sequence[float], preset: str) -> Params:
        """The parameters of each image: a link's severity is its own, times that of the chain over 5."""
        levels = torch.as_tensor(severity, dtype=torch.float64)
        params: dict[str, Tensor] = {}
        for number, link in enumerate(self.links):
            share = link.corruption.table.at(levels * (link.severity / MAX_SEVERITY), preset)
            params |= {f"{number} {name}": values for name, values in share.items()}
        return params


def _share(params: Params, number: int) -> Params:
    prefix = f"{number} "
    return {name.removeprefix(prefix): values for name, values in params.items() if name.startswith(prefix)}


def chain(*links: tuple[Corruption, float]) -> Corruption:
    """Several corruptions one after the other, each at its own severity, quantised to grey levels in between.

    `chain((fog, 3), (jpeg_compression, 2))` at severity 5 is fog at 3, then JPEG at 2; lower severities of the chain
    shrink all of its links' in proportion. A link draws what it would draw alone: a chain of one equals its link.
    """
    return _chain(tuple(_linked(links)))


def _linked(links: Sequence[tuple[Corruption, float]]) -> Iterator[_Link]:
    if not links:
        raise InputError("a chain without links; expected at least one (corruption, severity)")
    seen: Counter[str] = Counter()
    for corruption, severity in links:
        try:
            level = check_severity(severity)
        except InputError as error:
            raise InputError(f"{corruption.name} in a chain: {error}") from error
        if level == 0:
            raise InputError(f"{corruption.name} in a chain: severity 0; expected more")
        corruption.require(level)
        name = corruption.stream or corruption.name
        seen[name] += 1
        # The same corruption twice must not draw the same twice.
        yield _Link(corruption, level, name if seen[name] == 1 else f"{name} {seen[name]}")


@dataclass(frozen=True)
class _Sequence:
    """The draw, apply and files of a chain, as methods: unlike closures they can be sent to worker processes."""

    links: tuple[_Link, ...]

    def draw(self, shape: Shape, params: Params, rng: CounterRng) -> tuple[Any, ...]:
        return tuple(
            link.corruption.draw(shape, _share(params, i), rng.scoped(link.stream)) for i, link in enumerate(self.links)
        )

    @property
    def kind(self) -> str:
        """The files of all links, in a word."""
        return "+".join(link.corruption.files.kind for link in self.links if link.corruption.files is not None)

    @property
    def note(self) -> str | None:
        """What is to be said of them."""
        files = [link.corruption.files for link in self.links if link.corruption.files is not None]
        return "; ".join(each.note for each in files if each.note is not None) or None

    def check(self) -> None:
        """Refuse where a link lacks its files."""
        for link in self.links:
            link.corruption.check_files()

    def apply(self, levels: Tensor, params: Params, draws: tuple[Any, ...]) -> Tensor:
        for i, link in enumerate(self.links):
            levels = link.corruption.render(levels, _share(params, i), draws[i])
        return levels

    def maps(self, levels: Tensor, params: Params, draws: tuple[Any, ...]) -> list[Positions]:
        """Those of all links, in their order."""
        return [
            positions
            for i, link in enumerate(self.links)
            if link.corruption.moves is not None and link.corruption.moves.maps is not None
            for positions in link.corruption.moves.maps(levels, _share(params, i), draws[i])
        ]


def _chain(links: tuple[_Link, ...]) -> Corruption:
    parts = [link.corruption for link in links]
    # The links' own presets, which all but those without any share.
    presets = max((part.table for part in parts), key=lambda table: len(table.rows))
    sequence = _Sequence(links)
    return Corruption(
        name="+".join(f"{link.corruption.name}@{severity_text(link.severity)}" for link in links),
        family="chain",
        description="; then ".join(f"{link.corruption.name} at {severity_text(link.severity)}" for link in links) + ".",
        table=_ChainTable(
            names=tuple(f"{i} {name}" for i, part in enumerate(parts) for name in part.table.names),
            rows=presets.rows,
            sizes=presets.sizes,
            links=links,
        ),
        draw=sequence.draw,
        apply=sequence.apply,
        shared=tuple(f"{i} {name}" for i, part in enumerate(parts) for name in part.shared),
        only_severity=MAX_SEVERITY if any(part.only_severity is not None for part in parts) else None,
        uint8_io=True,
        version=1 + sum(part.version - 1 for part in parts),
        files=sequence if any(part.files is not None for part in parts) else None,
        moves=joint_moves([part.moves for part in parts], sequence.maps),
    )


@dataclass(frozen=True)
class _RandomSeverity(Corruption):
    low: float = 1.0
    high: float = float(MAX_SEVERITY)

    def __call__(
        self,
        images: Tensor,
        *,
        severity: float | Sequence[float] | Tensor = MAX_SEVERITY,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        preset: str | None = None,
    ) -> Tensor:
        """Corrupt every image at a severity of its own, drawn by its id; see `Corruption`."""
        check_images(images)
        numbers = image_ids(ids, len(images))
        drawn = self._drawn(severity, seed, numbers, images.device)
        return super().__call__(images, severity=drawn, seed=seed, ids=numbers, preset=preset)

    def positions(
        self,
        images: Tensor,
        *,
        severity: float | Sequence[float] | Tensor = MAX_SEVERITY,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        preset: str | None = None,
    ) -> list[Positions]:
        """Where pixels come from, at the severities that are drawn."""
        numbers = image_ids(ids, len(images))
        drawn = self._drawn(severity, seed, numbers, images.device)
        return super().positions(images, severity=drawn, seed=seed, ids=numbers, preset=preset)

    def _drawn(
        self, severity: float | Sequence[float] | Tensor, seed: int, numbers: Tensor, device: torch.device
    ) -> Tensor:
        share = as_severities(severity, len(numbers)) / MAX_SEVERITY
        with full_precision(device):
            rank = CounterRng(seed, numbers, self.name).uniforms("severity", 1)[:, 0].to(torch.float64)
        return (self.low + (self.high - self.low) * rank) * share


def random_severity(corruption: Corruption, low: float = 1.0, high: float = float(MAX_SEVERITY)) -> Corruption:
    """The corruption at a severity drawn uniformly between `low` and `high` for each image, by its id and the seed.

    Severity 5 is the full range, lower ones shrink it in proportion. Apart from the severity, an image draws what
    it draws with the corruption itself.
    """
    low, high = check_severity(low), check_severity(high)
    lowest, highest = severity_text(low), severity_text(high)
    if low > high:
        raise InputError(f"severities from {lowest} to {highest}; expected 0 ≤ low ≤ high ≤ {MAX_SEVERITY}")
    if corruption.only_severity is not None:
        only = severity_text(corruption.only_severity)
        raise InputError(f"{corruption.name} exists at severity {only} only, not at random ones")
    return _RandomSeverity(
        name=f"{corruption.name}@{lowest}-{highest}",
        family=corruption.family,
        description=f"{corruption.name} at a random severity from {lowest} to {highest}.",
        table=corruption.table,
        apply=corruption.apply,
        draw=corruption.draw,
        shared=corruption.shared,
        uint8_io=corruption.uint8_io,
        version=corruption.version,
        stream=corruption.stream or corruption.name,
        files=corruption.files,
        moves=corruption.moves,
        at_once=corruption.at_once,
        low=low,
        high=high,
    )
