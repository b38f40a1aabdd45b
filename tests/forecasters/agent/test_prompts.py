"""What the model is told, and what it must never be told."""

import numpy as np
import pytest

from foretell.forecasters.agent import BATCH, FULL, NOBELIEF, VARIANTS, ZERO_SHOT, AgentSettings, BeliefAgent
from foretell.forecasters.base_rates import BaseRates, FixedRates, Past, PastOutcomes
from foretell.models import Reply, ToolCall, ToolResult, ToolSpec
from foretell.questions import Question, Snapshot, Target, ToolUsed
from foretell.tools import ToolFailed


def asked(desk, **agent):
    """The words of the first request, and the request."""
    desk = desk.with_agent(**agent)
    desk.run([Reply(text="?")] * 3)
    request = desk.requests[0]
    return "\n".join(message.text for message in request.messages), request


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.kind)
@pytest.mark.parametrize("reply_format", ["tools", "schema"])
def test_criteria_and_background_reach_the_prompt(desk, variant, reply_format):
    words, _ = asked(desk, variant=variant, settings=AgentSettings(reply_format=reply_format))
    assert desk.question.text in words
    assert desk.question.criteria in words
    assert desk.question.background in words
    assert "Today is 2025-10-26." in words


def test_missing_criteria_are_said_to_be_missing(desk):
    desk.question = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    assert "None were given" in asked(desk)[0]


@pytest.mark.parametrize("variant", [NOBELIEF, ZERO_SHOT, BATCH], ids=lambda variant: variant.kind)
@pytest.mark.parametrize("reply_format", ["tools", "schema"])
def test_without_belief_no_prompt_and_no_schema_mentions_one(desk, variant, reply_format):
    words, request = asked(desk, variant=variant, settings=AgentSettings(reply_format=reply_format))
    everything = (words + repr(request.tools) + repr(request.schema)).lower()
    for word in ("belief", "believe", "evidence_for", "open_questions", "retract"):
        assert word not in everything


def test_full_agent_carries_the_belief_as_first_argument_of_every_tool(desk):
    _, request = asked(desk)
    assert [tool.name for tool in request.tools] == ["web_search", "submit"]
    for tool in request.tools:
        assert next(iter(tool.parameters["properties"])) == "updated_belief"
        assert "updated_belief" in tool.parameters["required"]


def test_zero_shot_offers_only_submit(desk):
    words, request = asked(desk, variant=ZERO_SHOT)
    assert [tool.name for tool in request.tools] == ["submit"]
    assert request.force == "submit"
    assert "web_search" not in words


def market(price_day="2025-10-20", volume=None, **more):
    target = Target(id="yes", snapshot=Snapshot(at=price_day, last_price=0.21, volume=volume))
    return Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,), **more)


def test_the_price_is_told_only_with_the_flag_and_only_if_old_enough(desk):
    desk.question = market()
    crowd = FULL.with_signals(crowd=True, prior=False)
    assert "stood at 0.21" not in asked(desk)[0]
    assert "On 2025-10-20, 6 days ago, the market stood at 0.21." in asked(desk, variant=crowd)[0]
    desk.question = market(price_day="2025-11-20")
    assert "Market price" not in asked(desk, variant=crowd)[0]


def test_the_base_rate_is_told_only_with_the_flag_and_only_for_data_sets(desk):
    desk.extra["past"] = Past(recorded_rates=FixedRates(table={("fred", ""): 0.42}))
    told = FULL.with_signals(crowd=True, prior=True)
    target = Target(id="2025-11-02", resolves_at="2025-11-02")
    desk.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="dataset")
    assert "this share came true: 0.42" in asked(desk, variant=told)[0]
    assert "0.42" not in asked(desk, variant=FULL)[0]
    desk.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="market")
    assert "0.42" not in asked(desk, variant=told)[0]


def test_closing_time_stays_out_of_backtests_unless_asked_for(desk):
    desk.question = market(closes_at="2025-10-29")
    assert "2025-10-29" not in asked(desk)[0]
    assert "2025-10-29" in asked(desk, settings=AgentSettings(closing_time=True))[0]


def test_a_question_of_ones_own_is_said_to_be_known_by_a_day_and_not_to_be_traded(desk):
    desk.question = Question(
        id="q", source="asked", text="?", due="2025-10-26", closes_at="2025-11-05", targets=(Target(id="yes"),)
    )
    words, _ = asked(desk, settings=AgentSettings(closing_time=True))
    assert "The answer is known by 2025-11-05, in 10 days." in words
    assert "market" not in words.lower()


def test_the_base_rate_comes_with_the_number_of_its_cases(desk):
    days = np.datetime64("2025-10-01", "D") - np.arange(40)
    past = PastOutcomes(
        known_on=days,
        source=np.full(40, "fred"),
        subtype=np.full(40, ""),
        horizon_days=np.full(40, 7),
        outcome=np.arange(40) % 2.0,
    )
    desk.extra["past"] = Past(recorded_rates=BaseRates(past=past))
    target = Target(id="2025-11-02", resolves_at="2025-11-02")
    desk.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="dataset")
    told = FULL.with_signals(crowd=False, prior=True)
    assert "this share came true: 0.5 (from about 40 independent cases)." in asked(desk, variant=told)[0]


def test_evidence_of_an_unusable_reply_is_not_kept(desk, say, think):
    fact = [{"claim": "It rained.", "source_id": "search_9_result_9"}]
    bad = say("no_such_tool", {}, belief=think(0.3, evidence_for=fact))
    forecast = desk.run([bad, say("submit", {"p": 0.4, "reason": "So."}, belief=think(0.4))])
    assert forecast.p == {"yes": 0.4}
    assert "It rained" not in forecast.rationale
    assert "no source" not in forecast.rationale


def test_volume_and_later_quotes_never_reach_the_prompt(desk):
    desk.question = market(volume=987654)
    assert "987654" not in asked(desk, variant=FULL.with_signals(crowd=True, prior=True))[0]


def test_hints_name_only_tools_on_offer(desk):
    desk.question = Question(id="w", source="wikipedia", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    words, _ = asked(desk)
    assert "Begin with web_search" in words
    assert "fetch_wikipedia" not in words


def test_keys_of_several_dates_are_explained(desk):
    days = ("2025-11-02", "2026-01-24")
    targets = tuple(Target(id=day, label=f"Higher on {day}?", resolves_at=day) for day in days)
    desk.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=targets)
    assert "- `2025-11-02`: Higher on 2025-11-02? Decided on 2025-11-02, in 7 days." in asked(desk)[0]


class Series:
    spec = ToolSpec(name="fetch_series", description="", parameters={"type": "object", "properties": {}})

    async def use(self, arguments, as_of):
        raise ToolFailed("no such series")


def test_laid_down_steps_force_the_data_tool_and_then_the_answer(desk, say, think):
    desk.question = Question(id="d", source="dbnomics", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    desk.tools = [Series()]
    forecast = desk.run([say("fetch_series", {}, belief=think(0.5)), say("submit", {"p": 0.6}, belief=think(0.6))])
    assert [request.force for request in desk.requests] == ["fetch_series", "submit"]
    assert forecast.p == {"yes": 0.6}
    assert (forecast.ending, forecast.problem) == ("degraded", "no tool worked: all 1 calls failed")
    assert [event.failed for event in desk.of(ToolUsed)] == [True, False]


def test_batch_runs_all_calls_of_the_first_round_and_then_reasons_once(desk, say):
    desk = desk.with_agent(variant=BATCH)
    queries = [ToolCall(id=f"c{n}", name="web_search", arguments=f'{{"query": "q{n}"}}') for n in range(3)]
    bad = ToolCall(id="c9", name="web_search", arguments="{}")
    forecast = desk.run([Reply(calls=(*queries, bad)), say("submit", {"p": 0.4, "reason": "r"})])
    assert forecast.p == {"yes": 0.4}
    results = [message for message in desk.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c0", "c1", "c2", "c9"]
    assert "query is missing" in results[-1].text
    assert desk.requests[1].force == "submit"


def test_bypass_submits_the_series_model_without_any_model_call(desk):
    class Estimate:
        name = "knn"

        async def forecast(self, question, context):
            from foretell.questions import Forecast

            return Forecast(question_id=question.id, forecaster="knn", as_of=context.as_of, p={"yes": 0.99})

    desk.agent = BeliefAgent(bypass={"own": Estimate()})
    forecast = desk.run([])
    assert forecast.p == {"yes": 0.95}
    assert forecast.forecaster == "full"
    assert "no language model asked" in desk.events[-1].how
    assert desk.requests == []
