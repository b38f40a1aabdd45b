"""Sections of the study of trajectories: which tools are used by source of the questions, and medians of agents."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median, quantiles

from foretell.metrics.bootstrap import Interval
from foretell.number_text import number, plural
from foretell.questions.errors import InputError
from foretell.questions.trace import BeliefRevised, ModelCalled, ToolUsed
from foretell.report.charts.groups import stacked_bars
from foretell.report.numbers import CellValue
from foretell.report.study import StudyChart, column, count, forest_chart, table
from foretell.report.study_result import StudyResult
from foretell.studies.belief_steps import last_step
from foretell.studies.cases import TracedTrial
from foretell.studies.trace_summary import summarise_trace

UNKNOWN = "unknown"
ALL_TOOLS = "all tools"


def _named(run: str, part: str, runs: int) -> str:
    return part if runs == 1 else f"{run}, {part}"


# Tools by source.


def tools_section(by_run: Mapping[str, Sequence[TracedTrial]]) -> StudyResult:
    """Count the uses of each tool in a trial, by source of the questions. Raises InputError if no tool was used."""
    means: dict[str, dict[str, float]] = {}
    trials_of: dict[str, int] = {}
    for run, trials in by_run.items():
        by_source: dict[str, list[Mapping[str, int]]] = {}
        for trial in trials:
            source = trial.asked.source if trial.asked is not None else UNKNOWN
            by_source.setdefault(source, []).append(summarise_trace(trial.trace).tools)
        for source, uses in sorted(by_source.items()):
            name = _named(run, source, len(by_run))
            tools = dict.fromkeys(tool for used in uses for tool in used)
            means[name] = {tool: fmean(used.get(tool, 0) for used in uses) for tool in tools}
            trials_of[name] = len(uses)
    names = sorted({tool for tools in means.values() for tool in tools})
    if not names:
        raise InputError("no trial used a tool", hint="give runs of an agent")
    rows: dict[str, list[CellValue]] = {
        name: [trials_of[name], *(tools.get(tool, 0.0) for tool in names), sum(tools.values())]
        for name, tools in means.items()
    }
    columns = (count("n", "trials"), *(column(tool, "mean uses per trial", 2) for tool in (*names, ALL_TOOLS)))
    most = max(means, key=lambda name: sum(means[name].values()))
    return StudyResult(
        name="trajectories",
        title="Tools by source",
        sentences=(f"Most tools are used for {most}: {number(sum(means[most].values()), 1)} per trial.",),
        tables=(table("Tools by source", "Source", columns, rows, caption="The submission is not counted."),),
        charts=(
            StudyChart(name="tools", title="Tools by source", chart=stacked_bars(means, label="Tool uses per trial")),
        ),
    )


# Medians of what agents do, in the form of table 19 of the BLF paper (Murphy 2026).


def _tokens_in(trial: TracedTrial) -> float:
    return sum(event.input_tokens for event in trial.trace if isinstance(event, ModelCalled))


def _tokens_out(trial: TracedTrial) -> float:
    return sum(event.output_tokens for event in trial.trace if isinstance(event, ModelCalled))


def _characters(trial: TracedTrial) -> float | None:
    """What the agent wrote per step; None if its replies are not stored."""
    return None if trial.characters is None else trial.characters / max(1, last_step(trial))


def _evidence(trial: TracedTrial) -> float:
    """How much evidence for and against the last belief holds; 0 if none was stated."""
    beliefs = [event.belief for event in trial.trace if isinstance(event, BeliefRevised)]
    last = beliefs[-1] if beliefs else {}
    return sum(len(last.get(side) or ()) for side in ("evidence_for", "evidence_against"))


STATISTICS: Mapping[str, tuple[str, Callable[[TracedTrial], float | None]]] = {
    "steps": ("replies of the agent until its answer", last_step),
    "tok-in": ("input tokens of all calls of a trial", _tokens_in),
    "tok-out": ("output tokens of all calls of a trial", _tokens_out),
    "chars/step": ("characters that the agent wrote per step, reasoning included", _characters),
    "evidence": ("facts for and against in the last belief", _evidence),
}


def medians_section(by_run: Mapping[str, Sequence[TracedTrial]]) -> StudyResult:
    """Report medians over trials of steps, tokens, characters and evidence, by kind of question and run."""
    groups: dict[str, list[TracedTrial]] = {}
    kinds = {trial.asked.kind for trials in by_run.values() for trial in trials if trial.asked is not None}
    for run, trials in by_run.items():
        used = [trial for trial in trials if any(isinstance(event, ToolUsed) for event in trial.trace)]
        for kind in sorted(kinds) if len(kinds) > 1 else [""]:
            own = [trial for trial in used if not kind or (trial.asked is not None and trial.asked.kind == kind)]
            groups |= {f"{run}, {kind}" if kind else run: own} if own else {}
    if not groups:
        raise InputError("no trial took a step", hint="give runs of an agent")
    values = {
        name: {label: _known(trials, measure) for label, (_, measure) in STATISTICS.items()}
        for name, trials in groups.items()
    }
    rows: dict[str, list[CellValue]] = {
        name: [len(groups[name]), *(median(numbers) if numbers else None for numbers in by_label.values())]
        for name, by_label in values.items()
    }
    columns = [count("n", "trials"), *(column(label, tip, 1) for label, (tip, _) in STATISTICS.items())]
    steps = {name: _quartiles(by_label["steps"]) for name, by_label in values.items()}
    first = next(iter(groups))
    return StudyResult(
        name="trajectories",
        title="Medians of agents",
        sentences=(f"The median trial of {first} takes {plural(round(median(values[first]['steps'])), 'step')}.",),
        tables=(table("Medians per trial", "Run", columns, rows, caption="Trials of one question are pooled."),),
        charts=(forest_chart("medians", "Steps per trial: median and quartiles", steps, "steps"),),
    )


def _known(trials: Sequence[TracedTrial], measure: Callable[[TracedTrial], float | None]) -> list[float]:
    return [value for trial in trials if (value := measure(trial)) is not None]


def _quartiles(values: Sequence[float]) -> Interval:
    """Return the median with the quartiles as its ends."""
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return Interval(estimate=middle, low=low, high=high, se=(high - low) / 2, n_clusters=len(values), draws=0)
