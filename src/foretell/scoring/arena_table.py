"""An arena as arrays: events, the moments they were asked at, the markets of each moment, and all forecasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.data.datasets.prophet_arena import read_arena_file
from foretell.data.datasets.question_set import QuestionSet
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.returns import normalised_price
from foretell.questions.errors import InputError
from foretell.questions.question import Target
from foretell.scoring.table import ForecastTable, Labels, Targets

Times = npt.NDArray[np.datetime64]
"""Times in UTC, to the second."""
NO_TIME = np.datetime64("NaT", "s")


@dataclass(frozen=True, kw_only=True)
class ArenaEntry:
    """A participant whose forecasts are scored, and what they cost."""

    name: str
    anchor: bool = False
    """Whether it is a baseline (crowd, base rate, 0.5) that nobody entered."""
    forecasts: int = 0
    """Number of forecasts made, scored or not."""
    dollars: float = float("nan")
    """Mean cost of a forecast in dollars; NaN if it was not recorded."""
    seconds: float = float("nan")
    since: str = ""
    """When the entry joined, in UTC to the second; empty if it was there from the start."""
    until: str = ""
    """When the entry left or was replaced by another version; empty while it takes part."""


@dataclass(frozen=True, kw_only=True)
class ArenaEventTable:
    """The events asked about, one element each."""

    ids: tuple[str, ...]
    category: Labels
    platform: Labels
    cluster: Ints
    """Events whose outcomes move together share a code and are resampled together."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, kw_only=True)
class ArenaMomentTable:
    """Every time an event was asked about, ordered by event and then by time."""

    event: Ints
    """Index into `events`, in ascending order."""
    taken_at: Times
    hours: Floats
    """Hours to the close of the event as known at the time; NaN if unknown."""

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True, kw_only=True)
class ArenaMarketTable:
    """One row for every target of every moment, in the order of moments."""

    moment: Ints
    """Index into `moments`, in ascending order."""
    target: tuple[str, ...]
    outcome: Floats
    """0 or 1; NaN while open, or if void."""
    known_at: Times
    """When the outcome became known; NaT if unknown."""
    last: Floats
    yes_ask: Floats
    no_ask: Floats

    def __len__(self) -> int:
        return len(self.moment)

    @cached_property
    def price(self) -> Floats:
        """The crowd's probability: the asks normalised to one, else the last trade; NaN if there is neither."""
        asked = normalised_price(self.yes_ask, self.no_ask)
        return np.where(np.isnan(asked), self.last, asked)


@dataclass(frozen=True, kw_only=True)
class ArenaTable:
    """All numbers of one arena."""

    name: str
    events: ArenaEventTable
    moments: ArenaMomentTable
    markets: ArenaMarketTable
    entries: tuple[ArenaEntry, ...]
    p: Floats
    """Entries × markets: the mean over an entry's trials; NaN if it has no forecast."""
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in the order of the rows of `p`."""
        return tuple(entry.name for entry in self.entries)

    def row(self, entry: str) -> Floats:
        """Return one entry's probabilities; raise if the name is unknown."""
        if entry not in self.names:
            raise InputError(f"no entry is called {entry!r}", hint=f"there are {', '.join(self.names[:12])}")
        return self.p[self.names.index(entry)]

    @cached_property
    def starts(self) -> Ints:
        """Index of the first market of each moment."""
        return np.searchsorted(self.markets.moment, np.arange(len(self.moments)))

    @cached_property
    def event_starts(self) -> Ints:
        """Index of the first moment of each event; valid only if every event was asked."""
        return np.searchsorted(self.moments.event, np.arange(len(self.events)))

    @cached_property
    def market_event(self) -> Ints:
        """Index of the event of each market."""
        return self.moments.event[self.markets.moment]

    def asked(self) -> Bools:
        """Entries × moments: whether the entry took part then. What was asked before it joined is not missed."""
        taken = self.moments.taken_at
        found = np.ones((len(self.entries), len(taken)), np.bool_)
        for i, entry in enumerate(self.entries):
            if entry.since:
                found[i] &= taken >= np.datetime64(entry.since)
            if entry.until:
                found[i] &= taken < np.datetime64(entry.until)
        return found

    def scored(self) -> "ArenaTable":
        """Return only what has an outcome, dropping open and void markets and then empty moments and events."""
        return self.only(np.isfinite(self.markets.outcome))

    def only(self, kept: Bools) -> "ArenaTable":
        """Return only the selected markets, with the moments and events they belong to."""
        if kept.all() and len(np.unique(self.moments.event)) == len(self.events):
            return self
        moments, moment = np.unique(self.markets.moment[kept], return_inverse=True)
        events, event = np.unique(self.moments.event[moments], return_inverse=True)
        rows = np.flatnonzero(kept)
        return replace(
            self,
            events=ArenaEventTable(
                ids=tuple(self.events.ids[i] for i in events),
                category=self.events.category.take(events),
                platform=self.events.platform.take(events),
                cluster=self.events.cluster[events],
            ),
            moments=ArenaMomentTable(
                event=event, taken_at=self.moments.taken_at[moments], hours=self.moments.hours[moments]
            ),
            markets=_market_rows(self.markets, rows, moment),
            p=self.p[:, rows],
        )

    def with_entries(self, entries: Sequence[ArenaEntry], p: Floats) -> "ArenaTable":
        """Return a copy with further entries appended; an entry whose name is already taken is left out."""
        new = [i for i, entry in enumerate(entries) if entry.name not in self.names]
        return replace(
            self,
            entries=(*self.entries, *(entries[i] for i in new)),
            p=np.vstack([self.p, p[new]]),
        )


def _market_rows(markets: ArenaMarketTable, rows: Ints, moment: Ints) -> ArenaMarketTable:
    return ArenaMarketTable(
        moment=moment,
        target=tuple(markets.target[i] for i in rows.tolist()),
        outcome=markets.outcome[rows],
        known_at=markets.known_at[rows],
        last=markets.last[rows],
        yes_ask=markets.yes_ask[rows],
        no_ask=markets.no_ask[rows],
    )


def arena_as_table(arena: ArenaTable) -> ForecastTable:
    """Turn every scored market of every moment into a target; each event counts once, however often it was asked."""
    scored = arena.scored()
    event, moment = scored.market_event, scored.markets.moment
    moments = np.bincount(scored.moments.event, minlength=len(scored.events))
    markets = np.bincount(moment, minlength=len(scored.moments))
    names, codes = np.unique(np.asarray(scored.markets.target, dtype=object).astype(str), return_inverse=True)
    entry, target = np.nonzero(np.isfinite(scored.p))
    return ForecastTable(
        targets=Targets(
            outcome=scored.markets.outcome,
            weight=1.0 / (moments[event] * markets[moment]),
            question=Labels(codes=event, names=scored.events.ids),
            target=Labels(codes=codes, names=tuple(str(name) for name in names)),
            price=scored.markets.price,
            yes_ask=scored.markets.yes_ask,
            no_ask=scored.markets.no_ask,
            round=moment,
            groups={
                "category": scored.events.category.take(event),
                "platform": scored.events.platform.take(event),
                "cluster": Labels(
                    codes=scored.events.cluster[event],
                    # Of one width, so that their alphabetical order is that of time.
                    names=tuple(f"{code:09d}" for code in range(int(scored.events.cluster.max(initial=0)) + 1)),
                ),
            },
        ),
        forecasters=scored.names,
        forecaster=entry,
        target=target,
        p=scored.p[entry, target],
        weighing="question",
    )


# What was asked, as arrays: this part does not change any more once it was asked.

QUOTES = 4
"""Numbers per target: last price, yes bid, yes ask, no ask."""
TargetKey = tuple[str, str]
"""The ids of an event and of one of its targets."""


@dataclass(frozen=True, kw_only=True)
class MomentArrays:
    """Moments ordered by event, and by time within each event."""

    events: tuple[str, ...]
    event: Ints
    """The event of each moment."""
    taken_at: Times
    hours: Floats
    sizes: Ints
    """Number of markets of each moment."""
    quotes: Floats
    """Quotes, markets × 4."""
    keys: tuple[TargetKey, ...]
    """The key of every distinct target."""
    key: Ints
    """Index into `keys` for each market."""
    place: Ints
    """The moment index of each row of the input columns."""


@dataclass(frozen=True, kw_only=True)
class ArenaOutcomes:
    """Outcomes of targets, as columns."""

    place: Mapping[TargetKey, int]
    """Index of an event's target in the columns."""
    outcome: Floats
    """0 or 1; NaN if void."""
    known_at: Times


EventLabels = Mapping[str, Mapping[str, str]]
"""Labels of events (category, platform, cluster) by event id; an event without a cluster is its own."""


def moment_arrays(
    events: Sequence[str],
    taken_at: Times,
    closes_at: Times,
    targets: Sequence[tuple[str, ...]],
    quotes: Sequence[bytes],
) -> MomentArrays:
    """Build ordered moments from columns in any order, as read from a database, without an object per moment.

    Quotes are four little-endian float64 per target; empty if there were none.
    """
    names, event = codes_of(events)
    order = np.lexsort((taken_at, event))
    asked: list[int] = order.tolist()
    shown = [targets[i] for i in asked]
    sizes = np.fromiter(map(len, shown), np.int64, len(shown))
    keys, key = _keys([events[i] for i in asked], shown)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return MomentArrays(
        events=names,
        event=event[order],
        taken_at=taken_at[order],
        hours=_hours(closes_at[order] - taken_at[order]),
        sizes=sizes,
        quotes=_quotes([quotes[i] for i in asked], sizes),
        keys=keys,
        key=key,
        place=place,
    )


def arena_frame(name: str, asked: MomentArrays, labels: EventLabels, outcomes: ArenaOutcomes) -> ArenaTable:
    """Build the table without any entries or forecasts."""
    found = np.fromiter((outcomes.place.get(key, -1) for key in asked.keys), np.int64, len(asked.keys))[asked.key]
    names = np.array([target for _, target in asked.keys], object)
    category, platform, cluster = (labels.get(kind, {}) for kind in ("category", "platform", "cluster"))
    return ArenaTable(
        name=name,
        events=ArenaEventTable(
            ids=asked.events,
            category=labels_of([category.get(id) or "(none)" for id in asked.events]),
            platform=labels_of([platform.get(id) or "(none)" for id in asked.events]),
            cluster=codes_of([cluster.get(id) or id for id in asked.events])[1],
        ),
        moments=ArenaMomentTable(event=asked.event, taken_at=asked.taken_at, hours=asked.hours),
        markets=ArenaMarketTable(
            moment=np.repeat(np.arange(len(asked.event)), asked.sizes),
            target=tuple(names[asked.key].tolist()),
            outcome=np.append(outcomes.outcome, np.nan)[found],
            known_at=np.append(outcomes.known_at, NO_TIME)[found],
            last=asked.quotes[:, 0],
            yes_ask=asked.quotes[:, 2],
            no_ask=asked.quotes[:, 3],
        ),
        entries=(),
        p=np.empty((0, len(asked.key))),
    )


def labels_of(texts: Sequence[str]) -> Labels:
    """Encode a column of text as codes."""
    names, codes = codes_of(texts)
    return Labels(codes=codes, names=names)


def codes_of(texts: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct texts in order of first appearance, and the code of each.

    >>> codes_of(["b", "a", "b"])
    (('b', 'a'), array([0, 1, 0]))
    """
    names = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return tuple(names), np.fromiter(map(names.__getitem__, texts), np.int64, len(texts))


def _keys(events: Sequence[str], targets: Sequence[tuple[str, ...]]) -> tuple[tuple[TargetKey, ...], Ints]:
    """Return the distinct targets of all events, and the index of each market's target among them."""
    places: dict[TargetKey, int] = {}
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
    """Decode the quotes of all targets; a blob that does not match its targets counts as no quote."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    whole = list(blobs)
    for i in np.flatnonzero(lengths != 8 * QUOTES * sizes).tolist():
        whole[i] = np.full(QUOTES * int(sizes[i]), np.nan).tobytes()
    return np.frombuffer(b"".join(whole), "<f8").astype(np.float64).reshape(-1, QUOTES)


# The published events of Prophet Arena, or any question set, as an arena's table without entries.


def arena_table_from_prophet_arena(path: str | Path) -> ArenaTable:
    """Load Prophet Arena's published events, as CSV or as the SDK's JSONL; only the baselines will be scored."""
    found = read_arena_file(path)
    if found is None:
        raise InputError("not a file of Prophet Arena events", path=path, hint="its CSV subset, or events.jsonl")
    return arena_table_from_questions(found)


def arena_table_from_questions(asked: QuestionSet) -> ArenaTable:
    """Turn a question set into an arena's table: every question is an event at the moment it was asked."""
    questions = asked.questions
    moments = moment_arrays(
        [one.id for one in questions],
        taken_at=seconds_of([one.due for one in questions]),
        closes_at=seconds_of([one.closes_at for one in questions]),
        targets=[tuple(target.id for target in one.targets) for one in questions],
        quotes=[np.array([_target_quotes(target) for target in one.targets], "<f8").tobytes() for one in questions],
    )
    labels = {
        "category": {one.id: one.category for one in questions},
        "platform": {one.id: one.source for one in questions},
        "cluster": {one.id: one.cluster for one in questions},
    }
    known = {(one.question_id, one.target_id): one for one in asked.resolutions}
    outcomes = ArenaOutcomes(
        place={key: i for i, key in enumerate(known)},
        outcome=np.array([one.outcome for one in known.values()], np.float64),
        known_at=seconds_of([one.resolved_at for one in known.values()]),
    )
    return replace(arena_frame(asked.name, moments, labels, outcomes), notes=asked.notes)


def seconds_of(moments: Sequence[datetime | None]) -> Times:
    """Convert times to an array with a resolution of seconds; None becomes NaT."""
    found = [None if at is None else at.astimezone(UTC).replace(tzinfo=None) for at in moments]
    return np.array(found, "datetime64[s]")


def _target_quotes(target: Target) -> list[float | None]:
    """Return last price, yes bid, yes ask and no ask; None for those that are missing."""
    shot = target.snapshot
    return [None] * 4 if shot is None else [shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask]
