import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.store import RunStore
from foretell.standing.history import QuestionHistory
from foretell.standing.record import (
    Look,
    NewEvidence,
    OutcomeProposal,
    OutcomeReading,
    QuestionRecord,
    StandingBelief,
    StandingQuestion,
)
from foretell.standing.store import StandingStore

DAY = datetime(2026, 7, 14, tzinfo=UTC)
QUESTION = Question(
    id="asked/1",
    source="asked",
    text="Does the port reopen?",
    due=DAY,
    targets=(Target(id="yes", resolves_at="2026-12-01"),),
)
PORT = StandingQuestion(id="port", question=QUESTION, opened_at=DAY, settings={"models": {"agent": "openai:x"}})
NEWS = NewEvidence(key="permit", text="The permit is granted.", url="https://example.org/1", published=DAY)


def look(number: int, *news: NewEvidence) -> Look:
    return Look(number=number, at=DAY + timedelta(days=number), triggers=("clock",), prices={"yes": 0.4}, news=news)


def belief(number: int) -> StandingBelief:
    return StandingBelief(
        number=number, look=number, at=DAY, p={"yes": 0.5}, ranges={"yes": (0.3, 0.7)}, evidence=(NEWS,)
    )


def test_a_record_is_read_as_it_was_written(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        assert store.open(PORT, DAY)
        assert store.add_look("port", look(1, NEWS), DAY + timedelta(days=9), belief=belief(1))
        proposal = OutcomeProposal(
            at=DAY,
            outcome={"yes": 1},
            status="proposed",
            readings=(OutcomeReading(reader="arithmetic", outcome="yes"),),
        )
        store.add_proposal("port", proposal)
        record = store.record("port")
        assert (record.standing, record.looks, record.beliefs) == (PORT, (look(1, NEWS),), (belief(1),))
        assert record.proposals == (proposal,)
        assert store.seen("port") == {"permit"}
        assert store.next_look("port") == DAY + timedelta(days=9)
        outcome = Resolution(question_id="asked/1", target_id="yes", outcome=1, resolved_at=DAY)
        store.resolve("port", [outcome], DAY, "resolved")
        assert store.record("port").outcomes == (outcome,)
        assert [question.state for question in store.questions(["resolved"])] == ["resolved"]
        assert store.next_look("port") is None


def test_an_id_is_given_once(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        assert [store.open(PORT, DAY), store.open(PORT, DAY)] == [True, False]


def test_one_of_many_processes_stores_a_look(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        store.open(PORT, DAY)
        with ThreadPoolExecutor(4) as pool:
            stored = list(pool.map(lambda _: store.add_look("port", look(1, NEWS), DAY), range(4)))
        assert sum(stored) == 1
        assert len(store.record("port").looks) == 1


def test_entries_that_are_added_at_once_are_all_kept(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        store.open(PORT, DAY)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: store.add_notice("port", DAY, {"n": n}), range(8)))
        assert sorted(notice["n"] for notice in store.notices("port")) == list(range(8))


def test_an_unknown_question_is_named_with_the_nearest(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        store.open(PORT, DAY)
        assert store.find("po").id == "port"
        with pytest.raises(InputError, match="port"):
            store.find("prot")


def test_sentences_of_pages_are_forgotten_when_a_question_ends(place: Path | str):
    with closing(RunStore(place)) as runs:
        store = StandingStore(runs.database)
        for id in ("port", "tram"):
            store.open(replace(PORT, id=id), DAY)
            marks = [NewEvidence(key=key, text="") for key in ("address 1", "whole address 1", "said 2", "saidst")]
            store.add_look(id, look(1, NEWS), DAY, seen=marks)
        store.resolve("port", [Resolution(question_id="asked/1", target_id="yes", outcome=1)], DAY, "resolved")
        assert store.seen("port") == {"permit", "address 1", "saidst"}
        assert store.seen("tram") == {"permit", "address 1", "saidst", "whole address 1", "said 2"}


def test_a_damaged_question_is_left_out_and_named(caplog: pytest.LogCaptureFixture, tmp_path: Path):
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        store = StandingStore(runs.database)
        for id in ("port", "tram", "ship"):
            store.open(replace(PORT, id=id), DAY)
        runs.database.write("update standing set body = ? where id = ?", ('{"id": "po', "port"))
        runs.database.write("update standing set next_look = ? where id = ?", ("yesterday", "tram"))
        with caplog.at_level("WARNING", "foretell.standing"):
            assert [standing.id for standing in store.questions()] == ["ship", "tram"]
            assert [(standing.id, at <= DAY) for standing, at in store.planned()] == [("ship", True), ("tram", True)]
        assert "the watched question port is damaged" in caplog.text
        store.add_look("ship", look(1), DAY)
        runs.database.write("update standing_entry set body = ? where standing = ?", ("[", "ship"))
        assert [record.standing.id for record in store.readable_records(["ship", "tram"])] == ["tram"]
        with pytest.raises(InputError, match="look 1 of the watched question ship is damaged"):
            store.record("ship")


def test_the_command_line_names_a_damaged_question(tmp_path: Path):
    with closing(RunStore(tmp_path / "runs.db")) as runs:
        store = StandingStore(runs.database)
        for id in ("port", "tram"):
            store.open(replace(PORT, id=id), DAY)
        runs.database.write("update standing set body = ? where id = ?", ("[", "port"))
    words = [sys.executable, "-m", "foretell", "record"]
    shown = subprocess.run(words, env={**os.environ, "FORETELL_HOME": str(tmp_path)}, capture_output=True, text=True)
    assert "note: the watched question port is damaged" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_look_that_changed_the_forecast_is_billed_once():
    """The look and the forecast that it led to have the same bill."""
    at = [DAY + timedelta(days=n) for n in range(4)]
    bills = (0.5, 0.01, 0.25, 0.02)  # The first answer, a quiet look, an update, a quiet look.
    looks = tuple(
        replace(look(n + 1), at=day, billed=bill) for n, (day, bill) in enumerate(zip(at, bills, strict=True))
    )
    beliefs = (
        replace(belief(1), at=at[0], billed=bills[0]),
        replace(belief(2), look=3, at=at[2], billed=bills[2]),
    )
    proposal = OutcomeProposal(at=at[3], outcome={"yes": 1}, status="proposed", readings=(), billed=0.04)
    record = QuestionRecord(standing=PORT, looks=looks, beliefs=beliefs, proposals=(proposal,))
    spent = QuestionHistory(record=record, now=at[3]).spent
    assert (spent.first, spent.updates, spent.resolving) == (0.5, 0.25, 0.04)
    assert spent.judging == pytest.approx(0.03)
    assert spent.total == pytest.approx(sum(bills) + 0.04)
    assert spent.dearest_day == pytest.approx(0.25)
