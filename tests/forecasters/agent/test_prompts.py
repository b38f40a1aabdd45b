"""Contents of the agent's prompts, and what they must not contain."""

import numpy as np
import pytest

from fakes.prompts import past_with
from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import BATCH, FULL, NO_BELIEF, VARIANTS, ZERO_SHOT, AgentSettings
from foretell.forecasters.base_rates.rates import BaseRates, FixedRates, PastOutcomes
from foretell.models.model import Reply, ToolCall, ToolResult, ToolSpec
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.trace import ToolUsed
from foretell.tools.tool import ToolFailed


def first_prompt(harness, **agent):
    """Return the text of the first request, and the request."""
    harness = harness.with_agent(**agent)
    harness.run([Reply(text="?")] * 3)
    request = harness.requests[0]
    return "\n".join(message.text for message in request.messages), request


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=lambda variant: variant.kind)
@pytest.mark.parametrize("reply_format", ["tools", "schema"])
def test_prompt_includes_text_criteria_and_background(harness, variant, reply_format):
    words, _ = first_prompt(harness, variant=variant, settings=AgentSettings(reply_format=reply_format))
    assert harness.question.text in words
    assert harness.question.criteria in words
    assert harness.question.background in words
    assert "Today is 2025-10-26." in words


def test_prompt_states_that_criteria_are_missing(harness):
    harness.question = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    assert "None were given" in first_prompt(harness)[0]


@pytest.mark.parametrize("variant", [NO_BELIEF, ZERO_SHOT, BATCH], ids=lambda variant: variant.kind)
@pytest.mark.parametrize("reply_format", ["tools", "schema"])
def test_variants_without_belief_do_not_mention_it_in_prompts_or_schemas(harness, variant, reply_format):
    words, request = first_prompt(harness, variant=variant, settings=AgentSettings(reply_format=reply_format))
    everything = (words + repr(request.tools) + repr(request.schema)).lower()
    for word in ("belief", "believe", "evidence_for", "open_questions", "retract"):
        assert word not in everything


def test_belief_is_the_first_argument_of_every_tool_of_the_full_agent(harness):
    _, request = first_prompt(harness)
    assert [tool.name for tool in request.tools] == ["web_search", "submit"]
    for tool in request.tools:
        assert next(iter(tool.parameters["properties"])) == "updated_belief"
        assert "updated_belief" in tool.parameters["required"]


def test_zero_shot_offers_only_submit(harness):
    words, request = first_prompt(harness, variant=ZERO_SHOT)
    assert [tool.name for tool in request.tools] == ["submit"]
    assert request.force == "submit"
    assert "web_search" not in words


def market(price_day="2025-10-20", volume=None, **more):
    target = Target(id="yes", snapshot=Snapshot(at=price_day, last_price=0.21, volume=volume))
    return Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,), **more)


def test_price_is_shown_only_with_the_flag_and_only_from_before_the_cutoff(harness):
    harness.question = market()
    with_price = FULL.with_signals(market_price=True, prior=False)
    assert "stood at 0.21" not in first_prompt(harness)[0]
    assert "On 2025-10-20, 6 days ago, the market stood at 0.21." in first_prompt(harness, variant=with_price)[0]
    harness.question = market(price_day="2025-11-20")
    assert "Market price" not in first_prompt(harness, variant=with_price)[0]


def test_base_rate_is_shown_only_with_the_flag_and_only_for_data_sets(harness):
    harness.extra["past"] = past_with(FixedRates(table={("fred", ""): 0.42}))
    signals = FULL.with_signals(market_price=True, prior=True)
    target = Target(id="2025-11-02", resolves_at="2025-11-02")
    harness.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="dataset")
    assert "this share came true: 0.42" in first_prompt(harness, variant=signals)[0]
    assert "0.42" not in first_prompt(harness, variant=FULL)[0]
    harness.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="market")
    assert "0.42" not in first_prompt(harness, variant=signals)[0]


def test_closing_time_is_hidden_in_backtests_by_default(harness):
    harness.question = market(closes_at="2025-10-29")
    assert "2025-10-29" not in first_prompt(harness)[0]
    assert "2025-10-29" in first_prompt(harness, settings=AgentSettings(closing_time=True))[0]


def test_prompt_of_an_own_question_states_its_day_and_mentions_no_market(harness):
    harness.question = Question(
        id="q", source="asked", text="?", due="2025-10-26", closes_at="2025-11-05", targets=(Target(id="yes"),)
    )
    words, _ = first_prompt(harness, settings=AgentSettings(closing_time=True))
    assert "The answer is known by 2025-11-05, in 10 days." in words
    assert "market" not in words.lower()


def test_base_rate_is_shown_with_the_number_of_cases(harness):
    days = np.datetime64("2025-10-01", "D") - np.arange(40)
    past = PastOutcomes(
        known_on=days,
        source=np.full(40, "fred"),
        subtype=np.full(40, ""),
        horizon_days=np.full(40, 7),
        outcome=np.arange(40) % 2.0,
    )
    harness.extra["past"] = past_with(BaseRates(past=past))
    target = Target(id="2025-11-02", resolves_at="2025-11-02")
    harness.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=(target,), kind="dataset")
    signals = FULL.with_signals(market_price=False, prior=True)
    assert "this share came true: 0.5 (from about 40 independent cases)." in first_prompt(harness, variant=signals)[0]


def test_evidence_of_an_unusable_reply_is_discarded(harness, call_tool, make_belief):
    fact = [{"claim": "It rained.", "source_id": "search_9_result_9"}]
    bad = call_tool("no_such_tool", {}, belief=make_belief(0.3, evidence_for=fact))
    forecast = harness.run([bad, call_tool("submit", {"p": 0.4, "reason": "So."}, belief=make_belief(0.4))])
    assert forecast.p == {"yes": 0.4}
    assert "It rained" not in forecast.rationale
    assert "no source" not in forecast.rationale


def test_prompt_does_not_include_the_volume(harness):
    harness.question = market(volume=987654)
    assert "987654" not in first_prompt(harness, variant=FULL.with_signals(market_price=True, prior=True))[0]


def test_hints_name_only_available_tools(harness):
    harness.question = Question(id="w", source="wikipedia", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    words, _ = first_prompt(harness)
    assert "Begin with web_search" in words
    assert "fetch_wikipedia" not in words


def test_prompt_explains_the_keys_of_several_dates(harness):
    days = ("2025-11-02", "2026-01-24")
    targets = tuple(Target(id=day, label=f"Higher on {day}?", resolves_at=day) for day in days)
    harness.question = Question(id="f", source="fred", text="?", due="2025-10-26", targets=targets)
    assert "- `2025-11-02`: Higher on 2025-11-02? Decided on 2025-11-02, in 7 days." in first_prompt(harness)[0]


class Series:
    spec = ToolSpec(name="fetch_series", description="", parameters={"type": "object", "properties": {}})

    async def use(self, arguments, as_of):
        raise ToolFailed("no such series")


def test_fixed_steps_force_the_data_tool_and_then_the_answer(harness, call_tool, make_belief):
    harness.question = Question(id="d", source="dbnomics", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    harness.tools = [Series()]
    forecast = harness.run(
        [
            call_tool("fetch_series", {}, belief=make_belief(0.5)),
            call_tool("submit", {"p": 0.6}, belief=make_belief(0.6)),
        ]
    )
    assert [request.force for request in harness.requests] == ["fetch_series", "submit"]
    assert forecast.p == {"yes": 0.6}
    assert (forecast.ending, forecast.problem) == ("fallback", "no tool worked: all 1 calls failed")
    assert [event.failed for event in harness.of(ToolUsed)] == [True, False]


def test_batch_runs_all_calls_of_the_first_reply_and_then_submits(harness, call_tool):
    harness = harness.with_agent(variant=BATCH)
    queries = [ToolCall(id=f"c{n}", name="web_search", arguments=f'{{"query": "q{n}"}}') for n in range(3)]
    bad = ToolCall(id="c9", name="web_search", arguments="{}")
    forecast = harness.run([Reply(calls=(*queries, bad)), call_tool("submit", {"p": 0.4, "reason": "r"})])
    assert forecast.p == {"yes": 0.4}
    results = [message for message in harness.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c0", "c1", "c2", "c9"]
    assert "query is missing" in results[-1].text
    assert harness.requests[1].force == "submit"


def test_bypass_submits_the_series_forecast_without_calling_a_model(harness):
    class Estimate:
        name = "knn"

        async def forecast(self, question, context):
            from foretell.questions.forecast import Forecast

            return Forecast(question_id=question.id, forecaster="knn", as_of=context.as_of, p={"yes": 0.99})

    harness.agent = BeliefAgent(bypass={"own": Estimate()})
    forecast = harness.run([])
    assert forecast.p == {"yes": 0.95}
    assert forecast.forecaster == "full"
    assert "no language model asked" in harness.events[-1].how
    assert harness.requests == []
