from datetime import date

import numpy as np
from tests.forecasters.stack.made import rate, told

from foretell.forecasters.base_rates import Past, PastAnswer

FIRST, SECOND = rate("DFF", "2025-03-02"), rate("DFF", "2025-03-16")


def test_answers_find_the_asking_they_belong_to() -> None:
    past = Past.of([FIRST, SECOND], [*told(FIRST, 1, 0), *told(SECOND, 1)])
    assert [(x.question, x.target.id, x.outcome) for x in past.resolved] == [
        (FIRST, "2025-03-09", 1),
        (FIRST, "2025-04-01", 0),
        (SECOND, "2025-03-23", 1),
    ]
    assert past.questions == (FIRST, SECOND)


def test_an_answer_to_nothing_asked_is_left_out() -> None:
    stray = PastAnswer(
        question_id=FIRST.id, due=FIRST.due, target_id="2031-01-01", outcome=1, known_on=date(2031, 1, 1)
    )
    assert Past.of([FIRST], [stray]).resolved == ()
    assert Past.of([SECOND], told(FIRST, 1)).resolved == ()


def test_base_rates_are_counted_from_the_same_answers() -> None:
    outcomes = Past.of([FIRST], told(FIRST, 1, 0)).outcomes
    assert outcomes.horizon_days.tolist() == [7, 30]
    assert outcomes.outcome.tolist() == [1.0, 0.0]
    assert outcomes.known_on.tolist() == np.array(["2025-03-09", "2025-04-01"], "M8[D]").tolist()
    assert len(Past().outcomes) == 0
