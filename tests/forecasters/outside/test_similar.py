from datetime import date

import pytest

from foretell.forecasters.base_rates import Past, PastQuestions, ReferenceClass
from foretell.questions import AsOf, Question, Target

CUTOFF = AsOf.day("2025-12-31")


def asked(text: str, id: str = "new") -> Question:
    return Question(id=id, source="own", text=text, due="2025-12-31", targets=(Target(id="yes"),))


def test_the_nearest_come_first_and_are_told(taught: PastQuestions) -> None:
    found = ReferenceClass.of(asked("Will a parade be seen over Rome by 1 March 2026?"), taught, CUTOFF, k=20)
    assert len(found) == 20
    assert all("parade" in m.text for m in found.members)
    near = [m.similarity for m in found.members]
    assert near == sorted(near, reverse=True)
    assert 0 < near[0] <= 1
    assert found.sentence == f"of the 20 most similar questions {found.rate:.0%} resolved yes"


def test_only_what_was_answered_before_the_day(taught: PastQuestions) -> None:
    cutoff = AsOf.day("2025-03-01")
    found = ReferenceClass.of(asked("Will a comet be seen?"), taught, cutoff)
    assert found.members
    assert all(m.known_on < date(2025, 3, 1) for m in found.members)


def test_a_question_counts_once_and_never_itself(bank_of) -> None:
    answer = {"text": "Will it rain?", "outcome": 1.0, "known_on": "2025-06-01"}
    bank = bank_of(
        [
            answer | {"id": "a", "due": "2025-01-05"},
            answer | {"id": "a", "due": "2025-02-05"},
            answer | {"id": "b", "due": "2025-01-05", "outcome": 0.0},
            answer | {"id": "new", "due": "2025-01-05"},
        ]
    )
    found = ReferenceClass.of(asked("Will it rain?"), bank, CUTOFF)
    assert sorted((m.id, m.due.isoformat()) for m in found.members) == [("a", "2025-02-05"), ("b", "2025-01-05")]
    assert found.rate == 0.5
    assert found.members[0].similarity == pytest.approx(1.0)


def test_early_answers_are_listed_and_do_not_weigh_until_their_deadline_is_over(bank_of) -> None:
    over = {"text": "Will it rain by 1 December 2025?", "outcome": 1.0, "known_on": "2025-02-01"}
    ahead = over | {"text": "Will it rain by 1 December 2026?"}
    late = over | {"outcome": 0.0, "known_on": "2025-12-02"}
    found = ReferenceClass.of(asked("Will it rain by 1 June 2026?"), bank_of([ahead, late]), CUTOFF)
    assert found.rate == 0.5
    assert found.blended(0.4, strength=1.0) == pytest.approx(0.2)
    found = ReferenceClass.of(asked("Will it rain by 1 June 2026?"), bank_of([over, late]), CUTOFF)
    assert found.blended(0.5, strength=1.0) == pytest.approx(0.5)


def test_an_empty_bank_says_nothing() -> None:
    found = ReferenceClass.of(asked("Will it rain?"), Past().table, CUTOFF)
    assert found.rate is None
    assert found.blended(0.4) == 0.4
    assert found.sentence == "no similar question was answered before"
