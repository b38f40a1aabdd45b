"""The book of an arena: what was listed and chosen, what was shown, and how it came out. Beside the store of runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foretell.arena.live.moments import Moments
from foretell.arena.live.said import SaidRows
from foretell.arena.live.selection import Rules, Selection, Taken, format_of, select
from foretell.arena.live.tables import MIGRATIONS, PART
from foretell.forecasters.context.built import Built
from foretell.forecasters.context.context import Context
from foretell.llm.database.port import Database, Row, Statements
from foretell.questions.clock import instant
from foretell.questions.codec import from_json, to_json
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.sources.listing import ListedEvent

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
class EntryRow:
    """One who takes part, as noted."""

    id: int
    name: str
    run: str
    since: datetime


@dataclass(frozen=True, kw_only=True)
class ListedRow:
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


class Book:
    """Opens or creates the tables; every process may have them open. Everything in it is of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        database.migrate(PART, MIGRATIONS)
        self.db = database
        self.arena = arena
        self.moments = Moments(database, arena)
        self.said = SaidRows(database, arena)

    def begin(self, spec: str, now: datetime) -> None:
        """Note the arena as its file describes it now."""
        note = "insert into arena values (?, ?, ?) on conflict (name) do update set spec = excluded.spec"
        self.db.write(note, (self.arena, spec, now.isoformat()))

    def enter(self, name: str, run: str, spec: str, now: datetime) -> EntryRow:
        """Note who takes part; the same again changes nothing."""
        note = "insert into entry (arena, name, run, spec, since) values (?, ?, ?, ?, ?) on conflict do nothing"
        self.db.write(note, (self.arena, name, run, spec, now.isoformat()))
        return next(entry for entry in self.entries() if (entry.name, entry.run) == (name, run))

    def entries(self) -> list[EntryRow]:
        """Everybody who ever took part."""
        query = "select id, name, run, since from entry where arena = ? order by id"
        return [
            EntryRow(id=id, name=name, run=run, since=instant(since))
            for id, name, run, since in self.db.read(query, (self.arena,))
        ]

    def decide(
        self, listed: Sequence[ListedEvent], rules: Rules, now: datetime, *, volatility: Mapping[str, float]
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

    def _taken(self, statements: Statements) -> list[Taken]:
        query = "select event, category, format, decided_at from listed where arena = ? and decision = 'selected'"
        return [
            Taken(event=event, category=category, format=format, at=instant(at))
            for event, category, format, at in statements.read(query, (self.arena,))
        ]

    def _row(self, event: ListedEvent, now: datetime, decision: str, reason: str) -> Row:
        at = now.isoformat()
        closes = None if event.closes_at is None else event.closes_at.isoformat()
        body = to_json(event.question) if decision == SELECTED else ""
        known = (self.arena, event.question.id, event.platform, event.category, format_of(event), at, at)
        return (*known, event.status, closes, event.volume, decision, reason, at, body)

    def selected(self, *, unsettled: bool = False) -> dict[str, ListedRow]:
        """Events that were taken up, by id."""
        also = " and settled = 0" if unsettled else ""
        query = f"select {_LISTED} from listed where arena = ? and decision = 'selected'{also} order by event"
        return {row[0]: _listed(row) for row in self.db.read(query, (self.arena,))}

    def event(self, id: str) -> ListedRow | None:
        """One of them."""
        query = f"select {_LISTED} from listed where arena = ? and event = ? and decision = 'selected'"
        rows = self.db.read(query, (self.arena, id))
        return _listed(rows[0]) if rows else None

    def called(self, name: str) -> list[ListedRow]:
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
        rows: list[Row] = []
        for target in question.targets:
            if (shot := target.snapshot) is not None:
                values = (shot.last_price, shot.yes_bid, shot.yes_ask, shot.no_ask, shot.volume)
                if known.get(target.id) != values:
                    rows.append((self.arena, question.id, target.id, shot.at.isoformat(), *values))
        if rows:
            self.db.write_many(_QUOTE, rows)

    def quotes(self, event: str) -> list[Row]:
        """Target, time, last, yes bid, yes ask, no ask and volume, oldest first."""
        query = """
        select target, at, last, yes_bid, yes_ask, no_ask, volume from quote where arena = ? and event = ?
        order by at, target"""
        return self.db.read(query, (self.arena, event))

    def keep_context(self, built: Built, now: datetime) -> None:
        """Keep a context under its digest, with the story of its making."""
        story = {name: value for name, value in built.to_dict().items() if name != "context"}
        row = (built.context.digest, now.isoformat(), built.usage.dollars, json.dumps(story), built.context.to_json())
        self.db.write(
            "insert into context (digest, at, dollars, story, body) values (?, ?, ?, ?, ?) on conflict do nothing", row
        )

    def context(self, digest: str) -> Context | None:
        """The context with that digest, unchanged since it was kept."""
        rows = self.db.read("select body from context where digest = ?", (digest,))
        return Context.from_json(rows[0][0], digest=digest) if rows else None

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


def _listed(row: Row) -> ListedRow:
    event, platform, category, format, status, closes, decided, settled, body = row
    return ListedRow(
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
