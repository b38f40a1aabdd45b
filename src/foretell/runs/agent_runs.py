"""An agent as a forecaster of a backtest: a run of its settings on the questions, with one answer for each."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from foretell.agent import Agent
from foretell.data.files import write_atomically
from foretell.frozen import frozen
from foretell.questions.backtest import BacktestAnswer
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import UNFILTERED_SUFFIX, Failure
from foretell.questions.question import Question
from foretell.runs.combine import combined_answers, combining_of_run
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import AskedQuestions
from foretell.runs.runner import PreparedRun, execute_run, find_run_of, prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import spec_from_mapping, with_settings
from foretell.runs.store import RunStore
from foretell.runs.stored_runs import check_start


@frozen
class AgentRun:
    """A prepared run whose combined answers are those of an agent."""

    name: str
    prepared: PreparedRun
    settings: Settings

    async def answers(self, questions: Sequence[Question], watch: Callable[[int], None]) -> list[BacktestAnswer]:
        """Answer all questions, several at a time, and return the answers in their order.

        The run is stored with every step. What it has answered before is not asked again. `watch` is called with the
        number of questions done.
        """
        spec = self.prepared.spec

        def count(progress: RunProgress) -> None:
            watch((progress.done + progress.failed + progress.skipped) // spec.trials)

        progress = await execute_run(self.prepared, self.settings, watch=count)
        with closing(RunStore(self.settings.store)) as store:
            stored = list(store.answers(spec.id))
            combined = combined_answers(stored, self.prepared.questions, combining_of_run(store, spec))
        found = {(each.forecast.question_id, each.forecast.as_of.at): each.forecast for each in combined}
        trials: dict[tuple[str, datetime], list[BacktestAnswer]] = {}
        for trial in stored:
            trials.setdefault((trial.question_id, trial.as_of.at), []).append(trial)
        answers: list[BacktestAnswer] = []
        for question in questions:
            key = (question.id, question.as_of.at)
            forecast = found.get(key)
            if forecast is None:
                answers.append(self._failure(question, trials.get(key, ()), progress.stopped))
            else:
                answers.append(replace(forecast, forecaster=self._marked(forecast.forecaster)))
        return answers

    def _failure(self, question: Question, trials: Sequence[BacktestAnswer], stopped: str) -> Failure:
        """Return why a question has no answer: the first failure of its trials."""
        reasons = [trial.error if isinstance(trial, Failure) else trial.problem for trial in trials]
        error = next(filter(None, reasons), stopped or "no trial gave an answer")
        name = next((self._marked(trial.forecaster) for trial in trials), self.name)
        return Failure(question_id=question.id, forecaster=name, as_of=question.as_of, error=error)

    def _marked(self, forecaster: str) -> str:
        """Return the name of the agent, marked if nothing was withheld from it."""
        return self.name + (UNFILTERED_SUFFIX if forecaster.endswith(UNFILTERED_SUFFIX) else "")


def prepare_agent(agent: Agent, asked: AskedQuestions, settings: Settings) -> AgentRun:
    """Return the run of an agent, checked before anything is sent.

    Questions without the name of a set are stored in the home of the settings.
    """
    chosen = agent.settings
    if wrong := [name for name in chosen if name == "mode" or name.partition(".")[0] == "questions"]:
        hint = "the backtest chooses questions and mode"
        raise InputError("does not apply to an agent in a backtest", column=wrong[0], hint=hint)
    named = asked.dataset is not None
    questions: dict[str, Any] = {
        "dataset": asked.dataset if named else _stored(asked.questions, settings),
        "leaky_questions": asked.wanted.leaky_questions,
        **({"limit": asked.wanted.limit} if named and asked.wanted.limit is not None else {}),
    }
    spec = spec_from_mapping(with_settings({"questions": questions, "mode": "backtest"}, chosen))
    check_start(spec, settings, plan=False)
    prepared = prepare_run(spec)
    with closing(RunStore(settings.store)) as store:
        prepared = find_run_of(store, prepared)
    if asked.benchmark is not None:
        prepared = replace(prepared, benchmark=asked.benchmark)
    return AgentRun(name=agent.label, prepared=replace(prepared, stored_past=asked.past), settings=settings)


def _stored(questions: Sequence[Question], settings: Settings) -> str:
    """Store questions in the home and return the path, which is the name of their question set."""
    content = "".join(f"{to_json(question)}\n" for question in questions).encode()
    path = settings.home / "questions" / sha256(content).hexdigest()[:12] / "backtest.jsonl"
    write_atomically(path, content)
    return str(path)
