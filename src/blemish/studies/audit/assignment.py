"""The best one-to-one assignment of rows to columns, by shortest augmenting paths (Kuhn 1955, Jonker and Volgenant)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def best_assignment(scores: ArrayLike) -> NDArray[np.int64]:
    """For each row a column of its own, so that the sum of the scores is as large as can be; no more rows than columns.

    >>> best_assignment([[3, 2], [9, 1]]).tolist()
    [1, 0]
    """
    cost = -np.asarray(scores, dtype=np.float64)
    rows, columns = cost.shape
    # Prices of rows and columns; place 0 of the columns is where a path begins.
    of_row, of_column = np.zeros(rows), np.zeros(columns + 1)
    owner = np.full(columns + 1, -1)
    for row in range(rows):
        owner[columns] = row
        column, distance = columns, np.full(columns, np.inf)
        came_from, done = np.full(columns, columns), np.zeros(columns + 1, dtype=bool)
        while owner[column] >= 0:
            done[column] = True
            here = owner[column]
            open_columns = ~done[:columns]
            reduced = cost[here] - of_row[here] - of_column[:columns]
            closer = open_columns & (reduced < distance)
            distance[closer], came_from[closer] = reduced[closer], column
            nearest = int(np.where(open_columns, distance, np.inf).argmin())
            step = distance[nearest]
            of_row[owner[done]] += step
            of_column[done] -= step
            distance[open_columns] -= step
            column = nearest
        while column != columns:
            owner[column] = owner[came_from[column]]
            column = int(came_from[column])
    column_of_row = np.empty(rows, dtype=np.int64)
    taken = np.flatnonzero(owner[:columns] >= 0)
    column_of_row[owner[taken]] = taken
    return column_of_row
