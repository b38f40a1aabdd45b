"""The inputs of studies: stored runs, published trials, tree files and tables of costs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from foretell.data.datasets.forecastbench_tables import read_question_tables
from foretell.data.datasets.question_set import QuestionSet, outcome_key
from foretell.data.files import open_duckdb
from foretell.forecasters.base_rates.rates import PAPER_RATES, FixedRates, Rates
from foretell.forecasters.combine.aggregate import PANEL
from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource, known_at, ranked
from foretell.forecasters.prompt.rendering import BOTH, VIEWS
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.tree_file import read_tree
from foretell.metrics.arrays import Floats
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.questions.trace import BeliefRevised, ToolUsed, TraceEvent
from foretell.runs.outcomes import past_of
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import CellKey, RunStore, find_run_row
from foretell.scoring.table_input import ColumnArrays, ColumnRule, TableSource, check_rules, open_table, text_rules
from foretell.studies.consistency import StatedForecast
from foretell.studies.habits import TracedTrial
from foretell.studies.reasoning import ReasoningCase
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
        raise InputError("no run is named", hint="give --run RUN; foretell runs lists them")
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


# Published trials of real configurations as examples: `questions`, `resolutions` and `trials` tables of one folder.


COLUMNS = ("config", "forecast_due_date", "source", "question_id", "resolution_date", "trial", "probability")
ResolvedTarget = tuple[Question, Target, Resolution]


@dataclass(frozen=True, kw_only=True)
class TrialAssumptions:
    """What counts as known when a question is asked, and which outcomes are used."""

    price: Literal["due", "freeze"] = "due"
    """Crowd price to use: on the due date, or when the question was written about ten days before."""
    prior: Literal["past", "paper"] = "past"
    """Base rates to use: counted from what had resolved before the due date, or the paper's rounded ones.

    The latter also saw later outcomes.
    """
    outcome: Literal["outcome", "paper_outcome"] = "outcome"
    """Outcomes to use: as published now, or as they stood when the paper was written."""


OUT_OF_SAMPLE = TrialAssumptions()
AS_PUBLISHED = TrialAssumptions(price="freeze", prior="paper", outcome="paper_outcome")


def read_trial_tables(
    folder: str | Path, prefix: str = "ab_", known: TrialAssumptions = OUT_OF_SAMPLE
) -> dict[str, Examples]:
    """Read every configuration of `<prefix>trials`, all over the same resolved targets, by name.

    A trial that is missing from the table has failed and is NaN, and so is a target that a configuration left out.
    """
    root = Path(folder)
    asked = read_question_tables(root, prefix, outcomes=known.outcome, price=known.price)
    outcomes = {outcome_key(one): one for one in asked.resolutions if one.outcome is not None and one.resolved_at}
    keyed = ((q, t, outcomes.get((q.id, q.due, t.id))) for q in asked.questions for t in q.targets)
    resolved = [(q, t, r) for q, t, r in keyed if r is not None]
    if not resolved:
        raise InputError(f"no question of {prefix}questions has resolved", path=root)
    targets = _target_rows(resolved, _rates(root, prefix, asked, known))
    outcome = np.array([r.outcome for _, _, r in resolved], np.float64)
    known_on = np.array([r.resolved_at.date() for _, _, r in resolved if r.resolved_at], "M8[D]")
    return {
        config: Examples(
            rows=targets.with_trials(trials), outcome=outcome, known_on=known_on, weight=np.ones(len(outcome))
        )
        for config, trials in _trials(root, prefix, resolved).items()
    }


def _rates(root: Path, prefix: str, asked: QuestionSet, known: TrialAssumptions) -> Rates | None:
    """Return base rates from every round of the folder, if it has more than the rounds asked about."""
    if known.prior == "paper":
        return FixedRates(table=PAPER_RATES)
    if prefix and any((root / f"questions{ending}").is_file() for ending in (".parquet", ".csv")):
        asked = read_question_tables(root)
    return past_of(asked.questions, asked.resolutions).rates


def _target_rows(resolved: Sequence[ResolvedTarget], rates: Rates | None) -> TrialRows:
    def numbers(values: list[float | None]) -> Floats:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    questions = [q for q, _, _ in resolved]
    texts = {name: np.array([getattr(q, name) for q in questions], str) for name in ("source", "subtype", "kind")}
    return TrialRows(
        trials=np.full((1, len(resolved)), np.nan),
        question=np.array([q.id for q in questions], str),
        due=np.array([q.due.date() for q in questions], "M8[D]"),
        target=np.array([t.id for _, t, _ in resolved], str),
        horizon=numbers([q.horizon_days(t) for q, t, _ in resolved]),
        price=numbers([t.snapshot.price if t.snapshot else None for _, t, _ in resolved]),
        prior=numbers([rates.rate(q, t, q.as_of) if rates else None for q, t, _ in resolved]),
        cluster=np.array([q.cluster for q in questions], str),
        liquidity=numbers([t.snapshot.volume if t.snapshot else None for _, t, _ in resolved]),
        price_age=numbers([float((q.due - t.snapshot.at).days) if t.snapshot else None for q, t, _ in resolved]),
        **texts,
    )


def _trials(root: Path, prefix: str, resolved: Sequence[ResolvedTarget]) -> dict[str, Floats]:
    """Return trials × targets by configuration; trials of targets that have not resolved are left out."""
    rows = _read_trials(root, prefix)
    # Market forecasts carry no resolution date.
    places = {
        f"{q.id}@{q.due.date().isoformat()}@{'' if q.kind == 'market' else t.id}": i
        for i, (q, t, _) in enumerate(resolved)
    }
    distinct, key = np.unique(rows["key"].astype(str), return_inverse=True)
    place = np.array([places.get(one, -1) for one in distinct.tolist()], np.int64)[key]
    if not (place >= 0).any():
        raise InputError(f"no trial of {prefix}trials belongs to a resolved target", path=root)
    names, config = np.unique(rows["config"].astype(str), return_inverse=True)
    numbers, trial = np.unique(rows["trial"], return_inverse=True)
    found: dict[str, Floats] = {}
    for i, name in enumerate(names.tolist()):
        mine = (place >= 0) & (config == i)
        matrix = np.full((len(numbers), len(resolved)), np.nan)
        matrix[trial[mine], place[mine]] = rows["p"][mine]
        found[name] = matrix[~np.isnan(matrix).all(axis=1)] if mine.any() else matrix[:1]
    return found


def _read_trials(root: Path, prefix: str) -> ColumnArrays:
    """Read configuration, trial, probability, and a key that names the asking and its resolution date, if any."""
    paths = [root / f"{prefix}trials{ending}" for ending in (".parquet", ".csv")]
    path = next((path for path in paths if path.is_file()), paths[0])
    with open_duckdb() as con, open_table(path, "trials", con) as table:
        table.require(*COLUMNS)
        day = f"left(coalesce({table.text('resolution_date')}, ''), 10)"
        due = f"left({table.text('forecast_due_date')}, 10)"
        found = table.fetch(
            f"""select {table.text("config")} as config, {table.number("trial")}::int as trial,
            {table.number("probability")} as p,
            {table.text("source")} || '/' || {table.text("question_id")} || '@' || {due} || '@' || {day} as key
            from {table.table} where {table.number("probability")} is not null"""
        )
    return {name: np.ma.getdata(column) for name, column in found.items()}


# Trees from files, and costs from tables.


@dataclass(frozen=True, kw_only=True)
class ForecastCost:
    """The cost of one forecast."""

    dollars: float
    seconds: float = float("nan")


def read_trees(folder: Path) -> list[Tree]:
    """Read every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree(file) for file in files]


def read_cost_table(source: TableSource) -> dict[str, ForecastCost]:
    """Read dollars and, if the column exists, seconds per forecast, by forecaster.

    >>> read_cost_table([{"forecaster": "a", "dollars": 0.2}])["a"].dollars
    0.2
    """
    with open_duckdb() as con, open_table(source, "costs", con) as table:
        table.require("forecaster", "dollars")
        rules = list(text_rules(table, "forecaster"))
        for column, what in (("dollars", "an amount of money"), ("seconds", "a time")):
            if column in table.types:
                number = table.number(column)
                bad = f"{number} is null or not isfinite({number}) or {number} < 0"
                hint = f"{column} per forecast, 0 or more"
                rules.append(ColumnRule(column=column, bad=bad, problem=f"{{value}} is not {what}", hint=hint))
        check_rules(table, rules)
        seconds = table.number("seconds") if "seconds" in table.types else "'nan'::double"
        query = f"select {table.text('forecaster')}, {table.number('dollars')}, {seconds} from {table.table}"
        rows = con.execute(query).fetchall()
    return {name: ForecastCost(dollars=dollars, seconds=time) for name, dollars, time in rows}
