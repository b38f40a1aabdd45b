"""Forecasts of an arena as columns: the database joins them into long texts, which become arrays cached in a file.

The table `said` only ever grows, so a file that holds its first rows stays valid; each use checks with the database
that it still does. A year of an arena holds more than half a million forecasts: reading them as rows would take longer
than computing all scores.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from foretell.arena.spec import arena_from_json
from foretell.data.files import write_atomically
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics.arrays import Floats, Ints, group_sums
from foretell.models.database.interface import Database
from foretell.questions.errors import InputError
from foretell.runs.combine import DefaultByDay
from foretell.runs.spec import DEFAULT
from foretell.scoring.arena_table import (
    ArenaEntry,
    ArenaOutcomes,
    ArenaTable,
    MomentArrays,
    Times,
    arena_frame,
    moment_arrays,
)

_ENTRIES = "select id, name, run, spec, since from entry where arena = ? order by id"
YARDSTICKS = frozenset({"oracle"})
"""Forecasters that are not compared as entries: the demo's oracle, which knows the truth."""
_LISTED = "select event, platform, category from listed where arena = ? and decision = 'selected'"
ROUNDING = 1e-6
_OUTCOMES = "select event, target, outcome, coalesce(resolved_at, told_at) from outcome where arena = ?"


def read_arena_table(database: Database, arena: str, *, keep: Path | None = None) -> ArenaTable:
    """Return all forecasts and outcomes of an arena.

    `keep` is a cache folder: with it, the next call asks the database only for what is new.
    """
    entries = database.read(_ENTRIES, (arena,))
    if not entries and not database.read("select 1 from arena where name = ?", (arena,)):
        known = ", ".join(name for (name,) in database.read("select name from arena order by name"))
        raise InputError(f"there is no arena {arena!r} in {database.place}", hint=f"there are: {known or 'none'}")
    asked, place = _read_moments(database, arena, keep)
    reader = ForecastReader(database=database, arena=arena, keep=keep)
    with ThreadPoolExecutor(1) as aside:
        # The database joins forecasts while we look up the outcomes.
        reading = aside.submit(reader.read, np.append(asked.sizes, 0)[place])
        listed, outcomes = database.read(_LISTED, (arena,)), database.read(_OUTCOMES, (arena,))
        labels = {
            "platform": {event: platform for event, platform, _ in listed},
            "category": {event: category for event, _, category in listed},
        }
        known = ArenaOutcomes(
            place={(row[0], row[1]): i for i, row in enumerate(outcomes)},
            outcome=np.array([row[2] for row in outcomes], np.float64),
            known_at=_times([row[3] for row in outcomes]),
        )
        frame = arena_frame(arena, asked, labels, known)
        said = reading.result()
    by_id = np.full(max((row[0] for row in entries), default=0) + 1, -1, np.int64)
    by_id[[row[0] for row in entries]] = np.arange(len(entries))
    entry = by_id[said.ids // PACKED]
    names = [row[1] for row in entries]
    count = np.bincount(entry, minlength=len(names))
    dollars, seconds = (
        np.divide(group_sums(entry, cost, len(names)), count, out=np.full(len(names), np.nan), where=count > 0)
        for cost in (said.costs // PACKED / 1e6, said.costs % PACKED / 1e3)
    )
    current, left = _current_runs(database, arena), _last_answers(asked, entry, place[said.ids % PACKED])
    return replace(
        frame,
        # Where an entry's set-up was changed under its name, each run is an entry of its own.
        entries=tuple(
            ArenaEntry(
                name=name if names.count(name) == 1 else f"{name} ({run[:6]})",
                anchor=json.loads(spec).get("forecaster") in YARDSTICKS,
                forecasts=int(count[i]),
                dollars=float(dollars[i]),
                seconds=float(seconds[i]),
                since=since[:19],
                until="" if current is None or run in current else left.get(i, ""),
            )
            for i, (_, name, run, spec, since) in enumerate(entries)
        ),
        p=_matrix(frame, said, entry, place, [json.loads(row[3]).get("aggregate") == DEFAULT for row in entries]),
    )


def _current_runs(database: Database, arena: str) -> set[str] | None:
    """Return the ids of the runs in the arena's current spec; None if it is an older version's and no longer parses."""
    rows = database.read("select spec from arena where name = ?", (arena,))
    try:
        return {run.id for (spec,) in rows for run in arena_from_json(json.loads(spec)).runs.values()}
    except InputError:
        return None


def _last_answers(asked: MomentArrays, entry: Ints, moment: Ints) -> dict[int, str]:
    """Map the index of each entry to one second after the last moment that it answered."""
    found: dict[int, str] = {}
    for one in np.unique(entry):
        answered = moment[(entry == one) & (moment >= 0)]
        if len(answered):
            found[int(one)] = str(asked.taken_at[answered].max() + np.timedelta64(1, "s"))
    return found


def _matrix(frame: ArenaTable, said: "ForecastColumns", entry: Ints, place: Ints, learns: Sequence[bool]) -> Floats:
    """Return the probabilities as entries × markets, with NaN where there is no forecast.

    Trials are averaged or, if the entry's spec says so, combined by a rule learned from the entry's own past.
    """
    markets, entries = len(frame.markets), len(learns)
    # Markets of each moment; 0 for the place −1.
    sizes = np.append(np.bincount(frame.markets.moment, minlength=len(frame.moments)), 0)
    moment = place[np.minimum(said.ids % PACKED, len(place) - 1)]
    # Of moments that are not scored, and answers that do not fit their moment, nothing is kept.
    fits = (moment >= 0) & (said.sizes == sizes[moment]) & (said.sizes > 0)
    length = said.sizes[fits]
    first = entry[fits] * markets + frame.starts[moment[fits]]
    # The places of one forecast follow each other: steps of one, and a leap from each forecast to the next.
    ends = np.cumsum(length)
    steps = np.arange(ends[-1] if len(ends) else 0)
    at, p = steps + np.repeat(first - (ends - length), length), said.p
    if not fits.all():
        start = (np.cumsum(said.sizes) - said.sizes)[fits]
        p = p[steps + np.repeat(start - (ends - length), length)]
    matrix = np.full(entries * markets, np.nan)
    if said.trials == 1:  # Every place occurs once.
        matrix[at] = p
    else:
        times = np.bincount(at, minlength=len(matrix))
        np.divide(group_sums(at, p, len(matrix)), times, out=matrix, where=times > 0)
    matrix = matrix.reshape(entries, markets)
    for one in np.flatnonzero(learns):
        own = at // markets == one
        if own.any():
            matrix[one] = _taught(frame, _trials(at[own] % markets, p[own], markets), matrix[one])
    return matrix


def _trials(market: Ints, p: Floats, markets: int) -> Floats:
    """Return the forecasts as trials × markets, with NaN where a trial has none."""
    order = np.argsort(market, kind="stable")
    number = np.arange(len(market)) - np.searchsorted(market[order], market[order])
    trials = np.full((int(number.max()) + 1, markets), np.nan)
    trials[number, market[order]] = p[order]
    return trials


def _taught(frame: ArenaTable, trials: Floats, mean: Floats) -> Floats:
    """Combine the trials of each moment by the default rule, learned from markets that had resolved before that day."""
    markets, moment = frame.markets, frame.markets.moment
    event, said = frame.moments.event[moment], ~np.isnan(mean)
    ids = np.array(frame.events.ids)[event]
    rows = TrialRows(
        trials=trials,
        question=ids,
        cluster=ids,
        due=frame.moments.taken_at[moment].astype("M8[D]"),
        target=np.array(markets.target),
        source=np.array(frame.events.platform.names)[frame.events.platform.codes[event]],
        subtype=np.full(len(markets), ""),
        kind=np.full(len(markets), "market"),
        horizon=frame.moments.hours[moment] / 24,
        price=markets.price,
        prior=np.full(len(markets), np.nan),
        price_age=np.zeros(len(markets)),
    )
    known = said & ~np.isnan(markets.outcome) & ~np.isnat(markets.known_at)
    examples = Examples(
        rows=rows.take(known),
        outcome=markets.outcome[known],
        known_on=markets.known_at[known].astype("M8[D]"),
        weight=np.ones(int(known.sum())),
    )
    p = np.full(len(markets), np.nan)
    p[said] = DefaultByDay(examples=examples).probabilities(rows.take(said))
    # Outcomes of which exactly one comes true sum to one in every trial, and so in what is made of them.
    whole, now, size = (group_sums(moment[said], x[said], len(frame.moments)) for x in (mean, p, np.ones(len(p))))
    exclusive = (np.abs(whole - 1) < ROUNDING) & (now > 0) & (size > 1)
    return np.where(exclusive[moment], p / np.where(now > 0, now, 1.0)[moment], p)


def _times(texts: Sequence[str | None]) -> Times:
    """Parse times, truncated to the second: one that compares as earlier than another certainly was."""
    return np.array([text and text[:19] for text in texts], "datetime64[s]")


# Arrays of an arena in a file between readings, with a head that says what they were made of.

CACHE_SCHEMA = 1
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class ArrayCache:
    """Arrays of an arena cached in one file; without a folder nothing is cached.

    Whoever reads it must check whether its content is still valid.
    """

    folder: Path | None
    database: Database
    arena: str
    part: str

    def load(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
        """Return the cached head and arrays of this very arena, or None."""
        if self.folder is None or not self._path(self.folder).exists():
            return None
        try:
            with np.load(self._path(self.folder), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                head = json.loads(arrays.pop("head").tobytes())
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return (head, arrays) if all(head.get(name) == value for name, value in self._whose().items()) else None

    def save(self, head: Mapping[str, Any], arrays: Arrays) -> None:
        """Replace the cached head and arrays."""
        if self.folder is None:
            return
        out = BytesIO()
        text = json.dumps({**self._whose(), **head}, ensure_ascii=False).encode()
        named: dict[str, Any] = {"head": np.frombuffer(text, np.uint8), **arrays}
        np.savez(out, **named)
        write_atomically(self._path(self.folder), out.getvalue())

    def _path(self, folder: Path) -> Path:
        mark = hashlib.sha256(f"{self.database.place}\0{self.arena}".encode()).hexdigest()[:16]
        return folder / f"{mark}-{self.part}.npz"

    def _whose(self) -> dict[str, Any]:
        created = self.database.read("select created from arena where name = ?", (self.arena,))
        return {
            "schema": CACHE_SCHEMA,
            "place": self.database.place,
            "arena": self.arena,
            "created": created[0][0] if created else "",
        }


# The moments that every entry was shown; what was shown at a moment never changes.
#
# Nearly all rows are wanted: `|| ''` keeps the database from looking up each of them in an index.
_MOMENTS = """
select id, event, taken_at, closes_at, targets, quotes from moment
where arena || '' = ? and state = 'ready' and targets is not null and taken_at is not null order by id"""
_MARK = "select count(*), coalesce(max(id), 0), coalesce(sum(id), 0) from moment where arena = ? and state = 'ready'"
_ARRAYS = ("event", "taken_at", "hours", "sizes", "quotes", "key", "place")


def _read_moments(database: Database, arena: str, keep: Path | None) -> tuple[MomentArrays, Ints]:
    """Return the moments that were asked, and an array that maps a moment's id to its index among them.

    The index is −1 for an id without one, and the array ends in −1.
    """
    cache = ArrayCache(folder=keep, database=database, arena=arena, part="asked")
    mark = [int(number) for number in database.read(_MARK, (arena,))[0]] if keep else []
    stored = cache.load()
    if stored is not None and stored[0].get("mark") == mark:
        head, arrays = stored
        keys = tuple(zip(*head["keys"], strict=True))
        named: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        return MomentArrays(events=tuple(head["events"]), keys=keys, **named), arrays["by_id"]
    rows = database.read(_MOMENTS, (arena,))
    ids, event, taken_at, closes_at, targets, quotes = zip(*rows, strict=True) if rows else ((),) * 6
    # One reading for all texts; many are equal.
    texts = list(dict.fromkeys(targets))
    parsed = dict(zip(texts, map(tuple, json.loads(f"[{','.join(texts)}]")), strict=True))
    shown, quoted = [parsed[text] for text in targets], [blob or b"" for blob in quotes]
    asked = moment_arrays(event, _times(taken_at), _times(closes_at), shown, quoted)
    by_id = np.full(max(ids, default=0) + 2, -1, np.int64)
    by_id[np.array(ids, np.int64)] = asked.place
    keys = [[event for event, _ in asked.keys], [target for _, target in asked.keys]]
    head = {"mark": mark, "events": asked.events, "keys": keys}
    cache.save(head, {name: getattr(asked, name) for name in _ARRAYS} | {"by_id": by_id})
    return asked, by_id


# The forecasts.

PACKED = 1_000_000_000
"""Two integers a and b below this number are packed into one as a·PACKED + b."""
PORTION = 100_000
"""Number of forecasts joined into one text: a few megabytes."""
WORTH_STORING = 20_000
"""Number of new forecasts below which the cache file is not rewritten."""
_FORECAST_ROWS = "from said where seq > ? and seq <= ?"
_OF_ARENA = " and entry in (select id from entry where arena = ?)"
# Ids, and dollars and seconds in millionths and thousandths, two to a number: half as many numbers to write and read.
_IDS = "entry * 1000000000 + moment"
_COST = "cast(round(dollars * 1000000) as {0}) * 1000000000 + cast(round(seconds * 1000) as {0})"
_JOINED = {
    False: f"""select group_concat({_IDS}), group_concat({_COST.format("integer")}),
    cast(group_concat(p, '') as blob), max(trial), max(seq) {_FORECAST_ROWS}""",
    True: f"""select string_agg(({_IDS})::text, ',' order by seq),
    string_agg(({_COST.format("bigint")})::text, ',' order by seq), string_agg(p, ''::bytea order by seq),
    max(trial), max(seq) {_FORECAST_ROWS}""",
}
"""The query by whether the database is a server, because SQLite and PostgreSQL share no function for this.

SQLite joins blobs byte by byte as if they were text, whatever they contain; the length is checked nevertheless.
"""
_LENGTHS = {
    False: f"select group_concat(coalesce(length(p), 0)) {_FORECAST_ROWS}",
    True: f"select string_agg(coalesce(length(p), 0)::text, ',' order by seq) {_FORECAST_ROWS}",
}
_COLUMNS = ("ids", "costs", "sizes", "p")


@dataclass(frozen=True, kw_only=True)
class ForecastColumns:
    """Forecasts as columns, in the order in which they were recorded."""

    ids: Ints
    """Entry id and moment id of each forecast, packed."""
    costs: Ints
    """Cost of each forecast in millionths of a dollar and its duration in milliseconds, packed."""
    sizes: Ints
    """Number of probabilities of each forecast."""
    p: Floats
    """The probabilities of all forecasts, concatenated."""
    trials: int
    """Largest number of trials of an entry at one moment."""
    last: int
    """Largest sequence number among them in the database."""


_NONE = np.empty(0, np.int64)
NO_FORECASTS = ForecastColumns(ids=_NONE, costs=_NONE, sizes=_NONE, p=np.empty(0), trials=1, last=0)


@dataclass(frozen=True, kw_only=True)
class ForecastReader:
    """Reads the forecasts of one arena."""

    database: Database
    arena: str
    keep: Path | None = None
    """Cache folder; None disables the cache."""

    def read(self, sizes: Ints) -> ForecastColumns:
        """Return all forecasts; `sizes` holds the number of targets by moment id."""
        cache = ArrayCache(folder=self.keep, database=self.database, arena=self.arena, part="said")
        stored, loaded = NO_FORECASTS, cache.load()
        if loaded is not None:
            head, arrays = loaded
            named: dict[str, Any] = {name: arrays[name] for name in _COLUMNS}
            kept = ForecastColumns(**named, trials=head["trials"], last=head["last"])
            stored = kept if self._begins_with(kept) else NO_FORECASTS
        found = _joined([stored, *self.after(stored.last, sizes)])
        if len(found.ids) - len(stored.ids) >= WORTH_STORING:
            head = {"trials": found.trials, "last": found.last}
            cache.save(head, {name: getattr(found, name) for name in _COLUMNS})
        return found

    def after(self, last: int, sizes: Ints) -> list[ForecastColumns]:
        """Return the forecasts recorded after sequence number `last`, in portions."""
        end = self.database.read("select coalesce(max(seq), 0) from said")[0][0]
        which, whose = self._which()
        found: list[ForecastColumns] = []
        for start in range(last, end, PORTION):
            values = (start, start + PORTION, *whose)
            ((ids, costs, p, trial, seq),) = self.database.read(_JOINED[self.database.shared] + which, values)
            if ids is None:
                continue
            at, raw = _numbers(ids), p or b""
            size = sizes[np.minimum(at % PACKED, len(sizes) - 1)]
            if 8 * size.sum() != len(raw):  # Some have no probabilities, or others than their moment has targets.
                ((lengths,),) = self.database.read(_LENGTHS[self.database.shared] + which, values)
                size = _numbers(lengths) // 8
            numbers = np.frombuffer(raw, "<f8")
            found.append(
                ForecastColumns(ids=at, costs=_numbers(costs), sizes=size, p=numbers, trials=trial + 1, last=seq)
            )
        return found

    def _which(self) -> tuple[str, tuple[str, ...]]:
        """Return an SQL condition for this arena's forecasts, and its values; empty if there is no other arena."""
        alone = self.database.read("select count(*) from arena")[0][0] == 1
        return ("", ()) if alone else (_OF_ARENA, (self.arena,))

    def _begins_with(self, stored: ForecastColumns) -> bool:
        """Return whether the database still begins with exactly these forecasts."""
        which, whose = self._which()
        rows = self.database.read(f"select count(*) {_FORECAST_ROWS}{which}", (0, stored.last, *whose))
        ends = self.database.read("select entry, moment, p from said where seq = ?", (stored.last,))
        if rows[0][0] != len(stored.ids) or not ends:
            return False
        entry, moment, p = ends[0]
        return entry * PACKED + moment == stored.ids[-1] and stored.p[-int(stored.sizes[-1]) :].tobytes() == bytes(p)


def _joined(parts: Sequence[ForecastColumns]) -> ForecastColumns:
    """Concatenate columns."""
    filled = [part for part in parts if len(part.ids)] or [NO_FORECASTS]
    if len(filled) == 1:
        return filled[0]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in filled]) for name in _COLUMNS}
    return ForecastColumns(**arrays, trials=max(part.trials for part in filled), last=max(part.last for part in filled))


def _numbers(text: str) -> Ints:
    return np.fromstring(text, np.int64, sep=",")
