"""The exam before a paid run."""

import asyncio

import pytest

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.models.model import Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.errors import InputError
from foretell.studies.smoke import ExamPassMark, grade_exam, run_exam_trials


def exam(model, questions, context_with, mark=None):
    return grade_exam(
        asyncio.run(run_exam_trials(BeliefAgent(), questions, context_with(model))), mark or ExamPassMark()
    )


def test_a_model_that_answers_passes(say, questions, context_with):
    verdict = exam(ScriptedModel(lambda request: say("submit", 0.4, p=0.4)), questions, context_with)
    assert verdict.passed
    assert verdict.completed == 1
    assert verdict.low == pytest.approx(4 / (4 + 1.959964**2))
    assert str(verdict).startswith("passed. 100% of 4 trials completed")


def test_a_model_that_never_answers_fails_with_the_reason(questions, context_with):
    verdict = exam(ScriptedModel(lambda request: Reply(text="")), questions, context_with)
    assert not verdict.passed
    assert verdict.completed == 0
    assert "4 of 4 trials failed" in verdict.reasons[0]
    assert "it was empty" in verdict.reasons[0]


def test_answers_that_had_to_be_salvaged_are_no_pass(questions, context_with):
    verdict = exam(ScriptedModel(lambda request: Reply(text="Probability: 40%")), questions, context_with)
    assert verdict.completed == 1
    assert not verdict.passed
    assert "only 0% of trials submitted" in verdict.reasons[0]
    assert exam(
        ScriptedModel(lambda request: Reply(text="Probability: 40%")),
        questions,
        context_with,
        mark=ExamPassMark(submitted=0, unusable=9),
    ).passed


def test_an_exam_without_questions_is_refused(context_with):
    with pytest.raises(InputError, match="at least one question"):
        exam(ScriptedModel([]), [], context_with)
