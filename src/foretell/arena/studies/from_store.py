"""What was said and done, out of a store of runs: statements as they were made, cases for a judge, and traces."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from foretell.arena.store import CellKey, Store
from foretell.arena.studies.consistency import Statement
from foretell.arena.studies.habits_report import Traced
from foretell.arena.studies.judge import Case
from foretell.forecasters.combine.panel import PANEL
from foretell.forecasters.context.context import Context, Source, known_at, ranked
from foretell.forecasters.context.rendering import BOTH, VIEWS
from foretell.questions.clock import AsOf
from foretell.questions.event import BeliefRevised, Event, ToolUsed
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.tools.names import SUBMIT

TRACE = "context "
"""How the trace of a forecast on a context begins; its digest follows."""
Place = tuple[str, str, int]


def statements_in(store: Store, run: str, *, name: str = "") -> list[Statement]:
    """What every trial of a run stated, before it was made to fit where that was kept, else its forecast.

    `name` replaces the forecaster's own: runs of one forecaster with several models need one each.
    """
    records = _records(store, run)
    return [
        Statement(
            forecaster=name or forecast.forecaster,
            question=question,
            p=records.get(place, {}).get("stated", forecast.stated or forecast.p),
        )
        for place, question, forecast in _forecasts(store, run)
    ]


def cases_in(store: Store, run: str, contexts: Mapping[str, Context]) -> list[Case]:
    """Every forecast of a run whose context, by digest, is at hand; the others cannot be judged."""
    records = _records(store, run)
    return [
        Case(context=contexts[digest], forecast=forecast, view=VIEWS.get(records.get(place, {}).get("view", ""), BOTH))
        for place, _, forecast in _forecasts(store, run)
        if (digest := forecast.trace.removeprefix(TRACE)) in contexts
    ]


def all_cases(store: Store, run: str, find: Callable[[str], Context | None]) -> list[Case]:
    """Every forecast of a run that gives reasons, with what it was shown.

    That is its context where one was shown and `find` knows its digest. An agent looked for itself: its case holds
    the question and the results of its last tools, cut short.
    """
    records, used = _records(store, run), _tool_uses(store, run)
    cases: list[Case] = []
    for place, question, forecast in _forecasts(store, run):
        shown = find(forecast.trace.removeprefix(TRACE)) if forecast.trace.startswith(TRACE) else None
        view = VIEWS.get(records.get(place, {}).get("view", ""), BOTH)
        if forecast.rationale.strip():
            context = shown or seen_by_agent(question, forecast.as_of, used.get(place, ()))
            cases.append(Case(context=context, forecast=forecast, view=view))
    return cases


def seen_by_agent(question: Question, as_of: AsOf, used: Sequence[ToolUsed]) -> Context:
    """The question with what tools told, the last ten results that came."""
    told = [one for one in used if not one.failed and one.tool != SUBMIT and one.result.strip()]
    sources = [Source(url=f"urn:step:{n}", title=_asked(one), summary=one.result) for n, one in enumerate(told[-10:])]
    return Context(question=known_at(question, as_of), as_of=as_of, sources=ranked(sources), searcher="the agent")


def _asked(used: ToolUsed) -> str:
    words = [value for name, value in used.arguments.items() if isinstance(value, str) and name != "updated_belief"]
    return f"{used.tool}: {'; '.join(words)}"


def traces_in(store: Store, run: str, *, trials: int) -> list[Traced]:
    """What happened in every trial of a run, in the order of questions; a panel after the trials is none."""
    found: dict[Place, list[Event]] = {}
    for _, key, event in store.events(run):
        if key.trial < trials:
            found.setdefault((key.question, key.due, key.trial), []).append(event)
    return [Traced(question=place[0], trace=found[place]) for place in sorted(found)]


def _tool_uses(store: Store, run: str) -> dict[Place, list[ToolUsed]]:
    found: dict[Place, list[ToolUsed]] = {}
    for _, key, event in store.events(run):
        if isinstance(event, ToolUsed):
            found.setdefault((key.question, key.due, key.trial), []).append(event)
    return found


def _records(store: Store, run: str) -> dict[Place, Mapping[str, Any]]:
    """The last record of each cell that says what was stated."""
    return {
        (key.question, key.due, key.trial): event.belief
        for _, key, event in store.events(run)
        if isinstance(event, BeliefRevised) and "stated" in event.belief
    }


def _forecasts(store: Store, run: str) -> Iterator[tuple[Place, Question, Forecast]]:
    for question in store.questions(run):
        due = question.due.isoformat()
        for answer in store.answers_to(CellKey(run=run, question=question.id, due=due, trial=0)):
            if isinstance(answer, Forecast) and answer.forecaster != PANEL:
                yield (question.id, due, answer.trial), question, answer
