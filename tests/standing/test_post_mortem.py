"""Why forecasts were wrong: what decided, and whether research had found it."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.standing.made_record import DAY, MadeQuestion, fill

from foretell.runs.store import RunStore
from foretell.standing.confirm import confirm
from foretell.standing.own_record import own_record, scored_question
from foretell.standing.post_mortem import FAULTS, PostMortem, post_mortem, post_mortems
from foretell.standing.record import OutcomeReading
from foretell.standing.store import StandingStore

WRONG = (0.6, 0.7, 0.71)
"""Forecasts of something that did not happen; the last update is small."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StandingStore]:
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        yield StandingStore(runs.database)


def examined(store: StandingStore, made: MadeQuestion) -> PostMortem:
    made.keep(store)
    return post_mortem(scored_question(store.record(made.id)))


def test_a_public_fact_that_no_look_found(store: StandingStore):
    result = examined(store, MadeQuestion(number=1, came=False, path=WRONG, found=False))
    assert (result.fault, result.found, result.fact) == ("not found", False, None)
    assert "published on 7 March" in result.why
    assert result.decided_by is not None


def test_a_fact_that_was_read_as_the_opposite(store: StandingStore):
    result = examined(store, MadeQuestion(number=1, came=False, path=(0.6, 0.7, 0.8), wrong_sign=True))
    assert (result.fault, result.found) == ("misread", True)
    assert "wrong way by 10 points" in result.why


def test_a_fact_that_hardly_moved_the_forecast(store: StandingStore):
    result = examined(store, MadeQuestion(number=1, came=False, path=(0.6, 0.71, 0.7)))
    assert (result.fault, result.moved) == ("counted too little", pytest.approx(0.01))
    assert "1 point" in result.why


def test_a_fact_that_was_seen_but_not_counted(store: StandingStore):
    made = MadeQuestion(number=1, came=False, path=WRONG, found=False)
    assert store.open(made.standing(), made.opened)
    for look, belief in made.looks():
        if look.number == 2:
            evidence = replace(look.news[0], text=made.fact)
            look = replace(look, news=(evidence,), bears=False)
        store.add_look(made.id, look, None, belief=belief)
    store.add_proposal(made.id, made.proposal())
    confirm(store, made.id, "proposed", made.closes + 2 * DAY)
    result = post_mortem(scored_question(store.record(made.id)))
    assert result.fault == "counted too little"
    assert "judged not to bear" in result.why


def test_a_fact_that_was_found_and_counted(store: StandingStore):
    result = examined(store, MadeQuestion(number=1, came=False, path=(0.9, 0.9, 0.6), rate=0.7))
    assert (result.fault, result.found) == ("nothing wrong", True)
    assert "The base rate said the same" in result.why


def test_an_event_that_was_reported_only_when_it_happened(store: StandingStore):
    result = examined(store, MadeQuestion(number=1, came=True, path=(0.2, 0.25), found=False))
    assert (result.fault, result.found) == ("nothing wrong", None)
    assert "not public before" in result.why
    assert "one time in four" in result.why


def test_a_price_that_led_shows_that_something_was_public(store: StandingStore):
    made = MadeQuestion(number=1, came=True, path=(0.2, 0.25), prices=(0.2, 0.2, 0.2, 0.7), found=False, proposed=False)
    result = examined(store, made)
    assert result.fault == "not found"
    assert "from 20 % to 70 %" in result.why


def test_a_number_cannot_be_found_beforehand(store: StandingStore):
    made = MadeQuestion(number=1, came=False, path=WRONG, found=False)
    made.keep(store, confirmed=False)
    reading = OutcomeReading(reader="arithmetic", outcome="no", quote="1.9", published=made.reported)
    store.add_proposal(made.id, replace(made.proposal(), readings=(reading,)))
    confirm(store, made.id, "proposed", made.closes + 2 * DAY)
    result = post_mortem(scored_question(store.record(made.id)))
    assert (result.fault, result.found) == ("nothing wrong", None)
    assert "a number that was published at the end" in result.why


def test_the_same_page_is_the_same_fact(store: StandingStore):
    made = MadeQuestion(number=1, came=False, path=(0.6, 0.7, 0.5))
    made.keep(store, confirmed=False)
    reading = replace(made.proposal().readings[0], quote="Entry 4.", url="https://www.register.example/1/#entry")
    store.add_proposal(made.id, replace(made.proposal(), readings=(reading,), at=made.closes + timedelta(hours=30)))
    confirm(store, made.id, "proposed", made.closes + 2 * DAY)
    assert post_mortem(scored_question(store.record(made.id))).found


def test_research_has_a_score_apart_from_the_forecasts(store: StandingStore):
    with closing(RunStore(Path(str(store.db.place)).with_name("more.db"))) as runs:
        filled = fill(runs)
        own = own_record(filled.record(question.id) for question in filled.questions())
        results = post_mortems(own)
    research = results.research
    assert research.found + research.not_found + research.unknowable == 40
    assert research.found > research.not_found > 0
    assert research.brier_found is not None
    assert research.brier_not_found is not None
    assert list(results.faults) == list(FAULTS)
    assert sum(results.faults.values()) == len(results.worst)
    scores = [each.question.brier for each in results.all]
    assert scores == sorted(scores, reverse=True)
    assert all(each.ahead is not None and each.ahead > 0 for each in results.best)
