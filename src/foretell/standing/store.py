"""The tables of standing questions, in the database of the runs: SQLite, or PostgreSQL if several machines share it."""

import json
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TypeVar, cast

from foretell.frozen import frozen
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

log = logging.getLogger(__name__)
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
    """
    delete from standing_seen where (substr(evidence, 1, 5) = 'said ' or substr(evidence, 1, 6) = 'whole ')
        and standing in (select id from standing where state in ('resolved', 'cancelled'));
    """,
)
"""Migrations, one for each version of the tables, in SQL that SQLite and PostgreSQL share. They never change.

`standing_entry` is append-only. `standing_seen` holds the keys of the evidence that looks found, so that none is
counted twice; the sentences of pages are kept only while the question may change. `standing_queue` holds the notices
that a webhook has not accepted yet.
"""
ENDED: tuple[StandingState, ...] = ("resolved", "cancelled")
DAMAGED = "damaged"
"""State of a notice whose row cannot be read."""
_ENTRY = "insert into standing_entry (standing, kind, number, at, body) values (?, ?, ?, ?, ?)"
_SEEN = "insert into standing_seen (standing, evidence, look) values (?, ?, ?) on conflict do nothing"
# Without the mark that a page was read whole, its next version only sets the sentences to compare with. So nothing on a
# known page counts a second time if the question is opened again. Keys of texts and addresses stay.
_FORGET_SENTENCES = """
delete from standing_seen
where standing = ? and (substr(evidence, 1, 5) = 'said ' or substr(evidence, 1, 6) = 'whole ')"""


@frozen
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
        return _planned_time(rows[0][0]) if rows and rows[0][0] else None

    def planned(self) -> list[tuple[StandingQuestion, datetime]]:
        """Return the open questions for which a look is planned, and when. Damaged ones are left out with a warning."""
        query = (
            "select id, body, next_look from standing where state = 'open' and next_look is not null"
            " order by opened_at, id"
        )
        read = ((_standing(id, body), planned) for id, body, planned in self.db.read(query))
        return [(standing, _planned_time(planned)) for standing, planned in read if standing is not None]

    def questions(self, states: Collection[StandingState] | None = None) -> list[StandingQuestion]:
        """Return the questions in one of these states, or all, oldest first, without damaged ones (with a warning)."""
        rows = self.db.read("select id, body from standing order by opened_at, id")
        questions = [_standing(id, body) for id, body in rows]
        return [each for each in questions if each is not None and (states is None or each.state in states)]

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
        """Return all that is stored of a question.

        Raises:
            KeyError: If it does not exist.
            InputError: If a row of it is damaged; the message names the row.
        """
        rows = self.db.read("select body from standing where id = ?", (id,))
        if not rows:
            raise KeyError(id)
        return QuestionRecord(
            standing=_parsed(rows[0][0], StandingQuestion, f"the watched question {id}"),
            looks=self._entries(id, "look", Look),
            beliefs=self._entries(id, "belief", StandingBelief),
            proposals=self._entries(id, "proposal", OutcomeProposal),
            outcomes=_newest(self._entries(id, "outcome", Resolution)),
        )

    def readable_records(self, ids: Iterable[str]) -> list[QuestionRecord]:
        """Return all that is stored of questions. Those with a damaged row are left out with a warning."""
        records: list[QuestionRecord] = []
        for id in ids:
            try:
                records.append(self.record(id))
            except InputError as error:
                log.warning("%s; the question is left out", error)
        return records

    def _entries(self, id: str, kind: EntryKind, shape: type[T]) -> tuple[T, ...]:
        query = "select number, body from standing_entry where standing = ? and kind = ? order by number"
        rows = self.db.read(query, (id, kind))
        return tuple(_parsed(body, shape, f"{kind} {number} of the watched question {id}") for number, body in rows)

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
        if state in ENDED:
            self.db.write(_FORGET_SENTENCES, (id,))

    def queue_notice(self, notice: QueuedNotice) -> None:
        """Store that a notice is to be posted to the webhook, once; nothing changes if it was queued before."""
        insert = "insert into standing_queue (notice, standing, look, due, attempts) values (?, ?, ?, ?, ?)"
        row: dict[str, object] = {"id": notice.id, "channel": "webhook", "look": notice.look, "state": "queued"}

        def work(statements: Statements) -> None:
            numbered = self._notices(statements, notice.standing)
            if all((body.get("id"), body.get("channel")) != (notice.id, "webhook") for _, body in numbered):
                values = (notice.id, notice.standing, notice.look, notice.due.isoformat(), notice.attempts)
                statements.write(f"{insert} on conflict do nothing", values)
                number = numbered[-1][0] + 1 if numbered else 1
                self._append(statements, notice.standing, "notice", number, notice.due, row)

        self.db.together(work, alone="standing")

    def queued_notices(self) -> list[QueuedNotice]:
        """Return the notices that wait for the webhook, the oldest look first."""
        query = "select notice, standing, look, due, attempts from standing_queue order by standing, look"
        return [
            QueuedNotice(id=id, standing=standing, look=look, due=_planned_time(due), attempts=attempts)
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
            own = [body.get("state") for _, body in rows if (body.get("id"), body.get("channel")) == (notice, channel)]
            if len(own) >= MOST_SENDINGS or any(state != "sending" for state in own):
                return False
            return self._append(statements, id, "notice", rows[-1][0] + 1 if rows else 1, at, row)

        return self.db.together(work, alone="standing")

    def add_notice(self, id: str, at: datetime, notice: dict[str, object], *, ends: QueuedNotice | None = None) -> None:
        """Store what was sent to a feed or webhook, or why that failed; `ends` leaves the queue with it."""
        self._add(id, "notice", at, [notice], "" if ends is None else ends.id)

    def notices(self, id: str) -> list[dict[str, object]]:
        """Return the notices of a question, oldest first. One whose row is damaged has only a state and a problem."""
        return [body for _, body in self._notices(self.db, id)]

    def _notices(self, statements: Statements, id: str) -> list[tuple[int, dict[str, Any]]]:
        query = "select number, body from standing_entry where standing = ? and kind = 'notice' order by number"
        return [(number, _notice(id, number, body)) for number, body in statements.read(query, (id,))]

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
def _standing(id: str, text: str) -> StandingQuestion | None:
    """Read a question; None if its row is damaged. Cached, because all open questions are read at every check."""
    try:
        return _parsed(text, StandingQuestion, f"the watched question {id}")
    except InputError as error:
        log.warning("%s; the question is left out", error)
        return None


def _parsed(text: str, kind: type[T], what: str) -> T:
    try:
        return checked_fields(parse_json(text), kind)
    except InputError as error:
        raise InputError(f"{what} is damaged: {error}") from None


def _notice(id: str, number: int, text: str) -> dict[str, Any]:
    try:
        row = parse_json(text)
        if not isinstance(row, dict):
            raise InputError("is not an object")
    except InputError as error:
        return {"state": DAMAGED, "problem": f"notice {number} of the watched question {id} is damaged: {error}"}
    return cast("dict[str, Any]", row)


def _planned_time(text: str) -> datetime:
    """Return when something is due: at once if the stored time is damaged, so that it is planned anew."""
    try:
        return instant(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
