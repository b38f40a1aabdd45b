"""An arena as arrays: events, the moments they were asked at, the markets of each moment, and who said what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foretell.arena.table import Labels
from foretell.evaluate.arrays import Bools, Floats, Ints
from foretell.evaluate.stakes import normalised_price
from foretell.questions.problems import InputError

Times = npt.NDArray[np.datetime64]
"""UTC, to the second."""
NEVER = np.datetime64("NaT", "s")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Somebody whose forecasts are scored, and what they cost."""

    name: str
    anchor: bool = False
    """A yardstick (crowd, base rate, 0.5) that nobody entered."""
    said: int = 0
    """Forecasts made, scored or not."""
    dollars: float = float("nan")
    """Mean cost of a forecast; NaN where nobody counted."""
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class Events:
    """What was asked about; one entry each."""

    ids: tuple[str, ...]
    category: Labels
    platform: Labels
    cluster: Ints
    """Events whose outcomes move together share a code and are resampled together."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Every asking of an event, in the order of events and then of time."""

    event: Ints
    """Its place in `events`; never falls."""
    taken_at: Times
    hours: Floats
    """To the close of the event as it was known then; NaN where it was not."""

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, kw_only=True)
class Markets:
    """One row for every target of every moment, in the order of moments."""

    moment: Ints
    """Its place in `moments`; never falls."""
    target: tuple[str, ...]
    outcome: Floats
    """0 or 1; NaN while open or void."""
    known_at: Times
    """When the outcome was known; NaT where nobody said."""
    last: Floats
    yes_ask: Floats
    no_ask: Floats

    def __len__(self) -> int:
        return len(self.moment)

    @cached_property
    def price(self) -> Floats:
        """The crowd's probability: the asks normalised to one, else the last trade; NaN without either."""
        asked = normalised_price(self.yes_ask, self.no_ask)
        return np.where(np.isnan(asked), self.last, asked)


@dataclass(frozen=True, kw_only=True)
class Standings:
    """All numbers of one arena."""

    name: str
    events: Events
    moments: Moments
    markets: Markets
    entries: tuple[Entry, ...]
    p: Floats
    """Entries × markets: the mean over an entry's trials; NaN where it said nothing."""
    stated: Floats | None = None
    """The same before probabilities were made to fit each other; None: nothing had to be."""
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the entries, in the order of the rows of `p`."""
        return tuple(entry.name for entry in self.entries)

    def row(self, entry: str) -> Floats:
        """One entry's probabilities; a name that is not there is refused."""
        if entry not in self.names:
            raise InputError(f"no entry is called {entry!r}", hint=f"there are {', '.join(self.names[:12])}")
        return self.p[self.names.index(entry)]

    @cached_property
    def starts(self) -> Ints:
        """The first market of each moment."""
        return np.searchsorted(self.markets.moment, np.arange(len(self.moments)))

    @cached_property
    def event_starts(self) -> Ints:
        """The first moment of each event; only for standings in which every event was asked."""
        return np.searchsorted(self.moments.event, np.arange(len(self.events)))

    @cached_property
    def market_event(self) -> Ints:
        """The event of each market."""
        return self.moments.event[self.markets.moment]

    def scored(self) -> "Standings":
        """Only what has an outcome: open and void markets are gone, and the moments and events left empty by that."""
        return self.only(np.isfinite(self.markets.outcome))

    def only(self, kept: Bools) -> "Standings":
        """Some of the markets, with the moments and events they belong to."""
        if kept.all() and len(np.unique(self.moments.event)) == len(self.events):
            return self
        moments, moment = np.unique(self.markets.moment[kept], return_inverse=True)
        events, event = np.unique(self.moments.event[moments], return_inverse=True)
        rows = np.flatnonzero(kept)
        return replace(
            self,
            events=Events(
                ids=tuple(self.events.ids[i] for i in events),
                category=self.events.category.take(events),
                platform=self.events.platform.take(events),
                cluster=self.events.cluster[events],
            ),
            moments=Moments(event=event, taken_at=self.moments.taken_at[moments], hours=self.moments.hours[moments]),
            markets=_rows(self.markets, rows, moment),
            p=self.p[:, rows],
            stated=None if self.stated is None else self.stated[:, rows],
        )

    def with_entries(self, entries: Sequence[Entry], p: Floats) -> "Standings":
        """The same with further entries after the ones there are; a name that is taken already is left out."""
        new = [i for i, entry in enumerate(entries) if entry.name not in self.names]
        stated = None if self.stated is None else np.vstack([self.stated, p[new]])
        return replace(
            self,
            entries=(*self.entries, *(entries[i] for i in new)),
            p=np.vstack([self.p, p[new]]),
            stated=stated,
        )


def _rows(markets: Markets, rows: Ints, moment: Ints) -> Markets:
    return Markets(
        moment=moment,
        target=tuple(markets.target[i] for i in rows.tolist()),
        outcome=markets.outcome[rows],
        known_at=markets.known_at[rows],
        last=markets.last[rows],
        yes_ask=markets.yes_ask[rows],
        no_ask=markets.no_ask[rows],
    )
