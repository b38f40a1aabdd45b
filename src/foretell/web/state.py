"""What all requests share: settings, one store of runs, who may do what, and the runs this server started."""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import Depends, HTTPException, Request

from foretell.data.connections import OpenConnections
from foretell.models.journal import Journal, UnsettledCalls
from foretell.operations.question_view import cost_of_events
from foretell.operations.requests.runs import RunsRequest
from foretell.operations.runs import CellCosts, measured_costs
from foretell.questions.forecast import Cost
from foretell.questions.trace import ModelCalled
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.store import RunRow, RunStore, cells_each
from foretell.scoring.long_tables import RunScores, score_run
from foretell.web.background_runs import BackgroundRuns
from foretell.web.boards import KeptResults, LeaderboardCache
from foretell.web.event_watch import EventWatch
from foretell.web.run_rows import RUNS_PER_PAGE, RunList, RunRowView, list_runs, run_row_view
from foretell.web.security import AccessRules
from foretell.web.tree_work import BackgroundTreeWork

T = TypeVar("T")
WINDOW_SECONDS = 600.0
"""How far the pace of a run is looked back on."""
FEWEST_SECONDS = 3.0
"""Must have passed before the time left is guessed."""
CACHED_SCORES = 12
"""Runs whose scores are held in memory."""
CACHED_PARTS = 60
"""Parts of pages held in memory."""
LOOK_SHARE = 20
"""After a look into the journal, so many times as long passes before the next."""
# Written so that no index on the run is used: what is new stands at the end of the table, and is read from there.
_NEW_SQL = """
select kind, body from event
where id > ? and id <= ? and run || '' = ? and kind in ('ModelCalled', 'ForecastMade') order by id"""


@dataclass(frozen=True, kw_only=True)
class RunTotals:
    """Sums over the events of a run up to a number: what it cost, and how its trials ended."""

    upto: int = 0
    spending: Cost = field(default_factory=Cost)
    endings: Counter[str] = field(default_factory=Counter[str])


@dataclass(frozen=True, kw_only=True)
class HeldScores:
    """The scores of a run, what they were made from, and when they may be made again while it goes on."""

    seen: tuple[object, ...]
    again: float
    scores: RunScores


class WebState:
    """Made once per application. The store is safe for many threads: routes that read it are plain functions."""

    def __init__(self, *, settings: Settings, access: AccessRules) -> None:
        self.settings = settings
        self.access = access
        self.store = RunStore(settings.store)
        self.outcomes = RunOutcomes(self.store)
        self.jobs = BackgroundRuns(settings)
        self.tree_work = BackgroundTreeWork(settings)
        self.boards = LeaderboardCache(self.store, settings.home / "standings")
        self.kept = KeptResults(CACHED_PARTS).get
        """What pages of runs are made of."""
        self.leaving = threading.Event()
        """Set when the server is about to end: whoever listens lets go."""
        self.watch = EventWatch(self.store, self.over, self.leaving)
        self.connections = OpenConnections()
        self._lock = threading.Lock()
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        """By run: when how many cells were done. The store has no clock times."""
        self._totals: dict[str, RunTotals] = {}
        self._scores: dict[str, HeldScores] = {}
        self._journal: Journal | None = None
        self._unsettled: dict[str, tuple[float, UnsettledCalls]] = {}
        self._checked: tuple[float, dict[str, float]] = (0.0, {})
        """By run: when to look again, and what was seen last."""

    def close(self) -> None:
        """End what was started and let go of everything."""
        self.jobs.close()
        self.tree_work.close()
        self.boards.close()
        self.store.close()
        if self._journal is not None:
            self._journal.close()

    def run(self, start: str) -> RunRow:
        """The run whose id is that, or begins so if only one does."""
        found = self.store.run(start)
        if found is None and start:
            rows = self.store.runs()
            near = [row for row in rows if row.name == start] or [
                row for row in rows if len(start) >= 4 and row.id.startswith(start)
            ]
            found = near[0] if len(near) == 1 else None
        if found is None:
            raise HTTPException(404, f"there is no run {start[:80]!r}")
        return found

    def while_unchanged(self, what: tuple[object, ...], make: Callable[[], T]) -> T:
        """A result that is made anew when anything was written to the store; always, where machines share one."""
        database = self.store.database
        if database.shared:
            return make()
        # What others wrote, and what this process did.
        mark = (*database.read("PRAGMA data_version")[0], *database.read("select total_changes()")[0])
        return self.kept(("unchanged", *what), mark, make)

    def run_list(self, wanted: RunsRequest, *, offset: int = 0, limit: int = RUNS_PER_PAGE) -> RunList:
        """Some of the runs; a process that works at one may end without a word, so those are looked at again."""

        def look() -> RunList:
            return list_runs(self.store, wanted, offset=offset, limit=limit)

        found = self.while_unchanged(("runs", wanted.model_dump_json(), offset, limit), look)
        return look() if any(run.state == "running" for run in found.runs) else found

    def answered(self, *rows: RunRow) -> tuple[object, ...]:
        """What had been answered and had come out in some runs by now."""
        told = self.while_unchanged(("outcomes",), self.outcomes.count)
        return tuple((row.id, row.done, row.failed, row.degraded, told.get(row.id)) for row in rows)

    def scores(self, row: RunRow, *, finished: bool) -> RunScores:
        """How good a run is by what has come out; made anew when an answer or an outcome came in.

        While a run goes on, they lag behind a little: so many times as long as they took to make.
        """
        seen, start = self.answered(row), time.monotonic()
        with self._lock:
            before = self._scores.get(row.id)
        if before is not None and (before.seen == seen or (not finished and start < before.again)):
            return before.scores
        scores, end = score_run(self.store, row), time.monotonic()
        with self._lock:
            self._scores[row.id] = HeldScores(seen=seen, again=end + LOOK_SHARE * (end - start), scores=scores)
            while len(self._scores) > CACHED_SCORES:
                self._scores.pop(next(iter(self._scores)))
        return scores

    def seconds_left(self, run: RunRowView) -> float | None:
        """Until the run is finished, at the pace of the last minutes; None where that is not known yet."""
        now, done = time.monotonic(), run.done + run.failed
        with self._lock:
            seen = self._seen.setdefault(run.id, deque())
            if not seen or seen[-1][1] != done:
                seen.append((now, done))
            while len(seen) > 2 and now - seen[0][0] > WINDOW_SECONDS:
                seen.popleft()
            began, done_at_first = seen[0]
        gained, passed = done - done_at_first, now - began
        if run.finished or gained <= 0 or passed < FEWEST_SECONDS:
            return None
        return (run.cells - done) * passed / gained

    def totals(self, run: str) -> RunTotals:
        """What a run cost so far, checks of its models included, and how its trials ended."""
        found = self._event_totals(run)
        checks = self._checks().get(run, 0.0)
        return replace(found, spending=found.spending + Cost(dollars=checks)) if checks else found

    def _event_totals(self, run: str) -> RunTotals:
        """From the events of its trials; none is read twice."""
        with self._lock:
            newest = self.store.last_event()
            before = self._totals.get(run, RunTotals())
            if before.upto > newest:  # A cell was begun anew and its events are gone.
                before = RunTotals()
            if before.upto < newest:
                rows = self.store.database.read(_NEW_SQL, (before.upto, newest, run))
                calls = [ModelCalled(**json.loads(body)) for kind, body in rows if kind == "ModelCalled"]
                ended = Counter(str(json.loads(body).get("how", "")) for kind, body in rows if kind == "ForecastMade")
                spending = before.spending + cost_of_events(calls)
                before = RunTotals(upto=newest, spending=spending, endings=before.endings + ended)
            self._totals[run] = before
            return before

    def measured_costs(self) -> CellCosts:
        """What trials have cost and how long they took here, by what decides it; counted anew when a trial ends."""
        cells = tuple((row.id, row.done, row.failed) for row in self.while_unchanged(("every run",), self.store.runs))
        return self.kept(("costs",), cells, lambda: measured_costs(self.store))

    def unsettled(self, run: str) -> UnsettledCalls:
        """What is reserved for calls under way and at risk for lost ones. A long journal is not read all the time."""
        with self._lock:
            again, seen = self._unsettled.get(run, (0.0, UnsettledCalls()))
            journal, start = self._open_journal(), time.monotonic()
            if journal is not None and start >= again:
                seen, end = journal.unsettled(run), time.monotonic()
                self._unsettled[run] = (end + LOOK_SHARE * (end - start), seen)
            return seen

    def _checks(self) -> dict[str, float]:
        """By run, dollars that went into finding out how its models can be asked; looked up as seldom."""
        with self._lock:
            again, seen = self._checked
            journal, start = self._open_journal(), time.monotonic()
            if journal is not None and start >= again:
                seen, end = journal.paid_for_checks(), time.monotonic()
                self._checked = (end + LOOK_SHARE * (end - start), seen)
            return seen

    def _open_journal(self) -> Journal | None:
        if self._journal is None and (self.settings.database or Path(self.settings.journal).is_file()):
            self._journal = Journal(self.settings.journal)
        return self._journal

    def over(self, run: str, question: str | None = None) -> bool:
        """Whether nothing more will happen in a run, or to one question of it: every cell has ended, or we ended it."""
        row = self.store.run(run)
        if row is None:
            return True
        if question is not None:
            counted = "select count(*) from {} where run = ? and {} = ?"
            ended = self.store.database.read(counted.format("cell", "question"), (run, question))[0][0]
            asked = self.store.database.read(counted.format("question", "id"), (run, question))[0][0]
            if ended >= asked * cells_each(row.spec):
                return True
        background = self.jobs.of(run)
        if background is not None:
            return background.state != "running"
        return run_row_view(self.store, row).finished


def _state_of(request: Request) -> WebState:
    return request.app.state.serving


CurrentState = Annotated[WebState, Depends(_state_of)]
"""Parameter of every route that needs the store or the settings."""
