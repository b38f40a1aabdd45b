from datetime import date

import numpy as np
from tests.forecasters.model_free.simulated import answers_to, rate

from foretell.forecasters.base_rates.past import Past, PastAnswer

FIRST, SECOND = rate("DFF", "2025-03-02"), rate("DFF", "2025-03-16")


def test_answers_are_joined_to_their_asking() -> None:
    past = Past.of([FIRST, SECOND], [*answers_to(FIRST, 1, 0), *answers_to(SECOND, 1)])
    assert [(x.question, x.target.id, x.outcome) for x in past.resolved] == [
        (FIRST, "2025-03-09", 1),
        (FIRST, "2025-04-01", 0),
        (SECOND, "2025-03-23", 1),
    ]
    assert past.questions == (FIRST, SECOND)


def test_answers_without_a_question_are_ignored() -> None:
    stray = PastAnswer(
        question_id=FIRST.id, due=FIRST.due, target_id="2031-01-01", outcome=1, known_on=date(2031, 1, 1)
    )
    assert Past.of([FIRST], [stray]).resolved == ()
    assert Past.of([SECOND], answers_to(FIRST, 1)).resolved == ()


def test_outcomes_have_the_horizons_of_their_targets() -> None:
    outcomes = Past.of([FIRST], answers_to(FIRST, 1, 0)).outcomes
    assert outcomes.horizon_days.tolist() == [7, 30]
    assert outcomes.outcome.tolist() == [1.0, 0.0]
    assert outcomes.known_on.tolist() == np.array(["2025-03-09", "2025-04-01"], "M8[D]").tolist()
    assert len(Past().outcomes) == 0
