"""Runs, their trials and events, in an SQLite file or a PostgreSQL database.

Events are only for readers. After a crash a trial starts again with its replies from the journal, so the events of an
unfinished trial are deleted and written again.
"""

import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from foretell.frozen import frozen
from foretell.models.canonical import quick_json
from foretell.models.database import open_database
from foretell.models.database.interface import Database, SqlRow, SqlValues, Statements, like_pattern
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost, Failure, Forecast, StopWish
from foretell.questions.question import Question
from foretell.questions.trace import CallMeter, ModelCalled, TraceEvent
from foretell.runs.spec import RunState, current_names
from foretell.runs.stored_rows import ROW_READERS, TRIAL_COLUMNS, answer_checksum, stored_answer, stored_row

T = TypeVar("T")
P = ParamSpec("P")

MIGRATIONS = (
    """
    create table run (id text primary key, spec text not null, created text not null);
    create table cell (
        run text not null, question text not null, due text not null, trial integer not null,
        forecast text, failure text, primary key (run, question, due, trial)
    ) without rowid;
    create table event (
        id integer primary key, run text not null, question text not null, due text not null, trial integer not null,
        kind text not null, body text not null
    );
    create index event_of_cell on event (run, question, due, trial, id);
    """,
    "alter table run add column services text not null default '[]';",
    """
    create table question (
        run text not null, id text not null, due text not null, body text not null, primary key (run, id, due)
    ) without rowid;
    """,
    """
    create table rate (
        run text not null, question text not null, due text not null, target text not null, rate real not null,
        primary key (run, question, due, target)
    ) without rowid;
    create table tick (
        name text not null, due text not null, owner integer not null, done integer not null default 0,
        primary key (name, due)
    ) without rowid;
    """,
    # Counts failures without reading every forecast of a run.
    "create index cell_failed on cell (run) where failure is not null;",
    # Finds new events of a run.
    "create index event_of_run on event (run, id);",
    # Counts fallback forecasts.
    """
    alter table cell add column degraded integer not null default 0;
    update cell set degraded = 1 where replace(forecast, '"ending":"degraded"', '') <> forecast;
    create index cell_degraded on cell (run) where degraded = 1;
    """,
    # The question file of a spec is relative to the folder in which the run was started.
    "alter table run add column folder text not null default '';",
    # Labels of a run, why it gave up, its outcomes and its scores.
    """
    alter table run add column name text not null default '';
    alter table run add column note text not null default '';
    alter table run add column tags text not null default '[]';
    alter table run add column archived integer not null default 0;
    alter table run add column problem text not null default '';
    create table run_outcome (
        run text not null, question text not null, due text not null, target text not null, outcome integer,
        payoff real, resolved_at text, told_at text not null, primary key (run, question, due, target)
    ) without rowid;
    create table run_score (run text primary key, seen text not null, summary text not null);
    """,
    # A checksum of every answer; answers of older versions have none.
    "alter table cell add column checksum text;",
    # Contexts by digest, because the runs of a grid show the same ones.
    """
    create table shown_context (digest text primary key, body text not null);
    create table run_context (
        run text not null, question text not null, due text not null, digest text not null,
        primary key (run, question, due)
    ) without rowid;
    """,
    # What pages and scores need of the answers of a run: combining trials and fitting a rule take long.
    "create table run_combined (run text primary key, seen text not null, answers text not null);",
    # The past that a run may learn from, by digest, because it is the same for many runs.
    """
    create table past (digest text primary key, body blob not null);
    create table run_past (run text primary key, digest text not null);
    """,
    # When a run was moved to the bin.
    "alter table run add column deleted text not null default '';",
    # What trials wait for, for readers; after a crash, what they were cut off at.
    """
    create table pending_work (
        run text not null, question text not null, due text not null, trial integer not null, body text not null,
        primary key (run, question, due, trial)
    ) without rowid;
    """,
    # When events happened and how long they took; those of older versions have neither.
    "alter table event add column at real; alter table event add column seconds real;",
)
"""Migrations of the tables. Existing entries never change."""

_RUNS = """
select id, spec, created, services, count(forecast), count(failure),
    (select count(*) from cell as broken where broken.run = run.id and broken.degraded = 1), folder,
    name, note, tags, archived, problem, deleted, {digests}
from run left join cell on run.id = cell.run {where} group by run.id order by created desc"""
_KEEP_QUESTION = "insert into question values (?, ?, ?, ?) on conflict do nothing"
_ADD_EVENT = "insert into event (run, question, due, trial, kind, body, at, seconds) values (?, ?, ?, ?, ?, ?, ?, ?)"
_NO_PENDING_WORK = "delete from pending_work where run = ? and question = ? and due = ? and trial = ?"
_KEEP_PENDING_WORK = """
insert into pending_work values (?, ?, ?, ?, ?)
on conflict (run, question, due, trial) do update set body = excluded.body"""
_NO_STOP = "delete from tick where name = ?"
DAYS_IN_BIN = 30
"""Days after which a deleted run is removed."""
EVENTS = "events"
"""Name of the lock for writing events, so that a reader that continues after the last number it saw misses no event."""
_FINISH = """
insert into cell values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (run, question, due, trial) do update
set forecast = excluded.forecast, failure = excluded.failure, degraded = excluded.degraded,
    checksum = excluded.checksum"""
_TRIAL = ", ".join(TRIAL_COLUMNS)


class TrialKey(NamedTuple):
    """One trial on one question of one run: the unit of work."""

    run: str
    question: str
    due: str
    trial: int

    def row(self) -> tuple[str, str, str, int]:
        """The values in the order of the table's columns."""
        return self


_TrialOfRun = tuple[str, str, int]
"""Question, due date and number of a trial."""
OwnershipCheck = Callable[[Statements, Set[TrialKey]], Set[TrialKey]]
"""Returns which of these trials are still ours, locked until the end of the transaction."""


class ContextRow(NamedTuple):
    """What a question is shown with, as JSON, and its digest."""

    question: Question
    digest: str
    body: str


@frozen
class RunRow:
    """A run in a list. Its fields are the columns of `_RUNS`, in their order."""

    id: str
    spec: dict[str, Any]
    created: str
    services: tuple[str, ...]
    """Services that had a key when it began. A replay has the same tools without keys."""
    done: int
    failed: int
    fallback: int = 0
    """Number of fallback forecasts."""
    folder: str = ""
    """Folder in which it was last started. Its question file is looked up there."""
    name: str = ""
    """Name given by the user."""
    note: str = ""
    tags: tuple[str, ...] = ()
    archived: bool = False
    """Hidden in lists."""
    problem: str = ""
    """Why it gave up early; empty if it did not."""
    deleted: str = ""
    """When it was moved to the bin; empty if it was not."""

    state_of_answers: str = ""
    """Numbers and digest of its answers: what was computed from them stays valid while it is the same."""


class MatchingQuestion(NamedTuple):
    """A stored question that contains a text, and its run."""

    run: str
    question: Question


_ANSWERED = "forecast is not null and degraded = 0"
_MATCHING = """
select question.run, question.id, question.due, body from question join run on run.id = question.run
where lower(body) like ? escape '!' and deleted = '' order by question.run desc, due desc limit ?"""


def trials_per_question(spec: Mapping[str, Any]) -> int:
    """Return the number of trials per question, including the panel's if there is one."""
    trials = int(spec.get("trials", 1))
    return trials + (spec.get("combine") == "judged" and trials > 1)


class RunStore:
    """The store of runs, created if it is missing. Several processes may have it open."""

    def __init__(self, place: str | Path) -> None:
        """Open a path or the PostgreSQL database at an address."""
        self._db = open_database(place, "file of runs", timeout=30, sessions=2)
        try:
            self._db.migrate("store", MIGRATIONS)
            self._empty_bin()
        except BaseException:
            self._db.close()
            raise

    @property
    def database(self) -> Database:
        """The underlying database."""
        return self._db

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Read or write without blocking the event loop."""
        return self._db.aside(work, *args, **kwargs)

    def grouped(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Like `aside`, grouped with other work of this turn of the event loop."""
        return self._db.grouped(lambda: work(*args, **kwargs))

    def begin(  # noqa: PLR0913 - one for each column of a run
        self,
        run: str,
        spec: str,
        created: str,
        *,
        services: Sequence[str] = (),
        folder: str | Path = "",
        instead_of: str = "",
        questions: Iterable[Question] = (),
    ) -> None:
        """Store a run. If it exists, only the folder in which it was last started changes, and it leaves the bin.

        If it replaces another run, it takes over its name, note and tags, in one transaction. The other run is
        archived, or removed if it has no answers.
        """
        insert = "insert into run (id, spec, created, services, folder) values (?, ?, ?, ?, ?) on conflict do nothing"
        changed = "folder <> ? or problem <> '' or deleted <> ''"
        again = f"update run set folder = ?, problem = '', deleted = '' where id = ? and ({changed})"
        question_rows = _question_rows(run, questions)

        def work(statements: Statements) -> None:
            statements.write(insert, (run, spec, created, json.dumps(list(services)), str(folder)))
            statements.write(again, (str(folder), run, str(folder)))
            statements.write(_NO_STOP, (f"stop {run}",))
            statements.write_many(_KEEP_QUESTION, question_rows)
            for other in self._run_rows("where run.id = ?", (instead_of,), statements):
                _label(statements, run, name=other.name, note=other.note, tags=other.tags)
                if other.done:
                    note = f"became run {run}" + (f"; {other.note}" if other.note else "")
                    _label(statements, other.id, name="", archived=True, note=note)
                else:
                    _remove(statements, other.id)

        self._db.together(work)

    def label(self, run: str, **labels: str | bool | Sequence[str]) -> None:
        """Set a run's name, note, tags, archived state, the problem it ended with or when it was deleted."""
        _label(self._db, run, **labels)

    def restore(self, run: str) -> None:
        """Take a run out of the bin, without its name if another run has that now."""
        name = "case when exists (select 1 from run as other where other.name = run.name and deleted = '')"
        self._db.write(f"update run set name = {name} then '' else name end, deleted = '' where id = ?", (run,))

    def remove(self, run: str) -> None:
        """Delete a run with its answers, events, questions and base rates. The journal keeps the paid replies."""
        self._db.together(lambda statements: _remove(statements, run))

    def _empty_bin(self) -> None:
        """Remove runs that were deleted long ago."""
        if self._db.read_only:
            return
        latest = (datetime.now(UTC) - timedelta(days=DAYS_IN_BIN)).isoformat()
        for (run,) in self._db.read("select id from run where deleted <> '' and deleted < ?", (latest,)):
            self.remove(run)

    def question_counts(self) -> dict[str, int]:
        """Number of questions by run."""
        return dict(self._db.read("select run, count(*) from question group by run"))

    def question_count(self, run: str) -> int:
        """Number of questions of a run."""
        return self._db.read("select count(*) from question where run = ?", (run,))[0][0]

    def question_dates(self, run: str, question: str) -> list[str]:
        """Return the dates as of which a run asks a question, latest first."""
        query = "select due from question where run = ? and id = ? order by due desc"
        return [due for (due,) in self._db.read(query, (run, question))]

    def first_question(self, run: str) -> Question | None:
        """A question of a run; None if it has none."""
        query = f"select {ROW_READERS['question'][0]} from question where run = ? order by id, due limit 1"
        rows = self._db.read(query, (run,))
        return stored_row("question", rows[0], self._db.place) if rows else None

    def matching_questions(self, text: str, most: int) -> list[MatchingQuestion]:
        """Return up to `most` questions in whose stored form a lower-case text occurs, those of the last run first."""
        return [
            MatchingQuestion(run=run, question=stored_row("question", (run, *row), self._db.place))
            for run, *row in self._db.read(_MATCHING, (f"%{like_pattern(text)}%", most))
        ]

    def tags(self) -> list[str]:
        """All tags of runs, sorted."""
        rows = self._db.read("select distinct tags from run where deleted = ''")
        return sorted({tag for (tags,) in rows for tag in json.loads(tags)})

    def summaries(self) -> dict[str, tuple[str, str]]:
        """Return the stored summary of each run's scores: the state that it was computed from, and its text."""
        return {run: (seen, text) for run, seen, text in self._db.read("select run, seen, summary from run_score")}

    def keep_summary(self, run: str, seen: str, text: str) -> None:
        """Store the summary of a run's scores, unless the store can only be read."""
        self._keep_result("run_score", "summary", (run, seen, text))

    def kept_answers(self, run: str, seen: str) -> str | None:
        """Return what was derived from the answers of a run, as JSON; None if it is damaged or of another state."""
        rows = self._db.read("select seen, answers from run_combined where run = ?", (run,))
        return next((text for stored, text in rows if stored == f"{seen} {_digest(text)}"), None)

    def keep_answers(self, run: str, seen: str, text: str) -> None:
        """Store what was derived from the answers of a run, as JSON, unless the store can only be read."""
        self._keep_result("run_combined", "answers", (run, f"{seen} {_digest(text)}", text))

    def _keep_result(self, table: str, column: str, row: tuple[str, str, str]) -> None:
        keep = f"""
        insert into {table} values (?, ?, ?)
        on conflict (run) do update set seen = excluded.seen, {column} = excluded.{column}"""
        if not self._db.read_only:
            self._db.write(keep, row)

    def state(self, row: RunRow, questions: int) -> RunState:
        """Return the state of a run, given its number of questions."""
        if row.deleted:
            return "deleted"
        if row.done + row.failed >= questions * trials_per_question(row.spec):
            return "partial" if row.failed else "done"
        names = (f"cell {row.id}", f"run {row.id}", f"queue {row.id}")
        claims = self._db.read("select distinct name, owner from tick where name in (?, ?, ?) and done = 0", names)
        if any(owner and self._db.life.alive(owner) for _, owner in claims):
            return "running"
        if row.problem:
            return "error"
        held = {name.partition(" ")[0] for name, _ in claims}
        return "waiting" if "queue" in held else "crashed" if "run" in held else "stopped"

    def under_way(self, run: str) -> int:
        """Number of trials that a process is working on, or was when it crashed."""
        return self._db.read("select count(*) from tick where name = ? and done = 0", (f"cell {run}",))[0][0]

    def queue(self, run: str, *, queued: bool) -> None:
        """Record whether the trials of a run are waiting for workers."""
        insert = "insert into tick (name, due, owner) values (?, '', 0) on conflict do nothing"
        self._db.write(insert if queued else "delete from tick where name = ?", (f"queue {run}",))

    def ask_to_stop(self, run: str, wish: StopWish) -> None:
        """Request that a run stops. The process working on it notices within a second."""

        def work(statements: Statements) -> None:
            statements.write(_NO_STOP, (f"stop {run}",))
            statements.write("insert into tick (name, due, owner) values (?, ?, 0)", (f"stop {run}", wish))

        self._db.together(work)

    def stop_wishes(self, runs: Iterable[str]) -> dict[str, StopWish]:
        """Return the requested stops by run."""
        names = [f"stop {run}" for run in runs]
        placeholders = ", ".join("?" * len(names))
        rows = self._db.read(f"select name, due from tick where name in ({placeholders})", names) if names else []
        return {name.removeprefix("stop "): wish for name, wish in rows}

    def specs(self) -> list[tuple[str, dict[str, Any]]]:
        """Id and stored spec of every run that was not deleted, newest first."""
        rows = self._db.read(f"select {ROW_READERS['run'][0]} from run where deleted = '' order by created desc")
        return [(row[0], stored_row("run", row, self._db.place)[0]) for row in rows]

    def keep_questions(self, run: str, questions: Iterable[Question]) -> None:
        """Store the questions, so that a run can be read without its question file."""
        self._db.write_many(_KEEP_QUESTION, _question_rows(run, questions))

    def questions(self, run: str) -> list[Question]:
        """The questions of a run."""
        query = f"select {ROW_READERS['question'][0]} from question where run = ? order by id, due"
        return [stored_row("question", row, self._db.place) for row in self._db.read(query, (run,))]

    def keep_contexts(self, run: str, contexts: Iterable[ContextRow]) -> None:
        """Store what the questions of a run are shown with. A question keeps the context that it has."""
        stored = list(contexts)
        if not stored:
            return
        keys = [(run, c.question.id, c.question.due.isoformat(), c.digest) for c in stored]

        def work(statements: Statements) -> None:
            bodies = [(context.digest, context.body) for context in stored]
            statements.write_many("insert into shown_context values (?, ?) on conflict do nothing", bodies)
            statements.write_many("insert into run_context values (?, ?, ?, ?) on conflict do nothing", keys)

        self._db.together(work)

    def context(self, run: str, question: Question) -> str | None:
        """Return the context of a question of a run, as JSON."""
        query = """
        select body from run_context join shown_context using (digest) where run = ? and question = ? and due = ?"""
        rows = self._db.read(query, (run, question.id, question.due.isoformat()))
        return rows[0][0] if rows else None

    def contexts(self, run: str) -> list[tuple[str, str]]:
        """Return the digests of a run's contexts, and the contexts as JSON."""
        query = "select digest, body from run_context join shown_context using (digest) where run = ?"
        return [(digest, body) for digest, body in self._db.read(query, (run,))]

    def context_digests(self, run: str) -> dict[tuple[str, datetime], str]:
        """Return the digests of a run's contexts by question and due time."""
        rows = self._db.read("select question, due, digest from run_context where run = ?", (run,))
        return {(question, datetime.fromisoformat(due)): digest for question, due, digest in rows}

    def runs(self) -> list[RunRow]:
        """All runs except those in the bin, newest first."""
        return self._run_rows("where deleted = ''")

    def deleted_runs(self) -> list[RunRow]:
        """The runs in the bin, newest first."""
        return self._run_rows("where deleted <> ''")

    def run(self, run: str) -> RunRow | None:
        """One run, with its progress, even if it is in the bin."""
        return next(iter(self._run_rows("where run.id = ?", (run,))), None)

    def _run_rows(self, where: str, values: SqlValues = (), statements: Statements | None = None) -> list[RunRow]:
        digests = self._db.concatenated("substr(checksum, 1, 8)", "question, due, trial")
        rows = (statements or self._db).read(_RUNS.format(where=where, digests=digests), values)
        return [_run_row(row, self._db.place) for row in rows]

    def finished(self, run: str) -> set[tuple[str, str, int]]:
        """Return trials with a forecast. Failures and fallback forecasts are not included and are retried."""
        query = f"select question, due, trial from cell where run = ? and {_ANSWERED}"
        return set(self._db.read(query, (run,)))

    def ended(self, run: str) -> set[tuple[str, str, int]]:
        """Trials with a forecast or a failure."""
        return set(self._db.read("select question, due, trial from cell where run = ?", (run,)))

    def tally(self, run: str, trials: range) -> tuple[int, int, int]:
        """Number of forecasts, failures and fallback forecasts in these trials."""
        where = "from cell where run = ? and trial >= ? and trial < ?"
        values = (run, trials.start, trials.stop)
        ((done, failed),) = self._db.read(f"select count(forecast), count(failure) {where}", values)
        ((fallback,),) = self._db.read(f"select count(*) {where} and degraded = 1", values)
        return done, failed, fallback

    def question(self, key: TrialKey) -> Question | None:
        """The question of a trial."""
        query = f"select {ROW_READERS['question'][0]} from question where run = ? and id = ? and due = ?"
        rows = self._db.read(query, key.row()[:3])
        return stored_row("question", rows[0], self._db.place) if rows else None

    def answered(self, key: TrialKey) -> bool:
        """Return whether a trial has a forecast that is not a fallback."""
        query = f"select 1 from cell where run = ? and question = ? and due = ? and trial = ? and {_ANSWERED}"
        return bool(self._db.read(query, key.row()))

    def forget_failures(self, run: str, only: Iterable[TrialKey] | None = None) -> None:
        """Delete failures and fallback forecasts, or those of the given trials, so that the trials are open again."""
        if only is None:
            self._db.write(f"delete from cell where run = ? and not ({_ANSWERED})", (run,))
            return
        delete = f"delete from cell where run = ? and question = ? and due = ? and trial = ? and not ({_ANSWERED})"
        self._db.write_many(delete, [key.row() for key in only])

    def keep_rates(self, run: str, rates: Iterable[tuple[Question, str, float]]) -> None:
        """Store the base rates of a run's targets for machines without its data set."""
        rows = [(run, question.id, question.due.isoformat(), target, rate) for question, target, rate in rates]
        self._db.write_many("insert into rate values (?, ?, ?, ?, ?) on conflict do nothing", rows)

    def rates(self, run: str) -> dict[tuple[str, str, str], float]:
        """Base rates by question, due date and target."""
        query = "select question, due, target, rate from rate where run = ?"
        return {(question, due, target): rate for question, due, target, rate in self._db.read(query, (run,))}

    def keep_past(self, run: str, body: bytes) -> bytes:
        """Store the past that a run may learn from, and return it. A run keeps the past with which it began."""
        digest = sha256(body).hexdigest()

        def work(statements: Statements) -> None:
            statements.write("insert into past values (?, ?) on conflict do nothing", (digest, body))
            statements.write("insert into run_past values (?, ?) on conflict do nothing", (run, digest))

        stored = self.past(run)
        if stored is None:
            self._db.together(work)
        return stored or self.past(run) or body

    def past(self, run: str) -> bytes | None:
        """Return the stored past of a run; None for runs of older versions."""
        rows = self._db.read("select body from run_past join past using (digest) where run = ?", (run,))
        return bytes(rows[0][0]) if rows else None

    def model_calls(self, run: str, *, after: int = 0) -> list[tuple[int, ModelCalled]]:
        """Return the model calls of a run after an event number, to follow its spending from another machine."""
        events = self.events(run, after=after, kinds=(ModelCalled,))
        return [(number, event) for number, _, event in events if isinstance(event, ModelCalled)]

    def cost(self, run: str) -> Cost:
        """Return the cost of the model calls of a run, each reply once even if several trials used it."""
        meter = CallMeter()
        self.meter_calls(run, meter)
        return meter.cost

    def meter_calls(self, run: str, meter: CallMeter, *, after: int = 0, upto: int = sys.maxsize) -> None:
        """Count the model calls of a run among events with these numbers."""
        numbers = (self._db.json_field("body", name, "number") for name in ("dollars", "input_tokens", "output_tokens"))
        flags = (self._db.json_field("body", name, "flag") for name in ("reused", "uncounted"))
        columns = ", ".join((self._db.json_field("body", "key"), *numbers, *flags))
        query = f"""select {columns} from event
        where run = ? and id > ? and id <= ? and kind = 'ModelCalled' order by id"""
        for key, dollars, read, written, reused, uncounted in self._db.read(query, (run, after, upto)):
            meter.add(key, dollars, (int(read or 0), int(written or 0)), reused=bool(reused), uncounted=bool(uncounted))

    def endings(self, run: str, *, after: int = 0, upto: int = sys.maxsize) -> Counter[str]:
        """Return how often trials of a run ended in which way, according to events with these numbers."""
        query = f"""
        select {self._db.json_field("body", "how")}, count(*) from event
        where run = ? and id > ? and id <= ? and kind = 'ForecastMade' group by 1"""
        return Counter(dict(self._db.read(query, (run, after, upto))))

    def last_event(self) -> int:
        """The number of the newest event of all runs."""
        return self._db.read("select coalesce(max(id), 0) from event")[0][0]

    def runs_with_events(self, after: int) -> set[str]:
        """Return the runs with events after an event number."""
        # `|| ''` prevents the use of an index on the run, of which every row would be read.
        return {run for (run,) in self._db.read("select distinct run || '' from event where id > ?", (after,))}

    def keep_pending_work(self, work: Mapping[TrialKey, str]) -> None:
        """Store what trials wait for, as JSON; an empty text deletes it."""
        gone = [key.row() for key, body in work.items() if not body]
        rows = [(*key.row(), body) for key, body in work.items() if body]

        def write(statements: Statements) -> None:
            statements.write_many(_NO_PENDING_WORK, gone)
            statements.write_many(_KEEP_PENDING_WORK, rows)

        self._db.together(write)

    def pending_work(self, run: str = "") -> dict[TrialKey, str]:
        """Return what the trials of a run, or of all runs, wait for, as JSON, in a fixed order."""
        where, values = ("where run = ?", (run,)) if run else ("", ())
        query = f"select run, question, due, trial, body from pending_work {where} order by run, question, due, trial"
        return {TrialKey(*key): body for *key, body in self._db.read(query, values)}

    def start_trial(self, key: TrialKey, owned: OwnershipCheck | None = None) -> bool:
        """Delete events of an unfinished attempt. Returns False and does nothing if the trial is not ours."""
        delete = "delete from event where run = ? and question = ? and due = ? and trial = ?"
        return self._write_if_owned(key, delete, key.row(), owned)

    def _write_if_owned(
        self,
        key: TrialKey,
        sql: str,
        values: SqlValues,
        owned: OwnershipCheck | None,
        new_events: Sequence[TraceEvent] = (),
    ) -> bool:
        rows = [_event_row(key, event) for event in new_events]

        def work(statements: Statements) -> bool:
            ours = owned is None or key in owned(statements, {key})
            if ours:
                if rows:
                    statements.write_many(_ADD_EVENT, rows)
                statements.write(sql, values)
            return ours

        return self._db.together(work, alone=EVENTS if rows else "")

    def add_events(
        self, new_events: Iterable[tuple[TrialKey, TraceEvent]], owned: OwnershipCheck | None = None
    ) -> set[TrialKey]:
        """Append events in one transaction, and return the trials that are no longer ours, which are skipped."""
        pairs = list(new_events)
        rows = [_event_row(key, event) for key, event in pairs]
        keys = {key for key, _ in pairs}

        def work(statements: Statements) -> set[TrialKey]:
            lost = set[TrialKey]() if owned is None else keys - owned(statements, keys)
            writable = rows if not lost else [row for row, (key, _) in zip(rows, pairs, strict=True) if key not in lost]
            statements.write_many(_ADD_EVENT, writable)
            return lost

        return self._db.together(work, alone=EVENTS)

    def finish_trial(
        self,
        key: TrialKey,
        answer: Forecast | Failure,
        owned: OwnershipCheck | None = None,
        new_events: Sequence[TraceEvent] = (),
    ) -> bool:
        """Store a trial's answer and its last events. Returns False and does nothing if the trial is not ours."""
        text = to_json(answer)
        pair = (text, None) if isinstance(answer, Forecast) else (None, text)
        fallback = isinstance(answer, Forecast) and answer.fallback
        row = (*key.row(), *pair, int(fallback))
        return self._write_if_owned(key, _FINISH, (*row, answer_checksum(row)), owned, new_events)

    def answers(self, run: str) -> Iterator[Forecast | Failure]:
        """Every answer of a run, in a fixed order."""
        query = f"select {_TRIAL} from cell where run = ? order by question, due, trial"
        for row in self._db.stream(query, (run,)):
            yield stored_answer(row, self._db.place)

    def costed_answers(self, run: str) -> Iterator[Forecast | Failure]:
        """Every answer, with the cost of a reply that several trials used divided equally among them.

        The costs of the answers then add up to what was paid.
        """
        excess = self._shared_costs(run)
        query = f"select {_TRIAL} from cell where run = ? order by question, due, trial"
        for row in self._db.stream(query, (run,)):
            answer = stored_answer(row, self._db.place)
            billed, reused = excess.get((row[1], row[2], row[3]), (0.0, 0.0))
            if isinstance(answer, Forecast) and (billed or reused):
                usage = answer.usage
                usage = replace(
                    usage, dollars=round(usage.dollars - billed, 12), reused=round(usage.reused - reused, 12)
                )
                answer = replace(answer, usage=usage)
            yield answer

    def _shared_costs(self, run: str) -> dict[_TrialOfRun, tuple[float, float]]:
        """Return by trial how much more than its share its replies cost that others used too: billed and reused."""
        key, dollars = self._db.json_field("body", "key"), self._db.json_field("body", "dollars", "number")
        query = f"""select {key}, question, due, trial, {dollars}, {self._db.json_field("body", "reused", "flag")}
        from event where run = ? and kind = 'ModelCalled' order by id"""
        first: dict[str, tuple[_TrialOfRun, tuple[float, bool]]] = {}
        shared: dict[str, dict[_TrialOfRun, tuple[float, bool]]] = {}
        for reply, question, due, trial, paid, reused in self._db.stream(query, (run,)):
            use = (question, due, trial), (paid or 0.0, bool(reused))
            if first.setdefault(reply, use)[0] != use[0]:
                shared.setdefault(reply, dict([first[reply]]))[use[0]] = use[1]
        excess: dict[_TrialOfRun, tuple[float, float]] = {}
        for users in shared.values():
            for trial, (paid, reused) in users.items():
                more, (billed, free) = paid * (1 - 1 / len(users)), excess.get(trial, (0.0, 0.0))
                excess[trial] = (billed, free + more) if reused else (billed + more, free)
        return excess

    def answers_to(self, key: TrialKey) -> list[Forecast | Failure]:
        """Return every answer of a run to a trial's question, by trial."""
        query = f"select {_TRIAL} from cell where run = ? and question = ? and due = ? order by trial"
        return [stored_answer(row, self._db.place) for row in self._db.read(query, key.row()[:3])]

    def failures(self, run: str) -> list[tuple[TrialKey, str]]:
        """Return the failed trials of a run, each with its error."""
        query = f"""
        select run, question, due, trial, {self._db.json_field("failure", "error")} from cell
        where run = ? and failure is not null order by question, due, trial"""
        return [(TrialKey(*key), error or "") for *key, error in self._db.read(query, (run,))]

    def ended_trials(self, run: str, question: str) -> tuple[int, int]:
        """Return how many trials of a question have ended, and as of how many dates it is asked."""
        query = "select (select count(*) from cell where run = ? and question = ?), count(*) from question"
        return self._db.read(f"{query} where run = ? and id = ?", (run, question) * 2)[0]

    def forget_answers(self, keys: Iterable[TrialKey]) -> None:
        """Delete answers, so that their trials are open again."""
        delete = "delete from cell where run = ? and question = ? and due = ? and trial = ?"
        self._db.write_many(delete, [key.row() for key in keys])

    def events(
        self,
        run: str,
        question: str | None = None,
        *,
        after: int = 0,
        kinds: Sequence[type[TraceEvent]] = (),
        limit: int | None = None,
    ) -> Iterator[tuple[int, TrialKey, TraceEvent]]:
        """Yield events of a run, or of one of its questions, in order; all, or those of some types, or at most `limit`.

        `after` is the number of the last event seen.
        """
        where, values, order = "run = ? and id > ?", [run, after], "id"
        if question:
            # `+` prevents the use of the index on the run, of which every event would be read.
            where, values, order = "run = ? and +id > ? and question = ?", [*values, question], "+id"
        if kinds:
            where += f" and kind in ({', '.join('?' * len(kinds))})"
        values = [*values, *(kind.__name__ for kind in kinds)]
        query = (
            f"select id, run, question, due, trial, kind, body, at, seconds from event where {where} order by {order}"
        )
        query += "" if limit is None else f" limit {limit}"
        # A part is read at once, because a stream may need a session of its own.
        rows = self._db.read(query, values) if kinds or limit else self._db.stream(query, values)
        for id, *key, kind, body, at, seconds in rows:
            event: TraceEvent = stored_row("event", (run, id, kind, body), self._db.place)
            yield id, TrialKey(*key), event.timed(at, seconds)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _label(statements: Statements, run: str, **labels: str | bool | Sequence[str]) -> None:
    assert labels.keys() <= {"name", "note", "tags", "archived", "problem", "deleted"}
    values = [
        value if isinstance(value, str) else int(value) if isinstance(value, bool) else json.dumps(list(value))
        for value in labels.values()
    ]
    if labels:
        statements.write(
            f"update run set {', '.join(f'{column} = ?' for column in labels)} where id = ?", (*values, run)
        )


def _remove(statements: Statements, run: str) -> None:
    mine, others = (f"select digest from run_context where run {sign} ?" for sign in ("=", "<>"))
    statements.write(f"delete from shown_context where digest in ({mine}) and digest not in ({others})", (run, run))
    mine, others = (f"select digest from run_past where run {sign} ?" for sign in ("=", "<>"))
    statements.write(f"delete from past where digest in ({mine}) and digest not in ({others})", (run, run))
    for table in (
        *("cell", "event", "question", "rate", "run_context"),
        *("run_combined", "run_outcome", "run_past", "run_score", "pending_work"),
    ):
        statements.write(f"delete from {table} where run = ?", (run,))
    statements.write("delete from run where id = ?", (run,))
    names = (f"cell {run}", f"run {run}", f"queue {run}")
    statements.write("delete from tick where name in (?, ?, ?)", names)


def _question_rows(run: str, questions: Iterable[Question]) -> list[SqlRow]:
    return [(run, q.id, q.due.isoformat(), to_json(q)) for q in questions]


def _run_row(row: SqlRow, place: str | Path | None = None) -> RunRow:
    run: dict[str, Any] = dict(zip(RunRow.__dataclass_fields__, row, strict=True))
    spec, services, tags = stored_row("run", (run["id"], run["spec"], run["services"], run["tags"]), place)
    run |= {"spec": current_names(spec), "services": tuple(services), "tags": tuple(tags)}
    run["archived"] = bool(run["archived"])
    run["state_of_answers"] = (
        f"{run['done']} {run['failed']} {run['fallback']} {_digest(run['state_of_answers'] or '')}"
    )
    return RunRow(**run)


def _event_row(key: TrialKey, event: TraceEvent) -> SqlRow:
    # Not `asdict`, because copying the events takes longer than writing them.
    return (*key.row(), type(event).__name__, quick_json(vars(event)).decode(), event.at, event.seconds)


# The units of work of a run: one trial on one question.


@frozen
class RunTrial:
    """One trial on one question."""

    run: str
    question: Question
    trial: int

    @property
    def key(self) -> TrialKey:
        """Its key in the store."""
        return TrialKey(run=self.run, question=self.question.id, due=self.question.due.isoformat(), trial=self.trial)


def panel_trials(run: str, questions: Sequence[Question], trials: int) -> Iterator[RunTrial]:
    """Yield one trial per question, numbered after the others, in which a panel reads their reasons."""
    return (RunTrial(run=run, question=question, trial=trials) for question in questions)


def trials_of(run: str, questions: Sequence[Question], trials: int) -> Iterator[RunTrial]:
    """Yield every trial of every question, first trials first, so that an early stop leaves every question answered."""
    return (RunTrial(run=run, question=question, trial=trial) for trial in range(trials) for question in questions)


def find_run(store: "RunStore", start: str) -> str:
    """Return the id of the run with this name, or whose id starts with it."""
    return find_run_row(store, start).id


def matching_runs(store: "RunStore", start: str) -> list[RunRow]:
    """Return the run with this id, or else those with this name, or else those whose id starts with it."""
    if (row := store.run(start)) and not row.deleted:
        return [row]
    return _fitting(store.runs(), start)


def _fitting(rows: Sequence[RunRow], start: str) -> list[RunRow]:
    return [row for row in rows if row.name == start] or [row for row in rows if row.id.startswith(start)]


def find_run_row(store: "RunStore", start: str, *, deleted: bool = False) -> RunRow:
    """Return the run with this id or name, or the only one whose id starts with it, with its progress.

    With `deleted`, it is looked for in the bin.
    """
    matches = _fitting(store.deleted_runs(), start) if deleted else matching_runs(store, start)
    if len(matches) != 1:
        problem = (
            f"no run is named {start!r}, and no run's id begins with it"
            if not matches
            else f"the ids of {len(matches)} runs begin with {start!r}"
        )
        in_bin = deleted or (not matches and _fitting(store.deleted_runs(), start))
        raise InputError(problem, hint=f"foretell runs{' --find state:deleted' if in_bin else ''} lists them")
    return matches[0]
