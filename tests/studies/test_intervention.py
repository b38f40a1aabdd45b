"""A pushed belief: followed by a model that reads it, ignored by one that does not."""

import asyncio
from dataclasses import replace

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import NO_BELIEF, AgentSettings
from foretell.forecasters.prompt.adapter import ContextAdapter
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource, StoredContexts
from foretell.models.journal import Journal, JournalReadingModel, JournalWritingModel
from foretell.models.prices import PriceList
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.trace import BeliefRevised
from foretell.studies.intervention import intervention_study, measure_push, opposite, try_pushes

AGENT = BeliefAgent(settings=AgentSettings(steps=4))


def model_that(say, last_belief, carry):
    """Searches three times, then submits; each belief is a mix of the one before and its own 0.3."""

    def reply(request):
        before = last_belief(request)
        p = 0.3 if before is None else carry * before + (1 - carry) * 0.3
        step = int(request.slot.split("step ")[1].split("/")[0])
        return say("submit", p, p=p) if step == 4 else say("web_search", p, query="x")

    return ScriptedModel(reply)


def run(model, questions, context_with, agent=AGENT):
    tried = asyncio.run(try_pushes(agent, questions, context_with(model), step=2))
    return [pair for _, pair in tried if pair is not None]


def left(pairs):
    """Return the shares left of the pushes, with intervals, one and two beliefs later and in the forecast."""
    result = intervention_study([(pair.untouched, pair) for pair in pairs], step=2)
    return list(result.table("What is left of a push").column("left").values())


def test_a_model_that_reads_its_belief_follows_a_push(say, last_belief, questions, context_with):
    pairs = run(model_that(say, last_belief, 1.0), questions, context_with)
    assert len(pairs) == 4
    outcome = measure_push(pairs[0])
    assert outcome.shares_left == pytest.approx((1.0, 1.0))
    assert outcome.final == pytest.approx(1.0)
    final = left(pairs)[-1]
    assert (final.estimate, final.low, final.high) == pytest.approx((1.0, 1.0, 1.0))


def test_model_that_ignores_its_belief_does_not_follow_a_push(say, last_belief, questions, context_with):
    intervals = left(run(model_that(say, last_belief, 0.0), questions, context_with))
    assert [interval.estimate for interval in intervals] == pytest.approx([0.0, 0.0, 0.0])
    assert intervals[-1].n_clusters == 4


def test_push_fades_over_steps(say, last_belief, questions, context_with):
    first, second, _ = left(run(model_that(say, last_belief, 0.5), questions, context_with))
    assert 1 > first.estimate > second.estimate > 0


def test_the_push_is_in_the_trace_and_in_what_the_model_reads(say, last_belief, questions, context_with):
    model = model_that(say, last_belief, 1.0)
    pair = run(model, questions[:1], context_with)[0]
    beliefs = [
        (event.step, event.p["yes"], event.belief["origin"])
        for event in pair.pushed
        if isinstance(event, BeliefRevised)
    ]
    assert beliefs[:3] == [(0, 0.3, "model"), (1, 0.3, "model"), (1, 0.85, "overwritten")]
    assert last_belief(model.requests[-2]) == opposite(0.3)


def test_both_trials_are_shown_what_was_gathered(say, last_belief, questions, context_with):
    model = model_that(say, last_belief, 1.0)
    source = RankedSource(url="https://news.example/1", title="Calm", summary="The water is calm.")

    def context_of(question):
        context = context_with(model)(question)
        shown = PredictionContext(question=question, as_of=context.as_of, sources=(source,))
        return replace(context, contexts=StoredContexts([shown]))

    def shown(agent):
        return ContextAdapter(forecaster=agent, view="sources")

    ((_, pair),) = asyncio.run(try_pushes(AGENT, questions[:1], context_of, step=2, shown=shown))
    assert pair is not None
    assert all("The water is calm." in request.messages[1].text for request in model.requests)


def test_with_a_journal_the_shared_steps_are_paid_once(say, last_belief, questions, context_with):
    inner = model_that(say, last_belief, 1.0)
    journal = Journal(":memory:")
    model = JournalReadingModel(JournalWritingModel(inner, journal, PriceList()), journal)
    run(model, questions[:1], context_with)
    journal.close()
    assert len(inner.requests) == 4 + 2, "steps 1 and 2 are the same in both runs"


def test_trials_that_ended_before_the_push_are_left_out(say, questions, context_with):
    assert run(ScriptedModel(lambda request: say("submit", 0.4, p=0.4)), questions, context_with) == []


def test_an_agent_without_belief_has_nothing_to_push(say, questions, context_with):
    agent = BeliefAgent(variant=NO_BELIEF)
    assert run(ScriptedModel(lambda request: say("submit", 0.4, p=0.4)), questions, context_with, agent) == []
