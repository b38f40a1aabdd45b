"""Practice models answer what watching asks: whether news bears, what it changes, and how a question turned out."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import foretell
from fakes.models import BackgroundModels
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.questions.as_of import instant
from foretell.runs.settings import load_settings
from foretell.types import HistoryResult


@pytest.mark.parametrize("asked", [{"range": "0:40 goals"}, {"options": ["Ann", "Bob"]}, {}])
def test_a_watched_question_goes_through_its_whole_life(asked: dict[str, Any], tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    with BackgroundModels(script="foretell.practice.models.scripts:arena_script") as models:
        home = tmp_path / "home"
        home.mkdir()
        clock.write_text("2031-03-01T08:00:00Z", encoding="utf-8")
        (home / "settings.toml").write_text("network = false\ncheck_models = false\n", encoding="utf-8")
        environment = {"FORETELL_HOME": str(home), "FORETELL_CLOCK": f"file:{clock}"}
        addresses = {"FORETELL_OPENAI_URL": f"{models.url}/v1", "OPENAI_API_KEY": "key-of-practice"}
        settings = load_settings({**environment, **addresses})
        with closing(Corpus(settings.home / "corpus.db")) as corpus:

            def publish(day: str, number: int) -> None:
                text = f"Halvik FK met the councillors on day {number} and counted {number} members of the club."
                page = CorpusDocument(
                    url=f"https://news.example/{number}", title="Halvik FK", text=text, published=instant(day)
                )
                corpus.add([page])

            watched: dict[str, Any] = {"watch": True, "once": True, "settings": settings, "search": ["local"]}
            more: dict[str, Any] = {"set": {"forecaster": "agent"}, "model": "openai:practice"}
            publish("2031-02-01", 1)
            foretell.ask("What will Halvik FK decide?", closes="2031-04-01", **asked, **watched, **more)
            publish("2031-03-10", 12)
            clock.write_text("2031-03-10T20:00:00Z")
            foretell.ask(watch=True, once=True, settings=settings)
            clock.write_text("2031-04-02T20:00:00Z")
            foretell.ask(watch=True, once=True, settings=settings)
    (row,) = foretell.record(settings=settings).rows()
    shown = foretell.record(row["id"], settings=settings)
    assert isinstance(shown, HistoryResult)
    record = shown.history.record
    assert [belief.look for belief in record.beliefs] == [1, 2], [look.why for look in record.looks]
    assert record.beliefs[-1].rationale.startswith("1 new texts were weighed")
    assert "Practice models know nothing" in record.proposals[-1].why
