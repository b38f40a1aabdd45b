"""How one's own questions are scored: once each, on the last forecast from before the outcome was known."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.standing.made_record import DAY, MadeQuestion, fill, made_questions

from foretell.metrics import brier, brier_index
from foretell.runs.store import RunStore
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.standing.confirm import confirm
from foretell.standing.own_record import (
    FIRST_ANSWER,
    OWN,
    OwnRecord,
    known_since,
    own_record,
    scored_question,
    updates_of,
)
from foretell.standing.record import OutcomeProposal, StandingBelief
from foretell.standing.store import StandingStore


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        yield runs


@pytest.fixture
def store(runs: RunStore) -> StandingStore:
    return StandingStore(runs.database)


def record_of(store: StandingStore) -> OwnRecord:
    return own_record(store.record(question.id) for question in store.questions())


def test_every_confirmed_question_is_scored_once_beside_price_base_rate_first_answer_and_half(runs: RunStore):
    own = record_of(fill(runs))
    made = made_questions()
    assert (len(own.scored), len(own.open), len(own.waiting), own.completion) == (40, 2, 1, 1.0)
    last = [question.path[-1] for question in made]
    index = own.metric("brier_index")
    assert index is not None
    assert index.estimate == pytest.approx(brier_index(float(brier(last, [q.came for q in made]).mean())))
    assert index.low < index.estimate < index.high
    assert own.count(MARKET_PRICE) == sum(bool(question.prices) for question in made)
    assert own.count(BASE_RATE) == sum(question.rate is not None for question in made)
    assert own.count(FIRST_ANSWER) == own.count(OWN) == 40
    half = own.metric("brier_index", ALWAYS_HALF)
    assert half is not None
    assert half.estimate == pytest.approx(50)
    assert own.points[-1].own == pytest.approx(index.estimate)
    assert (own.points[-1].n, own.how_resolved.cancelled) == (40, 1)


def test_the_price_is_that_of_the_last_look_before_the_outcome(store: StandingStore):
    made = MadeQuestion(number=1, came=False, path=(0.5, 0.4), prices=(0.5, 0.45, 0.4, 0.3))
    made.keep(store)
    question = scored_question(store.record(made.id))
    assert dict(question.prices) == {"yes": 0.3}
    assert question.price_brier == pytest.approx(0.09)
    # The forecast stood at 0.5 for two of the looks, and at 0.4 until the deadline.
    looks = [look.at for look in question.record.looks]
    first, rest = (looks[2] - looks[0]) / DAY, (made.closes - looks[2]) / DAY
    assert question.over_time == pytest.approx((0.25 * first + 0.16 * rest) / (first + rest))


def test_a_forecast_after_the_outcome_was_reported_does_not_count(store: StandingStore):
    made = MadeQuestion(number=1, came=True, path=(0.5, 0.6, 0.99))
    late = made.looks()[4][0].at
    assert store.open(made.standing(), made.opened)
    for look, belief in made.looks():
        store.add_look(made.id, look, None, belief=belief)
    reading = replace(made.proposal().readings[0], published=late - timedelta(hours=1))
    store.add_proposal(made.id, replace(made.proposal(), readings=(reading,)))
    confirm(store, made.id, "yes", made.closes)
    question = scored_question(store.record(made.id))
    assert (question.known_at, question.last.p["yes"]) == (reading.published, 0.6)
    # If nothing came true, what was published before the deadline did not settle it.
    confirm(store, made.id, "no", made.closes)
    record = store.record(made.id)
    assert (known_since(record), scored_question(record).last.p["yes"]) == (made.closes, 0.99)


def test_a_question_without_a_forecast_in_time_lowers_the_completion(store: StandingStore):
    for number, early in ((1, False), (2, False), (3, True)):
        made = MadeQuestion(number=number, came=True, path=(0.5, 0.6), proposed=False)
        made.keep(store, confirmed=not early)
        if early:
            reading = replace(made.proposal().readings[0], published=made.opened - DAY)
            store.add_proposal(made.id, replace(made.proposal(), readings=(reading,)))
            confirm(store, made.id, "proposed", made.closes)
    own = record_of(store)
    assert list(own.left_out) == ["made-03"]
    assert "before its outcome was known" in own.left_out["made-03"]
    assert own.completion == pytest.approx(2 / 3)


def test_nothing_is_scored_before_it_is_confirmed(store: StandingStore):
    MadeQuestion(number=1, came=True, path=(0.5, 0.6)).keep(store, confirmed=False)
    own = record_of(store)
    assert (own.scored, own.board, own.points) == ((), None, ())
    assert [record.standing.id for record in own.waiting] == ["made-01"]
    confirm(store, "made-01", "not-yet", MadeQuestion(number=1, came=True, path=()).closes + 2 * DAY)
    assert record_of(store).board is None


def test_updates_are_worth_what_they_gained(store: StandingStore):
    made = [MadeQuestion(number=n, came=True, path=(0.5, 0.6, 0.5)) for n in range(2)]
    for question in made:
        question.keep(store)
    worth = record_of(store).updates
    assert (worth.count, worth.better, worth.billed) == (4, 2, pytest.approx(4 * 0.022))
    assert worth.gain is not None
    assert worth.gain.estimate == pytest.approx(0)
    assert worth.each == pytest.approx(0.022)


def test_the_answer_that_agrees_with_related_questions_is_scored():
    first = StandingBelief(number=1, look=1, at=DAY + MadeQuestion(number=0, came=True, path=()).opened, p={"yes": 0.5})
    second = replace(first, number=2, p={"yes": 0.6}, coherent={"yes": 0.7})
    (update,) = updates_of([first, second], {"yes": 1})
    assert (update.move, update.gain) == (pytest.approx(0.2), pytest.approx(0.25 - 0.09))


def test_declared_relations_are_one_cluster(store: StandingStore):
    for number in range(4):
        made = MadeQuestion(number=number, came=bool(number % 2), path=(0.5, 0.6))
        made.keep(store)
        if number:
            standing = store.find(made.id)
            settings = {**standing.settings, "watch": {"related": ["made-00"]}}
            store.update(replace(standing, settings=settings))
    index = record_of(store).metric("brier_index")
    assert index is not None
    assert index.n_clusters == 1


def test_how_outcomes_were_found_is_counted(store: StandingStore):
    answers = {1: "proposed", 2: "no", 3: "yes", 4: "cancelled"}
    for number, answer in answers.items():
        made = MadeQuestion(number=number, came=True, path=(0.5, 0.6), proposed=number != 3)
        made.keep(store, confirmed=False)
        if number == 4:
            store.add_proposal(made.id, OutcomeProposal(at=made.closes, outcome=None, status="cancelled"))
        confirm(store, made.id, answer, made.closes + 2 * DAY)
    how = record_of(store).how_resolved
    assert (how.as_proposed, how.otherwise, how.asked, how.cancelled, how.by_itself) == (1, 1, 1, 1, 0)
