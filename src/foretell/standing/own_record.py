"""The record of one's own questions: how good the standing forecasts were, and what their updates were worth.

Every confirmed question counts once, with the last forecast before its outcome was known: at its deadline, when the
resolver proposed the outcome or, if something came true, when a quoted source reported it, whichever was first. The
market price is that of the last look before the same time, so that neither side knows more than the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import Any, cast

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, brier_index_from_sums
from foretell.questions.errors import InputError
from foretell.scoring.baselines import BASE_RATE, MARKET_PRICE
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.long_tables import Row, day_text
from foretell.scoring.score import ScoringOptions, compare_pair, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable
from foretell.scoring.verdict import Verdict
from foretell.standing.confirm import AS_PROPOSED, last_day
from foretell.standing.record import OutcomeProposal, QuestionRecord, StandingBelief
from foretell.standing.related import related_questions

OWN, FIRST_ANSWER = "own forecast", "first answer"
"""Names of the last and of the first forecast for a question."""
LEAST_SCORED = 2
"""Fewest questions for a score with an interval."""
BAND = Resampling(draws=500, level=0.9)
"""How the band around the score over time is computed."""
LEAST_POINT = 5
"""Fewest questions at a point of the score over time, if there are more in all."""
MOST_POINTS = 60
"""Maximum number of points of the score over time."""


# One question with a confirmed outcome.


@frozen
class Update:
    """A change of a forecast, and what it was worth once the outcome was known."""

    number: int
    """Of the update: the first change is 1."""
    belief: StandingBelief
    before: StandingBelief
    gain: float | None = None
    """Brier score before minus after, averaged over targets: above 0 is better. None without an outcome."""

    @property
    def target(self) -> str:
        """The target that was moved most."""
        return moved_most(self.before, self.belief)

    @property
    def move(self) -> float:
        """How far that target was moved."""
        return self.belief.answer[self.target] - self.before.answer.get(self.target, self.belief.answer[self.target])


def moved_most(before: StandingBelief, after: StandingBelief) -> str:
    """Return the target that a belief moved most; the likeliest if none was moved."""
    p, q = after.answer, before.answer
    return max(p, key=lambda target: (abs(p[target] - q.get(target, p[target])), p[target]))


def updates_of(
    beliefs: Sequence[StandingBelief], outcome: Mapping[str, int] | None = None, until: datetime | None = None
) -> tuple[Update, ...]:
    """Return every change of a forecast, oldest first, with its gain if the outcome is given and came after it."""
    updates: list[Update] = []
    for number, (before, belief) in enumerate(pairwise(beliefs), 1):
        counts = outcome is not None and (until is None or belief.at < until)
        gain = brier(before.answer, outcome) - brier(belief.answer, outcome) if outcome is not None else None
        updates.append(Update(number=number, belief=belief, before=before, gain=gain if counts else None))
    return tuple(updates)


def brier(p: Mapping[str, float], outcome: Mapping[str, int]) -> float:
    """Return the mean squared error over the targets that have both a probability and an outcome."""
    return fmean((p[target] - came) ** 2 for target, came in outcome.items() if target in p)


@frozen
class ScoredQuestion:
    """A question with a confirmed outcome and a forecast from before it was known."""

    record: QuestionRecord
    outcome: Mapping[str, int]
    known_at: datetime
    """When the outcome was known at the latest; only earlier forecasts and prices count."""
    beliefs: tuple[StandingBelief, ...]
    """The forecasts that count, oldest first."""

    @property
    def id(self) -> str:
        """The id of the standing question."""
        return self.record.standing.id

    @property
    def first(self) -> StandingBelief:
        """The forecast when it was asked."""
        return self.beliefs[0]

    @property
    def last(self) -> StandingBelief:
        """The forecast that is scored."""
        return self.beliefs[-1]

    @cached_property
    def prices(self) -> Mapping[str, float]:
        """The market prices at the last look that counts; empty without a market."""
        return self._price_steps[-1][1] if self._price_steps else {}

    @cached_property
    def base_rates(self) -> Mapping[str, float]:
        """The base rates of the newest forecast that states any."""
        return next((belief.base_rates for belief in reversed(self.beliefs) if belief.base_rates), {})

    @property
    def leading(self) -> str:
        """The target to show if there is room for one: what came true, or else the likeliest."""
        true = [target for target, came in self.outcome.items() if came]
        p = self.last.answer
        return true[0] if len(true) == 1 else max(p, key=lambda target: p[target])

    @cached_property
    def brier(self) -> float:
        """Brier score of the last forecast."""
        return brier(self.last.answer, self.outcome)

    @cached_property
    def price_brier(self) -> float | None:
        """Brier score of the price; None unless every target has one."""
        return brier(self.prices, self.outcome) if set(self.prices) >= set(self.outcome) else None

    @cached_property
    def over_time(self) -> float:
        """Mean Brier score over the time from the first forecast until the outcome was known."""
        return self._mean_over_time([(belief.at, belief.answer) for belief in self.beliefs])

    @cached_property
    def price_over_time(self) -> float | None:
        """The same for the price, from its first look on; None without prices of every target."""
        steps = [(at, prices) for at, prices in self._price_steps if set(prices) >= set(self.outcome)]
        return self._mean_over_time(steps) if steps else None

    @cached_property
    def updates(self) -> tuple[Update, ...]:
        """The changes of the forecast that count."""
        return updates_of(self.beliefs, self.outcome)

    @cached_property
    def _price_steps(self) -> list[tuple[datetime, Mapping[str, float]]]:
        seen = [(each.at, each.prices) for each in (*self.record.looks, *self.beliefs) if each.prices]
        return sorted(((at, prices) for at, prices in seen if at < self.known_at), key=lambda step: step[0])

    def _mean_over_time(self, steps: Sequence[tuple[datetime, Mapping[str, float]]]) -> float:
        ends = [*(at for at, _ in steps[1:]), self.known_at]
        seconds = [max((end - at).total_seconds(), 0.0) for (at, _), end in zip(steps, ends, strict=True)]
        scores = [brier(p, self.outcome) for _, p in steps]
        total = sum(seconds)
        return scores[-1] if not total else sum(s * t for s, t in zip(scores, seconds, strict=True)) / total


def confirmed_outcome(record: QuestionRecord) -> dict[str, int]:
    """Return target → 0 or 1 as it was confirmed last; empty if it was not, or if the question was not decided."""
    if record.standing.state != "resolved":
        return {}
    newest = {row.target_id: row.outcome for row in record.outcomes}
    return {target: came for target, came in newest.items() if came is not None}


def accepted_proposal(record: QuestionRecord) -> OutcomeProposal | None:
    """Return the last proposal of the resolver that agrees with the confirmed outcome; None if there is none."""
    outcome = confirmed_outcome(record)
    agreeing = [each for each in record.proposals if each.outcome is not None and dict(each.outcome) == outcome]
    return agreeing[-1] if outcome and agreeing else None


def known_since(record: QuestionRecord) -> datetime:
    """Return when the outcome was known at the latest: at the deadline, when it was proposed, or when it was reported.

    A report ends the time for forecasts only if something came true. That nothing did is certain at the deadline, even
    if the fact that decided it was published before.

    Raises:
        ValueError: If the question has no confirmed outcome.
    """
    times = [row.resolved_at for row in record.outcomes if row.resolved_at is not None]
    if not times:
        raise ValueError(f"{record.standing.id} has no confirmed outcome")
    deadline = last_day(record.standing.question)
    known = [max(times), *([deadline] if deadline is not None else [])]
    if (proposal := accepted_proposal(record)) is not None:
        known.append(proposal.at)
        if any(confirmed_outcome(record).values()):
            known += [reading.published for reading in proposal.readings if reading.published is not None]
    return min(known)


def scored_question(record: QuestionRecord) -> ScoredQuestion:
    """Return a question with its outcome and the forecasts that count. Raises `InputError` if it cannot be scored."""
    outcome = confirmed_outcome(record)
    if not outcome:
        raise InputError("has no confirmed outcome")
    known_at = known_since(record)
    beliefs = tuple(belief for belief in record.beliefs if belief.at < known_at and set(belief.answer) & set(outcome))
    if not beliefs:
        raise InputError(f"has no forecast from before its outcome was known ({day_text(known_at)})")
    return ScoredQuestion(record=record, outcome=outcome, known_at=known_at, beliefs=beliefs)


# All questions together.


@frozen
class ScorePoint:
    """The Brier index of all questions that were decided by a day."""

    at: datetime
    n: int
    own: float
    low: float
    high: float
    """Ends of the 90 % interval."""
    first: float
    price: float | None = None
    rate: float | None = None


@frozen
class UpdateWorth:
    """What updates were worth."""

    count: int
    better: int
    """How many brought the forecast nearer to the outcome."""
    gain: Interval | None
    """Mean gain in Brier score of an update, above 0 is better; None with fewer than two questions."""
    billed: float
    """Dollars for all of them."""

    @property
    def each(self) -> float:
        """Dollars for one of them."""
        return self.billed / self.count if self.count else 0.0


@frozen
class HowResolved:
    """How the outcomes of ended questions were found."""

    as_proposed: int = 0
    by_itself: int = 0
    """Taken as proposed without a question, because the user said so."""
    otherwise: int = 0
    """The user decided against the proposal."""
    asked: int = 0
    """Nothing was proposed, so the user was asked."""
    cancelled: int = 0
    """Cancelled or ambiguous, and not scored."""


@frozen
class OwnRecord:
    """The record of one's own questions."""

    records: tuple[QuestionRecord, ...]
    """All of them, oldest first."""
    scored: tuple[ScoredQuestion, ...]
    """Those with a confirmed outcome and an earlier forecast, in the order in which they were decided."""
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Question with a confirmed outcome → why it is not scored."""
    table: ForecastTable | None = None
    board: Scoreboard | None = None
    """The forecasts beside price, base rate, first answer and always 0.5; None with fewer than two questions."""
    against_price: Verdict | None = None
    against_rate: Verdict | None = None
    against_first: Verdict | None = None
    over_time: Interval | None = None
    """Mean Brier score over the time that the questions were open: the second view."""
    price_over_time: tuple[float, float] | None = None
    """The same for forecast and price on the questions that have both."""

    @cached_property
    def open(self) -> tuple[QuestionRecord, ...]:
        """Questions that are watched or paused."""
        return tuple(record for record in self.records if record.standing.state in ("open", "paused"))

    @cached_property
    def waiting(self) -> tuple[QuestionRecord, ...]:
        """Questions for which the resolver proposed something that the user has not answered."""
        return tuple(record for record in self.open if waits_for_answer(record))

    @property
    def completion(self) -> float:
        """Share of the confirmed questions that are scored."""
        confirmed = len(self.scored) + len(self.left_out)
        return len(self.scored) / confirmed if confirmed else 0.0

    def metric(self, name: str, who: str = OWN) -> Interval | None:
        """Return a metric of the forecasts or of what they are compared with."""
        if self.board is None:
            return None
        rows = self.board.section(self.board.groups()[0]).rows
        return next((row.metric(name) for row in rows if row.name == who), None)

    def count(self, who: str) -> int:
        """Return on how many questions a forecaster of the board is scored."""
        if self.board is None:
            return 0
        rows = self.board.section(self.board.groups()[0]).rows
        return next((row.score.questions for row in rows if row.name == who), 0)

    @cached_property
    def updates(self) -> UpdateWorth:
        """What the updates were worth, of all scored questions."""
        pairs = [(question.id, update) for question in self.scored for update in question.updates]
        gains = [update.gain or 0.0 for _, update in pairs]
        several = len({id for id, _ in pairs}) >= LEAST_SCORED
        return UpdateWorth(
            count=len(pairs),
            better=sum(gain > 0 for gain in gains),
            gain=bootstrap_score(gains, [id for id, _ in pairs]) if several else None,
            billed=sum(update.belief.billed for _, update in pairs),
        )

    @cached_property
    def points(self) -> tuple[ScorePoint, ...]:
        """The score over time, after each day on which questions were decided."""
        if len(self.scored) < LEAST_SCORED:
            return ()
        least = LEAST_POINT if len(self.scored) > LEAST_POINT else LEAST_SCORED
        numbers = range(least, len(self.scored) + 1)
        step = -(-len(numbers) // MOST_POINTS)
        chosen = sorted({*numbers[::step], len(self.scored)})
        return tuple(_score_point(self.scored[:n]) for n in chosen)

    @cached_property
    def how_resolved(self) -> HowResolved:
        """How the outcomes of ended questions were found."""
        kinds = [_how_resolved(record) for record in self.records]
        return HowResolved(**{kind: kinds.count(kind) for kind in set(kinds) - {""}})


def waits_for_answer(record: QuestionRecord) -> bool:
    """Whether the user has to answer: an outcome was proposed, or the question needs a decision."""
    if record.standing.state not in ("open", "paused") or not record.proposals:
        return False
    last = record.proposals[-1]
    answered = max((row.resolved_at for row in record.outcomes if row.resolved_at is not None), default=None)
    return last.status != "not yet" and (answered is None or answered < last.at)


def own_record(records: Iterable[QuestionRecord]) -> OwnRecord:
    """Score all questions that have a confirmed outcome, each once."""
    records = tuple(records)
    scored: list[ScoredQuestion] = []
    left_out: dict[str, str] = {}
    for record in records:
        if confirmed_outcome(record):
            try:
                scored.append(scored_question(record))
            except InputError as error:
                left_out[record.standing.id] = str(error)
    scored.sort(key=lambda question: (question.known_at, question.id))
    base = OwnRecord(records=records, scored=tuple(scored), left_out=left_out)
    if len(scored) < LEAST_SCORED:
        return base
    table = _table(scored)
    both = [question for question in scored if question.price_over_time is not None]
    sides = [fmean(values) for values in zip(*((q.over_time, q.price_over_time or 0.0) for q in both), strict=True)]
    return OwnRecord(
        records=records,
        scored=tuple(scored),
        left_out=left_out,
        table=table,
        board=score_table(table, ScoringOptions(reference=OWN)),
        against_price=_verdict(table, MARKET_PRICE) if any(question.prices for question in scored) else None,
        against_rate=_verdict(table, BASE_RATE),
        against_first=_verdict(table, FIRST_ANSWER),
        over_time=bootstrap_score([question.over_time for question in scored], _clusters(scored)),
        price_over_time=(sides[0], sides[1]) if sides else None,
    )


def _verdict(table: ForecastTable, other: str) -> Verdict | None:
    verdicts = compare_pair(table, OWN, other).verdicts
    return verdicts[0] if verdicts else None


def _table(scored: Sequence[ScoredQuestion]) -> ForecastTable:
    """Join the last and first forecasts and the base rates with the outcomes; every question counts once."""
    forecasts: list[Row] = []
    outcomes: list[Row] = []
    for question, cluster in zip(scored, _clusters(scored), strict=True):
        asked = question.record.standing.question
        due = day_text(question.first.at)
        said = {OWN: question.last.answer, FIRST_ANSWER: question.first.answer, BASE_RATE: question.base_rates}
        for target, came in question.outcome.items():
            key = {"question": question.id, "target": target, "due": due}
            forecasts += [{"forecaster": name, **key, "p": p[target]} for name, p in said.items() if target in p]
            resolved = {"resolved_on": question.known_at.date().isoformat(), "price": question.prices.get(target)}
            outcomes.append(
                {**key, "outcome": came, "source": asked.source, "category": asked.category, "cluster": cluster}
                | resolved
            )
    return read_table(forecasts, outcomes, ReadOptions(weights="question"))


def _clusters(scored: Sequence[ScoredQuestion]) -> list[str]:
    """Return the cluster of each question: related questions share one."""
    names = {question.id: question.record.standing.question.cluster for question in scored}
    names = {id: id if name == _own_cluster(q) else name for (id, name), q in zip(names.items(), scored, strict=True)}
    for id, others in related_questions(question.record.standing for question in scored).items():
        for other in others:
            keep, change = names[id], names[other]
            names = {id: keep if name == change else name for id, name in names.items()}
    return [names[question.id] for question in scored]


def _own_cluster(question: ScoredQuestion) -> str:
    # Without a cluster, a question has its id as one; the same question may be watched twice.
    return question.record.standing.question.id


def watch_settings(record: QuestionRecord) -> Mapping[str, Any]:
    """Return the section `watch` of a question's settings."""
    watch: Any = record.standing.settings.get("watch")
    return cast("Mapping[str, Any]", watch) if isinstance(watch, Mapping) else {}


def _score_point(scored: Sequence[ScoredQuestion]) -> ScorePoint:
    clusters = _clusters(scored)
    own = np.array([question.brier for question in scored])
    band = bootstrap_score(
        np.column_stack([own, np.ones(len(own))]),
        clusters,
        statistic=brier_index_from_sums,
        resampling=BAND,
        bounds=(0.0, 100.0),
    )
    rates = [brier(q.base_rates, q.outcome) for q in scored if set(q.base_rates) >= set(q.outcome)]
    return ScorePoint(
        at=scored[-1].known_at,
        n=len(scored),
        own=band.estimate,
        low=band.low,
        high=band.high,
        first=_index([brier(question.first.answer, question.outcome) for question in scored]),
        price=_index([q.price_brier for q in scored if q.price_brier is not None]) if _priced(scored) else None,
        rate=_index(rates) if rates else None,
    )


def _priced(scored: Sequence[ScoredQuestion]) -> bool:
    return any(question.price_brier is not None for question in scored)


def _index(scores: Sequence[float]) -> float:
    return float(brier_index_from_sums(np.array([sum(scores), len(scores)], np.float64)))


def _how_resolved(record: QuestionRecord) -> str:
    if record.standing.state == "cancelled":
        return "cancelled"
    if record.standing.state != "resolved":
        return ""
    if accepted_proposal(record) is not None:
        itself = bool(record.outcomes) and record.outcomes[-1].provenance == AS_PROPOSED
        return "by_itself" if itself else "as_proposed"
    return "otherwise" if any(proposal.outcome is not None for proposal in record.proposals) else "asked"
