"""The inputs of studies: stored runs and tree files."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.prompt.prediction_context import LONGEST_TITLE, PredictionContext, known_at, one_line
from foretell.forecasters.prompt.rendering import BOTH, VIEWS, ContextView
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree_file, tree_from_dict
from foretell.frozen import frozen
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, ModelCalled, QuestionShown, ToolUsed, TraceEvent, TreeGrown
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore, TrialKey, find_run_row
from foretell.scoring.long_tables import day_text
from foretell.scoring.run_scores import questions_of_runs
from foretell.studies.cases import FoundResult, ReasoningCase, StatedForecast, TracedTrial, TreeFacts
from foretell.tools.marks import source_parts, unmarked
from foretell.tools.tool import SUBMIT


@frozen
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
TrialPlace = tuple[str, str, int]
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
        for place, question, forecast in forecasts_of_run(store, run)
    ]


FindContext = Callable[[str], PredictionContext | None]
"""Digest → the context; None if it is not stored."""


def read_cases(store: RunStore, run: str, find: FindContext, view: ContextView = BOTH) -> list[ReasoningCase]:
    """Return every forecast of a run that gives reasons, with what it was shown.

    That is its context if one was shown and `find` knows its digest, in the view that the forecaster recorded, or in
    `view`. An agent searches itself: its case contains its first prompt and the results of its tools, as it read them.
    """
    contexts, events = shown_contexts(store, run, find, view), _events(store, run)
    cases: list[ReasoningCase] = []
    for place, question, forecast in forecasts_of_run(store, run):
        if forecast.rationale.strip():
            alone = PredictionContext(question=known_at(question, forecast.as_of), as_of=forecast.as_of)
            context, shown = contexts.get(place, (alone, view))
            happened = events.get(place, ())
            prompt = next((event.text for event in happened if isinstance(event, QuestionShown)), "")
            found = _found_by_agent(happened, forecast.rationale)
            cases.append(ReasoningCase(context=context, forecast=forecast, view=shown, prompt=prompt, found=found))
    return cases


def shown_contexts(
    store: RunStore, run: str, find: FindContext, view: ContextView = BOTH
) -> dict[TrialPlace, tuple[PredictionContext, ContextView]]:
    """Return the contexts that the trials of a run were shown, with the view as recorded, or `view`."""
    records = _records(store, run)
    shown: dict[TrialPlace, tuple[PredictionContext, ContextView]] = {}
    for place, _, forecast in forecasts_of_run(store, run):
        context = find(forecast.trace.removeprefix(TRACE)) if forecast.trace.startswith(TRACE) else None
        if context is not None:
            shown[place] = context, VIEWS.get(records.get(place, {}).get("view", ""), view)
    return shown


LONGEST_FOUND = 120_000
"""Characters of results up to which all are shown; of more results, sources that are never cited are only named."""


def _found_by_agent(events: Sequence[TraceEvent], rationale: str) -> tuple[FoundResult, ...]:
    """Return the results of the agent's tools; every source that it cites is there as the agent read it."""
    used = [event for event in events if isinstance(event, ToolUsed) and not event.failed and event.tool != SUBMIT]
    used = [use for use in used if use.result.strip()]
    stated = "\n".join(
        (rationale, *(json.dumps(said, ensure_ascii=False, default=str) for said in _statements(events)))
    )
    whole = sum(len(use.result) for use in used) <= LONGEST_FOUND
    found: list[FoundResult] = []
    for use in used:
        words = [value for name, value in use.arguments.items() if isinstance(value, str) and name != "updated_belief"]
        text = unmarked(use.result)
        if not whole:
            heading, *parts = source_parts(text, use.sources)
            cut = [
                part if _cites(stated, source) else part.partition("\n")[0]
                for source, part in zip(use.sources, parts, strict=False)
            ]
            text = "\n\n".join([heading, *cut])
        call = one_line(f"{use.tool}: {'; '.join(words)}", LONGEST_TITLE)
        found.append(FoundResult(call=call, text=text))
    return tuple(found)


def _statements(events: Sequence[TraceEvent]) -> Iterator[Mapping[str, Any]]:
    """Yield what may cite sources: the agent's beliefs, and trees with the reports of their leaves."""
    for event in events:
        if isinstance(event, BeliefRevised):
            yield event.belief
        elif isinstance(event, TreeGrown):
            yield event.document


def _cites(text: str, source: str) -> bool:
    """Whether a text names the id of a source.

    >>> _cites("see page_12", "page_1"), _cites('{"source_id": "page_1"}', "page_1")
    (False, True)
    """
    return re.search(rf"(?<!\w){re.escape(source)}(?!\w)", text) is not None


CountCharacters = Callable[[str], int | None]
"""Journal key of a reply → how many characters the model wrote in it; None if the reply is not stored."""


def traces_of_runs(
    store: RunStore, starts: Sequence[str], characters: CountCharacters = lambda key: None
) -> dict[str, list[TracedTrial]]:
    """Return the traces of trials by name of the run, in the order of questions; a panel is not a trial."""
    traces: dict[str, list[TracedTrial]] = {}
    for run in find_stored_runs(store, starts):
        events = sorted(_events(store, run.id).items())
        asked = {(question.id, question.due.isoformat()): question for question in store.questions(run.id)}
        outcomes = outcomes_of_run(store, run.id)
        trials = [
            TracedTrial(
                question=at[0],
                trace=trace,
                asked=(question := asked.get(at[:2])),
                outcomes={} if question is None else outcomes.get((question.id, day_text(question.due)), {}),
                characters=_characters(trace, characters),
            )
            for at, trace in events
            if at[2] < run.spec.trials
        ]
        if not trials:
            raise InputError(f"run {run.name} has no trial yet", hint="start it with foretell run")
        traces[run.name] = trials
    return traces


def outcomes_of_run(store: RunStore, run: str) -> dict[tuple[str, str], dict[str, float]]:
    """Return the known outcomes of the targets of each question, by its id and the day it was asked."""
    try:
        _, rows = questions_of_runs(store, [run])
    except InputError:
        return {}  # The file of questions is gone, and no outcome was stored with the run.
    outcomes: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["outcome"] is not None:
            outcomes.setdefault((row["question"], row["due"]), {})[row["target"]] = float(row["outcome"])
    return outcomes


def _characters(trace: Sequence[TraceEvent], characters: CountCharacters) -> int | None:
    counts = [characters(event.key) for event in trace if isinstance(event, ModelCalled) and event.role == "agent"]
    return None if None in counts or not counts else sum(count for count in counts if count is not None)


def _events(store: RunStore, run: str) -> dict[TrialPlace, list[TraceEvent]]:
    events: dict[TrialPlace, list[TraceEvent]] = {}
    for _, key, event in store.events(run):
        events.setdefault((key.question, key.due, key.trial), []).append(event)
    return events


def _records(store: RunStore, run: str) -> dict[TrialPlace, Mapping[str, Any]]:
    """Return the last record of each trial that contains what was stated."""
    return {
        place: event.belief
        for place, events in _events(store, run).items()
        for event in events
        if isinstance(event, BeliefRevised) and "stated" in event.belief
    }


def forecasts_of_run(store: RunStore, run: str) -> Iterator[tuple[TrialPlace, Question, Forecast]]:
    """Yield the forecasts of all trials of a run, without the combined ones."""
    for question in store.questions(run):
        due = question.due.isoformat()
        for answer in store.answers_to(TrialKey(run=run, question=question.id, due=due, trial=0)):
            if isinstance(answer, Forecast) and answer.forecaster != PANEL:
                yield (question.id, due, answer.trial), question, answer


# Trees of runs and from files.


def trees_of_run(store: RunStore, run: StoredRun) -> tuple[list[Tree], list[TreeFacts]]:
    """Return the trees that a run grew, in the order of questions, with the questions behind them."""
    asked = {(question.id, question.due.isoformat()): question for question in store.questions(run.id)}
    outcomes = outcomes_of_run(store, run.id)
    trees: list[Tree] = []
    facts: list[TreeFacts] = []
    for place, events in sorted(_events(store, run.id).items()):
        question = asked.get(place[:2])
        for event in events:
            if isinstance(event, TreeGrown) and question is not None:
                known = outcomes.get((question.id, day_text(question.due)), {})
                trees.append(evaluated(tree_from_dict(dict(event.document)).tree))
                facts.append(TreeFacts(question=question, target=event.tree, outcomes=known))
    if not trees:
        raise InputError(f"run {run.name} grew no tree", hint="give a run of the forecaster tree or reason")
    return trees, facts


def read_trees(folder: Path) -> list[Tree]:
    """Read every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree_file(file).tree for file in files]
