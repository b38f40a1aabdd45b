"""The runs on this machine: list them with cost, state and score; edit, stop and delete them."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast, get_args

from rich.console import Console

from foretell.data.untrusted import UNSAFE
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.number_text import bracket, dollars, plural
from foretell.operations.requests.runs import RunsDeleteRequest, RunsEditRequest, RunsRequest, RunsStopRequest
from foretell.questions.errors import InputError, known_names
from foretell.report.result import Result
from foretell.report.terminal import TextColumn, show_text, text_lines
from foretell.runs.costs import money_of
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import TYPED_PREFIX, RunState
from foretell.runs.store import DAYS_IN_BIN, RunRow, RunStore, find_run_row, trials_per_question
from foretell.scoring.stored_scores import StoredScores


@frozen
class ListedRun:
    """One run in the list."""

    row: RunRow
    title: str
    asked: str
    """What it asks with what."""
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
        """Return a summary of the run, with its score."""
        return run_to_dict(self.row, self.money) | {
            "name": self.row.name,
            "title": self.title,
            "note": self.row.note,
            "tags": list(self.row.tags),
            "archived": self.row.archived,
            "state": self.state,
            "problem": self.row.problem,
            "asked": self.questions,
            "total": self.questions * trials_per_question(self.row.spec),
            "score": dict(self.score),
        }


def run_title(store: RunStore, row: RunRow, questions: int) -> str:
    """Return the name of a run or, if it has none, what it asks with what; `questions` is their number.

    It is the same on every page, in JSON and in the terminal.
    """
    return row.name or asked_with(store, row, questions)


def asked_with(store: RunStore, row: RunRow, questions: int) -> str:
    """Return what a run asks, its forecaster and its model."""
    asked = f"{plural(questions, 'question')} of {Path(question_set(row.spec)).stem}"
    if not question_set(row.spec):
        first = store.first_question(row.id)
        asked = first.text[:LONGEST_QUESTION] if first else f"run {row.id[:8]}"
    model = str((row.spec.get("models") or {}).get("agent", "")).partition("@")[0]
    return " · ".join(filter(None, (asked, str(row.spec.get("forecaster", "")), model.rpartition(":")[2])))


LONGEST_QUESTION = 200


def run_to_dict(row: RunRow, money: Money) -> dict[str, Any]:
    """Return a summary of a run."""
    return {
        "run": row.id,
        "created": row.created,
        "questions": row.spec["questions"]["dataset"],
        "forecaster": row.spec["forecaster"],
        "model": row.spec["models"].get("agent", ""),
        "efforts": row.spec.get("efforts", {}),
        "mode": row.spec["mode"],
        "excluded": row.spec["questions"].get("excluded", 0),
        "trials": row.spec["trials"],
        "forecasts": row.done,
        "failed": row.failed,
        "fallback": row.fallback,
        **money.to_dict(),
    }


# The list.

MOST_STEPS = 5
"""How many runs the list gives a next step for."""
NO_RUNS = "no runs yet; try: foretell ask, or foretell run SPEC.yaml"


@frozen
class RunsResult(Result):
    """Runs on this machine."""

    stored: tuple[ListedRun, ...]
    total: int
    """How many match."""
    archived: int
    """How many are left out because they are archived."""
    all_runs: int
    """How many there are in total."""

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run."""
        return [run.to_dict() for run in self.stored]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows, and the total."""
        return {"runs": self.rows(), "total": self.total, "archived": self.archived}

    def print(self, console: Console) -> None:
        """Print a table."""
        if not self.stored:
            show_text(console, f"{'no run fits' if self.all_runs else NO_RUNS}\n")
        else:
            columns = [TextColumn(head="run", shrink=12), TextColumn(head="made on", drop=1), TextColumn(head="state")]
            columns += [TextColumn(head=name, right=True) for name in ("Brier index", "billed")]
            cells = [
                (r.row.name or r.row.id, r.row.created[:10], _state_text(r), _score_text(r), dollars(r.money.billed))
                for r in self.stored
            ]
            (head, *lines), note = text_lines(columns, cells, console.width)
            # The second line shows what the run asks, and its whole name if that was cut.
            entries = [
                f"{line}\n  {'' if name in line else f'{name}, '}{_what(run)}"
                for line, run, (name, *_) in zip(lines, self.stored, cells, strict=True)
            ]
            show_text(console, "\n".join([head, *entries, *filter(None, [note])]) + "\n")
            for line in list(filter(None, map(_next_step, self.stored)))[:MOST_STEPS]:
                show_text(console, f"{line}\n")
        if self.archived:
            show_text(console, f"{self.archived} archived: foretell runs --find archived:yes lists them\n")


def _what(run: ListedRun) -> str:
    body = run.to_dict()
    extra = [f"{body[name]} {name}" for name in ("fallback", "excluded") if body[name]]
    extra += [f"{dollars(body[name])} {name}" for name in ("reused", "unknown", "reserved") if body[name]]
    extra += [f"#{tag}" for tag in run.row.tags]
    text = run.asked
    return f"{text} ({', '.join(extra)})" if extra else text


def _score_text(run: ListedRun) -> str:
    index = run.score.get("brier_index")
    if index is None:
        return f"{run.score['decided']} decided" if run.score.get("decided") else "–"
    return f"{index['estimate']:.1f} {bracket(index['low'], index['high'], 1)}"


def _state_text(run: ListedRun) -> str:
    row, total = run.row, run.questions * trials_per_question(run.row.spec)
    match run.state:
        case "partial":
            return f"partial, {row.failed} of {total} failed"
        case "done":
            return "done"
        case state:
            return f"{state} {row.done + row.failed}/{total}"


def _next_step(run: ListedRun) -> str:
    """Return why a run is not finished and what to do about it; empty if it is."""
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


def list_runs(request: RunsRequest, settings: Settings | None = None) -> RunsResult:
    """List the runs on this machine."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:

        def spent(runs: Sequence[str]) -> dict[str, float]:
            return {run: money.billed for run, money in money_of(store, settings, runs).items()}

        matching, archived = chosen_runs(store, request, spent)
        shown = matching[: request.limit]
        rows, question_counts = [row for row, _ in shown], store.question_counts()
        money, scores = money_of(store, settings, [row.id for row in rows]), StoredScores(store).of(rows)
        all_runs = len(store.runs())
        asked = {row.id: asked_with(store, row, question_counts.get(row.id, 0)) for row in rows}
    listed = tuple(
        ListedRun(
            row=row,
            title=row.name or asked[row.id],
            asked=asked[row.id],
            questions=question_counts.get(row.id, 0),
            state=state,
            money=money[row.id],
            score=scores[row.id],
        )
        for row, state in shown
    )
    return RunsResult(stored=listed, total=len(matching), archived=archived, all_runs=all_runs)


def chosen_runs(
    store: RunStore, request: RunsRequest, spent: Callable[[Sequence[str]], Mapping[str, float]]
) -> tuple[Sequence[tuple[RunRow, RunState]], int]:
    """Return the matching runs with their states, and how many more are archived; `spent` gives their cost."""
    query, question_counts = read_query(request.find), store.question_counts()
    rows = store.deleted_runs() if query.state == "deleted" else store.runs()
    fitting = [row for row in rows if query.fits(row)]
    archived = "any" if query.state == "deleted" else query.archived
    shown = [row for row in fitting if archived in ("any", "yes" if row.archived else "no")]
    states: list[tuple[RunRow, RunState]] = [(row, store.state(row, question_counts.get(row.id, 0))) for row in shown]
    matching = [state for state in states if query.state in ("", state[1])]
    match request.sort:
        case "date":
            pass  # They come newest first.
        case "name":
            matching.sort(key=lambda item: (not item[0].name, item[0].name.casefold()))
        case "cost":
            dollars = spent([row.id for row, _ in matching])
            matching.sort(key=lambda item: -dollars[item[0].id])
        case "score":
            scores = StoredScores(store).of([row for row, _ in matching])
            matching.sort(
                key=lambda item: -(scores[item[0].id].get("brier_index") or {"estimate": -math.inf})["estimate"]
            )
    return matching, sum(row.archived for row in fitting) if query.archived == "no" else 0


@frozen
class RunQuery:
    """Which runs to list, as parsed from `find`."""

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
    fields = dict(pairs)
    for key, known in (("state", get_args(RunState)), ("archived", ("no", "yes", "any"))):
        if key in fields and fields[key] not in known:
            problem = f"there is no {key}:{fields[key]}"
            raise InputError(problem, column="--find", hint=known_names(fields[key], known))
    return RunQuery(
        text=" ".join(rest),
        tags=tuple(value for key, value in pairs if key == "tag"),
        state=cast("RunState", fields.get("state", "")),
        model=fields.get("model", ""),
        questions=fields.get("set", ""),
        archived=cast('Literal["no", "yes", "any"]', fields.get("archived", "no")),
    )


QUERY_KEYS = ("tag", "state", "model", "set", "archived")


def method_names(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the models of a run, or its forecaster if it has none."""
    return tuple(map(str, (spec.get("models") or {}).values())) or (str(spec.get("forecaster", "")),)


def question_set(spec: Mapping[str, Any]) -> str:
    """Return the name of a run's question set, without the folder of a file; empty for a typed question."""
    name = str(spec.get("questions", {}).get("dataset", ""))
    if name.startswith(TYPED_PREFIX):
        return ""
    return Path(name).name if Path(name).is_absolute() else name


# Names, notes and tags.


@frozen
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


def edit_run(request: RunsEditRequest, settings: Settings | None = None) -> RunLabels:
    """Change the name, tags or note of a run, archive it, or restore it from the bin."""
    settings = settings or load_settings()
    _refuse_unsafe(request.name or "", *request.tags, request.note or "")
    labels = {"name": request.name, "note": request.note, "archived": request.archive}
    with closing(RunStore(settings.store)) as store:
        run = find_run_row(store, request.run, deleted=request.restore).id
        if request.restore:
            store.restore(run)
        for row in store.runs() if request.name else ():
            if row.id != run and (row.name == request.name or row.id.startswith(request.name or "")):
                hint = "choose another name; commands find a run by its name or the beginning of its id"
                raise InputError(f"{request.name!r} already refers to run {row.id}", column="name", hint=hint)
        tags = dict.fromkeys(tag for tag in (*_labels(store, run).tags, *request.tags) if tag not in request.untag)
        store.label(run, tags=list(tags), **{name: value for name, value in labels.items() if value is not None})
        return _labels(store, run)


@frozen
class DeletedRuns(Result):
    """Runs that were deleted, or would be."""

    lines = "runs"
    runs: tuple[Mapping[str, Any], ...]
    deleted: bool

    def __str__(self) -> str:
        lines = [
            f"{'deleted' if self.deleted else 'would delete'} run {run['name'] or run['run']}: "
            f"{run['answers']} answers, {dollars(run['billed'])} billed"
            for run in self.runs
        ]
        back = f"for {DAYS_IN_BIN} days, foretell runs edit RUN --restore brings a run back"
        last = back if self.deleted else "nothing was deleted; the option yes deletes them"
        return "\n".join([*lines, last])


def delete_runs(request: RunsDeleteRequest, settings: Settings | None = None) -> DeletedRuns:
    """Move runs to the bin, from which they are removed after some weeks."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        question_counts, deleted = store.question_counts(), list[Mapping[str, Any]]()
        for start in request.runs:
            row = find_run_row(store, start)
            if store.state(row, question_counts.get(row.id, 0)) == "running":
                raise InputError(f"run {row.name or row.id} is running", hint="stop it first")
            answers, money = row.done + row.failed, money_of(store, settings, [row.id])[row.id]
            deleted.append({"run": row.id, "name": row.name, "answers": answers, **money.to_dict()})
        if request.yes:
            for run in deleted:
                store.label(run["run"], deleted=datetime.now(UTC).isoformat())
    return DeletedRuns(runs=tuple(deleted), deleted=request.yes)


# Stopping a run.


@frozen
class StoppedRun(Result):
    """A run that was asked to stop."""

    run: str
    discard: bool
    under_way: int
    """Trials that were in progress."""
    answered: int
    total: int
    unqueued: int = 0
    """Trials taken out of the queue of the shared database."""

    def __str__(self) -> str:
        end = "left unfinished" if self.discard else "asked to answer with the current estimate"
        under_way = f"{plural(self.under_way, 'trial')} under way {'is' if self.under_way == 1 else 'are'} {end}"
        queue = f", {plural(self.unqueued, 'trial')} taken out of the queue" if self.unqueued else ""
        answers = f"{self.answered} of {self.total} answers exist"
        return f"run {self.run} stops within seconds: {answers}, {under_way}{queue}"


def stop_run(request: RunsStopRequest, settings: Settings | None = None) -> StoppedRun:
    """Stop a run early, whichever process is running it, and keep its answers so far."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.run)
        run, questions = row.id, store.question_count(row.id)
        state = store.state(row, questions)
        unqueues = request.discard and settings.database is not None
        if state not in ("running", "waiting") and not unqueues:
            raise InputError(f"run {row.name or run} is not running: its state is {state}")
        store.ask_to_stop(run, "pause" if request.discard else "answer")
        if state == "waiting" or unqueues:
            store.queue(run, queued=False)
        under_way = store.under_way(run)
    unqueued = 0
    if unqueues:
        from foretell.runs.shared_runs import unqueue_run  # Needs the driver of PostgreSQL.

        unqueued = unqueue_run(settings, run)
    return StoppedRun(
        run=row.name or run,
        discard=request.discard,
        under_way=under_way,
        answered=row.done,
        total=questions * trials_per_question(row.spec),
        unqueued=unqueued,
    )
