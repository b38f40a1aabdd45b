"""The verdict on a pilot, before a paid run."""

import asyncio

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.models.model import Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.errors import InputError
from foretell.report.study_result import StudyResult
from foretell.studies.cases import TracedTrial
from foretell.studies.pilot import judge_pilot
from foretell.studies.trace_summary import run_trial


def pilot(model, questions, context_with) -> StudyResult:
    async def trial(question) -> TracedTrial:
        trace = await run_trial(BeliefAgent(), question, context_with(model)(question))
        return TracedTrial(question=question.id, trace=trace)

    async def trials() -> list[TracedTrial]:
        return [await trial(question) for question in questions]

    return judge_pilot("m", asyncio.run(trials()))


def test_a_model_that_answers_passes(say, questions, context_with):
    result = pilot(ScriptedModel(lambda request: say("submit", 0.4, p=0.4)), questions, context_with)
    assert result.passed
    assert result.text.startswith("Passed. 100 % of 4 trials completed (51 % to 100 %)"), "Wilson: 4 / (4 + 1.96²)"


def test_a_model_that_never_answers_fails_with_the_reason(questions, context_with):
    result = pilot(ScriptedModel(lambda request: Reply(text="")), questions, context_with)
    assert not result.passed
    assert result.text.startswith("Failed: 4 of 4 trials failed, most often: ")
    assert "it was empty" in result.text
    assert "0 % of 4 trials completed" in result.text


def test_pilot_fails_if_answers_come_from_the_last_belief(questions, context_with):
    result = pilot(ScriptedModel(lambda request: Reply(text="Probability: 40%")), questions, context_with)
    assert not result.passed
    assert "only 0 % of trials submitted" in result.text
    assert "100 % of 4 trials completed" in result.text


def test_a_pilot_without_questions_is_refused(context_with):
    with pytest.raises(InputError, match="at least one question"):
        pilot(ScriptedModel([]), [], context_with)
