"""The runs on this machine: list them with cost, state and score; edit, stop, resolve and delete them."""

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from rich.console import Console

from foretell.data.http import SourceError
from foretell.data.untrusted import UNSAFE
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.models.prices import FREE_OF_CHARGE, PriceList, read_price
from foretell.operations.requests.runs import (
    RunsDeleteRequest,
    RunsEditRequest,
    RunsRequest,
    RunsResolveRequest,
    RunsStopRequest,
)
from foretell.operations.result import Result
from foretell.operations.table import operation
from foretell.questions.errors import InputError, known_names
from foretell.questions.forecast import Cost, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.report.numbers import bracket, plural
from foretell.report.terminal import TextColumn, show_text, text_table
from foretell.runs.executor import failure_kind
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.runner import asks_models
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import TYPED_PREFIX, RunSpec, RunState
from foretell.runs.store import CellKey, RunRow, RunStore, cells_each, find_run, find_run_row
from foretell.scoring.long_tables import StoredScores


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """One run in the list."""

    row: RunRow
    questions: int
    state: RunState
    money: Money
    score: Mapping[str, Any]
    """The result of `RunScores.summary`."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.row.id

    def to_dict(self) -> dict[str, Any]:
        """A run in short, with its score."""
        return run_to_dict(self.row, self.money) | {
            "name": self.row.name,
            "note": self.row.note,
            "tags": list(self.row.tags),
            "archived": self.row.archived,
            "state": self.state,
            "problem": self.row.problem,
            "asked": self.questions,
            "cells": self.questions * cells_each(self.row.spec),
            "score": dict(self.score),
        }


def money_of(store: RunStore, settings: Settings, runs: Sequence[str]) -> dict[str, Money]:
    """The cost of runs: what they were billed according to the ledger, and what they reused."""
    found: dict[str, Money] = {}
    if runs and (settings.database or Path(settings.journal).is_file()):
        with closing(Journal(settings.journal)) as journal:
            found = journal.ledger.money_of(runs)
    return {run: money_of_run(store, run, found.get(run)) for run in runs}


def money_of_run(store: RunStore, run: str, ledger: Money | None) -> Money:
    """The cost of a run. A run without an account, whose journal is elsewhere, is known by its stored calls alone."""
    reused = store.reused(run)
    if ledger is not None:
        return replace(ledger, reused=reused)
    return Money(billed=round(store.worth(run) - reused, 9), reused=reused)


def run_to_dict(row: RunRow, money: Money) -> dict[str, Any]:
    """A run in short."""
    return {
        "run": row.id,
        "created": row.created,
        "questions": row.spec["questions"]["dataset"],
        "forecaster": row.spec["forecaster"],
        "model": row.spec["models"].get("agent", ""),
        "efforts": row.spec.get("efforts", {}),
        "mode": row.spec["mode"],
        "quarantined": row.spec["questions"].get("quarantined", 0),
        "trials": row.spec["trials"],
        "forecasts": row.done,
        "failed": row.failed,
        "degraded": row.degraded,
        **money.to_dict(),
    }


# The list.

MOST_STEPS = 5
"""How many runs the list gives a next step for."""
NO_RUNS = "no runs yet; try: foretell ask, or foretell run SPEC.yaml"


@dataclass(frozen=True, kw_only=True)
class RunsResult(Result):
    """Runs on this machine."""

    stored: tuple[ListedRun, ...]
    total: int
    """How many match."""
    archived: int
    """How many are left out because they are archived."""
    every: int
    """How many there are in all."""

    def rows(self) -> list[dict[str, Any]]:
        """One row per run."""
        return [run.to_dict() for run in self.stored]

    def to_dict(self) -> dict[str, Any]:
        """The rows, and the total."""
        return {"runs": self.rows(), "total": self.total, "archived": self.archived}

    def print(self, console: Console) -> None:
        """A table."""
        if not self.stored:
            show_text(console, f"{'no run fits' if self.every else NO_RUNS}\n")
        else:
            columns = [TextColumn(head="run", shrink=12), TextColumn(head="made on", drop=1), TextColumn(head="state")]
            columns += [TextColumn(head=name, right=True) for name in ("Brier index", "$ billed")]
            cells = [
                (r.row.name or r.row.id, r.row.created[:10], _state_text(r), _score_text(r), f"{r.money.billed:.2f}")
                for r in self.stored
            ]
            head, *lines = text_table(columns, cells, console.width).splitlines()
            # The second line shows what the run asks, and its whole name if that was cut.
            told = [
                f"{line}\n  {'' if name in line else f'{name}, '}{_what(run)}"
                for line, run, (name, *_) in zip(lines, self.stored, cells, strict=True)
            ]
            show_text(console, "\n".join([head, *told]) + "\n")
            for line in list(filter(None, map(_next_step, self.stored)))[:MOST_STEPS]:
                show_text(console, f"{line}\n")
        if self.archived:
            show_text(console, f"{self.archived} archived: foretell runs --find archived:yes lists them\n")


def _what(run: ListedRun) -> str:
    body = run.to_dict()
    dataset = Path(body["questions"]).name if not body["questions"].startswith(TYPED_PREFIX) else "one question"
    extra = [f"{body[name]} {name}" for name in ("degraded", "quarantined") if body[name]]
    extra += [f"${body[name]:.2f} {name}" for name in ("reused", "unknown", "reserved") if body[name]]
    extra += [f"#{tag}" for tag in run.row.tags]
    text = f"{dataset}: {body['forecaster']} {body['model']}".rstrip()
    return f"{text} ({', '.join(extra)})" if extra else text


def _score_text(run: ListedRun) -> str:
    found = run.score.get("brier_index")
    if found is None:
        return f"{run.score['decided']} decided" if run.score.get("decided") else "–"
    return f"{found['estimate']:.1f} {bracket(found['low'], found['high'], 1)}"


def _state_text(run: ListedRun) -> str:
    row, cells = run.row, run.questions * cells_each(run.row.spec)
    match run.state:
        case "partial":
            return f"partial, {row.failed} of {cells} failed"
        case "done":
            return "done"
        case state:
            return f"{state} {row.done + row.failed}/{cells}"


def _next_step(run: ListedRun) -> str:
    """Why a run is not finished and what to do about it; empty if it is."""
    name = run.row.name or run.row.id
    again = f"foretell run {shlex.quote(name)}"
    match run.state:
        case "error":
            return f"{name} ended with an error: {run.row.problem}; {again} --set KEY=VALUE changes it and continues"
        case "crashed":
            return f"{name}: its process ended unexpectedly; {again} continues"
        case "stopped":
            return f"{name} was stopped; {again} continues"
        case "waiting":
            return f"{name} waits for a worker: foretell worker"
        case "partial":
            return f"{name}: {again} retries what failed"
        case _:
            return ""


@operation(RunsRequest)
def list_runs(request: RunsRequest, settings: Settings | None = None) -> RunsResult:
    """List the runs on this machine."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:

        def spent(runs: Sequence[str]) -> dict[str, float]:
            return {run: money.billed for run, money in money_of(store, settings, runs).items()}

        found, archived = chosen_runs(store, request, spent)
        shown = found[: request.limit]
        rows, asked = [row for row, _ in shown], store.asked()
        money, scores = money_of(store, settings, [row.id for row in rows]), StoredScores(store).of(rows)
        every = len(store.runs())
    listed = tuple(
        ListedRun(row=row, questions=asked.get(row.id, 0), state=state, money=money[row.id], score=scores[row.id])
        for row, state in shown
    )
    return RunsResult(stored=listed, total=len(found), archived=archived, every=every)


def chosen_runs(
    store: RunStore, request: RunsRequest, spent: Callable[[Sequence[str]], Mapping[str, float]]
) -> tuple[Sequence[tuple[RunRow, RunState]], int]:
    """The matching runs with their states, and how many more are archived.

    Args:
        store: The store of runs.
        request: Which runs, and in which order.
        spent: Returns the dollars that runs have cost.
    """
    query, asked = read_query(request.find), store.asked()
    fitting = [row for row in store.runs() if query.fits(row)]
    shown = [row for row in fitting if query.archived in ("any", "yes" if row.archived else "no")]
    states: list[tuple[RunRow, RunState]] = [(row, store.state(row, asked.get(row.id, 0))) for row in shown]
    found = [one for one in states if query.state in ("", one[1])]
    match request.sort:
        case "date":
            pass  # They come newest first.
        case "name":
            found.sort(key=lambda one: (not one[0].name, one[0].name.casefold()))
        case "cost":
            dollars = spent([row.id for row, _ in found])
            found.sort(key=lambda one: -dollars[one[0].id])
        case "score":
            scores = StoredScores(store).of([row for row, _ in found])
            found.sort(key=lambda one: -(scores[one[0].id].get("brier_index") or {"estimate": -math.inf})["estimate"])
    return found, sum(row.archived for row in fitting) if query.archived == "no" else 0


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs to list: what the text of `find` says."""

    text: str = ""
    """Part of the name, note, tags, models or questions."""
    tags: tuple[str, ...] = ()
    state: RunState | Literal[""] = ""
    model: str = ""
    """A model or, for runs without one, the forecaster."""
    questions: str = ""
    """Name of a question set."""
    archived: Literal["no", "yes", "any"] = "no"

    def fits(self, row: RunRow) -> bool:
        """Whether a run has all tags, the model and the question set, and contains the text."""
        if self.model not in ("", *method_names(row.spec)) or self.questions not in ("", question_set(row.spec)):
            return False
        models = " ".join(map(str, row.spec.get("models", {}).values()))
        searched = f"{row.id} {row.name} {row.note} {' '.join(row.tags)} {models} {row.spec.get('forecaster', '')}"
        searched += f" {row.spec.get('questions', {}).get('dataset', '')}"
        return set(self.tags) <= set(row.tags) and self.text.casefold() in searched.casefold()


def read_query(text: str) -> RunQuery:
    """Read what a user wants to find among runs. Raises InputError if a state does not exist.

    >>> read_query("tag:cheap state:done model:openai:x autumn trial")
    RunQuery(text='autumn trial', tags=('cheap',), state='done', model='openai:x', questions='', archived='no')
    >>> read_query("set:'my questions.csv'").questions
    'my questions.csv'
    """
    try:
        words = shlex.split(text)
    except ValueError:  # A single quotation mark is part of a word.
        words = text.split()
    pairs = [(key, value) for key, _, value in (word.partition(":") for word in words) if key in QUERY_KEYS and value]
    rest = [word for word in words if not (word.partition(":")[0] in QUERY_KEYS and word.partition(":")[2])]
    said = dict(pairs)
    for key, known in (("state", get_args(RunState)), ("archived", ("no", "yes", "any"))):
        if key in said and said[key] not in known:
            problem = f"there is no {key}:{said[key]}"
            raise InputError(problem, column="--find", hint=known_names(said[key], known))
    return RunQuery(
        text=" ".join(rest),
        tags=tuple(value for key, value in pairs if key == "tag"),
        state=cast("RunState", said.get("state", "")),
        model=said.get("model", ""),
        questions=said.get("set", ""),
        archived=cast('Literal["no", "yes", "any"]', said.get("archived", "no")),
    )


QUERY_KEYS = ("tag", "state", "model", "set", "archived")


def method_names(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The models of a run, or its forecaster if it has none."""
    return tuple(map(str, (spec.get("models") or {}).values())) or (str(spec.get("forecaster", "")),)


def question_set(spec: Mapping[str, Any]) -> str:
    """The name of a run's question set, without the folder of a file; empty for a typed question."""
    name = str(spec.get("questions", {}).get("dataset", ""))
    if name.startswith(TYPED_PREFIX):
        return ""
    return Path(name).name if Path(name).is_absolute() else name


# Names, notes and tags.


@dataclass(frozen=True, kw_only=True)
class RunLabels(Result):
    """Name, note and tags of a run."""

    run: str
    name: str
    note: str
    tags: tuple[str, ...]
    archived: bool

    def __str__(self) -> str:
        parts = [f"run {self.run}"]
        parts += [f"called {self.name}"] if self.name else []
        parts += [f"tags: {', '.join(self.tags)}"] if self.tags else []
        parts += [f"note: {self.note}"] if self.note else []
        return " · ".join([*parts, *(["archived"] if self.archived else [])])


def _refuse_unsafe(*words: str) -> None:
    """Refuse text that could control a terminal or hide what it says."""
    for word in words:
        if UNSAFE.search(word):
            raise InputError("it contains characters that cannot be displayed", hint="use letters, digits and signs")


def _labels(store: RunStore, run: str) -> RunLabels:
    row = store.run(run)
    assert row is not None
    return RunLabels(run=row.id, name=row.name, note=row.note, tags=row.tags, archived=row.archived)


@operation(RunsEditRequest)
def edit_run(request: RunsEditRequest, settings: Settings | None = None) -> RunLabels:
    """Change the name, tags or note of a run, or archive it."""
    settings = settings or load_settings()
    _refuse_unsafe(request.name or "", *request.tags, request.note or "")
    given = {"name": request.name, "note": request.note, "archived": request.archive}
    with closing(RunStore(settings.store)) as store:
        run = find_run(store, request.run)
        for row in store.runs() if request.name else ():
            if row.id != run and (row.name == request.name or row.id.startswith(request.name or "")):
                hint = "choose another name: commands find a run by its name or by how its id begins"
                raise InputError(f"run {row.id} answers to {request.name!r}", column="name", hint=hint)
        tags = dict.fromkeys(tag for tag in (*_labels(store, run).tags, *request.tags) if tag not in request.untag)
        store.label(run, tags=list(tags), **{name: value for name, value in given.items() if value is not None})
        return _labels(store, run)


@dataclass(frozen=True, kw_only=True)
class DeletedRuns(Result):
    """Runs that were deleted, or would be."""

    lines = "runs"
    runs: tuple[Mapping[str, Any], ...]
    deleted: bool

    def __str__(self) -> str:
        lines = [
            f"{'deleted' if self.deleted else 'would delete'} run {run['name'] or run['run']}: "
            f"{run['answers']} answers, ${run['billed']:.2f} billed"
            for run in self.runs
        ]
        last = "the journal keeps every reply" if self.deleted else "nothing was deleted; --yes deletes them"
        return "\n".join([*lines, last])


@operation(RunsDeleteRequest)
def delete_runs(request: RunsDeleteRequest, settings: Settings | None = None) -> DeletedRuns:
    """Delete runs with everything stored about them."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        asked, found = store.asked(), list[Mapping[str, Any]]()
        for start in request.runs:
            row = find_run_row(store, start)
            if store.state(row, asked.get(row.id, 0)) == "running":
                raise InputError(f"run {row.name or row.id} is running", hint="stop it first")
            answers, money = row.done + row.failed, money_of(store, settings, [row.id])[row.id]
            found.append({"run": row.id, "name": row.name, "answers": answers, **money.to_dict()})
        if request.yes:
            for run in found:
                store.remove(run["run"])
    return DeletedRuns(runs=tuple(found), deleted=request.yes)


# What failed.

_FAILED_SQL = (
    "select question, due, trial, failure from cell where run = ? and failure is not null order by question, due, trial"
)


def failures_by_reason(store: RunStore, run: str) -> dict[str, list[CellKey]]:
    """The failed cells of a run by reason, the most frequent first; reasons that differ in numbers only are one."""
    reasons: dict[str, str] = {}
    groups: dict[str, list[CellKey]] = {}
    for question, due, trial, failure in store.database.read(_FAILED_SQL, (run,)):
        told = str(json.loads(failure).get("error", ""))
        reason = reasons.setdefault(failure_kind(told, question), told)
        groups.setdefault(reason, []).append(CellKey(run=run, question=question, due=due, trial=trial))
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


# Stopping one that is running.


@dataclass(frozen=True, kw_only=True)
class StoppedRun(Result):
    """A run that was asked to stop."""

    run: str
    discard: bool
    under_way: int
    """Trials that were under way."""
    answered: int
    cells: int
    unqueued: int = 0
    """Trials taken out of the queue of the shared database."""

    def __str__(self) -> str:
        end = "left unfinished" if self.discard else "asked to answer with the current estimate"
        under_way = f"{plural(self.under_way, 'trial')} under way {'is' if self.under_way == 1 else 'are'} {end}"
        queue = f", {plural(self.unqueued, 'trial')} taken out of the queue" if self.unqueued else ""
        answers = f"{self.answered} of {self.cells} answers are there"
        return f"run {self.run} stops within seconds: {answers}, {under_way}{queue}"


@operation(RunsStopRequest)
def stop_run(request: RunsStopRequest, settings: Settings | None = None) -> StoppedRun:
    """Stop a run early, whichever process is running it, and use what there is."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.run)
        run, questions = row.id, store.asked().get(row.id, 0)
        state = store.state(row, questions)
        unqueues = request.discard and settings.database is not None
        if state not in ("running", "waiting") and not unqueues:
            raise InputError(f"run {row.name or run} is not running: its state is {state}")
        store.ask_to_stop(run, "pause" if request.discard else "answer")
        if state == "waiting" or unqueues:
            store.queue(run, queued=False)
        claimed = store.database.read("select count(*) from tick where name = ? and done = 0", (f"cell {run}",))
    unqueued = 0
    if unqueues:
        from foretell.operations.shared_runs import unqueue_run  # Needs the driver of PostgreSQL.

        unqueued = unqueue_run(settings, run)
    return StoppedRun(
        run=row.name or run,
        discard=request.discard,
        under_way=claimed[0][0],
        answered=row.done,
        cells=questions * cells_each(row.spec),
        unqueued=unqueued,
    )


# Outcomes.


@dataclass(frozen=True, kw_only=True)
class ResolveResult(Result):
    """What is known about the outcomes of a run's questions."""

    run: str
    decided: int
    """How many questions have at least one outcome."""
    questions: int
    new: int
    """How many outcomes are new."""
    score: Mapping[str, Any]
    problems: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Outcomes that could not be looked up."""
        return self.problems

    def __str__(self) -> str:
        text = f"run {self.run}: {self.decided} of {self.questions} questions decided, {self.new} outcomes new"
        found = self.score.get("brier_index")
        if found is None:
            return text
        others = [
            f"{name} {self.score[key]['estimate']:.1f}"
            for key, name in (("price", "market"), ("base_rate", "base rate"))
            if self.score.get(key)
        ]
        beside = f" ({', '.join(others)})" if others else ""
        return f"{text}\nBrier index {found['estimate']:.1f} {bracket(found['low'], found['high'], 1)}{beside}"


async def resolve_stored_run(request: RunsResolveRequest, settings: Settings | None = None) -> ResolveResult:
    """Look up the outcomes of a run in its question set, on markets, or in a table."""
    settings = settings or load_settings()
    problems: list[str] = []
    with closing(RunStore(settings.store)) as store:
        run = find_run(store, request.run)
        questions = store.questions(run)
        found = [
            *_table_outcomes(request.outcomes, questions),
            *_set_outcomes(store, run, problems),
            *await _market_outcomes(questions, settings, problems),
        ]
        new = RunOutcomes(store).keep(run, questions, {(r.question_id, r.due, r.target_id): r for r in found}.values())
        row = store.run(run)
        assert row is not None
        score = StoredScores(store).of([row])[run]
    return ResolveResult(
        run=row.name or run,
        decided=score["decided"],
        questions=len(questions),
        new=new,
        score=score,
        problems=tuple(problems),
    )


resolve_run = operation(RunsResolveRequest)(resolve_stored_run)


def _table_outcomes(path: Path | None, questions: Sequence[Question]) -> list[Resolution]:
    """The outcomes in a table, some of which must belong to the run."""
    if path is None:
        return []
    from foretell.data.datasets.question_files import read_outcomes

    found = read_outcomes(path)
    asked = {(question.id, target.id) for question in questions for target in question.targets}
    if found and not any((one.question_id, one.target_id) in asked for one in found):
        hint = "the columns question and target hold the ids that foretell show RUN --json prints"
        raise InputError("no row is about a question of this run", path=path, column="question", hint=hint)
    return list(found)


def _set_outcomes(store: RunStore, run: str, problems: list[str]) -> Sequence[Resolution]:
    from foretell.runs.question_sets import questions_of_run

    try:
        return questions_of_run(store, run).resolutions
    except InputError as error:
        problems.append(str(error))
        return ()


async def _market_outcomes(questions: Sequence[Question], settings: Settings, problems: list[str]) -> list[Resolution]:
    """The outcomes that markets have published."""
    from foretell.data.http import AsyncHttpClient
    from foretell.data.markets.market import market_ref
    from foretell.runs.services import open_markets

    now = datetime.now(UTC)
    over = [
        question
        for question in questions
        if question.closes_at is None
        or question.closes_at <= now
        or any(target.resolves_at is not None and target.resolves_at <= now for target in question.targets)
    ]
    platforms = {ref.platform for q in over for target in q.targets if (ref := market_ref(q, target)) is not None}
    if not platforms:
        return []
    found: list[Resolution] = []
    async with AsyncHttpClient(access=settings.access) as client:
        markets = open_markets(settings, client, sorted(platforms))
        for platform, source in markets.settlements.items():
            try:
                found += await source.settlements(over)
            except SourceError as error:
                problems.append(f"{platform}: {error}")
    return found


# Cost and duration of a run: from similar runs on this machine, or a rough guess.


READ, WRITTEN, CALL_SECONDS = 5_000, 800, 15.0
"""Tokens and seconds of a typical call, if nothing similar was measured."""
MEASURED_ANSWERS = 200
"""How many answers of a run are used to measure its time and the spread of its cost."""
ENOUGH_ANSWERS, DRAWS = 20, 2000
"""Answers it takes to say how cost spreads, and samples drawn from them."""


@dataclass(frozen=True, kw_only=True)
class CellCost:
    """The cost and duration of one trial of a question, and where they come from."""

    dollars: float | None
    """None if no price is known."""
    seconds: float
    basis: str
    """measured, rough, unknown, free model or no model."""
    calls: float = 0.0
    """Model calls."""
    cells: int = 0
    """How many cells were measured."""
    answers: tuple[float, ...] = ()
    """What some of its answers cost, in dollars."""

    def nine_in_ten(self, trials: int) -> float | None:
        """The dollars that so many trials stay below nine times in ten; None if there are too few answers to say.

        Trials are drawn from the answers so far, since the costliest of many are seldom all costly.
        """
        if len(self.answers) < ENOUGH_ANSWERS:
            return None
        drawn = np.random.default_rng(0).choice(self.answers, (DRAWS, trials)).sum(axis=1)
        return float(np.quantile(drawn, 0.9))


CellCosts = Mapping[tuple[str, ...], CellCost]
"""What determines the price of a cell → its cost."""


def measured_costs(store: RunStore) -> CellCosts:
    """Measured cost and duration of cells in stored runs."""
    sums: dict[tuple[str, ...], tuple[float, int, list[Cost]]] = {}
    for row in store.runs():
        if row.done and row.spec.get("models"):
            dollars, cells, timed = sums.get(likeness(row.spec), (0.0, 0, []))
            if len(timed) < MEASURED_ANSWERS:
                some = islice(store.answers(row.id), MEASURED_ANSWERS)
                timed += [one.usage for one in some if isinstance(one, Forecast)]
            sums[likeness(row.spec)] = (dollars + store.worth(row.id), cells + row.done + row.failed, timed)
    return {
        like: CellCost(
            dollars=dollars / cells,
            seconds=sum(one.seconds for one in timed) / max(len(timed), 1),
            basis="measured",
            calls=sum(one.calls for one in timed) / max(len(timed), 1),
            cells=cells,
            answers=tuple(one.worth for one in timed),
        )
        for like, (dollars, cells, timed) in sums.items()
    }


def cell_cost(spec: RunSpec, measured: CellCosts, targets: float = 1.0) -> CellCost:
    """The cost of a cell.

    Args:
        spec: The run.
        measured: What cells have cost here.
        targets: Outcomes of a question, on average: a tree is grown for each.
    """
    if not asks_models(spec):
        return CellCost(dollars=0.0, seconds=0.0, basis="no model")
    if found := measured.get(likeness(spec)):
        return found
    model = spec.models.get("agent", "")
    calls = _calls(spec) * (targets if spec.forecaster in ("tree", "thoughts") else 1.0)
    seconds = CALL_SECONDS * calls
    price = PriceList({name: read_price(written) for name, written in spec.prices.items()}).of(model)
    if price is None:
        return CellCost(dollars=None, seconds=seconds, basis="unknown", calls=calls)
    if price == FREE_OF_CHARGE:
        return CellCost(dollars=0.0, seconds=seconds, basis="free model", calls=calls)
    dollars = calls * (READ * price.input + WRITTEN * price.output) / 1e6
    return CellCost(dollars=dollars, seconds=seconds, basis="rough", calls=calls)


def likeness(spec: RunSpec | Mapping[str, Any]) -> tuple[str, ...]:
    """What determines the price of a cell: forecaster, models, options and search."""
    body: Mapping[str, Any] = vars(spec) if isinstance(spec, RunSpec) else spec
    options, models = (sorted(dict(body.get(name) or {}).items()) for name in ("options", "models"))
    return (str(body.get("forecaster", "agent")), str(models), str(options), str(list(body.get("search") or ())))


def _calls(spec: RunSpec) -> float:
    """Approximate model calls of a cell."""
    options = spec.options
    if spec.forecaster == "agent":
        return 1.0 if options.get("variant") == "zero-shot" else 0.7 * float(options.get("steps", 10))
    if spec.forecaster == "tree":
        return 2.0 + 1.7 * float(options.get("leaves", 10)) ** float(options.get("rounds", 1))
    return 12.0 if spec.forecaster == "thoughts" else 1.0
