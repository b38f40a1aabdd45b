"""Questions of a Metaculus tournament are listed live and stored as first seen."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.markets import FakeMetaculus
from fakes.samples import SampleMetaculusQuestion, metaculus_post_body
from foretell.data.datasets.question_set import QuestionSet, SetFilter
from foretell.practice.markets.metaculus import MetaculusCatalogue
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.runs.listings import open_listing
from foretell.runs.question_sets import open_benchmark
from foretell.runs.runner import prepare_run
from foretell.runs.set_names import SetName, Tournament
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec

NOW = instant("2026-11-15T10:00:00Z")
TOKEN = "metaculus-canary"
MINE = Tournament(slug="minibench")


def open_questions(tournament: Tournament, settings: Settings, now: datetime) -> QuestionSet:
    named = SetName(kind="markets", name="metaculus", argument=tournament.slug)
    return open_listing(named, SetFilter(again=tournament.again), settings, now)


def posts(*, price: float = 0.4) -> list[dict[str, Any]]:
    far = {"closes": "2999-01-01T00:00:00Z", "resolves": "2999-02-01T00:00:00Z"}
    return [
        metaculus_post_body(
            11, "Will it rain?", SampleMetaculusQuestion(id=111, title="Will it rain?", centers=(price,), **far)
        ),
        metaculus_post_body(
            12,
            "Who wins?",
            SampleMetaculusQuestion(
                id=121, title="Who wins?", kind="multiple_choice", options=("A", "B"), centers=(0.7, 0.3), **far
            ),
        ),
        metaculus_post_body(13, "How much?", SampleMetaculusQuestion(id=131, title="How much?", kind="numeric", **far)),
    ]


class Site:
    """A fake Metaculus on its own event loop."""

    def __init__(self) -> None:
        self.fake = FakeMetaculus({}, token=TOKEN).having(MetaculusCatalogue(posts()))
        self.server = self.fake.server()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self._on_loop(self.server.__aenter__())

    def _on_loop(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=30)

    def close(self) -> None:
        self._on_loop(self.server.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    yield found
    found.close()


@pytest.fixture
def settings(site: Site, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, keys={"METACULUS_TOKEN": TOKEN}, addresses={"metaculus": site.server.url})


def test_open_questions_are_read_and_others_noted(settings: Settings, site: Site):
    questions = open_questions(MINE, settings, NOW)
    assert [question.id for question in questions.questions] == ["metaculus/11", "metaculus/12"]
    assert questions.questions[0].due == NOW
    assert questions.questions[1].exclusivity == "exactly one"
    assert any("range_min is missing" in note for note in questions.notes)
    (request,) = site.server.requests
    assert request.query["tournaments"] == "minibench"
    assert request.query["statuses"] == "open"


def test_question_listed_again_keeps_its_date(settings: Settings, site: Site):
    first = open_questions(MINE, settings, NOW)
    site.fake.having(MetaculusCatalogue(posts(price=0.9)))
    assert open_questions(MINE, settings, NOW + timedelta(days=3)).questions == first.questions

    weekly = replace(MINE, again=7)
    assert open_questions(weekly, settings, NOW + timedelta(days=3)).questions == first.questions
    later = open_questions(weekly, settings, NOW + timedelta(days=7))
    assert later.questions[0].due == NOW + timedelta(days=7)
    assert later.questions[0].targets[0].snapshot.price == 0.9


def test_closed_questions_are_not_asked_but_stay_stored(settings: Settings, site: Site):
    open_questions(MINE, settings, NOW)
    site.fake.having(MetaculusCatalogue(posts()[1:]))
    assert [q.id for q in open_questions(MINE, settings, NOW + timedelta(days=1)).questions] == ["metaculus/12"]
    site.fake.having(MetaculusCatalogue(posts()))
    assert open_questions(MINE, settings, NOW + timedelta(days=2)).questions[0].due == NOW


def test_tournament_without_open_questions_is_empty(settings: Settings, site: Site):
    site.fake.having(MetaculusCatalogue([]))
    assert open_questions(MINE, settings, NOW).questions == ()


@pytest.mark.parametrize("name", ["metaculus:", "metaculus:../x", "metaculus:a,again=no", "metaculus:a,every=3"])
def test_invalid_tournament_names_are_rejected(name: str):
    with pytest.raises(InputError, match="metaculus:TOURNAMENT"):
        Tournament.read(name)


def test_tournament_rejects_backtests(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("METACULUS_TOKEN", raising=False)
    spec = RunSpec(questions=QuestionsSpec(dataset="metaculus:minibench"), models={"agent": "openai:x"})
    with pytest.raises(InputError, match="mode: live"):
        prepare_run(spec)
    with pytest.raises(InputError, match="METACULUS_TOKEN"):
        prepare_run(replace(spec, mode="live"))
    with pytest.raises(InputError, match="known today"):
        open_benchmark("metaculus:minibench")


def test_tournament_errors_are_one_line(settings: Settings):
    wrong = replace(settings, keys={"METACULUS_TOKEN": "wrong-canary"})
    with pytest.raises(InputError, match="could not be read") as raises:
        open_questions(MINE, wrong, NOW)
    assert "wrong-canary" not in str(raises.value)
    path = settings.home / "tournaments" / f"{MINE.slug}.json"
    path.parent.mkdir()
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        open_questions(MINE, settings, NOW)


def test_questions_stored_by_an_older_version_are_not_asked_again(settings: Settings, site: Site):
    first = open_questions(MINE, settings, NOW)
    path = settings.home / "listings" / "metaculus" / f"{MINE.slug}.json"
    (settings.home / "tournaments").mkdir()
    path.rename(settings.home / "tournaments" / f"{MINE.slug}.json")
    assert open_questions(MINE, settings, NOW + timedelta(days=1)).questions == first.questions
