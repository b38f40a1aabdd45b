"""The state of an arena: what is waiting, what was forecast, what it cost, and what was missed and why."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from datetime import datetime
from typing import Any

from foretell.arena.forecast import MISSED_PREFIX, missing_forecasts, trial_key
from foretell.arena.listing import event_counts, rejections
from foretell.arena.live import LiveArena
from foretell.arena.select import slot
from foretell.arena.store import ArenaStore, ForecastTime
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Snapshot

# One event of an arena: prices, forecast times, forecasts and results.


@frozen
class ForecastTimeHistory:
    """One forecast time and its forecasts."""

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
    """The question's text at that time; empty if it was not asked."""


@frozen
class ArenaEventHistory:
    """An event from its first price to its result."""

    event: str
    category: str
    status: str
    question: Question
    labels: dict[str, str]
    prices: dict[str, list[tuple[str, float]]]
    """Times and implied probabilities by target, oldest first."""
    forecast_times: tuple[ForecastTimeHistory, ...]
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
        data: dict[str, Any] = {name: getattr(self, name) for name in ("event", "status", "prices", "outcomes")}
        forecast_times = [
            vars(forecast_time) | {"at": forecast_time.at.isoformat()} for forecast_time in self.forecast_times
        ]
        data |= {"taken_up": self.taken_up.isoformat(), "provenance": self.provenance}
        data["resolved_at"] = None if self.resolved_at is None else self.resolved_at.isoformat()
        return {**data, "question": json.loads(to_json(self.question)), "forecast_times": forecast_times}


def event_history(records: ArenaStore, event: str) -> ArenaEventHistory:
    """Return the history of the event with that id, or whose id ends in it after a slash."""
    rows = records.matching(event)
    if len(rows) != 1:
        problem = f"the arena has no event {event!r}" if not rows else f"{len(rows)} events are called {event!r}"
        raise InputError(problem, hint="foretell arena show counts them; ids look like kalshi/KXFED-26DEC")
    row = rows[0]
    results, titles = records.outcomes(row.event), records.forecast_times.titles(row.event)
    prices: dict[str, list[tuple[str, float]]] = {target.id: [] for target in row.question.targets}
    for target, at, last, bid, ask, no_ask, volume in records.quotes(row.event):
        shot = Snapshot(at=at, last_price=last, yes_bid=bid, yes_ask=ask, no_ask=no_ask, volume=volume)
        if shot.price is not None:
            prices.setdefault(target, []).append((at, shot.price))
    return ArenaEventHistory(
        event=row.event,
        category=row.category,
        status=row.status,
        question=row.question,
        labels={id: id for id in prices} | {t.id: t.label or t.id for t in row.question.targets},
        prices=prices,
        forecast_times=tuple(
            replace(
                _forecast_time_history(records, forecast_time, row.closes_at), title=titles.get(forecast_time.id, "")
            )
            for forecast_time in records.forecast_times.of_event(row.event)
        ),
        outcomes={result.target_id: _outcome(result.outcome, result.payoff) for result in results},
        taken_up=records.taken_up(row.event),
        resolved_at=max((result.resolved_at for result in results if result.resolved_at), default=None),
        provenance=next((result.provenance for result in results), ""),
    )


def _outcome(outcome: int | None, payoff: float | None) -> str:
    if outcome is not None:
        return "yes" if outcome else "no"
    return "void" if payoff is None else f"paid {payoff:g}"


def _forecast_time_history(records: ArenaStore, forecast_time: ForecastTime, closes: datetime) -> ForecastTimeHistory:
    at = forecast_time.taken_at or forecast_time.planned_at
    hours = ((forecast_time.closes_at or closes) - at).total_seconds() / 3600
    forecasts: dict[str, dict[str, float]] = {}
    rationales: dict[str, str] = {}
    failed: dict[str, str] = {}
    if forecast_time.taken_at is not None:
        for name, answer in records.answers(forecast_time.event, forecast_time.taken_at):
            who = f"{name} {answer.trial + 1}" if answer.trial else name
            if isinstance(answer, Forecast):
                forecasts[who], rationales[who] = dict(answer.p), answer.rationale
            else:
                failed[who] = answer.error
    return ForecastTimeHistory(
        number=forecast_time.number,
        at=at,
        to_close=f"{hours / 24:.1f} d" if hours >= 48 else f"{hours:.1f} h",
        state=forecast_time.state,
        reason=forecast_time.reason,
        context=forecast_time.context,
        said=forecasts,
        reasons=rationales,
        failed=failed,
    )


@frozen
class EntryStatus:
    """The state of one entry."""

    run: str
    forecasts: int
    failed: int
    missed: int
    """Number of failures whose only cause is a passed deadline."""
    open: int
    """Number of forecasts that could be made now."""
    again: int
    """Number of these that failed before, so that `open` and `failed` both count them."""
    money: Money
    """What all replies cost, including those that led to no forecast."""
    seconds: float
    """Seconds spent on forecasts, summed."""


@frozen
class ArenaStatus:
    """The state of an arena at one time."""

    arena: str
    at: datetime
    events: Mapping[str, int]
    """Number of events that were selected, are open, and are settled."""
    rejected: Mapping[str, int]
    """Number of rejected events by reason, as last decided."""
    forecast_times: Mapping[str, int]
    """Number of forecast times by state."""
    due: int
    """Number of forecast times that should be asked now or have no context yet."""
    next_due: datetime | None
    missed: Mapping[str, int]
    dropped: Mapping[str, int]
    troubles: Mapping[str, int]
    """Number of due forecast times by the problem that keeps them from being ready."""
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
        data = asdict(self) | {"waiting": self.waiting, "at": self.at.isoformat()}
        return data | {"next_due": None if self.next_due is None else self.next_due.isoformat()}

    def __str__(self) -> str:
        """Format the status for people."""
        lines = [
            f"arena {self.arena} at {self.at.isoformat(timespec='seconds')}",
            f"events: {_counted(self.events)}; {self.unresolved} over and not settled",
            f"forecast times: {_counted(self.forecast_times)}; {self.due} due now"
            + (f", next at {self.next_due.isoformat(timespec='seconds')}" if self.next_due else ""),
            f"contexts: {self.contexts}; all together {self.money}",
        ]
        for name, entry in self.entries.items():
            again = f" ({entry.again} can be tried again)" if entry.again else ""
            counts = f"{entry.forecasts} forecasts, {entry.failed} failed{again}, {entry.missed} too late"
            untried = f", {entry.open - entry.again} not tried yet" if entry.open > entry.again else ""
            lines.append(f"  {name} ({entry.run}): {counts}{untried}, {entry.money}")
        for head, reasons in (
            ("rejected", self.rejected),
            ("too late", self.missed),
            ("not needed", self.dropped),
            ("failing", self.troubles),
        ):
            lines += [f"{head}: {n} × {reason}" for reason, n in reasons.items()]
        return "\n".join(lines)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "none"


def arena_status(arena: LiveArena, now: datetime) -> ArenaStatus:
    """Read the arena's state from its stores, without changing anything."""
    records = arena.records
    due = records.forecast_times.due(now)
    slot_start = slot(now, arena.spec.collect.every_hours).isoformat()
    return ArenaStatus(
        arena=records.arena,
        at=now,
        events=event_counts(records)._asdict(),
        rejected=rejections(records),
        forecast_times=records.forecast_times.counts(),
        due=len(due),
        next_due=records.forecast_times.next_due(),
        missed=records.forecast_times.reasons("missed"),
        dropped=records.forecast_times.reasons("dropped"),
        troubles=dict(Counter(forecast_time.reason for forecast_time in due if forecast_time.reason)),
        contexts=records.context_count(),
        money=arena.money(arena.account),
        entries=_entries(arena, now),
        collected=arena.claims.is_done(f"collect {arena.name}", slot_start),
        unresolved=sum(
            row.closes_at <= now or row.status != "open" for row in records.selected(unsettled=True).values()
        ),
    )


def _entries(arena: LiveArena, now: datetime) -> dict[str, EntryStatus]:
    records = arena.records
    forecast_keys = records.said.for_ready()
    fresh = [
        forecast_time
        for forecast_time in records.forecast_times.ready()
        if forecast_time.deadline is not None and forecast_time.deadline > now
    ]
    entry_status: dict[str, EntryStatus] = {}
    for entry, run in arena.entries():
        failures = dict(arena.store.failures(run.id))
        missed = sum(error.startswith(MISSED_PREFIX) for error in failures.values())
        still_open = missing_forecasts(fresh, entry, run, forecast_keys)
        entry_status[entry.name] = EntryStatus(
            run=run.id,
            forecasts=entry.forecasts,
            failed=len(failures) - missed,
            missed=missed,
            open=len(still_open),
            again=sum(trial_key(run.id, *forecast) in failures for forecast in still_open),
            money=arena.money(run.id),
            seconds=entry.seconds,
        )
    return entry_status
