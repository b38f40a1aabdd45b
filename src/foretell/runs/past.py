"""What had come true before: questions and outcomes of a set as the past that others learn from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretell.forecasters.base_rates.past import Past, PastAnswer, PastQuestions
from foretell.forecasters.base_rates.rates import BaseRates, PastOutcomes, Rates
from foretell.forecasters.base_rates.text_features import question_text
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution


def past_outcomes(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> PastOutcomes:
    """Every resolved target with the day on which it became known; undated outcomes are left out."""
    asked = {(q.id, q.due): q for q in questions}
    rows: list[tuple[np.datetime64, str, str, int, int]] = []
    for found in resolutions:
        question = asked.get((found.question_id, found.due)) if found.due else None
        if question is None or found.outcome is None or found.resolved_at is None:
            continue
        known = np.datetime64(found.resolved_at.date(), "D")
        horizon = (found.resolved_at.date() - question.due.date()).days
        rows.append((known, question.source, question.subtype, horizon, found.outcome))
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), (), ()]
    return PastOutcomes(
        known_on=np.array(columns[0], "M8[D]"),
        source=np.array(columns[1], str),
        subtype=np.array(columns[2], str),
        horizon_days=np.array(columns[3], np.int64),
        outcome=np.array(columns[4], np.float64),
    )


def base_rates(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> BaseRates | None:
    """Base rates of the set, each question seeing only what was known before its date; None where nothing resolved."""
    past = past_outcomes(questions, resolutions)
    return BaseRates(past=past) if len(past) else None


def past_questions(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> PastQuestions:
    """Every target that was asked, resolved or not, with its price then and the day its outcome became known.

    Outcomes without a date are left out, as nobody can say when they could have been learnt from.
    """
    found = {(r.question_id, r.due, r.target_id): r for r in resolutions if r.outcome is not None and r.resolved_at}
    rows: list[tuple[Any, ...]] = []
    for question in questions:
        for target in question.targets:
            answer = found.get((question.id, question.due, target.id))
            rows.append((*_question_columns(question, target), *_outcome_columns(answer)))
    return _table(rows)


def _question_columns(question: Question, target: Target) -> tuple[Any, ...]:
    snapshot, resolves = target.snapshot, target.resolves_at or question.closes_at
    price = None if snapshot is None else snapshot.price
    return (
        question.id,
        question_text(question, target),
        question.source,
        question.subtype,
        question.kind,
        question.url,
        question.due.date(),
        None if resolves is None else resolves.date(),
        None if price is None or snapshot is None else snapshot.at.date(),
        np.nan if price is None else price,
        np.nan if question.last_value is None else question.last_value.value,
    )


def _outcome_columns(answer: Resolution | None) -> tuple[Any, ...]:
    if answer is None or answer.outcome is None or answer.resolved_at is None:
        return None, np.nan
    return answer.resolved_at.date(), float(answer.outcome)


def _table(rows: list[tuple[Any, ...]]) -> PastQuestions:
    names = ("id", "text", "source", "subtype", "kind", "url", "due", "resolves", "price_on", "price", "size")
    columns = list(zip(*rows, strict=True)) if rows else [()] * (len(names) + 2)
    kinds = ("U", "O", "U", "U", "U", "U", "M8[D]", "M8[D]", "M8[D]", "f8", "f8", "M8[D]", "f8")
    arrays = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
    return PastQuestions(**dict(zip((*names, "known_on", "outcome"), arrays, strict=True)))


def known_past(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> Past:
    """Everything asked and answered; whoever reads it names the day up to which it may."""
    answers = [
        PastAnswer(
            question_id=r.question_id,
            due=r.due,
            target_id=r.target_id,
            outcome=r.outcome,
            known_on=r.resolved_at.date(),
        )
        for r in resolutions
        if r.outcome is not None and r.due is not None and r.resolved_at is not None
    ]
    return Past.of(questions, answers)


# Base rates that travel with a run, so that any machine can ask its questions without the data set they come from.


def rates_of(
    questions: Sequence[Question], rates: Rates | None, mode: AsOfMode
) -> Iterator[tuple[Question, str, float]]:
    """The base rate of every target that has one, as of the moment its question is asked."""
    if rates is None:
        return
    for question in questions:
        for target in question.targets:
            found = rates.rate(question, target, question.as_of_in(mode))
            if found is not None:
                yield question, target.id, found


@dataclass(frozen=True, kw_only=True)
class StoredRates:
    """Base rates by question, date of asking and target."""

    table: Mapping[tuple[str, str, str], float]

    def rate(self, question: Question, target: Target, as_of: AsOf) -> float | None:
        """The one that was kept."""
        return self.table.get((question.id, question.due.isoformat(), target.id))
