"""The state of an arena: what is waiting, what was forecast, what it cost, and what was missed and why."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from foretell.arena.forecast import MISSED_PREFIX
from foretell.arena.live import LiveArena
from foretell.arena.select import slot
from foretell.arena.store import ArenaStore, Moment
from foretell.models.ledger import Money
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Snapshot
from foretell.runs.store import CELL_COLUMNS, stored_answer

# Everything about one event of an arena: prices, moments, forecasts, results.

_FORECASTS = f"""
select e.name, {", ".join(f"c.{one}" for one in CELL_COLUMNS)} from entry e join cell c on c.run = e.run
where e.arena = ? and c.question = ? and c.due = ? order by e.id, c.trial"""


@dataclass(frozen=True, kw_only=True)
class MomentHistory:
    """One moment and its forecasts."""

    number: int
    at: datetime
    """When it was asked or, if it was not, when it is planned."""
    to_close: str
    state: str
    reason: str
    context: str | None
    said: dict[str, dict[str, float]]
    """Probabilities by entry and target id; trials after the first have their number after the entry's name."""
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    """Rationale of each entry, in its own words."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """Why an entry did not answer, by entry."""
    title: str = ""
    """The question as worded at that moment; empty if it was not asked."""


@dataclass(frozen=True, kw_only=True)
class ArenaEventHistory:
    """An event from its first price to its result."""

    event: str
    status: str
    question: Question
    labels: dict[str, str]
    prices: dict[str, list[tuple[str, float]]]
    """Times and implied probabilities by target, oldest first."""
    moments: tuple[MomentHistory, ...]
    outcomes: dict[str, str]
    """Outcome by target: yes, no, void, or what a share paid."""
    taken_up: datetime
    """When the arena selected the event."""
    resolved_at: datetime | None = None
    """When the last of its outcomes became known."""
    provenance: str = ""
    """Where the result was read."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("event", "status", "prices", "outcomes")}
        moments = [vars(moment) | {"at": moment.at.isoformat()} for moment in self.moments]
        told |= {"taken_up": self.taken_up.isoformat(), "provenance": self.provenance}
        told["resolved_at"] = None if self.resolved_at is None else self.resolved_at.isoformat()
        return {**told, "question": json.loads(to_json(self.question)), "moments": moments}


def event_history(book: ArenaStore, event: str) -> ArenaEventHistory:
    """Return the history of the event with that id, or whose id ends in it after a slash."""
    found = book.called(event)
    if len(found) != 1:
        problem = f"the arena has no event {event!r}" if not found else f"{len(found)} events are called {event!r}"
        raise InputError(problem, hint="foretell arena show counts them; ids look like kalshi/KXFED-26DEC")
    row = found[0]
    results, titles = book.outcomes(row.event), book.moments.titles(row.event)
    prices: dict[str, list[tuple[str, float]]] = {target.id: [] for target in row.question.targets}
    for target, at, last, bid, ask, no_ask, volume in book.quotes(row.event):
        shot = Snapshot(at=at, last_price=last, yes_bid=bid, yes_ask=ask, no_ask=no_ask, volume=volume)
        if shot.price is not None:
            prices.setdefault(target, []).append((at, shot.price))
    return ArenaEventHistory(
        event=row.event,
        status=row.status,
        question=row.question,
        labels={id: id for id in prices} | {t.id: t.label or t.id for t in row.question.targets},
        prices=prices,
        moments=tuple(
            replace(_moment_history(book, moment, row.closes_at), title=titles.get(moment.id, ""))
            for moment in book.moments.of_event(row.event)
        ),
        outcomes={one.target_id: _outcome(one.outcome, one.payoff) for one in results},
        taken_up=book.taken_up(row.event),
        resolved_at=max((one.resolved_at for one in results if one.resolved_at), default=None),
        provenance=next((one.provenance for one in results), ""),
    )


def _outcome(outcome: int | None, payoff: float | None) -> str:
    if outcome is not None:
        return "yes" if outcome else "no"
    return "void" if payoff is None else f"paid {payoff:g}"


def _moment_history(book: ArenaStore, moment: Moment, closes: datetime) -> MomentHistory:
    at = moment.taken_at or moment.planned_at
    hours = ((moment.closes_at or closes) - at).total_seconds() / 3600
    said: dict[str, dict[str, float]] = {}
    reasons: dict[str, str] = {}
    failed: dict[str, str] = {}
    if moment.taken_at is not None:
        values = (book.arena, moment.event, moment.taken_at.isoformat())
        for name, *row in book.db.read(_FORECASTS, values):
            answer, who = stored_answer(tuple(row), book.db.place), name if not row[3] else f"{name} {row[3] + 1}"
            if isinstance(answer, Forecast):
                said[who], reasons[who] = dict(answer.p), answer.rationale
            else:
                failed[who] = answer.error
    return MomentHistory(
        number=moment.number,
        at=at,
        to_close=f"{hours / 24:.1f} d" if hours >= 48 else f"{hours:.1f} h",
        state=moment.state,
        reason=moment.reason,
        context=moment.context,
        said=said,
        reasons=reasons,
        failed=failed,
    )


_REJECTED = """
select reason, count(*) from listed where arena = ? and decision = 'rejected' group by reason order by 2 desc, 1"""
_EVENTS = """
select count(*), coalesce(sum(case when settled = 0 and status = 'open' then 1 else 0 end), 0),
    coalesce(sum(settled), 0) from listed where arena = ? and decision = 'selected'"""
_FAILED = """
select count(*), coalesce(sum(case when failure like ? then 1 else 0 end), 0) from cell
where run = ? and failure is not null"""
_CONTEXTS = """
select count(*) from context where digest in (
    select context from moment where arena = ? and context is not null)"""


@dataclass(frozen=True, kw_only=True)
class EntryStatus:
    """The state of one entry."""

    run: str
    forecasts: int
    failed: int
    missed: int
    """Number of failures whose only cause is a passed deadline."""
    open: int
    """Number of forecasts that could be made now."""
    money: Money
    """What all replies cost, including those that led to no forecast."""
    seconds: float
    """Seconds spent on forecasts, summed."""


@dataclass(frozen=True, kw_only=True)
class ArenaStatus:
    """The state of an arena at one time."""

    arena: str
    at: datetime
    events: Mapping[str, int]
    """Number of events that were selected, are open, and are settled."""
    rejected: Mapping[str, int]
    """Number of rejected events by reason, as last decided."""
    moments: Mapping[str, int]
    """Number of moments by state."""
    due: int
    """Number of moments that should be asked now or have no context yet."""
    next_due: datetime | None
    missed: Mapping[str, int]
    dropped: Mapping[str, int]
    troubles: Mapping[str, int]
    """Number of due moments by the problem that keeps them from being ready."""
    contexts: int
    money: Money
    """What contexts and forecasts cost together."""
    entries: Mapping[str, EntryStatus] = field(default_factory=dict[str, EntryStatus])
    collected: bool = False
    """Whether the platforms were read in the current time slot."""
    unresolved: int = 0
    """Number of events that are over but not settled."""

    @property
    def waiting(self) -> int:
        """Number of tasks that could be done now."""
        return self.due + sum(entry.open for entry in self.entries.values()) + (not self.collected)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        told = asdict(self) | {"waiting": self.waiting, "at": self.at.isoformat()}
        return told | {"next_due": None if self.next_due is None else self.next_due.isoformat()}

    def __str__(self) -> str:
        """Format the status for people."""
        lines = [
            f"arena {self.arena} at {self.at.isoformat(timespec='seconds')}",
            f"events: {_counted(self.events)}; {self.unresolved} over and not settled",
            f"moments: {_counted(self.moments)}; {self.due} due now"
            + (f", next at {self.next_due.isoformat(timespec='seconds')}" if self.next_due else ""),
            f"contexts: {self.contexts}; all together {self.money}",
        ]
        for name, entry in self.entries.items():
            told = f"{entry.forecasts} forecasts, {entry.open} open, {entry.failed} failed, {entry.missed} missed"
            lines.append(f"  {name} ({entry.run}): {told}, {entry.money}")
        for head, reasons in (
            ("rejected", self.rejected),
            ("missed", self.missed),
            ("never came", self.dropped),
            ("in trouble", self.troubles),
        ):
            lines += [f"{head}: {n} × {reason}" for reason, n in reasons.items()]
        return "\n".join(lines)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "none"


def arena_status(arena: LiveArena, now: datetime) -> ArenaStatus:
    """Read the arena's state from its stores, without changing anything."""
    book = arena.book
    rejected = book.db.read(_REJECTED, (book.arena,))
    ((selected, still_open, settled),) = book.db.read(_EVENTS, (book.arena,))
    ((contexts,),) = book.db.read(_CONTEXTS, (book.arena,))
    due = book.moments.due(now)
    # Whether the platforms were read in the stretch of time that now lies in.
    begun = slot(now, arena.spec.collect.every_hours).isoformat()
    collected = "select 1 from tick where name = ? and due = ? and done = 1"
    return ArenaStatus(
        arena=book.arena,
        at=now,
        events={"selected": selected, "open": int(still_open), "settled": int(settled)},
        rejected=dict(rejected),
        moments=book.moments.counts(),
        due=len(due),
        next_due=book.moments.next_due(),
        missed=book.moments.reasons("missed"),
        dropped=book.moments.reasons("dropped"),
        troubles=dict(Counter(moment.reason for moment in due if moment.reason)),
        contexts=contexts,
        money=arena.money(arena.account),
        entries=_entries(arena, now),
        collected=bool(book.db.read(collected, (f"collect {arena.name}", begun))),
        unresolved=sum(row.closes_at <= now or row.status != "open" for row in book.selected(unsettled=True).values()),
    )


def _entries(arena: LiveArena, now: datetime) -> dict[str, EntryStatus]:
    book = arena.book
    totals, said = book.said.totals(), book.said.for_ready()
    fresh = [moment for moment in book.moments.ready() if moment.deadline is not None and moment.deadline > now]
    found: dict[str, EntryStatus] = {}
    for entry, run in arena.entries():
        forecasts, _, seconds = totals.get(entry.id, (0, 0.0, 0.0))
        ((failed, late),) = book.db.read(_FAILED, (f'%"error":"{MISSED_PREFIX}%', run.id))
        found[entry.name] = EntryStatus(
            run=run.id,
            forecasts=forecasts,
            failed=failed - int(late),
            missed=int(late),
            open=sum((moment.id, entry.id, trial) not in said for moment in fresh for trial in range(run.trials)),
            money=arena.money(run.id),
            seconds=seconds,
        )
    return found
