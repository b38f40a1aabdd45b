"""The inputs of studies: stored runs and tree files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource, known_at, ranked
from foretell.forecasters.prompt.rendering import BOTH, VIEWS
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, ToolUsed, TraceEvent
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import CellKey, RunStore, find_run_row
from foretell.studies.consistency import StatedForecast
from foretell.studies.reasoning import ReasoningCase
from foretell.studies.trajectories import TracedTrial
from foretell.tools.tool import SUBMIT


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One stored run under the name that tables show."""

    id: str
    name: str
    spec: RunSpec


def find_stored_run(store: RunStore, start: str) -> StoredRun:
    """The run whose id begins with `start`, named by its forecaster and model."""
    row = find_run_row(store, start)
    spec = spec_from_json(row.spec)
    return StoredRun(id=row.id, name=" ".join(filter(None, [spec.forecaster, spec.models.get("agent")])), spec=spec)


def find_stored_runs(store: RunStore, starts: Sequence[str]) -> list[StoredRun]:
    """The runs whose ids begin with `starts`, each once, under distinct names."""
    if not starts:
        raise InputError("no run is named", hint="give RUN; foretell runs lists them")
    runs = [find_stored_run(store, start) for start in starts]
    return with_distinct_names(list({run.id: run for run in runs}.values()))


def with_distinct_names(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs, with the start of their id added to names that would otherwise be the same."""
    names = [run.name for run in runs]
    return [replace(run, name=f"{run.name} ({run.id[:6]})") if names.count(run.name) > 1 else run for run in runs]


TRACE = "context "
"""Prefix of the trace of a forecast on a context; the context's digest follows."""
CellPlace = tuple[str, str, int]
"""Question id, due time and trial."""


def read_statements(store: RunStore, run: str, *, name: str = "") -> list[StatedForecast]:
    """Return what every trial of a run stated before it was made coherent, or its forecast if that was not stored.

    `name` replaces the forecaster's own name, because runs of one forecaster with several models need one each.
    """
    records = _records(store, run)
    return [
        StatedForecast(
            forecaster=name or forecast.forecaster,
            question=question,
            p=records.get(place, {}).get("stated", forecast.stated or forecast.p),
        )
        for place, question, forecast in _forecasts(store, run)
    ]


def read_cases(store: RunStore, run: str, find: Callable[[str], PredictionContext | None]) -> list[ReasoningCase]:
    """Return every forecast of a run that gives reasons, with what it was shown.

    That is its context if one was shown and `find` knows its digest. An agent searches for itself: its case holds the
    question and the results of its last tools, cut short.
    """
    records, events = _records(store, run), _events(store, run)
    cases: list[ReasoningCase] = []
    for place, question, forecast in _forecasts(store, run):
        if forecast.rationale.strip():
            shown = find(forecast.trace.removeprefix(TRACE)) if forecast.trace.startswith(TRACE) else None
            view = VIEWS.get(records.get(place, {}).get("view", ""), BOTH)
            context = shown or _seen_by_agent(question, forecast.as_of, events.get(place, ()))
            cases.append(ReasoningCase(context=context, forecast=forecast, view=view))
    return cases


def _seen_by_agent(question: Question, as_of: AsOf, events: Sequence[TraceEvent]) -> PredictionContext:
    """Return a context of the question and the last ten results of the agent's tools."""
    used = [one for one in events if isinstance(one, ToolUsed) and not one.failed and one.tool != SUBMIT]
    sources: list[RankedSource] = []
    for n, one in enumerate([one for one in used if one.result.strip()][-10:]):
        words = [value for name, value in one.arguments.items() if isinstance(value, str) and name != "updated_belief"]
        title = f"{one.tool}: {'; '.join(words)}"
        sources.append(RankedSource(url=f"urn:step:{n}", title=title, summary=one.result))
    asked = known_at(question, as_of)
    return PredictionContext(question=asked, as_of=as_of, sources=ranked(sources), searcher="the agent")


def traces_of_runs(store: RunStore, starts: Sequence[str]) -> dict[str, list[TracedTrial]]:
    """Return the traces of trials by name of the run, in the order of questions; a panel is not a trial."""
    found: dict[str, list[TracedTrial]] = {}
    for run in find_stored_runs(store, starts):
        events = sorted(_events(store, run.id).items())
        trials = [TracedTrial(question=at[0], trace=trace) for at, trace in events if at[2] < run.spec.trials]
        if not trials:
            raise InputError(f"run {run.name} has no trial yet", hint="start it with foretell run")
        found[run.name] = trials
    return found


def _events(store: RunStore, run: str) -> dict[CellPlace, list[TraceEvent]]:
    found: dict[CellPlace, list[TraceEvent]] = {}
    for _, key, event in store.events(run):
        found.setdefault((key.question, key.due, key.trial), []).append(event)
    return found


def _records(store: RunStore, run: str) -> dict[CellPlace, Mapping[str, Any]]:
    """Return the last record of each cell that says what was stated."""
    return {
        place: event.belief
        for place, events in _events(store, run).items()
        for event in events
        if isinstance(event, BeliefRevised) and "stated" in event.belief
    }


def _forecasts(store: RunStore, run: str) -> Iterator[tuple[CellPlace, Question, Forecast]]:
    for question in store.questions(run):
        due = question.due.isoformat()
        for answer in store.answers_to(CellKey(run=run, question=question.id, due=due, trial=0)):
            if isinstance(answer, Forecast) and answer.forecaster != PANEL:
                yield (question.id, due, answer.trial), question, answer


# Trees from files.


def read_trees(folder: Path) -> list[Tree]:
    """Read every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree(file) for file in files]
