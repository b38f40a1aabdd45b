"""A run on contexts, stored and read back: stated probabilities are scored, and forecasts can be judged."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.forecasters.agent.conftest import AgentHarness, FixedSearch, belief, call
from tests.forecasters.context.doubles import CUP, SNOW, One, run_context, say, shared

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import AgentSettings
from foretell.forecasters.base_rates.baselines import ConstantForecaster
from foretell.forecasters.forecaster import attempt
from foretell.forecasters.prompt.forecaster import PromptForecaster
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import EmitEvent, TreeGrown
from foretell.runs.executor import Executor
from foretell.runs.store import RunStore, RunTrial, trials_of
from foretell.studies.cases import ReasoningCase
from foretell.studies.consistency import consistency_study, plain_structure
from foretell.studies.reasoning import judge_request
from foretell.studies.stored_runs import read_cases, read_statements
from foretell.tools.tool import SourceItem, ToolMaterial


def test_a_run_is_read_back_as_it_was_stated(tmp_path) -> None:
    store = RunStore(tmp_path / "runs.db")
    store.begin("r1", "{}", "2026-01-10T00:00:00+00:00")
    store.keep_questions("r1", [CUP, SNOW])
    model = ScriptedModel(
        lambda request: say({"target_1": 0.9, "target_2": 0.3} if "cup" in request.messages[1].text else {"yes": 0.2})
    )

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        context = run_context(model, contexts=One(shared(trial.question)), trial=trial.trial)
        return await attempt(PromptForecaster(view="sources"), trial.question, replace(context, emit=emit))

    asyncio.run(Executor(store, concurrency=4).run(trials_of("r1", [CUP, SNOW], 2), answer))
    statements = read_statements(store, "r1", name="my model")
    assert len(statements) == 4
    assert {statement.forecaster for statement in statements} == {"my model"}
    assert [statement.p for statement in statements if statement.question.id == "cup"] == [
        {"Red Team": 0.9, "Blue Team": 0.3}
    ] * 2
    study = consistency_study(statements, {q.id: plain_structure(q) for q in (CUP, SNOW)})
    row = study.table("Consistency by forecaster").rows[0].values
    assert row[3] == 2
    assert row[5].estimate == pytest.approx(0.2)
    all_cases = read_cases(store, "r1", {shared().digest: shared()}.get)
    cases = [case for case in all_cases if case.context == shared()]
    assert (len(all_cases), len(cases)) == (4, 2), "a case without its context has only the question"
    assert {case.view.name for case in cases} == {"sources"}
    assert sum(cases[0].forecast.p.values()) == pytest.approx(1)
    assert "0.613" not in cases[0].sheet()
    store.close()


class TenArticles(FixedSearch):
    """Returns ten long articles for every query."""

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        query = arguments["query"]
        items = tuple(
            SourceItem(
                title=f"Article {n} on {query}",
                text=f"Start of {query} {n}. {'The harbour master gave no date. ' * 40}End of {query} {n}.",
                url=f"https://news.example/{query}/{n}",
                published=as_of.at - timedelta(days=n + 1),
                dating="published",
            )
            for n in range(1, 11)
        )
        return ToolMaterial(heading="Results", items=items)


def agent_case(tmp_path: Path, searches: int, *, leaf_cites: str = "") -> ReasoningCase:
    """Run the agent with that many searches, of which it cites the last source of the first, and read it back.

    A leaf of the tree that is grown afterwards cites `leaf_cites`.
    """
    store = RunStore(tmp_path / "runs.db")
    store.begin("r1", "{}", "2025-10-26T00:00:00+00:00")
    harness = AgentHarness(tools=[TenArticles()], agent=BeliefAgent(settings=AgentSettings(steps=searches + 2)))
    store.keep_questions("r1", [harness.question])
    evidence = [{"claim": "passage is near", "source_id": "search_1_result_10"}]
    replies = [call("web_search", {"query": f"passage{n}"}, belief=belief(0.4)) for n in range(1, searches + 1)]
    replies.append(call("submit", {"p": 0.4, "reason": "so"}, belief=belief(0.4, evidence_for=evidence)))
    model = ScriptedModel(replies)

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        forecast = await attempt(harness.agent, trial.question, replace(harness.context(model), emit=emit))
        if leaf_cites:
            emit(TreeGrown(tree="yes", document={"nodes": {"a": {"sources": [f"[{leaf_cites}] Article"]}}}))
        return forecast

    asyncio.run(Executor(store, concurrency=1).run(trials_of("r1", [harness.question], 1), answer))
    (case,) = read_cases(store, "r1", lambda digest: None)
    store.close()
    return case


def test_judge_and_raters_read_every_source_as_the_agent_did(tmp_path: Path) -> None:
    case = agent_case(tmp_path, searches=2)
    task = json.loads(judge_request(case, "scripted:judge").messages[1].text)
    assert [result["call"] for result in task["found"]] == ["web_search: passage1", "web_search: passage2"]
    for text in ("\n".join(result["result"] for result in task["found"]), case.sheet()):
        for search, n in product((1, 2), range(1, 11)):
            assert f"[search_{search}_result_{n}] Article {n} on passage{search}" in text
            assert f"End of passage{search} {n}." in text
    assert "The search found nothing" not in task["case"]
    assert task["case"].startswith("# Question\n\n"), "the prompt that the agent was shown first"
    assert "# Facts\n\n- Today is " in task["case"]
    assert task["case"] in case.sheet()


def test_of_very_many_results_the_cited_ones_are_shown_whole(tmp_path: Path) -> None:
    case = agent_case(tmp_path, searches=10, leaf_cites="search_3_result_4")
    texts = [result.text for result in case.found]
    assert len(texts) == 10
    assert "End of passage1 10." in texts[0]
    assert "End of passage3 4." in texts[2]
    assert "End of passage3 5." not in texts[2]
    assert "End of passage1 9." not in texts[0]
    assert all(f"[search_{k}_result_{n}] Article" in texts[k - 1] for k, n in product(range(1, 11), range(1, 11)))


def test_other_forecasters_are_read_by_their_forecasts(tmp_path) -> None:
    store = RunStore(tmp_path / "runs.db")
    store.begin("r1", "{}", "2026-01-10T00:00:00+00:00")
    store.keep_questions("r1", [CUP])

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        return await ConstantForecaster(p=0.4).forecast(trial.question, run_context(ScriptedModel([])))

    asyncio.run(Executor(store, concurrency=1).run(trials_of("r1", [CUP], 1), answer))
    (statement,) = read_statements(store, "r1")
    assert (statement.forecaster, statement.p) == ("always 0.4", {"Red Team": 0.4, "Blue Team": 0.4})
    assert read_cases(store, "r1", {shared().digest: shared()}.get) == []
    store.close()
