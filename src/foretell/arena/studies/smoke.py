"""The smoke exam: a few questions before a paid run, to see whether trials come to an end, and at what price."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foretell.arena.studies.side_by_side import side_by_side
from foretell.arena.studies.trajectory import Habits, Trace, errors, habits
from foretell.arena.study import Progress, quietly
from foretell.evaluate.reliability import wilson_interval
from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.context import AgentContext
from foretell.questions.event import Event, Failed
from foretell.questions.problems import InputError
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class PassMark:
    """What a model must manage before money is spent on it."""

    completed: float = 0.95
    """Share of trials that end in a forecast."""
    submitted: float = 0.8
    """Share of trials in which the model itself hands the answer in; the rest live on what was salvaged."""
    unusable: float = 1.0
    """Replies per trial that had to be asked for again, at most."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether to go on, why not, and what it will cost."""

    passed: bool
    reasons: tuple[str, ...]
    """What fell short; empty after a pass."""
    completed: float
    low: float
    high: float
    """95 % interval of the completion rate (Wilson 1927)."""
    habits: Habits
    dollars: float
    """Spent on the exam."""

    def cost_of(self, questions: int, trials: int = 1) -> float:
        """Dollars that a run of this size will take at the exam's mean price."""
        return self.habits.dollars * questions * trials

    def __str__(self) -> str:
        """One line for people."""
        word = "passed" if self.passed else f"failed: {'; '.join(self.reasons)}"
        share = f"{self.completed:.0%} of {self.habits.trials} trials completed ({self.low:.0%} to {self.high:.0%})"
        return f"{word}. {share}, {self.habits.submit_rate:.0%} submitted, ${self.habits.dollars:.4f} a trial"


async def smoke_exam(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], AgentContext],
    mark: PassMark | None = None,
) -> Verdict:
    """Run one trial of each question and judge what happened."""
    return judge(await trials(agent, questions, context_of), mark or PassMark())


async def trials(
    agent: BeliefAgent,
    questions: Sequence[Question],
    context_of: Callable[[Question], AgentContext],
    progress: Progress = quietly,
) -> list[Trace]:
    """One trial of each question."""
    if not questions:
        raise InputError("the smoke exam needs at least one question")
    return list(await side_by_side(questions, lambda one: _trace(agent, one, context_of(one)), progress))


def judge(traces: Sequence[Trace], mark: PassMark) -> Verdict:
    """The verdict on trials that were run."""
    seen = habits(traces)
    done = seen.trials - seen.failed
    completed = done / seen.trials
    low, high = (float(end) for end in wilson_interval(completed, seen.trials))
    return Verdict(
        passed=not (reasons := _shortfalls(seen, completed, mark, traces)),
        reasons=reasons,
        completed=completed,
        low=low,
        high=high,
        habits=seen,
        dollars=seen.dollars * seen.trials,
    )


def _shortfalls(seen: Habits, completed: float, mark: PassMark, traces: Sequence[Trace]) -> tuple[str, ...]:
    found: list[str] = []
    if completed < mark.completed:
        most = errors(traces).most_common(1)
        why = f", most often: {most[0][0]}" if most else ""
        found.append(f"{seen.failed} of {seen.trials} trials failed{why}")
    if seen.submit_rate < mark.submitted:
        found.append(f"only {seen.submit_rate:.0%} of trials submitted an answer of their own")
    if seen.unusable > mark.unusable:
        found.append(f"{seen.unusable:.1f} replies a trial had to be asked for again")
    return tuple(found)


async def _trace(agent: BeliefAgent, question: Question, context: AgentContext) -> list[Event]:
    """One trial's events. Bad input, such as a missing key, stops the exam: it would fail every question alike."""
    events: list[Event] = []
    await agent.attempt(question, replace(context, emit=events.append))
    if not events:
        events.append(Failed(error="nothing happened"))
    return events
