"""Forecasts as columns: joined by the database into long texts, made into arrays, and kept in a file between readings.

`said` only ever grows, so a file that holds its first rows stays right; whether it does is asked of the database each
time it is used.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from foretell.data.atomic_file import write_atomically
from foretell.metrics.arrays import Floats, Ints, group_sums
from foretell.models.database.interface import Database, SqlRow
from foretell.questions.errors import InputError
from foretell.scoring.arena_table import (
    ArenaEntry,
    ArenaOutcomes,
    ArenaTable,
    EventKinds,
    MomentArrays,
    MomentColumns,
    Times,
    arena_frame,
    moment_arrays,
)

# Arrays of an arena in a file between readings, with a head that says what they were made of.

CACHE_SCHEMA = 1
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class ArrayCache:
    """One file; without a folder nothing is kept. Whether what it holds is still right is for its reader to ask."""

    folder: Path | None
    database: Database
    arena: str
    part: str

    def load(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
        """What was kept of this very arena, or None."""
        if self.folder is None or not self._path(self.folder).exists():
            return None
        try:
            with np.load(self._path(self.folder), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                head = json.loads(arrays.pop("head").tobytes())
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        mine = self._whose()
        return (head, arrays) if all(head.get(name) == value for name, value in mine.items()) else None

    def save(self, head: Mapping[str, Any], arrays: Arrays) -> None:
        """Keep these instead."""
        if self.folder is None:
            return
        out = BytesIO()
        told = json.dumps({**self._whose(), **head}, ensure_ascii=False).encode()
        named: dict[str, Any] = {"head": np.frombuffer(told, np.uint8), **arrays}
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


# The moments of an arena out of its tables; what was shown at a moment is never changed.

# Nearly all rows are wanted: `|| ''` keeps the database from looking up each of them in an index.
_MOMENTS = """
select id, event, taken_at, closes_at, targets, quotes from moment
where arena || '' = ? and state = 'ready' and targets is not null and taken_at is not null order by id"""
_MARK = "select count(*), coalesce(max(id), 0), coalesce(sum(id), 0) from moment where arena = ? and state = 'ready'"
_ARRAYS = ("event", "taken_at", "hours", "sizes", "quotes", "key", "place")


@dataclass(frozen=True, kw_only=True)
class MomentReader:
    """Reads the moments of one arena that everybody was shown."""

    database: Database
    arena: str
    keep: Path | None = None
    """Folder in which what was read is kept; None keeps nothing."""

    def read(self) -> tuple[MomentArrays, Ints]:
        """The askings, and by the id of a moment its place among them: −1 where it has none, and at the end."""
        kept = ArrayCache(folder=self.keep, database=self.database, arena=self.arena, part="asked")
        mark = [int(number) for number in self.database.read(_MARK, (self.arena,))[0]] if self.keep else []
        found = kept.load()
        if found is not None and found[0].get("mark") == mark:
            return _unpacked(*found)
        asked, by_id = self._from_rows()
        head = {"mark": mark, "events": asked.events, "keys": _json_lists(asked)}
        kept.save(head, {name: getattr(asked, name) for name in _ARRAYS} | {"by_id": by_id})
        return asked, by_id

    def _from_rows(self) -> tuple[MomentArrays, Ints]:
        rows = self.database.read(_MOMENTS, (self.arena,))
        ids, event, taken_at, closes_at, targets, quotes = zip(*rows, strict=True) if rows else ((),) * 6
        parsed = _targets(targets)
        asked = moment_arrays(
            MomentColumns(
                event=event,
                taken_at=times(taken_at),
                closes_at=times(closes_at),
                targets=[parsed[text] for text in targets],
                quotes=[blob or b"" for blob in quotes],
            )
        )
        by_id = np.full(max(ids, default=0) + 2, -1, np.int64)
        by_id[np.array(ids, np.int64)] = asked.place
        return asked, by_id


def times(texts: Sequence[str | None]) -> Times:
    """To the second, downwards: what was known before a moment then certainly was."""
    return np.array([text and text[:19] for text in texts], "datetime64[s]")


def _targets(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Ids by the text they are kept as; one reading for all texts."""
    found = list(dict.fromkeys(texts))
    return dict(zip(found, map(tuple, json.loads(f"[{','.join(found)}]")), strict=True))


def _json_lists(asked: MomentArrays) -> list[list[str]]:
    return [[event for event, _ in asked.keys], [target for _, target in asked.keys]]


def _unpacked(head: dict[str, Any], arrays: dict[str, Any]) -> tuple[MomentArrays, Ints]:
    events, targets = head["keys"]
    keys = tuple(zip(events, targets, strict=True))
    asked = MomentArrays(events=tuple(head["events"]), keys=keys, **{name: arrays[name] for name in _ARRAYS})
    return asked, arrays["by_id"]


PACKED = 1_000_000_000
"""Two whole numbers a and b below it travel as a·PACKED + b."""
PORTION = 100_000
"""Forecasts joined to one text: some megabytes."""
WORTH_STORING = 20_000
"""New forecasts below which the file is left as it is."""
_FORECAST_ROWS = "from said where seq > ? and seq <= ?"
_OF_ARENA = " and entry in (select id from entry where arena = ?)"
# Ids, and dollars and seconds in millionths and thousandths, two to a number: half as many numbers to write and read.
_IDS = "entry * 1000000000 + moment"
_COST = "cast(round(dollars * 1000000) as {0}) * 1000000000 + cast(round(seconds * 1000) as {0})"
_JOINED = {
    False: f"""select group_concat({_IDS}), group_concat({_COST.format("integer")}),
    cast(group_concat({{0}}, '') as blob), max(trial), max(seq) {_FORECAST_ROWS}""",
    True: f"""select string_agg(({_IDS})::text, ',' order by seq),
    string_agg(({_COST.format("bigint")})::text, ',' order by seq), string_agg({{0}}, ''::bytea order by seq),
    max(trial), max(seq) {_FORECAST_ROWS}""",
}
"""By whether the database is a server: SQLite and PostgreSQL have no word in common for this. SQLite joins blobs byte
by byte as if they were text, whatever is in them; the length is checked all the same."""
_LENGTHS = {
    False: f"select group_concat(coalesce(length({{0}}), 0)) {_FORECAST_ROWS}",
    True: f"select string_agg(coalesce(length({{0}}), 0)::text, ',' order by seq) {_FORECAST_ROWS}",
}


@dataclass(frozen=True, kw_only=True)
class ForecastColumns:
    """Forecasts in the order they were noted."""

    ids: Ints
    """Entry and moment of each, packed."""
    costs: Ints
    """Millionths of a dollar and thousandths of a second, packed."""
    sizes: Ints
    """Probabilities of each."""
    p: Floats
    """All of them one after the other."""
    trials: int
    """Most trials of one entry at one moment."""
    last: int
    """The largest number among them in the database."""


NO_FORECASTS = ForecastColumns(
    ids=np.empty(0, np.int64),
    costs=np.empty(0, np.int64),
    sizes=np.empty(0, np.int64),
    p=np.empty(0),
    trials=1,
    last=0,
)


@dataclass(frozen=True, kw_only=True)
class ForecastReader:
    """Reads the forecasts of one arena."""

    database: Database
    arena: str
    keep: Path | None = None
    """Folder in which what was read is kept; None keeps nothing."""

    def read(self, sizes: Ints) -> ForecastColumns:
        """All forecasts; `sizes` are the numbers of targets by the id of a moment."""
        kept = self._kept()
        found = joined_text_arrays([kept, *self.after(kept.last, "p", sizes)])
        if len(found.ids) - len(kept.ids) >= WORTH_STORING:
            arrays = {"ids": found.ids, "costs": found.costs, "sizes": found.sizes, "p": found.p}
            self._file.save({"trials": found.trials, "last": found.last}, arrays)
        return found

    def after(self, last: int, column: str, sizes: Ints) -> list[ForecastColumns]:
        """What was noted after a number, some thousands at a time."""
        end = self.database.read("select coalesce(max(seq), 0) from said")[0][0]
        sql = _JOINED[self.database.shared].format(column) + self._which
        found: list[ForecastColumns] = []
        for start in range(last, end, PORTION):
            values = (start, start + PORTION, *self._whose)
            ((ids, costs, p, trial, seq),) = self.database.read(sql, values)
            if ids is None:
                continue
            at, raw = _numbers(ids), p or b""
            size = sizes[np.minimum(at % PACKED, len(sizes) - 1)]
            if 8 * size.sum() != len(raw):  # Some have no probabilities, or others than their moment has targets.
                ((lengths,),) = self.database.read(_LENGTHS[self.database.shared].format(column) + self._which, values)
                size = _numbers(lengths) // 8
            numbers = np.frombuffer(raw, "<f8")
            found.append(
                ForecastColumns(ids=at, costs=_numbers(costs), sizes=size, p=numbers, trials=trial + 1, last=seq)
            )
        return found

    @property
    def _alone(self) -> bool:
        return self.database.read("select count(*) from arena")[0][0] == 1

    @property
    def _which(self) -> str:
        return "" if self._alone else _OF_ARENA

    @property
    def _whose(self) -> tuple[str, ...]:
        return () if self._alone else (self.arena,)

    @property
    def _file(self) -> ArrayCache:
        return ArrayCache(folder=self.keep, database=self.database, arena=self.arena, part="said")

    def _kept(self) -> ForecastColumns:
        """What the file holds, if the database still begins with just that."""
        found = self._file.load()
        if found is None:
            return NO_FORECASTS
        head, arrays = found
        said = ForecastColumns(
            ids=arrays["ids"],
            costs=arrays["costs"],
            sizes=arrays["sizes"],
            p=arrays["p"],
            trials=head["trials"],
            last=head["last"],
        )
        return said if self._begins_with(said) else NO_FORECASTS

    def _begins_with(self, kept: ForecastColumns) -> bool:
        count = f"select count(*) {_FORECAST_ROWS}{self._which}"
        rows = self.database.read(count, (0, kept.last, *self._whose))
        ends = self.database.read("select entry, moment, p from said where seq = ?", (kept.last,))
        if rows[0][0] != len(kept.ids) or not ends:
            return False
        entry, moment, p = ends[0]
        return entry * PACKED + moment == kept.ids[-1] and kept.p[-int(kept.sizes[-1]) :].tobytes() == bytes(p)


def joined_text_arrays(parts: Sequence[ForecastColumns]) -> ForecastColumns:
    """One after the other."""
    filled = [part for part in parts if len(part.ids)] or [NO_FORECASTS]
    if len(filled) == 1:
        return filled[0]
    return ForecastColumns(
        ids=np.concatenate([part.ids for part in filled]),
        costs=np.concatenate([part.costs for part in filled]),
        sizes=np.concatenate([part.sizes for part in filled]),
        p=np.concatenate([part.p for part in filled]),
        trials=max(part.trials for part in filled),
        last=max(part.last for part in filled),
    )


def _numbers(text: str) -> Ints:
    return np.fromstring(text, np.int64, sep=",")


# From forecasts as columns to the table of entries × markets.


@dataclass(frozen=True, kw_only=True)
class EntryCosts:
    """By entry."""

    forecasts: Ints
    dollars: Floats
    """Mean of a forecast; NaN without any."""
    seconds: Floats


@dataclass(frozen=True, kw_only=True)
class ForecastMatrix:
    """Where forecasts go."""

    frame: ArenaTable
    place: Ints
    """By the id of a moment its place in the frame; −1 where it has none, and always at the end."""
    entry: Mapping[int, int]
    """By the id of an entry its place."""

    @cached_property
    def _entry(self) -> Ints:
        found = np.full(max(self.entry, default=0) + 1, -1, np.int64)
        found[list(self.entry)] = list(self.entry.values())
        return found

    @cached_property
    def _sizes(self) -> Ints:
        """Markets of each moment; 0 for the place −1."""
        return np.append(np.bincount(self.frame.markets.moment, minlength=len(self.frame.moments)), 0)

    def table(self, said: ForecastColumns) -> Floats:
        """Entries × markets, trials averaged, NaN where nothing was said."""
        shape = (len(self.entry), len(self.frame.markets))
        at, p = self._cells(said)
        if said.trials == 1:  # Every place occurs once.
            once = np.full(shape, np.nan)
            once.reshape(-1)[at] = p
            return once
        times = np.bincount(at, minlength=shape[0] * shape[1])
        total = group_sums(at, p, shape[0] * shape[1])
        return np.divide(total, times, out=np.full(len(total), np.nan), where=times > 0).reshape(shape)

    def costs(self, said: ForecastColumns) -> EntryCosts:
        """What it cost."""
        n, entry = len(self.entry), self._entry[said.ids // PACKED]
        count = group_sums(entry, np.ones(len(entry)), n)
        dollars = group_sums(entry, said.costs // PACKED / 1e6, n)
        seconds = group_sums(entry, said.costs % PACKED / 1e3, n)
        dollars, seconds = (
            np.divide(total, count, out=np.full(n, np.nan), where=count > 0) for total in (dollars, seconds)
        )
        return EntryCosts(forecasts=count.astype(np.int64), dollars=dollars, seconds=seconds)

    def _cells(self, said: ForecastColumns) -> tuple[Ints, Floats]:
        """Places in the flat table of entries × markets, and the probabilities for them."""
        moment = self.place[np.minimum(said.ids % PACKED, len(self.place) - 1)]
        # Of moments that are not scored, and answers that do not fit their moment, nothing is kept.
        fits = (moment >= 0) & (said.sizes == self._sizes[moment]) & (said.sizes > 0)
        length = said.sizes[fits]
        first = self._entry[said.ids[fits] // PACKED] * len(self.frame.markets) + self.frame.starts[moment[fits]]
        # The places of one forecast follow each other: steps of one, and a leap from each forecast to the next.
        ends = np.cumsum(length)
        steps = np.arange(ends[-1] if len(ends) else 0)
        at = steps + np.repeat(first - (ends - length), length)
        if fits.all():
            return at, said.p
        start = (np.cumsum(said.sizes) - said.sizes)[fits]
        return at, said.p[steps + np.repeat(start - (ends - length), length)]


# Standings out of the tables of an arena, in a few statements whatever the number of forecasts.
#
# A year of an arena holds more than half a million forecasts. As rows they take longer to read than all scores take to
# compute, so the database joins them to a few long texts, and arrays are made of those.

_ENTRIES = "select id, name, run from entry where arena = ? order by id"
_LISTED = "select event, platform, category from listed where arena = ? and decision = 'selected'"
_OUTCOMES = "select event, target, outcome, coalesce(resolved_at, told_at) from outcome where arena = ?"


def read_arena_table(database: Database, arena: str, *, keep: Path | None = None) -> ArenaTable:
    """All forecasts and outcomes of an arena.

    `keep` is a folder for what was read, so that the next reading asks the database only for what is new.
    """
    entries = database.read(_ENTRIES, (arena,))
    if not entries and not database.read("select 1 from arena where name = ?", (arena,)):
        known = ", ".join(name for (name,) in database.read("select name from arena order by name"))
        raise InputError(f"there is no arena {arena!r} in {database.place}", hint=f"there are: {known or 'none'}")
    asked, place = MomentReader(database=database, arena=arena, keep=keep).read()
    sizes = np.append(asked.sizes, 0)[place]
    reader = ForecastReader(database=database, arena=arena, keep=keep)
    with ThreadPoolExecutor(1) as aside:
        # The database joins forecasts while we look up the outcomes.
        reading = aside.submit(reader.read, sizes)
        frame = arena_frame(arena, asked, _kinds(database, arena), _known(database, arena))
        said = reading.result()
    gathering = ForecastMatrix(frame=frame, place=place, entry={row[0]: code for code, row in enumerate(entries)})
    return replace(frame, entries=_named(entries, gathering.costs(said)), p=gathering.table(said))


def _kinds(database: Database, arena: str) -> EventKinds:
    listed = database.read(_LISTED, (arena,))
    return EventKinds(
        platform={event: platform for event, platform, _ in listed},
        category={event: category for event, _, category in listed},
    )


def _known(database: Database, arena: str) -> ArenaOutcomes:
    rows = database.read(_OUTCOMES, (arena,))
    return ArenaOutcomes(
        place={(row[0], row[1]): i for i, row in enumerate(rows)},
        outcome=np.array([row[2] for row in rows], np.float64),
        known_at=times([row[3] for row in rows]),
    )


def _named(entries: Sequence[SqlRow], costs: EntryCosts) -> tuple[ArenaEntry, ...]:
    """Names as written; where an entry's set-up was changed under its name, each run is an entry of its own."""
    names = [name for _, name, _ in entries]
    return tuple(
        ArenaEntry(
            name=name if names.count(name) == 1 else f"{name} ({run[:6]})",
            forecasts=int(costs.forecasts[i]),
            dollars=float(costs.dollars[i]),
            seconds=float(costs.seconds[i]),
        )
        for i, (_, name, run) in enumerate(entries)
    )
