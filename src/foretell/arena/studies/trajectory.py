"""What agents do on the way: how beliefs move, which tools are used, how trials end. Read from events alone."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan

from foretell.forecasters.agent.loop import UNUSABLE
from foretell.questions.event import BeliefRevised, Event, Failed, ForecastMade, ModelCalled, ToolUsed
from foretell.tools.names import SUBMIT

Trace = Sequence[Event]
"""The events of one trial, in order."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """The belief after the result of a step had been read."""

    step: int
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """One trial."""

    path: tuple[Point, ...]
    tools: Mapping[str, int]
    """Uses that worked or were refused by the tool; submitting is not counted."""
    failed_uses: int
    unusable: int
    """Replies that had to be asked for again."""
    how: str
    """How it ended; empty for a trial that failed."""
    calls: int
    dollars: float
    tokens: int
    gap: float
    """Largest |submitted − last belief| over the targets, both before clamping; NaN where there was not both."""

    @property
    def steps(self) -> int:
        """Tools used, the answer not counted."""
        return sum(self.tools.values())

    @property
    def moved(self) -> float:
        """Largest |change| from the first to the last stated belief over the targets."""
        return _distance(self.path[0].p, self.path[-1].p) if len(self.path) > 1 else 0.0

    @property
    def travelled(self) -> float:
        """Sum of the largest changes at each revision: far more than `moved` means going back and forth."""
        return sum(_distance(a.p, b.p) for a, b in zip(self.path, self.path[1:], strict=False))


def summarise(trace: Trace) -> TraceSummary:
    """What one trial did."""
    used = [event for event in trace if isinstance(event, ToolUsed)]
    models = [event for event in trace if isinstance(event, ModelCalled)]
    research = [event for event in used if event.tool not in (SUBMIT, UNUSABLE)]
    made = [event for event in trace if isinstance(event, ForecastMade)]
    return TraceSummary(
        path=belief_path(trace),
        tools=Counter(event.tool for event in research),
        failed_uses=sum(event.failed for event in research),
        unusable=sum(event.tool == UNUSABLE for event in used),
        how=made[-1].how if made else "",
        calls=len(models),
        dollars=sum(event.dollars or 0.0 for event in models),
        tokens=sum(event.input_tokens + event.output_tokens for event in models),
        gap=_gap(trace),
    )


def belief_path(trace: Trace) -> tuple[Point, ...]:
    """The belief by step; the last one of a step counts."""
    points = {event.step: Point(step=event.step, p=event.p) for event in trace if isinstance(event, BeliefRevised)}
    return tuple(points[step] for step in sorted(points))


@dataclass(frozen=True, kw_only=True)
class Habits:
    """Many trials together."""

    trials: int
    failed: int
    endings: Mapping[str, int]
    submit_rate: float
    """Share of all trials that ended in an answer the model itself handed in."""
    steps: float
    """Mean number of tools used."""
    tools: Mapping[str, float]
    """Mean uses per trial."""
    failed_uses: float
    unusable: float
    """Mean number of replies per trial that had to be asked for again."""
    consistent: float
    """Share of submitted answers within `tolerance` of the belief stated last; NaN where no belief is kept."""
    largest_gap: float
    moved: float
    dollars: float
    tokens: float


def habits(traces: Iterable[Trace], *, tolerance: float = 0.01) -> Habits:
    """Statistics over trials; at least one is needed."""
    all_of = [summarise(trace) for trace in traces]
    if not all_of:
        raise ValueError("traces is empty: there is nothing to summarise")
    gaps = [one.gap for one in all_of if one.gap == one.gap]
    return Habits(
        trials=len(all_of),
        failed=sum(not one.how for one in all_of),
        endings=Counter(one.how or "failed" for one in all_of),
        submit_rate=_mean([float(one.how == "submitted") for one in all_of]),
        steps=_mean([one.steps for one in all_of]),
        tools={tool: _mean([one.tools.get(tool, 0) for one in all_of]) for tool in _names(all_of)},
        failed_uses=_mean([one.failed_uses for one in all_of]),
        unusable=_mean([one.unusable for one in all_of]),
        consistent=_mean([float(gap <= tolerance) for gap in gaps]),
        largest_gap=max(gaps, default=nan),
        moved=_mean([one.moved for one in all_of]),
        dollars=_mean([one.dollars for one in all_of]),
        tokens=_mean([one.tokens for one in all_of]),
    )


def errors(traces: Iterable[Trace]) -> Counter[str]:
    """Why trials failed, most frequent first by `most_common`."""
    return Counter(event.error for trace in traces for event in trace if isinstance(event, Failed))


def _gap(trace: Trace) -> float:
    path = belief_path(trace)
    submitted = [event.arguments.get("p") for event in trace if isinstance(event, ToolUsed) and event.tool == SUBMIT]
    if not path or not submitted or not isinstance(submitted[-1], Mapping):
        return nan
    return _distance(path[-1].p, submitted[-1])


def _distance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return max((abs(a[target] - b[target]) for target in a.keys() & b.keys()), default=0.0)


def _names(summaries: Sequence[TraceSummary]) -> list[str]:
    return sorted({tool for one in summaries for tool in one.tools})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
