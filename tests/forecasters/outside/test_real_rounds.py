import asyncio
from pathlib import Path

import numpy as np
import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.datasets.question_set import QuestionSet
from foretell.forecasters.base_rates.outside_estimate import ReferenceClass
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import Context
from foretell.runs.past import past_of

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def rounds(shared_data: Path) -> QuestionSet:
    return read_rounds(shared_data / "forecastbench")


@pytest.fixture(scope="module")
def past(rounds: QuestionSet) -> Past:
    return past_of(rounds.questions, rounds.resolutions)


def test_outside_view_beats_base_rates_on_published_rounds(rounds: QuestionSet, past: Past) -> None:
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
    ai_question = next(q for q in rounds.questions if "top AI model" in q.text)
    later = max(q.due for q in rounds.questions)
    question = next(q for q in rounds.questions if q.due == later and q.kind == "market")
    similar = ReferenceClass.of(question, past.table, question.as_of)
    assert len(similar) == 40
    assert all(m.known_on < question.due.date() and m.id != question.id for m in similar.members)
    assert len({m.id for m in similar.members}) == 40
    near = ReferenceClass.of(ai_question, past.table, question.as_of, k=3)
    assert all("AI model" in m.text for m in near.members)
