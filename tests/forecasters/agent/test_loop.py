"""The loop: a whole research run, and every way in which a model can fail to do its part."""

import asyncio
import json
from dataclasses import asdict, replace

import pytest

from foretell.forecasters.agent import (
    FULL,
    NOBELIEF,
    AgentSettings,
    AgentToolset,
    AgentTrial,
    AnswerFormat,
    Clamp,
    StopReason,
    starting_belief,
)
from foretell.models import (
    AssistantMessage,
    Budget,
    BudgetedModel,
    BudgetExceeded,
    ContextTooLong,
    ModelError,
    PriceList,
    Reply,
    Request,
    TokenCount,
    TokenPrice,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)
from foretell.models.providers import ScriptedModel
from foretell.questions import (
    BeliefRevised,
    Failed,
    Failure,
    Forecast,
    ForecastMade,
    LeakBlocked,
    ModelCalled,
    Question,
    Snapshot,
    Target,
    ToolUsed,
)


def search(say, think, p, query="strait", **more):
    return say("web_search", {"query": query}, belief=think(p, **more))


def submit(say, think, p, **more):
    return say("submit", {"p": p, "reason": "done"}, belief=think(p, **more))


def test_a_full_research_run_with_cited_evidence(desk, say, think):
    first = {"claim": "Talks began in October.", "source_id": "search_1_result_2"}
    against = {"claim": "Mines are not cleared.", "source_id": "search_2_result_1"}
    forecast = desk.run(
        [
            search(say, think, 0.4),
            search(say, think, 0.6, "talks", evidence_for=[first]),
            submit(say, think, 0.55, evidence_against=[against]),
        ]
    )
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.55}
    assert "Talks began in October. [search_1_result_2]" in forecast.rationale
    assert (
        "[search_2_result_1] Article of 2025-10-01 (2025-10-01) https://news.example/2025-10-01" in forecast.rationale
    )
    assert [event.tool for event in desk.of(ToolUsed)] == ["web_search", "web_search", "submit"]
    assert len(desk.of(LeakBlocked)) == 2, "the article from after the cutoff, in each search"
    assert desk.of(ForecastMade) == [ForecastMade(p={"yes": 0.55}, how="submitted")]
    assert len(desk.of(ModelCalled)) == 3
    assert forecast.usage.calls == 3
    assert forecast.usage.input_tokens == 300


def test_belief_is_dated_by_the_last_result_it_has_read(desk, say, think):
    desk.run([search(say, think, 0.4), search(say, think, 0.6), submit(say, think, 0.7)])
    assert [(event.step, event.p["yes"]) for event in desk.of(BeliefRevised)] == [(0, 0.4), (1, 0.6), (2, 0.7)]


def test_loop_accepts_only_a_fenced_toolbox(desk):
    class LooksFenced:
        def specs(self):
            return ()

    form = AnswerFormat.of(desk.question)
    with pytest.raises(TypeError, match="only a fenced toolbox"):
        AgentTrial(
            request=Request(model="scripted:x", messages=()),
            offer=AgentToolset(form=form, variant=FULL),
            belief=starting_belief(form),
            model=ScriptedModel([]),
            toolbox=LooksFenced(),
            emit=desk.events.append,
        )


def test_prefix_stays_the_same_bytes_over_the_steps(desk, say, think):
    desk.run([search(say, think, 0.4), search(say, think, 0.6), submit(say, think, 0.7)])
    one, two, three = desk.requests
    assert two.messages[: len(one.messages)] == one.messages
    assert three.messages[: len(two.messages)] == two.messages
    assert one.tools == two.tools == three.tools
    assert [message.cached for message in one.messages if isinstance(message, UserMessage)] == [True]


def test_same_replies_give_the_same_trace(new_desk, say, think):
    script = [search(say, think, 0.4), Reply(text="hm"), search(say, think, 0.6), submit(say, think, 0.7)]
    traces = []
    for _ in range(2):
        desk = new_desk()
        desk.run(script)
        traces.append(repr([(type(event).__name__, asdict(event)) for event in desk.events]).encode())
    assert traces[0] == traces[1]


@pytest.mark.parametrize(
    ("bad", "told"),
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
def test_an_unusable_reply_is_asked_for_again_with_what_was_wrong(desk, say, think, bad, told):
    forecast = desk.run([bad, submit(say, think, 0.3)])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.3}
    assert told in desk.requests[1].messages[-1].text
    assert desk.requests[0].force is None
    assert desk.requests[1].force == "*"
    assert [event.tool for event in desk.of(ToolUsed)] == ["(unusable reply)", "submit"]


def test_after_too_many_unusable_replies_the_standing_belief_is_the_answer(desk, say, think):
    forecast = desk.run([search(say, think, 0.8), *[Reply(text="?")] * 3])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.8}
    assert desk.of(ForecastMade)[0].how == StopReason.UNUSABLE.value
    assert len(desk.requests) == 4


def test_a_probability_in_the_text_is_salvaged(desk):
    forecast = desk.run([Reply(text="My final answer: 12%")] * 3)
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.12}
    assert desk.of(ForecastMade)[0].how == StopReason.SALVAGED.value


def test_a_model_that_manages_nothing_else_is_asked_for_the_numbers_alone(desk):
    desk = desk.with_agent(settings=AgentSettings(retries=0))
    forecast = desk.run([Reply(text="Let me think."), Reply(text='{"percent": 35}')])
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.35}
    assert desk.of(ForecastMade)[0].how == StopReason.PLAIN.value
    plain = desk.requests[-1]
    assert plain.tools == ()
    assert plain.schema["properties"]["percent"]["type"] == "integer"
    assert desk.question.criteria in plain.messages[1].text


def test_what_was_found_is_told_when_the_numbers_alone_are_asked_for(desk, say):
    desk = desk.with_agent(variant=NOBELIEF, settings=AgentSettings(retries=0))
    desk.run([say("web_search", {"query": "a"}), Reply(text="hm"), Reply(text='{"percent": 35}')])
    assert "Text of 2025-10-20" in desk.requests[-1].messages[-1].text
    assert "Text of 2025-11-05" not in desk.requests[-1].messages[-1].text


def test_a_reply_cut_off_in_its_lists_has_told_its_number(desk):
    desk = desk.with_agent(settings=AgentSettings(retries=0, reply_format="schema"))
    forecast = desk.run(
        [Reply(text='{"updated_belief": {"reason": "r", "percent": 30, "evidence_for": [{"cl', finish="length")]
    )
    assert forecast.p == {"yes": 0.3}
    assert desk.of(ForecastMade)[0].how == StopReason.UNUSABLE.value


def test_no_belief_ever_is_a_failure_and_never_one_half(desk):
    answer = desk.run([Reply(text="No comment.")] * 3)
    assert isinstance(answer, Failure)
    assert "no probability was stated" in answer.error
    assert len(desk.of(Failed)) == 1
    assert not desk.of(ForecastMade)


def test_garbage_with_a_price_ends_at_the_price(desk):
    target = Target(id="yes", snapshot=Snapshot(at="2025-10-20", last_price=0.21))
    desk.question = Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,))
    forecast = desk.with_agent(variant=FULL.with_signals(crowd=True, prior=False)).run([Reply(text="No.")] * 3)
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.21}


def test_submit_is_forced_at_the_last_step(desk, say, think):
    desk = desk.with_agent(settings=AgentSettings(steps=3))
    forecast = desk.run([search(say, think, 0.4), search(say, think, 0.5), submit(say, think, 0.6)])
    assert [request.force for request in desk.requests] == [None, None, "submit"]
    assert forecast.p == {"yes": 0.6}


def test_step_limit_returns_the_standing_belief_when_the_model_will_not_submit(desk, say, think):
    desk = desk.with_agent(settings=AgentSettings(steps=2))
    forecast = desk.run([search(say, think, 0.4)] + [search(say, think, 0.5)] * 3)
    assert desk.of(ForecastMade)[0].how == StopReason.STEPS.value
    assert forecast.p == {"yes": 0.5}, "a belief counts even where its action does not"


def test_budget_end_returns_standing_belief(desk, say, think):
    first = replace(search(say, think, 0.7), tokens=TokenCount(output=1_000_000))
    inner = ScriptedModel([first, submit(say, think, 0.9)])
    prices = PriceList({"scripted:x": TokenPrice(input=0, output=1)})
    metered = BudgetedModel(inner, prices, Budget("question", dollars=1.0))
    forecast = desk.run(metered)
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.7}
    assert desk.of(ForecastMade)[0].how == StopReason.BUDGET.value


def test_budget_spent_inside_a_tool_ends_the_trial_too(desk, say, think):
    class Summariser:
        spec = ToolSpec(name="web_search", description="", parameters={"properties": {"query": {}}})

        async def use(self, arguments, as_of):
            raise BudgetExceeded("nothing left")

    desk.tools = [Summariser()]
    forecast = desk.run([search(say, think, 0.7)])
    assert forecast.p == {"yes": 0.7}
    assert desk.of(ForecastMade)[0].how == StopReason.BUDGET.value


def test_time_limit_returns_the_standing_belief(desk, say, think):
    replies = iter([search(say, think, 0.65)])

    class Slow:
        async def complete(self, request):
            reply = next(replies, None)
            if reply is None:
                await asyncio.sleep(30)
            return reply

    forecast = desk.with_agent(settings=AgentSettings(seconds=0.2)).run(Slow())
    assert isinstance(forecast, Forecast)
    assert forecast.p == {"yes": 0.65}


def test_a_model_that_fails_for_good_leaves_its_belief(desk, say, think):
    forecast = desk.run([search(say, think, 0.7), ModelError("provider down")])
    assert forecast.p == {"yes": 0.7}
    assert desk.of(ForecastMade)[0].how == StopReason.MODEL.value


def test_a_model_that_never_answered_fails_even_where_a_price_is_known(desk):
    target = Target(id="yes", snapshot=Snapshot(at="2025-10-20", last_price=0.21))
    desk.question = Question(id="m", source="own", text="?", due="2025-10-26", targets=(target,))
    agent = desk.with_agent(variant=FULL.with_signals(crowd=True, prior=False))
    for error in (ModelError("wrong key"), BudgetExceeded("the budget is spent")):
        answer = agent.run([error])
        assert isinstance(answer, Failure)
        assert str(error) in answer.error


def test_clamp_is_one_setting_applied_once(desk, say, think):
    script = [submit(say, think, 0.999)]
    assert desk.run(script).p == {"yes": 0.95}
    assert desk.with_agent(settings=AgentSettings(clamp=Clamp(low=0, high=1))).run(script).p == {"yes": 0.999}


def test_only_the_first_of_several_calls_is_run_and_the_model_is_told(desk, say, think):
    two = search(say, think, 0.4)
    two = Reply(calls=(*two.calls, ToolCall(id="c2", name="web_search", arguments='{"query": "b"}')))
    desk.run([two, submit(say, think, 0.4)])
    results = [message for message in desk.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c1", "c2"]
    assert "only web_search was run" in results[0].text
    assert results[1].text == "Not run: one call at a time."


def test_a_valid_call_behind_a_bad_one_is_carried_out_and_both_are_answered(desk, say, think):
    good = search(say, think, 0.4).calls[0]
    bad = ToolCall(id="c0", name="web_search", arguments="query=a")
    forecast = desk.run([Reply(calls=(bad, good), sealed="thoughts"), submit(say, think, 0.4)])
    assert forecast.ending == "submitted"
    spoken = next(message for message in desk.requests[1].messages if isinstance(message, AssistantMessage))
    assert [call.id for call in spoken.calls] == ["c0", good.id]
    assert json.loads(spoken.calls[0].arguments) == {"unreadable": "query=a"}
    assert spoken.sealed == "thoughts"
    results = [message for message in desk.requests[1].messages if isinstance(message, ToolResult)]
    assert [result.call_id for result in results] == ["c0", good.id]
    assert results[0].text.startswith("Not run: the arguments of web_search cannot be used")


def test_an_unusable_call_goes_into_the_history_as_a_call_with_its_error(desk, say, think):
    bad = Reply(calls=(ToolCall(id="c0", name="nonsense", arguments="{}"),), sealed="thoughts")
    desk.run([bad, submit(say, think, 0.4)])
    *_, spoken, result = desk.requests[1].messages
    assert (spoken.calls[0].id, spoken.sealed) == ("c0", "thoughts")
    assert isinstance(result, ToolResult)
    assert "there is no tool 'nonsense'" in result.text


def test_how_a_trial_ended_is_a_value(desk, say, think):
    assert desk.run([submit(say, think, 0.4)]).ending == "submitted"
    broken = desk.run([search(say, think, 0.3), ModelError("the connection broke")])
    assert (broken.ending, broken.p, broken.degraded) == ("degraded", {"yes": 0.3}, True)
    assert "the connection broke" in broken.problem


def test_a_call_without_belief_is_carried_out_and_the_model_is_reminded(desk, say, think):
    forecast = desk.run([say("web_search", {"query": "a"}), submit(say, think, 0.3)])
    assert forecast.p == {"yes": 0.3}
    assert "updated_belief was missing" in desk.requests[1].messages[-1].text


def test_a_submit_without_number_takes_that_of_its_own_belief(desk, say, think):
    assert desk.run([say("submit", {"reason": "x"}, belief=think(0.3))]).p == {"yes": 0.3}


def test_a_call_written_out_as_text_is_understood(desk, say, think):
    text = '```json\n{"name": "web_search", "arguments": {"query": "a", "updated_belief": {"p": 0.2}}}\n```'
    forecast = desk.run([Reply(text=text), Reply(text='{"tool": "submit", "p": 0.25, "reason": "r"}')])
    assert forecast.p == {"yes": 0.25}
    assert desk.requests[1].messages[-1].text.startswith("Result of web_search")
    assert desk.of(BeliefRevised)[0].p == {"yes": 0.2}


def test_models_without_tools_answer_by_schema(desk, think):
    desk = desk.with_agent(settings=AgentSettings(reply_format="schema", steps=2))
    action = {"tool": "web_search", "query": "strait"}
    first = json.dumps({"updated_belief": think(0.4), "action": action})
    last = json.dumps({"updated_belief": think(0.5), "action": {"tool": "submit", "percent": 50, "reason": "r"}})
    forecast = desk.run([Reply(text=first), Reply(text=last)])
    assert forecast.p == {"yes": 0.5}
    one, two = desk.requests
    assert one.tools == ()
    assert one.force is None
    assert [part["properties"]["tool"]["enum"] for part in one.schema["properties"]["action"]["anyOf"]] == [
        ["web_search"],
        ["submit"],
    ]
    assert two.schema["properties"]["action"]["properties"]["tool"]["enum"] == ["submit"]
    assert "web_search" in one.messages[0].text
    assert "whole numbers from 0 to 100" in one.messages[0].text


def test_no_belief_variant_fails_rather_than_inventing_a_half(desk, say):
    answer = desk.with_agent(variant=NOBELIEF, settings=AgentSettings(steps=1)).run([Reply(text="hm")] * 3)
    assert isinstance(answer, Failure)


def test_a_model_that_calls_no_tool_when_told_to_is_asked_for_json(desk, say):
    answer = {"updated_belief": None, "action": {"tool": "submit", "percent": 40, "reason": "r"}}
    forecast = desk.run([Reply(text="Well."), Reply(text="Hm."), Reply(text=json.dumps(answer))])
    assert forecast.p == {"yes": 0.4}
    assert forecast.ending == "submitted"
    free, forced, by_schema = desk.requests
    assert (free.force, forced.force, by_schema.force) == (None, "*", None)
    assert by_schema.schema is not None
    assert not by_schema.tools
    assert "web_search" in by_schema.messages[-1].text  # It is told of the tools in words.


def test_results_are_cut_shorter_where_the_model_cannot_read_them_all(desk, say, think):
    class ShortMemory:
        def __init__(self) -> None:
            self.requests = []

        async def complete(self, request):
            self.requests.append(request)
            if sum(len(message.text) for message in request.messages[2:]) > 400:
                raise ContextTooLong("too long")
            if len(request.messages) == 2:
                return say("web_search", {"query": "q" * 600}, belief=think(0.4))
            return say("submit", {"p": 0.3, "reason": "r"})

    model = ShortMemory()
    forecast = desk.run(model)
    assert (forecast.p, forecast.ending) == ({"yes": 0.3}, "submitted")
    assert "longer than the model can read" in model.requests[-1].messages[-1].text


def test_an_opening_that_cannot_be_read_is_a_failure_with_its_reason(desk):
    class NoMemory:
        async def complete(self, request):
            raise ContextTooLong("request (900 tokens) exceeds the context size")

    assert "exceeds the context size" in desk.run(NoMemory()).error
