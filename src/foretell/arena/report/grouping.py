"""A column of labels made fit to read: numbers binned, dates by month, small categories pooled, natural order."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from foretell.arena.table import Labels
from foretell.evaluate.arrays import Floats, Ints

NUMBER = re.compile(r"^\s*([≤<>≥]?)\s*([-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(.*)$")
DAY = re.compile(r"^\d{4}-\d{2}-\d{2}")
PLAIN = re.compile(r"^\s*[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*$")
UNKNOWN = "(none)"
QUANTILES = 5

Key = Callable[[str], tuple[float | str, ...]]


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Rows put into at most a dozen or so named groups."""

    column: str
    codes: Ints
    names: tuple[str, ...]
    ordered: bool
    """The groups follow each other (days, sizes), so a line may join them."""

    def rows(self, code: int) -> Ints:
        """Rows of one group."""
        return np.flatnonzero(self.codes == code)


def grouping(column: str, labels: Labels, *, most: int = 12) -> Grouping:
    """Group a column in a readable way.

    More than `most` different numbers become fifths of the rows, more than two dozen days become months (or
    years), and of more than `most` other names the small ones are pooled as "other".

    >>> horizons = Labels(codes=np.array([0, 1, 2, 1]), names=("30", "7", "90"))
    >>> grouping("horizon", horizons).names
    ('7', '30', '90')
    """
    used = [i for i, count in enumerate(np.bincount(labels.codes, minlength=len(labels.names))) if count]
    named = [labels.names[i] for i in used if labels.names[i]]
    if named and all(DAY.match(name) for name in named):
        return _days(column, labels, len(named), most)
    if named and all(NUMBER.match(name) for name in named):
        if len(named) > most and all(PLAIN.match(name) for name in named):
            return _fifths(column, labels)
        return _relabelled(column, labels, {name: name for name in named}, key=_size, ordered=True)
    count = np.bincount(labels.codes, minlength=len(labels.names))
    large = sorted(used, key=lambda i: (-int(count[i]), labels.names[i]))[: most if len(used) <= most else most - 1]
    kept = {labels.names[i] for i in large}
    shown = {name: name if name in kept else "other" for name in named}
    order = {labels.names[i]: place for place, i in enumerate(large)}
    return _relabelled(column, labels, shown, key=lambda name: (order.get(name, len(order)),), ordered=False)


def _size(name: str) -> tuple[float, ...]:
    found = NUMBER.match(name)
    if found is None:
        return (np.inf, 0)
    return (float(found[2].replace("−", "-")), {"≤": -1, "<": -1, ">": 1, "≥": 1}.get(found[1], 0))


def _days(column: str, labels: Labels, distinct: int, most: int) -> Grouping:
    length = 10 if distinct <= 2 * most else 7
    if len({name[:length] for name in labels.names if name}) > 4 * most:
        length = 4
    shown = {name: name[:length] for name in labels.names if name}
    return _relabelled(column, labels, shown, key=lambda name: (name,), ordered=True)


def _fifths(column: str, labels: Labels) -> Grouping:
    numbers = np.array([float(name.replace("−", "-")) if name else np.nan for name in labels.names])[labels.codes]
    edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, QUANTILES + 1)))
    codes = np.clip(np.searchsorted(edges, numbers, side="left") - 1, 0, len(edges) - 2)
    names = [f"{_short(a)}–{_short(b)}" for a, b in pairwise(edges)]
    if np.isnan(numbers).any():
        codes = np.where(np.isnan(numbers), len(names), codes)
        names.append(UNKNOWN)
    return Grouping(column=column, codes=codes.astype(np.int64), names=tuple(names), ordered=True)


def _short(value: float) -> str:
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def _relabelled(column: str, labels: Labels, shown: dict[str, str], *, key: Key, ordered: bool) -> Grouping:
    count = np.bincount(labels.codes, minlength=len(labels.names))
    present = {shown.get(name, UNKNOWN) for name, c in zip(labels.names, count, strict=True) if c}
    names = sorted(present - {UNKNOWN}, key=key) + [UNKNOWN] * (UNKNOWN in present)
    place = {name: i for i, name in enumerate(names)}
    lookup = np.array([place.get(shown.get(name, UNKNOWN), 0) for name in labels.names], dtype=np.int64)
    return Grouping(column=column, codes=lookup[labels.codes], names=tuple(names), ordered=ordered)


def shares(codes: Ints, size: int, weight: Floats | None = None) -> Floats:
    """Share of rows (or weight) in each group.

    >>> shares(np.array([0, 0, 1]), 3).round(2).tolist()
    [0.67, 0.33, 0.0]
    """
    count = np.bincount(codes, weights=weight, minlength=size).astype(np.float64)
    return count / count.sum() if count.sum() else count
