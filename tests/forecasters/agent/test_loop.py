"""The loop: a complete research run, and all kinds of model failures."""

import asyncio
import json
from dataclasses import asdict, replace

import pytest

from foretell.forecasters.agent.actions import AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import starting_belief
from foretell.forecasters.agent.loop import AgentTrial, StopReason
from foretell.forecasters.agent.settings import FULL, NO_BELIEF, AgentSettings
from foretell.forecasters.combine.clamp import Clamp
from foretell.models.budget import Budget, BudgetedModel
from foretell.models.model import (
    AssistantMessage,
    BudgetExceeded,
    ContextTooLong,
    ModelError,
    Reply,
    Request,
    TokenCount,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.prices import PriceList
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.token_price import TokenPrice
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, LeakBlocked, ModelCalled, ToolUsed


def search(call_tool, make_belief, p, query="strait", **more):
    return call_tool("web_search", {"query": query}, belief=make_belief(p, **more))


def submit(call_tool, make_belief, p, **more):
    return call_tool("submit", {"p": p, "reason": "done"}, belief=make_belief(p, **more))


def test_research_run_gives_a_forecast_with_cited_evidence(harness, call_tool, make_belief):
    first = {"claim": "Talks began in October.", "source_id": "search_1_result_2"}
    against = {"claim": "Mines are not cleared.", "source_id": "search_2_result_1"}
    forecast = harness.run(
        [
            search(call_tool, make_belief, 0.4),
            search(call_tool, make_belief, 0.6, "talks", evidence_for=[first]),
            submit(call_tool, make_belief, 0.55, evidence_against=[against]),
        ]
    )
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.55}
    assert "Talks began in October. [search_1_result_2]" in forecast.rationale
    assert (
        "[search_2_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01" in forecast.rationale
    )
    assert [event.tool for event in harness.of(ToolUsed)] == ["web_search", "web_search", "submit"]
    assert len(harness.of(LeakBlocked)) == 2, "the article from after the cutoff, in each search"
    assert harness.of(ForecastMade) == [ForecastMade(p={"yes": 0.55}, how="submitted")]
    assert len(harness.of(ModelCalled)) == 3
    assert forecast.usage.calls == 3
    assert forecast.usage.input_tokens == 300


@pytest.mark.parametrize(("reading", "left"), [("guided", [2, 1, 1]), ("brief", [2, 4, 6])])
def test_only_cited_results_stay_in_the_conversation(harness, call_tool, make_belief, reading, left):
    cited = {"claim": "Talks began in October.", "source_id": "search_1_result_2"}
    harness = harness.with_agent(variant=replace(FULL, reading=reading))
    harness.run(
        [
            search(call_tool, make_belief, 0.4),
            search(call_tool, make_belief, 0.6, "talks", evidence_for=[cited]),
            search(call_tool, make_belief, 0.6, "mines"),
            submit(call_tool, make_belief, 0.55),
        ]
    )
    requests = [" ".join(message.text for message in request.messages) for request in harness.model.requests[1:]]
    assert [text.count("Text of ") for text in requests] == left


def test_belief_has_the_step_of_the_last_result_it_uses(harness, call_tool, make_belief):
    harness.run(
        [search(call_tool, make_belief, 0.4), search(call_tool, make_belief, 0.6), submit(call_tool, make_belief, 0.7)]
    )
    assert [(event.step, event.p["yes"]) for event in harness.of(BeliefRevised)] == [(0, 0.4), (1, 0.6), (2, 0.7)]


def test_loop_accepts_only_a_filtered_toolbox(harness):
    class LooksFiltered:
        def specs(self):
            return ()

    form = AnswerFormat.of(harness.question)
    with pytest.raises(TypeError, match="only a filtered toolbox"):
        AgentTrial(
            request=Request(model="scripted:x", messages=()),
            toolset=AgentToolset(form=form, variant=FULL),
            belief=starting_belief(form),
            model=ScriptedModel([]),
            toolbox=LooksFiltered(),
            emit=harness.events.append,
        )


def test_prompt_prefix_and_tools_do_not_change_between_steps(harness, call_tool, make_belief):
    harness.run(
        [search(call_tool, make_belief, 0.4), search(call_tool, make_belief, 0.6), submit(call_tool, make_belief, 0.7)]
    )
    first, second, third = harness.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert third.messages[: len(second.messages)] == second.messages
    assert first.tools == second.tools == third.tools
    assert [message.cached for message in first.messages if isinstance(message, UserMessage)] == [True]


def test_same_replies_give_the_same_trace(new_harness, call_tool, make_belief):
    script = [
        search(call_tool, make_belief, 0.4),
        Reply(text="hm"),
        search(call_tool, make_belief, 0.6),
        submit(call_tool, make_belief, 0.7),
    ]
    traces = []
    for _ in range(2):
        harness = new_harness()
        harness.run(script)
        traces.append(repr([(type(event).__name__, asdict(event)) for event in harness.events]).encode())
    assert traces[0] == traces[1]


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (Reply(text="I will think about it."), "called no tool"),
        (Reply(text=""), "empty"),
        (Reply(text="", finish="length"), "cut off"),
        (Reply(text="I cannot help with that.", finish="refusal"), "declined"),
        (Reply(calls=(ToolCall(id="", name="google", arguments="{}"),)), "no tool 'google'"),
        (Reply(calls=(ToolCall(id="1", name="web_search", arguments="{{{"),)), "arguments of web_search"),
        (Reply(calls=(ToolCall(id="1", name="web_search", arguments="{}"),)), "query is missing"),
        (Reply(calls=(ToolCall(id="1", name="web_search", arguments='{"query": 3}'),)), "query must be string"),
        (Reply(calls=(ToolCall(id="1", name="submit", arguments='{"p": 1.7}'),)), "1.7"),
        (Reply(calls=(ToolCall(id="1", name="submit", arguments='{"p": NaN}'),)), "not JSON"),
    ],
)
def test_model_is_asked_again_with_the_problem_after_an_unusable_reply(harness, call_tool, make_belief, bad, problem):
    forecast = harness.run([bad, submit(call_tool, make_belief, 0.3)])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.3}
    assert problem in harness.requests[1].messages[-1].text
    assert harness.requests[0].force is None
    assert harness.requests[1].force == "*"
    assert [event.tool for event in harness.of(ToolUsed)] == ["(unusable reply)", "submit"]


def test_current_belief_is_the_answer_after_too_many_unusable_replies(harness, call_tool, make_belief):
    forecast = harness.run([search(call_tool, make_belief, 0.8), *[Reply(text="?")] * 3])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.8}
    assert harness.of(ForecastMade)[0].how == StopReason.UNUSABLE.value
    assert len(harness.requests) == 4


def test_probability_in_text_is_used_as_the_answer(harness):
    forecast = harness.run([Reply(text="My final answer: 12%")] * 3)
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.12}
    assert harness.of(ForecastMade)[0].how == StopReason.SALVAGED.value


def test_model_without_usable_replies_is_asked_for_the_numbers_alone(harness):
    harness = harness.with_agent(settings=AgentSettings(retries=0))
    forecast = harness.run([Reply(text="Let me think."), Reply(text='{"percent": 35}')])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.35}
    assert harness.of(ForecastMade)[0].how == StopReason.PLAIN.value
    plain = harness.requests[-1]
    assert plain.tools == ()
    assert plain.schema["properties"]["percent"]["type"] == "integer"
    assert "in percent" in plain.messages[-1].text
    assert harness.question.criteria in plain.messages[1].text


def test_request_for_the_numbers_alone_includes_the_search_results(harness, call_tool):
    harness = harness.with_agent(variant=NO_BELIEF, settings=AgentSettings(retries=0))
    harness.run([call_tool("web_search", {"query": "a"}), Reply(text="hm"), Reply(text='{"percent": 35}')])
    assert "Text of 2025-10-20" in harness.requests[-1].messages[-1].text
    assert "Text of 2025-11-05" not in harness.requests[-1].messages[-1].text


def test_number_is_used_from_a_reply_cut_off_after_it(harness):
    harness = harness.with_agent(settings=AgentSettings(retries=0, reply_format="schema"))
    forecast = harness.run(
        [Reply(text='{"updated_belief": {"reason": "r", "percent": 30, "evidence_for": [{"cl', finish="length")]
    )
    assert forecast.p == {"yes": 0.3}
    assert harness.of(ForecastMade)[0].how == StopReason.UNUSABLE.value


def test_trial_without_any_belief_is_a_failure_and_not_one_half(harness):
    answer = harness.run([Reply(text="No comment.")] * 3)
    assert isinstance(answer, Failure)
    assert "no probability was stated" in answer.error
    assert len(harness.of(Failed)) == 1
    assert not harness.of(ForecastMade)


def test_unusable_replies_with_a_known_price_give_the_price(harness):
    target = Target(id="yes", snapshot=Snapshot(at="2025-10-20", last_price=0.21))
    harness.question = Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,))
    forecast = harness.with_agent(variant=FULL.with_signals(market_price=True, prior=False)).run(
        [Reply(text="No.")] * 3
    )
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.21}


def test_submit_is_forced_at_the_last_step(harness, call_tool, make_belief):
    harness = harness.with_agent(settings=AgentSettings(steps=3))
    forecast = harness.run(
        [search(call_tool, make_belief, 0.4), search(call_tool, make_belief, 0.5), submit(call_tool, make_belief, 0.6)]
    )
    assert [request.force for request in harness.requests] == [None, None, "submit"]
    assert forecast.p == {"yes": 0.6}


def test_step_limit_gives_the_current_belief_if_the_model_does_not_submit(harness, call_tool, make_belief):
    harness = harness.with_agent(settings=AgentSettings(steps=2))
    forecast = harness.run([search(call_tool, make_belief, 0.4)] + [search(call_tool, make_belief, 0.5)] * 3)
    assert harness.of(ForecastMade)[0].how == StopReason.STEPS.value
    assert forecast.p == {"yes": 0.5}, "the belief counts although the action is invalid"


def test_exceeded_budget_gives_the_current_belief(harness, call_tool, make_belief):
    first = replace(search(call_tool, make_belief, 0.7), tokens=TokenCount(output=1_000_000))
    inner = ScriptedModel([first, submit(call_tool, make_belief, 0.9)])
    prices = PriceList({"scripted:x": TokenPrice(input=0, output=1)})
    metered = BudgetedModel(inner, prices, Budget("question", dollars=1.0))
    forecast = harness.run(metered)
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.7}
    assert harness.of(ForecastMade)[0].how == StopReason.BUDGET.value


def test_budget_exceeded_in_a_tool_gives_the_current_belief(harness, call_tool, make_belief):
    class Summariser:
        spec = ToolSpec(name="web_search", description="", parameters={"properties": {"query": {}}})

        async def use(self, arguments, as_of):
            raise BudgetExceeded("nothing left")

    harness.tools = [Summariser()]
    forecast = harness.run([search(call_tool, make_belief, 0.7)])
    assert forecast.p == {"yes": 0.7}
    assert harness.of(ForecastMade)[0].how == StopReason.BUDGET.value


def test_time_limit_gives_the_current_belief(harness, call_tool, make_belief):
    replies = iter([search(call_tool, make_belief, 0.65)])

    class Slow:
        async def complete(self, request):
            reply = next(replies, None)
            if reply is None:
                await asyncio.sleep(30)
            return reply

    forecast = harness.with_agent(settings=AgentSettings(seconds=0.2)).run(Slow())
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.65}


def test_failed_model_gives_the_current_belief(harness, call_tool, make_belief):
    forecast = harness.run([search(call_tool, make_belief, 0.7), ModelError("provider down")])
    assert forecast.p == {"yes": 0.7}
    assert harness.of(ForecastMade)[0].how == StopReason.MODEL.value


def test_model_that_never_answered_is_a_failure_even_with_a_known_price(harness):
    target = Target(id="yes", snapshot=Snapshot(at="2025-10-20", last_price=0.21))
    harness.question = Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,))
    agent = harness.with_agent(variant=FULL.with_signals(market_price=True, prior=False))
    for error in (ModelError("wrong key"), BudgetExceeded("the budget is spent")):
        answer = agent.run([error])
        assert isinstance(answer, Failure)
        assert str(error) in answer.error


def test_clamp_setting_bounds_the_forecast(harness, call_tool, make_belief):
    script = [submit(call_tool, make_belief, 0.999)]
    assert harness.run(script).p == {"yes": 0.95}
    assert harness.with_agent(settings=AgentSettings(clamp=Clamp(low=0, high=1))).run(script).p == {"yes": 0.999}


def test_only_the_first_of_several_calls_is_run_and_the_model_is_notified(harness, call_tool, make_belief):
    two = search(call_tool, make_belief, 0.4)
    two = Reply(calls=(*two.calls, ToolCall(id="c2", name="web_search", arguments='{"query": "b"}')))
    harness.run([two, submit(call_tool, make_belief, 0.4)])
    results = [message for message in harness.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c1", "c2"]
    assert "only web_search was run" in results[0].text
    assert results[1].text == "Not run: one call at a time."


def test_valid_call_after_an_invalid_one_is_run_and_both_get_results(harness, call_tool, make_belief):
    good = search(call_tool, make_belief, 0.4).calls[0]
    bad = ToolCall(id="c0", name="web_search", arguments="query=a")
    forecast = harness.run([Reply(calls=(bad, good), sealed="thoughts"), submit(call_tool, make_belief, 0.4)])
    assert forecast.ending == "submitted"
    assistant_message = next(
        message for message in harness.requests[1].messages if isinstance(message, AssistantMessage)
    )
    assert [call.id for call in assistant_message.calls] == ["c0", good.id]
    assert json.loads(assistant_message.calls[0].arguments) == {"unreadable": "query=a"}
    assert assistant_message.sealed == "thoughts"
    results = [message for message in harness.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c0", good.id]
    assert results[0].text.startswith("Not run: the arguments of web_search cannot be used")


def test_unusable_call_is_in_the_history_as_a_call_with_its_error(harness, call_tool, make_belief):
    bad = Reply(calls=(ToolCall(id="c0", name="nonsense", arguments="{}"),), sealed="thoughts")
    harness.run([bad, submit(call_tool, make_belief, 0.4)])
    *_, assistant_message, result = harness.requests[1].messages
    assert (assistant_message.calls[0].id, assistant_message.sealed) == ("c0", "thoughts")
    assert isinstance(result, ToolResult)
    assert "there is no tool 'nonsense'" in result.text


def test_ending_of_a_trial_is_recorded(harness, call_tool, make_belief):
    assert harness.run([submit(call_tool, make_belief, 0.4)]).ending == "submitted"
    failed = harness.run([search(call_tool, make_belief, 0.3), ModelError("the connection broke")])
    assert (failed.ending, failed.p, failed.fallback) == ("fallback", {"yes": 0.3}, True)
    assert "the connection broke" in failed.problem


def test_call_without_belief_is_run_and_the_model_is_reminded(harness, call_tool, make_belief):
    forecast = harness.run([call_tool("web_search", {"query": "a"}), submit(call_tool, make_belief, 0.3)])
    assert forecast.p == {"yes": 0.3}
    assert "updated_belief was missing" in harness.requests[1].messages[-1].text


def test_submit_without_number_uses_the_number_of_its_belief(harness, call_tool, make_belief):
    assert harness.run([call_tool("submit", {"reason": "x"}, belief=make_belief(0.3))]).p == {"yes": 0.3}


def test_call_written_as_text_is_parsed(harness, call_tool, make_belief):
    text = '```json\n{"name": "web_search", "arguments": {"query": "a", "updated_belief": {"p": 0.2}}}\n```'
    forecast = harness.run([Reply(text=text), Reply(text='{"tool": "submit", "p": 0.25, "reason": "r"}')])
    assert forecast.p == {"yes": 0.25}
    assert harness.requests[1].messages[-1].text.startswith("Result of web_search")
    assert harness.of(BeliefRevised)[0].p == {"yes": 0.2}


def test_models_without_tools_answer_with_a_json_schema(harness, make_belief):
    harness = harness.with_agent(settings=AgentSettings(reply_format="schema", steps=2))
    action = {"tool": "web_search", "query": "strait"}
    first = json.dumps({"updated_belief": make_belief(0.4), "action": action})
    last = json.dumps({"updated_belief": make_belief(0.5), "action": {"tool": "submit", "percent": 50, "reason": "r"}})
    forecast = harness.run([Reply(text=first), Reply(text=last)])
    assert forecast.p == {"yes": 0.5}
    first_request, second_request = harness.requests
    assert first_request.tools == ()
    assert first_request.force is None
    assert [part["properties"]["tool"]["enum"] for part in first_request.schema["properties"]["action"]["anyOf"]] == [
        ["web_search"],
        ["submit"],
    ]
    assert second_request.schema["properties"]["action"]["properties"]["tool"]["enum"] == ["submit"]
    assert "web_search" in first_request.messages[0].text
    assert "whole numbers from 0 to 100" in first_request.messages[0].text


def test_no_belief_variant_without_an_answer_is_a_failure(harness, call_tool):
    answer = harness.with_agent(variant=NO_BELIEF, settings=AgentSettings(steps=1)).run([Reply(text="hm")] * 3)
    assert isinstance(answer, Failure)


def test_model_that_ignores_a_forced_tool_call_is_asked_for_json(harness, call_tool):
    answer = {"updated_belief": None, "action": {"tool": "submit", "percent": 40, "reason": "r"}}
    forecast = harness.run([Reply(text="Well."), Reply(text="Hm."), Reply(text=json.dumps(answer))])
    assert forecast.p == {"yes": 0.4}
    assert forecast.ending == "submitted"
    free, forced, by_schema = harness.requests
    assert (free.force, forced.force, by_schema.force) == (None, "*", None)
    assert by_schema.schema is not None
    assert not by_schema.tools
    assert "web_search" in by_schema.messages[-1].text  # The prompt describes the tools in words.


def test_results_are_shortened_if_they_exceed_the_context_of_the_model(harness, call_tool, make_belief):
    class ShortContext:
        def __init__(self) -> None:
            self.requests = []

        async def complete(self, request):
            self.requests.append(request)
            if sum(len(message.text) for message in request.messages[2:]) > 400:
                raise ContextTooLong("too long")
            if len(request.messages) == 2:
                return call_tool("web_search", {"query": "q" * 600}, belief=make_belief(0.4))
            return call_tool("submit", {"p": 0.3, "reason": "r"})

    model = ShortContext()
    forecast = harness.run(model)
    assert (forecast.p, forecast.ending) == ({"yes": 0.3}, "submitted")
    assert "longer than the model can read" in model.requests[-1].messages[-1].text


def test_first_request_that_exceeds_the_context_is_a_failure_with_the_reason(harness):
    class NoContext:
        async def complete(self, request):
            raise ContextTooLong("request (900 tokens) exceeds the context size")

    assert "exceeds the context size" in harness.run(NoContext()).error
