"""Everything about one event of an arena: prices, moments, forecasts, results."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foretell.arena.live.book import Book
from foretell.arena.live.moments import Moment
from foretell.llm.database.port import Row
from foretell.questions.codec import from_json, to_json
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.questions.snapshot import Snapshot

_SAID = """
select e.name, c.trial, c.forecast from entry e join cell c on c.run = e.run
where e.arena = ? and c.question = ? and c.due = ? and c.forecast is not null order by e.id, c.trial"""


@dataclass(frozen=True, kw_only=True)
class MomentStory:
    """One moment, and who said what."""

    number: int
    at: datetime
    """When it was asked, or is to be."""
    to_close: str
    state: str
    reason: str
    context: str | None
    said: dict[str, dict[str, float]]
    """By entry, with the number of the trial after the first; targets by id."""


@dataclass(frozen=True, kw_only=True)
class Biography:
    """An event from its first price to its result."""

    event: str
    status: str
    question: Question
    labels: dict[str, str]
    prices: dict[str, list[tuple[str, float]]]
    """By target: moments and implied probabilities, oldest first."""
    moments: tuple[MomentStory, ...]
    outcomes: dict[str, str]
    """By target: yes, no, or what a share was worth."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        told: dict[str, Any] = {name: getattr(self, name) for name in ("event", "status", "prices", "outcomes")}
        moments = [vars(moment) | {"at": moment.at.isoformat()} for moment in self.moments]
        return {**told, "question": json.loads(to_json(self.question)), "moments": moments}


def biography(book: Book, event: str) -> Biography:
    """The event with that id, or whose id ends so."""
    found = book.called(event)
    if len(found) != 1:
        problem = f"the arena has no event {event!r}" if not found else f"{len(found)} events are called {event!r}"
        raise InputError(problem, hint="foretell arena status counts them; ids look like kalshi/KXFED-26DEC")
    row = found[0]
    prices: dict[str, list[tuple[str, float]]] = {target.id: [] for target in row.question.targets}
    for quote in book.quotes(row.event):
        if (price := _price(quote)) is not None:
            prices.setdefault(quote[0], []).append((quote[1], price))
    labels = {id: id for id in prices} | {t.id: t.label or t.id for t in row.question.targets}
    return Biography(
        event=row.event,
        status=row.status,
        question=row.question,
        labels=labels,
        prices=prices,
        moments=tuple(_story(book, moment, row.closes_at) for moment in book.moments.of_event(row.event)),
        outcomes={one.target_id: _outcome(one.outcome, one.payoff) for one in book.outcomes(row.event)},
    )


def _price(quote: Row) -> float | None:
    _, at, last, bid, ask, no_ask, volume = quote
    return Snapshot(at=at, last_price=last, yes_bid=bid, yes_ask=ask, no_ask=no_ask, volume=volume).price


def _outcome(outcome: int | None, payoff: float | None) -> str:
    if outcome is not None:
        return "yes" if outcome else "no"
    return "void" if payoff is None else f"paid {payoff:g}"


def _story(book: Book, moment: Moment, closes: datetime) -> MomentStory:
    at = moment.taken_at or moment.planned_at
    hours = ((moment.closes_at or closes) - at).total_seconds() / 3600
    said: dict[str, dict[str, float]] = {}
    if moment.taken_at is not None:
        values = (book.arena, moment.event, moment.taken_at.isoformat())
        for name, trial, body in book.db.read(_SAID, values):
            said[name if not trial else f"{name} {trial + 1}"] = dict(from_json(body, Forecast).p)
    return MomentStory(
        number=moment.number,
        at=at,
        to_close=f"{hours / 24:.1f} d" if hours >= 48 else f"{hours:.1f} h",
        state=moment.state,
        reason=moment.reason,
        context=moment.context,
        said=said,
    )
