"""The history of one standing question: where it stands, what moved it, what was looked at, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from foretell.frozen import frozen
from foretell.number_text import percent, percent_range, plural, signed
from foretell.questions.errors import InputError
from foretell.questions.resolution import Resolution
from foretell.standing.confirm import last_day
from foretell.standing.own_record import (
    ScoredQuestion,
    Update,
    confirmed_outcome,
    scored_question,
    updates_of,
    waits_for_answer,
    watch_settings,
)
from foretell.standing.post_mortem import PostMortem, post_mortem
from foretell.standing.record import Look, OutcomeProposal, QuestionRecord, StandingBelief
from foretell.standing.related import related_questions
from foretell.standing.store import StandingStore

TRIGGERS: Mapping[str, str] = {
    "first": "asked",
    "clock": "its time had come",
    "price": "the price moved",
    "series": "a new value of its series",
    "document": "a new document",
    "time": "less time was left",
    "user": "you asked for it",
}
"""Why a question was looked at, in words."""
WordChange = tuple[Literal["same", "removed", "added"], str]


@frozen
class Spent:
    """What a question was billed, in dollars."""

    first: float
    updates: float
    judging: float
    """To say whether news bears on the question, when it did not change the forecast."""
    resolving: float
    limit: float | None
    day_limit: float | None
    dearest_day: float
    """The most in a day, without the first answer."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.first + self.updates + self.judging + self.resolving


@frozen
class RelatedQuestion:
    """A question that is declared to be related, with its probability before and after both were made to agree."""

    id: str
    text: str
    p: float | None
    alone: float | None
    """The probability by itself, if it was changed."""
    outcome: int | None = None
    own: bool = False
    """Whether it is the question whose history this is."""


@frozen
class QuestionHistory:
    """The history of one standing question."""

    record: QuestionRecord
    now: datetime
    next_look: datetime | None = None
    notices: Sequence[Mapping[str, Any]] = ()
    related: tuple[RelatedQuestion, ...] = ()
    scored: ScoredQuestion | None = None
    post_mortem: PostMortem | None = None
    unscored: str = ""
    """Why a confirmed question is not scored."""
    if_confirmed: Mapping[str, float] = field(default_factory=dict[str, float])
    """Mean Brier scores over time if the proposal is confirmed: of the forecast, of the price and of the first answer.
    Empty without a proposed outcome."""

    @property
    def id(self) -> str:
        """The id of the standing question."""
        return self.record.standing.id

    @cached_property
    def outcome(self) -> Mapping[str, int]:
        """The confirmed outcome; empty if there is none."""
        return confirmed_outcome(self.record)

    @cached_property
    def target(self) -> str:
        """The target to show if there is room for one: what came true, or else the likeliest."""
        true = [target for target, came in self.outcome.items() if came]
        p: Mapping[str, float] = self.last.answer if self.last is not None else {}
        likeliest = max(p, key=lambda target: p[target], default=self.record.standing.question.targets[0].id)
        return true[0] if len(true) == 1 else likeliest

    @property
    def label(self) -> str:
        """The name of that target; empty if it is the only one."""
        targets = self.record.standing.question.targets
        return "" if len(targets) == 1 else next(each.short_label for each in targets if each.id == self.target)

    @property
    def first(self) -> StandingBelief | None:
        """The forecast when it was asked."""
        return self.record.beliefs[0] if self.record.beliefs else None

    @property
    def last(self) -> StandingBelief | None:
        """The newest forecast."""
        return self.record.beliefs[-1] if self.record.beliefs else None

    @cached_property
    def updates(self) -> tuple[Update, ...]:
        """The changes of the forecast, oldest first."""
        until = self.scored.known_at if self.scored is not None else None
        return updates_of(self.record.beliefs, self.outcome or None, until)

    @cached_property
    def quiet_looks(self) -> tuple[Look, ...]:
        """Looks that did not change the forecast, newest first."""
        led = {belief.look for belief in self.record.beliefs}
        return tuple(look for look in reversed(self.record.looks) if look.number not in led)

    @property
    def price(self) -> tuple[datetime, float] | None:
        """The newest price of the shown target, and when it was seen."""
        seen = [(each.at, each.prices[self.target]) for each in self.record.looks if self.target in each.prices]
        return seen[-1] if seen else None

    @property
    def base_rate(self) -> float | None:
        """The newest base rate of the shown target."""
        rates = [belief.base_rates.get(self.target) for belief in reversed(self.record.beliefs)]
        return next((rate for rate in rates if rate is not None), None)

    @property
    def closes(self) -> datetime | None:
        """When the question is decided at the latest."""
        return last_day(self.record.standing.question)

    @property
    def days(self) -> tuple[int, int | None]:
        """The day since it was opened, the first being 1, and the number of days until it closes."""
        opened = self.record.standing.opened_at
        whole = None if self.closes is None else max((self.closes - opened) // timedelta(days=1), 1)
        day = (self.now - opened) // timedelta(days=1) + 1
        return (min(day, whole) if whole is not None else day), whole

    @property
    def proposal(self) -> OutcomeProposal | None:
        """The last proposal of the resolver, if it waits for an answer."""
        return self.record.proposals[-1] if waits_for_answer(self.record) else None

    @property
    def proposed_text(self) -> str:
        """What the resolver proposed, as an answer to `foretell record ID --confirm`."""
        proposal = self.proposal
        if proposal is None or proposal.outcome is None:
            return "" if proposal is None else proposal.status.replace(" ", "-")
        return outcome_text(self.record, proposal.outcome)

    @cached_property
    def spent(self) -> Spent:
        """What the question was billed."""
        updates = [belief.billed for belief in self.record.beliefs]
        # A look that changed the forecast has the same bill as the forecast.
        looks, proposals = self.quiet_looks, self.record.proposals
        bills = [(each.at, each.billed) for each in (*looks, *self.record.beliefs[1:], *proposals)]
        bills.sort(key=lambda bill: bill[0])
        days = [sum(billed for _, billed in day) for _, day in groupby(bills, key=lambda bill: bill[0].date())]
        watch = watch_settings(self.record)
        return Spent(
            first=updates[0] if updates else 0.0,
            updates=sum(updates[1:]),
            judging=sum(look.billed for look in looks),
            resolving=sum(proposal.billed for proposal in proposals),
            limit=_number(watch.get("budget")),
            day_limit=_number(watch.get("day_budget")),
            dearest_day=max(days, default=0.0),
        )

    @cached_property
    def wording(self) -> tuple[WordChange, ...]:
        """The question as it was typed and as it was accepted, word by word; empty if nothing was changed."""
        sharpening = self.record.standing.sharpening
        if sharpening is None or sharpening.original == sharpening.text:
            return ()
        return word_changes(sharpening.original, sharpening.text)

    @property
    def sentence(self) -> str:
        """Where the question stands: how often it was looked at, and what did most."""
        looks, changed = len(self.record.looks), len(self.updates)
        text = f"Looked at {_times(looks)}, changed {_times(changed)}."
        if not self.updates:
            return text
        most = max(self.updates, key=lambda update: abs(update.move))
        text += f" Update {most.number} did most, by {signed(100 * most.move, 0)} points"
        return text + (f": {what_moved(most).rstrip('.')}." if what_moved(most) else ".")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        standing, spent = self.record.standing, self.spent
        return {
            "id": self.id,
            "question": standing.question.text,
            "state": standing.state,
            "opened_at": standing.opened_at,
            "closes_at": self.closes,
            "next_look": self.next_look,
            "p": dict(self.last.answer) if self.last is not None else None,
            "price": dict(self.record.looks[-1].prices) if self.record.looks else {},
            "outcome": dict(self.outcome) or None,
            "waits_for_answer": self.proposal is not None,
            "record": self.record,
            "updates": [
                {
                    "number": update.number,
                    "at": update.belief.at,
                    "target": update.target,
                    "before": update.before.answer.get(update.target),
                    "after": update.belief.answer[update.target],
                    "why": what_moved(update),
                    "gain": update.gain,
                    "billed": update.belief.billed,
                }
                for update in self.updates
            ],
            "money": {"billed": spent.total, "limit": spent.limit, "dearest_day": spent.dearest_day},
            "brier": self.scored.brier if self.scored is not None else None,
            "unscored": self.unscored or None,
            "post_mortem": None
            if self.post_mortem is None
            else {"fault": self.post_mortem.fault, "found": self.post_mortem.found, "why": self.post_mortem.why},
            "related": self.related,
            "notices": list(self.notices),
        }


def question_history(store: StandingStore, id: str, now: datetime) -> QuestionHistory:
    """Return the history of a question. Raises `KeyError` if it does not exist."""
    record = store.record(id)
    history = QuestionHistory(
        record=record,
        now=now,
        next_look=store.next_look(id),
        notices=tuple(store.notices(id)),
        related=_related(store, record),
    )
    if history.outcome:
        try:
            scored = scored_question(record)
        except InputError as error:
            return replace(history, unscored=str(error))
        return replace(history, scored=scored, post_mortem=post_mortem(scored))
    return replace(history, if_confirmed=_if_confirmed(history, now))


def outcome_text(record: QuestionRecord, outcome: Mapping[str, int]) -> str:
    """Return an outcome in words: Yes, No, or the names of the targets that came true."""
    targets = record.standing.question.targets
    if len(targets) == 1:
        return "Yes" if outcome.get(targets[0].id) else "No"
    return ", ".join(target.short_label for target in targets if outcome.get(target.id)) or "None of them"


def what_moved(update: Update) -> str:
    """Return what moved a forecast: its new evidence, a change without any, or else the first line of its reasons."""
    evidence = next((each.text for each in update.belief.evidence), "")
    return evidence or update.belief.moved_by or update.belief.rationale.partition("\n")[0]


def woken_by(look: Look | None) -> str:
    """Return why a question was looked at, in words."""
    return "" if look is None else " and ".join(TRIGGERS[trigger] for trigger in look.triggers)


def word_changes(before: str, after: str) -> tuple[WordChange, ...]:
    """Return how one text became another, in runs of words.

    >>> word_changes("Will it open soon?", "Will it open before May?")
    (('same', 'Will it open'), ('removed', 'soon?'), ('added', 'before May?'))
    """
    old, new = before.split(), after.split()
    changes: list[WordChange] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            changes.append(("same", " ".join(old[a:b])))
            continue
        if b > a:
            changes.append(("removed", " ".join(old[a:b])))
        if d > c:
            changes.append(("added", " ".join(new[c:d])))
    return tuple(changes)


def _if_confirmed(history: QuestionHistory, now: datetime) -> dict[str, float]:
    proposal, question = history.proposal, history.record.standing.question
    if proposal is None or proposal.outcome is None:
        return {}
    outcomes = tuple(
        Resolution(question_id=question.id, target_id=target, outcome=came, due=question.due, resolved_at=now)
        for target, came in proposal.outcome.items()
    )
    standing = replace(history.record.standing, state="resolved")
    try:
        scored = scored_question(replace(history.record, standing=standing, outcomes=outcomes))
    except InputError:
        return {}
    once = replace(scored, beliefs=scored.beliefs[:1]).over_time
    scores = {"own": scored.over_time, "price": scored.price_over_time, "first": once}
    return {name: score for name, score in scores.items() if score is not None}


def _related(store: StandingStore, record: QuestionRecord) -> tuple[RelatedQuestion, ...]:
    """Return the questions that are related to this one, found or declared, also ended ones, with itself among them."""
    related = related_questions(store.questions())[record.standing.id]
    group = store.readable_records(sorted(related))
    if not group:
        return ()
    whole = sorted([record, *group], key=lambda each: last_day(each.standing.question) or each.standing.opened_at)
    return tuple(_related_row(each, own=each is record) for each in whole)


def _related_row(record: QuestionRecord, *, own: bool) -> RelatedQuestion:
    last = record.beliefs[-1] if record.beliefs else None
    target = record.standing.question.targets[0].id
    alone = last.p.get(target) if last is not None and target in last.coherent else None
    return RelatedQuestion(
        id=record.standing.id,
        text=record.standing.question.text,
        p=last.answer.get(target) if last is not None else None,
        alone=alone if alone is not None and last is not None and alone != last.answer[target] else None,
        outcome=confirmed_outcome(record).get(target),
        own=own,
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, plural(count, "time"))


def _number(value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return None


def answer_line(history: QuestionHistory) -> str:
    """Return the forecast, its range, and price, base rate and first answer beside it, in one line."""
    last, first = history.last, history.first
    if last is None or first is None:
        return "no forecast yet"
    target, parts = history.target, list[str]()
    if target in last.ranges:
        low, high = last.ranges[target]
        parts.append(f"range {percent_range(low, high)}")
    if history.price is not None:
        parts.append(f"market {percent(history.price[1])}")
    if history.base_rate is not None:
        parts.append(f"base rate {percent(history.base_rate)}")
    parts.append(f"first answer {percent(first.answer.get(target))}")
    name = f"{history.label}: " if history.label else ""
    return f"{name}{percent(last.answer.get(target))} ({', '.join(parts)})"
