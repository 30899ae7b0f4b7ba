"""All paths over a small grid of severities, one by one: what exact rules are compared with."""

from __future__ import annotations

from collections.abc import Iterator

Cells = tuple[tuple[int, int], ...]


def all_paths(side: int) -> Iterator[Cells]:
    """Every path that begins with the first corruption alone and ends as soon as it has vanished."""

    def go_on(path: Cells) -> Iterator[Cells]:
        a, b = path[-1]
        if a == 0:
            if b > 0:
                yield path
            return
        yield from go_on((*path, (a - 1, b)))
        if b + 1 < side:
            yield from go_on((*path, (a, b + 1)))

    for start in range(1, side):
        yield from go_on(((start, 0),))
