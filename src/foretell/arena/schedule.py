"""When an event is asked about: halfway to its close, again and again, until there is no room left."""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from foretell.models.database.interface import Database, SqlRow, Statements
from foretell.questions.as_of import instant
from foretell.questions.codec import from_json, to_json
from foretell.questions.question import Question

# The moments at which events are asked about: planned, taken, ready to be answered, over, or missed.

MomentState = Literal["planned", "taken", "ready", "missed", "dropped"]
"""Dropped: the event was over before the moment came."""
NOTHING = float("nan")
_COLUMNS = "id, event, number, planned_at, taken_at, closes_at, deadline, state, reason, attempts, context, targets"
_PLAN = """
insert into moment (arena, event, number, planned_at, state) values (?, ?, ?, ?, 'planned')
on conflict (arena, event, number) do nothing"""
_TAKE = """
update moment set state = 'taken', taken_at = ?, closes_at = ?, deadline = ?, targets = ?, quotes = ?, reason = ''
where id = ? and state = 'planned'"""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One horizon of one event."""

    id: int
    event: str
    number: int
    planned_at: datetime
    taken_at: datetime | None
    """When it was asked: the date of its question."""
    closes_at: datetime | None
    """When the event was expected to close, as known then."""
    deadline: datetime | None
    """A forecast after it is refused."""
    state: MomentState
    reason: str
    attempts: int
    context: str | None
    """The digest of what everybody is shown."""
    targets: tuple[str, ...]


class MomentTable:
    """Those of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        self._db = database
        self._arena = arena

    def plan(self, event: str, number: int, at: datetime, *, on: Statements | None = None) -> None:
        """Plan one; the same again changes nothing."""
        (on or self._db).write(_PLAN, (self._arena, event, number, at.isoformat()))

    def due(self, now: datetime) -> list[Moment]:
        """What is to be asked now, or was asked and has no context yet; the oldest first."""
        where = "state in ('planned', 'taken') and over = 0 and (planned_at <= ? or state = 'taken')"
        return self._read(f"{where} order by planned_at, id", now.isoformat())

    def ready(self) -> list[Moment]:
        """What waits for forecasts."""
        return self._read("state = 'ready' and over = 0 order by deadline, id")

    def of_event(self, event: str) -> list[Moment]:
        """Every moment of an event."""
        return self._read("event = ? order by number", event)

    def find(self, id: int) -> Moment:
        """One moment."""
        return self._read("id = ?", id)[0]

    def at(self, event: str, due: str) -> Moment | None:
        """The moment at which an event was asked."""
        rows = self._read("event = ? and taken_at = ?", event, due)
        return rows[0] if rows else None

    def next_due(self) -> datetime | None:
        """When the next one is planned."""
        query = "select min(planned_at) from moment where arena = ? and state = 'planned'"
        found = self._db.read(query, (self._arena,))[0][0]
        return None if found is None else instant(found)

    def counts(self) -> dict[str, int]:
        """How many there are in each state."""
        query = "select state, count(*) from moment where arena = ? group by state order by state"
        return dict(self._db.read(query, (self._arena,)))

    def reasons(self, state: MomentState) -> dict[str, int]:
        """Why, with counts."""
        query = "select reason, count(*) from moment where arena = ? and state = ? group by reason order by 2 desc, 1"
        found: dict[str, int] = {}
        for reason, n in self._db.read(query, (self._arena, state)):
            short = reason.partition(" (")[0]
            found[short] = found.get(short, 0) + n
        return found

    def take(self, moment: Moment, question: Question, deadline: datetime, following: datetime | None) -> Moment:
        """Ask: the question is kept as it stands now, and the next moment is planned, all of it or nothing."""
        closes = None if question.closes_at is None else question.closes_at.isoformat()
        targets = json.dumps([target.id for target in question.targets], ensure_ascii=False)
        row = (question.due.isoformat(), closes, deadline.isoformat(), targets, pack_quotes(question), moment.id)

        def work(statements: Statements) -> None:
            if statements.write(_TAKE, row):
                keep = "insert into asked values (?, ?) on conflict do nothing"
                statements.write(keep, (moment.id, to_json(question)))
                if following is not None:
                    self.plan(moment.event, moment.number + 1, following, on=statements)

        self._db.together(work)
        return self.find(moment.id)

    def question(self, id: int) -> Question:
        """What was asked."""
        return from_json(self._db.read("select question from asked where moment = ?", (id,))[0][0], Question)

    def furnish(self, id: int, digest: str) -> None:
        """It has its context: forecasts can be made."""
        update = "update moment set state = 'ready', context = ?, reason = '' where id = ? and state = 'taken'"
        self._db.write(update, (digest, id))

    def troubled(self, id: int, reason: str) -> None:
        """Something went wrong on the way; it is tried again."""
        self._db.write("update moment set attempts = attempts + 1, reason = ? where id = ?", (reason[:500], id))

    def miss(self, moment: Moment, reason: str, following: datetime | None) -> None:
        """It was not asked, or has no context, and now it is too late. The next one is planned."""
        told = f"{reason} ({moment.reason})" if moment.reason else reason

        def work(statements: Statements) -> None:
            update = "update moment set state = 'missed', reason = ? where id = ? and state in ('planned', 'taken')"
            statements.write(update, (told, moment.id))
            if following is not None:
                self.plan(moment.event, moment.number + 1, following, on=statements)

        self._db.together(work)

    def drop(self, event: str, reason: str, now: datetime) -> None:
        """The event is over: what was planned never comes, and what is ready can no longer be answered."""
        update = "update moment set state = 'dropped', reason = ? where arena = ? and event = ? and state = 'planned'"
        self._db.write(update, (reason, self._arena, event))
        sooner = """
        update moment set deadline = ? where arena = ? and event = ? and state in ('taken', 'ready') and deadline > ?"""
        self._db.write(sooner, (now.isoformat(), self._arena, event, now.isoformat()))

    def replan(self, moment: Moment, at: datetime | None, reason: str) -> None:
        """The close was moved: another time, or none."""
        if at is None:
            update = "update moment set state = 'dropped', reason = ? where id = ? and state = 'planned'"
            self._db.write(update, (reason, moment.id))
        else:
            update = "update moment set planned_at = ? where id = ? and state = 'planned'"
            self._db.write(update, (at.isoformat(), moment.id))

    def close(self, id: int) -> None:
        """Nothing more is said about it."""
        self._db.write("update moment set over = 1 where id = ? and state = 'ready'", (id,))

    def _read(self, where: str, *values: object) -> list[Moment]:
        query = f"select {_COLUMNS} from moment where arena = ? and {where}"
        return [_moment(row) for row in self._db.read(query, (self._arena, *values))]


def _moment(row: SqlRow) -> Moment:
    id, event, number, planned, taken, closes, deadline, state, reason, attempts, context, targets = row
    return Moment(
        id=id,
        event=event,
        number=number,
        planned_at=instant(planned),
        taken_at=None if taken is None else instant(taken),
        closes_at=None if closes is None else instant(closes),
        deadline=None if deadline is None else instant(deadline),
        state=state,
        reason=reason,
        attempts=attempts,
        context=context,
        targets=() if targets is None else tuple(json.loads(targets)),
    )


def pack_floats(numbers: Sequence[float | None]) -> bytes:
    """As float64, little endian; NaN where there is none."""
    return struct.pack(f"<{len(numbers)}d", *(NOTHING if number is None else number for number in numbers))


def pack_quotes(question: Question) -> bytes:
    """Last, yes bid, yes ask and no ask of every target."""
    shots = [target.snapshot for target in question.targets]
    names = ("last_price", "yes_bid", "yes_ask", "no_ask")
    return pack_floats([None if shot is None else getattr(shot, name) for shot in shots for name in names])


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEXT_FIRST, CLOSED_FIRST, WAITED = "the next moment was due first", "the event closed first", "it took too long"
"""Why a forecast is too late."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How often events are asked about."""

    minimum_gap_hours: float = 6.0
    """δ: no moment is planned closer to the close of its event."""
    most: int | None = None
    """Moments per event."""
    patience_hours: float | None = None
    """A forecast must be there so long after its moment; None: before the next moment, or the close."""

    def __post_init__(self) -> None:
        if not self.minimum_gap_hours > 0:
            raise ValueError(f"minimum_gap_hours = {self.minimum_gap_hours:g}: it must be above 0, or it never ends")
        if self.most is not None and self.most < 1:
            raise ValueError(f"most = {self.most}: at least one moment is needed")
        if self.patience_hours is not None and not self.patience_hours > 0:
            raise ValueError(f"patience_hours = {self.patience_hours:g}: it must be above 0")

    @property
    def gap(self) -> timedelta:
        """δ as a time."""
        return timedelta(hours=self.minimum_gap_hours)

    def following(self, number: int, planned: datetime, closes: datetime) -> datetime | None:
        """The moment after the one with that number, if there is to be one."""
        if self.most is not None and number + 1 >= self.most:
            return None
        return next_moment(planned, closes, self.gap)

    def deadline(self, number: int, planned: datetime, closes: datetime) -> tuple[datetime, str]:
        """Until when a moment can be answered, and what ends it."""
        ends = [(closes, CLOSED_FIRST)]
        following = self.following(number, planned, closes)
        if following is not None:
            ends.append((following, NEXT_FIRST))
        if self.patience_hours is not None:
            ends.append((planned + timedelta(hours=self.patience_hours), WAITED))
        return min(ends)


def next_moment(now: datetime, closes_at: datetime, minimum_gap: timedelta) -> datetime | None:
    """Halfway to the close, if what is left then is at least the gap (Prophet Arena 2025, appendix B.2).

    With Δ = close − t₀ the moments are t_k = close − 2⁻ᵏ·Δ.

    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> next_moment(day, day + timedelta(hours=48), timedelta(hours=6)).isoformat()
    '2026-01-02T00:00:00+00:00'
    >>> next_moment(day, day + timedelta(hours=10), timedelta(hours=6)) is None
    True
    """
    half = (closes_at - now) / 2
    return now + half if half >= minimum_gap else None


def slot(now: datetime, hours: float) -> datetime:
    """The start of the stretch of so many hours that now lies in; a day begins at midnight UTC.

    >>> slot(datetime(2026, 1, 1, 15, 30, tzinfo=UTC), 24).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    length = timedelta(hours=hours)
    return EPOCH + ((now - EPOCH) // length) * length


def question_date(now: datetime) -> datetime:
    """The moment as a question's date. Midnight sharp would stand for the whole day, so it is a microsecond later."""
    return now + timedelta(microseconds=1) if now == now.replace(hour=0, minute=0, second=0, microsecond=0) else now
