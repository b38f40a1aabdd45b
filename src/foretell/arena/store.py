"""The tables of an arena, beside the store of runs: what was listed, asked, shown and forecast, and the outcomes."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from math import nan
from typing import Any, Literal, NamedTuple

from foretell.arena.select import PastSelection, Selection, SelectionRules, format_of, select
from foretell.data.markets.listing import ListedEvent
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.models.database.interface import Database, SqlRow, Statements, like_pattern
from foretell.questions.as_of import instant
from foretell.questions.codec import from_json, to_json
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.stored_rows import TRIAL_COLUMNS, stored_answer

SCHEMA_NAME = "arena"
MIGRATIONS = (
    """
    create table arena (name text primary key, spec text not null, created text not null);
    create table entry (
        id integer primary key, arena text not null, name text not null, run text not null, spec text not null,
        since text not null, unique (arena, name, run)
    );
    create table listed (
        arena text not null, event text not null, platform text not null, category text not null,
        format text not null, first_seen text not null, last_seen text not null, status text not null,
        closes_at text, volume real, decision text not null, reason text not null, decided_at text not null,
        settled integer not null default 0, body text not null, primary key (arena, event)
    );
    create table quote (
        arena text not null, event text not null, target text not null, at text not null,
        last real, yes_bid real, yes_ask real, no_ask real, volume real, primary key (arena, event, target, at)
    ) without rowid;
    create table moment (
        id integer primary key, arena text not null, event text not null, number integer not null,
        planned_at text not null, taken_at text, closes_at text, deadline text, state text not null,
        reason text not null default '', attempts integer not null default 0, over integer not null default 0,
        context text, targets text, quotes blob, unique (arena, event, number)
    );
    create index moment_by_state on moment (arena, state, over, planned_at);
    create table asked (moment integer primary key, question text not null);
    create table context (
        digest text primary key, at text not null, dollars real not null, story text not null, body text not null
    );
    create table outcome (
        arena text not null, event text not null, target text not null, outcome integer, payoff real,
        resolved_at text, provenance text not null, told_at text not null, primary key (arena, event, target)
    ) without rowid;
    create table said (
        seq integer primary key, entry integer not null, moment integer not null, trial integer not null,
        p blob not null, stated blob, at text not null, dollars real not null, seconds real not null,
        unique (moment, entry, trial)
    );
    create table tally (
        entry integer primary key, forecasts integer not null, dollars real not null, seconds real not null
    );
    """,
    # Lists and counts events without reading the stored questions beside them.
    "create index listed_by_decision on listed (arena, decision, category, settled, status, closes_at, event);",
)
"""Migrations, one for each version of the tables, in SQL that SQLite and PostgreSQL share. They never change.

`said` is compact so that leaderboards load fast: entry and moment are ids, and probabilities are little-endian
float64 in the order of the moment's `targets` (a JSON list of ids). `quotes` holds four float64 per target in the same
order: last, yes bid, yes ask, no ask; NaN where there is none. `tally` holds the totals of `said`.
"""


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _datetime_or_none(text: str | None) -> datetime | None:
    return None if text is None else instant(text)


def pack_floats(numbers: Sequence[float | None]) -> bytes:
    """Pack numbers as little-endian float64, with NaN for None."""
    return struct.pack(f"<{len(numbers)}d", *(float("nan") if number is None else number for number in numbers))


def pack_quotes(question: Question) -> bytes:
    """Pack the last price, yes bid, yes ask and no ask of every target."""
    shots = [target.snapshot for target in question.targets]
    names = ("last_price", "yes_bid", "yes_ask", "no_ask")
    return pack_floats([None if shot is None else getattr(shot, name) for shot in shots for name in names])


# The times at which events are asked about.

ForecastTimeState = Literal["planned", "taken", "ready", "missed", "dropped"]
"""State of a forecast time. `dropped` means that the event was over before that time."""
_FORECAST_TIME_COLUMNS = (
    "id, event, number, planned_at, taken_at, closes_at, deadline, state, reason, attempts, context, targets"
)
_PLAN = """
insert into moment (arena, event, number, planned_at, state) values (?, ?, ?, ?, 'planned')
on conflict (arena, event, number) do nothing"""
_TAKE = """
update moment set state = 'taken', taken_at = ?, closes_at = ?, deadline = ?, targets = ?, quotes = ?, reason = ''
where id = ? and state = 'planned'"""


class ForecastTime(NamedTuple):
    """A scheduled time at which the arena asks about an event."""

    id: int
    event: str
    number: int
    planned_at: datetime
    taken_at: datetime | None
    """When the question was asked, which is its date."""
    closes_at: datetime | None
    """When the event was expected to close, as known when it was asked."""
    deadline: datetime | None
    """Forecasts are rejected from this time on."""
    state: ForecastTimeState
    reason: str
    attempts: int
    context: str | None
    """Digest of the context that every entry is shown."""
    targets: tuple[str, ...]


class ForecastTimeTable:
    """The forecast times of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        self._db = database
        self._arena = arena

    def plan(self, event: str, number: int, at: datetime, *, on: Statements | None = None) -> None:
        """Plan a forecast time. Planning it again has no effect."""
        (on or self._db).write(_PLAN, (self._arena, event, number, at.isoformat()))

    def due(self, now: datetime) -> list[ForecastTime]:
        """Return forecast times that are due now or were asked but have no context yet, oldest first."""
        where = "state in ('planned', 'taken') and over = 0 and (planned_at <= ? or state = 'taken')"
        return self._read(f"{where} order by planned_at, id", now.isoformat())

    def ready(self) -> list[ForecastTime]:
        """Return forecast times that accept forecasts."""
        return self._read("state = 'ready' and over = 0 order by deadline, id")

    def of_event(self, event: str) -> list[ForecastTime]:
        """Return all forecast times of an event."""
        return self._read("event = ? order by number", event)

    def find(self, id: int) -> ForecastTime:
        """Return the forecast time with that id."""
        return self._read("id = ?", id)[0]

    def at(self, event: str, due: str) -> ForecastTime | None:
        """Return the forecast time whose question was asked at `due`, or None."""
        return next(iter(self._read("event = ? and taken_at = ?", event, due)), None)

    def next_due(self) -> datetime | None:
        """Return the next planned forecast time."""
        query = "select min(planned_at) from moment where arena = ? and state = 'planned'"
        return _datetime_or_none(self._db.read(query, (self._arena,))[0][0])

    def hours_to_close(self) -> list[float]:
        """Return the hours between each forecast time that was asked and the close of its event; NaN if unknown."""
        query = "select taken_at, closes_at from moment where arena = ? and taken_at is not null"
        return [
            nan if closes is None else (instant(closes) - instant(taken)).total_seconds() / 3600
            for taken, closes in self._db.read(query, (self._arena,))
        ]

    def counts(self) -> dict[str, int]:
        """Return the number of forecast times by state."""
        query = "select state, count(*) from moment where arena = ? group by state order by state"
        return dict(self._db.read(query, (self._arena,)))

    def reasons(self, state: ForecastTimeState) -> dict[str, int]:
        """Return the number of forecast times in a state by reason."""
        query = "select reason, count(*) from moment where arena = ? and state = ? group by reason order by 2 desc, 1"
        counts: dict[str, int] = {}
        for reason, n in self._db.read(query, (self._arena, state)):
            short = reason.partition(" (")[0]
            counts[short] = counts.get(short, 0) + n
        return counts

    def take(
        self, forecast_time: ForecastTime, question: Question, deadline: datetime, following: datetime | None
    ) -> ForecastTime:
        """Store the question as it is now and plan the next forecast time, in one transaction."""
        targets = json.dumps([target.id for target in question.targets], ensure_ascii=False)
        times = (question.due.isoformat(), _iso(question.closes_at), deadline.isoformat())

        def work(statements: Statements) -> None:
            if statements.write(_TAKE, (*times, targets, pack_quotes(question), forecast_time.id)):
                keep = "insert into asked values (?, ?) on conflict do nothing"
                statements.write(keep, (forecast_time.id, to_json(question)))
                self._plan_after(forecast_time, following, statements)

        self._db.together(work)
        return self.find(forecast_time.id)

    def miss(self, forecast_time: ForecastTime, reason: str, following: datetime | None) -> None:
        """Mark a forecast time as missed and plan the next one."""
        reason = f"{reason} ({forecast_time.reason})" if forecast_time.reason else reason

        def work(statements: Statements) -> None:
            update = "update moment set state = 'missed', reason = ? where id = ? and state in ('planned', 'taken')"
            statements.write(update, (reason, forecast_time.id))
            self._plan_after(forecast_time, following, statements)

        self._db.together(work)

    def _plan_after(self, forecast_time: ForecastTime, following: datetime | None, on: Statements) -> None:
        if following is not None:
            self.plan(forecast_time.event, forecast_time.number + 1, following, on=on)

    def question(self, id: int) -> Question:
        """Return the question that was asked at a forecast time."""
        return from_json(self._db.read("select question from asked where moment = ?", (id,))[0][0], Question)

    def titles(self, event: str) -> dict[int, str]:
        """Return the question's text at each forecast time that was asked, by id."""
        query = "select id, question from moment join asked on asked.moment = id where arena = ? and event = ?"
        return {id: json.loads(question)["text"] for id, question in self._db.read(query, (self._arena, event))}

    def add_context(self, id: int, digest: str) -> None:
        """Record the context of a forecast time, which makes it ready for forecasts."""
        update = "update moment set state = 'ready', context = ?, reason = '' where id = ? and state = 'taken'"
        self._db.write(update, (digest, id))

    def record_failure(self, id: int, reason: str) -> None:
        """Record a failed attempt and its reason. It will be retried."""
        self._db.write("update moment set attempts = attempts + 1, reason = ? where id = ?", (reason[:500], id))

    def drop(self, event: str, reason: str, now: datetime) -> None:
        """Drop the planned forecast times of an event that is over, and end those that still accept forecasts."""
        update = "update moment set state = 'dropped', reason = ? where arena = ? and event = ? and state = 'planned'"
        self._db.write(update, (reason, self._arena, event))
        shorten = """
        update moment set deadline = ? where arena = ? and event = ? and state in ('taken', 'ready') and deadline > ?"""
        self._db.write(shorten, (now.isoformat(), self._arena, event, now.isoformat()))

    def replan(self, forecast_time: ForecastTime, at: datetime | None, reason: str) -> None:
        """Move a planned forecast time because the close was moved, or drop it if `at` is None."""
        if at is None:
            update = "update moment set state = 'dropped', reason = ? where id = ? and state = 'planned'"
            self._db.write(update, (reason, forecast_time.id))
        else:
            update = "update moment set planned_at = ? where id = ? and state = 'planned'"
            self._db.write(update, (at.isoformat(), forecast_time.id))

    def close(self, id: int) -> None:
        """Mark a forecast time as over. Nothing more is recorded about it."""
        self._db.write("update moment set over = 1 where id = ? and state = 'ready'", (id,))

    def _read(self, where: str, *values: object) -> list[ForecastTime]:
        query = f"select {_FORECAST_TIME_COLUMNS} from moment where arena = ? and {where}"
        rows = self._db.read(query, (self._arena, *values))
        return [
            ForecastTime._make(
                (
                    *(id, event, number, instant(planned), *map(_datetime_or_none, (taken, closes, deadline))),
                    *(state, reason, attempts, context, tuple(json.loads(targets or "[]"))),
                )
            )
            for id, event, number, planned, taken, closes, deadline, state, reason, attempts, context, targets in rows
        ]


# Probabilities of forecasts in compact form, so that leaderboards load fast. The store of runs has the full forecasts.

ForecastKey = tuple[int, int, int]
"""Entry id, forecast time id and trial."""
_ADD_FORECAST = """
insert into said (entry, moment, trial, p, stated, at, dollars, seconds) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing"""
_NOT_ADDED = f"""
select m.id, m.targets, e.id, {", ".join(f"c.{column}" for column in TRIAL_COLUMNS)}
from moment m join entry e on e.arena = m.arena
join cell c on c.run = e.run and c.question = m.event and c.due = m.taken_at
where m.arena = ? and m.state = 'ready' and m.over = 0 and c.forecast is not null
    and not exists (select 1 from said s where s.moment = m.id and s.entry = e.id and s.trial = c.trial)"""
_FOR_READY = """
select s.moment, s.entry, s.trial from moment m join said s on s.moment = m.id
where m.arena = ? and m.state = 'ready' and m.over = 0"""
_ADD_TOTALS = """
insert into tally values (?, 1, ?, ?) on conflict (entry) do update set forecasts = tally.forecasts + 1,
    dollars = tally.dollars + excluded.dollars, seconds = tally.seconds + excluded.seconds"""


class ForecastNumbers:
    """The probabilities of one arena's forecasts."""

    def __init__(self, database: Database, arena: str) -> None:
        self._db = database
        self._arena = arena

    def add(self, which: ForecastKey, targets: Sequence[str], forecast: Forecast, at: datetime) -> None:
        """Record a forecast. Recording it again has no effect."""
        self._note([_forecast_row(which, targets, forecast, at)])

    def catch_up(self, at: datetime) -> int:
        """Record forecasts that the store of runs has and this table lacks, and return how many.

        Forecast times that are over are left out.
        """
        rows: list[SqlRow] = []
        for forecast_time, targets, entry, *row in self._db.read(_NOT_ADDED, (self._arena,)):
            forecast = stored_answer(tuple(row), self._db.place)
            assert isinstance(forecast, Forecast)
            rows.append(_forecast_row((entry, forecast_time, row[3]), json.loads(targets), forecast, at))
        if rows:
            self._note(rows)
        return len(rows)

    def _note(self, rows: Sequence[SqlRow]) -> None:
        def work(statements: Statements) -> None:
            for row in rows:
                if statements.write(_ADD_FORECAST, row):
                    statements.write(_ADD_TOTALS, (row[0], *row[-2:]))

        # Serialised, so that a reader that continues from the last `seq` it saw misses no row.
        self._db.together(work, alone=f"said/{self._arena}")

    def for_ready(self) -> set[tuple[int, int, int]]:
        """Return the forecast time, entry and trial of forecasts whose forecast time is still open."""
        return {(id, entry, trial) for id, entry, trial in self._db.read(_FOR_READY, (self._arena,))}

    def last(self) -> int:
        """Return the number of the last forecast of all arenas."""
        return self._db.read("select coalesce(max(seq), 0) from said")[0][0]


def _forecast_row(which: ForecastKey, targets: Sequence[str], forecast: Forecast, at: datetime) -> SqlRow:
    stated = None if forecast.stated is None else pack_floats([forecast.stated[target] for target in targets])
    p = pack_floats([forecast.p[target] for target in targets])
    return (*which, p, stated, at.isoformat(), forecast.usage.worth, forecast.usage.seconds)


# Entries, events, contexts and outcomes.

_ENTRIES = """
select id, name, run, spec, since, forecasts, dollars, seconds from entry left join tally on tally.entry = entry.id
where arena = ? order by id"""
_SELECTED = """
select event, platform, category, status, closes_at, settled, body from listed
where arena = ? and decision = 'selected'"""
_ANSWERS = f"""
select e.name, {", ".join(f"c.{column}" for column in TRIAL_COLUMNS)} from entry e join cell c on c.run = e.run
where e.arena = ? and c.question = ? and c.due = ? order by e.id, c.trial"""
_CONTEXTS = """
select count(*) from context where digest in (
    select context from moment where arena = ? and context is not null)"""
_LIST = """
insert into listed (arena, event, platform, category, format, first_seen, last_seen, status, closes_at, volume,
    decision, reason, decided_at, body)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (arena, event) do update set last_seen = excluded.last_seen, status = excluded.status,
    closes_at = excluded.closes_at, volume = excluded.volume, decision = excluded.decision, reason = excluded.reason,
    decided_at = excluded.decided_at, body = excluded.body
where listed.decision = 'rejected'"""
_QUOTE = "insert into quote values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing"
_LAST_QUOTES = """
select target, last, yes_bid, yes_ask, no_ask, volume from quote q where arena = ? and event = ? and at = (
    select max(at) from quote n where n.arena = q.arena and n.event = q.event and n.target = q.target)"""
_OUTCOME = """
insert into outcome values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (arena, event, target) do update set outcome = excluded.outcome, payoff = excluded.payoff,
    resolved_at = excluded.resolved_at, provenance = excluded.provenance, told_at = excluded.told_at"""


class ArenaEntryRow(NamedTuple):
    """An entry as recorded, with the totals of its forecasts."""

    id: int
    name: str
    run: str
    spec: str
    """The spec of its run, as JSON."""
    since: datetime
    forecasts: int
    dollars: float
    seconds: float

    @property
    def settings(self) -> dict[str, Any]:
        """The spec of its run as plain data."""
        return json.loads(self.spec)


class SelectedEventRow(NamedTuple):
    """A selected event."""

    event: str
    platform: str
    category: str
    status: str
    closes_at: datetime
    settled: bool
    question: Question
    """The question as first listed."""

    @property
    def native(self) -> str:
        """The platform's own id of the event."""
        return self.event.removeprefix(f"{self.platform}/")


class ArenaStore:
    """The tables of one arena, created if they do not exist; any number of processes may have them open."""

    def __init__(self, database: Database, arena: str) -> None:
        database.migrate(SCHEMA_NAME, MIGRATIONS)
        self.db = database
        self.arena = arena
        self.forecast_times = ForecastTimeTable(database, arena)
        self.said = ForecastNumbers(database, arena)

    def begin(self, spec: str, now: datetime) -> None:
        """Record the arena as its file describes it now."""
        note = "insert into arena values (?, ?, ?) on conflict (name) do update set spec = excluded.spec"
        self.db.write(note, (self.arena, spec, now.isoformat()))

    def spec(self) -> str | None:
        """Return the arena as its file described it when it last began; None if it never has."""
        rows = self.db.read("select spec from arena where name = ?", (self.arena,))
        return rows[0][0] if rows else None

    def enter(self, name: str, run: str, spec: str, now: datetime) -> ArenaEntryRow:
        """Record an entry. Recording it again has no effect."""
        note = "insert into entry (arena, name, run, spec, since) values (?, ?, ?, ?, ?) on conflict do nothing"
        self.db.write(note, (self.arena, name, run, spec, now.isoformat()))
        return next(entry for entry in self.entries() if (entry.name, entry.run) == (name, run))

    def latest(self) -> datetime | None:
        """Return when an event was last read or asked, by the clock of the process that did it."""
        query = """
        select max(at) from (
            select max(last_seen) as at from listed where arena = ?
            union all select max(taken_at) from moment where arena = ?) as known"""
        ((at,),) = self.db.read(query, (self.arena, self.arena))
        return _datetime_or_none(at)

    def entries(self) -> list[ArenaEntryRow]:
        """Return all entries there have ever been."""
        return [
            ArenaEntryRow._make((*head, instant(since), *totals))
            for *head, since, forecasts, dollars, seconds in self.db.read(_ENTRIES, (self.arena,))
            for totals in [(forecasts or 0, dollars or 0.0, seconds or 0.0)]
        ]

    def decide(
        self, listed: Sequence[ListedEvent], rules: SelectionRules, now: datetime, *, volatility: Mapping[str, float]
    ) -> Selection:
        """Select among listed events, record the selection, and plan the first forecast times.

        Only one process at a time does this.
        """
        at = now.isoformat()

        def row(event: ListedEvent, decision: str, reason: str, body: str) -> SqlRow:
            head = (self.arena, event.question.id, event.platform, event.category, format_of(event), at, at)
            return (*head, event.status, _iso(event.closes_at), event.volume, decision, reason, at, body)

        def work(statements: Statements) -> Selection:
            query = "select event, category, format, decided_at from listed where arena = ? and decision = 'selected'"
            past = [
                PastSelection(event=event, category=category, format=format, at=instant(decided))
                for event, category, format, decided in statements.read(query, (self.arena,))
            ]
            selection = select(listed, rules, past, now, volatility=volatility)
            rows = [row(event, "selected", "", to_json(event.question)) for event in selection.chosen]
            rows += [row(event, "rejected", reason, "") for event, reason in selection.rejected]
            statements.write_many(_LIST, rows)
            for event in selection.chosen:
                self.forecast_times.plan(event.question.id, 0, now, on=statements)
            return selection

        return self.db.together(work, alone=f"arena/{self.arena}")

    def selected(self, *, unsettled: bool = False) -> dict[str, SelectedEventRow]:
        """Return selected events by id."""
        rows = self._selected(f"{' and settled = 0' if unsettled else ''} order by event")
        return {row.event: row for row in rows}

    def event(self, id: str) -> SelectedEventRow | None:
        """Return the selected event with that id, or None."""
        return next(iter(self._selected(" and event = ?", id)), None)

    def closing_next(self, most: int) -> list[SelectedEventRow]:
        """Return the open events that close next, at most so many."""
        return self._selected(" and settled = 0 and status = 'open' order by closes_at, event limit ?", most)

    def matching(self, name: str) -> list[SelectedEventRow]:
        """Return the selected events with that id, or whose id ends in it after a slash."""
        pattern = f"%/{like_pattern(name)}"
        return self._selected(" and (event = ? or event like ? escape '!') order by event", name, pattern)

    def _selected(self, where: str, *values: object) -> list[SelectedEventRow]:
        return [
            SelectedEventRow._make((*head, instant(closes), bool(settled), from_json(body, Question)))
            for *head, closes, settled, body in self.db.read(f"{_SELECTED}{where}", (self.arena, *values))
        ]

    def taken_up(self, event: str) -> datetime:
        """Return when an event was selected."""
        query = "select decided_at from listed where arena = ? and event = ?"
        return instant(self.db.read(query, (self.arena, event))[0][0])

    def seen(self, event: ListedEvent, now: datetime) -> None:
        """Record the current status, close and quotes of a selected event."""
        update = """
        update listed set last_seen = ?, status = ?, closes_at = coalesce(?, closes_at), volume = ?
        where arena = ? and event = ?"""
        values = (now.isoformat(), event.status, _iso(event.closes_at), event.volume)
        self.db.write(update, (*values, self.arena, event.question.id))
        self.add_quotes(event.question)

    def over(self, event: str, status: str) -> None:
        """Record the status of an event that can no longer be asked about."""
        self.db.write("update listed set status = ? where arena = ? and event = ?", (status, self.arena, event))

    def add_quotes(self, question: Question) -> None:
        """Store the quotes of a question's markets if they changed."""
        known = {row[0]: row[1:] for row in self.db.read(_LAST_QUOTES, (self.arena, question.id))}
        rows: list[SqlRow] = []
        for target in question.targets:
            if (shot := target.snapshot) is not None:
                values = (shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask, shot.volume)
                if known.get(target.id) != values:
                    rows.append((self.arena, question.id, target.id, shot.at.isoformat(), *values))
        if rows:
            self.db.write_many(_QUOTE, rows)

    def quotes(self, event: str) -> list[SqlRow]:
        """Return rows of target, time, last, yes bid, yes ask, no ask and volume, oldest first."""
        query = """
        select target, at, last, yes_bid, yes_ask, no_ask, volume from quote where arena = ? and event = ?
        order by at, target"""
        return self.db.read(query, (self.arena, event))

    def keep_context(self, built: ContextBuild, now: datetime) -> None:
        """Store a context under its digest, with the record of how it was built."""
        story = {name: value for name, value in built.to_dict().items() if name != "context"}
        row = (built.context.digest, now.isoformat(), built.usage.worth, json.dumps(story), built.context.to_json())
        keep = "insert into context (digest, at, dollars, story, body) values (?, ?, ?, ?, ?) on conflict do nothing"
        self.db.write(keep, row)

    def context(self, digest: str) -> PredictionContext | None:
        """Return the context with that digest, verified to be unchanged."""
        rows = self.db.read("select body from context where digest = ?", (digest,))
        return PredictionContext.from_json(rows[0][0], digest=digest) if rows else None

    def asked(self) -> list[tuple[Question, str]]:
        """Return every question that was asked with its context as JSON, in the order of events and forecast times."""
        query = """
        select asked.question, context.body from moment join asked on asked.moment = moment.id
        join context on context.digest = moment.context where moment.arena = ? order by moment.event, moment.number"""
        return [(from_json(question, Question), body) for question, body in self.db.read(query, (self.arena,))]

    def context_count(self) -> int:
        """Return the number of contexts of this arena."""
        return self.db.read(_CONTEXTS, (self.arena,))[0][0]

    def answers(self, event: str, asked_at: datetime) -> Iterator[tuple[str, Forecast | Failure]]:
        """Yield the answers to an event as asked at a time, each after the name of its entry, by entry and trial."""
        for name, *row in self.db.read(_ANSWERS, (self.arena, event, asked_at.isoformat())):
            yield name, stored_answer(tuple(row), self.db.place)

    def add_outcomes(self, results: Iterable[Resolution], now: datetime) -> None:
        """Store results. Amended results replace earlier ones."""
        rows: list[SqlRow] = []
        for resolution in results:
            values = (resolution.outcome, resolution.payoff, _iso(resolution.resolved_at), resolution.provenance)
            rows.append((self.arena, resolution.question_id, resolution.target_id, *values, now.isoformat()))
        if rows:
            self.db.write_many(_OUTCOME, rows)

    def outcomes(self, event: str | None = None) -> list[Resolution]:
        """Return the results of one event, or of all."""
        also, values = (" and event = ?", (self.arena, event)) if event else ("", (self.arena,))
        query = f"""
        select event, target, outcome, payoff, resolved_at, provenance from outcome where arena = ?{also}
        order by event, target"""
        return [
            Resolution(
                question_id=event, target_id=target, outcome=outcome, payoff=payoff, resolved_at=at, provenance=source
            )
            for event, target, outcome, payoff, at, source in self.db.read(query, values)
        ]

    def outcome_state(self) -> SqlRow:
        """Return a value that changes whenever a result is added, corrected or withdrawn, or an event is settled."""
        query = """
        select count(*), coalesce(max(told_at), ''), (select count(*) from listed where arena = ? and settled = 1)
        from outcome where arena = ?"""
        return self.db.read(query, (self.arena, self.arena))[0]

    def settled_since(self, when: datetime) -> list[SelectedEventRow]:
        """Return settled events with a result recorded since `when`."""
        events = "select event from outcome where arena = ? and told_at >= ?"
        return self._selected(f" and settled = 1 and event in ({events}) order by event", self.arena, when.isoformat())

    def withdraw(self, event: str) -> None:
        """Delete the results of an event whose platform withdrew them. The next listing shows whether it is open."""

        def work(statements: Statements) -> None:
            statements.write("delete from outcome where arena = ? and event = ?", (self.arena, event))
            update = "update listed set settled = 0, status = 'closed' where arena = ? and event = ?"
            statements.write(update, (self.arena, event))

        self.db.together(work)

    def settle(self, event: str) -> None:
        """Mark an event as settled, because all its results are known."""
        update = "update listed set settled = 1, status = 'resolved' where arena = ? and event = ?"
        self.db.write(update, (self.arena, event))
