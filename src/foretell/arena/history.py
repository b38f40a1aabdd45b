"""What had come true before: outcomes of a question set as the past that base rates are counted from."""

from collections.abc import Iterable

import numpy as np

from foretell.forecasters.priors import BaseRates, PastOutcomes
from foretell.questions.question import Question
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
