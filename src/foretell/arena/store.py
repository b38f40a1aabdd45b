"""The book of an arena: what was listed and chosen, what was shown, and how it came out. Beside the store of runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foretell.arena.schedule import MomentTable, pack_floats
from foretell.arena.select import PastSelection, Selection, SelectionRules, format_of, select
from foretell.data.markets.listing import ListedEvent
from foretell.forecasters.prompt.builder import ContextBuild
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.questions.as_of import instant
from foretell.questions.codec import from_json, to_json
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

# Forecasts as bare numbers, for standings that are read at once; every one of them stands in the store as well.

ForecastKey = tuple[int, int, int]
"""Entry, moment and trial."""
_ADD_FORECAST = """
insert into said (entry, moment, trial, p, stated, at, dollars, seconds) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing"""
_NOT_ADDED = """
select m.id, m.targets, e.id, c.trial, c.forecast
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
_SPENT = """
select t.entry, t.forecasts, t.dollars, t.seconds from tally t join entry e on e.id = t.entry where e.arena = ?"""


@dataclass(frozen=True, kw_only=True)
class EntryTotals:
    """What one entry has said so far."""

    forecasts: int = 0
    dollars: float = 0.0
    seconds: float = 0.0


class ForecastNumbers:
    """Those of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        self._db = database
        self._arena = arena

    def say(self, which: ForecastKey, targets: Sequence[str], forecast: Forecast, at: datetime) -> None:
        """Note a forecast; the same again changes nothing."""
        self._note([_row(which, targets, forecast, at)])

    def catch_up(self, at: datetime) -> int:
        """Note what cells say about moments that are not over and nobody noted; how many."""
        rows = [
            _row((entry, moment, trial), json.loads(targets), from_json(body, Forecast), at)
            for moment, targets, entry, trial, body in self._db.read(_NOT_ADDED, (self._arena,))
        ]
        if rows:
            self._note(rows)
        return len(rows)

    def _note(self, rows: Sequence[SqlRow]) -> None:
        def work(statements: Statements) -> None:
            for row in rows:
                if statements.write(_ADD_FORECAST, row):
                    statements.write(_ADD_TOTALS, (row[0], *row[-2:]))

        # One after the other: whoever reads on from the last number it saw must not miss a smaller one.
        self._db.together(work, alone=f"said/{self._arena}")

    def for_ready(self) -> set[tuple[int, int, int]]:
        """Moment, entry and trial of what has been said about moments that still wait for forecasts."""
        return {(moment, entry, trial) for moment, entry, trial in self._db.read(_FOR_READY, (self._arena,))}

    def tallies(self) -> dict[int, EntryTotals]:
        """By entry."""
        return {
            entry: EntryTotals(forecasts=n, dollars=dollars, seconds=seconds)
            for entry, n, dollars, seconds in self._db.read(_SPENT, (self._arena,))
        }


def _row(which: ForecastKey, targets: Sequence[str], forecast: Forecast, at: datetime) -> SqlRow:
    stated = None if forecast.stated is None else pack_floats([forecast.stated[target] for target in targets])
    p = pack_floats([forecast.p[target] for target in targets])
    return (*which, p, stated, at.isoformat(), forecast.usage.dollars, forecast.usage.seconds)


# The tables of an arena, beside those of runs, in words that SQLite and PostgreSQL share.

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
)
"""Each entry brings the tables one version further; existing entries never change.

`said` is compact so that standings are read at once: an entry and a moment by number, and probabilities as float64,
little endian, in the order of the moment's `targets` (a JSON list of ids). `quotes` holds four float64 per target in
the same order: last, yes bid, yes ask, no ask; NaN where there is none. `tally` is what `said` adds up to.
"""


SELECTED, REJECTED = "selected", "rejected"
_LISTED = "event, platform, category, format, status, closes_at, decided_at, settled, body"
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


@dataclass(frozen=True, kw_only=True)
class ArenaEntryRow:
    """One who takes part, as noted."""

    id: int
    name: str
    run: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class SelectedEventRow:
    """An event that was taken up."""

    event: str
    platform: str
    category: str
    format: str
    status: str
    closes_at: datetime
    decided_at: datetime
    settled: bool
    question: Question
    """As it was listed first."""

    @property
    def native(self) -> str:
        """The platform's own id."""
        return self.event.removeprefix(f"{self.platform}/")


class ArenaStore:
    """Opens or creates the tables; every process may have them open. Everything in it is of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        database.migrate(SCHEMA_NAME, MIGRATIONS)
        self.db = database
        self.arena = arena
        self.moments = MomentTable(database, arena)
        self.said = ForecastNumbers(database, arena)

    def begin(self, spec: str, now: datetime) -> None:
        """Note the arena as its file describes it now."""
        note = "insert into arena values (?, ?, ?) on conflict (name) do update set spec = excluded.spec"
        self.db.write(note, (self.arena, spec, now.isoformat()))

    def enter(self, name: str, run: str, spec: str, now: datetime) -> ArenaEntryRow:
        """Note who takes part; the same again changes nothing."""
        note = "insert into entry (arena, name, run, spec, since) values (?, ?, ?, ?, ?) on conflict do nothing"
        self.db.write(note, (self.arena, name, run, spec, now.isoformat()))
        return next(entry for entry in self.entries() if (entry.name, entry.run) == (name, run))

    def entries(self) -> list[ArenaEntryRow]:
        """Everybody who ever took part."""
        query = "select id, name, run, since from entry where arena = ? order by id"
        return [
            ArenaEntryRow(id=id, name=name, run=run, since=instant(since))
            for id, name, run, since in self.db.read(query, (self.arena,))
        ]

    def decide(
        self, listed: Sequence[ListedEvent], rules: SelectionRules, now: datetime, *, volatility: Mapping[str, float]
    ) -> Selection:
        """Choose among what was listed and note it, one process after the other; the first moments are planned."""

        def work(statements: Statements) -> Selection:
            found = select(listed, rules, self._taken(statements), now, volatility=volatility)
            rows = [self._row(event, now, SELECTED, "") for event in found.chosen]
            rows += [self._row(event, now, REJECTED, reason) for event, reason in found.rejected]
            statements.write_many(_LIST, rows)
            for event in found.chosen:
                self.moments.plan(event.question.id, 0, now, on=statements)
            return found

        return self.db.together(work, alone=f"arena/{self.arena}")

    def _taken(self, statements: Statements) -> list[PastSelection]:
        query = "select event, category, format, decided_at from listed where arena = ? and decision = 'selected'"
        return [
            PastSelection(event=event, category=category, format=format, at=instant(at))
            for event, category, format, at in statements.read(query, (self.arena,))
        ]

    def _row(self, event: ListedEvent, now: datetime, decision: str, reason: str) -> SqlRow:
        at = now.isoformat()
        closes = None if event.closes_at is None else event.closes_at.isoformat()
        body = to_json(event.question) if decision == SELECTED else ""
        known = (self.arena, event.question.id, event.platform, event.category, format_of(event), at, at)
        return (*known, event.status, closes, event.volume, decision, reason, at, body)

    def selected(self, *, unsettled: bool = False) -> dict[str, SelectedEventRow]:
        """Events that were taken up, by id."""
        also = " and settled = 0" if unsettled else ""
        query = f"select {_LISTED} from listed where arena = ? and decision = 'selected'{also} order by event"
        return {row[0]: _listed(row) for row in self.db.read(query, (self.arena,))}

    def event(self, id: str) -> SelectedEventRow | None:
        """One of them."""
        query = f"select {_LISTED} from listed where arena = ? and event = ? and decision = 'selected'"
        rows = self.db.read(query, (self.arena, id))
        return _listed(rows[0]) if rows else None

    def called(self, name: str) -> list[SelectedEventRow]:
        """Those with that id, or whose id ends so."""
        query = f"""
        select {_LISTED} from listed
        where arena = ? and decision = 'selected' and (event = ? or event like ? escape '!') order by event"""
        plain = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return [_listed(row) for row in self.db.read(query, (self.arena, name, f"%/{plain}"))]

    def seen(self, event: ListedEvent, now: datetime) -> None:
        """Note how an event that was taken up stands now: status, close and quotes."""
        closes = None if event.closes_at is None else event.closes_at.isoformat()
        update = """
        update listed set last_seen = ?, status = ?, closes_at = coalesce(?, closes_at), volume = ?
        where arena = ? and event = ?"""
        self.db.write(update, (now.isoformat(), event.status, closes, event.volume, self.arena, event.question.id))
        self.add_quotes(event.question)

    def over(self, event: str, status: str) -> None:
        """Note that an event can no longer be asked about."""
        self.db.write("update listed set status = ? where arena = ? and event = ?", (status, self.arena, event))

    def add_quotes(self, question: Question) -> None:
        """Keep the quotes of a question's markets where they changed."""
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
        """Target, time, last, yes bid, yes ask, no ask and volume, oldest first."""
        query = """
        select target, at, last, yes_bid, yes_ask, no_ask, volume from quote where arena = ? and event = ?
        order by at, target"""
        return self.db.read(query, (self.arena, event))

    def keep_context(self, built: ContextBuild, now: datetime) -> None:
        """Keep a context under its digest, with the story of its making."""
        story = {name: value for name, value in built.to_dict().items() if name != "context"}
        row = (built.context.digest, now.isoformat(), built.usage.dollars, json.dumps(story), built.context.to_json())
        self.db.write(
            "insert into context (digest, at, dollars, story, body) values (?, ?, ?, ?, ?) on conflict do nothing", row
        )

    def context(self, digest: str) -> PredictionContext | None:
        """The context with that digest, unchanged since it was kept."""
        rows = self.db.read("select body from context where digest = ?", (digest,))
        return PredictionContext.from_json(rows[0][0], digest=digest) if rows else None

    def add_outcomes(self, found: Iterable[Resolution], now: datetime) -> int:
        """Keep results, also those that were amended; how many."""
        rows = [
            (
                *(self.arena, one.question_id, one.target_id, one.outcome, one.payoff),
                *(None if one.resolved_at is None else one.resolved_at.isoformat(), one.provenance, now.isoformat()),
            )
            for one in found
        ]
        if rows:
            self.db.write_many(_OUTCOME, rows)
        return len(rows)

    def outcomes(self, event: str | None = None) -> list[Resolution]:
        """Results, of one event or of all."""
        also, values = (" and event = ?", (self.arena, event)) if event else ("", (self.arena,))
        query = f"""
        select event, target, outcome, payoff, resolved_at, provenance from outcome where arena = ?{also}
        order by event, target"""
        return [
            Resolution(
                question_id=event, target_id=target, outcome=outcome, payoff=payoff, resolved_at=at, provenance=told
            )
            for event, target, outcome, payoff, at, told in self.db.read(query, values)
        ]

    def outcome_count(self) -> int:
        """How many results there are."""
        return self.db.read("select count(*) from outcome where arena = ?", (self.arena,))[0][0]

    def settle(self, event: str) -> None:
        """Everything about this event is known."""
        update = "update listed set settled = 1, status = 'resolved' where arena = ? and event = ?"
        self.db.write(update, (self.arena, event))


def _listed(row: SqlRow) -> SelectedEventRow:
    event, platform, category, format, status, closes, decided, settled, body = row
    return SelectedEventRow(
        event=event,
        platform=platform,
        category=category,
        format=format,
        status=status,
        closes_at=instant(closes),
        decided_at=instant(decided),
        settled=bool(settled),
        question=from_json(body, Question),
    )
