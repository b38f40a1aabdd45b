"""Rows that stand on every table beside the entries: the crowd's price, the base rate and 0.5."""

from dataclasses import replace

import numpy as np

from foretell.arena.anchors import ALWAYS_HALF, BASE_RATE, CROWD
from foretell.arena.standings.standings import Entry, Standings
from foretell.evaluate.arrays import Floats, Ints

PRIOR = 2.0
"""Pseudo-events at one half: with nothing resolved yet the base rate is 0.5."""


def with_yardsticks(standings: Standings) -> Standings:
    """The same with three more rows; where an entry has taken the name of one, it is that yardstick."""
    half = np.full(len(standings.markets), 0.5)
    rows = {CROWD: standings.markets.price, BASE_RATE: past_rate(standings), ALWAYS_HALF: half}
    entries = [Entry(name=name, anchor=True, dollars=0.0, seconds=0.0) for name in rows]
    named = tuple(replace(entry, anchor=entry.anchor or entry.name in rows) for entry in standings.entries)
    return replace(standings, entries=named).with_entries(entries, np.stack(list(rows.values())))


def past_rate(standings: Standings) -> Floats:
    """How often markets of the same category had come true among events resolved before the moment of asking.

    Every event weighs one, however many markets it has and however often it was asked: (Σ w·o + 1) / (Σ w + 2) with
    w = 1 / markets of the event. Only outcomes known strictly before a moment count for it, so nothing leaks from the
    future; an event that is itself still open never counts for itself. 0.5 while nothing has resolved.
    """
    once = _each_market_once(standings)
    known = once[~np.isnat(standings.markets.known_at[once]) & np.isfinite(standings.markets.outcome[once])]
    event = standings.market_event
    weight = 1 / np.bincount(event[once], minlength=len(standings.events))
    category = standings.events.category.codes
    out = np.full(len(standings.moments), 0.5)
    for code in np.unique(category):
        past = known[category[event[known]] == code]
        past = past[np.argsort(standings.markets.known_at[past], kind="stable")]
        w = weight[event[past]]
        yes = np.concatenate([[0.0], np.cumsum(w * standings.markets.outcome[past])])
        n = np.concatenate([[0.0], np.cumsum(w)])
        asked = np.flatnonzero(category[standings.moments.event] == code)
        before = np.searchsorted(standings.markets.known_at[past], standings.moments.taken_at[asked], side="left")
        out[asked] = (yes[before] + PRIOR / 2) / (n[before] + PRIOR)
    return out[standings.markets.moment]


def _each_market_once(standings: Standings) -> Ints:
    """The markets of the first moment of every event."""
    first = np.zeros(len(standings.moments), np.bool_)
    first[np.unique(standings.moments.event, return_index=True)[1]] = True
    return np.flatnonzero(first[standings.markets.moment])
