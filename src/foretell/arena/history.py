"""What had come true before: questions and outcomes of a set as the past that others learn from."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from foretell.forecasters.outside.past import PastQuestions
from foretell.forecasters.outside.seen import question_text
from foretell.forecasters.priors import BaseRates, PastOutcomes
from foretell.forecasters.stack.past import Answer, Past
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
            rows.append((*_asked(question, target), *_answered(answer)))
    return _table(rows)


def _asked(question: Question, target: Target) -> tuple[Any, ...]:
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


def _answered(answer: Resolution | None) -> tuple[Any, ...]:
    if answer is None or answer.outcome is None or answer.resolved_at is None:
        return None, np.nan
    return answer.resolved_at.date(), float(answer.outcome)


def _table(rows: list[tuple[Any, ...]]) -> PastQuestions:
    names = ("id", "text", "source", "subtype", "kind", "url", "due", "resolves", "price_on", "price", "size")
    columns = list(zip(*rows, strict=True)) if rows else [()] * (len(names) + 2)
    kinds = ("U", "O", "U", "U", "U", "U", "M8[D]", "M8[D]", "M8[D]", "f8", "f8", "M8[D]", "f8")
    arrays = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
    return PastQuestions(**dict(zip((*names, "known_on", "outcome"), arrays, strict=True)))


def past(questions: Iterable[Question], resolutions: Iterable[Resolution]) -> Past:
    """Everything asked and answered; whoever reads it names the day up to which it may."""
    answers = [
        Answer(
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
