"""The tables of standing questions, in the database of the runs: SQLite, or PostgreSQL if several machines share it."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, TypeVar

from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.questions.as_of import UtcDatetime, instant
from foretell.questions.codec import checked_fields, parse_json, plain_data
from foretell.questions.errors import InputError, known_names
from foretell.questions.resolution import Resolution
from foretell.standing.record import (
    Look,
    NewEvidence,
    OutcomeProposal,
    QuestionRecord,
    StandingBelief,
    StandingQuestion,
    StandingState,
)

T = TypeVar("T")
EntryKind = Literal["look", "belief", "proposal", "outcome", "notice"]
NoticeChannel = Literal["terminal", "feed", "webhook"]
MOST_SENDINGS = 2
"""How often a notice is sent if the process dies while it sends."""
SCHEMA_NAME = "standing"
MIGRATIONS = (
    """
    create table standing (
        id text primary key, state text not null, opened_at text not null, next_look text, body text not null
    );
    create index standing_next on standing (state, next_look);
    create table standing_entry (
        standing text not null, kind text not null, number integer not null, at text not null, body text not null,
        primary key (standing, kind, number)
    ) without rowid;
    create table standing_seen (
        standing text not null, evidence text not null, look integer not null, primary key (standing, evidence)
    ) without rowid;
    """,
    """
    create table standing_queue (
        notice text primary key, standing text not null, look integer not null, due text not null,
        attempts integer not null
    ) without rowid;
    """,
)
"""Migrations, one for each version of the tables, in SQL that SQLite and PostgreSQL share. They never change.

`standing_entry` is append-only. `standing_seen` holds the keys of the evidence that looks found, so that none is
counted twice. `standing_queue` holds the notices that a webhook has not accepted yet.
"""
_ENTRY = "insert into standing_entry (standing, kind, number, at, body) values (?, ?, ?, ?, ?)"
_SEEN = "insert into standing_seen (standing, evidence, look) values (?, ?, ?) on conflict do nothing"


@dataclass(frozen=True, kw_only=True)
class QueuedNotice:
    """A notice that a webhook has not accepted yet."""

    id: str
    standing: str
    look: int
    due: UtcDatetime
    attempts: int = 0


class StandingStore:
    """The standing questions of a home, created if they do not exist; any number of processes may have them open."""

    def __init__(self, database: Database) -> None:
        database.migrate(SCHEMA_NAME, MIGRATIONS)
        self.db = database

    def open(self, standing: StandingQuestion, first_look: datetime) -> bool:
        """Store a new question. Return whether its id was free; otherwise nothing changes."""
        values = (standing.id, standing.state, standing.opened_at.isoformat(), first_look.isoformat(), _text(standing))
        insert = """
        insert into standing (id, state, opened_at, next_look, body) values (?, ?, ?, ?, ?) on conflict do nothing"""
        return bool(self.db.write(insert, values))

    def update(self, standing: StandingQuestion) -> None:
        """Store changed settings, wording or state of a question. Its looks and beliefs stay."""
        change = "update standing set state = ?, body = ? where id = ?"
        self.db.write(change, (standing.state, _text(standing), standing.id))

    def plan(self, id: str, at: datetime | None, *, on: Statements | None = None) -> None:
        """Plan the next look; None plans none."""
        planned = None if at is None else at.isoformat()
        (on or self.db).write("update standing set next_look = ? where id = ?", (planned, id))

    def next_look(self, id: str) -> datetime | None:
        """Return when the next look is planned; None if none is, or if the question is not open."""
        rows = self.db.read("select next_look from standing where id = ? and state = 'open'", (id,))
        return instant(rows[0][0]) if rows and rows[0][0] else None

    def planned(self) -> list[tuple[StandingQuestion, datetime]]:
        """Return the open questions for which a look is planned, and when."""
        query = (
            "select body, next_look from standing where state = 'open' and next_look is not null order by opened_at, id"
        )
        return [(_standing(body), instant(planned)) for body, planned in self.db.read(query)]

    def questions(self, states: Collection[StandingState] | None = None) -> list[StandingQuestion]:
        """Return the questions, oldest first.

        Args:
            states: Only those in one of these states; None returns all.
        """
        rows = self.db.read("select body from standing order by opened_at, id")
        questions = [_parsed(body, StandingQuestion) for (body,) in rows]
        return [question for question in questions if states is None or question.state in states]

    def find(self, text: str) -> StandingQuestion:
        """Return the question with that id, or whose id begins like that. Raises `InputError` if there is not one."""
        questions = {question.id: question for question in self.questions()}
        matches = [id for id in questions if id == text] or [id for id in questions if text and id.startswith(text)]
        if len(matches) == 1:
            return questions[matches[0]]
        if matches:
            raise InputError(f"{text!r} is the beginning of several questions: {', '.join(matches)}")
        hint = known_names(text, list(questions)) if questions else 'foretell ask "Will …?" --watch opens one'
        raise InputError(f"no question {text!r} is watched", hint=hint)

    def record(self, id: str) -> QuestionRecord:
        """Return all that is stored of a question. Raises `KeyError` if it does not exist."""
        rows = self.db.read("select body from standing where id = ?", (id,))
        if not rows:
            raise KeyError(id)
        return QuestionRecord(
            standing=_parsed(rows[0][0], StandingQuestion),
            looks=self._entries(id, "look", Look),
            beliefs=self._entries(id, "belief", StandingBelief),
            proposals=self._entries(id, "proposal", OutcomeProposal),
            outcomes=_newest(self._entries(id, "outcome", Resolution)),
        )

    def _entries(self, id: str, kind: EntryKind, shape: type[T]) -> tuple[T, ...]:
        query = "select body from standing_entry where standing = ? and kind = ? order by number"
        return tuple(_parsed(body, shape) for (body,) in self.db.read(query, (id, kind)))

    def seen(self, id: str) -> set[str]:
        """Return the keys of all evidence that looks have found."""
        return {key for (key,) in self.db.read("select evidence from standing_seen where standing = ?", (id,))}

    def add_look(
        self,
        id: str,
        look: Look,
        next_look: datetime | None,
        *,
        belief: StandingBelief | None = None,
        seen: Iterable[NewEvidence] = (),
    ) -> bool:
        """Store a look together with the belief it led to, the evidence it saw and the time of the next look.

        Returns:
            False if a look with this number is stored already, by another process or before a crash; nothing changes.
        """
        keys = dict.fromkeys(evidence.key for evidence in (*look.news, *seen))

        def work(statements: Statements) -> bool:
            if not self._append(statements, id, "look", look.number, look.at, look):
                return False
            if belief is not None:
                self._append(statements, id, "belief", belief.number, belief.at, belief)
            statements.write_many(_SEEN, [(id, key, look.number) for key in keys])
            self.plan(id, next_look, on=statements)
            return True

        return self.db.together(work)

    def add_proposal(self, id: str, proposal: OutcomeProposal) -> None:
        """Store what the resolver proposed."""
        self._add(id, "proposal", proposal.at, [proposal])

    def resolve(self, id: str, resolutions: Sequence[Resolution], at: datetime, state: StandingState) -> None:
        """Store the confirmed outcomes, one per target, and end the question with a state. No look is planned."""
        standing = self.record(id).standing
        self._add(id, "outcome", at, resolutions)
        self.update(replace(standing, state=state))
        self.plan(id, None)

    def queue_notice(self, notice: QueuedNotice) -> None:
        """Store that a notice is to be posted to the webhook, once; nothing changes if it was queued before."""
        insert = "insert into standing_queue (notice, standing, look, due, attempts) values (?, ?, ?, ?, ?)"
        row: dict[str, object] = {"id": notice.id, "channel": "webhook", "look": notice.look, "state": "queued"}

        def work(statements: Statements) -> None:
            numbered = self._notices(statements, notice.standing)
            if all((body["id"], body["channel"]) != (notice.id, "webhook") for _, body in numbered):
                values = (notice.id, notice.standing, notice.look, notice.due.isoformat(), notice.attempts)
                statements.write(f"{insert} on conflict do nothing", values)
                number = numbered[-1][0] + 1 if numbered else 1
                self._append(statements, notice.standing, "notice", number, notice.due, row)

        self.db.together(work, alone="standing")

    def queued_notices(self) -> list[QueuedNotice]:
        """Return the notices that wait for the webhook, the oldest look first."""
        query = "select notice, standing, look, due, attempts from standing_queue order by standing, look"
        return [
            QueuedNotice(id=id, standing=standing, look=look, due=instant(due), attempts=attempts)
            for id, standing, look, due, attempts in self.db.read(query)
        ]

    def take_notice(self, notice: QueuedNotice, until: datetime) -> bool:
        """Take a notice to post it. Return whether no other process has; if this one dies, it is due again `until`."""
        take = "update standing_queue set due = ?, attempts = ? where notice = ? and attempts = ?"
        return bool(self.db.write(take, (until.isoformat(), notice.attempts + 1, notice.id, notice.attempts)))

    def begin_notice(self, id: str, notice: str, channel: NoticeChannel, look: int, at: datetime) -> bool:
        """Store that a notice is about to be sent. Return whether it may be; `add_notice` stores how it ended.

        It may not if it was sent or failed, or was begun `MOST_SENDINGS` times without an end.
        """
        row: dict[str, object] = {"id": notice, "channel": channel, "look": look, "state": "sending"}

        def work(statements: Statements) -> bool:
            rows = self._notices(statements, id)
            own = [body["state"] for _, body in rows if (body["id"], body["channel"]) == (notice, channel)]
            if len(own) >= MOST_SENDINGS or any(state != "sending" for state in own):
                return False
            return self._append(statements, id, "notice", rows[-1][0] + 1 if rows else 1, at, row)

        return self.db.together(work, alone="standing")

    def add_notice(self, id: str, at: datetime, notice: dict[str, object], *, ends: QueuedNotice | None = None) -> None:
        """Store what was sent to a feed or webhook, or why that failed; `ends` leaves the queue with it."""
        self._add(id, "notice", at, [notice], "" if ends is None else ends.id)

    def notices(self, id: str) -> list[dict[str, object]]:
        """Return the notices of a question, oldest first."""
        return [body for _, body in self._notices(self.db, id)]

    def _notices(self, statements: Statements, id: str) -> list[tuple[int, dict[str, Any]]]:
        query = "select number, body from standing_entry where standing = ? and kind = 'notice' order by number"
        return [(number, parse_json(body)) for number, body in statements.read(query, (id,))]

    def _add(self, id: str, kind: EntryKind, at: datetime, values: Sequence[object], notice: str = "") -> None:
        """Append entries after the last of their kind, and take a notice out of the queue."""

        def work(statements: Statements) -> None:
            query = "select coalesce(max(number), 0) from standing_entry where standing = ? and kind = ?"
            ((last,),) = statements.read(query, (id, kind))
            for number, value in enumerate(values, last + 1):
                self._append(statements, id, kind, number, at, value)
            if notice:
                statements.write("delete from standing_queue where notice = ?", (notice,))

        # Alone, because two processes would otherwise take the same number.
        self.db.together(work, alone="standing")

    def _append(
        self, statements: Statements, id: str, kind: EntryKind, number: int, at: datetime, value: object
    ) -> bool:
        row: SqlRow = (id, kind, number, at.isoformat(), _text(value))
        return bool(statements.write(f"{_ENTRY} on conflict do nothing", row))


def _newest(outcomes: Iterable[Resolution]) -> tuple[Resolution, ...]:
    """Return the last outcome of each target: an earlier one was corrected."""
    return tuple({outcome.target_id: outcome for outcome in outcomes}.values())


def _text(value: object) -> str:
    return json.dumps(plain_data(value), ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=1000)
def _standing(text: str) -> StandingQuestion:
    """Read a question. Cached, because all open questions are read at every check."""
    return _parsed(text, StandingQuestion)


def _parsed(text: str, kind: type[T]) -> T:
    return checked_fields(parse_json(text), kind)
