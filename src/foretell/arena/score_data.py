"""Read the forecasts of an arena as columns. The database joins them into long texts, and a file caches the arrays.

The table `said` only grows, so a file with its first rows stays valid. Each use checks this with the database. A year
of an arena has more than half a million forecasts. Reading them as rows would take longer than computing all scores.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from foretell.arena.coherent_forecasts import with_coherent_forecasts
from foretell.arena.listing import check_arena
from foretell.arena.spec import ArenaSpec, arena_from_json
from foretell.arena.store import ArenaStore, ForecastNumbers
from foretell.data.files import write_atomically
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints, group_sums
from foretell.models.database.interface import Database
from foretell.questions.errors import InputError
from foretell.runs.combine import DefaultByDay
from foretell.runs.spec import DEFAULT
from foretell.scoring.arena_table import (
    ArenaEntry,
    ArenaOutcomes,
    ArenaTable,
    ForecastTimeArrays,
    Times,
    arena_frame,
    forecast_time_arrays,
)

BASELINES = frozenset({"oracle"})
"""Forecasters that are not ranked as entries. The demo's oracle knows the true probabilities."""
_LISTED = "select event, platform, category from listed where arena = ? and decision = 'selected'"
ROUNDING = 1e-6
_OUTCOMES = "select event, target, outcome, coalesce(resolved_at, told_at) from outcome where arena = ?"


def read_arena_table(database: Database, arena: str, *, keep: Path | None = None) -> ArenaTable:
    """Return all forecasts and outcomes of an arena.

    `keep` is a cache folder. With it, the next call reads only new rows from the database.
    """
    check_arena(database, arena)
    entries = ArenaStore(database, arena).entries()
    forecast_times, place = _read_forecast_times(database, arena, keep)
    reader = ForecastReader(database=database, arena=arena, keep=keep)
    with ThreadPoolExecutor(1) as executor:
        # Look up the outcomes while the database joins forecasts.
        reading = executor.submit(reader.read, np.append(forecast_times.sizes, 0)[place])
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
        frame = arena_frame(arena, forecast_times, labels, known)
        forecasts = reading.result()
    by_id = np.full(max((row.id for row in entries), default=0) + 1, -1, np.int64)
    by_id[[row.id for row in entries]] = np.arange(len(entries))
    entry = by_id[forecasts.ids // PACKED]
    names = [row.name for row in entries]
    count = np.bincount(entry, minlength=len(names))
    dollars, seconds = (
        np.divide(group_sums(entry, cost, len(names)), count, out=np.full(len(names), np.nan), where=count > 0)
        for cost in (forecasts.costs // PACKED / 1e6, forecasts.costs % PACKED / 1e3)
    )
    spec = _current_spec(database, arena)
    current = None if spec is None else {run.id for run in spec.runs.values()}
    left = _last_answers(forecast_times, entry, place[forecasts.ids % PACKED])
    table = replace(
        frame,
        # If an entry's settings changed under the same name, each run is a separate entry.
        entries=tuple(
            ArenaEntry(
                name=row.name if names.count(row.name) == 1 else f"{row.name} ({row.run[:6]})",
                baseline=row.settings.get("forecaster") in BASELINES,
                forecasts=int(count[i]),
                dollars=float(dollars[i]),
                seconds=float(seconds[i]),
                since=row.since.isoformat()[:19],
                until="" if current is None or row.run in current else left.get(i, ""),
            )
            for i, row in enumerate(entries)
        ),
        p=_matrix(frame, forecasts, entry, place, [row.settings.get("aggregate") == DEFAULT for row in entries]),
    )
    return with_coherent_forecasts(table, database) if spec is not None and spec.coherent else table


def _current_spec(database: Database, arena: str) -> ArenaSpec | None:
    """Return the arena's current spec, or None if the stored spec does not parse."""
    try:
        return arena_from_json(json.loads(ArenaStore(database, arena).spec() or "{}"))
    except InputError:
        return None


def _last_answers(forecast_times: ForecastTimeArrays, entry: Ints, forecast_time: Ints) -> dict[int, str]:
    """Map the index of each entry to one second after the last forecast time that it answered."""
    last_answers: dict[int, str] = {}
    for index in np.unique(entry):
        answered = forecast_time[(entry == index) & (forecast_time >= 0)]
        if len(answered):
            last_answers[int(index)] = str(forecast_times.taken_at[answered].max() + np.timedelta64(1, "s"))
    return last_answers


def _matrix(
    frame: ArenaTable, forecasts: "ForecastColumns", entry: Ints, place: Ints, learns: Sequence[bool]
) -> Floats:
    """Return the probabilities as entries × markets, with NaN where there is no forecast.

    Trials are averaged or, if the entry's spec asks for it, combined by a rule fitted to the entry's own past.
    """
    markets, entries = len(frame.markets), len(learns)
    # Number of markets at each forecast time; 0 at index −1.
    sizes = np.append(np.bincount(frame.markets.forecast_time, minlength=len(frame.forecast_times)), 0)
    forecast_time = place[np.minimum(forecasts.ids % PACKED, len(place) - 1)]
    # Drop forecasts whose forecast time is not scored or has another number of markets.
    fits = (forecast_time >= 0) & (forecasts.sizes == sizes[forecast_time]) & (forecasts.sizes > 0)
    length = forecasts.sizes[fits]
    first = entry[fits] * markets + frame.starts[forecast_time[fits]]
    # The cells of one forecast are consecutive.
    ends = np.cumsum(length)
    steps = np.arange(ends[-1] if len(ends) else 0)
    cells, p = steps + np.repeat(first - (ends - length), length), forecasts.p
    if not fits.all():
        start = (np.cumsum(forecasts.sizes) - forecasts.sizes)[fits]
        p = p[steps + np.repeat(start - (ends - length), length)]
    matrix = np.full(entries * markets, np.nan)
    if forecasts.trials == 1:  # Every cell occurs once.
        matrix[cells] = p
    else:
        times = np.bincount(cells, minlength=len(matrix))
        np.divide(group_sums(cells, p, len(matrix)), times, out=matrix, where=times > 0)
    matrix = matrix.reshape(entries, markets)
    for index in np.flatnonzero(learns):
        own = cells // markets == index
        if own.any():
            matrix[index] = _combined(frame, _trials(cells[own] % markets, p[own], markets), matrix[index])
    return matrix


def _trials(market: Ints, p: Floats, markets: int) -> Floats:
    """Return the forecasts as trials × markets, with NaN where a trial has none."""
    order = np.argsort(market, kind="stable")
    number = np.arange(len(market)) - np.searchsorted(market[order], market[order])
    trials = np.full((int(number.max()) + 1, markets), np.nan)
    trials[number, market[order]] = p[order]
    return trials


def _combined(frame: ArenaTable, trials: Floats, mean: Floats) -> Floats:
    """Combine trials by the default rule, fitted to markets that had resolved before the day of the forecast."""
    markets, forecast_time = frame.markets, frame.markets.forecast_time
    event, answered = frame.forecast_times.event[forecast_time], ~np.isnan(mean)
    ids = np.array(frame.events.ids)[event]
    rows = TrialRows(
        trials=trials,
        question=ids,
        cluster=ids,
        due=frame.forecast_times.taken_at[forecast_time].astype("M8[D]"),
        target=np.array(markets.target),
        source=np.array(frame.events.platform.names)[frame.events.platform.codes[event]],
        subtype=np.full(len(markets), ""),
        kind=np.full(len(markets), "market"),
        horizon=frame.forecast_times.hours[forecast_time] / 24,
        price=markets.price,
        prior=np.full(len(markets), np.nan),
        price_age=np.zeros(len(markets)),
    )
    known = answered & ~np.isnan(markets.outcome) & ~np.isnat(markets.known_at)
    examples = Examples(
        rows=rows.take(known),
        outcome=markets.outcome[known],
        known_on=markets.known_at[known].astype("M8[D]"),
        weight=np.ones(int(known.sum())),
    )
    p = np.full(len(markets), np.nan)
    p[answered] = DefaultByDay(examples=examples).probabilities(rows.take(answered))
    # Exclusive outcomes sum to one in every trial, so the combined forecast is normalised too.
    mean_sum, p_sum, size = (
        group_sums(forecast_time[answered], x[answered], len(frame.forecast_times)) for x in (mean, p, np.ones(len(p)))
    )
    exclusive = (np.abs(mean_sum - 1) < ROUNDING) & (p_sum > 0) & (size > 1)
    return np.where(exclusive[forecast_time], p / np.where(p_sum > 0, p_sum, 1.0)[forecast_time], p)


def _times(texts: Sequence[str | None]) -> Times:
    """Parse times, truncated to the second, so that a time that compares as earlier is earlier."""
    return np.array([text and text[:19] for text in texts], "datetime64[s]")


# The cache file, with a header that identifies the data.

CACHE_SCHEMA = 1
Arrays = Mapping[str, npt.NDArray[Any]]


@frozen
class ArrayCache:
    """Arrays of an arena cached in one file. Without a folder nothing is cached.

    The caller must check whether the content is still valid.
    """

    folder: Path | None
    database: Database
    arena: str
    part: str

    def load(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
        """Return the cached header and arrays of this arena, or None."""
        if self.folder is None or not self._path(self.folder).exists():
            return None
        try:
            with np.load(self._path(self.folder), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                head = json.loads(arrays.pop("head").tobytes())
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return (head, arrays) if all(head.get(name) == value for name, value in self._identity().items()) else None

    def save(self, head: Mapping[str, Any], arrays: Arrays) -> None:
        """Replace the cached header and arrays."""
        if self.folder is None:
            return
        out = BytesIO()
        text = json.dumps({**self._identity(), **head}, ensure_ascii=False).encode()
        named: dict[str, Any] = {"head": np.frombuffer(text, np.uint8), **arrays}
        np.savez(out, **named)
        write_atomically(self._path(self.folder), out.getvalue())

    def _path(self, folder: Path) -> Path:
        digest = hashlib.sha256(f"{self.database.place}\0{self.arena}".encode()).hexdigest()[:16]
        return folder / f"{digest}-{self.part}.npz"

    def _identity(self) -> dict[str, Any]:
        created = self.database.read("select created from arena where name = ?", (self.arena,))
        return {
            "schema": CACHE_SCHEMA,
            "place": self.database.place,
            "arena": self.arena,
            "created": created[0][0] if created else "",
        }


# The forecast times. Their questions never change.
#
# Nearly all rows are wanted, so `|| ''` keeps the database from using an index.
_FORECAST_TIMES = """
select id, event, taken_at, closes_at, targets, quotes from moment
where arena || '' = ? and state = 'ready' and targets is not null and taken_at is not null order by id"""
_MARK = "select count(*), coalesce(max(id), 0), coalesce(sum(id), 0) from moment where arena = ? and state = 'ready'"
_ARRAYS = ("event", "taken_at", "hours", "sizes", "quotes", "key", "place")


def _read_forecast_times(database: Database, arena: str, keep: Path | None) -> tuple[ForecastTimeArrays, Ints]:
    """Return the forecast times that were asked, and an array that maps the id of a forecast time to its index.

    Unknown ids map to −1, and the array ends in −1.
    """
    cache = ArrayCache(folder=keep, database=database, arena=arena, part="asked")
    mark = [int(number) for number in database.read(_MARK, (arena,))[0]] if keep else []
    stored = cache.load()
    if stored is not None and stored[0].get("mark") == mark:
        head, arrays = stored
        keys = tuple(zip(*head["keys"], strict=True))
        named: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        return ForecastTimeArrays(events=tuple(head["events"]), keys=keys, **named), arrays["by_id"]
    rows = database.read(_FORECAST_TIMES, (arena,))
    ids, event, taken_at, closes_at, targets, quotes = zip(*rows, strict=True) if rows else ((),) * 6
    # Parse all distinct texts at once, because many are equal.
    texts = list(dict.fromkeys(targets))
    parsed = dict(zip(texts, map(tuple, json.loads(f"[{','.join(texts)}]")), strict=True))
    shown, quoted = [parsed[text] for text in targets], [blob or b"" for blob in quotes]
    forecast_times = forecast_time_arrays(event, _times(taken_at), _times(closes_at), shown, quoted)
    by_id = np.full(max(ids, default=0) + 2, -1, np.int64)
    by_id[np.array(ids, np.int64)] = forecast_times.place
    keys = [[event for event, _ in forecast_times.keys], [target for _, target in forecast_times.keys]]
    head = {"mark": mark, "events": forecast_times.events, "keys": keys}
    cache.save(head, {name: getattr(forecast_times, name) for name in _ARRAYS} | {"by_id": by_id})
    return forecast_times, by_id


# The forecasts.

PACKED = 1_000_000_000
"""Two integers a and b below this number are packed into one as a·PACKED + b."""
PORTION = 100_000
"""Number of forecasts joined into one text: a few megabytes."""
WORTH_STORING = 20_000
"""Number of new forecasts below which the cache file is not rewritten."""
_FORECAST_ROWS = "from said where seq > ? and seq <= ?"
_OF_ARENA = " and entry in (select id from entry where arena = ?)"
# Each number packs two ids, or millionths of dollars and thousandths of seconds, which halves the text.
_IDS = "entry * 1000000000 + moment"
_COST = "cast(round(dollars * 1000000) as bigint) * 1000000000 + cast(round(seconds * 1000) as bigint)"
_COLUMNS = ("ids", "costs", "sizes", "p")


@frozen
class ForecastColumns:
    """Forecasts as columns, in the order in which they were recorded."""

    ids: Ints
    """Entry id and forecast time id of each forecast, packed."""
    costs: Ints
    """Cost of each forecast in millionths of a dollar and its duration in milliseconds, packed."""
    sizes: Ints
    """Number of probabilities of each forecast."""
    p: Floats
    """The probabilities of all forecasts, concatenated."""
    trials: int
    """Largest number of trials of an entry at one forecast time."""
    last: int
    """Largest sequence number among them in the database."""


_NONE = np.empty(0, np.int64)
NO_FORECASTS = ForecastColumns(ids=_NONE, costs=_NONE, sizes=_NONE, p=np.empty(0), trials=1, last=0)


@frozen
class ForecastReader:
    """Reads the forecasts of one arena."""

    database: Database
    arena: str
    keep: Path | None = None
    """Cache folder; None disables the cache."""

    def read(self, sizes: Ints) -> ForecastColumns:
        """Return all forecasts; `sizes` holds the number of targets by forecast time id."""
        cache = ArrayCache(folder=self.keep, database=self.database, arena=self.arena, part="said")
        stored, loaded = NO_FORECASTS, cache.load()
        if loaded is not None:
            head, arrays = loaded
            named: dict[str, Any] = {name: arrays[name] for name in _COLUMNS}
            cached = ForecastColumns(**named, trials=head["trials"], last=head["last"])
            stored = cached if self._begins_with(cached) else NO_FORECASTS
        joined = _joined([stored, *self.after(stored.last, sizes)])
        if len(joined.ids) - len(stored.ids) >= WORTH_STORING:
            head = {"trials": joined.trials, "last": joined.last}
            cache.save(head, {name: getattr(joined, name) for name in _COLUMNS})
        return joined

    def after(self, last: int, sizes: Ints) -> list[ForecastColumns]:
        """Return the forecasts recorded after sequence number `last`, in portions."""
        database, end = self.database, ForecastNumbers(self.database, self.arena).last()
        which, whose = self._which()
        ids_and_costs = ", ".join(database.concatenated(numbers, "seq") for numbers in (_IDS, _COST))
        probabilities = database.concatenated_bytes("p", "seq")
        joined = f"select {ids_and_costs}, {probabilities}, max(trial), max(seq) {_FORECAST_ROWS}{which}"
        portions: list[ForecastColumns] = []
        for start in range(last, end, PORTION):
            values = (start, start + PORTION, *whose)
            ((ids, costs, p, trial, seq),) = database.read(joined, values)
            if ids is None:
                continue
            at, raw = _numbers(ids), p or b""
            size = sizes[np.minimum(at % PACKED, len(sizes) - 1)]
            if 8 * size.sum() != len(raw):  # Some forecasts have another number of probabilities than targets.
                lengths = database.concatenated("coalesce(length(p), 0)", "seq")
                ((lengths,),) = database.read(f"select {lengths} {_FORECAST_ROWS}{which}", values)
                size = _numbers(lengths) // 8
            numbers = np.frombuffer(raw, "<f8")
            portions.append(
                ForecastColumns(ids=at, costs=_numbers(costs), sizes=size, p=numbers, trials=trial + 1, last=seq)
            )
        return portions

    def _which(self) -> tuple[str, tuple[str, ...]]:
        """Return an SQL condition for this arena's forecasts, and its values; empty if there is no other arena."""
        only_arena = self.database.read("select count(*) from arena")[0][0] == 1
        return ("", ()) if only_arena else (_OF_ARENA, (self.arena,))

    def _begins_with(self, stored: ForecastColumns) -> bool:
        """Return whether the database still begins with exactly these forecasts."""
        which, whose = self._which()
        rows = self.database.read(f"select count(*) {_FORECAST_ROWS}{which}", (0, stored.last, *whose))
        ends = self.database.read("select entry, moment, p from said where seq = ?", (stored.last,))
        if rows[0][0] != len(stored.ids) or not ends:
            return False
        entry, forecast_time, p = ends[0]
        return entry * PACKED + forecast_time == stored.ids[-1] and stored.p[
            -int(stored.sizes[-1]) :
        ].tobytes() == bytes(p)


def _joined(parts: Sequence[ForecastColumns]) -> ForecastColumns:
    """Concatenate columns."""
    filled = [part for part in parts if len(part.ids)] or [NO_FORECASTS]
    if len(filled) == 1:
        return filled[0]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in filled]) for name in _COLUMNS}
    return ForecastColumns(**arrays, trials=max(part.trials for part in filled), last=max(part.last for part in filled))


def _numbers(text: str) -> Ints:
    return np.fromstring(text, np.int64, sep=",")
