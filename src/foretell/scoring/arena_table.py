"""An arena as arrays: events, the forecast times of each event, the markets of each forecast time, and forecasts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from foretell.data.datasets.prophet_arena import read_arena_file
from foretell.data.datasets.question_set import QuestionSet
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.returns import normalised_price
from foretell.questions.errors import InputError
from foretell.questions.question import Target
from foretell.scoring.table import ForecastTable, Labels, Targets

Times = npt.NDArray[np.datetime64]
"""Times in UTC, to the second."""
NO_TIME = np.datetime64("NaT", "s")


@frozen
class ArenaEntry:
    """A participant whose forecasts are scored, and what they cost."""

    name: str
    baseline: bool = False
    """Whether it is a baseline (market price, base rate, 0.5) that nobody entered."""
    forecasts: int = 0
    """Number of forecasts made, scored or not."""
    dollars: float = float("nan")
    """Mean cost of a forecast in dollars; NaN if it was not recorded."""
    seconds: float = float("nan")
    since: str = ""
    """When the entry joined, in UTC to the second; empty if it was there from the start."""
    until: str = ""
    """When the entry left or was replaced by another version; empty while it takes part."""


@frozen
class ArenaEventTable:
    """The events asked about, one element each."""

    ids: tuple[str, ...]
    category: Labels
    platform: Labels
    cluster: Ints
    """Events whose outcomes move together share a code and are resampled together."""

    def __len__(self) -> int:
        return len(self.ids)


@frozen
class ArenaForecastTable:
    """Every time an event was asked about, ordered by event and then by time."""

    event: Ints
    """Index into `events`, in ascending order."""
    taken_at: Times
    hours: Floats
    """Hours to the close of the event as known at the time; NaN if unknown."""

    def __len__(self) -> int:
        return len(self.event)


@frozen
class ArenaMarketTable:
    """One row for each target at each forecast time, in the order of forecast times."""

    forecast_time: Ints
    """Index into `forecast_times`, in ascending order."""
    target: tuple[str, ...]
    outcome: Floats
    """0 or 1; NaN while open, or if void."""
    known_at: Times
    """When the outcome became known; NaT if unknown."""
    last: Floats
    yes_ask: Floats
    no_ask: Floats

    def __len__(self) -> int:
        return len(self.forecast_time)

    @cached_property
    def price(self) -> Floats:
        """The market probability: the asks normalised to one, else the last trade; NaN if there is neither."""
        normalised = normalised_price(self.yes_ask, self.no_ask)
        return np.where(np.isnan(normalised), self.last, normalised)


@frozen
class ArenaTable:
    """All numbers of one arena."""

    name: str
    events: ArenaEventTable
    forecast_times: ArenaForecastTable
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
        """Index of the first market of each forecast time."""
        return np.searchsorted(self.markets.forecast_time, np.arange(len(self.forecast_times)))

    @cached_property
    def event_starts(self) -> Ints:
        """Index of the first forecast time of each event; valid only if every event was asked."""
        return np.searchsorted(self.forecast_times.event, np.arange(len(self.events)))

    @cached_property
    def market_event(self) -> Ints:
        """Index of the event of each market."""
        return self.forecast_times.event[self.markets.forecast_time]

    def asked(self) -> Bools:
        """Entries × forecast times: whether the entry took part then."""
        taken = self.forecast_times.taken_at
        asked = np.ones((len(self.entries), len(taken)), np.bool_)
        for i, entry in enumerate(self.entries):
            if entry.since:
                asked[i] &= taken >= np.datetime64(entry.since)
            if entry.until:
                asked[i] &= taken < np.datetime64(entry.until)
        return asked

    def scored(self) -> "ArenaTable":
        """Return the markets with an outcome, without forecast times and events that have none."""
        return self.only(np.isfinite(self.markets.outcome))

    def only(self, selected: Bools) -> "ArenaTable":
        """Return only the selected markets, with the forecast times and events they belong to."""
        if selected.all() and len(np.unique(self.forecast_times.event)) == len(self.events):
            return self
        times, forecast_time = np.unique(self.markets.forecast_time[selected], return_inverse=True)
        events, event = np.unique(self.forecast_times.event[times], return_inverse=True)
        rows = np.flatnonzero(selected)
        return replace(
            self,
            events=ArenaEventTable(
                ids=tuple(self.events.ids[i] for i in events),
                category=self.events.category.take(events),
                platform=self.events.platform.take(events),
                cluster=self.events.cluster[events],
            ),
            forecast_times=ArenaForecastTable(
                event=event, taken_at=self.forecast_times.taken_at[times], hours=self.forecast_times.hours[times]
            ),
            markets=ArenaMarketTable(
                forecast_time=forecast_time,
                target=tuple(self.markets.target[i] for i in rows.tolist()),
                outcome=self.markets.outcome[rows],
                known_at=self.markets.known_at[rows],
                last=self.markets.last[rows],
                yes_ask=self.markets.yes_ask[rows],
                no_ask=self.markets.no_ask[rows],
            ),
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


def arena_as_table(arena: ArenaTable) -> ForecastTable:
    """Return a table with a target for each scored market at each forecast time; every event counts once."""
    scored = arena.scored()
    event, forecast_time = scored.market_event, scored.markets.forecast_time
    times_of_event = np.bincount(scored.forecast_times.event, minlength=len(scored.events))
    markets = np.bincount(forecast_time, minlength=len(scored.forecast_times))
    names, codes = np.unique(np.asarray(scored.markets.target, dtype=object).astype(str), return_inverse=True)
    entry, target = np.nonzero(np.isfinite(scored.p))
    return ForecastTable(
        targets=Targets(
            outcome=scored.markets.outcome,
            weight=1.0 / (times_of_event[event] * markets[forecast_time]),
            question=Labels(codes=event, names=scored.events.ids),
            target=Labels(codes=codes, names=tuple(str(name) for name in names)),
            price=scored.markets.price,
            yes_ask=scored.markets.yes_ask,
            no_ask=scored.markets.no_ask,
            round=forecast_time,
            groups={
                "category": scored.events.category.take(event),
                "platform": scored.events.platform.take(event),
                "cluster": Labels(
                    codes=scored.events.cluster[event],
                    # Zero-padded, so that alphabetical order is the order in time.
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


# What was asked, as arrays. This part does not change after a question was asked.

QUOTES = 4
"""Numbers per target: last price, yes bid, yes ask, no ask."""
TargetKey = tuple[str, str]
"""The ids of an event and of one of its targets."""


@frozen
class ForecastTimeArrays:
    """Forecast times, ordered by event and then by time."""

    events: tuple[str, ...]
    event: Ints
    """The event of each forecast time."""
    taken_at: Times
    hours: Floats
    sizes: Ints
    """Number of markets of each forecast time."""
    quotes: Floats
    """Quotes, markets × 4."""
    keys: tuple[TargetKey, ...]
    """The key of every distinct target."""
    key: Ints
    """Index into `keys` for each market."""
    place: Ints
    """The index of the forecast time of each row of the input columns."""


@frozen
class ArenaOutcomes:
    """Outcomes of targets, as columns."""

    place: Mapping[TargetKey, int]
    """Index of an event's target in the columns."""
    outcome: Floats
    """0 or 1; NaN if void."""
    known_at: Times


EventLabels = Mapping[str, Mapping[str, str]]
"""Labels of events (category, platform, cluster) by event id; an event without a cluster is its own."""


def forecast_time_arrays(
    events: Sequence[str],
    taken_at: Times,
    closes_at: Times,
    targets: Sequence[tuple[str, ...]],
    quotes: Sequence[bytes],
) -> ForecastTimeArrays:
    """Build ordered forecast times from columns in any order, such as those of a database.

    Quotes are four little-endian float64 per target; empty if there were none.
    """
    names, event = codes_of(events)
    order = np.lexsort((taken_at, event))
    indices: list[int] = order.tolist()
    shown = [targets[i] for i in indices]
    sizes = np.fromiter(map(len, shown), np.int64, len(shown))
    keys, key = _keys([events[i] for i in indices], shown)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return ForecastTimeArrays(
        events=names,
        event=event[order],
        taken_at=taken_at[order],
        hours=_hours(closes_at[order] - taken_at[order]),
        sizes=sizes,
        quotes=_quotes([quotes[i] for i in indices], sizes),
        keys=keys,
        key=key,
        place=place,
    )


def arena_frame(name: str, times: ForecastTimeArrays, labels: EventLabels, outcomes: ArenaOutcomes) -> ArenaTable:
    """Build the table without any entries or forecasts."""
    place = np.fromiter((outcomes.place.get(key, -1) for key in times.keys), np.int64, len(times.keys))[times.key]
    names = np.array([target for _, target in times.keys], object)
    category, platform, cluster = (labels.get(kind, {}) for kind in ("category", "platform", "cluster"))
    return ArenaTable(
        name=name,
        events=ArenaEventTable(
            ids=times.events,
            category=labels_of([category.get(id) or "(none)" for id in times.events]),
            platform=labels_of([platform.get(id) or "(none)" for id in times.events]),
            cluster=codes_of([cluster.get(id) or id for id in times.events])[1],
        ),
        forecast_times=ArenaForecastTable(event=times.event, taken_at=times.taken_at, hours=times.hours),
        markets=ArenaMarketTable(
            forecast_time=np.repeat(np.arange(len(times.event)), times.sizes),
            target=tuple(names[times.key].tolist()),
            outcome=np.append(outcomes.outcome, np.nan)[place],
            known_at=np.append(outcomes.known_at, NO_TIME)[place],
            last=times.quotes[:, 0],
            yes_ask=times.quotes[:, 2],
            no_ask=times.quotes[:, 3],
        ),
        entries=(),
        p=np.empty((0, len(times.key))),
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
    indices: list[list[int]] = []
    own: list[int] = []
    last: tuple[str, tuple[str, ...]] = ("", ())
    for event, names in zip(events, targets, strict=True):
        # Rows of one event are adjacent and nearly always have the same targets.
        if names is not last[1] or event != last[0]:
            own = [places.setdefault((event, target), len(places)) for target in names]
            last = (event, names)
        indices.append(own)
    return tuple(places), np.fromiter(chain.from_iterable(indices), np.int64)


def _hours(gap: npt.NDArray[Any]) -> Floats:
    return np.where(np.isnat(gap), np.nan, gap.astype(np.float64) / 3600)


def _quotes(blobs: Sequence[bytes], sizes: Ints) -> Floats:
    """Decode the quotes of all targets; a blob that does not match its targets counts as no quote."""
    lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
    complete = list(blobs)
    for i in np.flatnonzero(lengths != 8 * QUOTES * sizes).tolist():
        complete[i] = np.full(QUOTES * int(sizes[i]), np.nan).tobytes()
    return np.frombuffer(b"".join(complete), "<f8").astype(np.float64).reshape(-1, QUOTES)


# The published events of Prophet Arena, or any question set, as an arena's table without entries.


def arena_table_from_prophet_arena(path: str | Path) -> ArenaTable:
    """Load Prophet Arena's published events, as CSV or as the SDK's JSONL; only the baselines will be scored."""
    arena_file = read_arena_file(path)
    if arena_file is None:
        raise InputError("not a file of Prophet Arena events", path=path, hint="its CSV subset, or events.jsonl")
    return arena_table_from_questions(arena_file)


def arena_table_from_questions(question_set: QuestionSet) -> ArenaTable:
    """Return a question set as an arena's table: every question is an event with one forecast time, its due time."""
    questions = question_set.questions
    times = forecast_time_arrays(
        [question.id for question in questions],
        taken_at=seconds_of([question.due for question in questions]),
        closes_at=seconds_of([question.closes_at for question in questions]),
        targets=[tuple(target.id for target in question.targets) for question in questions],
        quotes=[
            np.array([_target_quotes(target) for target in question.targets], "<f8").tobytes() for question in questions
        ],
    )
    labels = {
        "category": {question.id: question.category for question in questions},
        "platform": {question.id: question.source for question in questions},
        "cluster": {question.id: question.cluster for question in questions},
    }
    known = {(resolution.question_id, resolution.target_id): resolution for resolution in question_set.resolutions}
    outcomes = ArenaOutcomes(
        place={key: i for i, key in enumerate(known)},
        outcome=np.array([resolution.outcome for resolution in known.values()], np.float64),
        known_at=seconds_of([resolution.resolved_at for resolution in known.values()]),
    )
    return replace(arena_frame(question_set.name, times, labels, outcomes), notes=question_set.notes)


def seconds_of(times: Sequence[datetime | None]) -> Times:
    """Convert times to an array with a resolution of seconds; None becomes NaT."""
    naive = [None if time is None else time.astimezone(UTC).replace(tzinfo=None) for time in times]
    return np.array(naive, "datetime64[s]")


def _target_quotes(target: Target) -> list[float | None]:
    """Return last price, yes bid, yes ask and no ask; None for those that are missing."""
    quotes = target.snapshot
    return [None] * 4 if quotes is None else [quotes.last_price, quotes.yes_bid, quotes.yes_ask, quotes.no_ask]
