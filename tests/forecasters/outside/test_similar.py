from datetime import date

import pytest

from foretell.forecasters.base_rates.outside_estimate import ReferenceClass
from foretell.forecasters.base_rates.past import Past, PastQuestions
from foretell.number_text import percent
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target

CUTOFF = AsOf.day("2025-12-31")


def make_question(text: str, id: str = "new") -> Question:
    return Question(id=id, source="own", text=text, due="2025-12-31", targets=(Target(id="yes"),))


def test_most_similar_questions_come_first(parade_bank: PastQuestions) -> None:
    similar = ReferenceClass.of(
        make_question("Will a parade be seen over Rome by 1 March 2026?"), parade_bank, CUTOFF, k=20
    )
    assert len(similar) == 20
    assert all("parade" in m.text for m in similar.members)
    near = [m.similarity for m in similar.members]
    assert near == sorted(near, reverse=True)
    assert 0 < near[0] <= 1
    assert similar.sentence == f"of the 20 most similar questions {percent(similar.rate)} resolved yes"


def test_only_questions_answered_before_the_cutoff_are_members(parade_bank: PastQuestions) -> None:
    cutoff = AsOf.day("2025-03-01")
    similar = ReferenceClass.of(make_question("Will a comet be seen?"), parade_bank, cutoff)
    assert similar.members
    assert all(m.known_on < date(2025, 3, 1) for m in similar.members)


def test_question_counts_once_by_its_last_asking_and_never_itself(bank_of) -> None:
    answer = {"text": "Will it rain?", "outcome": 1.0, "known_on": "2025-06-01"}
    bank = bank_of(
        [
            answer | {"id": "a", "due": "2025-01-05"},
            answer | {"id": "a", "due": "2025-02-05"},
            answer | {"id": "b", "due": "2025-01-05", "outcome": 0.0},
            answer | {"id": "new", "due": "2025-01-05"},
        ]
    )
    similar = ReferenceClass.of(make_question("Will it rain?"), bank, CUTOFF)
    assert sorted((m.id, m.due.isoformat()) for m in similar.members) == [("a", "2025-02-05"), ("b", "2025-01-05")]
    assert similar.rate == 0.5
    assert similar.members[0].similarity == pytest.approx(1.0)


def test_early_answers_have_no_weight_until_their_deadline_is_over(bank_of) -> None:
    over = {"text": "Will it rain by 1 December 2025?", "outcome": 1.0, "known_on": "2025-02-01"}
    ahead = over | {"text": "Will it rain by 1 December 2026?"}
    late = over | {"outcome": 0.0, "known_on": "2025-12-02"}
    similar = ReferenceClass.of(make_question("Will it rain by 1 June 2026?"), bank_of([ahead, late]), CUTOFF)
    assert similar.rate == 0.5
    assert similar.blended(0.4, strength=1.0) == pytest.approx(0.2)
    similar = ReferenceClass.of(make_question("Will it rain by 1 June 2026?"), bank_of([over, late]), CUTOFF)
    assert similar.blended(0.5, strength=1.0) == pytest.approx(0.5)


def test_empty_bank_gives_an_empty_class() -> None:
    similar = ReferenceClass.of(make_question("Will it rain?"), Past().table, CUTOFF)
    assert similar.rate is None
    assert similar.blended(0.4) == 0.4
    assert similar.sentence == "no similar question was answered before"
