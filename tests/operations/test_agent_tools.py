"""Functions and objects as tools and search engines of an agent, and an agent as a forecaster."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import foretell
from foretell import Agent, AsOf, Question, Target
from foretell.models.model import ToolCall
from foretell.questions.errors import InputError
from foretell.questions.forecast import UNFILTERED_SUFFIX
from foretell.questions.trace import LeakBlocked, ToolUsed
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.types import AgentOptions, Reply, Request, SearchHit, SourceItem, ToolFailed, ToolMaterial, ToolSpec

DUE = "2021-11-01"
QUESTIONS = [
    Question(
        id=f"rain-{town}",
        source="mine",
        text=f"Will it rain in {town} within a week?",
        due=DUE,
        targets=(Target(id="yes", resolves_at="2021-11-08"),),
    )
    for town in ("Oslo", "Rome")
]
KEEP = '{"verdicts": [{"id": "r1", "verdict": "KEEP", "reason": "it is old"}]}'


class Researcher:
    """A model that calls one tool with the given arguments, keeps what the filter shows it, and answers 0.3."""

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool, self.arguments = tool, arguments
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Any:
        self.requests.append(request)
        if not request.tools:
            return KEEP
        used = any(self.tool in message.text for message in request.messages[2:])
        if used or self.tool not in [tool.name for tool in request.tools]:
            return {"tool": "submit", "reason": "It rains on three days in ten.", "p": 0.3}
        return {"tool": self.tool, **self.arguments}

    @property
    def asked(self) -> str:
        """Everything that models were shown."""
        return "\n".join(message.text for request in self.requests for message in request.messages)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, network=False)


def rain_history(place: str, as_of: AsOf, days: int = 10) -> list[SourceItem]:
    """Count the days on which it rained.

    Args:
        place: The town.
        days: How many days to look at.
    """
    assert as_of.mode in ("backtest", "live")
    return [
        SourceItem(title=place, text=f"It rained on 3 of {days} days.", published=datetime(2021, 10, 1, tzinfo=UTC)),
        SourceItem(title=place, text="It poured all week.", published=datetime(2021, 11, 9, tzinfo=UTC)),
    ]


def look_outside() -> str:
    return "It is wet."


def events(settings: Settings, run: str, kind: type[Any]) -> list[Any]:
    with closing(RunStore(settings.store)) as store:
        return [event for _, _, event in store.events(run) if isinstance(event, kind)]


def agent(tool: str, arguments: dict[str, Any], **fields: Any) -> tuple[Agent, Researcher]:
    model = Researcher(tool, arguments)
    return Agent(model=model, options=AgentOptions(steps=3), **fields), model


def test_a_model_sees_name_docstring_and_parameters_of_a_function_but_not_the_date(settings: Settings) -> None:
    asked, model = agent("rain_history", {"place": "Oslo"}, tools=[rain_history])
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    spec = next(tool for tool in model.requests[0].tools if tool.name == "rain_history")
    assert spec.description == "Count the days on which it rained."
    place, days = (spec.parameters["properties"][name] for name in ("place", "days"))
    assert place == {"type": "string", "description": "The town."}
    assert (days["type"], days["default"], days["description"]) == ("integer", 10, "How many days to look at.")
    assert "place" in spec.parameters["required"]
    assert "days" not in spec.parameters["required"]
    assert "as_of" not in spec.parameters["properties"]


def test_in_a_backtest_a_tool_shows_only_what_was_published_before(settings: Settings) -> None:
    asked, model = agent("rain_history", {"place": "Oslo", "days": 20}, tools=[rain_history])
    result = foretell.backtest(asked, QUESTIONS[:1], settings=settings)
    assert result.forecasts[0].p == {"yes": pytest.approx(0.3)}
    assert "It rained on 3 of 20 days." in model.asked
    assert "poured" not in model.asked
    (run,) = foretell.list_runs(settings=settings).rows()
    assert [event.layer for event in events(settings, run["run"], LeakBlocked)] == ["date"]


@pytest.mark.parametrize("filtered", [True, False])
def test_an_undated_tool_is_refused_in_a_backtest_unless_nothing_is_filtered(
    settings: Settings, *, filtered: bool
) -> None:
    asked, model = agent("look_outside", {}, tools=[look_outside], set={"leakage_filter": filtered})
    if filtered:
        with pytest.raises(InputError, match="'look_outside' does not say when what it returns was published"):
            foretell.backtest(asked, QUESTIONS, settings=settings)
        assert model.requests == []
    else:
        (forecast, _) = foretell.backtest(asked, QUESTIONS, settings=settings).forecasts
        assert forecast.forecaster == f"Researcher{UNFILTERED_SUFFIX}"
        assert "It is wet." in model.asked


def test_a_tool_object_is_behind_the_filter_too(settings: Settings) -> None:
    class Almanac:
        spec = ToolSpec(name="almanac", description="Look it up.", parameters={"type": "object", "properties": {}})

        async def use(self, arguments: Any, as_of: AsOf) -> ToolMaterial:
            return ToolMaterial(heading="Almanac:", items=(SourceItem(title="Undated", text="It will hail."),))

    asked, model = agent("almanac", {}, tools=[Almanac()])
    foretell.backtest(asked, QUESTIONS[:1], settings=settings)
    assert "almanac" in model.asked
    assert "hail" not in model.asked
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    assert "hail" in model.asked


def test_a_failing_tool_is_an_answer_for_the_model_and_its_cause_is_withheld_in_a_backtest(settings: Settings) -> None:
    def broken(as_of: AsOf) -> SourceItem:
        raise OSError("the flood of 9 November")

    asked, model = agent("broken", {}, tools=[broken])
    assert len(foretell.backtest(asked, QUESTIONS[:1], settings=settings).failures) <= 1
    assert "flood" not in model.asked
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    assert "the flood of 9 November" in model.asked


def test_wrong_arguments_are_told_to_the_model(settings: Settings) -> None:
    asked, model = agent("rain_history", {"place": "Oslo", "days": "many"}, tools=[rain_history])
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    assert "days" in model.requests[-1].messages[-1].text


def test_a_search_function_and_an_engine_object_are_used(settings: Settings) -> None:
    queries: list[str] = []

    async def find(query: str, as_of: AsOf) -> Sequence[SearchHit]:
        queries.append(query)
        published = datetime(2021, 5, 1, tzinfo=UTC)
        return [SearchHit(url="https://a.example/x", title="Wet spring", snippet="It rained.", published=published)]

    class Engine:
        filters_dates = True

        def search(self, query: str, as_of: AsOf, limit: int) -> list[dict[str, str]]:
            queries.append(f"{query} {limit}")
            return [{"url": "https://a.example/y", "title": "Dry summer", "published": "2021-08-01"}]

    for engine in (find, Engine()):
        asked, model = agent("web_search", {"query": "rain"}, search=[engine])
        foretell.backtest(asked, QUESTIONS[:1], settings=settings)
        assert "Wet spring" in model.asked or "Dry summer" in model.asked
    assert queries == ["rain", "rain 10"]


def test_an_engine_that_cannot_filter_by_date_is_not_offered_in_a_backtest(settings: Settings) -> None:
    asked, model = agent("web_search", {"query": "rain"}, search=[lambda query: []])
    foretell.backtest(asked, QUESTIONS[:1], settings=settings)
    assert "web_search" not in [tool.name for tool in model.requests[0].tools]
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    assert "web_search" in [tool.name for tool in model.requests[-1].tools]


def test_an_agent_stands_beside_other_forecasters_and_is_not_asked_twice(settings: Settings) -> None:
    asked, model = agent("rain_history", {"place": "Oslo"}, tools=[rain_history], name="researcher")
    steps: list[tuple[int, int]] = []
    result = foretell.backtest(
        [asked, lambda question: 0.5], QUESTIONS, settings=settings, progress=lambda *done: steps.append(done)
    )
    assert [answer.forecaster for answer in result.answers] == ["researcher", "<lambda>"] * 2
    assert [answer.question_id for answer in result.answers] == [q.id for q in QUESTIONS for _ in range(2)]
    assert steps[-1] == (4, 4)
    assert steps == sorted(steps)
    requests = len(model.requests)
    assert foretell.backtest(asked, QUESTIONS, settings=settings).forecasts[0].p == result.forecasts[0].p
    assert len(model.requests) == requests, "everything is stored"


def test_an_agent_answers_a_named_set_whose_outcomes_score_it(settings: Settings) -> None:
    def guess(prompt: str) -> dict[str, float]:
        return {"probability": 0.2}

    asked = Agent(model=guess, options=AgentOptions(variant="zero-shot"))
    benchmark = foretell.open_benchmark("demo")
    plain = [question for question in benchmark.questions.questions if len(question.targets) == 1]
    few = replace(benchmark, questions=benchmark.questions.only(plain))
    result = foretell.backtest([asked, "knn"], few, limit=1, settings=settings)
    assert len(result.forecasts) == 2
    shown = foretell.show(result.runs["guess"], settings=settings)
    assert shown.run.id == result.runs["guess"]
    assert f"guess: run {result.runs['guess']}" in str(result)
    assert {score.forecaster for score in foretell.score(result).scores} >= {"guess", "knn"}


def test_an_agent_answers_the_first_questions_of_a_named_set(settings: Settings) -> None:
    class Even:
        """A model that gives every target the same probability."""

        async def complete(self, request: Request) -> Reply:
            keys = request.tools[-1].parameters["properties"]["p"].get("properties", {})
            p = dict.fromkeys(keys, 0.5) if keys else 0.5
            return Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps({"p": p, "reason": "Even."})),))

    asked = Agent(Even(), options=AgentOptions(variant="zero-shot"), trials=2)
    result = foretell.backtest([asked, "knn"], "demo", limit=2, settings=settings)
    assert [len(result.questions), len(result.answers), result.failures] == [2, 4, ()]
    assert {score.forecaster for score in foretell.score(result).scores} >= {"Even", "knn"}
    with pytest.raises(InputError, match="limit"):
        foretell.backtest(asked, "demo", limit=0, settings=settings)


def test_a_question_without_an_answer_is_a_failure_with_its_reason(settings: Settings) -> None:
    def broken(prompt: str) -> str:
        raise ValueError("no luck")

    result = foretell.backtest(Agent(model=broken, options=AgentOptions()), QUESTIONS[:1], settings=settings)
    assert [(failure.question_id, "no luck" in failure.error) for failure in result.failures] == [("rain-Oslo", True)]


def test_a_run_and_a_tree_take_an_agent(settings: Settings, tmp_path: Path) -> None:
    asked, model = agent("rain_history", {"place": "Oslo"}, tools=[rain_history])
    file = tmp_path / "mine.jsonl"
    file.write_text('{"text": "Will it rain in Oslo?", "due": "2021-11-01"}\n')
    done = foretell.run({"questions": str(file), "trials": 2}, agent=asked, settings=settings)
    assert (done.trials, done.progress.done) == (2, 2)
    assert [event.tool for event in events(settings, done.run, ToolUsed)] == ["rain_history", "submit"] * 2
    assert "poured" not in model.asked
    with pytest.raises(InputError, match="the options of an agent do not apply to a tree"):
        foretell.grow_tree("It rains.", agent=asked, settings=settings)


def test_the_claims_of_a_tree_are_researched_with_the_tools_of_an_agent(settings: Settings) -> None:
    model = Researcher("rain_history", {"place": "Oslo"})
    tree = foretell.grow_tree(
        "It rains in Oslo in January 2099.",
        agent=Agent(model=model, tools=[rain_history]),
        grounder="agent",
        rule="average",
        closes="2099-02-01",
        settings=settings,
    )
    assert tree.p == pytest.approx(0.3)
    assert "It poured all week." in model.asked
    assert [event.tool for event in events(settings, tree.run, ToolUsed)] == ["rain_history", "submit"]


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (3, "3 is not a tool"),
        (lambda place: place, "'<lambda>' cannot name a tool"),
        (lambda *places: places, r"takes \*places"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_at_once(settings: Settings, tool: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        foretell.ask("Will it rain?", agent=Agent(model="openai:x", tools=[tool]), settings=settings)


def test_names_of_built_in_tools_and_two_tools_of_one_name_are_refused(settings: Settings) -> None:
    def submit() -> str:
        return ""

    def again() -> Any:
        def rain_history() -> str:
            return ""

        return rain_history

    with pytest.raises(InputError, match="'submit' is the name of a built-in tool"):
        foretell.ask("Will it rain?", agent=Agent(model="openai:x", tools=[submit]), settings=settings)
    twice = Agent(model=Researcher("", {}), tools=[rain_history, again()])
    with pytest.raises(InputError, match="two tools are called 'rain_history'"):
        foretell.ask("Will it rain?", agent=twice, settings=settings)


def test_a_run_of_another_program_says_which_function_is_missing(settings: Settings) -> None:
    spec = {"questions": "demo", "models": {"agent": "python:m-1"}, "tools": ["python:weather-1a2b3c4d"]}
    with pytest.raises(InputError, match="is a function of another program"):
        foretell.run(spec, settings=settings)


def test_two_forecasters_of_one_name_are_refused(settings: Settings) -> None:
    asked, _ = agent("x", {})
    with pytest.raises(InputError, match="two forecasters are called 'Researcher'"):
        foretell.backtest([asked, asked], QUESTIONS, settings=settings)


def test_an_agent_is_written_as_it_was_made() -> None:
    made = Agent(model=look_outside, tools=[rain_history], options=AgentOptions(steps=4), models={"filter": "openai:x"})
    assert repr(made) == (
        "Agent(look_outside, tools=[rain_history], models={'filter': 'openai:x'}, options=AgentOptions(steps=4))"
    )


def test_the_name_of_a_function_is_the_same_in_every_process() -> None:
    program = """
def model(prompt):
    words = [word for word in prompt.split() if word in {"rain", "snow", "hail", "fog"}]
    return {"probability": len(words) / 10}
from foretell.models.providers.function import model_name
print(model_name(model))
"""
    names = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(names) == 1


def test_a_tool_may_refuse_with_words_for_the_model(settings: Settings) -> None:
    def shy() -> str:
        raise ToolFailed("Ask for a town.")

    asked, model = agent("shy", {}, tools=[shy])
    foretell.ask("Will it rain?", closes="2099-01-01", agent=asked, settings=settings)
    assert "Ask for a town." in model.asked
