"""An agent as a forecaster of a backtest: a run of its settings on the questions, with one answer for each."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from foretell.agent import Agent
from foretell.data.datasets.question_set import LeakyQuestions
from foretell.data.files import write_atomically
from foretell.forecasters.base_rates.past import Past
from foretell.questions.backtest import BacktestAnswer
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import UNFILTERED_SUFFIX, Failure
from foretell.questions.question import Question
from foretell.runs.combine import combined_answers, combining_of_run
from foretell.runs.executor import RunProgress
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, execute_run, find_run_of, prepare_run
from foretell.runs.settings import Settings
from foretell.runs.spec import spec_from_mapping, with_settings
from foretell.runs.store import RunStore
from foretell.runs.stored_runs import check_start


@dataclass(frozen=True, kw_only=True)
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


def prepare_agent(  # noqa: PLR0913 - the parts of a backtest
    agent: Agent,
    questions: Sequence[Question],
    settings: Settings,
    *,
    dataset: str | None,
    benchmark: Benchmark | None,
    past: Past | None,
    leaky_questions: LeakyQuestions,
) -> AgentRun:
    """Return the run of an agent, checked before anything is sent.

    Args:
        agent: The agent.
        questions: What it is asked.
        settings: Settings of this machine, which name its home.
        dataset: The name of the question set; questions without one are stored in the home.
        benchmark: Where past questions and series come from, if not from the named set.
        past: Past questions to learn from instead.
        leaky_questions: What to do with questions whose own text is newer than their date.
    """
    chosen = agent.settings
    if wrong := [name for name in chosen if name == "mode" or name.partition(".")[0] == "questions"]:
        hint = "the backtest chooses questions and mode"
        raise InputError("does not apply to an agent in a backtest", column=wrong[0], hint=hint)
    asked: dict[str, Any] = {"dataset": dataset or _stored(questions, settings), "leaky_questions": leaky_questions}
    spec = spec_from_mapping(with_settings({"questions": asked, "mode": "backtest"}, chosen))
    check_start(spec, settings, plan=False)
    prepared = prepare_run(spec)
    with closing(RunStore(settings.store)) as store:
        prepared = find_run_of(store, prepared)
    if benchmark is not None:
        prepared = replace(prepared, benchmark=benchmark)
    return AgentRun(name=agent.label, prepared=replace(prepared, stored_past=past), settings=settings)


def _stored(questions: Sequence[Question], settings: Settings) -> str:
    """Store questions in the home and return the path, which is the name of their question set."""
    content = "".join(f"{to_json(question)}\n" for question in questions).encode()
    path = settings.home / "questions" / sha256(content).hexdigest()[:12] / "backtest.jsonl"
    write_atomically(path, content)
    return str(path)
