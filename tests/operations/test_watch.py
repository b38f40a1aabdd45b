"""`ask --watch`: a question is asked once, looked at when that is due, and updated by news; every interface agrees."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.forecasters.tree.scripted_tree import model_query, reply_of

import foretell
from fakes.reasoning import ReasonScript
from foretell.cli.main import cli
from foretell.data.corpus import Corpus, CorpusDocument
from foretell.models.model import Reply, Request
from foretell.operations.watch import WatchResult
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.trace import BeliefRevised
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.standing.store import StandingStore
from foretell.types import HistoryResult

QUESTION = "Will the Halvik crossing open to traffic before 2028?"
FACT = "The harbour council of Halvik voted on Friday to open the crossing in May."


class Reader:
    """Answers asking by a script, finds that what mentions the council bears, and then believes 0.9."""

    def __init__(self) -> None:
        self.script = ReasonScript(direct=0.3, leaves=(), structure="single", parts=0, searches=False)
        self.asked: list[Request] = []

    def complete(self, request: Request) -> Any:
        return self._reply(request)

    async def _reply(self, request: Request) -> Reply:
        self.asked.append(request)
        fields: dict[str, Any] = (request.schema or {}).get("properties", {})
        text = request.messages[1].text
        if "verdicts" in fields and "bears" in json.dumps(request.schema):
            rows = json.loads(text.partition("# Texts")[2])
            verdicts = [{"id": row["id"], "bears": "council" in row["text"], "why": "a vote"} for row in rows]
            return Reply(text=json.dumps({"verdicts": verdicts}))
        if "evidence" in fields:
            rows = json.loads(text.partition("# New evidence")[2])
            evidence = [{"id": row["id"], "favours": "yes", "weight": "the council decides"} for row in rows]
            return Reply(text=json.dumps({"evidence": evidence, "reason": "The council voted for it.", "p": 0.9}))
        return reply_of(self.script(model_query(request)), request)


class Place:
    """A home with a clock that tests set, and a corpus."""

    def __init__(self, folder: Path) -> None:
        self.clock = folder / "clock"
        self.home = folder / "home"
        self.home.mkdir()
        self.at("2026-11-20T08:00:00Z")
        Corpus(self.home / "corpus.db").close()
        self.settings = Settings(home=self.home, clock=f"file:{self.clock}", network=False)
        self.environment = {
            "FORETELL_HOME": str(self.home),
            "FORETELL_CLOCK": f"file:{self.clock}",
            "FORETELL_NETWORK": "off",
            "FORETELL_MODEL": "",
            "FORETELL_SEARCH": "",
            "COLUMNS": "200",
        }

    def at(self, time: str) -> None:
        self.clock.write_text(time, encoding="utf-8")

    def publish(self, url: str, text: str, day: str) -> None:
        with closing(Corpus(self.home / "corpus.db")) as corpus:
            corpus.add([CorpusDocument(url=url, title="Halvik crossing", text=text, published=instant(day))])

    def watch(self, question: str = "", **fields: Any) -> WatchResult:
        done = foretell.ask(question, watch=True, once=True, settings=self.settings, **fields)
        assert isinstance(done, WatchResult)
        return done

    def command(self, *words: str) -> dict[str, Any]:
        done = CliRunner().invoke(cli, ["ask", *words, "--json"], env=self.environment)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


def test_a_question_is_asked_once_and_then_watched(tmp_path: Path) -> None:
    place, reader = Place(tmp_path), Reader()
    place.publish("https://news.example/old", "People of Halvik talked about the crossing for years.", "2026-11-01")
    chosen: dict[str, Any] = {"model": reader, "closes": "2027-12-31", "set": {"options.take_apart": "never"}}
    events: list[object] = []
    opened = place.watch(QUESTION, progress=lambda trial, event: events.append(event), **chosen)
    assert [report.look.triggers for report in opened.looks] == [("first",)]
    (row,) = opened.questions
    assert row.id == "halvik-crossing"
    assert any(isinstance(event, BeliefRevised) and event.p == row.p for event in events)
    before, first = len(reader.asked), row.p["yes"]
    assert place.watch("halvik-crossing").looks == (), "the next look is not due"
    place.at("2026-11-20T13:00:00Z")
    (quiet,) = place.watch("halvik").looks
    assert quiet.look.why == "Nothing new was found."
    assert len(reader.asked) == before, "looking asks no model"
    place.publish("https://news.example/vote", FACT, "2026-11-21")
    place.publish("https://news.example/again", f"Update: {FACT} Our reporter was there.", "2026-11-21")
    place.at("2026-11-21T13:00:00Z")
    (moved,) = place.watch().looks
    assert moved.look.triggers == ("document",)
    assert len(moved.look.news) == 1, "the second document reports the same"
    assert moved.belief is not None
    assert moved.belief.p["yes"] > first
    assert moved.look.why == "The council voted for it."
    again = place.command("--watch", "--once")
    assert again["looks"] == []
    assert again["questions"][0]["p"]["yes"] == moved.belief.p["yes"]
    assert "halvik-crossing: yes" in CliRunner().invoke(cli, ["ask", "--watch", "--once"], env=place.environment).output


def test_asking_the_same_again_goes_on_and_costs_nothing(tmp_path: Path) -> None:
    place, reader = Place(tmp_path), Reader()
    chosen: dict[str, Any] = {"model": reader, "closes": "2027-12-31", "set": {"options.take_apart": "never"}}
    first = place.watch(QUESTION, **chosen)
    asked = len(reader.asked)
    place.at("2026-11-22T13:00:00Z")
    again = place.watch(QUESTION, **chosen)
    assert [row.id for row in again.questions] == [row.id for row in first.questions]
    assert [look.look.number for look in again.looks] == [2]
    assert len(reader.asked) == asked


def test_asking_the_same_again_takes_the_new_settings_of_the_watch(tmp_path: Path) -> None:
    place = Place(tmp_path)
    chosen: dict[str, Any] = {"closes": "2027-12-31", "model": "none"}
    place.watch(QUESTION, set={"watch.every_hours": 2}, **chosen)
    place.watch(QUESTION, set={"watch.searches": ["Halvik vote"]}, **chosen)
    with closing(RunStore(place.settings.store)) as store:
        (standing,) = StandingStore(store.database).questions()
    assert standing.settings["watch"] == {"every_hours": 2, "searches": ["Halvik vote"]}
    foretell.record("halvik-crossing", state="paused", settings=place.settings)
    with pytest.raises(InputError, match="halvik-crossing is paused"):
        place.watch(QUESTION, **chosen)


def test_everything_about_a_question_follows_the_clock(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.at("2031-02-03T08:00:00Z")
    place.watch(QUESTION.replace("2028", "2032"), closes="2031-12-31", model="none")
    place.at("2031-12-31T08:00:00Z")
    done = foretell.record("halvik-crossing", confirm="yes", settings=place.settings)
    assert isinstance(done, HistoryResult)
    record = done.history.record
    assert record.standing.question.due == instant("2031-02-03T08:00:00Z")
    assert record.outcomes[0].resolved_at == done.history.now == instant("2031-12-31T08:00:00Z")
    assert done.history.scored is not None


def test_without_a_model_it_says_that_news_cannot_be_judged(tmp_path: Path) -> None:
    place = Place(tmp_path)
    row = place.command(QUESTION, "--closes", "2027-12-31", "--watch", "--once")["questions"][0]
    assert row["billed"] == 0
    place.publish("https://news.example/vote", FACT, "2026-11-21")
    place.at("2026-11-21T13:00:00Z")
    (look,) = place.command("halvik-crossing", "--watch", "--once")["looks"]
    assert "1 new text cannot be judged, because no model is named" in look["why"]
    assert look["p"] is None


def test_settings_of_a_watched_question(tmp_path: Path) -> None:
    place = Place(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text("trials: 1\nwatch: {every_hours: 12, searches: [Halvik vote]}\n", encoding="utf-8")
    place.watch(QUESTION, closes="2027-12-31", config=file, model="none", set={"watch.day_budget": "0.5"})
    place.watch("halvik-crossing", set={"watch.every_hours": 2})
    with closing(RunStore(place.settings.store)) as store:
        (standing,) = StandingStore(store.database).questions()
    assert standing.settings["watch"] == {"every_hours": 2, "searches": ["Halvik vote"], "day_budget": 0.5}
    file.write_text("watch: {every_hour: 12}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine.yaml, field watch.every_hour: there is no such setting .*every_hours"):
        place.watch("Will another question do?", config=file)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["Will it?", "--once"], "--once: has no effect without --watch"),
        (["Will it?", "--watch", "--as-of", "2026-01-01"], "--as-of: has no effect with --watch"),
        (["Will it?", "--watch", "--plan"], "--plan: has no effect with --watch"),
        (["Will it?", "--set", "watch.budget=1"], "--set watch.budget: has no effect without --watch"),
        (["Will it?", "--watch", "--set", "watch.budgt=1"], "did you mean watch.budget"),
        (["Will it?", "--watch", "--set", "watch.budget=-1"], "watch.budget"),
        (["halvik", "--watch", "--closes", "2030-01-01"], "--closes: has no effect on a question that is watched"),
        (["halvik", "--watch", "--set", "trials=2"], "--set trials: has no effect on a question that is watched"),
        (["--watch", "--set", "watch.budget=1"], "--set watch.budget: needs the id of a question"),
        (["halvik", "--watch"], "no question 'halvik' is watched"),
        ([], "QUESTION: is empty"),
    ],
)
def test_what_has_no_effect_is_refused_by_name(words: list[str], problem: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["ask", *words], env=Place(tmp_path).environment)
    assert isinstance(done.exception, InputError), done.output
    assert problem in str(done.exception)


def test_an_unknown_price_is_refused_if_there_is_a_budget(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"model": "compat:unheard@http://203.0.113.1/v1", "set": {"watch.day_budget": 1}}
    with pytest.raises(InputError, match="needs a known price"):
        Place(tmp_path).watch(QUESTION, **chosen)


def test_a_look_that_fails_as_a_whole_is_told_and_tried_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.watch(QUESTION, model=Reader(), closes="2027-12-31", set={"options.take_apart": "never"})
    with closing(RunStore(place.settings.store)) as runs:
        store = StandingStore(runs.database)
        (standing,) = store.questions()
        store.update(replace(standing, settings={**standing.settings, "models": {"agent": "nobody:gone"}}))
        looks = len(store.record(standing.id).looks)
    place.publish("https://news.example/vote", FACT, "2026-11-21")
    place.at("2026-11-21T13:00:00Z")
    done = CliRunner().invoke(cli, ["ask", "--watch", "--once", "--json"], env=place.environment)
    assert done.exit_code == 3
    (failure,) = json.loads(done.stdout)["failures"]
    assert "halvik-crossing could not be looked at" in failure
    assert "nobody" in failure
    with closing(RunStore(place.settings.store)) as runs:
        store = StandingStore(runs.database)
        assert len(store.record("halvik-crossing").looks) == looks
        assert store.next_look("halvik-crossing") is not None


WORDING = {
    "text": "Will the Halvik crossing open to public traffic before 1 January 2028?",
    "deadline": "2027-12-31",
    "decides": "the notices of the Halvik harbour council",
    "edge_cases": ["An opening to works traffic alone does not count."],
    "no_means": "No such opening by the deadline.",
    "base_rate_class": "openings of crossings that councils announced",
}


class SharpeningReader(Reader):
    """Also proposes a wording."""

    async def _reply(self, request: Request) -> Reply:
        if "no_means" in (request.schema or {}).get("properties", {}):
            return Reply(text=json.dumps(WORDING))
        return await super()._reply(request)


def test_a_question_is_watched_with_the_wording_that_was_accepted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    chosen: dict[str, Any] = {"model": SharpeningReader(), "set": {"options.take_apart": "never"}}
    typed = "Will the Halvik crossing open soon?"
    proposed = foretell.ask(typed, sharpen="propose", settings=place.settings, **chosen)
    assert proposed.sharpening.text == WORDING["text"]
    place.watch(typed, sharpen="accept", **chosen)
    with closing(RunStore(place.settings.store)) as runs:
        (standing,) = StandingStore(runs.database).questions()
    assert standing.question.text == WORDING["text"]
    assert standing.sharpening is not None
    assert standing.sharpening.original == typed
    with pytest.raises(InputError, match="sharpen: has no effect"):
        place.watch(standing.id, sharpen="accept")
