"""What was asked, as arrays: the part of standings that does not change any more once it was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.arena.standings.standings import NEVER, Events, Markets, Moments, Standings, Times
from foretell.arena.table import Labels
from foretell.evaluate.arrays import Floats, Ints

QUOTES = 4
"""Numbers per target: last, yes bid, yes ask, no ask."""
Key = tuple[str, str]
"""An event and one of its targets."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Askings as columns, in any order: what a database gives, without an object for each."""

    event: Sequence[str]
    taken_at: Times
    closes_at: Times
    targets: Sequence[tuple[str, ...]]
    quotes: Sequence[bytes]
    """Four float64, little endian, per target; empty where there were none."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Askings in the order of standings: of events, and of time within each."""

    events: tuple[str, ...]
    event: Ints
    """Of each moment."""
    taken_at: Times
    hours: Floats
    sizes: Ints
    """Markets of each moment."""
    quotes: Floats
    """Markets × 4."""
    keys: tuple[Key, ...]
    """Every target once."""
    key: Ints
    """Of each market."""
    place: Ints
    """The moment that each of the columns' rows became."""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """How targets came out, as columns."""

    place: Mapping[Key, int]
    """Of an event's target in the columns."""
    outcome: Floats
    """NaN: void."""
    known_at: Times


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """What is known about events, by their ids."""

    category: Mapping[str, str] = field(default_factory=dict[str, str])
    platform: Mapping[str, str] = field(default_factory=dict[str, str])
    cluster: Mapping[str, str] = field(default_factory=dict[str, str])
    """An event without one is its own."""


def asked_of(columns: Columns) -> Asked:
    """The askings in order."""
    events, event = codes_of(columns.event)
    order = np.lexsort((columns.taken_at, event))
    asked: list[int] = order.tolist()
    targets = [columns.targets[i] for i in asked]
    sizes = np.fromiter(map(len, targets), np.int64, len(targets))
    keys, key = _keys([columns.event[i] for i in asked], targets)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return Asked(
        events=events,
        event=event[order],
        taken_at=columns.taken_at[order],
        hours=_hours(columns.closes_at[order] - columns.taken_at[order]),
        sizes=sizes,
        quotes=_quotes([columns.quotes[i] for i in asked], sizes),
        keys=keys,
        key=key,
        place=place,
    )


def frame_of(name: str, asked: Asked, kinds: Kinds, outcomes: Outcomes) -> Standings:
    """Standings in which nobody has said anything yet."""
    found = np.fromiter((outcomes.place.get(key, -1) for key in asked.keys), np.int64, len(asked.keys))[asked.key]
    names = np.array([target for _, target in asked.keys], object)
    return Standings(
        name=name,
        events=Events(
            ids=asked.events,
            category=labels([kinds.category.get(id) or "(none)" for id in asked.events]),
            platform=labels([kinds.platform.get(id) or "(none)" for id in asked.events]),
            cluster=codes_of([kinds.cluster.get(id) or id for id in asked.events])[1],
        ),
        moments=Moments(event=asked.event, taken_at=asked.taken_at, hours=asked.hours),
        markets=Markets(
            moment=np.repeat(np.arange(len(asked.event)), asked.sizes),
            target=tuple(names[asked.key].tolist()),
            outcome=np.append(outcomes.outcome, np.nan)[found],
            known_at=np.append(outcomes.known_at, NEVER)[found],
            last=asked.quotes[:, 0],
            yes_ask=asked.quotes[:, 2],
            no_ask=asked.quotes[:, 3],
        ),
        entries=(),
        p=np.empty((0, len(asked.key))),
    )


def labels(texts: Sequence[str]) -> Labels:
    """A column of text as codes."""
    names, codes = codes_of(texts)
    return Labels(codes=codes, names=names)


def codes_of(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Distinct texts in order of first appearance, and the code of each.

    >>> codes_of(["b", "a", "b"])
    (('b', 'a'), array([0, 1, 0]))
    """
    names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return tuple(names), np.fromiter(map(names.__getitem__, texts), np.int64, len(texts))


def _keys(events: Sequence[str], targets: Sequence[tuple[str, ...]]) -> tuple[tuple[Key, ...], Ints]:
    """Every event's targets once, and the place of each market's among them."""
    places: dict[Key, int] = {}
    found: list[list[int]] = []
    mine: list[int] = []
    last: tuple[str, tuple[str, ...]] = ("", ())
    for event, asked in zip(events, targets, strict=True):
        # Askings of one event stand side by side, nearly always with the same targets.
        if asked is not last[1] or event != last[0]:
            mine = [places.setdefault((event, target), len(places)) for target in asked]
            last = (event, asked)
        found.append(mine)
    return tuple(places), np.fromiter(chain.from_iterable(found), np.int64)


def _hours(gap: npt.NDArray[Any]) -> Floats:
    return np.where(np.isnat(gap), np.nan, gap.astype(np.float64) / 3600)


def _quotes(blobs: Sequence[bytes], sizes: Ints) -> Floats:
    """Quotes of all targets; a blob that does not fit its targets is no quote at all."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    whole = list(blobs)
    for i in np.flatnonzero(lengths != 8 * QUOTES * sizes).tolist():
        whole[i] = np.full(QUOTES * int(sizes[i]), np.nan).tobytes()
    return np.frombuffer(b"".join(whole), "<f8").astype(np.float64).reshape(-1, QUOTES)
