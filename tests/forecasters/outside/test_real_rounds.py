import asyncio
from pathlib import Path

import numpy as np
import pytest

from foretell.data.datasets import QuestionSet, read_rounds
from foretell.forecasters import Context
from foretell.forecasters.base_rates import OutsideView, Past, ReferenceClass
from foretell.runs import past_of

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def rounds(shared_data: Path) -> QuestionSet:
    return read_rounds(shared_data / "forecastbench")


@pytest.fixture(scope="module")
def past(rounds: QuestionSet) -> Past:
    return past_of(rounds.questions, rounds.resolutions)


def test_published_rounds_are_forecast_from_their_past_better_than_by_base_rates(
    rounds: QuestionSet, past: Past
) -> None:
    outcomes = {(id, due): outcome for (id, due, target), outcome in rounds.outcomes().items() if target == "yes"}
    rates = past.rates
    assert rates is not None
    dues = sorted({q.due for q in rounds.questions if q.kind == "market"})[2::2]
    view, losses = OutsideView(), []
    for q in rounds.questions:
        if q.kind != "market" or q.due not in dues or (q.id, q.due) not in outcomes:
            continue
        y = outcomes[q.id, q.due]
        p = asyncio.run(view.forecast(q, Context(as_of=q.as_of, past=past))).p["yes"]
        losses.append(((p - y) ** 2, ((rates.rate(q, q.targets[0], q.as_of) or 0.5) - y) ** 2))
    ours, theirs = np.mean(losses, axis=0)
    assert len(losses) > 150
    assert ours < theirs - 0.01


def test_similar_questions_are_about_the_same_thing(rounds: QuestionSet, past: Past) -> None:
    asked = next(q for q in rounds.questions if "top AI model" in q.text)
    later = max(q.due for q in rounds.questions)
    question = next(q for q in rounds.questions if q.due == later and q.kind == "market")
    found = ReferenceClass.of(question, past.table, question.as_of)
    assert len(found) == 40
    assert all(m.known_on < question.due.date() and m.id != question.id for m in found.members)
    assert len({m.id for m in found.members}) == 40
    near = ReferenceClass.of(asked, past.table, question.as_of, k=3)
    assert all("AI model" in m.text for m in near.members)
