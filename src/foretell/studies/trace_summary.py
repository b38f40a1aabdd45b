"""Summaries of traces: the beliefs, tools, endings and costs of single trials."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import nan

from foretell.forecasters.agent.loop import UNUSABLE
from foretell.forecasters.forecaster import Context, Forecaster, attempt
from foretell.frozen import frozen
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed, TraceEvent
from foretell.studies.cases import EventTrace
from foretell.tools.tool import SUBMIT


async def run_trial(forecaster: Forecaster, question: Question, context: Context) -> list[TraceEvent]:
    """Run one trial on a question and return its events."""
    events: list[TraceEvent] = []
    await attempt(forecaster, question, replace(context, emit=events.append))
    return events


def belief_path(trace: EventTrace) -> dict[int, Mapping[str, float]]:
    """Return the belief after each step; the last revision within a step counts."""
    return dict(sorted({event.step: event.p for event in trace if isinstance(event, BeliefRevised)}.items()))


def failure_counts(traces: Iterable[EventTrace]) -> Counter[str]:
    """Return the number of failed trials by reason; `most_common` puts the most frequent first."""
    return Counter(event.error for trace in traces for event in trace if isinstance(event, Failed))


@frozen
class TraceSummary:
    """Summary of one trial."""

    path: Mapping[int, Mapping[str, float]]
    """Belief by step."""
    tools: Mapping[str, int]
    """Number of uses by tool, not counting the submission."""
    failed_uses: int
    unusable: int
    """Number of unusable replies that had to be asked for again."""
    how: str
    """How the trial ended; empty if it failed."""
    calls: int
    dollars: float
    tokens: int
    gap: float
    """Largest |submitted − last belief| over the targets, both before clamping; NaN unless both exist."""

    @property
    def steps(self) -> int:
        """Number of tool uses, not counting the submission."""
        return sum(self.tools.values())

    @property
    def moved(self) -> float:
        """Largest |change| from the first to the last stated belief over the targets."""
        beliefs = list(self.path.values())
        return _distance(beliefs[0], beliefs[-1]) if beliefs else 0.0

    @property
    def travelled(self) -> float:
        """Sum of the largest changes at each revision; far more than `moved` if the belief went back and forth."""
        return sum(_distance(a, b) for a, b in pairwise(self.path.values()))


def summarise_trace(trace: EventTrace) -> TraceSummary:
    """Summarise one trial."""
    used = [event for event in trace if isinstance(event, ToolUsed)]
    calls = [event for event in trace if isinstance(event, ModelCalled)]
    research = [event for event in used if event.tool not in (SUBMIT, UNUSABLE)]
    endings = [event.how for event in trace if isinstance(event, ForecastMade)]
    path = belief_path(trace)
    submitted = [event.arguments.get("p") for event in used if event.tool == SUBMIT][-1:]
    answer = submitted[0] if submitted and isinstance(submitted[0], Mapping) else None
    return TraceSummary(
        path=path,
        tools=Counter(event.tool for event in research),
        failed_uses=sum(event.failed for event in research),
        unusable=sum(event.tool == UNUSABLE for event in used),
        how=endings[-1] if endings else "",
        calls=len(calls),
        dollars=sum(event.dollars or 0.0 for event in calls),
        tokens=sum(event.input_tokens + event.output_tokens for event in calls),
        gap=_distance(list(path.values())[-1], answer) if path and answer is not None else nan,
    )


def _distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return max((abs(a[target] - b[target]) for target in a.keys() & b.keys()), default=0.0)
