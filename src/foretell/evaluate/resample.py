"""Cluster sums under resampling: the matrix product behind every bootstrap of the package.

A statistic that is a function of sums over rows needs no row again once the rows are summed by cluster: a
resample is a vector of counts, and its sums are counts @ sums.
"""

from collections.abc import Iterator

import numpy as np

from foretell.evaluate.arrays import Floats, Ints

CHUNK = 1 << 22
"""Elements of the largest temporary array (32 MB as float64): memory stays flat as draws grow."""


def draw_sums(sums: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Column sums of `draws` resamples, with replacement, of the rows of `sums` (clusters × K): draws × K.

    Each resample takes as many clusters as there are (Efron 1979; clusters as in Davison & Hinkley 1997, 3.8).

    >>> draw_sums(np.array([[2.0, 1.0], [2.0, 1.0]]), 3, np.random.default_rng(0)).tolist()
    [[4.0, 2.0], [4.0, 2.0], [4.0, 2.0]]
    """
    out = np.empty((draws, sums.shape[1]))
    for part in _chunks(draws, len(sums)):
        out[part] = resample_counts(len(sums), part.stop - part.start, rng).astype(sums.dtype, copy=False) @ sums
    return out


def draw_crossed_sums(cells: Floats, first: Ints, second: Ints, draws: int, rng: np.random.Generator) -> Floats:
    """Column sums of `draws` pigeonhole resamples of a two-way table of cells (cells × K): draws × K.

    Both margins are resampled independently and a cell counts (draws of its row) × (draws of its column)
    times. This is mildly conservative for sums of two-way random effects (Owen 2007).

    `first[i]` and `second[i]` are the codes 0.. of the margins of cell i.

    >>> one = np.ones((4, 1))
    >>> drawn = draw_crossed_sums(one, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), 3, np.random.default_rng(0))
    >>> drawn.tolist()
    [[4.0], [4.0], [4.0]]
    """
    rows, columns = int(first.max()) + 1, int(second.max()) + 1
    out = np.empty((draws, cells.shape[1]))
    for part in _chunks(draws, max(len(cells), rows, columns)):
        size = part.stop - part.start
        by_row = resample_counts(rows, size, rng)
        by_column = resample_counts(columns, size, rng)
        out[part] = (by_row[:, first] * by_column[:, second]) @ cells
    return out


def resample_counts(n: int, draws: int, rng: np.random.Generator) -> Floats:
    """How often each of n units occurs in each of `draws` resamples of size n (exactly multinomial): draws × n.

    >>> resample_counts(5, 2, np.random.default_rng(0)).sum(axis=1).tolist()
    [5.0, 5.0]
    """
    picked = rng.integers(0, n, size=(draws, n))
    picked += np.arange(draws)[:, None] * n
    return np.bincount(picked.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def _chunks(draws: int, width: int) -> Iterator[slice]:
    step = max(1, CHUNK // width)
    for start in range(0, draws, step):
        yield slice(start, min(draws, start + step))
